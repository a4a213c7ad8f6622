"""Validation of array arguments: errors name the array, the entry, and what is needed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jurygraph import arrays
from jurygraph.errors import GraphError, PlanError
from tests.rows import all_rows

MASKED = np.ma.masked_array([0.5, 0.5], [True, False])
NAN = float("nan")
INF = float("inf")


@all_rows("error", [PlanError, GraphError])
@all_rows(
    ("read", "given", "message"),
    [
        (arrays.as_floats, MASKED, "x is a masked array: pass the mask separately, as booleans"),
        (arrays.as_floats, [[1.0], [1.0, 2.0]], "x is not an array of numbers: "),
        (arrays.as_floats, ["1"], "x holds <U1 where numbers are needed"),
        (arrays.as_floats, [True], "x holds bool where numbers are needed"),
        (arrays.as_finite, ["1"], "x holds <U1 where numbers are needed"),
        (
            arrays.as_finite,
            [[0.0, 1.0], [2.0, NAN]],
            r"x\[1, 1\] is nan: a finite number is needed",
        ),
        (arrays.as_finite, -INF, "x is -inf: a finite number is needed"),
        (arrays.as_unit_interval, ["1"], "x holds <U1 where numbers are needed"),
        (arrays.as_unit_interval, [0.0, 1.5], r"x\[1\] is 1.5: a number in \[0, 1\] is needed"),
        (arrays.as_unit_interval, [1.0, -0.5], r"x\[1\] is -0.5: a number in \[0, 1\] is needed"),
        (arrays.as_unit_interval, [NAN, 0.5], r"x\[0\] is nan: a number in \[0, 1\] is needed"),
        (arrays.as_probability, 1.5, r"x is 1.5: a number in \[0, 1\] is needed"),
        (arrays.as_probability, [0.5], r"x has shape \(1,\) where \(\) is needed"),
        (arrays.as_booleans, MASKED, "x is a masked array"),
        (arrays.as_booleans, [0, 1], "x holds int64 where booleans are needed"),
    ],
)
def test_invalid_entries_are_named_with_their_index(
    read: Callable[..., Any], given: Any, message: str, error: type[PlanError]
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        read("x", given, error)
    with pytest.raises(PlanError, match=f"^{message}"):
        read("x", given)


@all_rows("error", [PlanError, GraphError])
@all_rows(
    ("given", "message"),
    [
        (MASKED, "x is a masked array"),
        ([[0, 1]], r"x has shape \(1, 2\) and holds int64: a list of integers is needed"),
        ([0.0], r"x has shape \(1,\) and holds float64: a list of integers is needed"),
        ([0, 3], r"x\[1\] is 3, but the criteria are numbered 0 to 2"),
        ([0, -1], r"x\[1\] is -1, but the criteria are numbered 0 to 2"),
    ],
)
def test_an_index_is_one_of_a_criterion(given: Any, message: str, error: type[PlanError]) -> None:
    with pytest.raises(error, match=f"^{message}"):
        arrays.as_indices("x", given, 3, error)
    with pytest.raises(PlanError, match=f"^{message}"):
        arrays.as_indices("x", given, 3)


def test_negative_values_are_refused_where_they_have_no_meaning() -> None:
    with pytest.raises(PlanError, match=r"^x\[1\] is -0.5: at least 0 is needed"):
        arrays.as_nonnegative("x", [0.0, -0.5])
    with pytest.raises(PlanError, match=r"^x\[0\] is inf: a finite number is needed"):
        arrays.as_nonnegative("x", [INF])
    assert arrays.as_nonnegative("x", [0, 2]).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("error", [PlanError, GraphError])
def test_a_shape_is_one_of_those_that_are_named(error: type[PlanError]) -> None:
    arrays.check_shape("x", np.zeros(2), (3,), (2,))
    with pytest.raises(error, match=r"^x has shape \(2,\) where \(3,\) or \(1, 2\) is needed"):
        arrays.check_shape("x", np.zeros(2), (3,), (1, 2), error=error)
    with pytest.raises(PlanError):
        arrays.check_shape("x", np.zeros(2), (3,))


@pytest.mark.parametrize("error", [PlanError, GraphError])
@pytest.mark.parametrize("shape", [(2,), (4, 2), (1, 4, 3)])
def test_a_row_or_rows_have_the_width(shape: tuple[int, ...], error: type[PlanError]) -> None:
    for fine in ((3,), (4, 3), (0, 3)):
        arrays.check_vector_or_matrix("x", np.zeros(fine), 3)
    message = r"^x has shape \(.*\) where \[3\] or \[R, 3\] is needed"
    with pytest.raises(error, match=message):
        arrays.check_vector_or_matrix("x", np.zeros(shape), 3, error)
    with pytest.raises(PlanError, match=message):
        arrays.check_vector_or_matrix("x", np.zeros(shape), 3)


@all_rows(
    ("read", "given", "kind"),
    [
        (arrays.as_floats, [1, 2], np.float64),
        (arrays.as_floats, np.array([1, 2], dtype=np.uint8), np.float64),
        (arrays.as_floats, [], np.float64),
        (arrays.as_unit_interval, [0, 1], np.float64),
        (arrays.as_unit_interval, [], np.float64),
        (arrays.as_booleans, [True, False], np.bool_),
        (arrays.as_booleans, [], np.bool_),
        (lambda name, given: arrays.as_indices(name, given, 3), [2, 0], np.intp),
        (
            lambda name, given: arrays.as_indices(name, given, 3),
            np.array([2, 0], dtype=np.uint8),
            np.intp,
        ),
        (lambda name, given: arrays.as_indices(name, given, 0), [], np.intp),
    ],
)
def test_valid_arrays_are_converted_without_unneeded_copies(
    read: Callable[..., Any], given: Any, kind: type
) -> None:
    found = read("x", given)
    assert (found.tolist(), found.dtype) == (list(given), kind)
    assert read("x", found) is found
