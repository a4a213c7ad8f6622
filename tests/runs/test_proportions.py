"""Proportions with Wilson intervals."""

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.runs.canary import Proportion

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_the_rate_is_within_its_interval_and_the_interval_within_0_and_1(seen: tuple[int, int]):
    share = Proportion.from_counts(*seen)
    assert 0.0 <= share.low <= share.rate <= share.high <= 1.0


def test_zero_of_300_has_an_interval_above_zero():
    share = Proportion.from_counts(0, 300)
    assert (share.rate, share.low) == (0.0, 0.0)
    assert 0.012 < share.high < 0.013


def test_without_cases_there_is_no_rate():
    assert Proportion.from_counts(0, 0) == Proportion(hits=0, n=0, rate=None, low=None, high=None)
