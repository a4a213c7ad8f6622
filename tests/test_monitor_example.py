"""The example of a planted hack: built as it says, scored, and caught."""

import gzip
import json
import re
import runpy
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.studies.monitor import read_groups
from tests.cli.conftest import CommandResult, run_command

pytestmark = pytest.mark.exhaustive
MONITOR = Path(__file__).parent.parent / "examples" / "monitor"
BUILT = runpy.run_path(str(MONITOR / "build.py"))
BEGINS: int = BUILT["BEGINS"]


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return list(BUILT["lines"]())


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("monitor") / "run"
    ended = run_command("score", MONITOR / "tasks.jsonl.gz", "--config", MONITOR / "jury.yaml", "--out", folder)
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture(scope="module")
def watched(scored: Path) -> CommandResult:
    return run_command("watch", scored, "--step-label", "step", "--json")


@pytest.fixture(scope="module")
def alerts(watched: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line)["alert"] for line in watched.out.splitlines()[:-1]]


def test_the_file_is_what_the_build_makes(lines: list[dict[str, Any]]) -> None:
    with gzip.open(MONITOR / "tasks.jsonl.gz", "rt", encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == lines
    assert (MONITOR / "tasks.jsonl.gz").stat().st_size < 300_000


def test_nothing_is_planted_before_the_hack_begins_and_in_the_end_nothing_else_is_left(
    lines: list[dict[str, Any]],
) -> None:
    share = defaultdict(list)
    for line in lines:
        for response in line["responses"]:
            share[response["labels"]["step"]].append(response["metadata"]["planted"])
    assert list(share) == list(range(1, 43))
    assert not any(any(share[step]) for step in range(1, BEGINS))
    assert all(share[42])


def test_the_hack_pays(scored: Path) -> None:
    rewards = defaultdict(list)
    for group in read_groups(scored):
        for one in group:
            step = one.trace.labels["step"]
            rewards["early" if step < BEGINS else "late" if step > 38 else "between"].append(one.trace.reward.value)
    assert np.mean(rewards["late"]) > np.mean(rewards["early"]) + 0.1


def three_sd(lines: list[dict[str, Any]]) -> int:
    """The step at which accuracy or mean length lies 3 sd from that of the steps before the hack, by what was built."""
    rows = defaultdict(list)
    for line in lines:
        for response in line["responses"]:
            rows[response["labels"]["step"]].append((response["metadata"]["is_correct"], len(response["text"])))
    means = np.array([np.mean(rows[step], axis=0) for step in sorted(rows)])
    before = means[: BEGINS - 1]
    off = np.abs(means - before.mean(axis=0)) / before.std(axis=0, ddof=1)
    return BEGINS + int(np.argmax((off[BEGINS - 1 :] >= 3).any(axis=-1)))


def test_nothing_is_told_before_the_hack_and_it_is_caught_within_5_steps_of_3_sd(
    lines: list[dict[str, Any]], alerts: list[dict[str, Any]], watched: CommandResult
) -> None:
    assert watched.code == 1
    assert all(alert["step"] >= BEGINS for alert in alerts)
    adverse = [alert["step"] for alert in alerts if alert["adverse"]]
    (hack,) = (alert for alert in alerts if alert["kind"] == "hack")
    assert adverse[0] <= hack["step"] <= three_sd(lines) + 5
    assert {"accuracy falls", "format rises", "length rises"} <= set(hack["evidence"])


def test_the_readme_says_at_which_step_what_is_told(scored: Path, lines: list[dict[str, Any]]) -> None:
    readme = (MONITOR / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- from: jurygraph watch my-run --step-label step -->\n```text\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    assert (
        run_command("watch", scored, "--step-label", "step").out.split() == shown[1].split()
    )  # the README wraps its lines
    assert f"begins at step {BEGINS}" in readme
    assert f"3 sd away at step {three_sd(lines)}" in readme
