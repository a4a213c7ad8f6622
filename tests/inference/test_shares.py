"""Intervals of proportions: Wilson's, and over tasks with the effective number of trials."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from jurygraph.arrays import Floats
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import ProportionEstimate, share_interval, t_quantile, wilson

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
tasks = st.lists(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=12,
)


def share_of(tasks: list[tuple[int, int]]) -> ProportionEstimate:
    return share_interval([hits for hits, _ in tasks], [size for _, size in tasks])


def draw(tasks: int, responses: int, icc: float, p: float, rng: np.random.Generator) -> Floats:
    """Hits of tasks, beta-binomial with this intra-class correlation, which is below 1."""
    chances = p if icc == 0.0 else rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), tasks)
    return rng.binomial(responses, chances, tasks).astype(np.float64)


@given(counts)
def test_wilsons_interval_equals_those_of_scipy_and_statsmodels(seen: tuple[int, int]) -> None:
    found, scipys = wilson(*seen), stats.binomtest(*seen).proportion_ci(method="wilson")
    assert found == pytest.approx((scipys.low, scipys.high), abs=1e-9)
    assert found == pytest.approx(proportion_confint(*seen, method="wilson"), abs=1e-9)


@given(
    st.lists(st.sampled_from([0, 1]), min_size=2, max_size=60).filter(
        lambda hits: 0 < sum(hits) < len(hits)
    )
)
def test_tasks_of_one_response_have_wilsons_interval_with_students_t(hits: list[int]) -> None:
    found = share_interval(hits, [1] * len(hits))
    assert found.effective == pytest.approx(len(hits))
    expected = wilson(sum(hits), len(hits), t_quantile(len(hits) - 1))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


@given(tasks)
def test_a_share_is_within_its_interval_and_the_interval_within_0_and_1(
    tasks: list[tuple[int, int]],
) -> None:
    found = share_of(tasks)
    assert found.value == pytest.approx(
        sum(hits for hits, _ in tasks) / sum(size for _, size in tasks)
    )
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.high - found.low > 0.0
    assert 0.0 < found.effective <= sum(size for _, size in tasks)
    assert found.clusters == len(tasks)


@pytest.mark.parametrize("clusters", [2, 3, 10, 200])
def test_tasks_that_have_only_hits_or_none_have_the_exact_interval_of_as_many_trials(
    clusters: int,
) -> None:
    """Clopper and Pearson's: Wilson's with Student's t would begin at .01 for 2 of 2 tasks."""
    sizes = np.arange(clusters) + 1
    for hits, successes in ((0 * sizes, 0), (sizes, clusters)):
        found = share_interval(hits, sizes)
        assert (found.low, found.high) == pytest.approx(
            proportion_confint(successes, clusters, method="beta")
        )
        assert found.effective == clusters


def test_rare_hits_that_happen_to_be_spread_evenly_are_not_taken_for_independent_trials() -> None:
    """One hit in each of 3 of 30 tasks of 8: the variance between tasks alone would give all 240 trials."""
    found = share_of([(1, 8)] * 3 + [(0, 8)] * 27)
    assert found.effective < 120


@pytest.mark.parametrize(
    ("tasks", "responses", "icc", "p"), [(30, 8, 0.7, 0.05), (10, 20, 0.7, 0.1), (5, 8, 0.3, 0.5)]
)
def test_the_interval_covers_the_share(tasks: int, responses: int, icc: float, p: float) -> None:
    """With the variance between tasks alone, the first two cover .88 and .87; 1,000 draws tell .93 from them."""
    rng, covered = np.random.default_rng(7), 0
    for _ in range(1000):
        found = share_interval(draw(tasks, responses, icc, p, rng), [responses] * tasks)
        covered += found.low <= p <= found.high
    assert covered >= 930


def test_one_task_has_no_interval_and_none_no_share() -> None:
    assert share_interval([3], [4]) == ProportionEstimate(0.75, None, None, 1.0, 1)
    assert share_interval([0, 3], [0, 4]) == ProportionEstimate(0.75, None, None, 1.0, 1)
    assert share_interval([0], [0]) is None
    assert share_interval([], []) is None


@pytest.mark.parametrize(
    ("hits", "sizes", "message"),
    [
        ([3.0, 0.0], [2.0, 2.0], "no more hits than trials"),
        ([0.1, 0.0], [0.5, 2.0], "0 or at least 1 trials"),
        ([-1.0, 0.0], [2.0, 2.0], r"hits\[0\] is -1.0"),
        ([1.0], [2.0, 2.0], "sizes has shape"),
    ],
)
def test_invalid_hits_and_sizes_are_refused(
    hits: list[float], sizes: list[float], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        share_interval(hits, sizes)
