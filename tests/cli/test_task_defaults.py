"""`task_defaults` in the config hold for every command that reads tasks."""

import json
from pathlib import Path

import pytest

from tests.agents.parser import constraints_reply
from tests.cli.conftest import Command
from tests.models.server import run_server

TASKS = [
    {"id": name, "query": "Write.", "responses": [{"id": f"{name}/a", "text": "dear you"}]}
    for name in "ab"
]
RUBRIC = {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 2.0}]}


def test_the_commands_that_read_tasks_complete_them(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    with run_server(lambda *_: constraints_reply()) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"]}
        stakeholders = {"stakeholders": [{"id": "ann", "profile": "Likes dogs."}]}
        Path("jury.yaml").write_text(json.dumps({**config, "task_defaults": stakeholders}))
        run("profiles", "tasks.jsonl", "--out", "profiles.jsonl")
        assert server.count == len(TASKS)
    config |= {"annotation": {"domain": "generic"}, "task_defaults": {"rubric": RUBRIC}}
    Path("jury.yaml").write_text(json.dumps(config))
    estimate = run("annotate", "tasks.jsonl", "--dry-run", "--json", "--out", "graphs.jsonl")
    assert json.loads(estimate.out)["tasks"] == len(TASKS)
    estimate = run("score", "tasks.jsonl", "--dry-run", "--json")
    assert json.loads(estimate.out)["questions"] == len(TASKS)
