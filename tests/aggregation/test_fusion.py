"""MACRM: signed components, fused."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jurygraph.aggregation import fusion
from jurygraph.errors import PlanError
from tests.rows import all_rows

# Table 5 of the paper, and the weights that give its rewards
TABLE_5 = {
    "acc": [1.00, 0.00, 1.00, 0.00],
    "sim": [1.00, 0.27, 1.00, 0.00],
    "fmt": [0.40, 1.00, 0.40, 0.40],
    "step": [0.00, 0.00, 0.50, 0.00],
    "rep": [0.28, 0.00, 0.00, 0.51],
}
WEIGHTS = {"acc": 0.43, "sim": 0.20, "fmt": 0.20, "step": 0.18, "rep": -0.08}


class TestCollaborative:
    def test_table_5(self) -> None:
        assert fusion.collaborative(TABLE_5, WEIGHTS).round(2).tolist() == [0.69, 0.25, 0.80, 0.04]

    @given(st.permutations(list(TABLE_5)))
    def test_no_order_of_the_names_changes_a_bit(self, names: list[str]) -> None:
        shuffled = fusion.collaborative({name: TABLE_5[name] for name in names}, WEIGHTS)
        assert shuffled.tobytes() == fusion.collaborative(TABLE_5, WEIGHTS).tobytes()

    def test_a_penalty_can_take_the_reward_below_zero(self) -> None:
        assert fusion.collaborative({"acc": 0, "rep": 1}, {"acc": 1, "rep": -0.5}) == -0.5

    @all_rows(
        ("components", "weights", "message"),
        [
            ({}, {}, "no component"),
            ({"acc": 1.0}, {"acc": 1.0, "fmt": 0.5}, "no component for the weights of fmt"),
            (
                {"acc": 1.0, "sim": 1.0, "fmt": 1.0},
                {"acc": 1.0},
                "no weight for the components fmt, sim",
            ),
            ({"acc": np.nan}, {"acc": 1.0}, "acc is nan"),
            ({"acc": [1.0, np.inf]}, {"acc": 1.0}, r"acc\[1\] is inf"),
            ({"acc": True}, {"acc": 1.0}, "acc holds bool"),
            ({"acc": 1.0}, {"acc": np.nan}, r"weights\['acc'\] is nan"),
            ({"acc": 1.0}, {"acc": "1"}, r"weights\['acc'\] holds <U1"),
            ({"acc": 1.0}, {"acc": [1.0]}, r"weights\['acc'\] has shape \(1,\)"),
            (
                {"acc": [1.0, 0.0], "fmt": 1.0},
                {"acc": 1.0, "fmt": 1.0},
                r"fmt has shape \(\) where \(2,\)",
            ),
            ({"acc": [[1.0]]}, {"acc": 1.0}, r"acc has shape \(1, 1\)"),
        ],
    )
    def test_refusals(self, components: object, weights: object, message: str) -> None:
        with pytest.raises(PlanError, match=message):
            fusion.collaborative(components, weights)


# Disagreement


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 5)), elements=st.floats(-2, 2))
)
def test_disagreement_is_the_mean_difference_of_two_components(values: Any) -> None:
    """Eq. 6, by a double loop."""
    expected = [
        np.mean([abs(one - other) for one, other in combinations(row, 2)])
        for row in values.tolist()
    ]
    assert fusion.disagreement(values) == pytest.approx(expected)
    assert np.array_equal(fusion.disagreement(values), fusion.disagreement(values[:, ::-1]))


def test_disagreement_is_of_an_array() -> None:
    with pytest.raises(PlanError, match="components holds object where numbers are needed"):
        fusion.disagreement({"acc": [1.0], "fmt": [0.0]})  # type: ignore[arg-type]


@pytest.mark.parametrize(("alone", "many"), [(0.5, 0), ([], 0), ([0.5], 1), ([[0.5], [0.25]], 1)])
def test_one_component_has_no_disagreement(alone: Any, many: int) -> None:
    with pytest.raises(
        PlanError,
        match=f"^disagreement is between components, and there are {many}; give 2 or more",
    ):
        fusion.disagreement(alone)
