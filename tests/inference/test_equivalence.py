"""Non-inferiority, and what a design can detect."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from jurygraph.inference.clusters import Estimate, ratio_interval
from jurygraph.inference.equivalence import detectable_difference, no_worse_p

means = st.lists(st.floats(-1.0, 1.0).map(lambda value: round(value, 3)), min_size=2, max_size=20)
margins = st.sampled_from([0.01, 0.1, 0.5])


def estimate(means: list[float], responses: int = 3) -> Estimate:
    return ratio_interval(np.multiply(means, responses), [responses] * len(means))


@given(means, margins)
def test_no_worse_is_statsmodels_one_sided_test_of_the_means_of_tasks(means: list[float], margin: float) -> None:
    assume(np.ptp(means) > 0.0)
    _, (_, below, _), _ = DescrStatsW(np.array(means)).ttost_mean(-margin, margin)
    assert no_worse_p(estimate(means), margin) == pytest.approx(below)


@pytest.mark.parametrize("same", [Estimate(0.1, None, None, None, 2), Estimate(0.1, 0.1, 0.1, 0.0, 8)])
def test_without_spread_there_is_no_p_and_no_detectable_difference(same: Estimate) -> None:
    """Eight equal tasks are no evidence of p = 0: up to 31 % of all tasks may still be others."""
    assert no_worse_p(same, 1.0) is detectable_difference(same) is None


@pytest.mark.parametrize("tasks", [3, 5, 10, 30, 300])
def test_the_detectable_difference_is_statsmodels(tasks: int) -> None:
    error = 0.3 / np.sqrt(tasks)
    found = detectable_difference(Estimate(0.0, -1.0, 1.0, error, tasks))
    expected = 0.3 * TTestPower().solve_power(nobs=tasks, alpha=0.05, power=0.8, alternative="two-sided")
    assert found == pytest.approx(expected, rel=1e-5)
