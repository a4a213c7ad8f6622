"""`jurygraph watch`: the Data Analyzer over a run, also while it is written."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.options import AsJson, PlotFile, RunFolder
from jurygraph.cli.text import number, out, out_json, say, table, visible

if TYPE_CHECKING:
    from jurygraph.agents.data_analyzer import SeriesSummary, Step
    from jurygraph.studies.monitor import Watch, WatchReport
    from jurygraph.studies.monitor.stored import Wait

_EVERY, _PAUSE = 32, 0.5
_FIGURES = ("mean", "sd", "least", "most", "last")


def watch(
    run: RunFolder,
    step_label: Annotated[
        str | None, typer.Option(metavar="L", help="Cut into steps by this label of the responses.", show_default=False)
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cut into steps of N tasks.", show_default=str(_EVERY))
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
    from jurygraph.cli.delivery import deliver_file, refuse_picture
    from jurygraph.errors import InputError
    from jurygraph.studies.monitor.picture import draw

    if step_label is not None and every is not None:
        raise InputError("--step-label and --every both say what a step is; give one of them")
    refuse_picture(plot)
    wait = (lambda: time.sleep(_PAUSE)) if follow else None
    watching = _begun(run, arl, wait, keep=plot is not None)
    whole = _followed(watching, _steps(run, step_label, every or _EVERY, wait), json)
    if whole:
        _refuse_untested(run, watching, step_label)
    report = watching.report()
    _tell(report, json)
    if plot is not None and report.steps:
        deliver_file(str(plot), lambda draft: draw(report, watching.history, draft, plot.suffix))
    if not whole:
        raise typer.Exit(Exit.INTERRUPTED)
    if report.adverse:
        raise typer.Exit(Exit.SOME_FAILED)


def _begun(run: Path, arl: float, wait: "Wait | None", keep: bool) -> "Watch":
    """A watch by the run's config."""
    from jurygraph.agents.data_analyzer import MOST_ARL, Settings
    from jurygraph.errors import InputError
    from jurygraph.studies.monitor import Watch
    from jurygraph.studies.monitor.stored import penalties

    if not arl <= MOST_ARL:
        raise InputError(f"--arl: is {arl:g}; give a number of steps from 10 to {MOST_ARL:g}")
    known = Settings(arl=arl)
    try:
        found = penalties(run, wait)
    except KeyboardInterrupt:
        say("interrupted; no run had come until then")
        raise typer.Exit(Exit.INTERRUPTED) from None
    return Watch(known.model_copy(update={"penalties": known.penalties | found}), keep=keep)


def _steps(run: Path, label: str | None, every: int, wait: "Wait | None") -> "Iterator[Step]":
    """The run's steps; once they came to their end, how many responses were erased is said."""
    from jurygraph.studies.monitor.stored import Erased, by_label, by_number, groups, steps

    erased = Erased()
    stream = erased.counted(groups(run, wait))
    yield from steps(by_number(stream, every) if label is None else by_label(stream, label))
    if erased.count:
        were = "response was" if erased.count == 1 else "responses were"
        say(f"{erased.count} {were} erased; their rewards are watched, their lengths and labels are gone")


def _followed(watching: "Watch", steps: "Iterator[Step]", json: bool) -> bool:
    """Feed the steps and print what they tell; whether they came to their end."""
    try:
        for step in steps:
            for alert in watching.feed(step):
                if json:
                    out_json({"alert": alert.model_dump(mode="json")})
                else:
                    out(f"{'ADVERSE' if alert.adverse else 'change '}  {visible(alert.sentence)}")
    except KeyboardInterrupt:
        say("interrupted; this is what was seen until then")
        return False
    return True


def _refuse_untested(run: Path, watching: "Watch", label: str | None) -> None:
    from jurygraph.errors import InputError

    if not watching.enough:
        raise InputError(_too_few(run, watching, label))
    if not watching.rewarded:
        raise InputError(f"{run}: its reward never had a value, so that nothing was tested; `jurygraph show` says why")


def _too_few(run: Path, watching: "Watch", label: str | None) -> str:
    from jurygraph.agents.data_analyzer import LEAST_STEPS

    seen = watching.analyzer.steps
    steps = f"{seen} step{'' if seen == 1 else 's'}"
    there = f"{run}: has {steps}, and at least {LEAST_STEPS} are needed to test anything"
    return f"{there}; " + ("score more of them" if label is not None else "make steps smaller with --every N")


def _tell(report: "WatchReport", json: bool) -> None:
    if json:
        out_json({"report": report.model_dump(mode="json")})
        return
    if report.alerts:
        out("")
    for line in table(["series", "steps", *_FIGURES, "trend a step"], [_row(one) for one in report.series]):
        out(line)
    bad, all_ = len(report.adverse), len(report.alerts)
    out(f"{report.steps} steps; {all_} alerts, {bad} adverse; a false alarm is expected every {report.arl:g} steps")


def _row(one: "SeriesSummary") -> list[str]:
    trend = "-" if one.trend is None else f"{one.trend:+.2g}"
    return [one.series, str(one.steps), *(number(getattr(one, name)) for name in _FIGURES), trend]
