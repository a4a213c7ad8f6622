"""What a consensus says: of items, of agents, of annotators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray, IndexArray, finite, shaped
from jurygraph.aggregation.consensus.agents import AgentScore, grouped_by_agent, intervals
from jurygraph.aggregation.consensus.em import Settings
from jurygraph.aggregation.consensus.votes import Key, Votes, encode
from jurygraph.errors import PlanError

HIGH = 0.3
"""Above which an item is ambiguous (STABLEVAL, Tables 12, 17, 23, 29)."""
_NORMAL = 1.959963984540054


class AnnotatorQuality(NamedTuple):
    """How an annotator errs: the mean of the diagonal of π (`accuracy`), of its last column (`leniency`: says the
    highest class, whatever is true), and of its first (`strictness`); with 95 % intervals, and how many labels it gave.

    The intervals are of the Dirichlet posterior of π where the items' posteriors are taken for the truth, so they are
    too narrow where these are unsure.
    """

    accuracy: float
    leniency: float
    strictness: float
    labels: int
    accuracy_interval: tuple[float, float]
    leniency_interval: tuple[float, float]
    strictness_interval: tuple[float, float]


@dataclass(frozen=True)
class Credited:
    """Items with a probability of each class: `posterior` [N,K], in the order of `votes.items` and `votes.classes`."""

    votes: Votes
    posterior: FloatArray

    @property
    def items(self) -> Sequence[Key]:
        return self.votes.items

    @property
    def classes(self) -> Sequence[Key]:
        return self.votes.classes

    def credit(self, values: ArrayLike | None = None) -> FloatArray:
        """Σ_c γ_ic v(c), [N]; `values` v [K], c/(K-1) unless given. PlanError where classes have no order."""
        return np.asarray(self.posterior @ credit_values(self.votes, values))

    def ambiguity(self) -> FloatArray:
        """1 - max_c γ_ic, [N], in [0, 1-1/K]; high above .3. (The text says entropy; every table is this.)"""
        return np.asarray(1.0 - self.posterior.max(axis=1))

    def labels(self) -> IndexArray:
        """The likeliest class of each item, its code, [N]; ties to the lowest."""
        return np.asarray(self.posterior.argmax(axis=1))

    def agent_scores(
        self,
        agent: ArrayLike,
        values: ArrayLike | None = None,
        bootstrap: int = 1000,
        seed: int = 0,
        prompt: ArrayLike | None = None,
    ) -> dict[Key, AgentScore]:
        """S(a): the mean credit of an agent's items, with a 95 % interval, by agent in the order of appearance.

        Items without a label say nothing of their agent, and an agent without any other is left out.

        The interval is of the mean expected credit over the population that the items, or where given the prompts, are
        drawn from (Algorithm 1, lines 18-21): percentiles of `bootstrap` resamples with duplicates. How sure the
        confusions are does not enter; `refitted` tells.

        Args:
            agent: whose item it is, row by row as `item` was given.
            values: v [K], c/(K-1) unless given.
            bootstrap: resamples; 0 gives no interval.
            seed: of the resamples.
            prompt: what is resampled in place of items, row by row: several items of one prompt stand or fall together.

        Raises:
            PlanError: an item of two agents, or of two prompts, or columns that do not fit.
        """
        grouping = grouped_by_agent(self.votes, agent, prompt)
        return intervals(grouping, self.credit(values), bootstrap, seed)


@dataclass(frozen=True)
class Consensus(Credited):
    """A fitted model: class shares `prior` [K], `confusion` [A,K,K] (annotator, true class, label), in the order of
    `votes.annotators`; `gold` [N] the known class of an item, -1 of any other; `warnings` say what to doubt."""

    prior: FloatArray
    confusion: FloatArray
    log_likelihood: float
    converged: bool
    iterations: int
    settings: Settings
    gold: IndexArray
    warnings: tuple[str, ...]

    def annotators(self) -> dict[Key, AnnotatorQuality]:
        """How each annotator errs, in the order of appearance."""
        return quality(self)

    def hard(self) -> Credited:
        """Dawid and Skene's hard labels: the likeliest class of each item for certain."""
        return Credited(self.votes, np.eye(len(self.classes))[self.labels()])

    def apply(self, item: ArrayLike, annotator: ArrayLike, label: ArrayLike) -> Credited:
        """The posterior of new items under the confusions as they are: an online judgement that learns nothing.

        Raises:
            PlanError: an annotator that nothing is known of, or a label off the scale.
        """
        votes = encode(item, annotator, label, self.classes)
        known = {one: place for place, one in enumerate(self.votes.annotators)}
        for one in votes.annotators:
            if one not in known:
                raise PlanError(f"nothing is known of annotator {one!r}: it was not in the fit")
        place = np.array([known[one] for one in votes.annotators])
        tiny = np.finfo(np.float64).tiny
        likelihood = np.log(self.confusion + tiny)[place[votes.annotator], :, votes.label]
        joint = np.tile(np.log(self.prior + tiny), (len(votes.items), 1))
        np.add.at(joint, votes.item, likelihood)
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        return Credited(votes, joint / joint.sum(axis=1, keepdims=True))


def credit_values(votes: Votes, values: ArrayLike | None) -> FloatArray:
    """v [K]. Raises PlanError where none are given and the classes have no order, or where they do not fit."""
    k = len(votes.classes)
    if values is not None:
        given = finite("values", values)
        shaped("values", given, (k,))
        return given
    if k < 2:
        raise PlanError(f"every label is {votes.classes[0]!r}, which says no credit; name the whole scale, or `values`")
    if not votes.ranked:
        raise PlanError(
            f"the labels {', '.join(map(repr, votes.classes[:10]))} have no order; name them from low to high in "
            "`classes`, or give each its credit in `values`"
        )
    return np.arange(k) / (k - 1)


def read_cells(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What accuracy, leniency and strictness are means of: diagonal, last and first column of [A,K,K], [A,K] each."""
    return np.einsum("acc->ac", matrix), matrix[:, :, -1], matrix[:, :, 0]


def quality(fitted: Consensus) -> dict[Key, AnnotatorQuality]:
    """The figures of every annotator, from π and from what it rests on."""
    votes = fitted.votes
    _, a, k = votes.shape
    code = votes.annotator * k + votes.label
    seen = np.stack([np.bincount(code, weights=fitted.posterior[votes.item, c], minlength=a * k) for c in range(k)])
    mass = seen.reshape(k, a, k).sum(axis=2).T + k * (fitted.settings.rules.prior_confusion - 1.0)  # [A,K]
    spread = fitted.confusion * (1.0 - fitted.confusion) / (mass + 1.0)[:, :, None]
    means = [one.mean(axis=1) for one in read_cells(fitted.confusion)]
    wide = [_NORMAL * np.sqrt(one.sum(axis=1)) / k for one in read_cells(spread)]
    low = np.maximum(0.0, np.subtract(means, wide)).T.tolist()
    high = np.minimum(1.0, np.add(means, wide)).T.tolist()
    labels = np.bincount(votes.annotator, minlength=a).tolist()
    rows = zip(votes.annotators, np.transpose(means).tolist(), labels, zip(low, high, strict=True), strict=True)
    return {name: _quality(mean, count, *ends) for name, mean, count, ends in rows}


def _quality(mean: Sequence[float], labels: int, low: Sequence[float], high: Sequence[float]) -> AnnotatorQuality:
    accuracy, leniency, strictness = zip(low, high, strict=True)
    return AnnotatorQuality(mean[0], mean[1], mean[2], labels, accuracy, leniency, strictness)
