"""D_pair, compared with the formula of the paper."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import PlanError
from jurygraph.studies import disagreement
from tests.rows import all_rows

UNIT = st.floats(0.0, 1.0)
VALUES = st.lists(UNIT, min_size=2, max_size=6)


@given(UNIT, UNIT, UNIT)
def test_disagreement_of_three_components_is_two_thirds_of_their_range(
    a: float, b: float, c: float
) -> None:
    assert disagreement.pairwise([a, b, c]) == pytest.approx(
        2 / 3 * (max(a, b, c) - min(a, b, c)), abs=1e-12
    )


@given(
    st.integers(2, 5).flatmap(
        lambda m: st.lists(st.lists(UNIT, min_size=m, max_size=m), min_size=1, max_size=5)
    )
)
def test_many_responses_give_the_same_bits_as_each_alone(rows: list[list[float]]) -> None:
    together = disagreement.pairwise(rows)
    assert together.tolist() == [disagreement.pairwise(row) for row in rows]


@all_rows(
    ("components", "message"),
    [
        ([0.5], "there are 1; give 2 or more"),
        ([0.5, float("nan")], r"components\[1\] is nan: a number in \[0, 1\] is needed"),
        ([[0.5, 0.5], [1.5, 0.0]], r"components\[1, 0\] is 1.5"),
        ([True, False], "components holds bool"),
        (["1", "0"], "components holds <U1"),
        ([[0.1, 0.2], [0.3]], "components is not an array of numbers"),
    ],
)
def test_invalid_components_are_refused(components: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        disagreement.pairwise(components)
