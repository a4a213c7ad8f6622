"""`jurygraph watch`: run the Data Analyzer over a run, also while it is being written."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.options import AsJson, PlotFile, RunFolder
from jurygraph.cli.render.text import escape_line, format_number, format_table, print_json, print_message, print_result

if TYPE_CHECKING:
    from jurygraph.agents.data_analyzer import SeriesSummary, Step
    from jurygraph.studies.monitor import Watch, WatchReport
    from jurygraph.studies.monitor.run_steps import Wait

_DEFAULT_EVERY, _POLL_SECONDS = 32, 0.5
_STATISTICS = ("mean", "sd", "least", "most", "last")


def watch(
    run: RunFolder,
    step_label: Annotated[
        str | None,
        typer.Option(metavar="L", help="Cut into steps by this label of the responses.", show_default=False),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Cut into steps of N tasks.", show_default=str(_DEFAULT_EVERY)),
    ] = None,
    arl: Annotated[
        float, typer.Option(min=10, metavar="N", help="Steps between false alarms, on average, of all tests together.")
    ] = 10_000.0,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run is closed.")] = False,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Watch a run's rewards, and tell when they are being gamed.

    Step by step, mean reward, components, lengths and more are followed by tests for drift and jumps (MACRM's Data
    Analyzer), which together raise a false alarm once in N steps (`--arl`). An alert is adverse where the change is
    bad: a falling reward, longer responses, more failures; accuracy that rises is told, too, and is not. Alerts come as
    they are found, a table at the end. `--json` prints each alert as a line of its own, {"alert": ...}, and {"report":
    ...} last. Nothing is written but the picture, and the run is not locked. With `--follow` a run that is not there
    yet is waited for, and one that was stopped is followed, until Ctrl-C.

    Exit codes: 0 no adverse alert; 1 an adverse alert; 2 wrong input, such as too few steps or no reward that has a
    value; 130 interrupted.

    \b
    Example:
        jurygraph watch run --step-label step
        jurygraph watch run --every 16 --follow --plot watch.svg
    """
    from jurygraph.cli.output_files import refuse_picture, write_output_with
    from jurygraph.errors import InputError
    from jurygraph.studies.monitor.picture import draw

    if step_label is not None and every is not None:
        raise InputError("--step-label and --every both say what a step is; give one of them")
    refuse_picture(plot)
    wait = (lambda: time.sleep(_POLL_SECONDS)) if follow else None
    analysis = _create_watch(run, arl, wait, keep=plot is not None)
    completed = _feed_steps(analysis, _read_steps(run, step_label, every or _DEFAULT_EVERY, wait), json)
    if completed:
        _refuse_untested(run, analysis, step_label)
    report = analysis.report()
    _print_report(report, json)
    if plot is not None and report.steps:
        write_output_with(str(plot), lambda draft: draw(report, analysis.history, draft, plot.suffix))
    if not completed:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if report.adverse:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _create_watch(run: Path, arl: float, wait: "Wait | None", keep: bool) -> "Watch":
    """Create a watch with the penalties of the run's config. Raises InputError if `arl` is too large."""
    from jurygraph.agents.data_analyzer import MAX_ARL, Settings
    from jurygraph.errors import InputError
    from jurygraph.studies.monitor import Watch
    from jurygraph.studies.monitor.run_steps import penalty_components

    if not arl <= MAX_ARL:
        raise InputError(f"--arl: is {arl:g}; give a number of steps from 10 to {MAX_ARL:g}")
    settings = Settings(arl=arl)
    try:
        run_penalties = penalty_components(run, wait)
    except KeyboardInterrupt:
        print_message("interrupted; no run had come until then")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return Watch(settings.model_copy(update={"penalties": settings.penalties | run_penalties}), keep=keep)


def _read_steps(run: Path, label: str | None, every: int, wait: "Wait | None") -> "Iterator[Step]":
    """Return the run's steps; at the end, print how many of its responses were erased."""
    from jurygraph.studies.monitor.run_steps import (
        ErasedCounter,
        analyzer_steps,
        read_groups,
        steps_by_label,
        steps_by_number,
    )

    erased = ErasedCounter()
    stream = erased.count(read_groups(run, wait))
    yield from analyzer_steps(steps_by_number(stream, every) if label is None else steps_by_label(stream, label))
    if erased.erased:
        subject = "response was" if erased.erased == 1 else "responses were"
        print_message(f"{erased.erased} {subject} erased; their rewards are watched, their lengths and labels are gone")


def _feed_steps(analysis: "Watch", steps: "Iterator[Step]", json: bool) -> bool:
    """Feed the steps and print their alerts; return False if the user interrupted."""
    try:
        for step in steps:
            for alert in analysis.feed(step):
                if json:
                    print_json({"alert": alert.model_dump(mode="json")})
                else:
                    print_result(f"{'ADVERSE' if alert.adverse else 'change '}  {escape_line(alert.sentence)}")
    except KeyboardInterrupt:
        print_message("interrupted; this is what was seen until then")
        return False
    return True


def _refuse_untested(run: Path, analysis: "Watch", label: str | None) -> None:
    from jurygraph.errors import InputError

    if not analysis.has_enough_steps:
        raise InputError(_describe_too_few(run, analysis, label))
    if not analysis.has_reward:
        raise InputError(f"{run}: its reward never had a value, so that nothing was tested; `jurygraph show` says why")


def _describe_too_few(run: Path, analysis: "Watch", label: str | None) -> str:
    from jurygraph.agents.data_analyzer import MIN_STEPS

    count = analysis.analyzer.steps
    steps = f"{count} step{'' if count == 1 else 's'}"
    problem = f"{run}: has {steps}, and at least {MIN_STEPS} are needed to test anything"
    return f"{problem}; " + ("score more of them" if label is not None else "make steps smaller with --every N")


def _print_report(report: "WatchReport", json: bool) -> None:
    if json:
        print_json({"report": report.model_dump(mode="json")})
        return
    if report.alerts:
        print_result("")
    for line in format_table(
        ["series", "steps", *_STATISTICS, "trend a step"], [_series_row(series) for series in report.series]
    ):
        print_result(line)
    bad, alerts = len(report.adverse), len(report.alerts)
    print_result(
        f"{report.steps} steps; {alerts} alerts, {bad} adverse; a false alarm is expected every {report.arl:g} steps"
    )


def _series_row(series: "SeriesSummary") -> list[str]:
    trend = "-" if series.trend is None else f"{series.trend:+.2g}"
    return [series.series, str(series.steps), *(format_number(getattr(series, name)) for name in _STATISTICS), trend]
