"""The online estimate of autocorrelations, against NumPy over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from benchmarks.simulation.autocorrelated import autoregression
from jurygraph.agents.data_analyzer.autocorrelation import BLOCK, MAX_AUTOCORRELATION, LagOne


def feed(lag_one: LagOne, scores: np.ndarray) -> LagOne:
    """Learn scores [T, S]; NaN are steps without one."""
    for row in np.asarray(scores, dtype=float):
        lag_one.learn(row, ~np.isnan(row))
    return lag_one


def moments_of_blocks(scores: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """Return the number of pairs of each block, and its products of deviations [2, 2]."""
    kept = scores[~np.isnan(scores)]
    pairs = np.column_stack([kept[:-1], kept[1:]])
    blocks = [pairs[start : start + BLOCK] for start in range(0, len(pairs), BLOCK)]
    products = [(block - block.mean(axis=0)).T @ (block - block.mean(axis=0)) for block in blocks]
    return [len(block) for block in blocks], products


@given(st.integers(0, 999), st.integers(30, 3 * BLOCK), st.floats(-0.9, 0.9), st.floats(0.0, 0.3))
def test_the_running_estimate_equals_that_of_all_pairs(seed: int, steps: int, rho: float, missing: float) -> None:
    rng = np.random.default_rng(seed)
    scores = np.array([row[0] for row, _ in zip(autoregression(rho, 1, seed), range(steps), strict=False)])
    scores[rng.random(steps) < missing] = np.nan
    lag_one = feed(LagOne((1,)), scores[:, None])
    sizes, products = moments_of_blocks(scores)
    blocks = sum(size > 1 for size in sizes)
    varying = [(size, product) for size, product in zip(sizes, products, strict=True) if size > 1]
    total = sum(size * 2 * product[0, 1] / np.trace(product) for size, product in varying)
    expected = (total + blocks) / (sum(size for size, _ in varying) - 3 * blocks)
    assert_allclose(lag_one.estimate(), [np.clip(expected, -MAX_AUTOCORRELATION, MAX_AUTOCORRELATION)], rtol=1e-7)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.3, 0.6])
def test_short_series_are_not_biased(rho: float) -> None:
    """Uncorrected, the mean of 40 steps would be too low by .03 to .09."""
    scores = np.stack([row for row, _ in zip(autoregression(rho, 4000, 1), range(40), strict=False)])
    assert feed(LagOne((4000,)), scores).estimate().mean() == pytest.approx(rho, abs=0.01)


def test_a_change_of_level_is_no_autocorrelation() -> None:
    scores = np.random.default_rng(2).normal(size=(400, 1)) + 3.0 * (np.arange(400) >= 200)[:, None]
    assert np.corrcoef(scores[:-1, 0], scores[1:, 0])[0, 1] > 0.6
    assert float(feed(LagOne((1,)), scores).estimate()[0]) < 0.25


@pytest.mark.parametrize("scores", [[0.1 + 0.2, 0.3] * 20, [1.0] * 40, [1.0, 2.0] * 4])
def test_rounding_errors_and_few_scores_give_no_estimate(scores: list[float]) -> None:
    assert np.isnan(feed(LagOne((1,)), np.array(scores)[:, None]).estimate()).all()
