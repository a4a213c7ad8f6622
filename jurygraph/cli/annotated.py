"""Output of `jurygraph annotate`: statistics and edges of the graphs, rejected edges, and the estimate of a dry run."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jurygraph.cli.by_task import Found, left_out, tell_left_out
from jurygraph.cli.text import number, out, out_json, say, table, visible

if TYPE_CHECKING:
    from jurygraph.agents.graph_annotator.statistics import GraphStatistics
    from jurygraph.runs.figures.bill import Tally
    from jurygraph.runs.figures.estimate import Estimate
    from jurygraph.schema import Rubric, Task

_MOST_LISTED = 12


class Forecast(NamedTuple):
    """Estimate of a dry run: only the requests that do not depend on earlier replies.

    Attributes:
        tasks: number of tasks with a rubric.
        waiting: number of rubrics whose criteria need roles first.
        estimate: calls, tokens and cost.
    """

    tasks: int
    waiting: int
    estimate: "Estimate"


def print_forecast(forecast: Forecast, as_json: bool) -> None:
    """Print the estimate of a dry run, as lines or as JSON."""
    from dataclasses import asdict

    from jurygraph.cli.outcome import print_estimate, say_dry

    say_dry()
    if as_json:
        model = asdict(forecast.estimate)
        out_json({"tasks": forecast.tasks, "roles_to_ask": forecast.waiting, "model": model})
        return
    out(f"{forecast.tasks} tasks with a rubric")
    print_estimate(forecast.estimate)
    if forecast.waiting:
        hangs = "which pairs are asked about hangs on these, and is not in it"
        out(f"{forecast.waiting} rubrics need roles first: {hangs}")


def print_graphs(outcomes: "list[Found[Rubric]]", file: str, sent: "Tally | None", as_json: bool) -> None:
    """Print statistics and edges of the graphs and the requests that were sent, as lines or as JSON."""
    from jurygraph.agents.graph_annotator.statistics import graph_statistics
    from jurygraph.cli.outcome import request_lines

    statistics = graph_statistics(one.found for one in outcomes if one.found is not None)
    if as_json:
        graphs = [_graph_json(one.task, one.found) for one in outcomes if one.found is not None]
        requests = None if sent is None else sent.plain()
        content = {
            "statistics": statistics.plain(),
            "graphs": graphs,
            "left_out": left_out(outcomes),
            "requests": requests,
        }
        out_json({"tasks_file": file, **content})
        return
    for line in (*_statistics_table(statistics), *_edge_lines(outcomes), *request_lines(sent)):
        out(line)


def _graph_json(task: "Task", rubric: "Rubric") -> dict[str, Any]:
    roles = {one.id: one.role for one in rubric.criteria}
    edges = [edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges]
    annotation_fields = (
        {} if rubric.annotation is None else rubric.annotation.model_dump(mode="json", exclude={"roles", "seen"})
    )
    return {"task": task.id, "roles": roles, "edges": edges, **annotation_fields}


def _statistics_table(statistics: "GraphStatistics") -> list[str]:
    rows = [
        ["rubrics", str(statistics.rubrics)],
        ["criteria per rubric", number(statistics.criteria)],
        ["candidate edges per rubric", number(statistics.candidates)],
        ["retained edges per rubric", number(statistics.edges)],
        ["update size (criteria + edges)", number(statistics.update_size)],
        ["rubrics with an edge", "-" if statistics.non_empty is None else f"{statistics.non_empty:.2%}"],
        ["invalid answers per rubric", number(statistics.invalid)],
    ]
    return table(["graphs", ""], rows)


def _edge_lines(outcomes: "list[Found[Rubric]]") -> Iterator[str]:
    """Return a table of the first edges of all graphs; the output file has every edge."""
    rows = [
        [one.task.id, edge.parent, edge.child, edge.kind, edge.reason, number(edge.confidence)]
        for one in outcomes
        if one.found is not None
        for edge in one.found.edges
    ]
    if rows:
        yield ""
        yield from table(["task", "parent", "child", "kind", "reason", "confidence"], rows[:_MOST_LISTED], left=5)
    if len(rows) > _MOST_LISTED:
        yield f"and {len(rows) - _MOST_LISTED} edges more"


def tell_lacking(outcomes: "list[Found[Rubric]]") -> int:
    """Print omitted tasks, criteria without a role, pairs without an answer and rejected edges; return how many
    tasks, criteria and pairs are missing.
    """
    missing = tell_left_out(outcomes)
    for task, rubric in ((one.task, one.found) for one in outcomes if one.found is not None):
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
        say(visible(f"{label}: {entry}", 300))
    if len(listed) > 3:
        say(f"{label}: and {len(listed) - 3} more, which stand in the file")
