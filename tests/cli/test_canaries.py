"""Canaries at the end of `jurygraph score`: the share, its interval, and the exit code."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.models.judge_scripts import config
from tests.models.server import Script, run_server
from tests.runs.test_canary import always_met, honest_judge, write_canary_tasks

ALERT = "ALERT: known-bad responses got credit more often than canary.alert (5.0%) allows, beyond chance"
CHANCE = "the verdicts on 1 of them do not show that this is more than chance"


@pytest.mark.parametrize(
    ("judge", "tasks", "code", "message", "share"),
    [
        (always_met, 3, 1, ALERT, "(100.0%; 95 % interval 29.2% to 100.0%)"),
        (always_met, 1, 0, CHANCE, "(100.0%; no interval: only one was judged)"),
        (honest_judge, 3, 0, "", "(0.0%; 95 % interval 0.0% to 70.8%)"),
    ],
)
def test_only_credit_beyond_chance_changes_the_exit_code(
    judge: Script, tasks: int, code: int, message: str, share: str, tmp_path: Path, run: Command
) -> None:
    names = [f"friend {number}" for number in range(tasks)]
    with run_server(judge) as server:
        (tmp_path / "jury.yaml").write_text(json.dumps({**config(server.url, cache=False), "canary": {"rate": 1.0}}))
        written = write_canary_tasks(tmp_path / "tasks.jsonl", names)
        ended = run("score", written, "--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    assert ended.code == code, ended.err
    assert message in ended.err
    assert ("ALERT" in ended.err) == bool(code)
    (line,) = [line for line in ended.out.splitlines() if line.startswith("canaries: ")]
    assert line.startswith(f"canaries: {tasks} known-bad responses; ")
    assert line.endswith(share)


def test_an_unknown_suite_is_refused_with_all_that_there_are(tmp_path: Path, run: Command) -> None:
    canary = {"rate": 1.0, "suite": "nul"}
    (tmp_path / "jury.yaml").write_text(json.dumps({**config("http://127.0.0.1:9"), "canary": canary}))
    written = write_canary_tasks(tmp_path / "tasks.jsonl", ["Ann"])
    ended = run("score", written, "--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    assert ended.code == 2
    assert "write 'master-keys', 'null', 'injection', 'reference' or 'all'" in ended.err
