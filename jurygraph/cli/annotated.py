"""What `jurygraph annotate` prints: the graphs' statistics and edges, what was rejected, and what would be asked."""

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
    """What would be asked, as far as that does not hang on a reply; `waiting` rubrics need roles first."""

    tasks: int
    waiting: int
    estimate: "Estimate"


def print_forecast(forecast: Forecast, as_json: bool) -> None:
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


def print_graphs(found: "list[Found[Rubric]]", file: str, sent: "Tally | None", as_json: bool) -> None:
    from jurygraph.agents.graph_annotator.statistics import graph_statistics
    from jurygraph.cli.outcome import request_lines

    statistics = graph_statistics(one.found for one in found if one.found is not None)
    if as_json:
        graphs = [_plain(one.task, one.found) for one in found if one.found is not None]
        requests = None if sent is None else sent.plain()
        content = {
            "statistics": statistics.plain(),
            "graphs": graphs,
            "left_out": left_out(found),
            "requests": requests,
        }
        out_json({"tasks_file": file, **content})
        return
    for line in (*_statistics(statistics), *_edges(found), *request_lines(sent)):
        out(line)


def _plain(task: "Task", rubric: "Rubric") -> dict[str, Any]:
    roles = {one.id: one.role for one in rubric.criteria}
    edges = [edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges]
    told = {} if rubric.annotation is None else rubric.annotation.model_dump(mode="json", exclude={"roles", "seen"})
    return {"task": task.id, "roles": roles, "edges": edges, **told}


def _statistics(found: "GraphStatistics") -> list[str]:
    rows = [
        ["rubrics", str(found.rubrics)],
        ["criteria per rubric", number(found.criteria)],
        ["candidate edges per rubric", number(found.candidates)],
        ["retained edges per rubric", number(found.edges)],
        ["update size (criteria + edges)", number(found.update_size)],
        ["rubrics with an edge", "-" if found.non_empty is None else f"{found.non_empty:.2%}"],
        ["invalid answers per rubric", number(found.invalid)],
    ]
    return table(["graphs", ""], rows)


def _edges(found: "list[Found[Rubric]]") -> Iterator[str]:
    """The first edges; all of them stand in the file."""
    rows = [
        [one.task.id, edge.parent, edge.child, edge.kind, edge.reason, number(edge.confidence)]
        for one in found
        if one.found is not None
        for edge in one.found.edges
    ]
    if rows:
        yield ""
        yield from table(["task", "parent", "child", "kind", "reason", "confidence"], rows[:_MOST_LISTED], left=5)
    if len(rows) > _MOST_LISTED:
        yield f"and {len(rows) - _MOST_LISTED} edges more"


def tell_lacking(found: "list[Found[Rubric]]") -> int:
    """What was rejected, what has no answer, and which tasks are left out; how much lacks an answer."""
    lacking = tell_left_out(found)
    for task, rubric in ((one.task, one.found) for one in found if one.found is not None):
        record = rubric.annotation
        if record is None:
            continue
        lacking += len(record.unassigned) + len(record.unanswered)
        _say_first(f"{task.id}: has no role", [f"{name} {why}" for name, why in record.unassigned.items()])
        pairs = [f"{one.parent} -> {one.child} {one.why}" for one in record.unanswered]
        _say_first(f"{task.id}: has no answer", pairs)
        wrong = [f"{one.parent} -> {one.child} ({one.kind}): {one.why}" for one in record.rejected]
        _say_first(f"{task.id}: rejected", wrong)
    return lacking


def _say_first(what: str, told: Iterable[str]) -> None:
    listed = list(told)
    for one in listed[:3]:
        say(visible(f"{what}: {one}", 300))
    if len(listed) > 3:
        say(f"{what}: and {len(listed) - 3} more, which stand in the file")
