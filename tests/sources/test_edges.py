"""Files of reviewed rubric graphs: what tasks take from them, and what does not fit."""

import copy
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.schema import Edge, Rubric, Task
from jurygraph.sources import open_task_source
from jurygraph.sources.tasks import AnnotatedTasksFile, add_annotation_to_line
from tests.rows import all_rows

Lines = list[dict[str, Any]]
EDGE = {
    "parent": "facts",
    "child": "story",
    "kind": "strong",
    "model": "tiny",
    "reason": "it rests on it",
}


def line(name: str, **fields: Any) -> dict[str, Any]:
    criteria = [{"id": one, "text": f"It has {one}.", "weight": 1.0} for one in ("facts", "story")]
    rest = {"metadata": {"kept": 1.50}, "responses": [{"id": f"{name}/a", "text": "x"}]}
    return {
        "id": name,
        "query": f"Write {name}.",
        "rubric": {"criteria": criteria, **fields},
        **rest,
    }


TASKS = [line("one"), line("two")]
REVIEWED = copy.deepcopy(TASKS)
for reviewed_line in REVIEWED:
    reviewed_line["rubric"]["edges"] = [EDGE]
    reviewed_line["rubric"]["criteria"][0]["role"] = "core"


def write(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def read_rubrics(folder: Path, tasks: Lines, reviewed: Lines) -> list[Rubric]:
    graphs = write(folder / "graphs.jsonl", reviewed)
    with open_task_source(write(folder / "tasks.jsonl", tasks), edges=graphs) as source:
        return [task.rubric for task, _ in source.pairs() if task.rubric is not None]


def test_a_task_takes_roles_and_edges_and_keeps_its_own(tmp_path: Path) -> None:
    mine = {"parent": "facts", "child": "story", "kind": "weak"}
    first, second = read_rubrics(tmp_path, [line("one", edges=[mine]), line("two")], REVIEWED)
    assert [edge.kind for edge in (*first.edges, *second.edges)] == ["weak", "strong"]
    assert [one.role for one in second.criteria] == ["core", None]
    (other,) = read_rubrics(tmp_path, TASKS[:1], REVIEWED[:1])
    assert other.edges == (Edge.model_validate(EDGE),)


def test_a_line_changes_in_its_graph_alone() -> None:
    rubric = Task.model_validate(
        {name: REVIEWED[0][name] for name in ("id", "query", "rubric")}
    ).rubric
    assert rubric is not None
    (edge,) = rubric.edges
    expected = copy.deepcopy(REVIEWED[0])
    expected["rubric"]["edges"] = [edge.model_dump(mode="json", exclude_none=True)]
    assert json.loads(add_annotation_to_line(json.dumps(TASKS[0]).encode(), rubric)) == expected


def other_criterion(lines: Lines) -> None:
    lines[1]["rubric"]["criteria"][1]["text"] = "It is about something else."


def one_more_criterion(lines: Lines) -> None:
    lines[1]["rubric"]["criteria"].append({"id": "style", "text": "It has style.", "weight": 1.0})


def other_query(lines: Lines) -> None:
    lines[0]["query"] = "Write something else."


def no_own_edge(lines: Lines) -> None:
    lines[0]["rubric"]["edges"] = []


@all_rows(
    "edit, message",
    [
        (
            other_criterion,
            "graphs.jsonl, line 2, field rubric.criteria: criterion 'story' is not that of task 'two';",
        ),
        (
            one_more_criterion,
            "line 2, field rubric.criteria: criterion 'style' is not that of task 'two';",
        ),
        (
            other_query,
            "line 1, field query: is not that of task 'one', and the graph was made for it",
        ),
        (
            no_own_edge,
            "line 1, field rubric.edges: lacks facts -> story, which task 'one' defines itself",
        ),
        (Lines.clear, "graphs.jsonl: the file is empty"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(
    edit: Callable[[Lines], None], message: str, tmp_path: Path
) -> None:
    mine = {"parent": "facts", "child": "story", "kind": "weak"}
    reviewed = copy.deepcopy(REVIEWED)
    edit(reviewed)
    with pytest.raises(InputError) as refused:
        read_rubrics(tmp_path, [line("one", edges=[mine]), line("two")], reviewed)
    assert message in str(refused.value)


def test_a_task_that_differs_in_more_than_its_graph_was_edited(tmp_path: Path) -> None:
    lines = [(one["id"], json.dumps(one).encode()) for one in TASKS]
    with closing(AnnotatedTasksFile(write(tmp_path / "graphs.jsonl", REVIEWED))) as graphs:
        graphs.check_unchanged_tasks(lines)
    edited = copy.deepcopy(REVIEWED)
    edited[1]["rubric"]["criteria"][0]["weight"] = 7.0
    with (
        closing(AnnotatedTasksFile(write(tmp_path / "graphs.jsonl", edited))) as graphs,
        pytest.raises(
            InputError,
            match=r"graphs\.jsonl, line 2: task 'two' differs from that in TASKS in more than",
        ),
    ):
        graphs.check_unchanged_tasks(lines)
