"""`jurygraph study reliability`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Command, run_command, write_project
from tests.graphs.scripted import evaluator_use

CONFIG = json.dumps(
    {"evaluators": [evaluator_use("judge", samples=3), evaluator_use("check")], "reward": {"judge": 1.0, "check": 0.5}}
)


def task(name: str, *responses: tuple[Any, Any]) -> dict[str, Any]:
    """Responses with three samples of the judge, or one for all, and the check's score."""
    scripts = [{"id": f"{name}/{n}", "text": "it is", "data": dict(zip(("judge", "check"), one, strict=True))}
               for n, one in enumerate(responses)]  # fmt: skip
    return {"id": name, "query": "What is right?", "responses": scripts}


TASKS = [
    task("rome", ([0.9, 0.8, 1.0], 1.0), ([0.5, 0.6, 0.4], 1.0)),
    task("oslo", ([0.2, 0.3, 0.1], 0.0), ([0.5, 0.5, 0.8], 0.0)),
    task("pisa", ([0.4, 0.1, 0.4], 1.0), ([0.3, 0.3, 0.0], 0.0)),
    task("bern", ([0.6, 0.6, 0.6], 0.0), ("response", "response")),
]


@pytest.fixture(scope="module")
def sampled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four tasks with three samples of a judge; one response has no reward."""
    project = write_project(tmp_path_factory.mktemp("samples") / "trips", TASKS, CONFIG)
    run_command("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    return project / "run"


def test_the_tables_split_rewards_and_scores(sampled_run: Path, run: Command):
    ended = run("study", "reliability", sampled_run)
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].endswith("run: rewards of 7 responses to 4 tasks")
    assert lines[2] == "variance between units variance share"
    assert "mean reward: 0.6857 (" in ended.out
    header = next(line for line in lines if line.startswith("share by question"))
    assert (
        header == "share by question values task (95 %) response sample one sample (95 %) mean of 2 mean of 4 mean of 8"
    )
    check, judge = lines[lines.index(header) + 2 :]
    assert (judge.split()[:2], check.split()[:2]) == (["judge", "21"], ["check", "7"])
    assert check.endswith(" - - - - -")
    assert "omitted, responses whose reward failed: 1" in ended.err
    assert "omitted, verdicts without a score, or with that of a gate: 4" in ended.err


def test_json_has_the_components_by_hand(sampled_run: Path, run: Command):
    """The mean squares of the judge's scores: three samples of seven responses of four tasks."""
    found = json.loads(run("study", "reliability", sampled_run, "--json").out)
    _, judge = found["questions"]
    samples = [
        np.array(line) for one in TASKS for line in (r["data"]["judge"] for r in one["responses"]) if line != "response"
    ]
    within = sum(((one - one.mean()) ** 2).sum() for one in samples) / 14
    assert judge["levels"][2] == pytest.approx({"name": "sample", "units": 21, "variance": within, "raw": within,
                                                "share": judge["levels"][2]["share"]})  # fmt: skip
    assert sum(level["share"] for level in judge["levels"]) == pytest.approx(1.0)
    rho = judge["within_response"]["value"]
    assert judge["within_response"]["of_means"]["4"] == pytest.approx(4 * rho / (1 + 3 * rho))
    assert found["rewards"]["within_response"] is None
    assert found["mean"]["value"] == pytest.approx(4.8 / 7)
    assert found["left_out"] == {
        "responses whose reward failed": 1,
        "verdicts without a score, or with that of a gate": 4,
    }


def test_a_run_without_rewards_is_refused(tmp_path: Path, run: Command):
    project = write_project(tmp_path / "trips", [task("t", ("response", "response"))], CONFIG)
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    ended = run("study", "reliability", project / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "has 0 rewards, of 0 tasks" in ended.err
