"""`jurygraph study disagreement`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, run_command, write_project
from tests.graphs.scripted import evaluator_use
from tests.rows import all_rows

NAMES = ("accuracy", "format", "steps")
CONFIG = json.dumps(
    {"evaluators": [evaluator_use(name) for name in NAMES], "reward": {"accuracy": 1.0, "format": 0.5, "steps": 0.5}}
)
FAILED = ("response", "response", "response")


def task(name: str, step: int, *scores: tuple[Any, Any, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "query": "What is right?",
        "responses": [
            {
                "id": f"{name}/{place}",
                "text": "it is",
                "data": dict(zip(NAMES, each, strict=True)),
                "labels": {"step": step},
            }
            for place, each in enumerate(scores)
        ],
    }


TASKS = [
    task("rome", 1, (1.0, 0.0, 0.0), (0.0, 0.0, 0.3)),
    task("oslo", 1, (0.0, 0.9, 0.6), (0.0, 0.0, 0.0)),
    task("pisa", 2, (1.0, 1.0, 0.9), FAILED),
]


@pytest.fixture(scope="module")
def scored_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = write_project(tmp_path_factory.mktemp("steps") / "trips", TASKS, CONFIG)
    run_command("score", "tasks.jsonl", "--config", "jury.yaml", "--out", "macrm", cwd=project)
    return project


@pytest.fixture
def run_with_steps(scored_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run of two steps."""
    project = shutil.copytree(scored_steps, tmp_path / "trips")
    monkeypatch.chdir(project)
    return project


def test_the_tables_have_the_amount_and_place_of_disagreement(run_with_steps: Path, run: Command):
    ended = run("study", "disagreement", "macrm", "--step-label", "step")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    for line in (
        "macrm 5 0.3067 0.6133 1 0.2000",
        "macrm: accuracy, format, steps, of 5 responses to 3 tasks",
        "accuracy 1.0000 0.2500 0.7500",
        "1 4 0.4750 0.3667 0.2500",
    ):
        assert line in lines
    assert "macrm: omitted, responses whose reward failed: 1" in ended.err


def test_several_runs_are_compared_each_with_its_own_threshold(run_with_steps: Path, run: Command):
    run("rescore", "macrm", "--out", "other", "--set", "reward.format=2")
    same = json.loads(run("study", "disagreement", "macrm", "other", "--json").out)["runs"]
    assert [one["run"] for one in same] == ["macrm", "other"]
    assert same[0]["threshold"] == same[1]["threshold"]
    assert same[0]["split"]["rows"][0]["low"] < same[1]["split"]["rows"][0]["low"]
    run("rescore", "macrm", "--out", "two", "--set", "reward.format=0")
    ended = run("study", "disagreement", "macrm", "two")
    assert [line.split()[0] for line in ended.out.splitlines()[2:4]] == ["macrm", "two"]
    assert "two: accuracy, steps, of 5 responses to 3 tasks" in ended.out
    assert "the runs have different components; choose common ones with --components" in ended.err


@all_rows(
    "arguments, message",
    [
        (["--components", "acc,steps"], "no component 'acc'; its components are accuracy, format, steps"),
        (["--step-label", "step", "--every", "2"], "each cuts a run into steps"),
        (["--every", "0"], "--every"),
        (["nowhere"], "nowhere"),
        (["./macrm"], "macrm: is named twice; name each once"),
        (["--plot", "a.png"], "--plot: the plot needs steps; add --step-label or --every"),
    ],
)
def test_wrong_input_is_refused_without_a_result(
    run_with_steps: Path, run: Command, arguments: list[str], message: str
):
    ended = run("study", "disagreement", "macrm", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
