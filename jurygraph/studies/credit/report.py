"""The report of a credit study: every figure, and the tables and plots that show them."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from jurygraph.display import format_number
from jurygraph.messages import shorten
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Id, Number, Unit
from jurygraph.schema.rubric import Kind
from jurygraph.schema.task import NonNegative
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes

_MAX_LOSSES = 10
_MAX_REASON = 120
_MANY_TASKS = 20
"""Number of tasks from which intervals over tasks hold for skewed figures too."""


class CreditEstimate(FrozenModel):
    """A mean over `cases`, which belong to `tasks`, and its 95 % interval over tasks (CR3).

    A case is an edge of an example; for a reward, an example. `value` is None without a case, the ends also where the
    tasks cannot tell: fewer than two, or fewer than six with equal means. Ends that no true mean can have are cut off.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    cases: Count
    tasks: Count

    @property
    def cell(self) -> IntervalCell:
        """Return the cell of a table."""
        return IntervalCell(self.value, self.low, self.high)


class CreditDiagnosis(FrozenModel):
    """Leakage (GEAR Eq. 15, over leakage cases) and preservation (Eq. 16, over satisfied cases)."""

    leakage: CreditEstimate
    preservation: CreditEstimate


class Method(CreditDiagnosis):
    """One aggregation rule: over all edges that count, by kind of edge, and the mean reward of the rubric.

    `change` is the mean change of the reward against flat aggregation.
    """

    kinds: dict[Id, CreditDiagnosis]
    reward: Number
    change: Number


class CreditDifference(CreditDiagnosis):
    """GEAR less another rule, on the same cases, and on the same examples for the `reward`."""

    reward: CreditEstimate


class GraphVariant(FrozenModel):
    """One ablation, without intervals. The cases are those of the annotated graph, whatever graph the scores use."""

    leakage: Number | None
    preservation: Number | None
    reward: Number
    change: Number


class RandomGraphs(FrozenModel):
    """Random graphs: the mean over seeds, and the figures by seed.

    Of the `graphs` drawn, one for each seed and rubric with an edge, `unchanged` equal the graph they replace: the
    smaller the rubrics, the less a random graph differs.
    """

    mean: GraphVariant
    by_seed: dict[str, GraphVariant] = Field(min_length=1)
    graphs: Count
    unchanged: Count


class Untyped(GraphVariant):
    """The annotated graph with the same λ for all edges."""

    retention: Unit


class Ablations(FrozenModel):
    """The ablations: random graphs (None without seeds), one λ for all edges, and GEAR by κ."""

    random: RandomGraphs | None
    untyped: Untyped
    kappas: dict[str, GraphVariant]


class Census(FrozenModel):
    """Sizes of the data.

    `examples` are the responses with a reward from a rubric, of `rubrics` tasks, `graphs` of which have an edge; of
    these, `exact` are inferred exactly. Of the `edges` (counted once for each example), `unjudged` are no cases,
    because an end was not judged or does not apply. `left_out` counts tasks and responses by reason.
    """

    tasks: Count
    responses: Count
    rubrics: Count
    graphs: Count
    exact: Count
    examples: Count
    edges: Count
    unjudged: Count
    left_out: dict[str, Count]


class Agreement(FrozenModel):
    """Exact against approximate marginals, and the resulting rewards, over pairs of a graph and a response.

    `pairs` were compared. Left out were `too_large` pairs, of rubrics in which more than 20 criteria have a parent, and
    `unjudged` pairs, in which a criterion was not judged or does not apply: its replacement score is not part of the
    model. Responses to
    rubrics without an edge are not pairs. The errors are None without a pair; `reward_correlation` (Pearson's) is None
    also if either kind of reward is constant.
    """

    pairs: Count
    too_large: Count
    unjudged: Count
    criteria: Number | None
    marginal_mae: Number | None
    reward_mae: Number | None
    reward_correlation: Number | None


class Loss(FrozenModel):
    """The loss of a criterion: (|w| / Σ_{w>0} w) · (p - q), a share of the total reward; for a penalty, the deduction
    avoided.

    `mean_loss` is the mean over the `responses` in which it was judged, `most` the greatest loss, of response
    `max_loss_response`. `parent` is the one that takes most over these responses: the mean of
    (|w| / Σ_{w>0} w) · p · (1 - f) is greatest for its factor f alone; `kind`, `retention` (λ at the run's κ) and
    `reason` are those of its edge.
    """

    task: Id
    criterion: Id
    weight: Number
    responses: Count
    mean_loss: Number
    most: Number
    max_loss_response: Id
    parent: Id
    kind: Kind
    retention: Unit
    reason: str


class CreditReport(Report):
    """The study of one run; `kappa` is the run's, used for `gear` and for the untyped and random graphs.

    `differences` are by the rule that GEAR is compared with. `seed` is that of the random graphs.
    """

    kappa: NonNegative
    threshold: Unit
    kinds: tuple[Id, ...]
    seed: Count
    census: Census
    methods: dict[Id, Method]
    differences: dict[Id, CreditDifference]
    ablations: Ablations
    exact: Agreement
    losses: tuple[Loss, ...]

    def _sections(self) -> Iterator[str | ReportTable]:
        census = self.census
        totals = f"{census.examples} responses to {census.rubrics} rubrics, {census.graphs} of them with edges"
        yield f"{totals}, {census.exact} inferred exactly; κ = {self.kappa:g}"
        yield f"cases: edges with a child that is met: {', '.join(self.kinds)}; 95 % intervals over tasks"
        figures = ("leakage (95 %)", "preservation (95 %)")
        rows: list[list[object]] = []
        for name, one in self.methods.items():
            rows.append([name, one.leakage.cell, one.preservation.cell, one.reward, one.change])
        yield ReportTable(("rule", *figures, "mean reward", "change from flat"), rows)
        rows = []
        for name, other in self.differences.items():
            rows.append([name, other.leakage.cell, other.preservation.cell, other.reward.cell])
        yield ReportTable(("gear less", *figures, "mean reward (95 %)"), rows)
        yield self._kind_table("leakage", "violated")
        yield self._kind_table("preservation", "satisfied")
        yield from self._ablation_sections()
        yield self._exactness_table()
        if not self.losses:
            yield "no criterion lost credit"
        rows = []
        for loss in self.losses:
            edge = (loss.parent, loss.kind, shorten(loss.reason, _MAX_REASON))
            rows.append([loss.task, loss.criterion, *edge, loss.mean_loss, loss.most, loss.max_loss_response])
        texts = ("largest losses: task", "criterion", "needs", "kind", "reason")
        yield ReportTable((*texts, "mean loss", "maximum", "of response"), rows, left=len(texts), most=_MAX_LOSSES)

    def _kind_table(self, figure: Literal["leakage", "preservation"], cases: str) -> ReportTable:
        columns = [{**one.kinds, "all kinds": one} for one in self.methods.values()]
        rows: list[list[object]] = []
        for kind in columns[0]:
            estimates: list[CreditEstimate] = [getattr(column[kind], figure) for column in columns]
            rows.append([kind, estimates[0].cases, estimates[0].tasks, *(one.value for one in estimates)])
        return ReportTable((f"{figure} by kind of edge", cases, "tasks", *self.methods), rows)

    def _ablation_sections(self) -> Iterator[str | ReportTable]:
        random = self.ablations.random
        untyped = self.ablations.untyped
        variants: dict[str, GraphVariant] = {}
        if random is not None:
            variants[f"random graphs, {len(random.by_seed)} seeds"] = random.mean
        variants[f"untyped, λ = {untyped.retention:.4g}"] = untyped
        variants |= {f"κ = {kappa}": one for kappa, one in self.ablations.kappas.items()}
        rows = [[name, one.leakage, one.preservation, one.reward, one.change] for name, one in variants.items()]
        yield ReportTable(("variant of gear", "leakage", "preservation", "mean reward", "change from flat"), rows)
        if random is not None:
            rewards = [one.reward for one in random.by_seed.values()]
            span = f"{format_number(min(rewards))} to {format_number(max(rewards))}"
            yield f"random graphs: mean rewards {span}; {random.unchanged} of {random.graphs} equal the annotated graph"

    def _exactness_table(self) -> ReportTable:
        exact = self.exact
        correlation = self.exact.reward_correlation
        rows: list[list[object]] = [
            ["graph-response pairs", exact.pairs],
            ["omitted: over 20 with a parent", exact.too_large],
            ["omitted: not fully judged", exact.unjudged],
            ["mean criteria per pair", exact.criteria],
            ["marginal MAE", _format_small(exact.marginal_mae)],
            ["reward MAE", _format_small(exact.reward_mae)],
            ["1 - reward correlation", _format_small(None if correlation is None else max(0.0, 1.0 - correlation))],
        ]
        return ReportTable(("exact against approximate inference", ""), rows)

    def _notes(self) -> Iterator[str]:
        census = self.census
        yield from omission_notes(census.left_out)
        if census.unjudged:
            edges = f"{census.unjudged} of {census.edges} edges"
            yield f"no cases: {edges} with an end that was not judged or does not apply"
        if self.kappa == 0:
            yield "the run has κ = 0, which makes GEAR flat aggregation"
        gear_rule = self.methods["gear"]
        tasks = {"leakage": gear_rule.leakage.tasks, "preservation": gear_rule.preservation.tasks}
        few = [f"{name} {count}" for name, count in tasks.items() if count < _MANY_TASKS]
        if few:
            limit = f"fewer than {_MANY_TASKS}, intervals are approximate, and with one there is none"
            yield f"tasks with a case: {', '.join(few)}; with {limit}"

    def _plots(self) -> Iterator[Plot]:
        kappas = [float(kappa) for kappa in self.ablations.kappas]
        marks = [(self.kappa, "the run's κ")]
        for figures in (("leakage",), ("preservation", "reward")):
            series = [
                PlotSeries(figure, [getattr(one, figure) for one in self.ablations.kappas.values()], kappas)
                for figure in figures
            ]
            yield Plot(f"{' and '.join(figures)} by κ", "line", series, x_label="κ", marks=marks)
        for figure in ("leakage", "preservation"):
            estimates = {name: getattr(one, figure).cell for name, one in self.methods.items()}
            series = [PlotSeries.with_intervals(figure, estimates)]
            yield Plot(f"{figure} (95 %)", "bars", series)


def _format_small(value: float | None) -> str:
    """Format with two significant digits: with four decimals most of these would be 0."""
    return "-" if value is None else f"{value:.2g}"
