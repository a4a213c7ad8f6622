"""Expectation-maximisation of Dawid and Skene's model, in log space, on patterns (STABLEVAL, Algorithm 1).

Classes are the first axis of every array, so that work on one class is contiguous: γ [K,P], μ [K], π [K,A·K], with
columns annotator · K + label.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.aggregation.arrays import Floats, Ints
from jurygraph.aggregation.consensus.votes import Patterns

Watched = Literal["posterior", "confusion"]
Start = Literal["majority", "uniform"]
_SLACK = 1e-13
"""Relative fall of the objective that is within rounding error, so that the step is still accepted."""


class Model(NamedTuple):
    """The estimated parameters: the shares of the classes μ [K], and the confusions π [K,A·K]."""

    prior: Floats
    confusion: Floats


@dataclass(frozen=True)
class Rules:
    """Settings of the EM steps.

    Attributes:
        prior_mu, prior_confusion: Dirichlet α of μ and of each row of π, at least 1; 1 means no prior.
        floor: added to a probability before its logarithm is taken.
        watched: the array of which the largest change in a step is compared with `tol`.
        tol: largest change at which the estimate counts as converged.
        max_iter: maximum number of steps.
        accelerated: extrapolate steps (SQUAREM); a step is kept only where the objective does not fall.
    """

    prior_mu: float
    prior_confusion: float
    floor: float
    convergence_on: Watched
    tol: float
    max_iter: int
    accelerated: bool


class Settings(NamedTuple):
    """The rules of the steps, and the start.

    μ starts from the hard majority vote or uniform, π with `diagonal` on its diagonal and the rest shared equally.
    """

    rules: Rules
    prior_start: Start
    diagonal: float


class Fitted(NamedTuple):
    """The estimate, and how the steps ended.

    `posterior` is γ [K,P] of the last E-step, and `objective` the log-likelihood plus the log-priors.
    """

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


class Problem:
    """EM on patterns by given rules. `known` [P] is the class of a gold pattern, -1 for any other."""

    def __init__(self, rows: Patterns, classes: int, rules: Rules, known: Ints) -> None:
        self._rows, self._classes, self._rules = rows, classes, rules
        self._gold = np.flatnonzero(known >= 0)
        self._truth = known[self._gold]

    def run(self, start: Model, previous_posterior: Floats | None = None) -> Fitted:
        """Run steps from `start` until they converge or `max_iter` is reached.

        `previous_posterior` [K,P] is the posterior that the first E-step is compared with.
        """
        return self._run_accelerated(start) if self._rules.accelerated else self._run_plain(start, previous_posterior)

    def e_step(self, model: Model) -> _Expected:
        """Return the E-step: γ_ic ∝ μ_c Π π_r[c, y_ir]."""
        rows, floor = self._rows, self._rules.floor
        joint = np.empty((self._classes, len(rows.weight)))
        shares = np.log(model.prior + floor)
        for index, log_confusion in enumerate(np.log(model.confusion + floor)):
            np.add(rows.matrix @ log_confusion, shares[index], out=joint[index])
        peak = joint.max(axis=0)
        known = joint[self._truth, self._gold]
        joint -= peak
        np.exp(joint, out=joint)
        normaliser = joint.sum(axis=0)
        joint /= normaliser
        evidence = np.log(normaliser) + peak
        if len(self._gold):
            joint[:, self._gold] = 0.0
            joint[self._truth, self._gold] = 1.0
            evidence[self._gold] = known
        fit = float((rows.weight * evidence).sum())  # a dot product would start BLAS threads on every core
        return _Expected(joint, fit, fit + self._log_prior(model))

    def m_step(self, posterior: Floats) -> Model:
        """Return the M-step, with Dirichlet smoothing; a row of π without any data is uniform."""
        rows, rules, k = self._rows, self._rules, self._classes
        weighted = posterior * rows.weight
        prior = weighted.sum(axis=1) + (rules.prior_mu - 1.0)
        counts = np.stack([rows.matrix.T @ row for row in weighted])
        counts += rules.prior_confusion - 1.0
        confusion = counts.reshape(k, -1, k)
        row_sum = confusion.sum(axis=2, keepdims=True)
        is_empty = row_sum <= 0.0
        confusion = np.where(is_empty, 1.0 / k, confusion / np.where(is_empty, 1.0, row_sum))
        return Model(prior / prior.sum(), confusion.reshape(k, -1))

    def _log_prior(self, model: Model) -> float:
        """Return the log-density of the Dirichlet priors, without its constant."""
        tiny = np.finfo(np.float64).tiny
        share, cell = self._rules.prior_mu - 1.0, self._rules.prior_confusion - 1.0
        log_prior = share * float(np.log(model.prior + tiny).sum()) if share else 0.0
        return log_prior + (cell * float(np.log(model.confusion + tiny).sum()) if cell else 0.0)

    def _run_plain(self, start: Model, before: Floats | None) -> Fitted:
        model, posterior, steps = start, before, 0
        while True:
            expected = self.e_step(model)
            new, steps = self.m_step(expected.posterior), steps + 1
            if self._rules.convergence_on == "confusion":
                change = _largest_change(new.confusion, model.confusion)
            else:
                change = np.inf if posterior is None else _largest_change(expected.posterior, posterior)
            model, posterior = new, expected.posterior
            if change < self._rules.tol or steps == self._rules.max_iter:
                return Fitted(model, *expected, change < self._rules.tol, steps)

    def _run_accelerated(self, start: Model) -> Fitted:
        """Run SQUAREM (Varadhan and Roland 2008, scheme S3): two steps, then an extrapolation of them."""
        model, expected, steps = start, self.e_step(start), 1
        while True:
            first = self.m_step(expected.posterior)
            after = self.e_step(first)
            steps += 1
            change = _largest_change(after.posterior, expected.posterior)
            if change < self._rules.tol or steps >= self._rules.max_iter:
                return Fitted(first, *after, change < self._rules.tol, steps)
            second = self.m_step(after.posterior)
            extrapolated = _extrapolate(model, first, second)
            expected_there = None if extrapolated is None else self.e_step(extrapolated)
            steps += extrapolated is not None
            if (
                extrapolated is not None
                and expected_there is not None
                and expected_there.objective >= after.objective - _SLACK * abs(after.objective)
            ):
                model, expected = extrapolated, expected_there
            else:
                model, expected = second, self.e_step(second)
                steps += 1


def _largest_change(new: Floats, old: Floats) -> float:
    difference = new - old
    return float(max(difference.max(), -difference.min()))


def _extrapolate(origin: Model, first: Model, second: Model) -> Model | None:
    """Return the extrapolation of two steps, or None if it goes no further than they do.

    An entry that would not be positive keeps its value after the second step.
    """
    step = [b - a for a, b in zip(origin, first, strict=True)]
    turn = [c - b - d for b, c, d in zip(first, second, step, strict=True)]
    step_length = np.sqrt(sum(float((delta * delta).sum()) for delta in step))
    turn_length = np.sqrt(sum(float((delta * delta).sum()) for delta in turn))
    if turn_length == 0.0 or step_length <= turn_length:
        return None
    factor = step_length / turn_length
    prior, confusion = (
        _keep_positive(a + 2.0 * factor * delta + factor * factor * second_delta, c)
        for a, delta, second_delta, c in zip(origin, step, turn, second, strict=True)
    )
    k = len(prior)
    rows = confusion.reshape(k, -1, k)
    return Model(prior / prior.sum(), (rows / rows.sum(axis=2, keepdims=True)).reshape(k, -1))


def _keep_positive(extrapolated: Floats, fallback: Floats) -> Floats:
    return np.where(extrapolated > 0.0, extrapolated, fallback)


def likeliest_classes(rows: Patterns, k: int, known: Ints) -> Floats:
    """Return one-hot [K,P]: the class in `known` [P], or for -1 the hard majority's, ties to the lowest."""
    size = len(rows.weight)
    counts = np.bincount(rows.code % k * size + rows.row, minlength=k * size).reshape(k, size)
    winner = np.where(known >= 0, known, counts.argmax(axis=0))
    return np.asarray(np.arange(k)[:, None] == winner, dtype=np.float64)


def near_identity(rows: Patterns, voted: Floats, known: Ints, em_settings: Settings) -> Model:
    """Return μ by the settings, and near-identity confusions with gold labels added.

    The near-identity confusions weigh as much as one label. So an annotator whose gold labels are mostly the opposite
    class starts with such confusions.
    """
    k = len(voted)
    identity = np.full((k, k), (1.0 - em_settings.diagonal) / (k - 1))
    np.fill_diagonal(identity, em_settings.diagonal)
    confusion = np.tile(identity, (rows.cells // k, 1, 1))
    gold = known[rows.row] >= 0
    if gold.any():
        annotator, label = np.divmod(rows.code[gold], k)
        np.add.at(confusion, (annotator, known[rows.row[gold]], label), rows.weight[rows.row[gold]])
        confusion /= confusion.sum(axis=2, keepdims=True)
    is_uniform = em_settings.prior_start == "uniform"
    prior = np.full(k, 1.0 / k) if is_uniform else np.asarray(voted @ rows.weight / rows.weight.sum())
    return Model(prior, confusion.transpose(1, 0, 2).reshape(k, -1))
