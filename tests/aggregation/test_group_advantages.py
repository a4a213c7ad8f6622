"""Advantages within groups, and the factor by which filling in a failed reward changes them (formulas, section 6)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import advantages, filling_factor
from jurygraph.errors import PlanError
from tests.rows import all_rows

NAN = float("nan")
SETTINGS: list[dict[str, Any]] = [
    {"normalize": "std", "ddof": 1},
    {"normalize": "std", "ddof": 0},
    {"normalize": "none"},
    {"normalize": "leave-one-out"},
]
distinct_rewards = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12, unique=True)


@pytest.mark.parametrize("ddof", [0, 1])
def test_an_advantage_is_the_distance_from_the_groups_mean_in_its_standard_deviations(
    ddof: int,
) -> None:
    rewards = np.array([1.0, 0.2, 0.4, NAN, 0.9, 0.1])
    groups = ["a", "b", "a", "a", "b", "a"]
    for name in "ab":
        inside = np.array([group == name for group in groups])
        judged = rewards[inside & ~np.isnan(rewards)]
        expected = (judged - judged.mean()) / (judged.std(ddof=ddof) + 1e-4)
        found = advantages(rewards, groups, ddof=ddof, epsilon=1e-4)[inside & ~np.isnan(rewards)]
        assert found == pytest.approx(expected, abs=1e-12)
    assert np.isnan(advantages(rewards, groups)[3])


def test_leave_one_out_compares_with_the_mean_of_the_others() -> None:
    found = advantages([1.0, 0.0, 0.5, NAN], normalize="leave-one-out")
    assert found[:3] == pytest.approx([0.75, -0.75, 0.0], abs=1e-12)


@given(distinct_rewards, st.integers(0, 8), st.sampled_from(SETTINGS))
def test_filling_in_the_mean_changes_every_judged_advantage_by_the_stated_factor(
    rewards: list[int], failed: int, setting: dict[str, Any]
) -> None:
    judged = np.array(rewards, dtype=np.float64)
    filled = np.concatenate([judged, np.full(failed, judged.mean())])
    factor = filling_factor(len(judged), len(filled), **setting)
    before = advantages(judged, **setting)
    after = advantages(filled, **setting)
    assert after[: len(judged)] == pytest.approx(factor * before, rel=1e-9, abs=1e-9)
    assert after[len(judged) :] == pytest.approx(0.0, abs=1e-9)


def test_the_factors_are_those_of_the_formulas() -> None:
    assert filling_factor(5, 8) == pytest.approx(1.3229, abs=1e-4)
    assert filling_factor(2, 8) == pytest.approx(2.6458, abs=1e-4)
    assert filling_factor(5, 8, ddof=0) == pytest.approx(1.2649, abs=1e-4)
    assert filling_factor(5, 8, normalize="leave-one-out") == pytest.approx(0.9143, abs=1e-4)
    assert filling_factor(1, 8) == filling_factor(8, 8) == 1.0


@all_rows("rewards", [[0.7], [0.1, 0.1, 0.1], [NAN, 0.3, NAN]])
def test_a_lone_reward_and_equal_rewards_have_the_advantage_0(rewards: list[float]) -> None:
    found = advantages(rewards)
    assert (found[~np.isnan(rewards)] == 0.0).all()


def test_what_cannot_be_normalised_is_refused() -> None:
    for problem, call in (
        (r"rewards has shape \(1, 1\)", lambda: advantages([[1.0]])),
        (r"rewards\[1\] is inf", lambda: advantages([1.0, float("inf")])),
        ("groups has 1 ids for 2 rewards", lambda: advantages([1.0, 2.0], ["a"])),
        ("normalize is 'sd'", lambda: advantages([1.0], normalize="sd")),  # type: ignore[arg-type]
        ("ddof is 2", lambda: advantages([1.0], ddof=2)),
        ("0 of 4 members are judged", lambda: filling_factor(0, 4)),
    ):
        with pytest.raises(PlanError, match=problem):
            call()
