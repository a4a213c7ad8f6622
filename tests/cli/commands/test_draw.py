"""`jurygraph graph` for the rubric of a task, alone and with the scores of a response."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows
from tests.runs.sample_runs import score, write_tasks
from tests.studies.rubric_drawing.scripted import RUBRIC, config, write

LETTERS = {
    "good": {"facts": 1.0, "advice": 0.9, "thanks": 1.0, "wrong": 0.0},
    "bluff": {"facts": 0.0, "advice": 0.9, "thanks": 1.0, "wrong": 0.7},
}

ROUND = {**RUBRIC, "edges": [*RUBRIC["edges"], {"parent": "thanks", "child": "facts", "kind": "weak"}]}
"""A rubric whose edges form a cycle."""


@pytest.fixture(scope="module")
def _scored_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    score(folder / "run", write(folder, LETTERS), config())
    return folder


@pytest.fixture
def scored_project(_scored_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with tasks.jsonl and its run."""
    shutil.copytree(_scored_project, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def write_several_tasks(folder: Path) -> Path:
    line = json.loads((folder / "tasks.jsonl").read_text())
    others = [{**line, "id": name, "responses": []} for name in ("note", "list")]
    return write_tasks(folder, [line, *others], "several.jsonl")


def test_the_graph_of_the_only_task(scored_project: Path, run: Command):
    ended = run("graph", "--task", "tasks.jsonl")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("flowchart TD\n")
    for text in ("strong .2", "weak .6", "activation 0", "It advises on", "weight #8722;1"):
        assert text in ended.out
    assert "#8594; q" not in ended.out


def test_one_of_several_tasks_is_chosen_by_id(scored_project: Path, run: Command):
    write_several_tasks(scored_project)  # the others have no responses
    assert "Rubric of task note" in run("graph", "--task", "several.jsonl", "--id", "note").out
    ended = run("graph", "--task", "several.jsonl")
    assert ended.code == 2
    assert "contains 3 tasks; choose one with --id: letter, note, list" in ended.err
    ended = run("graph", "--task", "several.jsonl", "--id", "lettre")
    assert ended.code == 2
    assert "there is no task 'lettre'; did you mean letter?" in ended.err


def test_a_response_shows_its_scores_before_and_after_prerequisites(scored_project: Path, run: Command):
    ended = run("graph", "--run", "run", "--response", "bluff")
    assert ended.code == 0, ended.err
    assert "p 0.90 #8594; q 0.18" in ended.out
    assert "class n2,n3,n4 suppressed" in ended.out
    honest = run("graph", "--run", "run", "--response", "good").out
    assert "p 0.90 #8594; q 0.90" in honest
    assert "class n3 suppressed" in honest  # the advice held to 0.9, and the thanks rest on it


@all_rows(
    "options, text",
    [
        (("score", "--task", "tasks.jsonl"), "score and --task: each draws another graph; remove one"),
        (("--task", "tasks.jsonl", "--run", "run", "--response", "bluff"), "--task and --run: each draws another"),
        (("--response", "bluff"), "--run and --response: a drawing of scores needs both"),
        (("--run", "run"), "--run and --response: a drawing of scores needs both"),
        (("--id", "letter"), "--id: needs a file of tasks"),
        (("--task", "tasks.jsonl", "-o", "./tasks.jsonl"), "./tasks.jsonl: is an input file"),
        (("--run", "run", "--response", "bluf"), "did you mean bluff?"),
        (("--task", "tasks.jsonl", "-o", "run/run.sqlite"), "is a file of the run;"),
    ],
)
def test_contradictory_options_are_refused(scored_project: Path, run: Command, options: tuple[str, ...], text: str):
    before = folder_contents(scored_project)
    ended = run("graph", *options)
    assert ended.code == 2
    assert text in ended.err
    assert folder_contents(scored_project) == before


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
def test_a_task_without_a_graph_to_draw_is_refused(scored_project: Path, run: Command, rubric: object, text: str):
    lines = [{"id": "other", "query": "?"}, {"id": "t", "query": "?", "rubric": rubric}]
    write_tasks(scored_project, lines, "odd.jsonl")
    ended = run("graph", "--task", "odd.jsonl", "--id", "t")
    assert ended.code == 2
    assert text in ended.err
