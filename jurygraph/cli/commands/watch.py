"""`jurygraph watch`: run the Data Analyzer over a run, also while it is being written."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.options import AsJson, PlotFile, RunFolder, StepLabel, option
from jurygraph.cli.render.text import escape_line, print_message, print_report
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.agents.data_analyzer import TrainingStep
    from jurygraph.studies.monitor import Wait, Watch

_DEFAULT_EVERY = 32
_POLL_SECONDS = 0.5


def watch(
    run: RunFolder,
    step_label: StepLabel = None,
    every: Annotated[
        int | None, option("N", "Group into steps of N tasks.", show_default=str(_DEFAULT_EVERY), min=1)
    ] = None,
    arl: Annotated[
        float, typer.Option(min=10, metavar="N", help="Mean number of steps between false alarms of all tests.")
    ] = 10_000.0,
    follow: Annotated[bool, typer.Option("--follow", help="Continue until the run is closed.")] = False,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Watch a run's rewards, and alert when they are being gamed.

    Mean reward, components, lengths and more are tested for drift and jumps at every step (MACRM's Data Analyzer); all
    tests together raise a false alarm about once in N steps (`--arl`). An alert is adverse if the change is bad: a
    falling reward, longer responses, more failures; rising accuracy is reported too, and is not adverse. A warning
    names series that depend on the step before, so that false alarms are more frequent. Alerts are printed when found,
    a table at the end. `--json` prints one line per alert, {"alert": ...}, and {"report": ...} last. Nothing is written
    except the plot, and the run is not locked. `--follow` waits for a run that does not exist yet, and follows an
    interrupted one until Ctrl-C.

    Exit codes: 0 no adverse alert; 1 an adverse alert; 2 invalid input, such as too few steps or no reward with a
    value; 130 interrupted.

    \b
    Example:
        jurygraph watch run --step-label step
        jurygraph watch run --every 16 --follow --plot watch.svg
    """
    from jurygraph.agents.data_analyzer import MIN_STEPS
    from jurygraph.cli.render.report import ReportOutput, report_lines

    if step_label is not None and every is not None:
        raise InputError("--step-label and --every both define a step; remove one")
    output = ReportOutput(plot=plot)
    wait = (lambda: time.sleep(_POLL_SECONDS)) if follow else None
    analysis = _create_watch(run, arl, wait, keep=plot is not None)
    completed = _feed_steps(analysis, _read_steps(run, step_label, every or _DEFAULT_EVERY, wait), json)
    if completed and analysis.analyzer.steps < MIN_STEPS:
        steps = f"{analysis.analyzer.steps} step{'' if analysis.analyzer.steps == 1 else 's'}"
        advice = "score more" if step_label is not None else "choose smaller steps with --every N"
        raise InputError(f"{run}: has {steps}; the tests need at least {MIN_STEPS}; {advice}")
    report = analysis.report()
    if completed and not any(row.series == "reward" and row.steps for row in report.figures["series"]):
        raise InputError(f"{run}: no reward has a value, so nothing was tested; see `jurygraph show`")
    lines = report_lines(report.sections)
    print_report(json, {"report": report.to_json()}, ["", *lines] if analysis.alerts else lines)
    output.draw(report.plots)
    if not completed:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if analysis.adverse:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _create_watch(run: Path, arl: float, wait: "Wait | None", keep: bool) -> "Watch":
    """Create a watch with the penalties of the run's config. Raises InputError if `arl` is too large."""
    from jurygraph.agents.data_analyzer import MAX_ARL, AnalyzerSettings
    from jurygraph.studies.monitor import Watch, penalty_components

    if not arl <= MAX_ARL:
        raise InputError(f"--arl: expected a number of steps from 10 to {MAX_ARL:g}, got {arl:g}")
    settings = AnalyzerSettings(arl=arl)
    try:
        run_penalties = penalty_components(run, wait)
    except KeyboardInterrupt:
        print_message("interrupted; the run does not exist yet")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return Watch(settings.model_copy(update={"penalties": settings.penalties | run_penalties}), keep=keep)


def _read_steps(run: Path, label: str | None, every: int, wait: "Wait | None") -> "Iterator[TrainingStep]":
    """Return the run's steps; at the end, print how many of its responses were erased."""
    from jurygraph.studies.monitor import Group, analyzer_steps, read_groups, steps_by_label, steps_by_number

    erased = 0

    def count_erased(stream: Iterator[Group]) -> Iterator[Group]:
        nonlocal erased
        for group in stream:
            erased += sum(response is None for _, response in group)
            yield group

    with closing(read_groups(run, wait)) as stream:
        groups = count_erased(stream)
        yield from analyzer_steps(steps_by_number(groups, every) if label is None else steps_by_label(groups, label))
    if erased:
        subject = "response was" if erased == 1 else "responses were"
        print_message(f"{erased} {subject} erased; their rewards are used, their lengths and labels are gone")


def _feed_steps(analysis: "Watch", steps: "Iterator[TrainingStep]", json: bool) -> bool:
    """Feed the steps and print their alerts and warnings; return False if the user interrupted."""
    warnings = 0
    try:
        for step in steps:
            for alert in analysis.feed(step):
                line = f"{'ADVERSE' if alert.adverse else 'change '}  {escape_line(alert.sentence)}"
                print_report(json, {"alert": alert.model_dump(mode="json")}, [line])
            for warning in analysis.analyzer.warnings[warnings:]:
                print_message(warning)
            warnings = len(analysis.analyzer.warnings)
    except KeyboardInterrupt:
        print_message("interrupted; these are the results so far")
        return False
    return True
