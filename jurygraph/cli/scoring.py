"""Score responses into runs: the work of `jurygraph score`, and of every study that scores tasks of its own."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple

import typer

from jurygraph.cli.interrupts import open_runner, run_interruptible
from jurygraph.cli.jury_loading import collect_jury_notes, find_config, open_jury
from jurygraph.cli.options import format_column_arguments
from jurygraph.cli.output_files import write_output
from jurygraph.cli.render.summary import format_request_lines, print_dry_run, print_inconclusive_run
from jurygraph.cli.render.text import format_table, print_message, print_messages, progress
from jurygraph.cli.streams import ExitCode, redirect_stdout_to_stderr
from jurygraph.errors import InputError
from jurygraph.messages import quote, shell_quote

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.models.gateway import Gateways
    from jurygraph.runs.reports.bill import CallCosts
    from jurygraph.runs.reports.estimate import RemainingWork
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.runs.workflows.planning import PlanNotes
    from jurygraph.runs.workflows.stored_work import StoredJobProgress
    from jurygraph.runs.workflows.task_file_job import TaskFileJob
    from jurygraph.schema import Config
    from jurygraph.sources import Shard, TableColumns


_MIN_PACE_MINUTES = 0.25
"""Time from which on requests a minute are more than chance."""


def resolve_folder_name(folder: Path) -> Path:
    """Return a folder by a path that ends in its name, as `.` and `..` do not."""
    return folder if folder.name not in ("", "..") else folder.resolve()


_FIELDS_WITHOUT_OPTION = {"tasks", "columns", "dry_run", "revise"}
"""Fields of `ScoreOptions` that a command does not repeat as one option."""
_OPTION_BY_FIELD = {"settings": "--set", "run": "--out"}
"""Options that are not called like their fields."""


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The arguments and options of one `jurygraph score`, as typed; `revise` is how a study changes the config."""

    tasks: str
    columns: "TableColumns | None" = None
    config: Path | None = None
    settings: Sequence[str] = ()
    responses: str | None = None
    profiles_from: str | None = None
    edges_from: str | None = None
    model: str | None = None
    limit: int | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    branch: Path | None = None
    shard: "Shard | None" = None
    processes: int | None = None
    engine: Literal["ray"] | None = None
    address: str | None = None
    shards: int | None = None
    run: Path
    rewards_from: Sequence[Path] = ()
    allow_files_outside: bool = False
    dry_run: bool = False
    revise: "Callable[[Config], Config] | None" = None

    @cached_property
    def retry_command(self) -> str:
        """Return the command that scores into a new run, and carries over from this one all that did not fail."""
        return self._format_command_into_new_run(self.run)

    @property
    def fresh_command(self) -> str:
        """Return the command that scores into a new run, and carries over only the usable replies in the cache."""
        return self._format_command_into_new_run(None)

    def format_rescore_command(self, setting: str) -> str:
        """Return the command that decides this run anew with another setting, without a request."""
        words = map(shell_quote, (self.run, "--out", self._unused_folder, "--set", setting))
        return " ".join(["jurygraph rescore", *words])

    @property
    def _unused_folder(self) -> Path:
        run = resolve_folder_name(self.run)
        candidate_run_folders = (run.with_name(f"{run.name}-{number}") for number in count(2))
        return next(folder for folder in candidate_run_folders if not folder.exists())

    def _format_command_into_new_run(self, branch: Path | None) -> str:
        arguments = replace(self, branch=branch, run=self._unused_folder).arguments
        return " ".join(["jurygraph score", *map(shell_quote, arguments)])

    @property
    def arguments(self) -> list[str]:
        """The words after `jurygraph score`."""
        words = [self.tasks, *format_column_arguments(self.columns)]
        for field in fields(self):
            if field.name not in _FIELDS_WITHOUT_OPTION:
                option = _OPTION_BY_FIELD.get(field.name, f"--{field.name.replace('_', '-')}")
                words += _option_to_arguments(option, getattr(self, field.name))
        return words


def _option_to_arguments(option: str, value: object) -> Iterator[str]:
    """Yield the words of an option with its value, once for each value of a list; none if it is not given."""
    if value is True:
        yield option
    elif isinstance(value, list | tuple):
        for item in value:
            yield from (option, str(item))
    elif value is not None and value is not False:
        yield from (option, str(value))


class OpenedJob(NamedTuple):
    """A job with what its folder holds of it."""

    job: "TaskFileJob"
    stored_work: "StoredJobProgress"

    def summarize(self) -> "Summary":
        """Return the summary of all that is scored."""
        from jurygraph.runs.workflows.totals import summarize_run

        assert self.stored_work.run is not None, "it is scored after its tasks are planned"
        return summarize_run(self.job.jury, self.stored_work.run)


@contextmanager
def open_scoring_jury(
    options: ScoreOptions, printed_notes: set[str] | None = None
) -> "Iterator[Jury]":
    """Open the jury, and print the notes of its evaluators; `printed_notes` are not repeated, and others added."""
    printed_notes = set() if printed_notes is None else printed_notes
    path = options.config or find_config(options.tasks)
    revise = options.revise
    if options.rewards_from:
        revise = partial(_to_evaluation_config, options.rewards_from)
    with open_jury(
        path,
        options.model,
        options.dry_run,
        revise,
        settings=options.settings,
        max_cost=options.max_cost,
        max_calls=options.max_calls,
        shard=options.shard,
    ) as jury:
        for note in collect_jury_notes(jury, is_check=options.dry_run):
            if note not in printed_notes:
                print_message(note)
                printed_notes.add(note)
        yield jury


@contextmanager
def open_job(options: ScoreOptions, printed_notes: set[str] | None = None) -> Iterator[OpenedJob]:
    """Open the jury, the files and the run; print what is taken from other files and runs.

    Notes of evaluators are printed as `open_scoring_jury` does.
    """
    if options.branch is not None and options.branch.resolve() == options.run.resolve():
        raise InputError("--branch: is the run of --out; write what changed to another --out")
    with open_scoring_jury(options, printed_notes) as jury:
        # imported after open_jury has disabled LangSmith's tracing, because imports may read the environment
        from jurygraph.runs.reports.bill import count_requests
        from jurygraph.runs.workflows.branch import open_reused_run
        from jurygraph.runs.workflows.stored_work import StoredJobProgress, choose_chat_columns
        from jurygraph.runs.workflows.task_file_job import TaskFileJob
        from jurygraph.schema.conversation import UNJUDGED_REPLIES_NOTE
        from jurygraph.sources import open_task_source
        from jurygraph.sources.tasks import open_profiles

        columns = options.columns
        if options.responses is None:
            columns = choose_chat_columns(options.tasks, options.run, columns)
        with (
            open_reused_run(options.branch, jury) as branch,
            open_task_source(
                options.tasks,
                options.responses,
                options.edges_from,
                columns=columns,
                allow_files_outside=options.allow_files_outside,
                defaults=jury.config.task_defaults,
                shard=options.shard,
            ) as source,
            open_profiles(options.profiles_from, source) as profiles,
        ):
            task_count, _ = source.file_extent()
            if source.graphs:
                print_message(
                    f"{source.graphs} of {task_count} tasks take their graph from "
                    f"{options.edges_from}"
                )
            if source.unjudged_replies:
                print_message(
                    f"replies of the assistant in {source.unjudged_replies} of {task_count} "
                    f"tasks stand before the last message of a user: {UNJUDGED_REPLIES_NOTE}"
                )
            job = TaskFileJob(
                folder=options.run,
                jury=jury,
                source=source,
                limit=None if options.limit is None else source.count_leading_tasks(options.limit),
                branch=branch,
                profiles=profiles,
            )
            print_messages(job.describe_misnamed_columns())
            print_messages(job.describe_unseen_context())
            print_messages(job.describe_unpaired_answers())
            with StoredJobProgress(job) as stored_work:
                yield OpenedJob(job, stored_work)
        if branch is not None and not options.dry_run:
            reuse_text = f"{branch.reused} reused from {options.branch}"
            requests = count_requests(jury)
            is_without_requests = branch.requested and requests is not None and not requests.number
            replies_text = ", without a request" if is_without_requests else ""
            print_message(f"verdicts: {reuse_text}, {branch.requested} decided anew{replies_text}")


def _to_evaluation_config(runs: Sequence[Path], config: "Config") -> "Config":
    """Return the config with the purpose evaluation, against the judges of these runs and its own."""
    from jurygraph.runs.run import Run
    from jurygraph.schema import PurposeConfig

    judges: list[str] = []
    for folder in runs:
        with Run.open(folder) as run:
            judges += run.judges
    judges += config.purpose.reward_judges or ()
    purpose = {
        "kind": "evaluation",
        "reward_judges": judges,
        "same_judge": config.purpose.same_judge,
    }
    return config.model_copy(update={"purpose": PurposeConfig.model_validate(purpose)})


class ScoredWork(NamedTuple):
    """The work of a command: the jury and the summary of its run, the requests sent, and the tasks of the file."""

    jury: "Jury"
    summary: "Summary"
    requests: "CallCosts | None"
    task_count: int


def score_tasks(options: ScoreOptions) -> ScoredWork:
    """Score what is left of a file of tasks in this process."""
    from jurygraph.runs.reports.bill import count_requests

    with open_job(options) as opened_job, open_runner() as runner:
        score_remaining(opened_job, runner)
        jury = opened_job.job.jury
        return ScoredWork(
            jury, opened_job.summarize(), count_requests(jury), opened_job.job.task_count
        )


def forecast_remaining(opened_job: OpenedJob, runner: asyncio.Runner) -> "RemainingWork":
    """Return what is left to score and the requests that it takes; nothing is sent or written."""
    from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator

    work_estimator = RemainingWorkEstimator(opened_job.job, opened_job.stored_work)
    threads = opened_job.job.jury.context.threads
    with progress("estimating", opened_job.stored_work.remaining.responses, "responses") as report:
        expected = run_interruptible(runner, work_estimator.forecast(report), threads)
    _print_plan_notes(work_estimator.plan_notes)
    print_messages(work_estimator.lacking_tasks.describe())
    return expected


def score_remaining(opened_job: OpenedJob, runner: asyncio.Runner) -> None:
    """Plan and score the remaining tasks. On Ctrl-C, print what is kept, and the requests sent so far, and exit."""
    from jurygraph.runs.workflows.planning import JobPlanner
    from jurygraph.runs.workflows.scoring import JobScorer
    from jurygraph.runs.workflows.task_file_job import StopSwitch

    job, stored_work = opened_job
    if stored_work.is_finished:
        stored_work.close_run_if_complete()
        _print_nothing_to_score(opened_job)
        return
    if stored_work.tasks_done:
        print_message(f"{stored_work.tasks_done} tasks are scored already and are kept")
    threads = job.jury.context.threads
    stop_switch = StopSwitch(job.jury.gateways)
    job_planner = JobPlanner(job=job, stored_work=stored_work, stop_switch=stop_switch)
    planned_tasks = None
    try:
        with progress("planning", stored_work.unplanned_task_count, "tasks") as report:
            planned_tasks = run_interruptible(
                runner, job_planner.plan(report), threads, stop_switch.stop
            )
        if planned_tasks.unanswered_annotations:
            print_message(
                f"graphs: {planned_tasks.unanswered_annotations} pairs or roles of criteria without "
                "an answer and an edge; criteria that would depend on them count as supported"
            )
        _print_plan_notes(planned_tasks.notes)
        job_scorer = JobScorer(
            job=job,
            stored_work=stored_work,
            planned_tasks=planned_tasks,
            stop_switch=stop_switch,
        )
        gateways = job.jury.gateways
        suffix = make_request_counter(gateways) if gateways else str
        with progress("scoring", stored_work.remaining.responses, "responses", suffix) as report:
            run_interruptible(runner, job_scorer.score(report), threads, stop_switch.stop)
    except KeyboardInterrupt:
        _print_interrupted(job, planned_tasks is not None, job_planner.stored_call_count)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def make_request_counter(gateways: "Gateways") -> Callable[[], str]:
    """Return what describes the requests sent from now on, so that the display moves while a judge is slow."""
    calls_before = gateways.budget.calls
    began = time.monotonic()

    def describe() -> str:
        calls = gateways.budget.calls - calls_before
        elapsed_minutes = (time.monotonic() - began) / 60.0
        if elapsed_minutes < _MIN_PACE_MINUTES:
            return f"{calls} requests"
        return f"{calls} requests, {calls / elapsed_minutes:.0f} a minute"

    return describe


def _print_nothing_to_score(opened_job: OpenedJob) -> None:
    job, stored_work = opened_job
    summary = opened_job.summarize()
    count = job.task_count
    state = "is complete"
    if stored_work.tasks_done != count:
        state = f"has {stored_work.tasks_done} of {count} tasks"
    advice = "nothing to do"
    if any(row.is_transient for row in summary.failures):
        advice = "only failures are left to repeat"
    print_message(f"{job.folder} {state}; {advice}")
    if summary.investigated:
        print_message(
            "what its judges looked up was not looked up again: "
            f"jurygraph verify {shell_quote(job.folder)} --deep does so"
        )


def _print_plan_notes(plans: "PlanNotes") -> None:
    """Print the note of the plan with the smallest checked share, for all plans that have one."""
    if plans.missing_tables_count:
        print_message(
            f"tasks without `facts.tables`: {plans.missing_tables_count}; "
            "the tool look_up finds nothing there"
        )
    if plans.notes:
        _, task, note = min(plans.notes)
        more_text = f" and {len(plans.notes) - 1} more" if len(plans.notes) > 1 else ""
        print_message(f"task {quote(task)}{more_text}: {note}")


def _print_interrupted(job: "TaskFileJob", is_job_planned: bool, stored_call_count: int) -> None:
    from jurygraph.runs.reports.bill import count_requests

    if is_job_planned:
        print_message(
            f"interrupted; finished tasks are kept in {job.folder}. Run the same command again "
            "to continue"
        )
    else:
        written_text = "nothing was written"
        if stored_call_count:
            written_text += f" except {stored_call_count} replies of the model; run the same command again to continue"
        print_message(f"interrupted before anything was scored; {written_text}")
    print_messages(format_request_lines(count_requests(job.jury)))


class StudyRun(NamedTuple):
    """A run that a study makes: its name in the study's folder, the lines of its TASKS file, and its own config."""

    name: str
    lines: Sequence[bytes]
    revise: "Callable[[Config], Config]"


def score_study(
    folder: Path,
    runs: Sequence[StudyRun],
    options: ScoreOptions,
    as_json: bool = False,
    unfit_notes: Iterable[str] = (),
) -> list[Path]:
    """Score the runs of a study into its folder, and return them; what they cost is printed first.

    Results that are there already are kept, so that the same command continues. Config, model and limits are those of
    `options`; the limits are of all runs together. A dry run prints the estimate and returns no runs. The notes
    on a jury in `unfit_notes` do not hold for the study, and are not printed.

    Raises `InputError` if the folder holds other tasks under the name of a run.
    """
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout_to_stderr())
        task_folder = folder
        if options.dry_run:
            task_folder = Path(stack.enter_context(TemporaryDirectory()))
        runner = stack.enter_context(open_runner())
        score_options_by_run = [_write_run_tasks(task_folder, folder, run, options) for run in runs]
        remaining_work_by_run = {}
        printed_notes = {*unfit_notes}
        for run, score_options in zip(runs, score_options_by_run, strict=True):
            with open_job(replace(score_options, dry_run=True), printed_notes) as opened_job:
                remaining_work_by_run[run.name] = forecast_remaining(opened_job, runner)
        content, lines = _build_cost_table(remaining_work_by_run)
        if not options.dry_run:
            print_messages(lines)
            for score_options in score_options_by_run:
                budgeted_options = replace(
                    score_options, max_cost=options.max_cost, max_calls=options.max_calls
                )
                options = _score_study_run(budgeted_options, runner, printed_notes)
    if options.dry_run:
        print_dry_run(as_json, content, lines)
        return []
    return [score_options.run for score_options in score_options_by_run]


def _write_run_tasks(
    task_folder: Path, folder: Path, run: StudyRun, options: ScoreOptions
) -> ScoreOptions:
    task_folder.mkdir(parents=True, exist_ok=True)
    tasks = task_folder / f"{run.name}.jsonl"
    if not tasks.exists():
        write_output(tasks, run.lines)
    elif tasks.read_bytes() != b"".join(run.lines):
        raise InputError(f"{tasks}: holds other tasks; name another --out, or remove {folder}")
    return replace(options, tasks=str(tasks), run=folder / run.name, revise=run.revise)


def _build_cost_table(
    remaining_work_by_run: "Mapping[str, RemainingWork]",
) -> tuple[dict[str, object], list[str]]:
    from jurygraph.runs.reports.estimate import ESTIMATE_ASSUMPTIONS, CallEstimate

    rows = []
    content = {}
    for name, remaining_work in remaining_work_by_run.items():
        model = remaining_work.model or CallEstimate()
        worst = model.worst
        cost = "unknown" if worst.cost is None and worst.calls else worst.cost or 0.0
        sizes = [remaining_work.tasks, remaining_work.responses, remaining_work.verdicts]
        rows.append([name, *sizes, model.low.calls, model.expected.calls, worst.calls, cost])
        content[name] = remaining_work.to_json()
    header = ["to score", "tasks", "responses", "verdicts", "requests", "expected", "worst"]
    lines = format_table([*header, "US dollars, worst"], rows)
    estimates = [
        remaining_work.model
        for remaining_work in remaining_work_by_run.values()
        if remaining_work.model is not None
    ]
    if estimates:
        cached_reply_count = sum(estimate.from_cache for estimate in estimates)
        lines += [f"answered from the cache: {cached_reply_count}", ESTIMATE_ASSUMPTIONS]
    return {"runs": content}, lines


def _score_study_run(
    options: ScoreOptions, runner: asyncio.Runner, printed_notes: set[str]
) -> ScoreOptions:
    """Score a run of a study; return its options with what is left of the limits. Failures are counted and printed."""
    from jurygraph.runs.reports.bill import count_requests

    with open_job(options, printed_notes) as opened_job:
        score_remaining(opened_job, runner)
        summary = opened_job.summarize()
        jury = opened_job.job.jury
        sent_costs = count_requests(jury)
        max_error_rate = jury.config.failure.max_error_rate
    if summary.error_rate > max_error_rate:
        print_inconclusive_run(summary.error_rate, max_error_rate)
    if summary.failed and not summary.error_rate:
        print_message(
            f"{options.run}: {summary.failed} of {summary.responses} rewards have no value by its own panel, though "
            "every answer came; the study reads the answers by the panel of the config"
        )
    elif summary.failed:
        print_message(
            f"{options.run}: {summary.failed} of {summary.responses} rewards failed and have no "
            f"value; to repeat them, remove {options.run} and run the same command again"
        )
    print_messages(format_request_lines(sent_costs))
    return reduce_request_limits(options, sent_costs)


def reduce_request_limits(options: ScoreOptions, sent_costs: "CallCosts | None") -> ScoreOptions:
    if sent_costs is None:
        return options
    remaining_request_limit = (
        None if options.max_calls is None else max(0, options.max_calls - sent_costs.number)
    )
    remaining_cost_limit = (
        None if options.max_cost is None else max(0.0, options.max_cost - sent_costs.cost)
    )
    return replace(options, max_calls=remaining_request_limit, max_cost=remaining_cost_limit)
