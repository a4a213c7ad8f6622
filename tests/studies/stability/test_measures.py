"""The measures are those of DecompR's formulas, and of the numbers that it prints."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.wording import sem_over_rep
from jurygraph.studies.stability import (
    diagnose_drift,
    variance,
    weight_shift,
    wording_variance,
)
from tests.rows import all_rows

SCORES = st.lists(st.floats(1.0, 10.0), min_size=2, max_size=20)


@given(SCORES)
def test_the_variance_has_the_number_of_scores_less_1_as_divisor(scores: list[float]) -> None:
    assert variance(scores) == pytest.approx(float(np.var(scores, ddof=1)), abs=1e-12)
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
    found = diagnose_drift([(weights, utilities, scores), still], ["a", "b"])
    assert (found.units, found.variants, found.spread) == (2, 6, pytest.approx(math.sqrt(1.44) / 2))
    assert found.mean_shift == pytest.approx(0.4 / found.spread)
    assert found.shift_range == pytest.approx(1.2 / found.spread)
    assert found.explained is not None
    assert found.explained.value == pytest.approx(1.0)
    assert (found.weight_cv, found.utility_cv) == (
        pytest.approx(np.std([0.5, 0.7, 0.3], ddof=1) / 0.5 / 2),
        0.0,
    )


def test_a_judge_blind_to_wording_has_1_by_the_same_divisor_and_the_factor_of_its_repeats() -> None:
    variants = np.array([[1.0, 3.0, 5.0], [2.0, 2.0, 5.0]])  # variances 4 and 3
    repeats = np.array([[1.0, 3.0, 2.0], [4.0, 4.0, 7.0]])  # 1 and 3
    found = sem_over_rep(variants, repeats)
    assert found is not None
    assert found.value == pytest.approx(3.5 / 2.0 * (4 - 2) / 4)  # d = 2 · (3 - 1)
    part = wording_variance({"a": [4.0], "b": [3.0]}, {"a": [1.0], "b": [3.0]})
    assert part is not None
    assert part.value == 1.5
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2000, 15 + 2))
    blind = sem_over_rep(scores[:, :15], scores[:, 15:])
    assert blind is not None
    assert blind.value == pytest.approx(1.0, abs=0.1)


@all_rows(
    "repeats, value",
    [
        ([[1.0, 2.0], [3.0, 4.0]], None),  # d = 2: the inverse of the variance has no mean
        ([[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]], math.inf),  # a judge that repeats itself
    ],
)
def test_few_repeats_have_no_ratio_and_equal_ones_an_infinite_one(
    repeats: list[list[float]], value: float | None
) -> None:
    found = sem_over_rep(np.array([[1.0, 3.0], [2.0, 5.0]]), np.array(repeats))
    assert (found and found.value) == value


def test_a_part_of_wording_below_0_is_0_with_the_upper_end_of_its_interval() -> None:
    rng = np.random.default_rng(2)
    noise = rng.chisquare(4, 30) / 4
    found = wording_variance(
        dict(enumerate_(0.8 * noise)), dict(enumerate_(rng.chisquare(4, 30) / 4))
    )
    assert found is not None
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high is not None
    assert 0.0 < found.high < 1.0


def enumerate_(values: np.ndarray) -> list[tuple[str, list[float]]]:
    return [(str(place), [value]) for place, value in enumerate(values.tolist())]
