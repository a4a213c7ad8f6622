"""Trends of autocorrelated series, against pymannkendall, SciPy and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulation.autocorrelated import autoregression
from jurygraph.errors import PlanError
from jurygraph.inference.series import MIN_STEPS, lag_one, significant_factor, trend_test

T = np.arange(1, 25)


def draw_series(rho: float, count: int, steps: int, seed: int) -> np.ndarray:
    """Return series without trend, [count, steps]."""
    return np.stack([row for row, _ in zip(autoregression(rho, count, seed), range(steps), strict=False)], axis=1)


@pytest.mark.parametrize(
    ("values", "variance"),
    [
        (np.sin(T / 3) + T / 15, 4786.791014492754),
        (np.cos(T * T / 50) * 2 + T / 30, 3729.521666666666),
        (np.cos(2.8 * T) + 0.02 * T, 166.29779973649556),
        (np.round(np.sin(T / 4) * 3 + T / 8), 2928.9215082774817),
    ],
    ids=["slow wave", "chirp", "fast wave", "ties"],
)
def test_hamed_and_raos_factor_equals_pymannkendall_1_4_3(values: np.ndarray, variance: float) -> None:
    rounded = np.round(values, 3)
    residuals = np.round(rounded - stats.theilslopes(rounded, T).slope * T, 9)
    ties = np.unique(rounded, return_counts=True)[1]
    independent = (24 * 23 * 53 - np.sum(ties * (ties - 1) * (2 * ties + 5))) / 18
    assert significant_factor(residuals) * independent == pytest.approx(variance)


@pytest.mark.parametrize(("rho", "steps"), [(0.0, 20), (0.5, 20), (0.5, 60)])
@pytest.mark.parametrize("fitted", [1, 2])
def test_lag_one_is_hardly_biased(rho: float, steps: int, fitted: int) -> None:
    """Uncorrected, the mean of 20 steps would be too low by .2 at ρ = .5, around a line."""
    drawn = draw_series(rho, 2000, steps, 1) + 3.0
    if fitted == 2:
        line = np.polynomial.polynomial.polyfit(np.arange(steps), drawn.T, 1)
        drawn = drawn - np.polynomial.polynomial.polyval(np.arange(steps), line)
    assert np.mean([lag_one(one, fitted) for one in drawn]) == pytest.approx(rho, abs=0.06)


def test_short_and_constant_series_have_no_autocorrelation() -> None:
    assert lag_one(np.arange(MIN_STEPS - 1.0)) is None
    assert lag_one(np.ones(50)) is None
    assert lag_one(np.arange(50.0)) == 0.98


@given(st.lists(st.integers(0, 5), min_size=2, max_size=9))
def test_without_an_estimate_it_is_kendalls_test(values: list[int]) -> None:
    found = trend_test(np.arange(len(values)), values)
    if len(set(values)) == 1:
        assert found is None
        return
    plain = stats.kendalltau(np.arange(len(values)), values)
    assert found.kendall == pytest.approx(plain.statistic)
    assert found.autocorrelation is None
    if found.factor == 1.0:
        assert found.p == pytest.approx(plain.pvalue)


@pytest.mark.parametrize("spread", [1.0, 0.5, 0.01])
def test_a_straight_line_of_rounded_values_is_one_too(spread: float) -> None:
    """What is left of it would be the rounding, whose autocorrelation made p .03 for 12 steps."""
    found = trend_test(np.arange(12), np.round(0.1 + np.linspace(0.0, spread, 12), 9))
    assert (found.factor, found.autocorrelation) == (1.0, None)
    assert found.p == pytest.approx(2 / 479001600)


@given(st.integers(0, 99), st.floats(0.01, 100), st.floats(-50, 50))
def test_unit_origin_and_direction_of_the_values_do_not_matter(seed: int, unit: float, origin: float) -> None:
    values = np.random.default_rng(seed).normal(size=25)
    one, other, mirrored = (trend_test(np.arange(25), column) for column in (values, origin + unit * values, -values))
    assert other.p == pytest.approx(one.p)
    assert (mirrored.p, mirrored.kendall) == (pytest.approx(one.p), pytest.approx(-one.kendall))


@pytest.mark.parametrize(("rho", "most"), [(0.0, 0.06), (0.3, 0.08), (0.6, 0.11)])
def test_series_of_50_steps_without_trend_are_rejected_at_about_the_level(rho: float, most: float) -> None:
    """Kendall's test alone rejects .04, .14 and .30 of them, Hamed and Rao's .10, .17 and .21."""
    drawn = draw_series(rho, 300, 50, 6)
    found = [trend_test(np.arange(50), one) for one in drawn]
    assert np.mean([one is not None and one.p is not None and one.p <= 0.05 for one in found]) <= most


@pytest.mark.parametrize("values", [[1.0, float("nan"), 2.0], [1.0, 2.0]])
def test_missing_values_and_other_shapes_are_refused(values: list[float]) -> None:
    with pytest.raises(PlanError, match="values"):
        trend_test([1, 2, 3], values)
