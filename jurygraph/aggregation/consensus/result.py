"""The result of a consensus: credit of items, scores of agents, error rates of annotators, margins of a majority."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.em import FitSettings, Key, Votes, code_column
from jurygraph.arrays import Bools, Floats, Ints, as_finite, check_shape
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import bounded_interval, mean_interval

IntervalKind = Literal["t", "bootstrap"]
Bounds = tuple[float, float] | tuple[None, None]

HIGH = 0.3
"""Values above this are high ambiguity (STABLEVAL, Tables 12, 17, 23, 29)."""


class AgentScore(NamedTuple):
    """An agent's mean credit, its 95 % interval (None where it cannot be computed), and the number of its items."""

    score: float
    low: float | None
    high: float | None
    items: int


class AnnotatorQuality(NamedTuple):
    """Error rates of an annotator, and the number of its labels.

    `accuracy` is the mean of the diagonal of π, `leniency` of its last column (the highest class, whatever is true),
    and `strictness` of its first.
    """

    accuracy: float
    leniency: float
    strictness: float
    labels: int


@dataclass(frozen=True)
class Credited:
    """Items with a probability of each class: `posterior` [N,K], in the order of `votes.items` and `votes.classes`."""

    votes: Votes
    posterior: Floats

    @property
    def items(self) -> Sequence[Key]:
        return self.votes.items

    @property
    def classes(self) -> Sequence[Key]:
        return self.votes.classes

    def credit(self, values: ArrayLike | None = None) -> Floats:
        """Return Σ_c γ_ic v(c), [N]; `values` v [K] is by default c/(K-1). PlanError if the classes have no order."""
        return np.asarray(self.posterior @ credit_values(self.votes, values))

    def ambiguity(self) -> Floats:
        """Return 1 - max_c γ_ic, [N], in [0, 1-1/K]; high above .3.

        The paper's text names the entropy, but all its tables use this.
        """
        return np.asarray(1.0 - self.posterior.max(axis=1))

    def likeliest_labels(self) -> Ints:
        """Return the code of the likeliest class of each item, [N]; ties go to the lowest."""
        return np.asarray(self.posterior.argmax(axis=1))

    def agent_scores(
        self,
        agent: ArrayLike,
        values: ArrayLike | None = None,
        bootstrap: int = 1000,
        seed: int = 0,
        prompt: ArrayLike | None = None,
        interval: IntervalKind = "t",
    ) -> dict[Key, AgentScore]:
        """Return S(a), the mean credit of an agent's items, with a 95 % interval, by agent in the order of appearance.

        Items without a label do not count, and an agent with no other items is left out.

        The interval is of the mean expected credit over the population from which the items (or the prompts, if passed)
        are drawn. It does not include the uncertainty of the confusions; `refit_intervals` does.

        Args:
            agent: the agent that produced the item, row by row as in `item`.
            values: v [K], by default c/(K-1).
            bootstrap: number of resamples for `interval="bootstrap"`; 0 gives no interval of either kind.
            seed: seed of the resamples.
            prompt: the unit that is drawn in place of items, row by row: all items of one prompt belong together.
            interval: `t`, by `bounded_interval`, also for few items; or `bootstrap`, percentiles of resamples with
                replacement (Algorithm 1, lines 18-21), which for five items contains their target in some 55 %.

        Raises:
            PlanError: an item with two agents or two prompts, or columns or arguments that do not fit.
        """
        if bootstrap < 0 or bootstrap == 1:
            raise PlanError(f"bootstrap is {bootstrap}: 0, for no interval, or at least 2 is needed")
        if interval not in ("t", "bootstrap"):
            raise PlanError(f"interval is {interval!r}: t or bootstrap is needed")
        worth = credit_values(self.votes, values)
        grouping = grouped_by_agent(self.votes, agent, prompt)

        def bounds(index: int, sums: Floats, sizes: Ints) -> Bounds:
            if interval == "t" and bootstrap:
                return t_bounds(worth, sums, sizes)
            return mean_interval(sums, sizes, bootstrap, (seed, index))

        return score_agents(self, self.posterior @ worth, grouping, bounds)


@dataclass(frozen=True)
class Consensus(Credited):
    """A fitted model.

    `prior` [K] has the class shares and `confusion` [A,K,K] the confusions (annotator, true class, label), in the order
    of `votes.annotators`; `warnings` names reasons for doubt.
    """

    prior: Floats
    confusion: Floats
    log_likelihood: float
    converged: bool
    iterations: int
    settings: FitSettings
    warnings: tuple[str, ...]

    def annotators(self) -> dict[Key, AnnotatorQuality]:
        """Return the error rates of each annotator, in the order of appearance."""
        labels = np.bincount(self.votes.annotator, minlength=len(self.votes.annotators))
        rows = zip(*error_rates(self.confusion).tolist(), labels.tolist(), strict=True)
        return dict(zip(self.votes.annotators, map(AnnotatorQuality._make, rows), strict=True))

    def hard_labels(self) -> Credited:
        """Return Dawid and Skene's hard labels: the likeliest class of each item, as certain."""
        return Credited(self.votes, np.eye(len(self.classes))[self.likeliest_labels()])


@dataclass(frozen=True)
class MajorityVote(Credited):
    """The majority's class of each item.

    `posterior` [N,K] is certain; if ties are shared, each of n tied classes has 1/n. `tied` [N] marks items with
    several leading classes; `margin` [N] is the number of votes by which the first class leads the second. An item with
    margin 1 changes or becomes tied if one annotator is left out: ranks by majority are not stable there (STABLEVAL,
    Proposition 1). An item without a label has equal probabilities and margin 0.
    """

    tied: Bools
    margin: Ints

    def items_with_margin_one(self) -> list[Key]:
        """Return the items that one vote decides, in their order."""
        return [self.items[index] for index in np.flatnonzero(self.margin == 1).tolist()]


def credit_values(votes: Votes, values: ArrayLike | None) -> Floats:
    """Return v [K]. Raises PlanError for values that do not fit, or for none if the classes have no order."""
    k = len(votes.classes)
    if values is not None:
        numbers = as_finite("values", values)
        check_shape("values", numbers, (k,))
        return numbers
    if k < 2:
        raise PlanError(f"every label is {votes.classes[0]!r}, which gives no credit; name all classes, or `values`")
    if not votes.ranked:
        raise PlanError(
            f"the labels {', '.join(map(repr, votes.classes[:10]))} have no order; name them from low to high in "
            "`classes`, or give each its credit in `values`"
        )
    return np.arange(k) / (k - 1)


def error_rates(confusion: Floats) -> Floats:
    """Return accuracy, leniency and strictness of confusions [A,K,K], [3,A]: means of diagonal, last, first column."""
    cells = [np.einsum("acc->ac", confusion), confusion[:, :, -1], confusion[:, :, 0]]
    return np.array([one.mean(axis=1) for one in cells])


def score_agents(
    credited: Credited, credit: Floats, grouping: "Grouping", bounds: Callable[[int, Floats, Ints], Bounds]
) -> dict[Key, AgentScore]:
    """Return the scores of the agents by the `credit` of items [N]; agents without a labelled item are left out.

    `bounds` gets the agent's code, and the sum of credit and the number of items of each of its prompts.
    """
    labelled = np.flatnonzero(credited.votes.has_label)
    order = labelled[np.argsort(grouping.agent[labelled], kind="stable")]
    ends = np.cumsum(np.bincount(grouping.agent[labelled], minlength=len(grouping.agents)))
    scores = {}
    for index, (name, items) in enumerate(zip(grouping.agents, np.split(order, ends[:-1]), strict=True)):
        if len(items):
            _, unit, size = np.unique(grouping.prompt[items], return_inverse=True, return_counts=True)
            low, high = bounds(index, np.bincount(unit, credit[items]).astype(np.float64), size)
            scores[name] = AgentScore(float(credit[items].mean()), low, high, len(items))
    return scores


def t_bounds(values: Floats, sums: Floats, sizes: Ints, more_variance: float = 0.0) -> Bounds:
    """Return the interval of an agent's mean credit from its prompts; `values` [K] bound the credit of an item."""
    estimate = bounded_interval(sums, sizes, float(values.min()), float(values.max()), more_variance)
    if estimate is None or estimate.low is None or estimate.high is None:
        return None, None
    return estimate.low, estimate.high


class Grouping(NamedTuple):
    """The agent and the prompt of each item, as codes [N] in the order of first appearance."""

    agents: Sequence[Key]
    agent: Ints
    prompt: Ints


def grouped_by_agent(votes: Votes, agent: ArrayLike, prompt: ArrayLike | None = None) -> Grouping:
    """Return the agent and the prompt of every item, from columns row by row. PlanError if an item has two."""
    agent_codes, agents = _codes_of_items(votes, "agent", agent)
    prompt_codes = np.arange(len(votes.items)) if prompt is None else _codes_of_items(votes, "prompt", prompt)[0]
    return Grouping(agents, agent_codes, prompt_codes)


def _codes_of_items(votes: Votes, name: str, column: ArrayLike) -> tuple[Ints, Sequence[Key]]:
    codes, names = code_column(name, column)
    if len(codes) != len(votes.item_of_row):
        raise PlanError(
            f"{name} has {len(codes)} rows where the labels have {len(votes.item_of_row)}; give one for each"
        )
    code_of_item = np.empty(len(votes.items), dtype=np.intp)
    code_of_item[votes.item_of_row[::-1]] = codes[::-1]
    wrong = codes != code_of_item[votes.item_of_row]
    if wrong.any():
        row = int(np.argmax(wrong))
        item = votes.item_of_row[row]
        two_names = f"{names[code_of_item[item]]!r} and {names[codes[row]]!r}"
        raise PlanError(f"item {votes.items[item]!r} has the {name}s {two_names}; give each {name} items of its own")
    return code_of_item, names
