"""What a trainer gets for a failed reward: no sibling's advantage changes, or by the recorded factor."""

from pathlib import Path

import numpy as np
import pytest

from jurygraph.aggregation import advantages
from jurygraph.errors import InputError, NoRewardError
from jurygraph.integrations.failed_rewards import (
    FailedRewardRule,
    OutageGuard,
    fill_failed,
    read_failed_reward_rule,
)
from jurygraph.schema import Task
from tests.rows import all_rows

REWARDS = [1.0, None, 0.25, 0.5, None]


@all_rows(
    "rule, expected",
    [
        ("none", [1.0, None, 0.25, 0.5, None]),
        ("mask", [1.0, None, 0.25, 0.5, None]),
        ("neutral", [1.0, 1.75 / 3, 0.25, 0.5, 1.75 / 3]),
        (-1.0, [1.0, -1.0, 0.25, 0.5, -1.0]),
    ],
)
def test_a_rule_fills_failed_rewards_and_leaves_the_others(
    rule: FailedRewardRule, expected: list[float | None]
) -> None:
    assert fill_failed(REWARDS, rule).values == expected


def test_filling_in_the_mean_changes_the_siblings_by_the_recorded_factor_alone() -> None:
    filled = fill_failed(REWARDS, "neutral")
    judged = np.array([value for value in REWARDS if value is not None])
    after = advantages(np.array(filled.values, dtype=np.float64))
    assert filled.filled == 2
    assert filled.factor is not None
    assert after[[0, 2, 3]] == pytest.approx(filled.factor * advantages(judged), abs=1e-12)
    assert after[[1, 4]] == pytest.approx(0.0, abs=1e-12)
    assert fill_failed(REWARDS, 0.0).factor is None  # a constant has no one factor


def test_a_group_without_a_reward_has_nothing_to_be_filled_with() -> None:
    with pytest.raises(NoRewardError, match="none of 2 rewards of a group has a value"):
        fill_failed([None, None], "neutral")
    with pytest.raises(NoRewardError, match="1 of 2 rewards failed, and `failed` is `raise`"):
        fill_failed([None, 0.5], "raise")


def test_three_groups_in_a_row_without_a_reward_stop_a_training_under_every_setting() -> None:
    guard = OutageGuard()
    for _ in range(3):
        guard.observe([None, None])
        guard.observe([None, None])
        guard.observe([None, 0.0])  # 0 is a reward
    guard.observe([None])
    guard.observe([None])
    with pytest.raises(NoRewardError) as caught:
        guard.observe([None], ": it is torn")
    assert str(caught.value) == (
        "3 groups in a row got no reward at all: it is torn; `jurygraph show RUN` has what the judge replied if it is "
        "recorded"
    )


def test_the_error_that_stops_a_training_names_the_prompt_and_the_record(tmp_path: Path) -> None:
    guard = OutageGuard()
    guard.record = tmp_path
    task = Task(id="a", query=f"Write {'c' * 99}.")
    for _ in range(2):
        guard.observe([None], task=task)
    with pytest.raises(NoRewardError) as caught:
        guard.observe([None], task=task)
    assert str(caught.value) == (
        "3 groups in a row got no reward at all; the last one's prompt begins with "
        f"'Write {'c' * 53}…'; `jurygraph show {tmp_path}` has what the judge replied"
    )


def test_a_setting_is_a_rule_or_a_number() -> None:
    assert read_failed_reward_rule("auto", "neutral") == "neutral"
    assert read_failed_reward_rule("mask", "neutral") == "mask"
    assert read_failed_reward_rule("-0.5", "neutral") == -0.5
    for wrong in ("skip", "nan", True):
        with pytest.raises(
            InputError, match="write auto, none, mask, neutral, raise, or the number"
        ):
            read_failed_reward_rule(wrong, "none")
