"""What the planning of tasks tells once: that a reward of stakeholders rests on a model, that tools lack tables."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

TOLD = "% of the reward's absolute weight depends on facts and checks"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    wish, need = (
        {"id": "wish", "kind": "soft", "text": "Quiet."},
        {"id": "need", "kind": "hard", "check": {"text": "x"}},
    )
    responses = [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]
    lines = [
        {"id": name, "query": "Plan.", "stakeholders": [{"id": "ann", "constraints": constraints}]}
        | {"responses": [{**one, "id": f"{name}/{one['id']}"} for one in responses]}
        for name, constraints in (
            ("half", [wish, need]),
            ("none", [wish]),
            ("all", [need]),
            ("nothing", [wish]),
        )
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "jury.yaml").write_text(
        "evaluators: [checks.constraints, preferences]\nfailure: {max_error_rate: 1}\n"
    )
    return tmp_path


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.usefixtures("project")
def test_it_is_told_once_for_all_tasks_and_responses(run: Command, more: tuple[str, ...]) -> None:
    told = [
        line
        for line in run("score", "tasks.jsonl", "--out", "run", *more).err.splitlines()
        if TOLD in line
    ]
    assert len(told) == 1
    assert told[0].startswith(f"task 'none' and 1 more: 0 {TOLD}")


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.usefixtures("project")
def test_a_judge_that_may_look_up_rows_of_no_table_is_told_once(
    run: Command, more: tuple[str, ...]
) -> None:
    Path("jury.yaml").write_text(
        "evaluators: [{use: goal_reached, tools: [look_up]}]\nfailure: {max_error_rate: 1}\n"
    )
    told = run("score", "tasks.jsonl", "--out", "run", "--model", "none", *more).err
    assert "tasks without `facts.tables`: 4; the tool look_up finds nothing there" in told


@pytest.mark.parametrize("command", [("score", "tasks.jsonl", "--dry-run"), ("doctor",)])
@pytest.mark.parametrize(("tools", "is_told"), [("[grep]", True), ("[search]", False)])
@pytest.mark.usefixtures("project")
def test_tools_that_read_files_where_the_config_has_none_are_named_before_a_run(
    run: Command, command: tuple[str, ...], tools: str, is_told: bool
) -> None:
    Path("jury.yaml").write_text(
        f"evaluators: [{{use: goal_reached, tools: {tools}}}]\nfailure: {{max_error_rate: 1}}\n"
    )
    told = run(*command, "--config", "jury.yaml")
    note = "goal_reached: the config names no `workspaces`, so that its tools find no file"
    assert (note in told.err + told.out) == is_told
