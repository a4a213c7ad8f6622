"""`jurygraph study disagreement`: the figures are tested in `tests/studies/disagreement`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.graphs.scripted import evaluator_use
from tests.rows import all_rows
from tests.runs.sample_runs import rescore_run, score, write_tasks

NAMES = ("accuracy", "format", "steps")
CONFIG = {
    "evaluators": [evaluator_use(name) for name in NAMES],
    "reward": {"accuracy": 1.0, "format": 0.5, "steps": 0.5},
}


def task(name: str, step: int, *scores: tuple[Any, Any, Any]) -> dict[str, Any]:
    responses = [
        {
            "id": f"{name}/{n}",
            "text": "it is",
            "data": dict(zip(NAMES, one, strict=True)),
            "labels": {"step": step},
        }
        for n, one in enumerate(scores)
    ]
    return {"id": name, "query": "What is right?", "responses": responses}


TASKS = [
    task("rome", 1, (1.0, 0.0, 0.0), (0.0, 0.0, 0.3)),
    task("oslo", 1, (0.0, 0.9, 0.6), (0.0, 0.0, 0.0)),
    task("pisa", 2, (1.0, 1.0, 0.9), ("response", "response", "response")),
]


@pytest.fixture(scope="module")
def scored_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    score(folder / "macrm", write_tasks(folder, TASKS), CONFIG)
    return folder


@pytest.fixture
def run_with_steps(scored_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run of two steps."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(scored_steps / "macrm", tmp_path / "macrm")


@pytest.mark.usefixtures("run_with_steps")
def test_the_tables_have_the_amount_and_place_of_disagreement(run: Command):
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


def test_several_runs_are_compared_each_with_its_own_components(run_with_steps: Path, run: Command):
    rescore_run(run_with_steps, run_with_steps.with_name("two"), "reward.format=0")
    found = json.loads(run("study", "disagreement", "macrm", "two", "--json").out)["runs"]
    assert [(one["run"], one["components"]) for one in found] == [
        ("macrm", ["accuracy", "format", "steps"]),
        ("two", ["accuracy", "steps"]),
    ]
    ended = run("study", "disagreement", "macrm", "two")
    assert [line.split()[0] for line in ended.out.splitlines()[2:4]] == ["macrm", "two"]
    assert "the runs have different components; choose common ones with --components" in ended.err


@pytest.mark.usefixtures("run_with_steps")
@all_rows(
    "arguments, message",
    [
        (
            ["--components", "acc,steps"],
            "no component 'acc'; its components are accuracy, format, steps",
        ),
        (["--step-label", "step", "--every", "2"], "each cuts a run into steps"),
        (["--every", "0"], "--every"),
        (["nowhere"], "nowhere"),
        (["./macrm"], "macrm: is named twice; name each once"),
        (["--plot", "a.png"], "--plot: the plot needs steps; add --step-label or --every"),
    ],
)
def test_wrong_input_is_refused_without_a_result(run: Command, arguments: list[str], message: str):
    ended = run("study", "disagreement", "macrm", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
