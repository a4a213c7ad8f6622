"""`jurygraph study disagreement`: where the components of a reward pull apart, in one run or several side by side."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.options import AsJson, PlotFile, Resamples
from jurygraph.cli.text import number, out, out_json, say, table, visible

if TYPE_CHECKING:
    from jurygraph.studies.disagreement import DisagreementReport, Samples
    from jurygraph.studies.disagreement.findings import Contrast
    from jurygraph.studies.stepwise import Cut

_STEPS = 30
_SERIES = {"reward": "mean reward", "disagreement": "mean D_pair", "conflict_rate": "conflict rate"}


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
        typer.Option(metavar="L", help="Cut into steps by this label of the responses.", show_default=False),
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cut into steps of N tasks.", show_default=False)
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

    Each run has a threshold of its own. D_pair is the mean absolute difference of two components of one response. Above
    the run's 80th percentile of it a response is a conflict; the 20 % with the greatest D_pair, by count, are compared
    with the rest. With steps, the mean reward, the mean D_pair and the conflict rate are followed over them. Nothing is
    asked, and nothing written but the picture. `--json` prints every figure.

    Exit codes: 0 done; 2 wrong input, such as a run with fewer than two components.

    \b
    Example:
        jurygraph study disagreement run
        jurygraph study disagreement macrm multi-head --step-label step --plot disagreement.svg
    """
    from jurygraph.studies.disagreement import report
    from jurygraph.studies.stepwise import Cut

    cut = Cut(step_label, every)
    if plot is not None:
        _refuse_undrawable(plot, cut)
    named = tuple(name.strip() for name in components.split(",")) if components is not None else ()
    found = [report(_read(run, cut, named), percentile, resamples, seed) for run in runs]
    if json:
        out_json({"runs": [one.model_dump(mode="json") for one in found]})
    else:
        for line in _lines(found):
            out(line)
    _say_what_is_missing(found)
    if plot is not None:
        _draw(found, plot)


def _refuse_undrawable(plot: Path, cut: "Cut") -> None:
    from jurygraph.cli.delivery import refuse_picture
    from jurygraph.errors import InputError

    if not cut.cuts:
        raise InputError("--plot: the picture is over steps; cut the run with --step-label or --every")
    refuse_picture(plot)


def _draw(found: Sequence["DisagreementReport"], plot: Path) -> None:
    from jurygraph.cli.delivery import deliver_file
    from jurygraph.studies.disagreement.picture import draw

    deliver_file(str(plot), lambda draft: draw(found, draft, plot.suffix))


def _read(folder: Path, cut: "Cut", components: Sequence[str]) -> "Samples":
    from jurygraph.cli.progress import progress
    from jurygraph.runs.run import Run
    from jurygraph.studies.disagreement import read_samples

    with closing(Run.open(folder)) as run, progress("reading", run.tasks_scored, "tasks") as report:
        return read_samples(run, cut, components, report)


def _say_what_is_missing(found: Sequence["DisagreementReport"]) -> None:
    for one in found:
        for reason, count in one.left_out.items():
            say(f"{one.run}: left out, {reason}: {count}")
        if one.split.tied_low:
            tied = (
                f"{one.split.tied_high} of High-div and {one.split.tied_low} of Low-div have D_pair {one.split.cut:.4g}"
            )
            say(f"{one.run}: {tied}; the ids decide between them")
        if one.split.empty:
            say(
                f"{one.run}: {one.split.empty} of {one.split.resamples} resamples held one side alone, and are left out"
            )
    if len({one.components for one in found}) > 1:
        say("the runs are compared by different components; name those of all with --components")


def _lines(found: Sequence["DisagreementReport"]) -> Iterator[str]:
    yield from _side_by_side(found)
    for one in found:
        yield ""
        yield visible(f"{one.run}: {', '.join(one.components)}, of {one.samples} responses to {one.tasks} tasks")
        yield ""
        yield from _split(one)
        yield ""
        yield from _correlations(one)
        if one.steps:
            yield ""
            yield from _steps(one)
        if one.trends:
            yield ""
            yield from _trends(one)


def _side_by_side(found: Sequence["DisagreementReport"]) -> list[str]:
    rows = [
        [
            one.run,
            str(one.samples),
            number(one.disagreement),
            number(one.threshold),
            str(one.conflicts),
            number(one.conflict_rate),
        ]
        for one in found
    ]
    return table(
        ["run", "responses", "mean D_pair", f"τ ({found[0].percentile:g}th pct)", "conflicts", "conflict rate"], rows
    )


def _split(one: "DisagreementReport") -> list[str]:
    split = one.split
    rows = [[row.name, number(row.high), number(row.low), _difference(row)] for row in split.rows]
    return table(["mean", f"High-div ({split.high})", f"Low-div ({split.low})", "difference (95 %)"], rows)


def _difference(row: "Contrast") -> str:
    if row.difference_low is None or row.difference_high is None:
        return number(row.difference)
    return f"{number(row.difference)} ({number(row.difference_low)} to {number(row.difference_high)})"


def _correlations(one: "DisagreementReport") -> list[str]:
    rows = [
        [f"{each.first}, {each.second}", number(each.pearson), number(each.spearman), each.why or ""]
        for each in one.correlations
    ]
    return table(["correlation", "Pearson", "Spearman", ""], rows)


def _steps(one: "DisagreementReport") -> Iterator[str]:
    rows = [
        [
            f"{each.step:g}",
            str(each.samples),
            number(each.reward),
            number(each.disagreement),
            number(each.conflict_rate),
        ]
        for each in one.steps[:_STEPS]
    ]
    yield from table(["step", "responses", *_SERIES.values()], rows)
    if len(one.steps) > _STEPS:
        yield f"... and {len(one.steps) - _STEPS} more (--json)"


def _trends(one: "DisagreementReport") -> list[str]:
    rows = [
        [
            _SERIES[each.name],
            number(each.first),
            number(each.last),
            f"{each.slope:.2g}",
            number(each.kendall),
            number(each.p),
            number(each.fluctuation),
        ]
        for each in one.trends
    ]
    return table(["over steps", "first", "last", "slope", "Kendall τ-b", "p", "mean |change|"], rows)
