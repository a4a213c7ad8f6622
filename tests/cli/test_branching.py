"""`jurygraph score` after a change: the run is refused with the difference; `--branch` requests only what changed.

What a change requests is tested in `tests/runs/workflows/test_branch.py`.
"""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import (
    LETTERS,
    Command,
    folder_contents,
    read_calls,
    traces,
)

ABOUT_OTHER_TEXT = ["better letter/a letter/b", "better letter/b letter/c", "echo letter/b"]
LONGER = "I am writing about the heating, which is off."


def tasks_with(edit: Callable[[list[dict[str, Any]]], object]) -> str:
    tasks = copy.deepcopy(LETTERS)
    edit(tasks)
    return "".join(json.dumps(task) + "\n" for task in tasks)


def other_text(tasks: list[dict[str, Any]]) -> None:
    tasks[0]["responses"][1]["text"] = LONGER


def test_a_branch_requests_what_changed_and_prints_what_a_new_run_prints(letters_folder: Path, run: Command):
    read_calls(letters_folder.parent)
    before = folder_contents(letters_folder)
    Path("tasks.jsonl").write_text(tasks_with(other_text))
    command = ("score", "tasks.jsonl", "--out", "new", "--branch", "run")
    forecast = json.loads(run(*command, "--dry-run", "--json").out)
    assert forecast["verdicts"] == 3
    assert not Path("new").exists()
    assert read_calls(letters_folder.parent) == []
    ended = run(*command)
    assert ended.code == 0, ended.err
    assert "verdicts: 6 reused from run, 3 requested\n" in ended.err
    assert read_calls(letters_folder.parent) == ABOUT_OTHER_TEXT
    assert folder_contents(letters_folder) == before, "the old run stays"
    anew = run("score", "tasks.jsonl", "--out", "anew")
    assert ended.out == anew.out
    assert traces(run, Path("new")) == traces(run, Path("anew"))
    as_json = run("score", "tasks.jsonl", "--out", "other", "--branch", "run", "--json")
    assert json.loads(as_json.out)["verdicts"]["judged"] == 9
    shutil.rmtree(letters_folder)
    for reading in (("show", "new"), ("verify", "new", "--deep"), ("explain", "new", "--response", "letter/a")):
        assert run(*reading).code == 0, "the old run is not needed afterwards"


def test_a_branch_resumes_with_the_same_command_alone(letters_folder: Path, run: Command):
    assert letters_folder.is_dir()
    command = ("score", "tasks.jsonl", "--out", "new")
    assert run(*command, "--branch", "run", "--limit", 1).code == 0
    run("score", "tasks.jsonl", "--out", "other")
    for more in ((), ("--branch", "other")):
        ended = run(*command, *more)
        assert (ended.code, ended.out) == (2, "")
        assert "branched from ../run" in ended.err
    assert "1 tasks are scored already" in run(*command, "--branch", "run").err
    assert "is complete; nothing to do" in run(*command, "--branch", "run").err


def test_what_is_no_other_run_is_refused(letters_folder: Path, run: Command):
    before = folder_contents(letters_folder)
    for old in ("nowhere", ".", "tasks.jsonl"):
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", old)
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {old}: " in ended.err
        assert not Path("new").exists()
    ended = run("score", "tasks.jsonl", "--out", "run", "--branch", "run")
    assert (ended.code, ended.out) == (2, "")
    assert folder_contents(letters_folder) == before
