"""What a study of consensus found."""

from typing import Literal

from pydantic import Field

from jurygraph.aggregation.consensus.stability import Method
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count, Flag, Id, LongId, Number, Unit
from jurygraph.schema.rating import Label

Preset = Literal["converged", "paper"]
Source = Literal["items", "prompts", "refits"]
Interval = tuple[Number, Number]


class Agent(Noun):
    """An agent's mean credit, its 95 % interval (None where there is no telling), and its number of items."""

    score: Number
    low: Number | None
    high: Number | None
    items: Count


class Annotator(Noun):
    """How an annotator errs by the fitted model, with 95 % intervals; those of one who said nothing are None."""

    accuracy: Unit
    leniency: Unit
    strictness: Unit
    labels: Count
    accuracy_interval: Interval | None
    leniency_interval: Interval | None
    strictness_interval: Interval | None


class Item(Noun):
    """The probability of each class [K], and 1 less the greatest."""

    posterior: tuple[Unit, ...]
    ambiguity: Unit


class Stable(Noun):
    """A method under subsets of the annotators, as `aggregation.consensus.Stability`; None where no subset tells."""

    tau_b: Number | None
    rank_sd: Number | None
    rank_range: Number | None
    score_shift: Number | None
    subsets: Count


class Counts(Noun):
    """What the figures are of. `rows` include the `abstained`, and `repeated` rows count as any other; `unlabelled`
    items have abstentions alone."""

    rows: Count
    repeated: Count
    abstained: Count
    items: Count
    unlabelled: Count
    annotators: Count
    agents: Count
    gold: Count


class Unison(Noun):
    """The share of items of which all rows say the same, and the mean share of pairs of rows that agree."""

    unanimous: Unit
    pairwise: Unit


class Ties(Noun):
    """Items that several classes lead in the majority vote, and who wins there."""

    rule: Literal["shared", "first"]
    items: tuple[LongId, ...]


class Compared(Noun):
    """An agent's score by each method, what the posterior changes, and its rank by each, 1 for the greatest."""

    majority: Number
    dawid_skene: Number
    stableval: Number
    change: Number
    items: Count
    ranks: dict[Method, Number]


class KeyFindings(Noun):
    """The figures of STABLEVAL's Tables 12, 17, 23 and 29: majority vote against posterior expected credit, and how
    ambiguous items are by the posterior.

    `correlation` (Pearson, over agents) is None where there are fewer than two agents, or one method puts all alike.
    """

    correlation: Number | None
    greatest_change: Number | None
    rank_changes: Count
    mean_ambiguity: Unit
    highly_ambiguous: Count
    highly_ambiguous_share: Unit


class ConsensusReport(Noun):
    """A consensus. `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and
    `converged` are the fitted model's whatever the method.

    `intervals` says what the agents' are of: resampled items, resampled prompts, or refits. `decided_by_one` are the
    items whose majority one vote decides (Proposition 1). `stability` is None where it was not measured.
    """

    method: Method
    preset: Preset
    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    prior: tuple[Unit, ...]
    counts: Counts
    agreement: Unison
    agents: dict[Id, Agent]
    intervals: Source
    annotators: dict[Id, Annotator]
    items: dict[LongId, Item] = Field(min_length=1)
    stability: dict[Method, Stable] | None
    comparison: dict[Id, Compared]
    findings: KeyFindings
    decided_by_one: tuple[LongId, ...]
    ties: Ties
    log_likelihood: Number
    converged: Flag
    iterations: Count
    warnings: tuple[str, ...]
