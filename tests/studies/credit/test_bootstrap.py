"""Bootstrap intervals over examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.errors import GraphError
from jurygraph.inference import bootstrap
from jurygraph.studies.credit import intervals


def plain_interval(
    sums: list[float], counts: list[int], resamples: int, seed: int
) -> tuple[float | None, float | None, int]:
    """Return the interval by a loop over resamples, with the same draws."""
    rng = np.random.Generator(np.random.PCG64(seed))
    means = []
    for _ in range(resamples):
        drawn = [int(rng.integers(len(sums))) for _ in sums]
        cases = sum(counts[example] for example in drawn)
        if cases:
            means.append(sum(sums[example] for example in drawn) / cases)
    if not means:
        return None, None, resamples
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975)), resamples - len(means)


examples = st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 3)), min_size=2, max_size=6)


@settings(max_examples=25, deadline=None)
@given(examples, st.integers(0, 2**32))
def test_intervals_equal_those_of_a_plain_loop_over_resamples(drawn: list[tuple[float, int]], seed: int) -> None:
    sums, counts = [mean * count for mean, count in drawn], [count for _, count in drawn]
    low, high, empty = plain_interval(sums, counts, 40, seed)
    (found,) = intervals([sums], [counts], resamples=40, seed=seed)
    assert found.empty_resamples == empty
    assert (found.low, found.high) == ((None, None) if low is None else (pytest.approx(low), pytest.approx(high)))


def test_the_batch_size_does_not_change_the_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    sums, counts = np.random.default_rng(1).random((3, 50)), np.ones((3, 50))
    whole = intervals(sums, counts, 200, seed=7)
    monkeypatch.setattr(bootstrap, "DRAWS_PER_BATCH", 333)
    for one, other in zip(intervals(sums, counts, 200, seed=7), whole, strict=True):
        assert (one.low, one.high, one.empty_resamples) == (
            pytest.approx(other.low),
            pytest.approx(other.high),
            other.empty_resamples,
        )


def test_intervals_depend_on_the_seed_only() -> None:
    sums, counts = np.random.default_rng(1).random((1, 50)), np.ones((1, 50))
    assert intervals(sums, counts, 100, seed=3) == intervals(sums, counts, 100, seed=3)
    assert intervals(sums, counts, 100, seed=3) != intervals(sums, counts, 100, seed=4)


def test_an_example_is_drawn_with_all_its_cases() -> None:
    """If single cases were drawn, the mean of two examples of a thousand equal cases each would hardly vary."""
    (found,) = intervals([[0.0, 1000.0]], [[1000, 1000]], 200)
    assert (found.low, found.high) == (0.0, 1.0)


def test_resamples_without_a_case_are_omitted_and_counted() -> None:
    (one, none) = intervals([[0.5, 0.0], [0.0, 0.0]], [[1, 0], [0, 0]], 400)
    assert (one.low, one.high) == (0.5, 0.5)
    assert 60 < one.empty_resamples < 140
    assert none == (None, None, 400)


def test_one_example_has_no_interval() -> None:
    assert intervals([[0.5]], [[1]]) == [(None, None, 0)]


def test_coverage_of_the_true_mean_is_close_to_nominal() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        counts = rng.integers(0, 4, size=60)
        (found,) = intervals([rng.binomial(counts, 0.3)], [counts], 200, seed)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.3 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(
    ("sums", "counts", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], "shape"),
        ([1.0], [1.0], "shape"),
        ([[np.nan, 1.0]], [[1.0, 1.0]], "a finite number is needed"),
    ],
)
def test_invalid_sums_and_counts_are_refused(sums: list, counts: list, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        intervals(sums, counts)
