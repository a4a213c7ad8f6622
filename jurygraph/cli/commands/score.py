"""`jurygraph score`: score responses into a run."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    import asyncio

    from jurygraph.jury import Jury
    from jurygraph.runs.reports.estimate import CallCosts, Forecast
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.runs.workflows.branch import Branch
    from jurygraph.runs.workflows.session import ScoringSession
    from jurygraph.schema import Config
    from jurygraph.sources import TaskSource, ValidatedFiles
    from jurygraph.sources.profiles import ProfilesFile


def score(
    tasks: TasksFile,
    run: Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run.", show_default=False)],
    config: ConfigFile = None,
    responses: Annotated[
        str | None, typer.Option(metavar="F", help="JSONL file of responses, if not in TASKS.", show_default=False)
    ] = None,
    profiles_from: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILES", help="Constraints read from profiles in text by `profiles`.", show_default=False
        ),
    ] = None,
    edges_from: EdgesFrom = None,
    model: ModelName = None,
    dry_run: DryRun = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Score the first N tasks.", show_default=False)
    ] = None,
    branch: Annotated[
        Path | None, typer.Option(metavar="OLD", help="Reuse unchanged verdicts of run OLD.", show_default=False)
    ] = None,
    rewards_from: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN", help="Evaluate a model that was trained on the rewards of RUN.", show_default=False
        ),
    ] = None,
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
    limits: dict[str, Any] = {"max_cost": max_cost, "max_calls": max_calls}
    files: dict[str, Any] = {"responses": responses, "profiles_from": profiles_from, "edges_from": edges_from}
    files["allow_files_outside"] = allow_files_outside or None
    command = _ScoreCommand(tasks, run, dry_run, config=config, **files, model=model, limit=limit, **limits)
    revised = _evaluation_purpose(rewards_from) if rewards_from else None
    with (
        redirect_stdout_to_stderr(),
        open_jury(config or find_config(tasks), model, dry_run, revised, **limits) as jury,
    ):
        command.run(jury, branch)
    if command.forecast is not None:
        print_forecast(command.forecast, command.unread, json)
        return
    _print_result(command, json)
    raise typer.Exit(_exit_code(command, jury))


class _ScoreCommand:
    """One run of the command: plans everything and, unless it is a dry run, scores it.

    `options` are the command-line options that a branch of the run would have too.
    """

    summary: "Summary"
    requests: "CallCosts | None"

    def __init__(self, tasks: str, run: Path, dry_run: bool, **options: Any) -> None:
        self.file, self.folder, self.dry_run, self.options = tasks, run, dry_run, options
        self.forecast: Forecast | None = None
        self.tasks = self.unread = 0

    def run(self, jury: "Jury", branch: Path | None) -> None:
        """Print the notes of evaluators, then plan and score."""
        from jurygraph.runs.reports.estimate import count_requests
        from jurygraph.sources import read_work
        from jurygraph.sources.profiles import open_profiles

        for note in jury_notes(jury):
            print_message(note)
        carried, profiles_file = None if branch is None else _open_branch(branch), self.options["profiles_from"]
        allow_outside = bool(self.options["allow_files_outside"])
        with (
            read_work(
                self.file,
                self.options["responses"],
                self.options["edges_from"],
                allow_files_outside=allow_outside,
                checked=_checked_files(self.folder),
            ) as work,
            open_profiles(profiles_file, work) as profiles,
        ):
            if work.graphs:
                print_message(
                    f"{work.graphs} of {work.extent()[0]} tasks take their graph from {self.options['edges_from']}"
                )
            self._run_session(jury, work, carried, profiles)
        self.requests = count_requests(jury)
        if carried is not None and not self.dry_run:
            print_message(
                f"{carried.carried} verdicts were reused from {branch}, {carried.requested} were requested again"
            )

    def _run_session(
        self, jury: "Jury", work: "TaskSource", branch: "Branch | None", profiles: "ProfilesFile | None"
    ) -> None:
        import asyncio

        from jurygraph.runs.workflows.session import ScoringSession

        session = ScoringSession(self.folder, jury, work, self.options["limit"], branch, profiles)
        with asyncio.Runner() as runner, closing(session):
            self.tasks, self.summary = session.tasks, session.summary
            if self.dry_run:
                self.forecast = _estimate(session, runner)
                self.unread = session.tasks_needing_model
            else:
                _score_remaining(session, runner)

    @property
    def retry_command(self) -> str | None:
        """Return the command that repeats what failed for infrastructure reasons; None if nothing did."""
        if not self.summary.infrastructure_failures:
            return None
        options = {**self.options, "branch": self.folder, "out": _next_free_folder(self.folder)}
        words = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f" {shell_quote(value)}")
            for name, value in options.items()
            if value is not None
        ]
        return " ".join(["jurygraph score", shell_quote(self.file), *words])

    def to_json(self) -> dict[str, Any]:
        """Return the requests of this command, and the command that repeats failures, as JSON."""
        return {
            "requests": None if self.requests is None else self.requests.to_json(),
            "retry_command": self.retry_command,
        }


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


def _open_branch(folder: Path) -> "Branch":
    from jurygraph.runs.workflows.branch import Branch

    return Branch(folder)


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


def _estimate(session: "ScoringSession", runner: "asyncio.Runner") -> "Forecast":
    """Estimate the remaining requests."""
    from jurygraph.cli.render.progress import progress

    with progress("estimating", session.remaining.responses, "responses") as report:
        return runner.run(session.forecast(report))


def _score_remaining(session: "ScoringSession", runner: "asyncio.Runner") -> None:
    """Plan and score the remaining tasks."""
    from jurygraph.cli.render.progress import progress

    if session.is_finished:
        session.close_if_complete()
        state = "is complete" if session.tasks_done == session.tasks else f"has the first {session.tasks_done} tasks"
        print_message(f"{session.folder} {state}; nothing to do")
        return
    if session.tasks_done:
        print_message(f"{session.tasks_done} tasks are scored already and are kept")
    try:
        with progress("planning", session.tasks_to_plan, "tasks") as report:
            runner.run(session.prepare(report))
    except KeyboardInterrupt:
        kept = session.stored_planning_calls
        advice = f" except {kept} replies of the model; run the same command again to continue" if kept else ""
        print_message(f"interrupted before anything was scored; nothing was written{advice}")
        _print_requests(session)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if session.unanswered_annotations:
        missing = f"{session.unanswered_annotations} pairs or roles of criteria have no answer and no edge"
        print_message(f"graphs: {missing}; criteria that would depend on them count as supported")
    try:
        with progress("scoring", session.remaining.responses, "responses") as report:
            runner.run(session.score(report))
    except KeyboardInterrupt:
        print_message(
            f"interrupted; finished tasks are kept in {session.folder}. Run the same command again to continue"
        )
        _print_requests(session)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _print_requests(session: "ScoringSession") -> None:
    from jurygraph.runs.reports.estimate import count_requests

    for line in request_lines(count_requests(session.jury)):
        print_message(line)


def _print_result(command: _ScoreCommand, as_json: bool) -> None:
    summary, run = command.summary, command.folder
    if as_json:
        print_json({"run": str(run), **summary.to_json(), **command.to_json()})
    else:
        for line in (*result_lines(summary), *request_lines(command.requests)):
            print_result(line)
        if summary.tasks < command.tasks:
            print_result(f"{summary.tasks} of {command.tasks} tasks (--limit)")
    if summary.lowest is not None:
        print_message(f"all rewards:     jurygraph show {shell_quote(run)}")
        label = "a failed one:   " if summary.failed else "the lowest one: "
        print_message(f"{label} jurygraph show {shell_quote(run)} --response {shell_quote(summary.lowest)}")
        print_message(f"in sentences:    jurygraph explain {shell_quote(run)} --response {shell_quote(summary.lowest)}")


_MAX_FAILURES, _MAX_MESSAGE = 3, 160


def _print_failures(command: _ScoreCommand) -> None:
    """Print the kinds of failed verdicts, and the command that repeats those that failed for infrastructure reasons."""
    from jurygraph.messages import shorten

    for row in command.summary.failures[:_MAX_FAILURES]:
        print_message(
            f"failed verdicts: {row.verdicts} of kind {row.kind}, for example: {shorten(row.message, _MAX_MESSAGE)}"
        )
    if command.retry_command is not None:
        print_message(f"to repeat the verdicts that failed for infrastructure reasons:  {command.retry_command}")


def _exit_code(command: _ScoreCommand, jury: "Jury") -> ExitCode:
    """Return the exit code, and print why it is not 0 and what can be done."""
    summary, code, max_error_rate = command.summary, ExitCode.DONE, jury.config.failure.max_error_rate
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
    _print_failures(command)
    return code
