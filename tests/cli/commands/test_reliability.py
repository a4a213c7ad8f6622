"""`jurygraph study reliability`: the figures are tested in `tests/studies/reliability`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.studies.reliability.test_runs import TASKS, score_tasks


@pytest.fixture(scope="module")
def sampled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return score_tasks(tmp_path_factory.mktemp("samples"), TASKS)


def test_the_tables_split_rewards_and_scores(sampled_run: Path, run: Command):
    ended = run("study", "reliability", sampled_run)
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines.pop(0).startswith("The mean reward is 0.686 (0.004 to 1.367), ± 0.681 over")
    assert lines.pop(0).startswith(
        "Whether one sample of judge is reliable, 0.8 or more, cannot be"
    )
    assert lines.pop(0).startswith("ICC: intraclass correlation, one-way: where a whole sample")
    assert lines[0].endswith("run: rewards of 7 responses to 4 tasks")
    assert lines[2] == "variance between units variance share"
    assert "mean reward: 0.6857 (" in ended.out
    header = next(line for line in lines if line.startswith("share by question"))
    assert (
        header
        == "share by question values task (95 %) response sample one sample (95 %) mean of 2 mean of 4 mean of 8"
    )
    check, judge = lines[lines.index(header) + 2 :]
    assert (judge.split()[:2], check.split()[:2]) == (["judge", "21"], ["check", "7"])
    assert check.endswith(" - - - - -")
    assert "omitted, responses whose reward failed: 1" in ended.err
    assert "omitted, verdicts without a score, or with that of a gate: 4" in ended.err
    found = json.loads(run("study", "reliability", sampled_run, "--json").out)
    assert [one["name"] for one in found["questions"]] == ["check", "judge"]


def test_a_run_with_one_task_is_refused(run: Command, tmp_path: Path):
    ended = run("study", "reliability", score_tasks(tmp_path, TASKS[:1]))
    assert (ended.code, ended.out) == (2, "")
    assert "has 2 rewards, of 1 task; score at least 2 tasks" in ended.err
