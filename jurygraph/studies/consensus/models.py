"""Report models of a consensus."""

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jurygraph.aggregation.consensus import Agreement
from jurygraph.aggregation.consensus.resampling import Method
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Flag, Id, LongId, Number, Unit
from jurygraph.schema.rating import Label

Preset = Literal["converged", "paper"]
IntervalSource = Literal["items", "prompts", "refits"]


def _finite_or_none(value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
    """Return None for NaN, for an infinity, and for an interval with such an end."""
    numbers = value if isinstance(value, tuple) else (value,)
    return value if all(one is not None and math.isfinite(one) for one in numbers) else None


FiniteOrNone = Annotated[Number | None, BeforeValidator(_finite_or_none)]
Interval = Annotated[tuple[Number, Number] | None, BeforeValidator(_finite_or_none)]


class Agent(FrozenModel):
    """An agent's mean credit, its 95 % interval (None if it cannot be estimated), and its number of items."""

    score: Number
    low: FiniteOrNone
    high: FiniteOrNone
    items: Count


class Annotator(FrozenModel):
    """An annotator's error rates by the fitted model, with 95 % intervals; None for an annotator without labels."""

    accuracy: Unit
    leniency: Unit
    strictness: Unit
    labels: Count
    accuracy_interval: Interval
    leniency_interval: Interval
    strictness_interval: Interval


class Item(FrozenModel):
    """The posterior probability of each class, [K], and the ambiguity: 1 minus the greatest."""

    posterior: tuple[Unit, ...]
    ambiguity: Unit


class MethodStability(FrozenModel):
    """Stability of a method, as in `aggregation.consensus.Stability`; None if no subset gives a value."""

    tau_b: FiniteOrNone
    rank_sd: FiniteOrNone
    rank_range: FiniteOrNone
    score_shift: FiniteOrNone
    subsets: Count


class Counts(FrozenModel):
    """Sizes of the data. `rows` include the `abstained`, and `repeated` rows count like any other; `unlabelled` items
    have only abstentions.
    """

    rows: Count
    repeated: Count
    abstained: Count
    items: Count
    unlabelled: Count
    annotators: Count
    agents: Count
    gold: Count


class Ties(FrozenModel):
    """Items for which several classes lead in the majority vote, and the rule that decides them."""

    rule: Literal["shared", "first"]
    items: tuple[LongId, ...]


class AgentComparison(FrozenModel):
    """An agent's score by each method, the change by the posterior, and its rank by each method, 1 for the greatest."""

    majority: Number
    dawid_skene: Number
    stableval: Number
    change: Number
    items: Count
    ranks: dict[Method, Number]


class KeyFindings(FrozenModel):
    """The figures of STABLEVAL's Tables 12, 17, 23 and 29: majority vote against posterior expected credit, and
    ambiguity of items by the posterior.

    `correlation` (Pearson, over agents) is None with fewer than two agents, or if one method scores all agents equally.
    """

    correlation: Number | None
    greatest_change: Number | None
    rank_changes: Count
    mean_ambiguity: Unit
    highly_ambiguous: Count
    highly_ambiguous_share: Unit


class ConsensusReport(FrozenModel):
    """A consensus. `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and
    `converged` belong to the fitted model, whatever the method.

    `intervals` names the source of the agents' intervals: resampled items, resampled prompts, or refits.
    `decided_by_one` are the items whose majority depends on a single vote (Proposition 1). `stability` is None if it
    was not measured.
    """

    method: Method
    preset: Preset
    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    prior: tuple[Unit, ...]
    counts: Counts
    agreement: Agreement
    agents: dict[Id, Agent]
    intervals: IntervalSource
    annotators: dict[Id, Annotator]
    items: dict[LongId, Item] = Field(min_length=1)
    stability: dict[Method, MethodStability] | None
    comparison: dict[Id, AgentComparison]
    findings: KeyFindings
    decided_by_one: tuple[LongId, ...]
    ties: Ties
    log_likelihood: Number
    converged: Flag
    iterations: Count
    warnings: tuple[str, ...]
