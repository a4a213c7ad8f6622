"""Adjusted p-values equal those of statsmodels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from jurygraph.inference.multiplicity import holm

p_values = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.01, 0.05, 1.0])


@given(st.lists(p_values, min_size=1, max_size=20), st.lists(st.integers(0, 20), max_size=5))
def test_adjusted_p_values_equal_statsmodels_and_missing_ones_do_not_count(
    p_values: list[float], missing: list[int]
) -> None:
    expected = multipletests(p_values, method="holm")[1].tolist()
    given: list[float | None] = list(p_values)
    for place in missing:
        given.insert(place, None)
    found = holm(given)
    assert [one for one in found if one is not None] == pytest.approx(expected)
    assert [one is None for one in found] == [one is None for one in given]


def test_without_a_test_there_is_nothing_to_adjust() -> None:
    assert holm([]) == []
    assert holm([None, None]) == [None, None]
    assert holm([0.03]) == [0.03]
