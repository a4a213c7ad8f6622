"""Proportions with Wilson intervals."""

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from jurygraph.inference.shares import wilson
from jurygraph.runs.canary import Proportion

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_the_interval_equals_scipys(seen: tuple[int, int]):
    hits, n = seen
    own, found = wilson(hits, n), binomtest(hits, n).proportion_ci(method="wilson")
    assert all(abs(one - other) < 1e-9 for one, other in zip(own, (found.low, found.high), strict=True))


@given(counts)
def test_the_rate_is_within_its_interval_and_the_interval_within_0_and_1(seen: tuple[int, int]):
    share = Proportion.from_counts(*seen)
    assert 0.0 <= share.low <= share.rate <= share.high <= 1.0


@given(counts)
def test_the_complement_has_the_mirrored_interval(seen: tuple[int, int]):
    hits, n = seen
    low, high = wilson(hits, n)
    mirrored = wilson(n - hits, n)
    assert abs(1.0 - high - mirrored[0]) < 1e-12
    assert abs(1.0 - low - mirrored[1]) < 1e-12


def test_zero_of_300_has_an_interval_above_zero():
    share = Proportion.from_counts(0, 300)
    assert (share.rate, share.low) == (0.0, 0.0)
    assert 0.012 < share.high < 0.013


def test_without_cases_there_is_no_rate():
    assert Proportion.from_counts(0, 0) == Proportion(hits=0, n=0, rate=None, low=None, high=None)
