"""`jurygraph study preference`: accuracy of a judge by category on preference sets."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated, Literal

import typer

from jurygraph.cli.options import AsJson, PlotFile, RunFolder, option
from jurygraph.cli.output_files import refuse_picture, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    escape_line,
    format_interval,
    omission_line,
    print_message,
    print_report,
    table_section,
)
from jurygraph.runs.run import Run
from jurygraph.studies.plots import draw_preference
from jurygraph.studies.preference import PreferenceReport, read_comparisons, report
from jurygraph.studies.preference.benchmarks import REWARDBENCH
from jurygraph.studies.preference.outcomes import REWARD
from jurygraph.studies.preference.study import AccuracyRow

_MAX_SUBSETS, _MAX_FAILED, _MAX_REASON = 40, 10, 120
_COLUMNS = ("tasks", "right", "wrong", "ties", "failed", "flips", "coverage", "accuracy (95 %)")
_RULES = {"ties": {"wrong": "a tie is not right", "shared": "a tie is shared among the tied"}}
_RULES["failures"] = {"wrong": "a failed task is wrong", "omit": "a failed task is omitted"}


def preference(
    run: RunFolder,
    decided_by: Annotated[
        str | None,
        option(
            "NAME",
            "What decides: reward, or an evaluator of pairs.",
            "--by",
            show_default="the evaluator of pairs if the reward counts no other, else reward",
        ),
    ] = None,
    ties: Annotated[
        Literal["wrong", "shared"], typer.Option(help="Count ties as wrong, or as 1/n if n responses tie.")
    ] = "wrong",
    failures: Annotated[
        Literal["wrong", "omit"], typer.Option("--failed", help="Count failed tasks as wrong, or omit them.")
    ] = "wrong",
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Measure accuracy by category on a preference set, such as RewardBench or JudgeBench.

    A task is right if the response labelled `preferred` has a higher reward than every other response. With verdicts
    on pairs, each verdict counts for the response that it prefers, and the preferred one needs more of both orders, as
    JudgeBench counts. `import rewardbench` and `import judgebench` write such tasks. RewardBench has the sections Chat,
    Chat Hard, Safety and Reasoning, weighted as in its code; JudgeBench has Knowledge, Reasoning, Math and Coding;
    other tasks are grouped by `subset` or `source` in their metadata. A task with a missing judgement that could change
    its result has failed, and never counts as right. No request is sent, and nothing is written except the plot.

    Exit codes: 0 done; 2 invalid input, such as a run whose tasks have no preferred response.

    \b
    Example:
        jurygraph study preference run
        jurygraph study preference run --by reward --ties shared --failed omit --json
    """
    refuse_picture(plot)
    with closing(Run.open(run)) as opened, progress("reading", opened.tasks_scored, "tasks") as advance:
        comparisons = read_comparisons(opened, decided_by, advance)
    found = report(comparisons, ties, failures)
    print_report(json, found, _report_lines(found))
    _print_notes(found)
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_preference(found, draft, plot.suffix))


def _print_notes(report: PreferenceReport) -> None:
    for reason, count in report.left_out.items():
        print_message(f"omitted, {reason}: {count}")
    for one in report.benchmarks:
        if one.overall.accuracy is None:
            is_mean = one.benchmark == REWARDBENCH
            why = "it is the mean of four categories, and one has no task" if is_mean else "all tasks failed"
            print_message(f"{one.benchmark}: no accuracy of all: {why}")


def _report_lines(report: PreferenceReport) -> Iterator[str]:
    judge = "rewards" if report.decided_by == REWARD else f"verdicts of {report.decided_by} on pairs"
    rules = f"{_RULES['ties'][report.ties]}, {_RULES['failures'][report.failures]}"
    yield escape_line(f"{report.run}: decided by {judge}; {rules}")
    for one in report.benchmarks:
        rows = [_cells(row) for row in (*one.categories, one.overall)]
        yield from table_section([one.benchmark, *_COLUMNS], rows)
    subsets = [_cells(row) for one in report.benchmarks for category in one.categories for row in category.subsets]
    if len(subsets) > sum(len(one.categories) for one in report.benchmarks):
        yield from table_section(["subset", *_COLUMNS], subsets, most=_MAX_SUBSETS)
    if report.failed:
        yield ""
        yield "failed tasks"
        for task in report.failed[:_MAX_FAILED]:
            yield escape_line(f"{task.task} ({task.category}): {task.reason}", _MAX_REASON)
        yield from omission_line(len(report.failed), _MAX_FAILED)


def _cells(row: AccuracyRow) -> Sequence[object]:
    counts = (row.tasks, row.right, row.wrong, row.ties, row.failed, row.flips)
    return [row.name, *counts, row.coverage, format_interval(row.accuracy, row.low, row.high)]
