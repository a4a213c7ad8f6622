"""`jurygraph score --branch` after a change: it requests only what changed, and needs the old run no longer.

What a change requests is tested in `tests/runs/workflows/test_branch.py`.
"""

import copy
import json
import shutil
from pathlib import Path

from tests.cli.conftest import LETTERS, Command, folder_contents, read_calls

ABOUT_OTHER_TEXT = ["better letter/a letter/b", "better letter/b letter/c", "echo letter/b"]


def change_a_text() -> None:
    tasks = copy.deepcopy(LETTERS)
    tasks[0]["responses"][1]["text"] = "I am writing about the heating, which is off."
    Path("tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))


def test_a_branch_requests_what_changed_and_prints_what_a_new_run_prints(
    letters_folder: Path, run: Command
):
    read_calls(letters_folder.parent)
    before = folder_contents(letters_folder)
    change_a_text()
    command = ("score", "tasks.jsonl", "--out", "new", "--branch", "run")
    dry = run(*command, "--dry-run", "--json")
    assert (json.loads(dry.out)["verdicts"], "reused" in dry.err) == (3, False)
    assert not Path("new").exists()
    assert read_calls(letters_folder.parent) == []
    ended = run(*command)
    assert (ended.code, "verdicts: 6 reused from run, 3 requested\n" in ended.err) == (0, True)
    assert read_calls(letters_folder.parent) == ABOUT_OTHER_TEXT
    assert folder_contents(letters_folder) == before, "the old run stays"
    assert ended.out == run("score", "tasks.jsonl", "--out", "anew").out
    shutil.rmtree(letters_folder)
    for reading in (
        ("show", "new"),
        ("verify", "new", "--deep"),
        ("explain", "new", "--response", "letter/a"),
    ):
        assert run(*reading).code == 0, "the old run is not needed afterwards"


def test_a_branch_resumes_with_the_same_command_alone(letters_folder: Path, run: Command):
    assert letters_folder.is_dir()
    command = ("score", "tasks.jsonl", "--out", "new")
    assert run(*command, "--branch", "run", "--limit", 1).code == 0
    ended = run(*command)
    assert (ended.code, ended.out, "branched from ../run" in ended.err) == (2, "", True)
    assert "1 tasks are scored already" in run(*command, "--branch", "run").err


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
