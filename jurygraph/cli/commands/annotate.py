"""`jurygraph annotate`: have a model annotate rubric graphs, and write them to a file that a person can edit."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurygraph.agents.graph_annotator import load_domain
from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, DryRun, EdgesFrom, MaxCalls, MaxCost, ModelName, TasksFile, option
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output
from jurygraph.cli.render.summary import estimate_lines, print_dry_run
from jurygraph.cli.render.text import escape_line, format_table, print_message, shell_quote, table_section
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.cli.task_requests import TaskResults, run_each
from jurygraph.errors import ConfigError, InputError
from jurygraph.runs.reports.estimate import Estimator
from jurygraph.schema import AnnotationConfig, Config, Rubric, Task
from jurygraph.sources.reviewed_graphs import EdgesFile, annotate_line
from jurygraph.sources.tasks import TaskLines

if TYPE_CHECKING:
    from jurygraph.jury import Jury

_MAX_EDGES = 12
_MAX_REASONS = 3


def annotate(
    tasks: TasksFile,
    file: Annotated[str, option("F", "Output file.", "-o", "--out")],
    config: ConfigFile = None,
    model: ModelName = None,
    edges_from: EdgesFrom = None,
    domain: Annotated[str | None, option("D", "generic, medical, writing, legal, or a text file.")] = None,
    votes: Annotated[int | None, option("K", "Samples of each answer.", min=1, max=15)] = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    json: AsJson = False,
) -> None:
    """Annotate which criteria depend on which (GEAR), with a model.

    F gets a copy of TASKS with the annotated graphs. The model sees the query, the rubric and the field of the
    task, never a response. Each criterion gets a role; pairs whose roles allow an edge are sent to the model,
    twelve per request. Edges that are invalid, contradict the roles or close a cycle are rejected, and recorded in
    F with the reason. Roles and edges given in TASKS are kept. Edit F as you like, and score F itself or pass it to
    `jurygraph score --edges-from`.

    Graphs that F, or the file of --edges-from, already has are kept, and only changes since are sent to the model;
    running the same command again sends nothing. If TASKS changed, choose another F and pass the old one with
    --edges-from; to annotate everything again, choose another F without --edges-from.

    Exit codes: 0 done; 1 done, but some tasks, criteria or pairs have no answer; 2 invalid config or input; 3 the model
    could not be reached; 4 budget reached; 130 interrupted. Except with 0 and 1 nothing is written, and replies are
    kept in the cache.

    \b
    Example:
        jurygraph annotate tasks.jsonl --config jury.yaml --domain writing --votes 3 --out graphs.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --edges-from graphs.jsonl --out run
    """
    from jurygraph.agents.graph_annotator import graph_statistics

    refuse_unwritable(file, tasks)
    overrides = {name: value for name, value in (("domain", domain), ("votes", votes)) if value is not None}
    with (
        redirect_stdout_to_stderr(),
        _open_jury(config, tasks, model, dry_run, overrides, max_cost, max_calls) as jury,
        TaskLines(tasks, lambda task: task.rubric is not None, jury.config.task_defaults) as lines,
    ):
        if not len(lines):
            raise InputError(f"{lines.file_digest.name}: no task has a `rubric` to annotate; add criteria")
        if dry_run:
            forecast = _estimate_requests(jury, lines, _read_existing_graphs(lines, edges_from, file))
        else:
            results = _annotate_tasks(jury, lines, edges_from, file)
    if dry_run:
        print_dry_run(json, *forecast)
        return
    statistics = graph_statistics(graph for _, graph in results.found)
    graphs = [_graph_json(task, graph) for task, graph in results.found]
    content = {"tasks_file": file, "statistics": statistics, "graphs": graphs}
    results.print_report(json, content, _graph_tables(statistics, results.found))
    missing = len(results.omitted) + _print_missing(results.found)
    if tasks != "-":
        print_message(f"next: jurygraph score {shell_quote(tasks)} --edges-from {shell_quote(file)} --out run")
    raise typer.Exit(ExitCode.SOME_FAILED if missing else ExitCode.DONE)


def _estimate_requests(
    jury: "Jury", lines: TaskLines, existing_graphs: Mapping[str, Rubric]
) -> tuple[dict[str, Any], list[str]]:
    """Estimate the requests that do not depend on earlier replies, without sending any; return JSON and lines."""
    from jurygraph.planner import Planner

    planner = Planner(jury)
    without_roles = 0
    estimator = Estimator(jury.gateways)
    with asyncio.Runner() as runner:
        for _, task in lines.tasks():
            _, requests = runner.run(planner.aestimate_annotation(task, existing_graphs.get(task.id)))
            lacks_reply = estimator.add(requests)
            without_roles += lacks_reply and all(request.prompt == "graph-roles" for request in requests)
        runner.run(jury.gateways.close())
    estimate = estimator.estimate()
    text = [f"{len(lines)} tasks with a rubric", *estimate_lines(estimate)]
    if without_roles:
        excluded = "the requests for their pairs depend on these and are not included"
        text.append(f"{without_roles} rubrics need roles first; {excluded}")
    return {"tasks": len(lines), "rubrics_without_roles": without_roles, "model": estimate.to_json()}, text


def _annotate_tasks(jury: "Jury", lines: TaskLines, edges_from: str | None, file: str) -> TaskResults[Rubric]:
    """Annotate every rubric, and write every line of TASKS with its graph if there is one; return all results.

    Raises InputError if the file existed and a task was omitted: the file may hold a graph of that task.
    """
    from jurygraph.planner import Planner

    is_new = not os.path.exists(file)
    planner = Planner(jury)
    existing = _read_existing_graphs(lines, edges_from, file)
    results = run_each(jury, lines, lambda task: planner.aannotate(task, existing.get(task.id)), "annotating")
    if results.omitted and not is_new:
        problem = "line {line} was omitted: {why}".format_map(results.omitted[0])
        raise InputError(f"{file}: not overwritten, because {problem}")
    graphs = {task.id: graph for task, graph in results.found}
    content = (annotate_line(raw, graphs[name]) if name in graphs else raw for name, raw in lines.raw_lines())
    write_output(file, compress_lines(file, (line + b"\n" for line in content)))
    return results


def _graph_json(task: Task, rubric: Rubric) -> dict[str, Any]:
    roles = {one.id: one.role for one in rubric.criteria}
    edges = [edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges]
    annotation = rubric.annotation
    details = {} if annotation is None else annotation.model_dump(mode="json", exclude={"roles", "seen"})
    return {"task": task.id, "roles": roles, "edges": edges, **details}


def _graph_tables(statistics: Mapping[str, float | None], graphs: Sequence[tuple[Task, Rubric]]) -> Iterator[str]:
    """Return tables of statistics and of the first edges of all graphs."""
    share = statistics["non_empty"]
    counts: list[list[object]] = [
        ["rubrics", statistics["rubrics"]],
        ["criteria per rubric", statistics["criteria"]],
        ["candidate edges per rubric", statistics["candidates"]],
        ["retained edges per rubric", statistics["edges"]],
        ["update size (criteria + edges)", statistics["update_size"]],
        ["rubrics with an edge", "-" if share is None else f"{share:.2%}"],
        ["invalid answers per rubric", statistics["invalid"]],
    ]
    yield from format_table(["graphs", ""], counts)
    rows = [
        [task.id, edge.parent, edge.child, edge.kind, edge.reason, edge.confidence]
        for task, rubric in graphs
        for edge in rubric.edges
    ]
    header = ["task", "parent", "child", "kind", "reason", "confidence"]
    yield from table_section(header, rows, left=5, most=_MAX_EDGES)


def _print_missing(graphs: Sequence[tuple[Task, Rubric]]) -> int:
    """Print criteria without a role, pairs without an answer and rejected edges; return how many are missing."""
    missing = 0
    for task, rubric in graphs:
        record = rubric.annotation
        if record is None:
            continue
        missing += len(record.unassigned) + len(record.unanswered)
        entries = {
            "has no role": [f"{name} {why}" for name, why in record.unassigned.items()],
            "has no answer": [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered],
            "rejected": [f"{edge.parent} -> {edge.child} ({edge.kind}): {edge.why}" for edge in record.rejected],
        }
        for label, listed in entries.items():
            for entry in listed[:_MAX_REASONS]:
                print_message(escape_line(f"{task.id}: {label}: {entry}", 300))
            if len(listed) > _MAX_REASONS:
                print_message(f"{task.id}: {label}: and {len(listed) - _MAX_REASONS} more, listed in the file")
    return missing


def _open_jury(
    config: Path | None,
    tasks: str,
    model: str | None,
    dry_run: bool,
    overrides: dict[str, Any],
    max_cost: float | None,
    max_calls: int | None,
) -> "Jury":
    """Return the jury of the config; without a config, a jury with only the model and the evaluator `criteria`.

    `overrides` are settings of the annotation. Raises ConfigError if there is neither a config nor a model, or if the
    model is none.
    """
    from jurygraph.jury import Jury

    if "domain" in overrides:
        load_domain(overrides["domain"], "--domain")

    def with_overrides(loaded: Config) -> Config:
        annotation = (loaded.annotation or AnnotationConfig()).model_copy(update=overrides)
        return loaded.model_copy(update={"annotation": annotation})

    try:
        path = config or find_config(tasks)
    except ConfigError:
        if model is None:
            raise
        minimal = with_overrides(Config.model_validate({"model": model, "evaluators": ["criteria"]}))
        jury = Jury(minimal, max_cost=max_cost, max_calls=max_calls)
    else:
        jury = open_jury(path, model, dry_run, with_overrides, max_cost=max_cost, max_calls=max_calls)
    if jury.gateway is None:
        jury.close()
        raise ConfigError("model: annotation needs a model; name one in the config or with --model")
    return jury


def _read_existing_graphs(lines: TaskLines, edges_from: str | None, file: str) -> dict[str, Rubric]:
    """Return the rubrics that already have a graph, by task id: from --edges-from, or from an earlier run.

    Raises InputError if the output file exists and --edges-from names another file, or if a graph does not match TASKS.
    """
    if file == "-":
        raise InputError("--out -: expected a file, because the next command reads the graphs from it; name one")
    earlier = file if os.path.isfile(file) and os.path.getsize(file) else None
    if edges_from is None and earlier is None:
        return {}
    with closing(EdgesFile(edges_from or file)) as graphs:
        graphs.refuse_unknown(lines.ids.__contains__, lines.ids, "leave the line out")
        if earlier is not None and (edges_from is None or os.path.samefile(edges_from, earlier)):
            graphs.check_unchanged(lines.raw_lines())
            print_message(f"{file} exists: its graphs are kept, and only changes are sent to the model")
        elif earlier is not None:
            raise InputError(f"{file}: exists, and --edges-from names another file; name a new output file")
        entries = ((name, graphs.get(name)) for name in lines.ids)
        return {name: entry.rubric for name, entry in entries if entry is not None and entry.rubric is not None}
