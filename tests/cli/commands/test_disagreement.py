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
    lines = ended.out.splitlines()
    assert " ".join(lines[0].split()) == "run responses mean D_pair τ (80th pct) conflicts conflict rate"
    assert lines[2].split() == ["macrm", "5", "0.3067", "0.6133", "1", "0.2000"]
    assert lines[4] == "macrm: accuracy, format, steps, of 5 responses to 3 tasks"
    assert lines[6].split()[:5] == ["mean", "High-div", "(1)", "Low-div", "(4)"]
    assert lines[8].split()[:4] == ["reward", "1.0000", "0.7125", "0.2875"]
    assert lines[9].split()[:4] == ["accuracy", "1.0000", "0.2500", "0.7500"]
    steps = lines.index("step  responses  mean reward  mean D_pair  conflict rate")
    assert lines[steps + 2].split() == ["1", "4", "0.4750", "0.3667", "0.2500"]
    assert lines[steps + 3].split() == ["2", "1", "1.9500", "0.0667", "0.0000"]
    assert lines[-2].split()[:5] == ["mean", "D_pair", "0.3667", "0.0667", "-0.3"]
    assert "macrm: omitted, responses whose reward failed: 1" in ended.err
    assert ended.err.count("macrm: p assumes independent steps; 10 steps are needed to see if they are") == 1


def test_without_steps_there_is_no_series(run_with_steps: Path, run: Command):
    ended = run("study", "disagreement", "macrm")
    assert ended.code == 0
    assert "over steps" not in ended.out
    assert all(line == line.rstrip() for line in ended.out.splitlines())
    assert "correlation" in ended.out


def test_a_step_can_be_a_number_of_tasks(run_with_steps: Path, run: Command):
    found = json.loads(run("study", "disagreement", "macrm", "--every", 1, "--json").out)
    assert [(one["step"], one["samples"]) for one in found["runs"][0]["steps"]] == [(1, 2), (2, 2), (3, 1)]


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


def test_components_and_percentile_can_be_named(run_with_steps: Path, run: Command):
    arguments = ("--components", "format, steps", "--percentile", 50, "--json")
    (found,) = json.loads(run("study", "disagreement", "macrm", *arguments).out)["runs"]
    assert found["components"] == ["format", "steps"]
    assert found["percentile"] == 50.0
    assert found["threshold"] == pytest.approx(0.1)
    assert (found["split"]["high"], found["split"]["low"]) == (3, 2)


def test_ties_between_high_and_low_are_reported(tmp_path: Path, run: Command):
    project = write_project(tmp_path / "tied", [task("a", 1, *[(1.0, 0.0, 0.0)] * 3)], CONFIG)
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    ended = run("study", "disagreement", project / "run")
    assert "1 High-div and 2 Low-div responses tie at D_pair 0.6667; ties are split by id" in ended.err
    assert "accuracy and format are constant" in ended.out


def test_a_plot_without_steps_is_refused_first(run_with_steps: Path, run: Command):
    ended = run("study", "disagreement", "macrm", "--plot", "a.png")
    assert (ended.code, ended.out) == (2, "")
    assert "--plot: the plot needs steps; add --step-label or --every" in ended.err


@all_rows(
    "arguments, message",
    [
        (["--components", "acc,steps"], "no component 'acc'; its components are accuracy, format, steps"),
        (["--components", "steps"], "only steps is there to compare"),
        (["--components", ""], "no component ''; its components are"),
        (["--percentile", "100"], "no 100.0th percentile"),
        (["--step-label", "step", "--every", "2"], "by a label or every N tasks, not both"),
        (["--step-label", "epoch"], "responses without the label epoch: 5"),
        (["--every", "0"], "--every"),
        (["nowhere"], "nowhere"),
    ],
)
def test_wrong_input_is_refused_without_a_result(
    run_with_steps: Path, run: Command, arguments: list[str], message: str
):
    ended = run("study", "disagreement", "macrm", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_many_steps_are_shortened_except_in_json(tmp_path: Path, run: Command):
    tasks = [task(f"t{place:02}", place, (place / 40, 0.0, 1.0)) for place in range(40)]
    project = write_project(tmp_path / "long", tasks, CONFIG)
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    ended = run("study", "disagreement", project / "run", "--step-label", "step")
    assert "... and 10 more (--json)" in ended.out
    found = json.loads(run("study", "disagreement", project / "run", "--step-label", "step", "--json").out)
    assert len(found["runs"][0]["steps"]) == 40


def test_a_short_series_that_wanders_is_said_to_have_too_small_a_p(tmp_path: Path, run: Command):
    levels = [0.1, 0.2, 0.5, 0.7, 0.9, 0.9, 0.8, 0.5, 0.3, 0.1, 0.1, 0.2, 0.4, 0.7, 0.8, 0.9]
    tasks = [task(f"t{place:02}", place, (level, 0.5, 0.5)) for place, level in enumerate(levels)]
    project = write_project(tmp_path / "wave", tasks, CONFIG)
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    ended = run("study", "disagreement", project / "run", "--step-label", "step")
    assert "mean reward: p is too small for 16 steps with an autocorrelation of 0." in ended.err
    reward = next(line.split() for line in ended.out.splitlines() if line.startswith("mean reward "))
    assert 0.5 < float(reward[-3]) <= 0.98
