"""`jurygraph graph` for the rubric of a task."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows
from tests.runs.sample_runs import write_tasks

RUBRIC: dict[str, Any] = {
    "criteria": [
        {"id": "facts", "text": "It states the facts.", "weight": 2.0},
        {"id": "advice", "text": "It advises on these facts.", "weight": 1.0},
        {"id": "thanks", "text": "It closes kindly.", "weight": 0.5},
        {"id": "wrong", "text": "It advises wrongly.", "weight": -1.0},
    ],
    "edges": [
        {"parent": "facts", "child": "advice", "kind": "strong", "reason": "advice rests on facts"},
        {"parent": "advice", "child": "thanks", "kind": "weak"},
        {"parent": "facts", "child": "wrong", "kind": "activation"},
    ],
}
ROUND = {**RUBRIC, "edges": [*RUBRIC["edges"], {"parent": "thanks", "child": "facts", "kind": "weak"}]}
"""A rubric whose edges form a cycle."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tasks.jsonl."""
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path, [{"id": "letter", "query": "Write it.", "rubric": RUBRIC}])
    return tmp_path


def write_several_tasks(folder: Path) -> Path:
    line = json.loads((folder / "tasks.jsonl").read_text())
    others = [{**line, "id": name, "responses": []} for name in ("note", "list")]
    return write_tasks(folder, [line, *others], "several.jsonl")


def test_the_graph_of_the_only_task(project: Path, run: Command):
    ended = run("graph", "--task", "tasks.jsonl")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("flowchart TD\n")
    for text in ("strong .2", "weak .6", "activation 0", "It advises on", "weight #8722;1"):
        assert text in ended.out


def test_one_of_several_tasks_is_chosen_by_id(project: Path, run: Command):
    write_several_tasks(project)
    assert "Rubric of task note" in run("graph", "--task", "several.jsonl", "--id", "note").out
    ended = run("graph", "--task", "several.jsonl")
    assert ended.code == 2
    assert "contains 3 tasks; choose one with --id: letter, note, list" in ended.err
    ended = run("graph", "--task", "several.jsonl", "--id", "lettre")
    assert ended.code == 2
    assert "there is no task 'lettre'; did you mean letter?" in ended.err


@all_rows(
    "options, text",
    [
        (("score", "--task", "tasks.jsonl"), "score and --task: each draws another graph; remove one"),
        (("--id", "letter"), "--id: needs a file of tasks"),
        (("--task", "tasks.jsonl", "-o", "./tasks.jsonl"), "./tasks.jsonl: is an input file"),
    ],
)
def test_contradictory_options_are_refused(project: Path, run: Command, options: tuple[str, ...], text: str):
    before = folder_contents(project)
    ended = run("graph", *options)
    assert ended.code == 2
    assert text in ended.err
    assert folder_contents(project) == before


@pytest.mark.parametrize(
    ("rubric", "text"),
    [
        (None, "task 't' has no rubric; choose another task with --id"),
        (
            ROUND,
            "odd.jsonl, line 2: task 't': the rubric graph has a cycle: facts -> advice -> thanks -> facts; "
            "remove one of these edges",
        ),
    ],
)
def test_a_task_without_a_graph_to_draw_is_refused(project: Path, run: Command, rubric: object, text: str):
    lines = [{"id": "other", "query": "?"}, {"id": "t", "query": "?", "rubric": rubric}]
    write_tasks(project, lines, "odd.jsonl")
    ended = run("graph", "--task", "odd.jsonl", "--id", "t")
    assert ended.code == 2
    assert text in ended.err
