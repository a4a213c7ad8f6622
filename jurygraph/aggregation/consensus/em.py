"""Expectation-maximisation of Dawid and Skene's model, in log space, on patterns (STABLEVAL, Algorithm 1).

Classes stand first in every array, so that what is done class by class is contiguous: γ [K,P], μ [K], π [K,A·K], whose
columns are annotator · K + label.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.aggregation._inputs import FloatArray, IndexArray
from jurygraph.aggregation.consensus.patterns import Patterns

Watched = Literal["posterior", "confusion"]
Start = Literal["majority", "uniform"]
_SLACK = 1e-13
"""By how much of itself an objective may fall that floats cannot tell from one that rises."""


class Model(NamedTuple):
    """What is estimated: the shares of the classes μ [K], and the confusions π [K,A·K]."""

    prior: FloatArray
    confusion: FloatArray


@dataclass(frozen=True)
class Rules:
    """How it is estimated.

    Attributes:
        prior_mu, prior_confusion: Dirichlet α of μ and of each row of π, at least 1; 1 is none.
        floor: what is added to a probability before its logarithm is taken.
        watched: whose greatest change in a step is compared with `tol`.
        tol: below which the estimate has converged.
        max_iter: steps at most.
        accelerated: whether steps are extrapolated (SQUAREM); each is kept only where the objective does not fall.
    """

    prior_mu: float
    prior_confusion: float
    floor: float
    watched: Watched
    tol: float
    max_iter: int
    accelerated: bool


class Settings(NamedTuple):
    """The rules of the steps, and where they start: μ from the hard majority vote or uniform, π with `diagonal` on its
    diagonal and the rest shared."""

    rules: Rules
    prior_start: Start
    diagonal: float


class Fitted(NamedTuple):
    """The estimate: the model, γ [K,P] of the last E-step, its log-likelihood, the objective (with the log-priors), and
    how it ended."""

    model: Model
    posterior: FloatArray
    log_likelihood: float
    objective: float
    converged: bool
    iterations: int


class _Expected(NamedTuple):
    posterior: FloatArray
    log_likelihood: float
    objective: float


class Problem:
    """The rows and rules of one estimate. `known` [P] is the class of a gold pattern, -1 of any other."""

    def __init__(self, rows: Patterns, classes: int, rules: Rules, known: IndexArray) -> None:
        self._rows, self._classes, self._rules = rows, classes, rules
        self._gold = np.flatnonzero(known >= 0)
        self._truth = known[self._gold]

    def run(self, start: Model, before: FloatArray | None = None) -> Fitted:
        """Steps from `start` until they change little. `before` [K,P] is what the first E-step is compared with."""
        return self._accelerated(start) if self._rules.accelerated else self._plain(start, before)

    def expect(self, model: Model) -> _Expected:
        """E-step: γ_ic ∝ μ_c Π π_r[c, y_ir]."""
        rows, floor = self._rows, self._rules.floor
        joint = np.empty((self._classes, len(rows.weight)))
        shares = np.log(model.prior + floor)
        for place, says in enumerate(np.log(model.confusion + floor)):
            np.add(rows.matrix @ says, shares[place], out=joint[place])
        top = joint.max(axis=0)
        known = joint[self._truth, self._gold]
        joint -= top
        np.exp(joint, out=joint)
        size = joint.sum(axis=0)
        joint /= size
        evidence = np.log(size) + top
        if len(self._gold):
            joint[:, self._gold] = 0.0
            joint[self._truth, self._gold] = 1.0
            evidence[self._gold] = known
        fit = float((rows.weight * evidence).sum())  # a product of vectors would wake every core
        return _Expected(joint, fit, fit + self._log_prior(model))

    def maximise(self, posterior: FloatArray) -> Model:
        """M-step, with Dirichlet smoothing; a row of π of which nothing is known is uniform."""
        rows, rules, k = self._rows, self._rules, self._classes
        weighed = posterior * rows.weight
        prior = weighed.sum(axis=1) + (rules.prior_mu - 1.0)
        counts = np.stack([rows.matrix.T @ one for one in weighed])
        counts += rules.prior_confusion - 1.0
        each = counts.reshape(k, -1, k)
        size = each.sum(axis=2, keepdims=True)
        empty = size <= 0.0
        each = np.where(empty, 1.0 / k, each / np.where(empty, 1.0, size))
        return Model(prior / prior.sum(), each.reshape(k, -1))

    def _log_prior(self, model: Model) -> float:
        """The log-density of the Dirichlet priors, without its constant."""
        tiny = np.finfo(np.float64).tiny
        share, cell = self._rules.prior_mu - 1.0, self._rules.prior_confusion - 1.0
        of_prior = share * float(np.log(model.prior + tiny).sum()) if share else 0.0
        return of_prior + (cell * float(np.log(model.confusion + tiny).sum()) if cell else 0.0)

    def _plain(self, start: Model, before: FloatArray | None) -> Fitted:
        model, posterior, steps = start, before, 0
        while True:
            expected = self.expect(model)
            new, steps = self.maximise(expected.posterior), steps + 1
            if self._rules.watched == "confusion":
                change = _change(new.confusion, model.confusion)
            else:
                change = np.inf if posterior is None else _change(expected.posterior, posterior)
            model, posterior = new, expected.posterior
            if change < self._rules.tol or steps == self._rules.max_iter:
                return Fitted(model, *expected, change < self._rules.tol, steps)

    def _accelerated(self, start: Model) -> Fitted:
        """SQUAREM (Varadhan and Roland 2008, scheme S3): two steps, and a leap along where they lead."""
        model, expected, steps = start, self.expect(start), 1
        while True:
            first = self.maximise(expected.posterior)
            after = self.expect(first)
            steps += 1
            change = _change(after.posterior, expected.posterior)
            if change < self._rules.tol or steps >= self._rules.max_iter:
                return Fitted(first, *after, change < self._rules.tol, steps)
            second = self.maximise(after.posterior)
            leapt = _leap(model, first, second)
            there = None if leapt is None else self.expect(leapt)
            steps += leapt is not None
            if (
                leapt is not None
                and there is not None
                and there.objective >= after.objective - _SLACK * abs(after.objective)
            ):
                model, expected = leapt, there
            else:
                model, expected = second, self.expect(second)
                steps += 1


def _change(new: FloatArray, old: FloatArray) -> float:
    moved = new - old
    return float(max(moved.max(), -moved.min()))


def _leap(origin: Model, first: Model, second: Model) -> Model | None:
    """Where the two steps lead, or None where they lead no further. What would fall below 0 stays as it was."""
    step = [b - a for a, b in zip(origin, first, strict=True)]
    turn = [c - b - d for b, c, d in zip(first, second, step, strict=True)]
    length = np.sqrt(sum(float((one * one).sum()) for one in step))
    bend = np.sqrt(sum(float((one * one).sum()) for one in turn))
    if bend == 0.0 or length <= bend:
        return None
    far = length / bend
    prior, confusion = (
        _positive(a + 2.0 * far * one + far * far * two, c)
        for a, one, two, c in zip(origin, step, turn, second, strict=True)
    )
    k = len(prior)
    each = confusion.reshape(k, -1, k)
    return Model(prior / prior.sum(), (each / each.sum(axis=2, keepdims=True)).reshape(k, -1))


def _positive(leapt: FloatArray, otherwise: FloatArray) -> FloatArray:
    return np.where(leapt > 0.0, leapt, otherwise)
