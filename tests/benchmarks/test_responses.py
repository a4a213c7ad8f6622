"""Simulated responses have the given mean, exchangeability and intra-class correlation."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.simulation.responses import KINDS, Design, Kind, decisions, differences
from jurygraph.arrays import Floats
from tests.rows import all_rows

pytestmark = pytest.mark.exhaustive

SAMPLES = 400


def correlation(drawn: Floats) -> float:
    """Return the correlation of any two responses of a task, over all samples and tasks."""
    pairs = drawn.reshape(-1, drawn.shape[2])
    return float(np.corrcoef(pairs, rowvar=False)[np.triu_indices(drawn.shape[2], 1)].mean())


@all_rows("kind", KINDS)
@all_rows("icc", [0.0, 0.3, 0.7])
def test_differences_have_the_given_mean_and_correlation(kind: Kind, icc: float) -> None:
    drawn = differences(kind, Design(100, 4, icc), SAMPLES, 0.1, np.random.default_rng(1))
    assert drawn.shape == (SAMPLES, 100, 4)
    of_tasks = drawn.mean(axis=2).ravel()
    assert of_tasks.mean() == pytest.approx(0.1, abs=4 * stats.sem(of_tasks))
    assert correlation(drawn) == pytest.approx(icc, abs=0.06 if "skewed" in kind else 0.02)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "skewed difference"])
def test_without_a_shift_the_runs_are_exchangeable(kind: Kind) -> None:
    """The difference is symmetric about 0, so that a sign-flip test is exact."""
    drawn = (
        differences(kind, Design(20, 4, 0.3), SAMPLES, 0.0, np.random.default_rng(2))
        .sum(axis=2)
        .ravel()
    )
    quantiles = np.quantile(drawn, [0.05, 0.25, 0.75, 0.95])
    assert quantiles[:2] == pytest.approx(-quantiles[:1:-1], abs=0.15 * quantiles[3] + 1e-9)


def test_the_lognormal_has_the_given_skewness() -> None:
    drawn = differences(
        "skewed difference", Design(1000, 1, 0.0), 2000, 0.0, np.random.default_rng(3)
    )
    assert stats.skew(drawn.ravel()) == pytest.approx(stats.lognorm(1.0).stats("s"), rel=0.25)


@pytest.mark.parametrize("p", [0.05, 0.5])
def test_decisions_are_met_with_the_given_probability(p: float) -> None:
    drawn = decisions(Design(50, 8, 0.7), p, SAMPLES, np.random.default_rng(4))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert drawn.mean() == pytest.approx(p, abs=4 * stats.sem(drawn.mean(axis=2).ravel()))
    assert correlation(drawn) == pytest.approx(0.7, abs=0.03)
