"""The measures are those of DecompR's formulas, and of the numbers that it prints."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.studies.stability import (
    mean_of_units,
    ratio_of_means,
    summarize_drift,
    variance,
    weight_shift,
)

SCORES = st.lists(st.floats(1.0, 10.0), min_size=2, max_size=20)


@given(SCORES)
def test_the_variance_is_that_of_the_population_unless_it_is_asked_for_the_sample(
    scores: list[float],
) -> None:
    assert variance(scores) == pytest.approx(float(np.var(scores)), abs=1e-12)
    assert variance(scores, ddof=1) == pytest.approx(float(np.var(scores, ddof=1)), abs=1e-12)
    assert variance([1.0 + 9.0 * 0.1] * len(scores)) == 0.0


def test_table_9_follows_from_its_rounded_inputs() -> None:
    weights = np.array([0.100, 0.100, 0.300, 0.300, 0.200])
    means = np.array([0.126, 0.139, 0.228, 0.251, 0.255])
    utilities = np.array([8.0, 8.0, 1.0, 2.0, 6.0])
    printed = [-0.212, -0.316, 0.072, 0.098, -0.330]
    assert (weights - means) * utilities == pytest.approx(printed, abs=0.005)
    assert sum(printed) == pytest.approx(-0.688)
    assert weight_shift(weights, means, utilities) == pytest.approx(-0.680, abs=1e-9)


@given(st.integers(2, 6), st.integers(2, 8), st.integers(0, 10_000))
def test_drift_moves_a_score_only_where_weights_and_utilities_both_differ(
    people: int, variants: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(people), variants)
    utilities = rng.uniform(1.0, 10.0, (variants, people))
    fixed = np.repeat(weights[:1], variants, axis=0)
    assert np.abs(weight_shift(fixed, fixed.mean(axis=0), utilities)).max() < 1e-12
    equal = np.repeat(utilities[:, :1], people, axis=1)
    assert np.abs(weight_shift(weights, weights.mean(axis=0), equal)).max() < 1e-12
    shift = weight_shift(weights, weights.mean(axis=0), utilities)
    constant = weight_shift(weights, weights.mean(axis=0), utilities + 3.0)
    assert constant == pytest.approx(shift, abs=1e-9)


def test_table_3_is_in_units_of_the_mean_spread_within_units() -> None:
    weights = np.array([[0.5, 0.5], [0.7, 0.3], [0.3, 0.7]])
    utilities = np.array([[2.0, 8.0]] * 3)
    assert weight_shift(weights, weights.mean(axis=0), utilities) == pytest.approx([0.0, -1.2, 1.2])
    scores = (weights * utilities).sum(axis=1)
    still = (np.full((3, 2), 0.5), utilities, np.full(3, 5.0))
    found = summarize_drift([(weights, utilities, scores), still], ["a", "b"])
    assert (found.units, found.variants, found.spread) == (2, 6, pytest.approx(math.sqrt(0.96) / 2))
    assert found.mean_shift == pytest.approx(0.4 / found.spread)
    assert found.shift_range == pytest.approx(1.2 / found.spread)
    assert found.explained is not None
    assert found.explained.value == pytest.approx(1.0)
    assert (found.weight_cv, found.utility_cv) == (
        pytest.approx(np.std([0.5, 0.7, 0.3]) / 0.5 / 2),
        0.0,
    )


def test_a_ratio_of_means_has_an_interval_over_clusters_and_says_what_it_cannot_tell() -> None:
    above = {"a": [2.0, 4.0], "b": [3.0], "c": [5.0]}
    below = {"a": [1.0], "b": [2.0, 1.0], "c": [2.0]}
    found = ratio_of_means(above, below)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(3.5 / 1.5)
    assert 0.0 < found.low < found.value < found.high
    infinite = ratio_of_means(above, {"a": [0.0]})
    assert infinite is not None
    assert (infinite.value, infinite.low) == (math.inf, None)
    assert ratio_of_means({"a": [0.0]}, {"a": [0.0]}) is None
    assert ratio_of_means(above, {}) is None
    assert mean_of_units({}) is None
