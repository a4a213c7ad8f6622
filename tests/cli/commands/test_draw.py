"""`jurygraph graph` and `schema`; how a rubric is drawn is tested in `test_mermaid.py`."""

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
        {"id": "wrong", "text": "It advises wrongly.", "weight": -1.0},
    ],
    "edges": [
        {"parent": "facts", "child": "advice", "kind": "strong", "reason": "advice rests on facts"},
        {"parent": "facts", "child": "wrong", "kind": "activation"},
    ],
}
ROUND = {
    **RUBRIC,
    "edges": [*RUBRIC["edges"], {"parent": "advice", "child": "facts", "kind": "weak"}],
}
"""A rubric whose edges form a cycle."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of one task and one of several."""
    monkeypatch.chdir(tmp_path)
    letter = {"id": "letter", "query": "Write it.", "rubric": RUBRIC}
    others = [{"id": "bare", "query": "?"}, {"id": "round", "query": "?", "rubric": ROUND}]
    write_tasks(tmp_path, [letter])
    write_tasks(tmp_path, [letter, *others], "several.jsonl")
    return tmp_path


@pytest.mark.usefixtures("project")
def test_the_graph_of_the_only_task_or_of_the_one_with_an_id(run: Command):
    ended = run("graph", "--task", "tasks.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("flowchart TD\n")
    for text in (
        "Rubric of task letter",
        "strong .2",
        "activation 0",
        "It advises on",
        "weight #8722;1",
    ):
        assert text in ended.out
    assert run("graph", "--task", "several.jsonl", "--id", "letter").out == ended.out


def test_graph_prints_the_state_machines(run: Command):
    for machine in ("prepare", "score", "annotate"):
        assert "graph TD;" in run("graph", machine).out
    assert run("graph").out == run("graph", "score").out


@all_rows(
    "options, message",
    [
        (("nonsense",), "nonsense"),
        (
            ("score", "--task", "tasks.jsonl"),
            "score and --task: each draws another graph; remove one",
        ),
        (("--id", "letter"), "--id: needs a file of tasks"),
        (
            ("--task", "several.jsonl"),
            "contains 3 tasks; choose one with --id: letter, bare, round",
        ),
        (
            ("--task", "several.jsonl", "--id", "lettre"),
            "there is no task 'lettre'; did you mean letter?",
        ),
        (
            ("--task", "several.jsonl", "--id", "bare"),
            "task 'bare' has no rubric; choose another task with --id",
        ),
        (
            ("--task", "several.jsonl", "--id", "round"),
            "several.jsonl, line 3: task 'round': the rubric graph has a cycle: facts -> advice -> facts; remove one",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    project: Path, run: Command, options: tuple[str, ...], message: str
):
    before = folder_contents(project)
    ended = run("graph", *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert folder_contents(project) == before


@all_rows(
    "document, fields",
    [
        ("tasks", {"id", "query", "rubric", "responses"}),
        ("responses", {"task", "id", "text"}),
        ("config", {"model", "evaluators", "reward", "failure"}),
        ("trace", {"task_id", "reward", "verdicts", "digest", "previous"}),
    ],
)
def test_schema_prints_json_schema(run: Command, document: str, fields: set[str]):
    assert fields <= set(json.loads(run("schema", document).out)["properties"])
