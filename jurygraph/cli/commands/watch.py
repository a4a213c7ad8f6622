"""`jurygraph watch`: run the Data Analyzer over a run, also while it is being written."""

import time
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jurygraph.cli.options import (
    HtmlFileOption,
    JsonOption,
    PlotFileOption,
    RunFolderArgument,
    StepLabelOption,
    option,
)
from jurygraph.cli.render.text import escape_line, print_message, print_messages, print_report
from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError
from jurygraph.messages import shell_quote

if TYPE_CHECKING:
    from pathlib import Path

    from jurygraph.agents.data_analyzer import Alert, StepName
    from jurygraph.studies.report import Report

_POLL_SECONDS = 0.5
_ADVERSE_ALERT_MARK = "ADVERSE"


def watch(
    run: RunFolderArgument,
    step_label: StepLabelOption = None,
    every: Annotated[
        int | None,
        option("N", "Group into steps of N tasks.", show_default="the label step, else 32", min=1),
    ] = None,
    sessions: Annotated[
        Literal["all", "last"],
        option(None, "Of a training that was started again: all of it, or the last start alone."),
    ] = "all",
    arl: Annotated[
        float,
        typer.Option(
            min=10, metavar="N", help="Mean number of steps between false alarms of all tests."
        ),
    ] = 10_000.0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue until the run is closed.")
    ] = False,
    plot: PlotFileOption = None,
    html: HtmlFileOption = None,
    json: JsonOption = False,
) -> None:
    """Watch a run's rewards, and alert when they are being gamed.

    Mean reward, components, lengths and more are tested for changes at every step (MACRM's Data Analyzer); all tests
    together raise a false alarm about once in N steps (`--arl`). An alert is adverse if the change is bad: a falling
    reward, longer responses, more failures; rising accuracy is reported too, and is not adverse. A note names series
    that depend on the step before, so that false alarms are more frequent. Alerts are printed when found, a table and
    whether this looks like a hack at the end. The steps of a recorded training are those of all ranks, in their order.
    `--json` prints one line per alert, {"alert": ...}, and {"report": ...} last. Nothing is written except the plot and
    the page, and the run is not locked. `--follow` follows an interrupted run until Ctrl-C.

    Exit codes: 0 no adverse alert; 1 one, or most rewards of the last step failed or lack a verdict; 2 invalid input,
    such as too few steps or no reward with a value; 130 interrupted.

    \b
    Example:
        jurygraph watch run --step-label step
        jurygraph watch run --every 16 --follow --plot watch.svg
    """
    from jurygraph.agents.data_analyzer import Analyzer
    from jurygraph.cli.render.report import ReportOutputOptions, format_report_lines
    from jurygraph.studies import monitor

    if step_label is not None and every is not None:
        raise InputError("--step-label and --every both define a step; remove one")
    output = ReportOutputOptions(plot=plot, html=html, title="Rewards over training")
    wait_for_records = (lambda: time.sleep(_POLL_SECONDS)) if follow else None
    component_weights = monitor.read_component_weights(run)
    penalty_names = {name for name, weight in component_weights.items() if weight < 0}
    analyzer = Analyzer(arl, {"repetition", *penalty_names})
    steps, notes = monitor.read_steps(run, step_label, every, wait_for_records, sessions == "last")
    try:
        with closing(steps):
            training_steps = monitor.iter_training_steps(steps, component_weights)
            alerts = map(analyzer.observe, training_steps)
            for alert in chain.from_iterable(alerts):
                line = f"{_choose_alert_label(alert):{len(_ADVERSE_ALERT_MARK)}}  {escape_line(alert.sentence)}"
                print_report(json, {"alert": alert.model_dump(mode="json")}, [line])
        is_monitoring_complete = True
    except KeyboardInterrupt:
        print_message("interrupted; these are the results so far")
        is_monitoring_complete = False
    report = monitor.report(analyzer)
    report.notes = [*notes, *report.notes]
    print_messages(report.notes)
    hacked_steps = [alert.step for alert in analyzer.alerts if alert.kind == "hack"]
    if hacked_steps and not every:
        _print_next_command(run, step_label, hacked_steps[0])
    if is_monitoring_complete:
        _refuse_run_without_reward(run, report)
    outages = report.figures["outages"]
    lines = list(format_report_lines(report.sections))
    if analyzer.alerts or outages:
        lines.insert(0, "")
    lines[:0] = [f"{_ADVERSE_ALERT_MARK}  {escape_line(outage)}" for outage in outages]
    *tables, summary, answer = report.sections
    alert_sentences = [
        f"{_choose_alert_label(alert)}: {alert.sentence}" for alert in analyzer.alerts
    ]
    alert_sentences += [f"{_ADVERSE_ALERT_MARK}: {outage}" for outage in outages]
    output.write_report_files(
        replace(report, sections=[answer, summary, *alert_sentences, *tables])
    )
    print_report(json, {"report": report.to_json()}, lines)
    if not is_monitoring_complete:
        raise typer.Exit(ExitCode.INTERRUPTED)
    _refuse_few_steps(run, report, can_choose_steps=step_label is None and every != 1)
    if outages or any(alert.adverse for alert in analyzer.alerts):
        raise typer.Exit(ExitCode.SOME_FAILED)


def _choose_alert_label(alert: "Alert") -> str:
    return _ADVERSE_ALERT_MARK if alert.adverse else "change"


def _print_next_command(run: "Path", step_label: str | None, hacked_step: "StepName") -> None:
    """Print how to see what was rewarded in a step, where steps are those of a label."""
    from jurygraph.studies import monitor

    if step_label or monitor.has_training_steps(run, None):
        label = shell_quote(f"{step_label or 'step'}={hacked_step}")
        print_message(
            f"what was rewarded in that step:  jurygraph explain {shell_quote(run)} --label {label}"
        )


def _refuse_few_steps(run: "Path", report: "Report", can_choose_steps: bool) -> None:
    from jurygraph.agents.data_analyzer import FIRST_TESTED_STEP

    steps = report.figures["steps"]
    if steps < FIRST_TESTED_STEP:
        advice = "choose smaller steps with --every N" if can_choose_steps else "score more"
        raise InputError(
            f"{run}: steps: {steps}; the tests need at least {FIRST_TESTED_STEP}; {advice}"
        )


def _refuse_run_without_reward(run: "Path", report: "Report") -> None:
    tested_series = [row["series"] for row in report.figures["series"] if row["steps"]]
    if report.figures["steps"] and "reward" not in tested_series:
        raise InputError(
            f"{run}: no reward has a value, so nothing was tested; see `jurygraph show`"
        )
