"""Intervals of means, ratios and differences of numbers that are never negative."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.inference.clusters import jackknife_interval, t_quantile
from jurygraph.inference.positive import (
    difference_of_positive_means,
    mean_of_positive_values,
    ratio_of_positive_means,
)

VALUES = {"a": [2.0, 4.0], "b": [3.0], "c": [5.0], "d": [2.5]}


def test_a_mean_has_the_jackknife_of_its_logarithm_and_counts_the_noisiest_cluster_twice_above() -> (
    None
):
    found = mean_of_positive_values(VALUES)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    mean = 16.5 / 5
    without = [10.5 / 3, 13.5 / 4, 11.5 / 4, 14.0 / 4]
    logs = jackknife_interval(math.log(mean), [math.log(value) for value in without])  # type: ignore[arg-type]
    assert logs.error is not None
    assert found.value == pytest.approx(mean)
    assert math.log(mean / found.low) == pytest.approx(t_quantile(3) * logs.error)
    assert found.high * found.low == pytest.approx(mean * (16.5 + 5.0) / 6)


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.floats(0.0, 1e6), min_size=1, max_size=3), min_size=1
    )
)
def test_no_interval_reaches_below_0_or_to_the_thirtyfold_of_a_mean(
    values: dict[str, list[float]],
) -> None:
    """The upper end may be at most once more as large: of the largest mean with one cluster twice."""
    found = mean_of_positive_values(values)
    assert found is not None
    if found.low is not None and found.high is not None:
        assert 0.0 < found.low <= found.value <= found.high <= 2 * 30.0 * found.value


def test_few_tasks_whose_ratio_may_be_anything_have_no_interval() -> None:
    above = {"a": [2.0, 4.0], "b": [3.0], "c": [5.0]}
    below = {"a": [1.0], "b": [2.0, 1.0], "c": [2.0]}
    found = ratio_of_positive_means(above, below)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(3.5 / 1.5)
    assert 0.0 < found.low < found.value < found.high
    wide = ratio_of_positive_means({"a": [1.0], "b": [9.0]}, {"a": [3.0], "b": [1.0]})
    assert wide is not None
    assert (wide.value, wide.low, wide.high) == (2.5, None, None)
    infinite = ratio_of_positive_means(above, {"a": [0.0]})
    assert infinite is not None
    assert (infinite.value, infinite.low) == (math.inf, None)
    one_sided = ratio_of_positive_means(above, {"a": [1.0], "b": [0.0]})
    assert one_sided is not None
    assert (one_sided.value, one_sided.low) == (7.0, None)
    assert ratio_of_positive_means({"a": [0.0]}, {"a": [0.0]}) is None
    assert ratio_of_positive_means(above, {}) is None
    assert mean_of_positive_values({}) is None


def test_the_ends_of_a_difference_are_as_far_off_as_those_of_both_means_together() -> None:
    other = {"a": [1.0], "b": [3.0], "d": [4.0]}
    found = difference_of_positive_means(VALUES, other)
    above = mean_of_positive_values(VALUES)
    below = mean_of_positive_values(other)
    assert found is not None
    assert above is not None
    assert below is not None
    assert (found.value, found.error, found.clusters) == (above.value - below.value, None, 4)
    down, up = np.abs(
        np.array([above[1:3], below[1:3]], dtype=float).T - [above.value, below.value]
    )
    assert found.low == pytest.approx(found.value - math.hypot(down[0], up[1]))
    assert found.high == pytest.approx(found.value + math.hypot(up[0], down[1]))
    assert difference_of_positive_means(VALUES, {"a": [1.0]}) == (3.3 - 1.0, None, None, None, 4)
    assert difference_of_positive_means(VALUES, {}) is None
