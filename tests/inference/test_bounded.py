"""Intervals of means between known bounds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from jurygraph.inference.bounded import bounded_interval
from tests.rows import all_rows

Clusters = list[tuple[int, int]]
CLUSTERS: st.SearchStrategy[Clusters] = st.lists(
    st.integers(1, 6).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), min_size=2, max_size=12
)


@all_rows("n", [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50])
def test_the_exact_coverage_of_binary_members_is_at_least_93_percent_for_every_share(n: int) -> None:
    """Over all outcomes, by their binomial probabilities; Student's interval covers 2 % at n 5 and a share of .004."""
    found = [bounded_interval(1 * (np.arange(n) < hits), np.ones(n), 0.0, 1.0) for hits in range(n + 1)]
    low, high = np.array([one[1:3] for one in found], dtype=np.float64).T  # type: ignore[index]
    for share in np.linspace(0.004, 0.996, 249):
        covering = (low <= share) & (share <= high)
        assert binom.pmf(np.arange(n + 1), n, share)[covering].sum() >= 0.93


@pytest.mark.parametrize(("hits", "ends"), [(5, (0.508, 1.0)), (0, (0.0, 0.492)), (3, (0.077, 1.0))])
def test_five_members_have_the_ends_of_seven_by_hand(hits: int, ends: tuple[float, float]) -> None:
    """With one more at each bound: mean (hits + 1) / 7, and Student's quantile 2.447 of six degrees of freedom."""
    found = bounded_interval(1 * (np.arange(5) < hits), np.ones(5), 0.0, 1.0)
    assert found.value == hits / 5
    assert found[1:3] == pytest.approx(ends, abs=1e-3)
    mean = (hits + 1) / 7
    assert found.error == pytest.approx(np.sqrt(mean * (1 - mean) / 6))


@given(CLUSTERS, st.floats(0.1, 100.0), st.floats(-100.0, 100.0))
def test_a_scale_with_other_bounds_moves_the_ends_with_it(clusters: Clusters, width: float, least: float) -> None:
    hits, sizes = np.array(clusters).T
    one = bounded_interval(hits, sizes, 0.0, 1.0)
    other = bounded_interval(least * sizes + width * hits, sizes, least, least + width)
    assert other[:3] == pytest.approx([least + width * end for end in one[:3]], abs=1e-9 * (width + abs(least)))  # type: ignore[operator]


def test_variance_from_elsewhere_is_added() -> None:
    sums, sizes = np.arange(20) % 3, np.full(20, 4)
    one, other = (bounded_interval(sums, sizes, 0.0, 1.0, more) for more in (0.0, 0.01))
    assert other.error**2 == pytest.approx(one.error**2 + 0.01)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("sums", "sizes", "bounds", "expected"),
    [
        ([3.0], [4.0], (0.0, 1.0), (0.75, None, None, None, 1)),
        ([2.0, 2.0], [2.0, 2.0], (1.0, 1.0), (1.0, None, None, None, 2)),
        ([0.0, 3.0], [0.0, 4.0], (0.0, 1.0), (0.75, None, None, None, 1)),
        ([], [], (0.0, 1.0), None),
    ],
)
def test_one_cluster_or_equal_bounds_tell_no_interval(sums: Any, sizes: Any, bounds: Any, expected: Any) -> None:
    assert bounded_interval(sums, sizes, *bounds) == expected
