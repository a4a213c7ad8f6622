"""Intervals of means over clusters, with bounds or without, and draws of clusters."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom

from jurygraph.errors import PlanError
from jurygraph.inference.clusters import (
    Estimate,
    bonferroni_interval,
    bounded_interval,
    difference_interval,
    draw_clusters,
    mean_with_cluster_interval,
    ratio_interval,
    share_interval,
    share_with_cluster_interval,
    t_quantile,
)
from tests.rows import all_rows

rewards = st.floats(-100.0, 100.0).map(lambda value: round(value, 3))
clusters = st.lists(st.lists(rewards, min_size=1, max_size=5), min_size=2, max_size=8)


def mean_interval(clusters: list[list[float]]) -> Estimate:
    return ratio_interval(
        [math.fsum(values) for values in clusters], [len(values) for values in clusters]
    )


def test_members_are_summed_by_the_names_or_numbers_of_their_clusters() -> None:
    names = ["b", "a", "b", "c"]
    assert mean_with_cluster_interval([1.0, 2.0, 4.0, 8.0], names) == ratio_interval(
        [2.0, 5.0, 8.0], [1, 2, 1]
    )
    assert share_with_cluster_interval([True, False, False, True], names) == share_interval(
        [0, 1, 1], [1, 2, 1]
    )
    assert mean_with_cluster_interval([8.0, 1.0], [5, 2]) == ratio_interval([1.0, 8.0], [1, 1])
    assert mean_with_cluster_interval([], []) is None
    assert share_with_cluster_interval([], []) is None


def plain_jackknife(clusters: list[list[float]]) -> float:
    """Return the standard error by refitting least squares on a constant without each cluster."""
    numbers = [np.concatenate(clusters[:out] + clusters[out + 1 :]) for out in range(len(clusters))]
    refitted = [float(np.linalg.lstsq(np.ones((len(v), 1)), v, rcond=None)[0][0]) for v in numbers]
    whole = float(np.concatenate(clusters).mean())
    return math.sqrt(
        (len(clusters) - 1) / len(clusters) * sum((one - whole) ** 2 for one in refitted)
    )


@given(st.integers(1, 4), st.lists(rewards, min_size=2, max_size=12))
def test_clusters_of_one_size_have_students_interval_of_their_means(
    size: int, means: list[float]
) -> None:
    assume(np.ptp(means) > 1e-3)
    found = ratio_interval(np.multiply(means, size), [size] * len(means))
    expected = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert found.value == pytest.approx(np.mean(means), abs=1e-9)
    assert (found.low, found.high) == (
        pytest.approx(expected.low, abs=1e-8),
        pytest.approx(expected.high, abs=1e-8),
    )
    assert found.error == pytest.approx(stats.sem(means))
    assert found.clusters == len(means)


@given(clusters)
def test_clusters_of_any_sizes_have_the_error_of_refitting_without_each(
    clusters: list[list[float]],
) -> None:
    found, error = mean_interval(clusters), plain_jackknife(clusters)
    assume(error > 1e-6)
    assert found.value == pytest.approx(np.concatenate(clusters).mean())
    assert found.error == pytest.approx(error, rel=1e-6)
    assert found.high - found.value == pytest.approx(
        stats.t.ppf(0.975, len(clusters) - 1) * error, rel=1e-6
    )


def test_clusters_of_size_0_contribute_nothing() -> None:
    assert ratio_interval([1.0, 0.0, 3.0], [1, 0, 2]) == ratio_interval([1.0, 3.0], [1, 2])
    assert ratio_interval([], []) is None
    assert ratio_interval([0.0, 0.0], [0, 0]) is None


def test_one_cluster_has_no_interval_however_many_members() -> None:
    assert ratio_interval([30.0], [100]) == Estimate(0.3, None, None, None, 1)


@pytest.mark.parametrize("count", [2, 6, 1000])
def test_equal_clusters_have_no_interval(count: int) -> None:
    """However many agree, others may not."""
    assert ratio_interval([0.1] * count, [1] * count) == Estimate(
        pytest.approx(0.1), None, None, 0.0, count
    )


@given(clusters, st.integers(1, 50))
def test_one_of_several_intervals_is_wider_by_bonferroni(
    clusters: list[list[float]], rows: int
) -> None:
    found = mean_interval(clusters)
    low, high = bonferroni_interval(found, rows)
    if found.error:
        assert high is not None
        expected = found.value + stats.t.ppf(1.0 - 0.025 / rows, found.clusters - 1) * found.error
        assert high == pytest.approx(expected)
        assert (low, high) == pytest.approx((2 * found.value - high, high))
    else:
        assert (low, high) == (None, None)


@pytest.mark.parametrize(
    ("sums", "sizes", "message"),
    [
        ([1.0], [1.0, 2.0], "sizes has shape"),
        ([1.0, math.nan], [1, 1], r"sums\[1\] is nan: a finite number is needed"),
        ([1.0, 1.0], [1, -1], r"sizes\[1\] is -1.0: at least 0 is needed"),
    ],
)
def test_invalid_sums_and_sizes_are_refused(
    sums: list[float], sizes: list[float], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        ratio_interval(sums, sizes)


Clusters = list[tuple[int, int]]
CLUSTERS: st.SearchStrategy[Clusters] = st.lists(
    st.integers(1, 6).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))),
    min_size=2,
    max_size=12,
)


@all_rows("n", [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50])
def test_the_exact_coverage_of_binary_members_is_at_least_93_percent_for_every_share(
    n: int,
) -> None:
    """Over all outcomes, by their binomial probabilities; Student's interval covers 2 % at n 5 and a share of .004."""
    found = [
        bounded_interval(1 * (np.arange(n) < hits), np.ones(n), 0.0, 1.0) for hits in range(n + 1)
    ]
    low, high = np.array([one[1:3] for one in found], dtype=np.float64).T  # type: ignore[index]
    for share in np.linspace(0.004, 0.996, 249):
        covering = (low <= share) & (share <= high)
        assert binom.pmf(np.arange(n + 1), n, share)[covering].sum() >= 0.93


@pytest.mark.parametrize(
    ("hits", "ends"), [(5, (0.508, 1.0)), (0, (0.0, 0.492)), (3, (0.077, 1.0))]
)
def test_five_members_have_the_ends_of_seven_by_hand(hits: int, ends: tuple[float, float]) -> None:
    """With one more at each bound: mean (hits + 1) / 7, and Student's quantile 2.447 of six degrees of freedom."""
    found = bounded_interval(1 * (np.arange(5) < hits), np.ones(5), 0.0, 1.0)
    assert found.value == hits / 5
    assert found[1:3] == pytest.approx(ends, abs=1e-3)
    mean = (hits + 1) / 7
    assert found.error == pytest.approx(np.sqrt(mean * (1 - mean) / 6))


@given(CLUSTERS, st.floats(0.1, 100.0), st.floats(-100.0, 100.0))
def test_a_scale_with_other_bounds_moves_the_ends_with_it(
    clusters: Clusters, width: float, least: float
) -> None:
    hits, sizes = np.array(clusters).T
    one = bounded_interval(hits, sizes, 0.0, 1.0)
    other = bounded_interval(least * sizes + width * hits, sizes, least, least + width)
    assert other[:3] == pytest.approx(
        [least + width * end for end in one[:3]], abs=1e-9 * (width + abs(least))
    )  # type: ignore[operator]


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
def test_one_cluster_or_equal_bounds_tell_no_interval(
    sums: Any, sizes: Any, bounds: Any, expected: Any
) -> None:
    assert bounded_interval(sums, sizes, *bounds) == expected


def test_the_draws_are_those_of_one_pcg64_whatever_the_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = np.random.Generator(np.random.PCG64(7)).integers(5, size=(40, 5))
    for cells in (1_000_000, 35, 1):
        monkeypatch.setattr("jurygraph.inference.clusters.DRAWS_PER_BATCH", cells)
        np.testing.assert_array_equal(np.concatenate(list(draw_clusters(5, 40, seed=7))), expected)


def test_ends_beyond_the_range_of_a_value_are_cut_off_at_its_bounds() -> None:
    assert Estimate(0.5, -0.1, 1.2, 0.3, 9).within(0.0, 1.0) == (0.5, 0.0, 1.0, 0.3, 9)
    assert Estimate(0.0, -0.4, -0.1, 0.1, 9).within(0.0, math.inf) == (0.0, 0.0, 0.0, 0.1, 9)


def test_the_difference_of_two_sides_is_welchs_with_single_members_and_fewer_degrees() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(1.0, 1.0, 12), rng.normal(0.0, 3.0, 30)
    sums = np.zeros((2, 42))
    sums[0, :12], sums[1, 12:] = first, second
    counts = np.zeros((2, 42))
    counts[0, :12], counts[1, 12:] = 1.0, 1.0
    found = difference_interval(sums, counts)
    assert found.value == pytest.approx(first.mean() - second.mean())
    welch = math.sqrt(first.var(ddof=1) / 12 + second.var(ddof=1) / 30)
    assert found.error is not None
    assert welch <= found.error <= 1.1 * welch
    assert found.low == pytest.approx(found.value - t_quantile(11) * found.error)
    swapped = difference_interval(sums[::-1], counts[::-1])
    assert (swapped.value, swapped.low) == pytest.approx((-found.value, -found.high))


def test_a_cluster_with_all_of_a_side_leaves_no_interval() -> None:
    counts = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    found = difference_interval(np.array([[0.5, 0.0, 0.0], [0.0, 0.1, 0.3]]), counts)
    assert (found.value, found.low, found.clusters) == (pytest.approx(0.3), None, 1)
