"""Expectation-maximisation of Dawid and Skene's model, in log space (STABLEVAL, Algorithm 1), and presets of settings.

Classes are the first axis of every array, so that work on one class is contiguous: γ [K,N], μ [K], π [K,A·K], with
columns annotator · K + label. The N items are those that count; each has a label.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from jurygraph.aggregation.consensus.votes import Votes
from jurygraph.arrays import Floats, Ints
from jurygraph.errors import PlanError

Preset = Literal["converged", "paper", "paper-synthetic"]

_SLACK = 1e-13
"""Relative fall of the objective that is within rounding error, so that the step is still accepted."""


class Model(NamedTuple):
    """The estimated parameters: the shares of the classes μ [K], and the confusions π [K,A·K]."""

    prior: Floats
    confusion: Floats


class FitSettings(NamedTuple):
    """Settings of the EM steps and of their start.

    Attributes:
        prior_mu, prior_confusion: Dirichlet α of μ and of each row of π, at least 1; 1 means no prior.
        floor: added to a probability before its logarithm is taken.
        convergence_on: the array of which the largest change in a step is compared with `tol`.
        tol: largest change at which the estimate counts as converged.
        max_iter: maximum number of steps.
        accelerated: extrapolate steps (SQUAREM); a step is kept only where the objective does not fall.
        prior_start: μ starts from the hard majority vote or uniform.
        diagonal: the diagonal of π at the start; the rest is shared equally.
    """

    prior_mu: float
    prior_confusion: float
    floor: float
    convergence_on: Literal["posterior", "confusion"]
    tol: float
    max_iter: int
    accelerated: bool
    prior_start: Literal["majority", "uniform"] = "majority"
    diagonal: float = 0.8


_PAPER = FitSettings(1.0, 1.01, 1e-10, "posterior", 1e-6, 100, accelerated=False)
PRESETS: Mapping[Preset, FitSettings] = MappingProxyType(
    {
        "converged": _PAPER._replace(
            floor=float(np.finfo(np.float64).tiny), tol=1e-9, max_iter=10_000, accelerated=True
        ),
        "paper": _PAPER,
        "paper-synthetic": _PAPER._replace(prior_confusion=1.0, convergence_on="confusion", prior_start="uniform"),
    }
)
"""`converged` runs until the estimate no longer changes; `paper` is the truncated estimate of STABLEVAL's tables of
real votes, and `paper-synthetic` that of its simulations."""


def settings_with(preset: Preset, **own: Any) -> FitSettings:
    """Return a preset with the settings that are not None. PlanError for an unknown preset or a value out of range."""
    if preset not in PRESETS:
        raise PlanError(f"preset {preset!r} is none of {', '.join(PRESETS)}")
    settings = PRESETS[preset]._replace(**{name: value for name, value in own.items() if value is not None})
    for name in ("prior_mu", "prior_confusion"):
        if not 1.0 <= getattr(settings, name) < np.inf:
            raise PlanError(f"{name} is {getattr(settings, name)}: at least 1 is needed, which is no prior")
    for name in ("diagonal", "tol"):
        if not 0.0 < getattr(settings, name) < 1.0:
            raise PlanError(f"{name} is {getattr(settings, name)}: more than 0 and less than 1 is needed")
    if settings.max_iter < 1:
        raise PlanError(f"max_iter is {settings.max_iter}: at least 1 is needed")
    return settings


class Fitted(NamedTuple):
    """The estimate: `posterior` is γ [K,N] of the last E-step, `objective` the log-likelihood plus log-priors."""

    model: Model
    posterior: Floats
    log_likelihood: float
    objective: float
    converged: bool
    iterations: int


class _Expected(NamedTuple):
    posterior: Floats
    log_likelihood: float
    objective: float


def fit_items(votes: Votes, weight: Floats, settings: FitSettings, start: Model | None = None) -> Fitted:
    """Fit the items that count; `weight` [N] is how often each does, 0 for one without a label.

    `start` replaces the usual start.
    """
    if len(votes.classes) < 2:
        raise PlanError(f"every label is {votes.classes[0]!r}: at least two classes are needed; name the whole scale")
    counted = np.flatnonzero(weight)
    return FitProblem(votes.matrix[counted], votes.counts[counted], weight[counted], settings).run(start)


class FitProblem:
    """EM by given settings.

    `matrix` [N, A·K] has the labels of the items, `counts` [N,K] their sums over annotators, and `weight` [N] how often
    each item counts.
    """

    def __init__(self, matrix: Any, counts: Ints, weight: Floats, settings: FitSettings) -> None:
        self._matrix = matrix
        self._counts = counts
        self._weight = weight
        self._settings = settings

    def run(self, start: Model | None = None) -> Fitted:
        """Run steps from the usual start, or another one, to convergence or `max_iter`."""
        voted = self._likeliest_classes()
        model = start or self._near_identity(voted)
        return self._run_accelerated(model) if self._settings.accelerated else self._run_plain(model, voted)

    def _likeliest_classes(self) -> Floats:
        """Return one-hot [K,N]: the hard majority's class, ties to the lowest."""
        winner = self._counts.argmax(axis=1)
        return np.asarray(np.arange(self._counts.shape[1])[:, None] == winner, dtype=np.float64)

    def _near_identity(self, voted: Floats) -> Model:
        """Return μ by the settings, and near-identity confusions."""
        k = len(voted)
        identity = np.full((k, k), (1.0 - self._settings.diagonal) / (k - 1))
        np.fill_diagonal(identity, self._settings.diagonal)
        is_uniform = self._settings.prior_start == "uniform"
        prior = np.full(k, 1.0 / k) if is_uniform else np.asarray(voted @ self._weight / self._weight.sum())
        return Model(prior, _scale_rows(np.tile(identity, self._matrix.shape[1] // k)))

    def e_step(self, model: Model) -> _Expected:
        """Return the E-step: γ_ic ∝ μ_c Π π_r[c, y_ir]."""
        floor = self._settings.floor
        joint = np.empty((len(model.prior), len(self._weight)))
        shares = np.log(model.prior + floor)
        for index, log_confusion in enumerate(np.log(model.confusion + floor)):
            np.add(self._matrix @ log_confusion, shares[index], out=joint[index])
        peak = joint.max(axis=0)
        joint -= peak
        np.exp(joint, out=joint)
        normaliser = joint.sum(axis=0)
        joint /= normaliser
        evidence = np.log(normaliser) + peak
        fit = float((self._weight * evidence).sum())  # a dot product would start BLAS threads on every core
        return _Expected(joint, fit, fit + self._log_prior(model))

    def m_step(self, posterior: Floats) -> Model:
        """Return the M-step, with Dirichlet smoothing; a row of π without any data is uniform."""
        settings = self._settings
        k = len(posterior)
        weighted = posterior * self._weight
        prior = weighted.sum(axis=1) + (settings.prior_mu - 1.0)
        counts = np.stack([self._matrix.T @ row for row in weighted])
        counts += settings.prior_confusion - 1.0
        confusion = counts.reshape(k, -1, k)
        row_sum = confusion.sum(axis=2, keepdims=True)
        is_empty = row_sum <= 0.0
        confusion = np.where(is_empty, 1.0 / k, confusion / np.where(is_empty, 1.0, row_sum))
        return Model(prior / prior.sum(), confusion.reshape(k, -1))

    def _log_prior(self, model: Model) -> float:
        tiny = np.finfo(np.float64).tiny
        share = self._settings.prior_mu - 1.0
        cell = self._settings.prior_confusion - 1.0
        log_prior = share * float(np.log(model.prior + tiny).sum()) if share else 0.0
        return log_prior + (cell * float(np.log(model.confusion + tiny).sum()) if cell else 0.0)

    def _run_plain(self, model: Model, posterior: Floats) -> Fitted:
        steps = 0
        while True:
            expected = self.e_step(model)
            new = self.m_step(expected.posterior)
            steps = steps + 1
            watched = (expected.posterior, posterior)
            if self._settings.convergence_on == "confusion":
                watched = (new.confusion, model.confusion)
            change = _largest_change(*watched)
            model = new
            posterior = expected.posterior
            if change < self._settings.tol or steps == self._settings.max_iter:
                return Fitted(model, *expected, change < self._settings.tol, steps)

    def _run_accelerated(self, model: Model) -> Fitted:
        """Run SQUAREM (Varadhan and Roland 2008, scheme S3): two steps, then an extrapolation of them."""
        expected = self.e_step(model)
        steps = 1
        while True:
            first = self.m_step(expected.posterior)
            after = self.e_step(first)
            steps += 1
            change = _largest_change(after.posterior, expected.posterior)
            if change < self._settings.tol or steps >= self._settings.max_iter:
                return Fitted(first, *after, change < self._settings.tol, steps)
            second = self.m_step(after.posterior)
            model = _extrapolate(model, first, second) or second
            expected = self.e_step(model)
            steps += 1
            is_kept = expected.objective >= after.objective - _SLACK * abs(after.objective)
            if model is not second and not is_kept:
                model = second
                expected = self.e_step(second)
                steps += 1


def _largest_change(new: Floats, old: Floats) -> float:
    difference = new - old
    return float(max(difference.max(), -difference.min()))


def _extrapolate(origin: Model, first: Model, second: Model) -> Model | None:
    """Return the extrapolation of two steps, or None if it goes no further than they do. An entry that would not be
    positive keeps its value after the second step."""
    step = [b - a for a, b in zip(origin, first, strict=True)]
    turn = [c - b - d for b, c, d in zip(first, second, step, strict=True)]
    step_length = np.sqrt(sum(float((delta * delta).sum()) for delta in step))
    turn_length = np.sqrt(sum(float((delta * delta).sum()) for delta in turn))
    if turn_length == 0.0 or step_length <= turn_length:
        return None
    factor = step_length / turn_length
    leaps = (a + 2.0 * factor * d + factor * factor * t for a, d, t in zip(origin, step, turn, strict=True))
    prior, confusion = (np.where(leap > 0.0, leap, c) for leap, c in zip(leaps, second, strict=True))
    return Model(prior / prior.sum(), _scale_rows(confusion))


def _scale_rows(confusion: Floats) -> Floats:
    k = len(confusion)
    rows = confusion.reshape(k, -1, k)
    return np.asarray((rows / rows.sum(axis=2, keepdims=True)).reshape(k, -1))
