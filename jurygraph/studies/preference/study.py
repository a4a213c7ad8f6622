"""Accuracy by category of a preference set, from the outcomes of its tasks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jurygraph.inference.shares import wilson
from jurygraph.studies.preference.benchmarks import REWARDBENCH, SECTIONS, categories_of
from jurygraph.studies.preference.outcomes import REWARD, Comparisons, Outcome
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes

_MAX_SUBSETS = 40
_MAX_FAILED = 10
_COUNTS = ("tasks", "right", "wrong", "ties", "failed", "flips", "coverage")
Row = dict[str, Any]
Weighted = list[tuple[float, Outcome]]
"""Outcomes, each with its weight, which is above 0."""


def report(comparisons: Comparisons) -> Report:
    """Return the accuracy by category. A tie is not right (RewardBench for rewards, JudgeBench), nor is a failed task.

    RewardBench: a section is the mean of its subsets by the published numbers of examples, of those subsets that the
    run has, and all is the mean of the four sections. JudgeBench and other sets: each task counts the same.

    The figures are `benchmarks` with their `categories`, each with its `subsets`, and `overall`; the tasks that
    `failed`, and `left_out`, by reason, those that are no preference. A row has `tasks` = `right` + `wrong` + `ties` +
    `failed`; `flips` of them had orders that prefer different responses. `coverage` is the share of the tasks that did
    not fail. `accuracy` is None if a section of RewardBench is missing from the mean of all. [`low`, `high`] is its 95
    % Wilson interval, with the effective number of tasks (Σ w)² / Σ w². Each task counts once, so tasks count as
    independent.
    """
    by_benchmark: dict[str, list[Outcome]] = {}
    for one in comparisons.outcomes:
        by_benchmark.setdefault(one.place.benchmark, []).append(one)
    published_first = sorted(by_benchmark, key=lambda name: (not categories_of(name), name))
    benchmarks = [_measure(name, by_benchmark[name]) for name in published_first]
    failed = [
        {"task": one.task, "category": one.place.category, "reason": one.reason}
        for one in comparisons.outcomes
        if one.result == "failed"
    ]
    figures = {
        "run": comparisons.run,
        "decided_by": comparisons.decided_by,
        "benchmarks": benchmarks,
        "failed": failed,
        "left_out": comparisons.left_out,
    }
    judge = "rewards" if comparisons.decided_by == REWARD else f"verdicts of {comparisons.decided_by} on pairs"
    rules = "a tie is not right, a failed task is wrong"
    sections: list[str | ReportTable] = [f"{comparisons.run}: decided by {judge}; {rules}", *_tables(benchmarks)]
    rows = [list(one.values()) for one in failed]
    sections.append(ReportTable(("failed task", "category", "what is missing"), rows, left=3, most=_MAX_FAILED))
    return Report(figures, sections, list(_notes(comparisons.left_out, benchmarks)), list(map(_plot, benchmarks)))


def _measure(name: str, outcomes: Sequence[Outcome]) -> Row:
    """Return the rows of a benchmark."""
    found = {one.place.category for one in outcomes}
    published = [category for category in categories_of(name) if category in found]
    categories = []
    weighted = {}
    for category in published or sorted(found):
        inside = [one for one in outcomes if one.place.category == category]
        weighted[category] = _weigh(inside)
        subsets = []
        for subset in sorted({one.place.subset for one in inside}):
            members = [one for one in inside if one.place.subset == subset]
            subsets.append(_row(subset, members, [(1.0, one) for one in members]))
        categories.append(_row(category, inside, weighted[category]) | {"subsets": subsets})
    overall = [pair for pairs in weighted.values() for pair in pairs]
    if name == REWARDBENCH:
        overall = _weigh_sections([weighted.get(section, []) for section in SECTIONS])
    return {"benchmark": name, "categories": categories, "overall": _row("all", outcomes, overall)}


def _weigh(outcomes: Sequence[Outcome]) -> Weighted:
    sizes = Counter(one.place.subset for one in outcomes)
    weighted = []
    for one in outcomes:
        of_subset = one.place.weight
        weighted.append((1.0 if of_subset is None else of_subset / sizes[one.place.subset], one))
    return weighted


def _row(name: str, outcomes: Sequence[Outcome], weighted: Weighted) -> Row:
    counts = Counter(one.result for one in outcomes)
    accuracy = low = high = None
    if weighted:
        total = sum(weight for weight, _ in weighted)
        accuracy = min(1.0, sum(weight for weight, one in weighted if one.result == "right") / total)
        size = total**2 / sum(weight**2 for weight, _ in weighted)
        low, high = wilson(accuracy * size, size)
    return {
        "name": name,
        "tasks": len(outcomes),
        "right": counts["right"],
        "wrong": counts["wrong"],
        "ties": counts["tie"],
        "failed": counts["failed"],
        "flips": sum(one.is_flipped for one in outcomes),
        "coverage": 1.0 - counts["failed"] / len(outcomes),
        "accuracy": accuracy,
        "low": low,
        "high": high,
    }


def _weigh_sections(sections: Sequence[Weighted]) -> Weighted:
    """Return the outcomes of RewardBench's sections with equal weights of the sections; none if one has no task."""
    totals = [sum(weight for weight, _ in pairs) for pairs in sections]
    if not all(totals):
        return []
    return [(weight / total, one) for pairs, total in zip(sections, totals, strict=True) for weight, one in pairs]


def _tables(benchmarks: Sequence[Row]) -> Iterator[ReportTable]:
    categories = 0
    subsets = []
    for one in benchmarks:
        yield _row_table(one["benchmark"], [*one["categories"], one["overall"]])
        categories += len(one["categories"])
        subsets += [row for category in one["categories"] for row in category["subsets"]]
    if len(subsets) > categories:
        yield _row_table("subset", subsets, _MAX_SUBSETS)


def _row_table(title: str, rows: Sequence[Row], most: int | None = None) -> ReportTable:
    cells = [[row["name"], *(row[name] for name in _COUNTS), _interval(row)] for row in rows]
    return ReportTable((title, *_COUNTS, "accuracy (95 %)"), cells, most=most)


def _interval(row: Row) -> IntervalCell:
    return IntervalCell(row["accuracy"], row["low"], row["high"])


def _notes(left_out: Mapping[str, int], benchmarks: Sequence[Row]) -> Iterator[str]:
    yield from omission_notes(left_out)
    for one in benchmarks:
        if one["overall"]["accuracy"] is None:
            yield f"{one['benchmark']}: no accuracy of all: it is the mean of four categories, and one has no task"


def _plot(benchmark: Row) -> Plot:
    cells = {row["name"]: _interval(row) for row in (*benchmark["categories"], benchmark["overall"])}
    title = f"{benchmark['benchmark']}: accuracy (95 %)"
    return Plot(title, "bars", [PlotSeries.with_intervals("accuracy", cells)])
