"""The rows of a step, and what is measured of them, against their definitions."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from jurygraph.agents.data_analyzer import (
    SeriesSpec,
    TrainingStep,
    disagreement,
    find_conflict_threshold,
    flag_saturated_groups,
    length_correlation,
    measure_mean,
    measure_shape,
    measure_spread,
)
from jurygraph.errors import InputError
from tests.rows import all_rows

counts = st.integers(2, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
unit = st.sampled_from([0.0, 0.2, 0.5, 1.0, math.nan])


def grouped(ids: list[Any], rewards: list[float] | None = None) -> TrainingStep:
    return TrainingStep(np.zeros(len(ids)) if rewards is None else rewards, groups=ids)


@all_rows(
    ("columns", "message"),
    [
        ({"rewards": []}, "rewards has shape"),
        ({"rewards": 1.0}, "rewards has shape"),
        ({"rewards": ["a"]}, "rewards are not all numbers"),
        ({"rewards": [1.0, np.inf]}, "rewards has a value beyond"),
        ({"rewards": [1.0, 2.0], "components": {"format": [1.0]}}, "component 'format' has shape"),
        ({"rewards": [1.0, 2.0], "lengths": [1.0, -2.0]}, "lengths has a value below 0"),
        (
            {"rewards": [1.0], "components": {"format": [1e101]}},
            "component 'format' has a value beyond",
        ),
        ({"rewards": [1.0, 2.0], "groups": ["a"]}, "groups has 1 ids for 2 rows"),
        ({"rewards": [[1.0]]}, "rewards has shape"),
    ],
)
def test_an_invalid_step_is_refused_by_name(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingStep(**columns)


@given(st.lists(unit, min_size=1, max_size=12))
def test_a_mean_is_that_of_the_rows_that_are_numbers(values: list[float]) -> None:
    there = [value for value in values if not math.isnan(value)]
    measure = measure_mean(np.array(values), is_share=False)
    if there:
        error = max(np.std(there) / math.sqrt(len(there)), 1e-9 * (1 + abs(np.mean(there))))
        assert_allclose(measure, [np.mean(there), np.mean(there), error], atol=1e-12)
    else:
        assert np.isnan(measure).all()


@given(counts)
def test_a_share_can_be_read_back_from_its_score_to_one_row(drawn: tuple[int, int]) -> None:
    count, rows = drawn
    measure = measure_mean(np.arange(rows) < count, is_share=True)
    share = SeriesSpec("a", "up", True).value_of_score(float(measure.score))
    assert share == pytest.approx(count / rows, abs=1 / rows)
    assert measure.floor > 0.0


@given(st.floats(0.2, 0.8), st.integers(100, 5000))
def test_a_shares_noise_is_about_one_over_the_root_of_its_rows_at_any_level(
    level: float, rows: int
) -> None:
    measure = measure_mean(np.arange(rows) < round(level * rows), is_share=True)
    assert measure.floor == pytest.approx(1 / np.sqrt(rows), rel=0.15)


def test_a_correlation_between_prompts_does_not_count() -> None:
    lengths = np.array([10.0, 12.0, 100.0, 102.0])
    rewards = np.array([0.2, 0.1, 0.9, 0.8])
    assert np.corrcoef(lengths, rewards)[0, 1] > 0.9
    assert float(
        length_correlation(lengths, rewards, grouped([0, 0, 1, 1]).groups)
    ) == pytest.approx(-1.0)
    assert np.isnan(length_correlation(lengths, rewards, grouped([0, 1, 2, 3]).groups))


def test_ties_share_their_rank_and_missing_values_have_none() -> None:
    lengths = np.array([30.0, np.nan, 10.0, 10.0, 20.0])
    rewards = np.array([0.1, 0.9, 0.5, 0.3, 0.2])
    ranks = [4.0, 1.5, 1.5, 3.0]
    expected = np.corrcoef(ranks, [0.1, 0.5, 0.3, 0.2])[0, 1]
    assert length_correlation(lengths, rewards, None) == pytest.approx(float(expected))


def test_a_group_of_two_or_more_equal_rewards_is_saturated() -> None:
    step = grouped(
        ["d", "d", 1, 1, "b", "b", "c", "c", "c"],
        [1.0, 1.0, 0.0, 1.0, 0.3, np.nan, np.nan, 0.5, 0.5],
    )
    assert step.groups is not None
    assert_allclose(flag_saturated_groups(step.rewards, step.groups), [0.0, np.nan, 1.0, 1.0])


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=2, max_size=4))
def test_disagreement_is_the_mean_distance_over_pairs(columns: list[list[float]]) -> None:
    pairs = list(combinations(columns, 2))
    plain = [
        sum(abs(a[row] - b[row]) for a, b in pairs) * 2 / (len(columns) * (len(columns) - 1))
        for row in range(4)
    ]
    named = {str(place): column for place, column in enumerate(columns)}
    assert_allclose(disagreement(TrainingStep(np.zeros(4), named), tuple(named)), plain, atol=1e-12)


@pytest.mark.parametrize(
    ("pairs", "limit"),
    [
        (np.arange(101.0) / 100, 0.81),  # above the 80th percentile
        ([0.0, 0.0, 0.5, 0.5, 0.5], 0.5),  # the percentile is the maximum, and its ties conflict
        ([np.nan, 0.2, np.nan], 0.2),
        ([np.nan] * 9, np.nan),
    ],
)
def test_rows_above_the_80th_percentile_of_disagreement_conflict(
    pairs: list[float], limit: float
) -> None:
    assert find_conflict_threshold([np.array(pairs)]) == pytest.approx(limit, nan_ok=True)


def test_the_spread_is_the_sd_and_is_tested_by_its_logarithm() -> None:
    rewards = np.array([0.1, 0.4, math.nan, 0.9])
    measure = measure_spread(rewards)
    spread = np.std([0.1, 0.4, 0.9], ddof=1)
    assert (measure.value, measure.score) == (
        pytest.approx(spread),
        pytest.approx(math.log(spread)),
    )
    assert SeriesSpec("spread", "down", False, True).value_of_score(measure.score) == pytest.approx(
        spread
    )
    for unspread, value in (([0.5], math.nan), ([0.5, 0.5], 0.0), ([math.nan], math.nan)):
        measure = measure_spread(np.array(unspread))
        assert math.isnan(measure.score)
        assert measure.value == pytest.approx(value, nan_ok=True)


def test_the_shape_is_the_mean_difference_of_rewards_of_equal_rank_beside_the_mean() -> None:
    reference = np.array([-1.0, 0.0, 1.0])
    assert math.isnan(measure_shape(reference + 7.0, reference).value), "nothing has moved"
    measure = measure_shape(np.array([0.0, 2.0, 4.0]), reference)
    assert measure.value == pytest.approx(2 / 3)
    assert measure.score == pytest.approx(math.log(2 / 3))
    assert math.isnan(measure_shape(np.array([1.0]), reference).value)
    assert math.isnan(measure_shape(reference, np.empty(0)).value)
