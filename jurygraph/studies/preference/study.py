"""Accuracy by category of a preference set, from the outcomes of its tasks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from jurygraph.inference.shares import wilson
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, PositiveInt, Unit
from jurygraph.studies.preference.benchmarks import REWARDBENCH, SECTIONS, categories_of
from jurygraph.studies.preference.outcomes import REWARD, Comparisons, Outcome
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes

_MAX_SUBSETS = 40
_MAX_FAILED = 10
_COLUMNS = ("tasks", "right", "wrong", "ties", "failed", "flips", "coverage", "accuracy (95 %)")
_TIE_RULES = {"wrong": "a tie is not right", "shared": "a tie is shared among the tied"}
_FAILURE_RULES = {"wrong": "a failed task is wrong", "omit": "a failed task is omitted"}
Ties = Literal["wrong", "shared"]
Failures = Literal["wrong", "omit"]


class AccuracyRow(FrozenModel):
    """Counts and accuracy of some tasks: of a subset, a category, or a whole benchmark.

    `tasks` = `right` + `wrong` + `ties` + `failed`; `flips` of them had orders that prefer different responses.
    `coverage` is the share of the tasks that did not fail. `accuracy` is weighted as the benchmark does; it is None if
    no task counts, or if a section of RewardBench is missing from the mean of all. [`low`, `high`] is its 95 % Wilson
    interval, with the effective number of tasks (Σ w)² / Σ w². Each task counts once, so tasks count as independent.
    """

    name: str
    tasks: PositiveInt
    right: Count
    wrong: Count
    ties: Count
    failed: Count
    flips: Count
    coverage: Unit
    accuracy: Unit | None
    low: Unit | None
    high: Unit | None

    @property
    def interval(self) -> IntervalCell:
        """Return the accuracy with its interval."""
        return IntervalCell(self.accuracy, self.low, self.high)

    def cells(self) -> list[object]:
        """Return the row of a table."""
        counts = [self.tasks, self.right, self.wrong, self.ties, self.failed, self.flips]
        return [self.name, *counts, self.coverage, self.interval]


class CategoryRow(AccuracyRow):
    """A category with its subsets."""

    subsets: tuple[AccuracyRow, ...]


class BenchmarkRows(FrozenModel):
    """One benchmark: its categories, and all of its tasks."""

    benchmark: str
    categories: tuple[CategoryRow, ...]
    overall: AccuracyRow


class FailedTask(FrozenModel):
    """A task without a result, and what is missing."""

    task: str
    category: str
    reason: str


class PreferenceReport(Report):
    """Accuracy of a run by benchmark and category, under the rules `ties` and `failures`.

    `decided_by` is `reward`, or the evaluator whose verdicts on pairs decide. `failed` lists the tasks without a
    result, and `left_out` counts, by reason, those that are no preference.
    """

    run: str
    decided_by: str
    ties: Ties
    failures: Failures
    benchmarks: tuple[BenchmarkRows, ...]
    failed: tuple[FailedTask, ...]
    left_out: dict[str, Count]

    def _sections(self) -> Iterator[str | ReportTable]:
        judge = "rewards" if self.decided_by == REWARD else f"verdicts of {self.decided_by} on pairs"
        yield f"{self.run}: decided by {judge}; {_TIE_RULES[self.ties]}, {_FAILURE_RULES[self.failures]}"
        subsets: list[AccuracyRow] = []
        for one in self.benchmarks:
            yield ReportTable((one.benchmark, *_COLUMNS), [row.cells() for row in (*one.categories, one.overall)])
            subsets += [row for category in one.categories for row in category.subsets]
        if len(subsets) > sum(len(one.categories) for one in self.benchmarks):
            yield ReportTable(("subset", *_COLUMNS), [row.cells() for row in subsets], most=_MAX_SUBSETS)
        failed = [[one.task, one.category, one.reason] for one in self.failed]
        yield ReportTable(("failed task", "category", "what is missing"), failed, left=3, most=_MAX_FAILED)

    def _notes(self) -> Iterator[str]:
        yield from omission_notes(self.left_out)
        for one in self.benchmarks:
            if one.overall.accuracy is None:
                is_mean = one.benchmark == REWARDBENCH
                why = "it is the mean of four categories, and one has no task" if is_mean else "all tasks failed"
                yield f"{one.benchmark}: no accuracy of all: {why}"

    def _plots(self) -> Iterator[Plot]:
        for one in self.benchmarks:
            rows = [*one.categories, one.overall]
            series = PlotSeries.with_intervals("accuracy", {row.name: row.interval for row in rows})
            yield Plot(f"{one.benchmark}: accuracy (95 %)", "bars", [series])


Weighted = list[tuple[float, Outcome]]
"""Outcomes, each with its weight; no weight is 0."""


def report(comparisons: Comparisons, ties: Ties = "wrong", failures: Failures = "wrong") -> PreferenceReport:
    """Return the accuracy by category.

    RewardBench: a section is the mean of its subsets by the published numbers of examples, of those subsets that the
    run has, and all is the mean of the four sections. JudgeBench and other sets: each task counts the same.

    Args:
        comparisons: the outcomes of the tasks.
        ties: `wrong` (a tie is not right: RewardBench for rewards, JudgeBench), or `shared`: 1/n of a right answer,
            where n responses tie for the best.
        failures: `wrong`, or `omit`: a failed task does not count, and lowers the coverage alone.
    """
    outcomes = comparisons.outcomes
    names = dict.fromkeys(one.place.benchmark for one in outcomes)
    return PreferenceReport(
        run=comparisons.run,
        decided_by=comparisons.decided_by,
        ties=ties,
        failures=failures,
        benchmarks=tuple(_Accuracy(ties, failures).benchmark(name, outcomes) for name in sorted(names, key=_order)),
        failed=tuple(
            FailedTask(task=one.task, category=one.place.category, reason=one.reason)
            for one in outcomes
            if one.result == "failed"
        ),
        left_out=dict(comparisons.left_out),
    )


def _order(benchmark: str) -> tuple[bool, str]:
    """Return the sort key of a benchmark: those without published categories come last."""
    return not categories_of(benchmark), benchmark


class _Accuracy:
    """Accuracy under two rules."""

    def __init__(self, ties: Ties, failures: Failures) -> None:
        self._ties = ties
        self._failures = failures

    def benchmark(self, name: str, outcomes: Iterable[Outcome]) -> BenchmarkRows:
        """Return the rows of a benchmark."""
        own = [one for one in outcomes if one.place.benchmark == name]
        found = {one.place.category for one in own}
        order = [category for category in categories_of(name) if category in found]
        categories = order or sorted(found)
        weighted = {
            category: self._weigh([one for one in own if one.place.category == category]) for category in categories
        }
        rows = tuple(self._category(category, own, weighted[category]) for category in categories)
        return BenchmarkRows(benchmark=name, categories=rows, overall=self._overall(name, own, weighted))

    def _overall(self, name: str, own: Sequence[Outcome], weighted: dict[str, Weighted]) -> AccuracyRow:
        if name != REWARDBENCH:
            return self._row("all", own, [pair for pairs in weighted.values() for pair in pairs])
        sections = [weighted.get(section, []) for section in SECTIONS]
        totals = [sum(weight for weight, _ in pairs) for pairs in sections]
        if not all(totals):
            return self._row("all", own, [])
        equal = [(weight / total, one) for pairs, total in zip(sections, totals, strict=True) for weight, one in pairs]
        return self._row("all", own, equal)

    def _category(self, category: str, own: Sequence[Outcome], weighted: Weighted) -> CategoryRow:
        inside = [one for one in own if one.place.category == category]
        subsets = []
        for name in sorted({one.place.subset for one in inside}):
            members = [one for one in inside if one.place.subset == name]
            subsets.append(self._row(name, members, [(1.0, one) for one in self._counted(members)]))
        row = self._row(category, inside, weighted)
        return CategoryRow(**row.model_dump(), subsets=tuple(subsets))

    def _counted(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        return (one for one in outcomes if one.result != "failed" or self._failures == "wrong")

    def _weigh(self, outcomes: Iterable[Outcome]) -> Weighted:
        """Return the tasks that count, with their weights in a category."""
        counted = list(self._counted(outcomes))
        sizes = Counter(one.place.subset for one in counted)
        weights = [1.0 if (weight := one.place.weight) is None else weight / sizes[one.place.subset] for one in counted]
        return list(zip(weights, counted, strict=True))

    def _credit(self, outcome: Outcome) -> float:
        if outcome.result == "tie" and self._ties == "shared":
            return 1.0 / (outcome.tied + 1)
        return float(outcome.result == "right")

    def _row(self, name: str, outcomes: Sequence[Outcome], weighted: Weighted) -> AccuracyRow:
        counts = Counter(one.result for one in outcomes)
        accuracy = low = high = None
        if weighted:
            total = sum(weight for weight, _ in weighted)
            accuracy = min(1.0, sum(weight * self._credit(one) for weight, one in weighted) / total)
            size = total**2 / sum(weight**2 for weight, _ in weighted)
            low, high = wilson(accuracy * size, size)
        return AccuracyRow(
            name=name,
            tasks=len(outcomes),
            right=counts["right"],
            wrong=counts["wrong"],
            ties=counts["tie"],
            failed=counts["failed"],
            flips=sum(one.is_flipped for one in outcomes),
            coverage=1.0 - counts["failed"] / len(outcomes),
            accuracy=accuracy,
            low=low,
            high=high,
        )
