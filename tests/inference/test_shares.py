"""Intervals of proportions: Wilson's, and over clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from jurygraph.inference.shares import share_interval, wilson

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_the_interval_equals_scipys(seen: tuple[int, int]):
    hits, n = seen
    own, found = wilson(hits, n), binomtest(hits, n).proportion_ci(method="wilson")
    assert all(abs(one - other) < 1e-9 for one, other in zip(own, (found.low, found.high), strict=True))


@given(counts)
def test_the_complement_has_the_mirrored_interval(seen: tuple[int, int]):
    hits, n = seen
    low, high = wilson(hits, n)
    mirrored = wilson(n - hits, n)
    assert abs(1.0 - high - mirrored[0]) < 1e-12
    assert abs(1.0 - low - mirrored[1]) < 1e-12


def test_zero_of_300_has_an_interval_above_zero():
    low, high = wilson(0, 300)
    assert low == 0.0
    assert 0.012 < high < 0.013


# Over clusters


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12))
def test_the_share_is_within_its_interval_and_the_interval_within_0_and_1(drawn: list[tuple[int, int]]):
    found = share_interval([min(pair) for pair in drawn], [max(pair) for pair in drawn])
    if found is None or found.clusters == 1:
        assert sum(max(pair) > 0 for pair in drawn) < 2
        return
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0


@pytest.mark.parametrize("clusters", [2, 3, 10, 200])
def test_clusters_that_agree_have_the_exact_interval_of_as_many_trials(clusters: int):
    """Clopper and Pearson's: with 2 of 2 clusters, Wilson's with t of one degree of freedom began at .01."""
    sizes = np.arange(clusters) + 1
    for hits, successes in ((0 * sizes, 0), (sizes, clusters)):
        found = share_interval(hits, sizes)
        assert found is not None
        assert (found.low, found.high) == pytest.approx(proportion_confint(successes, clusters, method="beta"))
        assert found.effective == clusters


def test_the_interval_of_clusters_that_agree_misses_the_true_share_no_oftener_than_it_may():
    """Six clusters of 20 with an intra-class correlation of .5, at a share that lies above the interval of no hits."""
    rng = np.random.default_rng(11)
    found = share_interval(np.zeros(6), np.full(6, 20))
    assert found is not None
    assert found.high is not None
    share = found.high + 1e-9
    hits = rng.binomial(20, rng.beta(share, 1.0 - share, (20_000, 6))).sum(axis=1)
    assert np.mean(hits == 0) <= 0.025
