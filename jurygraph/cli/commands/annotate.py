"""`jurygraph annotate` and `profiles`: what a model says of tasks alone, in files that a person can edit."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TypeVar

import typer

from jurygraph.agents.graph_annotator import graph_statistics, load_domain
from jurygraph.cli.interrupts import exit_on_interrupt, run_interruptible
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import (
    ConfigFileOption,
    DryRunOption,
    EdgesFileOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    TasksFileArgument,
    option,
)
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output
from jurygraph.cli.render.summary import format_estimate_lines, format_request_lines, print_dry_run
from jurygraph.cli.render.text import (
    escape_line,
    format_table,
    print_message,
    print_report,
    progress,
)
from jurygraph.cli.streams import ExitCode, redirect_stdout_to_stderr
from jurygraph.concurrency import gather_in_order
from jurygraph.display import ProgressCallback, format_number
from jurygraph.errors import BudgetExceeded, ConfigError, InputError, ModelError, PlanError
from jurygraph.messages import shell_quote
from jurygraph.models.request import Fault
from jurygraph.runs.reports.bill import CallCosts, count_requests
from jurygraph.runs.reports.estimate import CallCostEstimator
from jurygraph.schema import AnnotationConfig, Config, Rubric, Task
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.task import Profiles, has_text_profile_only
from jurygraph.sources.tasks import (
    AnnotatedTasksFile,
    TaskLinesFile,
    add_annotation_to_line,
    profiles_line,
)

if TYPE_CHECKING:
    from jurygraph.jury import Jury

_MAX_WAITING_RESULTS = (
    8  # finished results that may wait for an earlier task, per task that runs at once
)

T = TypeVar("T")


class TaskResults(NamedTuple, Generic[T]):
    """The tasks with their results, the omitted tasks as JSON with line number and reason, and the requests sent."""

    found: list[tuple[Task, T]]
    omitted_tasks: list[JsonFields]
    requests: CallCosts | None = None

    def print_report(self, as_json: bool, content: JsonFields, lines: Iterable[str]) -> None:
        """Print a report with the omitted tasks and the requests, and the totals to standard error."""
        requests = self.requests and self.requests.to_json()
        content = {**content, "left_out": self.omitted_tasks, "requests": requests}
        print_report(as_json, content, [*lines, *format_request_lines(self.requests)])
        for task in self.omitted_tasks:
            print_message(f"omitted, line {task['line']}: {task['why']}")
        print_message(f"{len(self.found)} tasks written, {len(self.omitted_tasks)} omitted")


def annotate(
    tasks: TasksFileArgument,
    file: Annotated[str, option("F", "Output file.", "-o", "--out")],
    config: ConfigFileOption = None,
    model: ModelNameOption = None,
    edges_from: EdgesFileOption = None,
    domain: Annotated[
        str | None, option("D", "generic, medical, writing, legal, or a text file.")
    ] = None,
    votes: Annotated[int | None, option("K", "Samples of each answer.", min=1, max=15)] = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    json: JsonOption = False,
) -> None:
    """Annotate which criteria depend on which (GEAR), with a model.

    F gets a copy of TASKS with the annotated graphs. The model sees the query, the rubric and the field of the
    task, never a response. Each criterion gets a role; pairs whose roles allow an edge are sent to the model,
    twelve per request. Edges that are invalid, contradict the roles or close a cycle are rejected, and recorded in
    F with the reason. Roles and edges given in TASKS are kept. Edit F as you like.

    Graphs that F, or the file of --edges-from, already has are kept, and only changes since are sent to the model. If
    TASKS changed, choose another F and pass the old one with --edges-from.

    Exit codes: 0 done; 1 done, but some tasks, criteria or pairs have no answer; 2 invalid config or input; 3 the model
    could not be reached; 4 budget reached; 130 interrupted. Except with 0 and 1 nothing is written, and replies are
    kept in the cache.

    \b
    Example:
        jurygraph annotate tasks.jsonl --config jury.yaml --domain writing --votes 3 --out graphs.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --edges-from graphs.jsonl --out run
    """
    refuse_unwritable(file, tasks)
    annotation_overrides: JsonFields = {}
    if domain is not None:
        annotation_overrides["domain"] = domain
    if votes is not None:
        annotation_overrides["votes"] = votes
    with (
        redirect_stdout_to_stderr(),
        _open_jury(
            config,
            tasks,
            model=model,
            dry_run=dry_run,
            annotation_overrides=annotation_overrides,
            max_cost=max_cost,
            max_calls=max_calls,
        ) as jury,
        TaskLinesFile(
            tasks, lambda task: task.rubric is not None, jury.config.task_defaults
        ) as lines,
    ):
        if not len(lines):
            raise InputError(
                f"{lines.file_digest.name}: no task has a `rubric` to annotate; add criteria"
            )
        existing_graphs = _read_existing_graphs(lines, edges_from, file)
        if dry_run:
            request_estimate = _estimate_requests(jury, lines, existing_graphs)
        else:
            results = _write_annotated_rubrics(jury, lines, existing_graphs, file)
    if dry_run:
        print_dry_run(json, *request_estimate)
        return
    statistics = graph_statistics(graph for _, graph in results.found)
    graphs = [
        {"task": task.id, "rubric": graph.model_dump(mode="json")} for task, graph in results.found
    ]
    content = {"tasks_file": file, "statistics": statistics, "graphs": graphs}
    rows = [[name.replace("_", " "), value] for name, value in statistics.items()]
    results.print_report(json, content, format_table(["of a rubric, on average", ""], rows))
    records = [graph.annotation for _, graph in results.found if graph.annotation is not None]
    missing = sum(len(record.unassigned) + len(record.unanswered) for record in records)
    if missing:
        print_message(f"{missing} criteria or pairs have no answer; {file} lists them")
    if tasks != "-":
        print_message(
            f"next: jurygraph score {shell_quote(tasks)} --edges-from {shell_quote(file)} --out run"
        )
    raise typer.Exit(ExitCode.SOME_FAILED if missing or results.omitted_tasks else ExitCode.SUCCESS)


@contextmanager
def _open_jury(
    config: Path | None,
    tasks: str,
    *,
    model: str | None,
    dry_run: bool,
    annotation_overrides: JsonFields,
    max_cost: float | None,
    max_calls: int | None,
) -> "Iterator[Jury]":
    """Open the jury of the config; without a config, a jury with only the model and the evaluator `criteria`.

    `annotation_overrides` are settings of the annotation. Raises ConfigError if there is neither a config nor a model,
    or if the model is none.
    """
    from jurygraph.jury import Jury

    if "domain" in annotation_overrides:
        load_domain(annotation_overrides["domain"], "--domain")

    def apply_overrides(loaded_config: Config) -> Config:
        annotation = (loaded_config.annotation or AnnotationConfig()).model_copy(
            update=annotation_overrides
        )
        return loaded_config.model_copy(update={"annotation": annotation})

    try:
        path = config or find_config(tasks)
    except ConfigError:
        if model is None:
            raise
        minimal_config = Config.model_validate({"model": model, "evaluators": ["criteria"]})
        opened_jury: AbstractContextManager[Jury] = Jury(
            apply_overrides(minimal_config), max_cost=max_cost, max_calls=max_calls
        )
    else:
        opened_jury = open_jury(
            path, model, dry_run, apply_overrides, max_cost=max_cost, max_calls=max_calls
        )
    with opened_jury as jury:
        if jury.gateway is None:
            raise ConfigError(
                "model: annotation needs a model; name one in the config or with --model"
            )
        yield jury


def _read_existing_graphs(
    lines: TaskLinesFile, edges_file: str | None, file: str
) -> dict[str, Rubric]:
    """Return the rubrics that already have a graph, by task id: from --edges-from, or from an earlier run.

    Raises InputError if the output file exists and --edges-from names another file, or if a graph does not match TASKS.
    """
    if file == "-":
        raise InputError(
            "--out -: expected a file, because the next command reads the graphs from it; name one"
        )
    earlier = file if os.path.isfile(file) and os.path.getsize(file) else None
    if edges_file is None and earlier is None:
        return {}
    with AnnotatedTasksFile(edges_file or file) as graphs:
        graphs.refuse_unknown(lines.ids.__contains__, lines.ids, "leave the line out")
        if earlier is not None and (edges_file is None or os.path.samefile(edges_file, earlier)):
            graphs.check_unchanged_tasks(lines.iter_raw_lines())
            print_message(
                f"{file} exists: its graphs are kept, and only changes are sent to the model"
            )
        elif earlier is not None:
            raise InputError(
                f"{file}: exists, and --edges-from names another file; name a new output file"
            )
        rubrics = {}
        for name in lines.ids:
            entry = graphs.get(name)
            if entry is not None and entry.rubric is not None:
                rubrics[name] = entry.rubric
        return rubrics


def _estimate_requests(
    jury: "Jury", lines: TaskLinesFile, existing_graphs: Mapping[str, Rubric]
) -> tuple[JsonFields, list[str]]:
    """Estimate the requests that do not depend on earlier replies, without sending any; return JSON and lines."""
    from jurygraph.planner import Planner

    planner = Planner(jury)
    cost_estimator = CallCostEstimator(jury.gateways)
    with asyncio.Runner() as runner:
        for _, task in lines.tasks():
            graph = existing_graphs.get(task.id)
            _, requests = runner.run(planner.aestimate_annotation(task, graph))
            cost_estimator.add(requests)
        runner.run(jury.gateways.close())
    estimate = cost_estimator.estimate()
    text = [f"{len(lines)} tasks with a rubric", *format_estimate_lines(estimate)]
    return {"tasks": len(lines), "model": estimate.to_json()}, text


def _write_annotated_rubrics(
    jury: "Jury", lines: TaskLinesFile, existing_graphs: Mapping[str, Rubric], file: str
) -> TaskResults[Rubric]:
    """Annotate every rubric, and write every line of TASKS with its graph if there is one; return all results.

    Raises InputError if the file existed and a task was omitted: the file may hold a graph of that task.
    """
    from jurygraph.planner import Planner

    is_new_file = not os.path.exists(file)
    planner = Planner(jury)

    def annotate_task(task: Task) -> Awaitable[Rubric | None]:
        return planner.aannotate(task, existing_graphs.get(task.id))

    results = _annotate_selected_tasks(jury, lines, annotate_task, "annotating")
    if results.omitted_tasks and not is_new_file:
        problem = "line {line} was omitted: {why}".format_map(results.omitted_tasks[0])
        raise InputError(f"{file}: not overwritten, because {problem}")
    graphs = {task.id: graph for task, graph in results.found}
    write_output(file, compress_lines(file, _add_graphs_to_lines(lines, graphs)))
    return results


def _add_graphs_to_lines(lines: TaskLinesFile, graphs: Mapping[str, Rubric]) -> Iterator[bytes]:
    for name, line in lines.iter_raw_lines():
        if name in graphs:
            line = add_annotation_to_line(line, graphs[name])
        yield line + b"\n"


def profiles(
    tasks: TasksFileArgument,
    file: Annotated[str, option("PROFILES", "Output file.", "-o", "--out")],
    config: ConfigFileOption = None,
    model: ModelNameOption = None,
    json: JsonOption = False,
) -> None:
    """Read profiles in text as constraints, with a model.

    The constraints and the tensions between stakeholders are written to PROFILES, one task per line. Only profiles of
    stakeholders without constraints in TASKS are read. Each constraint has a `quote` from the profile; constraints
    without one are dropped and listed. Edit PROFILES as you like, and pass it to `jurygraph score --profiles-from`. A
    task with a profile that cannot be read is omitted and named. Running the same command again uses the cache.

    Exit codes: 0 done; 1 done, but some tasks were omitted; 2 invalid config or input; 3 the model could not be
    reached; 4 budget reached; 130 interrupted. Except with 0 and 1 nothing is written.

    \b
    Example:
        jurygraph profiles tasks.jsonl --config jury.yaml --out profiles.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --profiles-from profiles.jsonl --out run
    """
    from jurygraph.planner import Planner

    refuse_unwritable(file, tasks)
    with (
        redirect_stdout_to_stderr(),
        open_jury(config or find_config(tasks), model) as jury,
        TaskLinesFile(
            tasks,
            lambda task: any(map(has_text_profile_only, task.stakeholders)),
            jury.config.task_defaults,
        ) as lines,
    ):
        results = _annotate_selected_tasks(
            jury, lines, Planner(jury).aread_profiles, "reading profiles"
        )
    write_output(file, [profiles_line(task, result) for task, result in results.found])
    entries = []
    for task, result in results.found:
        entry = {"task": task.id, **result.model_dump(mode="json"), "dropped": result.dropped}
        entries.append(entry)
    content = {"profiles_file": file, "profiles": entries}
    results.print_report(json, content, _format_profile_lines(results.found))
    if not results.found and not results.omitted_tasks:
        print_message("no stakeholder has only a profile in text: there was nothing to read")
    elif tasks != "-":
        print_message(
            f"next: jurygraph score {shell_quote(tasks)} --profiles-from {shell_quote(file)} "
            "--out run"
        )
    raise typer.Exit(ExitCode.SOME_FAILED if results.omitted_tasks else ExitCode.SUCCESS)


def _format_profile_lines(results: Sequence[tuple[Task, Profiles]]) -> Iterator[str]:
    for task, result in results:
        for tension in result.tensions:
            people_text = " and ".join(tension.between)
            strength = format_number(tension.strength)
            line = f"{task.id}: tension between {people_text}: {strength}, {tension.reason}"
            yield escape_line(line, 300)
        for reason in result.dropped:
            yield escape_line(f"{task.id}: dropped of {reason}", 300)


def _annotate_selected_tasks(
    jury: "Jury",
    lines: TaskLinesFile,
    request: Callable[[Task], Awaitable[T | None]],
    activity_label: str,
) -> TaskResults[T]:
    """Return the results for all selected tasks, in the order of the file, with a progress bar labelled
    `activity_label`.

    Raises ModelError and BudgetExceeded; Ctrl-C exits with code 130.
    """
    results = TaskResults[T]([], [])

    def request_summary() -> str:
        return "; ".join(format_request_lines(count_requests(jury)))

    async def request_all_tasks(report: ProgressCallback) -> None:
        pending_tasks = (
            asyncio.create_task(_request_task_result(lines.file_digest.name, line, task, request))
            for line, task in lines.tasks()
        )
        try:
            async with aclosing(
                gather_in_order(pending_tasks, jury.max_concurrent_groups, _MAX_WAITING_RESULTS)
            ) as outcomes:
                async for line, task, result, omission_reason in outcomes:
                    if omission_reason is not None:
                        results.omitted_tasks.append(
                            {"task": task.id, "line": line, "why": omission_reason}
                        )
                    elif result is not None:
                        results.found.append((task, result))
                    report(1)
        except (ModelError, BudgetExceeded):
            # replies that were paid for go to the cache, for the next run
            await jury.gateways.wait_for_pending()
            raise
        finally:
            await jury.gateways.close()

    with (
        exit_on_interrupt(
            "interrupted; nothing was written. Run the same command again: "
            "it continues from the cache"
        ),
        progress(activity_label, len(lines), "tasks", request_summary) as report,
        asyncio.Runner() as runner,
    ):
        run_interruptible(runner, request_all_tasks(report), jury.context.threads)
    return results._replace(requests=count_requests(jury))


async def _request_task_result(
    name: str, line: int, task: Task, request: Callable[[Task], Awaitable[T | None]]
) -> tuple[int, Task, T | None, str | None]:
    """Return line, task, result, and the reason if the task is omitted.

    Only an unreachable model or an exhausted budget fails the whole command.
    """
    try:
        return line, task, await request(task), None
    except PlanError as error:
        return line, task, None, str(error)
    except (ModelError, BudgetExceeded) as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return line, task, None, str(error)
        error.args = (
            f"{name}, line {line}: {error}; nothing was written; run the same command again: "
            "it continues from the cache",
        )
        raise
