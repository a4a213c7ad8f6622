"""The validation of vectors and scores: either all of them are used, or none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.models.embedding import normalize_vectors, sort_by_index, validate_scores
from jurygraph.models.request import Fault
from tests.rows import all_rows

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MATRICES = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=1, max_size=4)
)


@given(MATRICES)
def test_every_vector_is_a_unit_vector_or_zero(rows: list[list[float]]) -> None:
    unit = normalize_vectors(rows, len(rows), "tiny")
    assert (unit.shape, unit.dtype) == (np.shape(rows), np.float64)
    for given_row, row in zip(rows, unit, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1.0 if any(given_row) else 0.0)


def test_normalization_keeps_the_direction_of_a_vector() -> None:
    assert normalize_vectors([[3.0, 4.0], [0.0, 0.0], [1e300, 0.0]], 3, "tiny").tolist() == [[0.6, 0.8], [0, 0], [1, 0]]


@all_rows(
    "rows",
    [
        [[1.0, 2.0]],
        [[1.0], [2.0], [3.0]],
        [[1.0, 2.0], [1.0]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, float("inf")], [1.0, 2.0]],
        [[], []],
        [1.0, 2.0],
        [["a"], ["b"]],
        [["1.0"], ["2"]],
        [[True], [False]],
        [[1.0], [True]],
        [[1.0], [10**400]],
        np.array([[True], [False]]),
        np.array([["1.0"], ["2.0"]]),
        [None, None],
        "ab",
        None,
    ],
)
def test_a_wrong_number_of_vectors_is_refused(rows: Any) -> None:
    with pytest.raises(Fault, match="tiny") as caught:
        normalize_vectors(rows, 2, "tiny")
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


def test_scores_are_returned_unchanged() -> None:
    assert validate_scores([-3.5, 0.25], 2, "tiny").tolist() == [-3.5, 0.25]


@all_rows(
    "scores",
    [[0.1], [0.1, 0.2, 0.3], [0.1, float("nan")], [[0.1, 0.2]], [None, 0.1], "ab", 0.5, ["0.1", "0.2"], [0.1, True]],
)
def test_a_wrong_number_of_scores_is_refused(scores: Any) -> None:
    with pytest.raises(Fault, match="tiny"):
        validate_scores(scores, 2, "tiny")


@given(st.permutations(range(5)))
def test_results_in_another_order_are_sorted(places: list[int]) -> None:
    assert sort_by_index([(place, f"{place}") for place in places], 5, "tiny") == ["0", "1", "2", "3", "4"]


@all_rows("places", [[], [0], [0, 0], [0, 2], [0, 1, 1], [0, 1, 2], [-1, 0], [0.0, 1.0], [False, True], [[0], [1]]])
def test_missing_duplicate_or_unknown_indices_are_refused(places: list[Any]) -> None:
    with pytest.raises(Fault, match="once for each of 2"):
        sort_by_index([(place, 0.5) for place in places], 2, "tiny")
