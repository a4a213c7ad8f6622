"""`jurygraph study disagreement`: measure where the components of a reward disagree, in one run or several."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.options import AsJson, PlotFile, Resamples
from jurygraph.cli.output_files import refuse_picture, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    escape_line,
    format_number,
    format_table,
    print_json,
    print_message,
    print_result_lines,
)
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.studies.disagreement import DisagreementReport, Samples, StepRule
    from jurygraph.studies.disagreement.models import GroupDifference

_MAX_STEPS = 30
_SERIES_TITLES = {"reward": "mean reward", "disagreement": "mean D_pair", "conflict_rate": "conflict rate"}


def disagreement(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.", show_default=False)],
    components: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Components to compare.", show_default="accuracy,format,steps, or all that count"
        ),
    ] = None,
    step_label: Annotated[
        str | None,
        typer.Option(metavar="L", help="Group into steps by this label of the responses.", show_default=False),
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Group into steps of N tasks.", show_default=False)
    ] = None,
    percentile: Annotated[
        float, typer.Option(metavar="P", help="Percentile of D_pair above which a response is a conflict.")
    ] = 80.0,
    resamples: Resamples = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Seed of the bootstrap.")] = 0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Measure where a reward's components disagree (MACRM, 4.5).

    D_pair is the mean absolute difference between the components of a response. A response above the 80th percentile
    of its own run is a conflict; the 20 % of responses with the largest D_pair are compared with the rest. With steps,
    mean reward, mean D_pair and conflict rate are reported by step. No request is sent, and nothing is written except
    the plot. `--json` prints every statistic.

    Exit codes: 0 done; 2 invalid input, such as a run with fewer than two components.

    \b
    Example:
        jurygraph study disagreement run
        jurygraph study disagreement macrm multi-head --step-label step --plot disagreement.svg
    """
    from jurygraph.studies.disagreement import StepRule, report

    cut = StepRule(step_label, every)
    if plot is not None:
        _refuse_undrawable(plot, cut)
    names = tuple(name.strip() for name in components.split(",")) if components is not None else ()
    reports = [report(_read_run(run, cut, names), percentile, resamples, seed) for run in runs]
    if json:
        print_json({"runs": [one.model_dump(mode="json") for one in reports]})
    else:
        print_result_lines(_report_lines(reports))
    _print_omissions(reports)
    if plot is not None:
        _draw(reports, plot)


def _refuse_undrawable(plot: Path, cut: "StepRule") -> None:
    if not cut.has_steps:
        raise InputError("--plot: the plot needs steps; add --step-label or --every")
    refuse_picture(plot)


def _draw(reports: Sequence["DisagreementReport"], plot: Path) -> None:
    from jurygraph.studies.plots import draw_disagreement

    write_output_with(str(plot), lambda draft: draw_disagreement(reports, draft, plot.suffix))


def _read_run(folder: Path, cut: "StepRule", components: Sequence[str]) -> "Samples":
    from jurygraph.runs.run import Run
    from jurygraph.studies.disagreement import read_samples

    with closing(Run.open(folder)) as run, progress("reading", run.tasks_scored, "tasks") as report:
        return read_samples(run, cut, components, report)


def _print_omissions(reports: Sequence["DisagreementReport"]) -> None:
    for one in reports:
        for reason, count in one.left_out.items():
            print_message(f"{one.run}: omitted, {reason}: {count}")
        if one.split.tied_low:
            ties = (
                f"{one.split.tied_high} High-div and {one.split.tied_low} Low-div responses tie at D_pair "
                f"{one.split.cut:.4g}"
            )
            print_message(f"{one.run}: {ties}; ties are split by id")
        if one.split.empty:
            print_message(
                f"{one.run}: {one.split.empty} of {one.split.resamples} resamples had one side only and were omitted"
            )
    if len({one.components for one in reports}) > 1:
        print_message("the runs have different components; choose common ones with --components")


def _report_lines(reports: Sequence["DisagreementReport"]) -> Iterator[str]:
    yield from _comparison_table(reports)
    for report in reports:
        yield ""
        yield escape_line(
            f"{report.run}: {', '.join(report.components)}, of {report.samples} responses to {report.tasks} tasks"
        )
        yield ""
        yield from _split_table(report)
        yield ""
        yield from _correlation_table(report)
        if report.steps:
            yield ""
            yield from _step_table(report)
        if report.trends:
            yield ""
            yield from _trend_table(report)


def _comparison_table(reports: Sequence["DisagreementReport"]) -> list[str]:
    rows = [
        [one.run, one.samples, one.disagreement, one.threshold, one.conflicts, one.conflict_rate] for one in reports
    ]
    return format_table(
        ["run", "responses", "mean D_pair", f"τ ({reports[0].percentile:g}th pct)", "conflicts", "conflict rate"], rows
    )


def _split_table(report: "DisagreementReport") -> list[str]:
    split = report.split
    rows = [[row.name, row.high, row.low, _format_difference(row)] for row in split.rows]
    return format_table(["mean", f"High-div ({split.high})", f"Low-div ({split.low})", "difference (95 %)"], rows)


def _format_difference(row: "GroupDifference") -> str:
    if row.difference_low is None or row.difference_high is None:
        return format_number(row.difference)
    return (
        f"{format_number(row.difference)} ({format_number(row.difference_low)} to {format_number(row.difference_high)})"
    )


def _correlation_table(report: "DisagreementReport") -> list[str]:
    rows = [
        [f"{pair.first}, {pair.second}", pair.pearson, pair.spearman, pair.why or ""] for pair in report.correlations
    ]
    return format_table(["correlation", "Pearson", "Spearman", ""], rows)


def _step_table(report: "DisagreementReport") -> Iterator[str]:
    rows = [
        [f"{step.step:g}", step.samples, step.reward, step.disagreement, step.conflict_rate]
        for step in report.steps[:_MAX_STEPS]
    ]
    yield from format_table(["step", "responses", *_SERIES_TITLES.values()], rows)
    if len(report.steps) > _MAX_STEPS:
        yield f"... and {len(report.steps) - _MAX_STEPS} more (--json)"


def _trend_table(report: "DisagreementReport") -> list[str]:
    rows = [
        [
            _SERIES_TITLES[trend.name],
            trend.first,
            trend.last,
            f"{trend.slope:.2g}",
            trend.kendall,
            trend.p,
            trend.fluctuation,
        ]
        for trend in report.trends
    ]
    return format_table(["over steps", "first", "last", "slope", "Kendall τ-b", "p", "mean |change|"], rows)
