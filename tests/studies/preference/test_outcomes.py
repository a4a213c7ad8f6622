"""Outcomes of tasks: which response wins, and that a missing judgement is never an advantage."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.preference import read_comparisons
from tests.graphs.scripted import evaluator_use
from tests.studies.preference.made import (
    PAIRS,
    by_pairs,
    by_rewards,
    compared,
    preference,
    score_tasks,
)


def results(folder: Path, *tasks: Any, **settings: Any) -> list[str]:
    return [one.duel.result for one in compared(folder, tasks, **settings).outcomes]


def test_the_preferred_response_has_to_win_against_every_other_one(tmp_path: Path) -> None:
    tasks = [
        by_rewards("right", 0.9, 0.1, 0.2, 0.8),
        by_rewards("wrong", 0.9, 0.1, 0.95, "response"),
        by_rewards("tie", 0.9, 0.9, 0.9, 0.8),
        by_rewards("failed", 0.9, 0.9, "response", 0.8),
    ]
    found = compared(tmp_path, tasks).outcomes
    assert [one.duel.result for one in found] == [one.task for one in found]


@pytest.mark.parametrize("failure", ["response", "infrastructure", "abstained"])
def test_a_failed_reward_is_never_right_on_either_side(tmp_path: Path, failure: str) -> None:
    tasks = [
        by_rewards("a", 1.0, failure),
        by_rewards("b", failure, 0.0),
        by_rewards("c", failure, failure),
    ]
    found = compared(tmp_path, tasks).outcomes
    assert [one.duel.result for one in found] == ["failed"] * 3
    assert [one.duel.reason for one in found] == [
        "the other response has no reward",
        "the preferred response has no reward",
        "the preferred response has no reward",
    ]


def test_a_degraded_reward_counts_with_its_whole_range(tmp_path: Path) -> None:
    """Half of the reward is judged: the other half could be anything between 0 and .5."""
    config = {
        "evaluators": [evaluator_use("good"), evaluator_use("kind")],
        "reward": {"good": 0.5, "kind": 0.5},
        "failure": {"min_coverage": 0.1},
    }

    def scripts(good: float, kind: Any = "response") -> dict[str, Any]:
        return {"good": good, "kind": kind}

    tasks = [
        preference("right", scripts(1.0, 1.0), scripts(0.4)),
        preference("failed", scripts(0.6, 0.5), scripts(0.4)),
        preference("wrong", scripts(0.2), scripts(1.0, 1.0)),
    ]
    folder = score_tasks(tmp_path, tasks, config)
    with closing(Run.open(folder)) as run:
        values = {trace.response_id: trace.reward.value for trace in run.traces()}
        found = read_comparisons(run).outcomes
    assert values["failed/0"] > values["failed/1"], (
        "by its value alone, a failure would make it right"
    )  # type: ignore[operator]
    assert [one.duel.result for one in found] == [one.task for one in found]
    assert found[1].duel.reason == "a degraded reward could be higher or lower than the other"


@pytest.mark.parametrize(
    ("chosen_first", "rejected_first", "expected", "is_flipped"),
    [
        (1.0, 0.0, "right", False),  # in both orders
        (1.0, 0.5, "right", False),
        (0.5, 0.0, "right", False),
        (1.0, 1.0, "tie", True),
        (0.0, 0.0, "tie", True),
        (0.5, 0.5, "tie", False),
        (0.5, 1.0, "wrong", False),
        (0.0, 1.0, "wrong", False),
        (1.0, "response", "failed", False),
        ("abstained", 0.0, "failed", False),
        ("infrastructure", "infrastructure", "failed", False),
    ],
)
def test_both_orders_are_counted_as_judgebench_does_but_a_failure_is_no_half_answer(
    tmp_path: Path, chosen_first: Any, rejected_first: Any, expected: str, is_flipped: bool
) -> None:
    (found,) = compared(tmp_path, [by_pairs("a", chosen_first, rejected_first)], PAIRS).outcomes
    assert (found.duel.result, found.duel.is_flipped) == (expected, is_flipped)
    assert found.duel.is_strict_win == ((chosen_first, rejected_first) == (1.0, 0.0))


def test_an_unordered_pair_has_one_verdict(tmp_path: Path) -> None:
    config = {
        "evaluators": [evaluator_use("good", scope="pair", pairs="unordered")],
        "reward": {"good": 1.0},
    }
    tasks = [by_rewards("a", 0.9, 0.1), by_rewards("b", 0.1, 0.9), by_rewards("c", 0.1, 0.1)]
    found = compared(tmp_path, tasks, config)
    assert found.decided_by == "good"
    assert [one.duel.result for one in found.outcomes] == ["right", "wrong", "tie"]


def test_rewards_decide_if_they_count_more_than_one_evaluator_of_pairs(tmp_path: Path) -> None:
    both = {
        "evaluators": [*PAIRS["evaluators"], evaluator_use("good")],
        "reward": {"pairs": 0.1, "good": 0.9},
    }
    task = preference("a", {"pairs": 0.0, "good": 1.0}, {"pairs": 1.0, "good": 0.0})
    assert compared(tmp_path / "1", [task], both).decided_by == "reward"
    assert results(tmp_path / "2", task, config=both) == ["right"]
    assert results(tmp_path / "4", by_pairs("a", 1.0, 0.5), config=PAIRS) == ["right"]


def test_tasks_that_are_no_preference_are_counted(tmp_path: Path) -> None:
    several, unlabelled, alone = (
        by_rewards("s", 1.0, 0.0, 0.0),
        by_rewards("u", 1.0, 0.0),
        by_rewards("o", 1.0),
    )
    several["responses"][1]["labels"]["preferred"] = True
    for response in unlabelled["responses"]:
        del response["labels"]
    found = compared(tmp_path / "1", [by_rewards("a", 1.0, 0.0), several, unlabelled, alone])
    assert [one.task for one in found.outcomes] == ["a"]
    reason = "tasks without one response labelled `preferred: true`, and others labelled false"
    assert found.left_out == {reason: 3}
    expected = (
        rf"none of its tasks is a preference \({reason}: 1\); "
        "label one response of a task `preferred: true` and the others false, as `import judgebench` does"
    )
    with pytest.raises(InputError, match=expected):
        compared(tmp_path / "2", [unlabelled])
