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


class TestPrecisionShaping:
    AUXILIARY = ("sim", "step", "fmt")

    def shaped(self, fraction: float, threshold: float = 0.5) -> np.ndarray:
        return fusion.precision_shaping(
            TABLE_5, WEIGHTS, TABLE_5["acc"], self.AUXILIARY, fraction, threshold
        )

    def test_style_counts_less_when_the_answer_is_wrong(self) -> None:
        plain = fusion.collaborative(TABLE_5, WEIGHTS)
        shaped = self.shaped(0.5)
        assert shaped[[0, 2]].tolist() == plain[[0, 2]].tolist()
        assert shaped[1] == pytest.approx(0.5 * plain[1])
        assert shaped[3] == pytest.approx(0.5 * 0.20 * 0.40 - 0.08 * 0.51)

    def test_an_answer_at_the_threshold_is_not_wrong(self) -> None:
        once = ({"acc": 0.5, "fmt": 1.0}, {"acc": 1.0, "fmt": 1.0}, 0.5, ["fmt"], 0.0)
        assert fusion.precision_shaping(*once, threshold=0.5) == 1.5
        assert fusion.precision_shaping(*once, threshold=0.6) == 0.5

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (
                {"auxiliary": ["style", "tone"]},
                "auxiliary names style, tone, which no component has",
            ),
            ({"auxiliary": "sim"}, "auxiliary names i, m, s, which"),
            ({"fraction": 1.5}, "fraction is 1.5"),
            ({"threshold": np.nan}, "threshold is nan"),
            ({"accuracy": [1.0]}, r"accuracy has shape \(1,\)"),
            ({"accuracy": [1.0, np.nan, 0.0, 0.0]}, r"accuracy\[1\] is nan"),
            ({"weights": {"acc": 1.0}}, "no weight for the components"),
        ],
    )
    def test_refusals(self, changed: dict[str, object], message: str) -> None:
        requested = {
            "weights": WEIGHTS,
            "accuracy": TABLE_5["acc"],
            "auxiliary": self.AUXILIARY,
            "fraction": 0.5,
        }
        with pytest.raises(PlanError, match=message):
            fusion.precision_shaping(TABLE_5, **(requested | changed))


class TestFormatGate:
    def test_below_the_threshold_nothing_is_earned(self) -> None:
        assert fusion.format_gate([0.7, 0.8, 0.9], [0.39, 0.4, 1.0], 0.4).tolist() == [
            0.0,
            0.8,
            0.9,
        ]
        assert fusion.format_gate(0.7, 0.2, 0.4) == 0.0


class TestRepetitionControl:
    def test_above_the_threshold_repetition_costs_its_share(self) -> None:
        assert fusion.repetition_control([0.8, 0.8, 0.8], [0.1, 0.25, 0.5], 0.25).tolist() == [
            0.8,
            0.8,
            0.4,
        ]
        assert fusion.repetition_control(0.8, 1.0, 0.25) == 0.0


@all_rows("rule", [fusion.format_gate, fusion.repetition_control])
@all_rows(
    ("r", "score", "threshold", "message"),
    [
        (np.nan, 0.5, 0.5, "r is nan"),
        ([[0.5]], [[0.5]], 0.5, r"r has shape \(1, 1\): a scalar or \[R\]"),
        ([0.5, 0.5], 0.5, 0.5, r"{score} has shape \(\) where \(2,\)"),
        (0.5, 1.5, 0.5, "{score} is 1.5"),
        (0.5, 0.5, -0.5, "threshold is -0.5"),
    ],
)
def test_invalid_arguments_of_a_rule_are_refused(
    rule: Any, r: object, score: object, threshold: float, message: str
) -> None:
    name = {"format_gate": "fmt", "repetition_control": "repetition"}[rule.__name__]
    with pytest.raises(PlanError, match="^" + message.replace("{score}", name)):
        rule(r, score, threshold)


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


@pytest.mark.parametrize(("alone", "many"), [(0.5, 0), ([], 0), ([0.5], 1), ([[0.5], [0.25]], 1)])
def test_one_component_has_no_disagreement(alone: Any, many: int) -> None:
    with pytest.raises(
        PlanError,
        match=f"^disagreement is between components, and there are {many}; give 2 or more",
    ):
        fusion.disagreement(alone)
