"""The one summation: left to right from 0.0, by elementwise additions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jurygraph.aggregation import total
from jurygraph.errors import PlanError

TENTHS = [0.1] * 10


def left_to_right(terms: list[float]) -> float:
    result = 0.0
    for term in terms:
        result += term
    return result


def test_it_adds_from_left_to_right() -> None:
    assert total(TENTHS) == left_to_right(TENTHS) == 0.9999999999999999
    assert total([1e16, 1.0, -1e16]) == 0.0
    assert total([1e16, -1e16, 1.0]) == 1.0


def test_a_vector_gives_a_scalar_and_a_matrix_a_vector() -> None:
    assert isinstance(total([1, 2, 3]), float)
    assert total([[1, 2], [3, 4]]).tolist() == [3.0, 7.0]
    assert [total([[1, 2], [3, 4]], axis=axis).tolist() for axis in (0, -2)] == [[4.0, 6.0]] * 2
    assert total([[1, 2], [3, 4]], axis=1).tolist() == [3.0, 7.0]
    with pytest.raises(np.exceptions.AxisError):
        total([1, 2], axis=1)
    assert total(np.ones((2, 3, 4)), axis=1).shape == (2, 4)


def test_an_empty_axis_sums_to_zero() -> None:
    assert total([]) == 0.0
    assert total(np.empty((2, 0))).tolist() == [0.0, 0.0]


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=st.floats(-1e6, 1e6)))
def test_its_bits_depend_on_the_terms_of_a_row_only(a: np.ndarray) -> None:
    rows = np.array([left_to_right(row.tolist()) for row in a])
    assert total(a).tobytes() == rows.tobytes()
    assert total(np.asfortranarray(a)).tobytes() == rows.tobytes()
    assert total(a.T, axis=0).tobytes() == rows.tobytes()
    assert total(np.repeat(a, 2, axis=1)[:, ::2]).tobytes() == rows.tobytes()
    assert np.array([total(row) for row in a]).tobytes() == rows.tobytes()


@pytest.mark.parametrize("wrong", [[True, False], ["1", "2"], [None, 1.0], [1j], [[1.0], [1.0, 2.0]]])
def test_total_refuses_values_that_are_not_numbers(wrong: list[object]) -> None:
    with pytest.raises(PlanError, match="numbers"):
        total(wrong)
