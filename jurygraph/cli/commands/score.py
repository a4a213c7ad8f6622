"""`jurygraph score`: score responses into a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jurygraph.cli.interrupts import open_runner
from jurygraph.cli.options import (
    AllowFilesOutsideOption,
    ConfigFileOption,
    ConfigSettingsOption,
    DryRunOption,
    EdgesFileOption,
    GateConditionsOption,
    GroupByOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    ResponseStartOption,
    argument,
    build_table_columns,
    option,
    role_option,
)
from jurygraph.cli.render.summary import (
    COVERAGE_LEGEND,
    format_lowest_reward_lines,
    format_request_lines,
    format_result_lines,
    print_forecast,
    print_inconclusive_run,
    print_missed_conditions,
)
from jurygraph.cli.render.text import print_message, print_messages, print_report
from jurygraph.cli.scoring import (
    ScoredWork,
    ScoreOptions,
    forecast_remaining,
    open_job,
    score_tasks,
)
from jurygraph.cli.streams import ExitCode, redirect_stdout_to_stderr
from jurygraph.errors import InputError
from jurygraph.messages import format_count, quote, shell_quote, shorten

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.schema.config import Config


def score(
    tasks: Annotated[
        str, argument("TASKS", "JSONL file of tasks, or a table; .gz too; - for stdin.")
    ],
    run: Annotated[
        Path | None, option("RUN", "Folder of the run; --dry-run needs none.", "-o", "--out")
    ] = None,
    prompt_column: Annotated[str | None, role_option("prompt", "Prompts of a table.")] = None,
    no_prompt: Annotated[bool, option(None, "The texts of a table answer no prompt.")] = False,
    response_column: Annotated[
        list[str] | None,
        role_option("response", "Responses of a table; repeat it for several agents."),
    ] = None,
    reference_column: Annotated[
        str | None, role_option("reference", "References of a table.")
    ] = None,
    rubric_column: Annotated[
        str | None,
        role_option("rubric", "Rubrics of a table: a criterion a line, or a JSON list."),
    ] = None,
    id_column: Annotated[
        str | None, role_option("id", "Ids of a table's rows.", show_default="row-1, row-2, …")
    ] = None,
    group_by: GroupByOption = None,
    agent_column: Annotated[
        str | None, role_option("agent", "Agents that wrote the responses of a table.")
    ] = None,
    messages_column: Annotated[
        str | None,
        role_option("messages", "Conversations: lists of messages, instead of the two above."),
    ] = None,
    response_from: ResponseStartOption = None,
    context_column: Annotated[
        str | None,
        role_option("context", "Context of a table's prompts: a passage, or a JSON list."),
    ] = None,
    workspace_column: Annotated[
        str | None,
        role_option("workspace", "Folders or archives with the files of a table's responses."),
    ] = None,
    group_column: Annotated[
        str | None,
        role_option(
            "group",
            "Tasks with the same value here are compared as one, such as a question that two systems searched for.",
        ),
    ] = None,
    config: ConfigFileOption = None,
    settings: ConfigSettingsOption = None,
    responses: Annotated[
        str | None, option("F", "JSONL file of responses, if not in TASKS.")
    ] = None,
    profiles_from: Annotated[
        str | None, option("PROFILES", "Constraints read from profiles in text by `profiles`.")
    ] = None,
    edges_from: EdgesFileOption = None,
    model: ModelNameOption = None,
    dry_run: DryRunOption = False,
    limit: Annotated[int | None, option("N", "Score the first N tasks.", min=1)] = None,
    shard: Annotated[
        str | None,
        option("I/N", "Score share I of N of the tasks, with 1/N of the limits; see `merge`."),
    ] = None,
    processes: Annotated[
        int | None, option("N", "Score in N processes of this machine.", min=1)
    ] = None,
    engine: Annotated[
        Literal["ray"] | None, option(None, "Score on a cluster of Ray (extra `ray`).")
    ] = None,
    address: Annotated[
        str | None, option("A", "Address of the cluster.", show_default="one on this machine")
    ] = None,
    shards: Annotated[
        int | None, option("N", "Tasks of Ray.", show_default="its cores", min=1)
    ] = None,
    branch: Annotated[Path | None, option("OLD", "Reuse unchanged verdicts of run OLD.")] = None,
    rewards_from: Annotated[
        list[Path] | None, option("RUN", "Evaluate a model that was trained on the rewards of RUN.")
    ] = None,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    allow_files_outside: AllowFilesOutsideOption = False,
    gate: GateConditionsOption = None,
    json: JsonOption = False,
) -> None:
    """Score responses and store every reward with its full trace.

    Everything is read and planned before anything is written. The same command on the same RUN resumes it, also after
    a kill or a power cut. With other files, config, model or evaluators it is refused; `--branch OLD` then creates a
    run that reuses all verdicts of OLD with the same question, evaluator, model and responses, and requests the rest.

    With --prompt-column and --response-column, TASKS is a table: each row is a task with one response in each response
    column, or with --group-by one of several rows of a task. The other columns become labels of the responses. A file
    of chats, with `{"messages": […]}` in each line, needs no option: what follows the last user's message is judged.

    --set changes the config as `rescore --set` does, such as reward.steps=0 or evaluators.0.params.shots=3.

    With --rewards-from the run is an evaluation, like `purpose` in the config: a judge that gave the training rewards
    is refused, unless `purpose.same_judge` is `allow`.

    --processes N scores N shards at once, in processes of their own, and merges them into RUN: the rewards are those of
    one process. --engine ray does so on a cluster whose machines share the folders of TASKS and RUN. --shard I/N scores
    one of N shards into a run of its own, for a batch system; `jurygraph merge` makes one run of them. Limits and rates
    are divided by N.

    --gate takes conditions on the counts responses, failed and degraded, on mean, and on the shares coverage,
    error_rate and unsupported, joined by `,` or `and`. Failed rewards do not pass without a condition on `failed`.

    Exit codes: 0 done; 1 done, but some rewards failed, or a threshold was missed; 2 invalid config or input, nothing
    written; 3 inconclusive: too many failures of infrastructure (the command that repeats them is printed), or the
    server was away too long or refused the key, the model or all first requests, resumable; 4 --max-cost or --max-calls
    reached, resumable; 130 interrupted, resumable. Output of evaluators goes to standard error.

    \b
    Example:
        jurygraph score tasks.jsonl --out run
        jurygraph score tasks.jsonl.gz --config jury.yaml --responses answers.jsonl --dry-run
        jurygraph score answers.csv --prompt-column question --response-column answer --out run
        jurygraph score tasks.jsonl --set rubric.kappa=2 --set calls.concurrency=4 --out run
        jurygraph score tasks.jsonl --config stricter.yaml --out run2 --branch run --gate "mean>=0.8, failed<=2"
    """
    from jurygraph.sources import Shard

    if any(setting.startswith("model=") for setting in settings or ()):
        # a preset is another one with a model, and settings are of the expanded one
        raise InputError("--set model: is set before a preset is expanded; name it with --model")
    columns = build_table_columns(
        tasks,
        no_prompt=no_prompt,
        prompt=prompt_column,
        response=response_column,
        reference=reference_column,
        rubric=rubric_column,
        id=id_column,
        group_by=group_by,
        agent=agent_column,
        messages=messages_column,
        response_from=response_from,
        context=context_column,
        workspace=workspace_column,
        group=group_column,
    )
    options = ScoreOptions(
        tasks=tasks,
        columns=columns,
        config=config,
        settings=settings or (),
        responses=responses,
        profiles_from=profiles_from,
        edges_from=edges_from,
        model=model,
        limit=limit,
        processes=processes,
        engine=engine,
        address=address,
        shards=shards,
        shard=None if shard is None else Shard.parse(shard),
        max_cost=max_cost,
        max_calls=max_calls,
        branch=branch,
        run=run or _choose_unused_folder(dry_run),
        rewards_from=rewards_from or (),
        allow_files_outside=allow_files_outside,
        dry_run=dry_run,
    )
    raise typer.Exit(_score(options, gate, json))


def _choose_unused_folder(dry_run: bool) -> Path:
    """Return a folder that does not exist, so that a dry run estimates a new run. Raises `InputError` for others."""
    if not dry_run:
        raise InputError(
            "--out: is missing; name the folder of the run, or estimate the requests with --dry-run"
        )
    import tempfile  # imported lazily, like uuid: `--help` needs neither
    import uuid

    return Path(tempfile.gettempdir(), uuid.uuid4().hex)


def _score(options: ScoreOptions, gate: Sequence[str] | None, as_json: bool) -> ExitCode:
    from jurygraph.cli.sharded_scoring import refuse_begun_shards, score_in_shards
    from jurygraph.runs.reports.gate import parse_ci_thresholds
    from jurygraph.runs.reports.summary import THRESHOLD_FIGURE_NAMES

    thresholds = parse_ci_thresholds(gate, THRESHOLD_FIGURE_NAMES, _GATE_OPTION_EXAMPLE)
    if options.engine is None and (options.address or options.shards):
        raise InputError("--address and --shards: are of --engine ray; use --processes N")
    if options.engine and options.processes is not None:
        raise InputError("--processes: is of this machine; leave it out, or leave out --engine")
    if options.dry_run:
        with redirect_stdout_to_stderr(), open_job(options) as opened_job, open_runner() as runner:
            expected = forecast_remaining(opened_job, runner)
        print_forecast(expected, as_json, options.branch)
        return ExitCode.SUCCESS
    with redirect_stdout_to_stderr():
        if options.processes or options.engine:
            work = score_in_shards(options)
        else:
            refuse_begun_shards(options)
            work = score_tasks(options)
    summary = work.summary
    _print_score_result(options, work, as_json)
    code = _choose_exit_code(options, summary, work.jury)
    if thresholds and code in (ExitCode.SUCCESS, ExitCode.SOME_FAILED):
        has_missed_conditions = print_missed_conditions(thresholds, summary.figures)
        has_threshold_for_failures = any(threshold.name == "failed" for threshold in thresholds)
        has_too_many_failures = summary.failed > 0 and not has_threshold_for_failures
        code = ExitCode.SUCCESS
        if has_missed_conditions or has_too_many_failures:
            code = ExitCode.SOME_FAILED
    is_evidence_required = work.jury.config.safety.evidence == "required"
    if is_evidence_required and summary.findings.warning is not None:
        print_message(summary.findings.warning)
        cached_reply_count = summary.bill.costs_by_source["cached"].number
        if cached_reply_count:
            print_message(
                f"{cached_reply_count} replies came from the cache; to call a changed judge: add "
                "`--set calls.cache=false` "
                "and name another --out"
            )
    return code


_GATE_OPTION_EXAMPLE = '"mean>=0.8, failed<=2"'


def _print_score_result(options: ScoreOptions, work: ScoredWork, as_json: bool) -> None:
    from jurygraph.runs.run import Run
    from jurygraph.views.juries import describe_jury_votes

    summary = work.summary
    requests = work.requests
    run = shell_quote(options.run)
    lines = [*format_result_lines(summary), COVERAGE_LEGEND, *format_request_lines(requests)]
    if summary.tasks < work.task_count:
        lines.append(f"{summary.tasks} of {work.task_count} tasks (--limit)")
    has_transient_failures = any(row.is_transient for row in summary.failures)
    content = {
        "run": str(options.run),
        **summary.to_json(),
        "requests": requests and requests.to_json(),
        "retry_command": options.retry_command if has_transient_failures else None,
    }
    print_report(as_json, content, lines)
    if summary.lowest is not None:
        print_message(f"all rewards:     jurygraph show {run}")
        print_messages(format_lowest_reward_lines(options.run, summary.lowest))
    print_messages(summary.gates.describe())
    if any(use.fold == "majority" for use in work.jury.config.evaluators):
        with Run.open(options.run) as scored_run:
            print_messages(filter(None, [describe_jury_votes(scored_run)]))
    # those that stop good answers to some tasks (docs/safety.md); what the others stop has no content
    for gate in ("reference-copy", "addresses-grader"):
        if 20 * summary.gates.numbers[gate] > summary.responses:
            other_gates = [name for name in work.jury.config.safety.gates if name != gate]
            setting = shell_quote(f"safety.gates=[{', '.join(other_gates)}]")
            print_message(
                f"if what {gate} stopped (`show --status gated`) is honest, have it judged:  "
                f"{options.retry_command} --set {setting}"
            )
    if summary.judged_differently:
        print_message(
            f"the judges answered {summary.judged_differently} of {summary.judged_by_several} "
            f"questions differently: jurygraph show {run} --sort -disagreement "
            "--columns reward,disagreement"
        )
        print_message(f"who differs from whom: jurygraph study reliability {run}")
    if len(summary.agents) > 1:
        print_message(f"who is better:   jurygraph study ranking {run}")


def _choose_exit_code(options: ScoreOptions, summary: "Summary", jury: "Jury") -> ExitCode:
    code = ExitCode.SUCCESS
    max_error_rate = jury.config.failure.max_error_rate
    if summary.error_rate > max_error_rate:
        print_inconclusive_run(summary.error_rate, max_error_rate)
        code = ExitCode.INCONCLUSIVE
    elif summary.failed:
        share = f"{summary.failed} of {summary.responses} rewards failed and have no value"
        min_coverage = jury.config.failure.min_coverage
        causes = [f"each needs {min_coverage:g} of its weight judged (failure.min_coverage)"]
        if summary.failed == summary.responses and not summary.failures:
            causes = summary.unanswered[:1]
        print_message("; ".join([share, *causes]))
        print_messages(_advise_settings(options, summary, jury.config))
        print_messages(filter(None, [summary.left_out.warning]))
        code = ExitCode.SOME_FAILED
    for problem, has_model_replies in jury.gateways.problems.items():
        command = options.fresh_command if has_model_replies else options.retry_command
        print_message(f"{problem}: {command}")
    for row in summary.failures[:3]:
        example = shorten(row.message, 320)
        counts = [f"{name} {number}" for name, number in sorted(row.evaluators.items())]
        counts += [f"judge {name} {number}" for name, number in sorted(row.judges.items())]
        label = "failed verdicts"
        if row.cause == "evaluator":
            label = "evaluator errors"
            example += f", of response {quote(row.response)} to task {quote(row.task)}"
        print_message(
            f"{label}: {row.verdicts} of kind {row.kind} ({', '.join(counts)}), for example: "
            f"{example}"
        )
    advice = _advise_retry(summary, has_model_problem=bool(jury.gateways.problems))
    if advice is not None:
        print_message(f"{advice}:  {options.retry_command}")
    kept_failure_count = sum(row.verdicts for row in summary.failures if not row.is_transient)
    if kept_failure_count and jury.gateways and not jury.gateways.problems:
        print_message(
            f"once their cause is mended, to ask anew for the {kept_failure_count} that this run "
            f"and a --branch keep:  {options.fresh_command}"
        )
    return code


def _advise_settings(options: ScoreOptions, summary: "Summary", config: "Config") -> Iterator[str]:
    """Yield the settings that fail rewards whose verdicts are there, each with the command that changes it."""
    discarded_counts = summary.discarded
    limit = config.panel.min_confidence
    # a question whose samples are all discarded has no majority either, and no `reduce` would help it
    undecided_counts = summary.undecided_counts - Counter(discarded_counts)
    undecided_count = 0
    for use in config.evaluators:
        if not use.judges and config.reward.get(use.known_as, not config.reward):
            undecided_count += undecided_counts[use.known_as]
    if undecided_count:
        command = options.format_rescore_command("panel.reduce=mean")
        yield (
            f"{format_count(undecided_count, 'question')} without a majority of samples; "
            f"to decide without a request:  {command}"
        )
    # a component of the config may have a limit of its own
    elif discarded_counts and config.components.keys().isdisjoint(discarded_counts):
        command = options.format_rescore_command(f"panel.min_confidence={limit / 2:g}")
        message = (
            f"{sum(discarded_counts.values())} verdicts count as not given, because their "
            f"confidence is below panel.min_confidence, {limit:g}; with another limit:  {command}"
        )
        if config.panel.reduce == "majority" and summary.undecided_counts:
            message += " --set panel.reduce=mean  (the latter if samples still have no majority)"
        yield message
    failed_judges = set(chain.from_iterable(row.judges for row in summary.failures))
    for position, use in enumerate(config.evaluators):
        is_few = 0 < 2 * len(failed_judges.intersection(use.judges)) < len(use.judges)
        if is_few and use.fold != "majority":
            command = options.format_rescore_command(f"evaluators.{position}.fold=majority")
            yield (
                f"a judge of {use.known_as} that did not answer leaves less of the weight judged "
                f"than failure.min_coverage, {config.failure.min_coverage:g}; lower it, or count "
                f"what most judges say:  {command}"
            )


def _advise_retry(summary: "Summary", has_model_problem: bool) -> str | None:
    """Return which failures a retry repeats, and what comes before it; None if it would repeat none."""
    error_count = 0
    retryable_failure_count = 0
    permanent_failure_count = 0
    for row in summary.failures:
        if row.cause == "evaluator":
            error_count += row.verdicts
        if row.may_succeed_now:
            retryable_failure_count += row.verdicts
        elif row.is_transient:
            permanent_failure_count += row.verdicts
    if error_count:
        return f"once the code of the evaluator is mended, to repeat its {error_count}"
    if retryable_failure_count:
        return (
            f"to repeat the {format_count(retryable_failure_count, 'failure')} that may succeed now"
        )
    if permanent_failure_count and not has_model_problem:
        failures = format_count(permanent_failure_count, "failure")
        return f"once what they name is changed, to repeat the {failures}"
    return None
