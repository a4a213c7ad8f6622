"""Runs that earlier versions stored are opened, verified, gone on with and shown by this one."""

import json
import zipfile
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.runs.run import Run
from tests.command import run_command
from tests.runs.stored_runs import ARCHIVES, RECORDED_TASK, TASKS, archive, make, polite_jury, score

RUNS = {
    "part": 2,
    "whole": 6,
    "branched": 6,
    "rescored": 6,
    "erased": 6,
    "recorded": 3,
    "ranks": 4,
}
"""The kinds of stored runs, each with its number of traces."""


def run(*arguments: object) -> str:
    done = run_command(*arguments)
    assert done.code == 0, done.err
    return done.out


@pytest.fixture(params=sorted(path.name for path in ARCHIVES.glob("*.zip")))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVES / request.param) as file:
        file.extractall(tmp_path)
    return tmp_path


def test_every_stored_run_is_opened_verified_and_shown(stored: Path) -> None:
    for name, traces in RUNS.items():
        run("verify", stored / name)
        shown = json.loads(run("show", stored / name, "--json").splitlines()[0])
        assert f"reward    {shown['reward']['value']:.4f}" in run(
            "show", stored / name, "--response", shown["response_id"]
        )
        with Run.open(stored / name) as opened:
            assert len(list(opened.traces())) == traces, name
    rewards = [trace["reward"]["value"] for trace in _traces(stored / "whole")]
    assert rewards == [1.0, 0.0] * 3
    assert [trace["reward"]["value"] for trace in _traces(stored / "rescored")] == [0.5, 0.0] * 3
    assert "erased" in run("show", stored / "erased", "--response", "four/wrong")


def _traces(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("export", folder, "--to", "jsonl").splitlines()]


def test_stored_runs_are_gone_on_with(stored: Path) -> None:
    score(stored, "part")
    with Run.open(stored / "part") as opened:
        assert opened.tasks_scored == len(TASKS)
    run("verify", stored / "part")
    with polite_jury(record=stored / "recorded") as jury:
        again = jury.score(RECORDED_TASK, ["Ann, please wait.", "Wait."], step=1)
        assert [trace.reward.value for trace in again] == [1.0, 0.0]
        assert isinstance(jury.config.model, str)
        traces = jury.score(RECORDED_TASK, ["Ann, please wait."])
        assert [trace.response_id for trace in traces] == ["letter@2/1"]
    run("verify", stored / "recorded")


def test_a_new_archive_has_each_kind(tmp_path: Path) -> None:
    make(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == set(RUNS)
    assert len(archive(tmp_path)) < 100_000
    assert isinstance(Run.open(tmp_path / "ranks").config, jg.Config)
