"""The report of a consensus: every figure, and the tables and plots that show them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AnnotatorQuality
from jurygraph.aggregation.consensus.majority import VoteAgreement
from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.messages import shorten
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Flag, Id, LongId, Number, Unit
from jurygraph.schema.rating import Label
from jurygraph.studies.consensus.votes import format_label
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable

# three decimals, as in the tables of the paper
_MAX_ROWS = 10
_DIGITS = 3
_MAX_AGENTS = 25
_MAX_NAMED = 12
_MAX_SCALE = 400
_METHOD_NAMES: Mapping[Method, str] = {
    "majority": "majority vote",
    "dawid-skene": "Dawid–Skene (hard)",
    "stableval": "posterior expected credit",
}
_INTERVAL_SOURCES = {
    "items": "t over items",
    "prompts": "t over prompts",
    "refits": "t, with refits",
    "resampled-items": "resampled items",
    "resampled-prompts": "resampled prompts",
    "published-refits": "the paper's 10 refits",
}

Preset = Literal["converged", "paper"]
IntervalSource = Literal["items", "prompts", "refits", "resampled-items", "resampled-prompts", "published-refits"]


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
    """An annotator's error rates by the fitted model, with 95 % intervals of refits; None without refits."""

    accuracy: Unit
    leniency: Unit
    strictness: Unit
    labels: Count
    accuracy_interval: Interval = None
    leniency_interval: Interval = None
    strictness_interval: Interval = None


def rate_annotator(quality: AnnotatorQuality, intervals: Sequence[tuple[float, float]] = ()) -> Annotator:
    """Return the error rates of an annotator, with the `intervals` of refits if there are any."""
    rates = {name: getattr(quality, name) for name in ("accuracy", "leniency", "strictness", "labels")}
    names = ("accuracy_interval", "leniency_interval", "strictness_interval")
    return Annotator(**rates, **dict(zip(names, intervals, strict=False)))


class ConsensusItem(FrozenModel):
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


class ConsensusCounts(FrozenModel):
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


class VotesReport(Report):
    """Base of the reports of a consensus: the scale, the sizes of the data, and what is known of annotators and items.

    `values` are the credits of `classes`, [K]; `warnings` are reasons for caution.
    """

    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    prior: tuple[Unit, ...]
    counts: ConsensusCounts
    agreement: VoteAgreement
    annotators: dict[Id, Annotator]
    items: dict[LongId, ConsensusItem] = Field(min_length=1)
    warnings: tuple[str, ...]

    def totals(self) -> Iterator[str]:
        """Yield the sizes of the data, and the scale."""
        counts = self.counts
        totals = {"labels": counts.rows - counts.abstained, "items": counts.items, "annotators": counts.annotators}
        if counts.gold:
            totals["gold items"] = counts.gold
        yield ", ".join(f"{name}: {count}" for name, count in totals.items())
        classes = zip(map(format_label, self.classes), self.values, strict=True)
        scale = ", ".join(f"{name} ({value:g})" for name, value in classes)
        yield shorten(f"classes and credit: {scale}", _MAX_SCALE)

    def annotator_table(self) -> ReportTable:
        """Return the annotators, the most accurate first, with the intervals of refits if there are any."""
        is_refitted = any(one.accuracy_interval for one in self.annotators.values())
        rows: list[list[object]] = []
        for name, one in sorted(self.annotators.items(), key=lambda item: (-item[1].accuracy, item[0])):
            interval = [format_range(one.accuracy_interval)] if is_refitted else []
            rows.append([name, one.accuracy, *interval, one.leniency, one.strictness, one.labels])
        interval = ["95 % (refits)"] if is_refitted else []
        header = ("annotator", "accuracy", *interval, "leniency", "strictness", "labels")
        return ReportTable(header, rows, digits=_DIGITS, most=_MAX_ROWS)

    def item_table(self) -> ReportTable:
        """Return the items, the most ambiguous first."""
        ranked = sorted(self.items.items(), key=lambda item: (-item[1].ambiguity, item[0]))
        rows: list[list[object]] = []
        for name, one in ranked:
            likeliest = max(one.posterior)
            shares = zip(self.classes, one.posterior, strict=True)
            labels = " or ".join(format_label(label) for label, share in shares if share == likeliest)
            rows.append([name, one.ambiguity, likeliest, labels])
        header = ("most ambiguous items", "ambiguity", "posterior", "class")
        return ReportTable(header, rows, digits=_DIGITS, most=_MAX_ROWS)


def rank_table(
    title: str, scores: Mapping[str, float], probabilities: Mapping[str, Sequence[float]] | None
) -> Iterator[ReportTable]:
    """Yield P(rank) of the agents, the best first, for the first ranks; nothing for one agent."""
    ranked = sorted((probabilities or {}).items(), key=lambda item: (-scores[item[0]], item[0]))
    ranks = min(_MAX_ROWS, len(scores))
    if ranks > 1:
        rows = [[name, *shares[:ranks]] for name, shares in ranked]
        yield ReportTable([title, *map(str, range(1, ranks + 1))], rows, digits=2, most=_MAX_ROWS)


def format_range(interval: Sequence[float | None] | None) -> str:
    """Format the ends of an interval; a dash if there is none."""
    low, high = interval or (None, None)
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"


class ConsensusReport(VotesReport):
    """A consensus. `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and
    `converged` belong to the fitted model, whatever the method. `limits` say what was not measured, and why.

    `intervals` names the source of the agents' intervals: t over items or prompts, without or with the variance of
    refits; by preset `paper`, percentiles of resamples or of the published refits.

    `decided_by_one` are the items whose majority depends on a single vote (Proposition 1). `stability` is under subsets
    of the annotators, as in the paper, and `stability_with_items` with the items of each subset drawn too;
    `rank_probabilities` has P(rank = 1 … A) of each agent by `method` under the latter. All three are None if they were
    not measured.
    """

    method: Method
    preset: Preset
    agents: dict[Id, Agent]
    intervals: IntervalSource
    stability: dict[Method, MethodStability] | None
    stability_with_items: dict[Method, MethodStability] | None
    rank_probabilities: dict[Id, tuple[Unit, ...]] | None
    comparison: dict[Id, AgentComparison]
    findings: KeyFindings
    decided_by_one: tuple[LongId, ...]
    ties: Ties
    log_likelihood: Number
    converged: Flag
    iterations: Count
    limits: tuple[str, ...]
    compares_methods: Flag = Field(default=False, exclude=True)
    """Whether the tables compare all methods."""

    def _sections(self) -> Iterator[str | ReportTable]:
        yield from self.totals()
        steps = f"{'converged' if self.converged else 'stopped'} after {self.iterations} steps"
        fit = f"model fitted with preset {self.preset}: {steps}, log-likelihood {self.log_likelihood:.3f}"
        yield f"scores by {_METHOD_NAMES[self.method]} (method {self.method}); {fit}"
        rows = [[name, one.score, format_range((one.low, one.high)), one.items] for name, one in self._ranked_agents()]
        header = ("agent", "score", f"95 % ({_INTERVAL_SOURCES[self.intervals]})", "items")
        yield ReportTable(header, rows, digits=_DIGITS)
        if self.compares_methods:
            yield self._comparison_table()
        yield self.annotator_table()
        yield self.item_table()
        if self.compares_methods:
            yield self._findings_table()
        yield from _stability_table("stability ({} subsets)", self.stability)
        yield from _stability_table("with items drawn too ({} subsets)", self.stability_with_items)
        scores = {name: one.score for name, one in self.agents.items()}
        yield from rank_table("P(rank), items drawn too", scores, self.rank_probabilities)
        yield self._agreement_table()

    def _ranked_agents(self) -> list[tuple[str, Agent]]:
        return sorted(self.agents.items(), key=lambda item: (-item[1].score, item[0]))

    def _comparison_table(self) -> ReportTable:
        rows: list[list[object]] = []
        for name, one in sorted(self.comparison.items(), key=lambda item: (-item[1].stableval, item[0])):
            change = f"{round(one.change, 3) + 0.0:+.3f}"
            ranks = ", ".join(f"{one.ranks[method]:g}" for method in METHODS)
            rows.append([name, one.majority, one.dawid_skene, one.stableval, change, one.items, ranks])
        header = ("agent", "MV", "DS", "PEC", "Δ(PEC-MV)", "items", "ranks MV, DS, PEC")
        return ReportTable(header, rows, digits=_DIGITS)

    def _findings_table(self) -> ReportTable:
        findings = self.findings
        share = f"{findings.highly_ambiguous} ({findings.highly_ambiguous_share:.2%})"
        rows: list[list[object]] = [
            ["correlation of scores (MV, PEC)", findings.correlation],
            ["largest change of a score", findings.greatest_change],
            ["agents with a changed rank", f"{findings.rank_changes} / {self.counts.agents}"],
            ["mean ambiguity (PEC)", findings.mean_ambiguity],
            ["highly ambiguous items (> 0.3)", share],
        ]
        return ReportTable(("MV and PEC", ""), rows, digits=_DIGITS)

    def _agreement_table(self) -> ReportTable:
        rows: list[list[object]] = [
            ["unanimous items", f"{self.agreement.unanimous:.1%}"],
            ["agreeing pairs of labels, mean over items", f"{self.agreement.pairwise:.1%}"],
            ["items decided by one vote", len(self.decided_by_one)],
            [f"items with a tie ({self.ties.rule})", len(self.ties.items)],
            ["rows that repeat an item and annotator", self.counts.repeated],
            ["omitted abstentions", self.counts.abstained],
        ]
        return ReportTable(("agreement", ""), rows)

    def _notes(self) -> tuple[str, ...]:
        return (*self.warnings, *self.limits)

    def _plots(self) -> Iterator[Plot]:
        """Return agents with intervals, a map of annotators, the ambiguity of items, and the stability of methods."""
        best = self._ranked_agents()[:_MAX_AGENTS]
        if best:
            scores = {name: IntervalCell(one.score, one.low, one.high) for name, one in best}
            series = PlotSeries.with_intervals("score", scores)
            shown = "" if len(best) == len(self.agents) else f", the first {len(best)} of {len(self.agents)}"
            title = f"agents{shown}: mean credit ({self.method}); 95 %, {_INTERVAL_SOURCES[self.intervals]}"
            yield Plot(title, "points", [series])
        people = self.annotators
        points = [PlotSeries(name, [one.leniency], [one.strictness]) for name, one in people.items()]
        if len(people) > _MAX_NAMED:
            leniency, strictness = (
                [getattr(one, name) for one in people.values()] for name in ("leniency", "strictness")
            )
            points = [PlotSeries("annotators", leniency, strictness)]
        yield Plot("annotators", "points", points, "strictness", "leniency")
        ambiguity = PlotSeries("items", [one.ambiguity for one in self.items.values()])
        title = f"ambiguity ({self.method})"
        marks = [(consensus.HIGH, "highly ambiguous")]
        yield Plot(title, "histogram", [ambiguity], "1 - greatest posterior", "items", marks, has_log_scale=True)
        if self.stability is not None:
            measured = {"subsets of annotators": self.stability, "items drawn too": self.stability_with_items or {}}
            series_by_kind = [
                PlotSeries(kind, [one.tau_b for one in by_method.values()], list(by_method))
                for kind, by_method in measured.items()
            ]
            yield Plot("stability: mean τ_b (high: steady)", "points", series_by_kind)


def _stability_table(title: str, stability: Mapping[Method, MethodStability] | None) -> Iterator[ReportTable]:
    if stability is not None:
        rows = [
            [_METHOD_NAMES[method], one.tau_b, one.rank_sd, one.rank_range, one.score_shift]
            for method, one in stability.items()
        ]
        subsets = next(iter(stability.values())).subsets
        header = (title.format(subsets), "mean τ_b", "mean rank sd", "mean rank range", "mean score shift")
        yield ReportTable(header, rows, digits=_DIGITS)
