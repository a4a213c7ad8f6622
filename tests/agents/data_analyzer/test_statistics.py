"""Statistics of rows, against their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from jurygraph.agents.data_analyzer import TrainingStep
from jurygraph.agents.data_analyzer.series import (
    disagreement,
    extremes,
    length_correlation,
    moments,
    saturation,
    within_correlation,
)

unit = st.sampled_from([0.0, 0.2, 0.5, 1.0, math.nan])


def groups_of(ids: list[int]):
    return TrainingStep(np.zeros(len(ids)), groups=ids).groups


@given(st.lists(unit, min_size=1, max_size=12))
def test_moments_are_those_of_the_rows_that_are_numbers(values: list[float]) -> None:
    there = [value for value in values if not math.isnan(value)]
    found = moments(np.array(values))
    if not there:
        assert all(np.isnan(one) for one in found)
        return
    assert found[0] == len(there)
    assert_allclose(found[1:], [np.mean(there), np.std(there), max(there) - min(there)], atol=1e-12)


def test_a_correlation_between_prompts_does_not_count() -> None:
    lengths = np.array([10.0, 12.0, 100.0, 102.0])
    rewards = np.array([0.2, 0.1, 0.9, 0.8])
    assert np.corrcoef(lengths, rewards)[0, 1] > 0.9
    assert float(within_correlation(lengths, rewards, groups_of([0, 0, 1, 1]))) == pytest.approx(-1.0)


def test_ties_share_their_rank_and_missing_values_have_none() -> None:
    lengths = np.array([30.0, np.nan, 10.0, 10.0, 20.0])
    rewards = np.array([0.1, 0.9, 0.5, 0.3, 0.2])
    expected = within_correlation(np.array([4.0, np.nan, 1.5, 1.5, 3.0]), rewards, None)
    assert length_correlation(lengths, rewards, None) == pytest.approx(float(expected))


def test_a_group_of_two_or_more_equal_rewards_is_saturated() -> None:
    rewards = np.array([1.0, 1.0, 0.0, 1.0, 0.3, np.nan, np.nan, 0.5, 0.5])
    groups = groups_of([0, 0, 1, 1, 2, 2, 3, 3, 3])
    assert groups is not None
    assert_allclose(saturation(rewards, groups), [1.0, 0.0, np.nan, 1.0])


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=2, max_size=4))
def test_disagreement_is_the_mean_distance_over_pairs(columns: list[list[float]]) -> None:
    pairs = list(combinations(columns, 2))
    plain = [sum(abs(a[row] - b[row]) for a, b in pairs) * 2 / (len(columns) * (len(columns) - 1)) for row in range(4)]
    assert_allclose(disagreement([np.array(column) for column in columns]), plain, atol=1e-12)


def test_extremes_are_counted_over_all_components() -> None:
    found = extremes([np.array([0.0, 1.0, 0.5]), np.array([0.2, np.nan, 1.0])])
    assert_allclose(found, [1.0, 1.0, 0.0, 0.0, np.nan, 1.0])
