"""`jurygraph score`: score responses into a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, jury_notes, open_jury
from jurygraph.cli.options import (
    AsJson,
    ConfigFile,
    DryRun,
    EdgesFrom,
    FilesOutside,
    MaxCalls,
    MaxCost,
    ModelName,
    TasksFile,
)
from jurygraph.cli.render.summary import print_forecast, print_inconclusive, request_lines, result_lines
from jurygraph.cli.render.text import print_json, print_message, print_result, shell_quote
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.reports.estimate import CallCosts, Forecast
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.runs.workflows.session import ScoringSession
    from jurygraph.schema import Config
    from jurygraph.sources import ValidatedFiles

OutRun = Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run.", show_default=False)]
ResponsesFile = Annotated[
    str | None, typer.Option(metavar="F", help="JSONL file of responses, if not in TASKS.", show_default=False)
]
ProfilesFrom = Annotated[
    str | None,
    typer.Option(metavar="PROFILES", help="Constraints read from profiles in text by `profiles`.", show_default=False),
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Score the first N tasks.", show_default=False)]
BranchFrom = Annotated[
    Path | None, typer.Option(metavar="OLD", help="Reuse unchanged verdicts of run OLD.", show_default=False)
]
RewardsFrom = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUN", help="Evaluate a model that was trained on the rewards of RUN.", show_default=False),
]


@dataclass(frozen=True)
class InputFiles:
    """The files that are scored: TASKS, and what other files say of its tasks."""

    tasks: str
    responses: str | None = None
    profiles_from: str | None = None
    edges_from: str | None = None
    allow_files_outside: bool = False


@dataclass(frozen=True)
class ScoreOptions:
    """The arguments and options of one `jurygraph score`, as typed."""

    files: InputFiles
    run: Path
    config: Path | None = None
    model: str | None = None
    dry_run: bool = False
    limit: int | None = None
    branch: Path | None = None
    rewards_from: Sequence[Path] = ()
    max_cost: float | None = None
    max_calls: int | None = None

    @property
    def retry_command(self) -> str:
        """Return the command that scores into a new run, and carries over from this one all that did not fail."""
        files = self.files
        values = {
            "--config": self.config,
            "--responses": files.responses,
            "--profiles-from": files.profiles_from,
            "--edges-from": files.edges_from,
            "--model": self.model,
            "--limit": self.limit,
            "--max-cost": self.max_cost,
            "--max-calls": self.max_calls,
            "--branch": self.run,
            "--out": _next_free_folder(self.run),
        }
        words = [f"{name} {shell_quote(value)}" for name, value in values.items() if value is not None]
        words += [f"--rewards-from {shell_quote(run)}" for run in self.rewards_from]
        words += ["--allow-files-outside"] if files.allow_files_outside else []
        return " ".join(["jurygraph score", shell_quote(files.tasks), *words])


@dataclass(frozen=True)
class _Result:
    """The result of a command: the summary of its run, its requests, and the number of tasks in the file."""

    options: ScoreOptions
    summary: "Summary"
    requests: "CallCosts | None"
    tasks: int

    @property
    def retry_command(self) -> str | None:
        """Return the command that repeats what failed for infrastructure reasons; None if nothing did."""
        return self.options.retry_command if self.summary.infrastructure_failures else None


def score(
    tasks: TasksFile,
    run: OutRun,
    config: ConfigFile = None,
    responses: ResponsesFile = None,
    profiles_from: ProfilesFrom = None,
    edges_from: EdgesFrom = None,
    model: ModelName = None,
    dry_run: DryRun = False,
    limit: Limit = None,
    branch: BranchFrom = None,
    rewards_from: RewardsFrom = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    allow_files_outside: FilesOutside = False,
    json: AsJson = False,
) -> None:
    """Score responses and store every reward with its full trace.

    Everything is read and planned before anything is written. The same command on the same RUN resumes it, also after
    a kill or a power cut. With other files, config, model or evaluators it is refused; `--branch OLD` then creates a
    run that reuses all verdicts of OLD with the same question, evaluator, model and responses, and requests the rest.

    With --rewards-from the run is an evaluation, like `purpose` in the config: a judge that gave the training rewards
    is refused, unless `purpose.same_judge` is `allow`.

    Exit codes: 0 done; 1 done, but some rewards failed, or canaries got more credit than canary.alert allows; 2 invalid
    config or input, nothing written; 3 inconclusive: too many failures of infrastructure; 4 --max-cost or --max-calls
    reached, resumable; 130 interrupted, resumable. Output of evaluators goes to standard error.

    \b
    Example:
        jurygraph score tasks.jsonl --out run
        jurygraph score tasks.jsonl.gz --config jury.yaml --responses answers.jsonl --out run --dry-run
        jurygraph score tasks.jsonl --config stricter.yaml --out run2 --branch run
    """
    from jurygraph.runs.reports.estimate import count_requests

    files = InputFiles(tasks, responses, profiles_from, edges_from, allow_files_outside)
    options = ScoreOptions(files, run, config, model, dry_run, limit, branch, rewards_from or (), max_cost, max_calls)
    forecast = None
    with redirect_stdout_to_stderr(), _open_jury(options) as jury, _open_session(options, jury) as session:
        if dry_run:
            forecast = _estimate(session)
        else:
            _score_remaining(session)
        result = _Result(options, session.summary, count_requests(jury), session.tasks)
    if forecast is not None:
        print_forecast(forecast, session.tasks_needing_model, json)
        return
    _print_result(result, json)
    raise typer.Exit(_exit_code(result, jury))


def _open_jury(options: ScoreOptions) -> "Jury":
    revise = _evaluation_purpose(options.rewards_from) if options.rewards_from else None
    path = options.config or find_config(options.files.tasks)
    return open_jury(
        path, options.model, options.dry_run, revise, max_cost=options.max_cost, max_calls=options.max_calls
    )


@contextmanager
def _open_session(options: ScoreOptions, jury: "Jury") -> Iterator["ScoringSession"]:
    """Open the files and the run; print the notes of evaluators, and what is taken from other files and runs."""
    from jurygraph.runs.workflows.branch import Branch
    from jurygraph.runs.workflows.session import ScoringSession
    from jurygraph.sources import read_work
    from jurygraph.sources.profiles import open_profiles

    for note in jury_notes(jury):
        print_message(note)
    files, branch = options.files, None if options.branch is None else Branch(options.branch)
    with (
        read_work(
            files.tasks,
            files.responses,
            files.edges_from,
            allow_files_outside=files.allow_files_outside,
            checked=_checked_files(options.run),
        ) as work,
        open_profiles(files.profiles_from, work) as profiles,
    ):
        if work.graphs:
            print_message(f"{work.graphs} of {work.extent()[0]} tasks take their graph from {files.edges_from}")
        with closing(ScoringSession(options.run, jury, work, options.limit, branch, profiles)) as session:
            yield session
    if branch is not None and not options.dry_run:
        print_message(
            f"{branch.carried} verdicts were reused from {options.branch}, {branch.requested} were requested again"
        )


def _next_free_folder(run: Path) -> Path:
    """Return a folder next to a run's, named after it, that does not exist yet."""
    named = run if run.name not in ("", "..") else run.resolve()
    numbered = (named.with_name(f"{named.name}-{number}") for number in count(2))
    return next(folder for folder in numbered if not folder.exists())


def _checked_files(folder: Path) -> "ValidatedFiles | None":
    """Return the files of a run that is complete; None where there is no such run."""
    from jurygraph.runs.run import Run
    from jurygraph.sources import ValidatedFiles

    run = Run.open_if_closed(folder)
    if run is None:
        return None
    with closing(run):
        header = run.header
        return ValidatedFiles(header.tasks, header.responses, (header.extent.tasks, header.extent.responses))


def _evaluation_purpose(runs: Sequence[Path]) -> Callable[["Config"], "Config"]:
    """Return a function that sets a config's purpose to evaluation, against the judges of these runs and its own."""
    from jurygraph.runs.run import Run
    from jurygraph.schema import PurposeConfig

    judges: list[str] = []
    for folder in runs:
        with closing(Run.open(folder)) as run:
            judges += run.judges

    def as_evaluation(config: "Config") -> "Config":
        reward_judges = [*judges, *(config.purpose.reward_judges or ())]
        purpose = {"kind": "evaluation", "reward_judges": reward_judges, "same_judge": config.purpose.same_judge}
        return config.model_copy(update={"purpose": PurposeConfig.model_validate(purpose)})

    return as_evaluation


def _estimate(session: "ScoringSession") -> "Forecast":
    """Estimate the remaining requests."""
    import asyncio

    from jurygraph.cli.render.progress import progress

    with asyncio.Runner() as runner, progress("estimating", session.remaining.responses, "responses") as report:
        return runner.run(session.forecast(report))


def _score_remaining(session: "ScoringSession") -> None:
    """Plan and score the remaining tasks."""
    import asyncio

    from jurygraph.cli.render.progress import progress

    if session.is_finished:
        session.close_if_complete()
        state = "is complete" if session.tasks_done == session.tasks else f"has the first {session.tasks_done} tasks"
        print_message(f"{session.folder} {state}; nothing to do")
        return
    if session.tasks_done:
        print_message(f"{session.tasks_done} tasks are scored already and are kept")
    with asyncio.Runner() as runner:
        with (
            _exit_when_interrupted(session, lambda: _nothing_written(session)),
            progress("planning", session.tasks_to_plan, "tasks") as report,
        ):
            runner.run(session.prepare(report))
        if session.unanswered_annotations:
            missing = f"{session.unanswered_annotations} pairs or roles of criteria without an answer and an edge"
            print_message(f"graphs: {missing}; criteria that would depend on them count as supported")
        with (
            _exit_when_interrupted(session, lambda: _scored_part_kept(session)),
            progress("scoring", session.remaining.responses, "responses") as report,
        ):
            runner.run(session.score(report))


@contextmanager
def _exit_when_interrupted(session: "ScoringSession", describe: Callable[[], str]) -> Iterator[None]:
    """Print the message, and the requests sent so far, on Ctrl-C, and exit."""
    from jurygraph.runs.reports.estimate import count_requests

    try:
        yield
    except KeyboardInterrupt:
        for line in (describe(), *request_lines(count_requests(session.jury))):
            print_message(line)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _nothing_written(session: "ScoringSession") -> str:
    kept = session.stored_planning_calls
    advice = f" except {kept} replies of the model; run the same command again to continue" if kept else ""
    return f"interrupted before anything was scored; nothing was written{advice}"


def _scored_part_kept(session: "ScoringSession") -> str:
    return f"interrupted; finished tasks are kept in {session.folder}. Run the same command again to continue"


def _print_result(result: _Result, as_json: bool) -> None:
    summary, run = result.summary, result.options.run
    if as_json:
        requests = None if result.requests is None else result.requests.to_json()
        print_json({"run": str(run), **summary.to_json(), "requests": requests, "retry_command": result.retry_command})
    else:
        for line in (*result_lines(summary), *request_lines(result.requests)):
            print_result(line)
        if summary.tasks < result.tasks:
            print_result(f"{summary.tasks} of {result.tasks} tasks (--limit)")
    if summary.lowest is not None:
        print_message(f"all rewards:     jurygraph show {shell_quote(run)}")
        label = "a failed one:   " if summary.failed else "the lowest one: "
        print_message(f"{label} jurygraph show {shell_quote(run)} --response {shell_quote(summary.lowest)}")
        print_message(f"in sentences:    jurygraph explain {shell_quote(run)} --response {shell_quote(summary.lowest)}")


_MAX_FAILURES, _MAX_MESSAGE = 3, 160


def _print_failures(result: _Result) -> None:
    """Print the kinds of failed verdicts, and the command that repeats those that failed for infrastructure reasons."""
    from jurygraph.messages import shorten

    for row in result.summary.failures[:_MAX_FAILURES]:
        print_message(
            f"failed verdicts: {row.verdicts} of kind {row.kind}, for example: {shorten(row.message, _MAX_MESSAGE)}"
        )
    if result.retry_command is not None:
        print_message(f"to repeat the verdicts that failed for infrastructure reasons:  {result.retry_command}")


def _exit_code(result: _Result, jury: "Jury") -> ExitCode:
    """Return the exit code, and print why it is not 0 and what can be done."""
    summary, code, max_error_rate = result.summary, ExitCode.DONE, jury.config.failure.max_error_rate
    if summary.error_rate > max_error_rate:
        print_inconclusive(summary.error_rate, max_error_rate)
        code = ExitCode.INCONCLUSIVE
    elif summary.failed:
        print_message(f"{summary.failed} of {summary.responses} rewards failed and have no value")
        if jury.gateway is None and any(one.layer == "model" for one in jury.evaluators.values()):
            print_message("model: none cannot answer questions for a model; name one in the config or with --model")
        code = ExitCode.SOME_FAILED
    if summary.canaries is not None and summary.canaries.is_alarming:
        print_message(
            f"ALERT: known-bad responses got credit more often than canary.alert ({summary.canaries.alert:.1%}) allows"
        )
        code = code or ExitCode.SOME_FAILED
    _print_failures(result)
    return code
