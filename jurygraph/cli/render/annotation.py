"""Output of `jurygraph annotate`: statistics and edges of the graphs, rejected edges, and the estimate of a dry run."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jurygraph.cli.render.summary import print_dry_run_note, print_estimate, request_lines
from jurygraph.cli.render.text import (
    escape_line,
    format_table,
    print_json,
    print_message,
    print_result,
    print_result_lines,
)
from jurygraph.cli.task_requests import TaskOutcome, omitted_tasks_json, print_omitted_tasks

if TYPE_CHECKING:
    from jurygraph.agents.graph_annotator.graph import GraphStatistics
    from jurygraph.runs.reports.estimate import CallCosts, CallEstimate
    from jurygraph.schema import Rubric, Task

_MOST_LISTED = 12


class AnnotationEstimate(NamedTuple):
    """Estimate of a dry run: only the requests that do not depend on earlier replies.

    Attributes:
        tasks: number of tasks with a rubric.
        rubrics_without_roles: number of rubrics whose criteria need roles first.
        estimate: calls, tokens and cost.
    """

    tasks: int
    rubrics_without_roles: int
    estimate: "CallEstimate"


def print_forecast(forecast: AnnotationEstimate, as_json: bool) -> None:
    """Print the estimate of a dry run, as lines or as JSON."""
    from dataclasses import asdict

    print_dry_run_note()
    if as_json:
        model = asdict(forecast.estimate)
        print_json({"tasks": forecast.tasks, "rubrics_without_roles": forecast.rubrics_without_roles, "model": model})
        return
    print_result(f"{forecast.tasks} tasks with a rubric")
    print_estimate(forecast.estimate)
    if forecast.rubrics_without_roles:
        excluded = "the requests for their pairs depend on these and are not included"
        print_result(f"{forecast.rubrics_without_roles} rubrics need roles first; {excluded}")


def print_graphs(outcomes: "list[TaskOutcome[Rubric]]", file: str, tally: "CallCosts | None", as_json: bool) -> None:
    """Print statistics and edges of the graphs and the requests that were sent, as lines or as JSON."""
    from jurygraph.agents.graph_annotator.graph import graph_statistics

    statistics = graph_statistics(one.result for one in outcomes if one.result is not None)
    if as_json:
        graphs = [_graph_json(one.task, one.result) for one in outcomes if one.result is not None]
        requests = None if tally is None else tally.to_json()
        content = {
            "statistics": statistics.to_json(),
            "graphs": graphs,
            "left_out": omitted_tasks_json(outcomes),
            "requests": requests,
        }
        print_json({"tasks_file": file, **content})
        return
    print_result_lines([*_statistics_table(statistics), *_edge_lines(outcomes), *request_lines(tally)])


def _graph_json(task: "Task", rubric: "Rubric") -> dict[str, Any]:
    roles = {one.id: one.role for one in rubric.criteria}
    edges = [edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges]
    annotation_fields = (
        {} if rubric.annotation is None else rubric.annotation.model_dump(mode="json", exclude={"roles", "seen"})
    )
    return {"task": task.id, "roles": roles, "edges": edges, **annotation_fields}


def _statistics_table(statistics: "GraphStatistics") -> list[str]:
    rows: list[list[object]] = [
        ["rubrics", statistics.rubrics],
        ["criteria per rubric", statistics.criteria],
        ["candidate edges per rubric", statistics.candidates],
        ["retained edges per rubric", statistics.edges],
        ["update size (criteria + edges)", statistics.update_size],
        ["rubrics with an edge", "-" if statistics.non_empty is None else f"{statistics.non_empty:.2%}"],
        ["invalid answers per rubric", statistics.invalid],
    ]
    return format_table(["graphs", ""], rows)


def _edge_lines(outcomes: "list[TaskOutcome[Rubric]]") -> Iterator[str]:
    """Return a table of the first edges of all graphs; the output file has every edge."""
    rows = [
        [one.task.id, edge.parent, edge.child, edge.kind, edge.reason, edge.confidence]
        for one in outcomes
        if one.result is not None
        for edge in one.result.edges
    ]
    if rows:
        yield ""
        header = ["task", "parent", "child", "kind", "reason", "confidence"]
        yield from format_table(header, rows[:_MOST_LISTED], left=5)
    if len(rows) > _MOST_LISTED:
        yield f"and {len(rows) - _MOST_LISTED} more edges"


def print_missing(outcomes: "list[TaskOutcome[Rubric]]") -> int:
    """Print omitted tasks, criteria without a role, pairs without an answer and rejected edges; return how many
    tasks, criteria and pairs are missing.
    """
    missing = print_omitted_tasks(outcomes)
    for task, rubric in ((one.task, one.result) for one in outcomes if one.result is not None):
        record = rubric.annotation
        if record is None:
            continue
        missing += len(record.unassigned) + len(record.unanswered)
        _print_first_entries(f"{task.id}: has no role", [f"{name} {why}" for name, why in record.unassigned.items()])
        pairs = [f"{one.parent} -> {one.child} {one.why}" for one in record.unanswered]
        _print_first_entries(f"{task.id}: has no answer", pairs)
        rejected = [f"{one.parent} -> {one.child} ({one.kind}): {one.why}" for one in record.rejected]
        _print_first_entries(f"{task.id}: rejected", rejected)
    return missing


def _print_first_entries(label: str, entries: Iterable[str]) -> None:
    listed = list(entries)
    for entry in listed[:3]:
        print_message(escape_line(f"{label}: {entry}", 300))
    if len(listed) > 3:
        print_message(f"{label}: and {len(listed) - 3} more, listed in the file")
