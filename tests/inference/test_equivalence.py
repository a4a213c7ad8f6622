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
    found = ratio_interval(np.multiply(means, responses), [responses] * len(means))
    assert found is not None
    return found


@given(means, margins)
def test_no_worse_is_statsmodels_one_sided_test_of_the_means_of_tasks(means: list[float], margin: float) -> None:
    assume(np.ptp(means) > 0.0)
    _, (_, below, _), _ = DescrStatsW(np.array(means)).ttost_mean(-margin, margin)
    assert no_worse_p(estimate(means), margin) == pytest.approx(below)


@given(means, st.floats(0.0, 1.0))
def test_no_worse_at_025_is_an_interval_above_the_margin(means: list[float], margin: float) -> None:
    found = estimate(means)
    assume(found.error and found.low is not None and abs(found.low + margin) > 1e-9)
    p = no_worse_p(found, margin)
    assert p is not None
    assert found.low is not None
    assert (p < 0.025) == (found.low > -margin)


@given(means)
def test_a_wider_margin_is_easier_to_keep(means: list[float]) -> None:
    found = estimate(means)
    assume(found.error)
    values = [no_worse_p(found, margin) for margin in (0.0, 0.1, 1.0, 5.0)]
    assert values == sorted(values, reverse=True)


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


@pytest.mark.parametrize("tasks", [3, 10, 40])
def test_a_detectable_difference_is_found_in_four_of_five_cases(tasks: int) -> None:
    """The textbook's (t_.975 + t_.8) x error is found in .77 of the cases with 3 tasks."""
    rng = np.random.default_rng(6)
    difference = detectable_difference(Estimate(0.0, -1.0, 1.0, 1.0 / np.sqrt(tasks), tasks))
    assert difference is not None
    found = 0
    for drawn in rng.normal(difference, 1.0, (4000, tasks)):
        one = ratio_interval(drawn, np.ones(tasks))
        assert one is not None
        assert one.low is not None
        found += one.low > 0.0
    assert found / 4000 == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 4000))
