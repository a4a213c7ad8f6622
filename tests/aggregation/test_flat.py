"""The flat reward, and the sum that every other one is made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jurygraph.aggregation import gear, total
from jurygraph.errors import GraphError, PlanError
from tests.rows import all_rows

P = np.array([[1.0, 0.5, 0.25], [0.0, 1.0, 1.0]])
WEIGHTS = [3, 1, -2]


def test_the_denominator_is_the_sum_of_the_positive_weights() -> None:
    assert gear.reward(P[0], WEIGHTS) == (3.0 + 0.5 - 0.5) / 4.0
    assert gear.reward(P, WEIGHTS).tolist() == [0.75, -0.25]


def test_a_full_score_earns_one_and_penalties_have_no_floor() -> None:
    assert gear.reward([1, 1, 0], WEIGHTS) == 1.0
    assert gear.reward([0, 0, 1], [1, 1, -10]) == -5.0


@all_rows(
    ("p", "weights", "message"),
    [
        ([0.5, np.nan], [1, 1], r"q\[1\] is nan"),
        ([[0.5, 0.5], [0.5, 1.5]], [1, 1], r"q\[1, 1\] is 1.5"),
        ([0.5, -0.1], [1, 1], r"q\[1\] is -0.1"),
        ([True, False], [1, 1], "q holds bool"),
        (["0.5", "1"], [1, 1], "q holds <U3"),
        (np.ma.masked_invalid([0.5, np.nan]), [1, 1], "q is a masked array"),
        ([0.5], [1, 1], r"q has shape \(1,\) where \[2\] or \[R, 2\]"),
        ([[[0.5, 0.5]]], [1, 1], r"q has shape \(1, 1, 2\)"),
        ([0.5, 0.5], [[1, 1]], r"weights has shape \(1, 2\)"),
        ([0.5, 0.5], [1, np.inf], r"weights\[1\] is inf"),
        ([0.5, 0.5], [np.nan, 1], r"weights\[0\] is nan"),
        ([0.5, 0.5], [-1, 0], "no criterion with a positive weight is there"),
        ([], [], "no criterion with a positive weight"),
        ([0.1, 0.1], [1e308, 1e308], "sum to infinity"),
        ([0.5, 1.0], [1e-308, -1e3], "differ too much in size"),
    ],
)
def test_invalid_scores_and_weights_are_refused(p: object, weights: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.reward(p, weights)


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


@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=st.floats(-1e6, 1e6)
    )
)
def test_its_bits_depend_on_the_terms_of_a_row_only(a: np.ndarray) -> None:
    rows = np.array([left_to_right(row.tolist()) for row in a])
    assert total(a).tobytes() == rows.tobytes()
    assert total(np.asfortranarray(a)).tobytes() == rows.tobytes()
    assert total(a.T, axis=0).tobytes() == rows.tobytes()
    assert total(np.repeat(a, 2, axis=1)[:, ::2]).tobytes() == rows.tobytes()
    assert np.array([total(row) for row in a]).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "wrong", [[True, False], ["1", "2"], [None, 1.0], [1j], [[1.0], [1.0, 2.0]]]
)
def test_total_refuses_values_that_are_not_numbers(wrong: list[object]) -> None:
    with pytest.raises(PlanError, match="numbers"):
        total(wrong)
