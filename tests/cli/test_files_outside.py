"""`--allow-files-outside`: without it, no command reads table files outside the folder of the tasks.

Which files these are is tested in `tests/sources/test_files_outside.py`.
"""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

CHECKS = "derivers: [facts.claims]\nevaluators: [facts.confirmed]\n"
MODEL = "evaluators: [criteria]\nmodel: openai-compatible:http://127.0.0.1:9/v1#nobody\ncalls: {cache: false}\n"


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a project the current folder; the table of its task is outside."""
    (tmp_path / "places.csv").write_text("name,city\nCoco Bambu,Rockford\n")
    form = {"table": "places", "pattern": r"(?P<name>[^,]+), (?P<city>[^,]+)"}
    facts = {
        "tables": {"places": {"key": ["name", "city"], "file": "../places.csv"}},
        "claims": {"meals": {"at": ["$[*].meal"], "forms": [form]}},
    }
    rubric = {"criteria": [{"id": "short", "text": "It is short.", "weight": 1.0}]}
    response = {"id": "a/1", "text": "", "data": [{"meal": "Coco Bambu, Rockford"}]}
    task = {
        "id": "a",
        "query": "Where to?",
        "facts": facts,
        "rubric": rubric,
        "responses": [response],
    }
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("tasks.jsonl").write_text(json.dumps(task) + "\n")
    Path("checks.yaml").write_text(CHECKS)
    Path("model.yaml").write_text(MODEL)


TASKS = "tasks.jsonl, line 1, field facts.tables.places.file: is '../places.csv'"
COMMANDS = {
    "score tasks.jsonl --config checks.yaml --out run --dry-run": TASKS,
    "score tasks.jsonl --config checks.yaml --out run": TASKS,
    "attack --config model.yaml --tasks tasks.jsonl --dry-run": TASKS,
    "verify run --deep": "run: task 'a', field facts.tables.places.file: is '../places.csv'",
}


def test_each_command_that_reads_such_files_has_the_option(run: Command) -> None:
    for command, place in COMMANDS.items():
        refused = run(*command.split())
        assert (refused.code, refused.out) == (2, "")
        assert f"error: {place}, which is not below" in refused.err
        assert run(*command.split(), "--allow-files-outside").code == 0
    assert run("verify", "run").code == 0, "only repeated verdicts need the tables"
