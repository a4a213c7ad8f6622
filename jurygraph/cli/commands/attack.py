"""`jurygraph attack`: measure a judge under attack, with and without its defences; thresholds can fail a build."""

import asyncio
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import typer

from jurygraph.cli.interrupts import exit_on_interrupt, run_interruptible
from jurygraph.cli.jury_loading import open_jury
from jurygraph.cli.options import (
    AllowFilesOutsideOption,
    DryRunOption,
    GateConditionsOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    option,
)
from jurygraph.cli.render import summary
from jurygraph.cli.render.report import ReportOutputOptions, make_report_command
from jurygraph.cli.render.text import command_line, format_table, print_message, progress
from jurygraph.cli.streams import ExitCode, redirect_stdout_to_stderr
from jurygraph.concurrency import DaemonThreads
from jurygraph.display import ProgressCallback
from jurygraph.errors import RUN_ENDING, InputError
from jurygraph.runs.recorder import build_run_header
from jurygraph.runs.reports.bill import count_requests
from jurygraph.runs.reports.gate import parse_ci_thresholds
from jurygraph.runs.run import Run
from jurygraph.safety.attacks import AttackSuite, load_attack_tasks, load_attacks
from jurygraph.sources.files import explain_full_temp_disk
from jurygraph.sources.task_tables import chat_file_columns, folder_of_tasks_file
from jurygraph.sources.tasks import TaskAndResponses, TaskLinesFile, read_tasks
from jurygraph.studies.attack import THRESHOLD_FIGURE_NAMES, AttackStudy, figures_by_threshold_name
from jurygraph.studies.presentations import TasksWithResponses
from jurygraph.studies.report import Report

_HINT_OF_LESS = "for less: --sample N tasks, --only configured for the defences of the config alone"


@partial(make_report_command, title="Attacks")
def attack(
    config: Annotated[Path, option("F", "Config.")] = Path("jury.yaml"),
    suite: Annotated[Literal["all", AttackSuite], option(None, "Suite of attacks.")] = "all",
    model: ModelNameOption = None,
    tasks: Annotated[
        str | None, option("TASKS", "JSONL file of tasks, .gz too, instead of the built-in ones.")
    ] = None,
    run: Annotated[
        Path | None, option("RUN", "Run whose tasks and responses are used, with its rubrics.")
    ] = None,
    sample: Annotated[int | None, option("N", "Attack N tasks, drawn by chance.", min=1)] = None,
    seed: Annotated[int, option("S", "Seed of --sample.", min=0)] = 0,
    only: Annotated[
        Literal["configured"] | None, option(None, "Measure the config's own defences alone.")
    ] = None,
    gate: GateConditionsOption = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    allow_files_outside: AllowFilesOutsideOption = False,
    *,
    output: ReportOutputOptions,
) -> None:
    """Attack the config's judge, and measure its false positives.

    They are measured with each defence alone, with all and with none. An attack is a response that does nothing of what
    the task requires, or copies its reference: a model's verdict that passes it (status ok, score 0.5 or more, for
    something good) is a false positive. Honest responses are judged too, because a defence that stops everything is
    useless; those of TASKS are used as they are. What these tasks lack is in the config's `task_defaults`. Without
    TASKS or RUN, built-in tasks are judged by their own rubrics, not the config's. Every share
    has a 95 % interval over tasks, none with one task.

    --gate takes conditions NAME OP NUMBER, joined by `,` or `and`, on the statistics with the config's own defences:
    rate, low and high of false positives among verdicts, hits, n, n_eff and tasks; the same by response
    (responses_rate, …) and of honest verdicts that passed (honest_rate, …). A statistic that is missing fails.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid config or input; 3 inconclusive: too many failures
    of infrastructure; 4 --max-cost or --max-calls reached; 130 interrupted.

    \b
    Example:
        jurygraph attack --config jury.yaml --dry-run
        jurygraph attack --config jury.yaml --suite injection --gate "rate<=0.02, honest_rate>=0.9"
        jurygraph attack --config jury.yaml --run run --only configured --sample 20
    """
    if run is not None and tasks is not None:
        raise InputError("expected one of --tasks TASKS and --run RUN")
    thresholds = parse_ci_thresholds(
        gate, THRESHOLD_FIGURE_NAMES, '"rate<=0.01" or "rate<=0.02, honest_rate>=0.9"'
    )
    with (
        redirect_stdout_to_stderr(),
        open_jury(config, model, dry_run, max_cost=max_cost, max_calls=max_calls) as jury,
    ):
        attacked_tasks: TasksWithResponses
        if run is not None:
            attacked_tasks = _read_tasks_of_run(run)
            source = f"tasks of {run} with its rubrics"
        elif tasks is not None:
            source = f"tasks of {tasks}"
            defaults = jury.config.task_defaults
            attacked_tasks = [
                (defaults.complete(task), responses)
                for task, responses in _read_tasks(tasks, allow_files_outside)
            ]
        else:
            attacked_tasks = load_attack_tasks()
            source = "built-in tasks with their own rubrics, not this config's"
        task_count = len(attacked_tasks)
        if sample and sample < task_count:
            attacked_tasks = Random(seed).sample(attacked_tasks, sample)
            source += f": {sample} of {task_count}, drawn by --seed {seed}"
        study = AttackStudy(jury, attacked_tasks, load_attacks(suite), only is not None)
        activity_label = "estimating" if dry_run else "attacking"
        threads = jury.context.threads
        responses = study.estimated_responses if dry_run else study.responses
        total = len(study.arms) * responses
        with asyncio.Runner() as runner, progress(activity_label, total, "responses") as advance:
            if dry_run:
                estimate = run_interruptible(runner, study.forecast(advance), threads)
            else:
                report = _run_study(study, runner, threads, advance)
        judge = build_run_header(jury, Path())
        requests = count_requests(jury)
    if dry_run:
        counts = {
            "arms": len(study.arms),
            "responses": study.responses,
            "estimated": responses,
        }
        lines = [f"judged: {source}", *format_table(["to judge", ""], list(counts.items()))]
        lines += [*summary.format_estimate_lines(estimate), _HINT_OF_LESS]
        summary.print_dry_run(output.json, {**counts, "model": estimate.to_json()}, lines)
        return
    report.figures = {
        **report.figures,
        "suite": suite,
        "source": source,
        "command": command_line.get(),
        "judge": judge.model_dump(mode="json"),
        "requests": requests and requests.to_json(),
    }
    report.sections = [
        f"judged: {source}",
        *report.sections,
        *summary.format_request_lines(requests),
    ]
    output.write(report)
    figures = figures_by_threshold_name(report)
    has_missed_conditions = summary.print_missed_conditions(thresholds, figures)
    max_error_rate = jury.config.failure.max_error_rate
    raise typer.Exit(_choose_exit_code(report, max_error_rate, has_missed_conditions))


def _run_study(
    study: AttackStudy, runner: asyncio.Runner, threads: DaemonThreads, advance: ProgressCallback
) -> Report:
    advice = "run the same command again: it continues from the cache"
    try:
        with exit_on_interrupt(f"interrupted; {advice}"):
            return run_interruptible(runner, study.run(advance), threads)
    except RUN_ENDING as error:
        raise type(error)(f"{error}; {advice}") from None


def _read_tasks(path: str, allow_files_outside: bool) -> list[TaskAndResponses]:
    """Return the tasks of a file with their responses. Responses are optional, and are treated as honest ones.

    Raises InputError for a file without a task, and for a task that occurs twice: intervals would count it as two.
    """
    if chat_file_columns(path) is not None:  # where each ends with a response
        return read_tasks(path, allow_files_outside=allow_files_outside)
    folder = None if allow_files_outside else folder_of_tasks_file(path)
    with explain_full_temp_disk(), TaskLinesFile(path, folder=folder) as file:
        return [task.split() for task in file]


def _read_tasks_of_run(folder: Path) -> list[TaskAndResponses]:
    """Return the tasks of a run with their responses, which count as honest ones; what was erased is left out."""
    by_id: dict[str, TaskAndResponses] = {}
    with Run.open(folder) as run:
        for group in run.group_records():
            task = run.task_with_planning_results(group.key)
            responses = [item.response for item in run.group(group) if item.response is not None]
            if task is not None:
                by_id[task.id] = task, tuple(responses)
    return list(by_id.values())


def _choose_exit_code(
    report: Report, max_error_rate: float, has_missed_conditions: bool
) -> ExitCode:
    error_rate = report.figures["error_rate"]
    if error_rate > max_error_rate:
        summary.print_inconclusive_run(error_rate, max_error_rate)
        for kind, count in report.figures["lost"].items():
            print_message(f"failed verdicts: {count} of kind {kind}")
        return ExitCode.INCONCLUSIVE
    return ExitCode.SOME_FAILED if has_missed_conditions else ExitCode.SUCCESS
