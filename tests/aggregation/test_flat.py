"""Flat aggregation: every criterion counts by its weight, whatever else holds."""

import numpy as np
import pytest

from jurygraph.aggregation import gear
from jurygraph.errors import GraphError
from tests.rows import all_rows

P = np.array([[1.0, 0.5, 0.25], [0.0, 1.0, 1.0]])
WEIGHTS = [3, 1, -2]


def test_the_denominator_is_the_sum_of_the_positive_weights() -> None:
    assert gear.reward(P[0], WEIGHTS) == (3.0 + 0.5 - 0.5) / 4.0
    assert gear.reward(P, WEIGHTS).tolist() == [0.75, -0.25]


def test_a_full_score_earns_one_and_penalties_have_no_floor() -> None:
    assert gear.reward([1, 1, 0], WEIGHTS) == 1.0
    assert gear.reward([0, 0, 1], [1, 1, -10]) == -5.0


def test_a_criterion_that_is_not_live_leaves_numerator_and_denominator() -> None:
    live = [[True, False, True], [False, True, True]]
    assert gear.reward(P, WEIGHTS, live).tolist() == [(3.0 - 0.5) / 3.0, (1.0 - 2.0) / 1.0]
    assert gear.reward(P, WEIGHTS, [True, True, False]).tolist() == [3.5 / 4.0, 1.0 / 4.0]
    assert gear.reward(P, WEIGHTS, np.ones_like(P, dtype=bool)).tobytes() == gear.reward(P, WEIGHTS).tobytes()


def test_the_score_of_a_criterion_that_is_not_live_is_not_read() -> None:
    assert gear.reward([1.0, np.nan], [1, 1], [True, False]) == 1.0


def test_a_response_without_a_live_positive_weight_is_refused_by_its_number() -> None:
    with pytest.raises(GraphError, match="live for response 1"):
        gear.reward(P, WEIGHTS, [[True, True, True], [False, False, True]])


@all_rows(
    ("p", "weights", "live", "message"),
    [
        ([0.5, np.nan], [1, 1], None, r"q\[1\] is nan"),
        ([[0.5, 0.5], [0.5, 1.5]], [1, 1], None, r"q\[1, 1\] is 1.5"),
        ([0.5, -0.1], [1, 1], None, r"q\[1\] is -0.1"),
        ([True, False], [1, 1], None, "q holds bool"),
        (["0.5", "1"], [1, 1], None, "q holds <U3"),
        (np.ma.masked_invalid([0.5, np.nan]), [1, 1], None, "q is a masked array"),
        ([0.5], [1, 1], None, r"q has shape \(1,\) where \[2\] or \[R, 2\]"),
        ([[[0.5, 0.5]]], [1, 1], None, r"q has shape \(1, 1, 2\)"),
        ([0.5, 0.5], [[1, 1]], None, r"weights has shape \(1, 2\)"),
        ([0.5, 0.5], [1, np.inf], None, r"weights\[1\] is inf"),
        ([0.5, 0.5], [np.nan, 1], None, r"weights\[0\] is nan"),
        ([0.5, 0.5], [-1, 0], None, "no criterion with a positive weight is there"),
        ([0.5, 0.5], [1, 1], [1, 0], "live holds int64"),
        ([0.5, 0.5], [1, 1], [True], r"live has shape \(1,\)"),
        ([], [], None, "no criterion with a positive weight"),
        ([0.1, 0.1], [1e308, 1e308], None, "sum to infinity"),
        ([0.5, 1.0], [1e-308, -1e3], None, "differ too much in size"),
    ],
)
def test_invalid_scores_and_weights_are_refused(p: object, weights: object, live: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.reward(p, weights, live)
