"""`jurygraph score`: score responses into a run."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.interrupts import run_interruptible
from jurygraph.cli.jury_loading import find_config, jury_notes, locate_config_errors, open_jury
from jurygraph.cli.options import (
    AsJson,
    Conditions,
    ConfigFile,
    DryRun,
    EdgesFrom,
    FilesOutside,
    MaxCalls,
    MaxCost,
    ModelName,
    argument,
    option,
)
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.summary import (
    LEGEND,
    possible_reward_line,
    print_canary_message,
    print_forecast,
    print_inconclusive,
    print_left_out,
    print_missed_conditions,
    print_unsupported,
    request_lines,
    result_lines,
)
from jurygraph.cli.render.text import print_message, print_report, shell_quote
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.cli.table_options import (
    AgentColumn,
    GroupBy,
    IdColumn,
    PromptColumn,
    ReferenceColumn,
    ResponseColumns,
    RubricColumn,
    choose_columns,
    columns_words,
)
from jurygraph.errors import InputError
from jurygraph.messages import quote, shorten

if TYPE_CHECKING:
    import asyncio

    from jurygraph.jury import Jury
    from jurygraph.runs.reports.estimate import CallCosts
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.runs.workflows.scoring_session import ScoringSession
    from jurygraph.schema import Config
    from jurygraph.sources import TableColumns, ValidatedFiles


ProfilesFrom = Annotated[str | None, option("PROFILES", "Constraints read from profiles in text by `profiles`.")]
RewardsFrom = Annotated[list[Path] | None, option("RUN", "Evaluate a model that was trained on the rewards of RUN.")]


@dataclass(frozen=True)
class ScoreOptions:
    """The arguments and options of one `jurygraph score`, as typed."""

    tasks: str
    columns: "TableColumns | None"
    responses: str | None
    profiles_from: str | None
    edges_from: str | None
    allow_files_outside: bool
    run: Path
    config: Path | None
    model: str | None
    dry_run: bool
    limit: int | None
    branch: Path | None
    rewards_from: Sequence[Path]
    max_cost: float | None
    max_calls: int | None

    @cached_property
    def retry_command(self) -> str:
        """Return the command that scores into a new run, and carries over from this one all that did not fail."""
        run = self.run if self.run.name not in ("", "..") else self.run.resolve()
        numbered = (run.with_name(f"{run.name}-{number}") for number in count(2))
        names = ("config", "responses", "profiles_from", "edges_from", "model", "limit", "max_cost", "max_calls")
        values = {name.replace("_", "-"): getattr(self, name) for name in names}
        values |= {"branch": self.run, "out": next(folder for folder in numbered if not folder.exists())}
        words = columns_words(self.columns)
        words += [f"--{name} {shell_quote(value)}" for name, value in values.items() if value is not None]
        words += [f"--rewards-from {shell_quote(run)}" for run in self.rewards_from]
        words += ["--allow-files-outside"] if self.allow_files_outside else []
        return " ".join(["jurygraph score", shell_quote(self.tasks), *words])


def score(
    tasks: Annotated[str, argument("TASKS", "JSONL file of tasks, or a table; .gz too; - for stdin.")],
    run: Annotated[Path | None, option("RUN", "Folder of the run; --dry-run needs none.", "-o", "--out")] = None,
    prompt_column: PromptColumn = None,
    response_column: ResponseColumns = None,
    reference_column: ReferenceColumn = None,
    rubric_column: RubricColumn = None,
    id_column: IdColumn = None,
    group_by: GroupBy = None,
    agent_column: AgentColumn = None,
    config: ConfigFile = None,
    responses: Annotated[str | None, option("F", "JSONL file of responses, if not in TASKS.")] = None,
    profiles_from: ProfilesFrom = None,
    edges_from: EdgesFrom = None,
    model: ModelName = None,
    dry_run: DryRun = False,
    limit: Annotated[int | None, option("N", "Score the first N tasks.", min=1)] = None,
    branch: Annotated[Path | None, option("OLD", "Reuse unchanged verdicts of run OLD.")] = None,
    rewards_from: RewardsFrom = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    allow_files_outside: FilesOutside = False,
    gate: Conditions = None,
    json: AsJson = False,
) -> None:
    """Score responses and store every reward with its full trace.

    Everything is read and planned before anything is written. The same command on the same RUN resumes it, also after
    a kill or a power cut. With other files, config, model or evaluators it is refused; `--branch OLD` then creates a
    run that reuses all verdicts of OLD with the same question, evaluator, model and responses, and requests the rest.

    With --prompt-column and --response-column, TASKS is a table: each row is a task with one response in each response
    column, or with --group-by one of several rows of a task. The other columns become labels of the responses.

    With --rewards-from the run is an evaluation, like `purpose` in the config: a judge that gave the training rewards
    is refused, unless `purpose.same_judge` is `allow`.

    --gate takes conditions on the counts responses, failed and degraded, on mean, and on the shares coverage,
    error_rate and unsupported, joined by `,` or `and`. Failed rewards do not pass without a condition on `failed`.

    Exit codes: 0 done; 1 done, but some rewards failed, a threshold was missed, or canaries got more credit than
    canary.alert allows, beyond chance; 2 invalid config or input, nothing written; 3 inconclusive: too many failures of
    infrastructure (the command that repeats them is printed), or the server was away too long or refused the key or the
    model, resumable; 4 --max-cost or --max-calls reached, resumable; 130 interrupted, resumable. Output of evaluators
    goes to standard error.

    \b
    Example:
        jurygraph score tasks.jsonl --out run
        jurygraph score tasks.jsonl.gz --config jury.yaml --responses answers.jsonl --dry-run
        jurygraph score answers.csv --prompt-column question --response-column answer --out run
        jurygraph score tasks.jsonl --config stricter.yaml --out run2 --branch run --gate "mean>=0.8, failed<=2"
    """
    names = (prompt_column, response_column, reference_column, rubric_column, id_column, group_by, agent_column)
    columns = choose_columns(*names)
    files = (tasks, columns, responses, profiles_from, edges_from, allow_files_outside)
    run = run or _choose_unused_folder(dry_run)
    options = ScoreOptions(*files, run, config, model, dry_run, limit, branch, rewards_from or (), max_cost, max_calls)
    raise typer.Exit(_score(options, gate, json))


def _choose_unused_folder(dry_run: bool) -> Path:
    """Return a folder that does not exist, so that a dry run estimates a new run. Raises `InputError` for others."""
    if not dry_run:
        raise InputError("--out: is missing; name the folder of the run, or estimate the requests with --dry-run")
    import tempfile  # imported lazily, like uuid: `--help` needs neither
    import uuid

    return Path(tempfile.gettempdir(), uuid.uuid4().hex)


def _score(options: ScoreOptions, gate: Sequence[str] | None, as_json: bool) -> ExitCode:
    """Score or estimate, and print the result; return the exit code."""
    import asyncio

    import uvloop

    from jurygraph.runs.reports.estimate import count_requests
    from jurygraph.runs.reports.gate import failed_thresholds, parse_thresholds
    from jurygraph.runs.reports.summary import RunFigures
    from jurygraph.runs.run import Run

    thresholds = parse_thresholds(",".join(gate), RunFigures, _GATE_EXAMPLE) if gate else None
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with redirect_stdout_to_stderr(), _open_session(options) as session, runner:
        if options.dry_run:
            with progress("estimating", session.remaining.responses, "responses") as report:
                forecast = run_interruptible(runner, session.forecast(report), session.jury.context.threads)
            _print_plan_notes(session)
        else:
            _score_remaining(session, runner)
        summary = session.summary
        requests = count_requests(session.jury)
        task_count = session.task_count
    if options.dry_run:
        print_forecast(forecast, session.tasks_needing_model, as_json)
        return ExitCode.DONE
    with closing(Run.open(options.run)) as run:
        possible = possible_reward_line(run, session.jury.combiners)
    _print_result(options, summary, requests, task_count, possible, as_json)
    code = _exit_code(options, summary, session.jury)
    if thresholds is not None and code in (ExitCode.DONE, ExitCode.SOME_FAILED):
        missed = failed_thresholds(thresholds, summary.figures)
        print_missed_conditions(missed)
        is_alarming = summary.canaries is not None and summary.canaries.is_alarming
        decides_on_failed = any(threshold.name == "failed" for threshold in thresholds)
        are_too_many = summary.failed > 0 and not decides_on_failed
        code = ExitCode.SOME_FAILED if missed or is_alarming or are_too_many else ExitCode.DONE
    print_unsupported(summary, session.jury.config.safety.evidence)
    return code


_GATE_EXAMPLE = '"mean>=0.8, failed<=2"'


@contextmanager
def _open_session(options: ScoreOptions) -> Iterator["ScoringSession"]:
    """Open the jury, the files and the run; print notes of evaluators, and what is taken from other files and runs."""
    path = options.config or find_config(options.tasks)
    revise = partial(_as_evaluation, options.rewards_from) if options.rewards_from else None
    jury = open_jury(
        path, options.model, options.dry_run, revise, max_cost=options.max_cost, max_calls=options.max_calls
    )
    with jury, locate_config_errors(path, options.model):
        # imported after open_jury has disabled LangSmith's tracing, because imports may read the environment
        from jurygraph.runs.workflows.branch import open_reused_run
        from jurygraph.runs.workflows.scoring_session import ScoringSession
        from jurygraph.sources import open_tasks
        from jurygraph.sources.profiles import open_profiles

        for note in jury_notes(jury):
            print_message(note)
        with (
            open_reused_run(options.branch, jury) as branch,
            open_tasks(
                options.tasks,
                options.responses,
                options.edges_from,
                columns=options.columns,
                allow_files_outside=options.allow_files_outside,
                defaults=jury.config.task_defaults,
                validated=_validated_files(options.run),
            ) as source,
            open_profiles(options.profiles_from, source) as profiles,
        ):
            if source.graphs:
                print_message(
                    f"{source.graphs} of {source.extent()[0]} tasks take their graph from {options.edges_from}"
                )
            with closing(ScoringSession(options.run, jury, source, options.limit, branch, profiles)) as session:
                yield session
        if branch is not None and not options.dry_run:
            print_message(f"verdicts: {branch.reused} reused from {options.branch}, {branch.requested} requested")


def _validated_files(folder: Path) -> "ValidatedFiles | None":
    """Return the files of a run that is complete; None where there is no such run."""
    from jurygraph.runs.run import Run
    from jurygraph.sources import ValidatedFiles

    run = Run.open_if_closed(folder)
    if run is None:
        return None
    with closing(run):
        header = run.header
        return ValidatedFiles(
            header.tasks, header.responses, header.columns, (header.extent.tasks, header.extent.responses)
        )


def _as_evaluation(runs: Sequence[Path], config: "Config") -> "Config":
    """Return the config with the purpose evaluation, against the judges of these runs and its own."""
    from jurygraph.runs.run import Run
    from jurygraph.schema import PurposeConfig

    judges: list[str] = []
    for folder in runs:
        with closing(Run.open(folder)) as run:
            judges += run.judges
    judges += config.purpose.reward_judges or ()
    purpose = {"kind": "evaluation", "reward_judges": judges, "same_judge": config.purpose.same_judge}
    return config.model_copy(update={"purpose": PurposeConfig.model_validate(purpose)})


def _score_remaining(session: "ScoringSession", runner: "asyncio.Runner") -> None:
    """Plan and score the remaining tasks. On Ctrl-C, print what is kept, and the requests sent so far, and exit."""
    if session.is_finished:
        session.close_if_complete()
        is_complete = session.tasks_done == session.task_count
        state = "is complete" if is_complete else f"has {session.tasks_done} of {session.task_count} tasks"
        repeats = any(row.is_transient for row in session.summary.failures)
        print_message(f"{session.folder} {state}; {'only failures are left to repeat' if repeats else 'nothing to do'}")
        return
    if session.tasks_done:
        print_message(f"{session.tasks_done} tasks are scored already and are kept")
    is_planned = False
    threads = session.jury.context.threads
    try:
        with progress("planning", session.tasks_to_plan, "tasks") as report:
            run_interruptible(runner, session.prepare(report), threads, session.stop)
        is_planned = True
        if session.unanswered_annotations:
            missing = f"{session.unanswered_annotations} pairs or roles of criteria without an answer and an edge"
            print_message(f"graphs: {missing}; criteria that would depend on them count as supported")
        _print_plan_notes(session)
        with progress("scoring", session.remaining.responses, "responses") as report:
            run_interruptible(runner, session.score(report), threads, session.stop)
    except KeyboardInterrupt:
        _print_interrupted(session, is_planned)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _print_plan_notes(session: "ScoringSession") -> None:
    """Print the note of the plan with the smallest checked share, for all plans that have one."""
    if session.plan_notes:
        _, task, note = min(session.plan_notes)
        others = len(session.plan_notes) - 1
        print_message(f"task {quote(task)}{f' and {others} more' if others else ''}: {note}")


def _print_interrupted(session: "ScoringSession", is_planned: bool) -> None:
    from jurygraph.runs.reports.estimate import count_requests

    if is_planned:
        kept = f"finished tasks are kept in {session.folder}. Run the same command again to continue"
        print_message(f"interrupted; {kept}")
    else:
        replies = session.stored_planning_calls
        advice = f" except {replies} replies of the model; run the same command again to continue"
        print_message(f"interrupted before anything was scored; nothing was written{advice if replies else ''}")
    for line in request_lines(count_requests(session.jury)):
        print_message(line)


def _print_result(
    options: ScoreOptions,
    summary: "Summary",
    requests: "CallCosts | None",
    task_count: int,
    possible: str | None,
    as_json: bool,
) -> None:
    lines = [*result_lines(summary), *([possible, LEGEND] if possible else ()), *request_lines(requests)]
    if summary.tasks < task_count:
        lines.append(f"{summary.tasks} of {task_count} tasks (--limit)")
    retry_command = options.retry_command if any(row.is_transient for row in summary.failures) else None
    content = {"run": str(options.run), **summary.to_json(), "requests": requests and requests.to_json()}
    print_report(as_json, {**content, "retry_command": retry_command}, lines)
    if summary.lowest is not None:
        run = shell_quote(options.run)
        response = f"{run} --response {shell_quote(summary.lowest)}"
        print_message(f"all rewards:     jurygraph show {run}")
        print_message(f"{'a failed one:   ' if summary.failed else 'the lowest one: '} jurygraph show {response}")
        print_message(f"in sentences:    jurygraph explain {response}")


def _exit_code(options: ScoreOptions, summary: "Summary", jury: "Jury") -> ExitCode:
    """Return the exit code, and print why it is not 0 and what can be done."""
    code = ExitCode.DONE
    max_error_rate = jury.config.failure.max_error_rate
    if summary.error_rate > max_error_rate:
        print_inconclusive(summary.error_rate, max_error_rate)
        code = ExitCode.INCONCLUSIVE
    elif summary.failed:
        print_message(f"{summary.failed} of {summary.responses} rewards failed and have no value")
        print_left_out(summary.left_out)
        if not jury.gateways and any(one.layer == "model" for one in jury.evaluators.values()):
            print_message("model: none cannot answer questions for a model; name one in the config or with --model")
        code = ExitCode.SOME_FAILED
    if summary.canaries is not None:
        print_canary_message(summary.canaries)
        if summary.canaries.is_alarming:
            code = code or ExitCode.SOME_FAILED
    for model, problem in jury.gateways.useless.items():
        print_message(f"no reply of {model} could be used: {problem}; then: {options.retry_command}")
    for row in summary.failures[:3]:
        example = shorten(row.message, 320)
        counts = row.evaluators.items()
        by = ", ".join(f"{name} {number}" for name, number in counts)
        label = "evaluator errors" if row.cause == "evaluator" else "failed verdicts"
        print_message(f"{label}: {row.verdicts} of kind {row.kind} ({by}), for example: {example}")
    errors = sum(row.verdicts for row in summary.failures if row.cause == "evaluator")
    if errors:
        print_message(f"once the code of the evaluator is mended, to repeat its {errors}:  {options.retry_command}")
    elif transient := sum(row.verdicts for row in summary.failures if row.is_transient):
        print_message(f"to repeat the {transient} failures that may succeed now:  {options.retry_command}")
    return code
