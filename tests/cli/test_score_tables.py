"""`jurygraph score` of a table: like TASKS, from the dry run to the export."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, EVALUATORS, Command, folder_contents
from tests.sources.test_task_tables import Rows

NAMED = ("--prompt-column", "question", "--response-column", "answer")
TABLE: Rows = [
    {"id": "door", "question": "Ask for the door.", "answer": "please, the door", "split": "train"},
    {"id": "salt", "question": "Ask for the salt.", "answer": "crash", "split": "test"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "manners.py").write_text(EVALUATORS)
    (tmp_path / "jury.yaml").write_text(CONFIG)
    write_csv(tmp_path / "data.csv", TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_csv(path: Path, rows: Rows) -> None:
    lines = [",".join(rows[0]), *(",".join(f'"{cell}"' for cell in row.values()) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines))


def test_a_table_is_scored_and_its_other_columns_come_back_as_labels(folder: Path, run: Command) -> None:
    done = run("score", "data.csv", *NAMED, "--id-column", "id", "--out", "run")
    assert done.code == 1  # the crash
    traces = [json.loads(line) for line in run("export", "run", "--to", "jsonl").out.splitlines()]
    assert [(one["task_id"], one["response_id"], one["labels"]) for one in traces] == [
        (row["id"], row["id"], {"split": row["split"]}) for row in TABLE
    ]
    assert run("verify", "run", "--deep").code == 0
    assert run("rescore", "run", "--set", "reward.polite=2", "--out", "run2").code == 0


def test_the_command_to_repeat_failures_names_the_columns(folder: Path, run: Command) -> None:
    done = run("score", "data.csv", *NAMED, "--id-column", "id", "--out", "run")
    (command,) = [line for line in done.err.splitlines() if "to repeat" in line]
    words = shlex.split(command.partition("jurygraph ")[2])
    assert words[:8] == ["score", "data.csv", *NAMED, "--id-column", "id"]
    assert run(*words).code == 1


def test_a_run_resumes_and_refuses_another_file_and_other_columns(folder: Path, run: Command) -> None:
    command = ("score", "data.csv", "--prompt-column", "question", "--response-column")
    assert run(*command, "answer", "--out", "run", "--limit", "1").code == 0
    assert "1 tasks are scored already" in run(*command, "answer", "--out", "run").err
    assert "run is complete; only failures" in run(*command, "answer", "--out", "run").err
    other = run(*command, "split", "--out", "run")
    assert (other.code, 'the response column is ["answer"] in the run and ["split"] here' in other.err) == (2, True)
    write_csv(folder / "data.csv", [{**row, "answer": "please"} for row in TABLE])
    changed = run(*command, "answer", "--out", "run")
    assert (changed.code, "response 'row-1' is another one now" in changed.err) == (2, True)


def test_a_dry_run_writes_nothing_and_a_bad_table_neither(folder: Path, run: Command) -> None:
    before = folder_contents(folder)
    dry = run("score", "data.csv", *NAMED, "--out", "run", "--dry-run", "--json")
    assert json.loads(dry.out)["responses"] == len(TABLE)
    write_csv(folder / "data.csv", [*TABLE, {**TABLE[0], "question": " "}])
    refused = run("score", "data.csv", *NAMED, "--out", "run")
    assert refused.err == "error: data.csv, line 4, column question: is empty; fill it, or leave the row out\n"
    assert refused.code == 2
    write_csv(folder / "data.csv", TABLE)
    assert folder_contents(folder) == before
