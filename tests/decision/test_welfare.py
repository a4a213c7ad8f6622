"""How utilities of stakeholders become one number, against values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import PlanError, ScoreMatrix
from jurygraph.agents.registry import load_combiner
from tests.decision.test_combiners import combined, inputs, one, parts, value

TABLE_4 = {"a": one(0.4, input_weight=0.67), "b": one(0.95, input_weight=0.09), "c": one(0.8, input_weight=0.24)}


def test_decompr_table_4() -> None:
    assert value("stakeholders", TABLE_4) == pytest.approx(0.67 * 0.4 + 0.09 * 0.95 + 0.24 * 0.8, abs=1e-15)
    assert value("stakeholders", TABLE_4) == pytest.approx(0.55, abs=0.005)
    assert parts("stakeholders", TABLE_4) == {"a": 0.4, "b": 0.95, "c": 0.8}


def test_the_weights_of_the_others_are_scaled_up_where_a_stakeholder_does_not_apply() -> None:
    cells = {
        "a": one(1.0, input_weight=0.5, live=False),
        "b": one(0.2, input_weight=0.25),
        "c": one(0.6, input_weight=0.25),
    }
    assert value("stakeholders", cells) == pytest.approx(0.4, abs=1e-15)


def test_where_no_stakeholder_applies_there_is_no_component() -> None:
    cells = {"a": one(1.0, input_weight=0.5, live=False), "b": one(1.0, input_weight=0.5, live=False)}
    assert combined("stakeholders", cells).present.tolist() == [False]


def test_weights_of_stakeholders_that_do_not_sum_to_1_are_refused() -> None:
    with pytest.raises(PlanError, match=r"weights sum to 2\.0; choose weights that sum to 1"):
        combined("stakeholders", {"a": one(1.0), "b": one(1.0)})


def test_the_terms_of_difficulty_are_kept_and_nothing_else() -> None:
    combiner = load_combiner("stakeholders")
    assert combiner.freeze(inputs(TABLE_4), {"difficulty": {"a": 5.0}}) == {"difficulty": {"a": 5.0}}
    with pytest.raises(PlanError, match="takes no parameter 'gamma'; leave it out"):
        combiner.freeze(inputs(TABLE_4), {"gamma": 0.5})


# Violated hard constraints

CAPPED = {"hard": {"a": [0, 1]}, "cap": 0.5}


def alone(*scores: float, met: list[bool] | None = None) -> dict[str, ScoreMatrix]:
    return {"a": one(scores, met=met)}


def test_who_has_every_hard_constraint_met_is_not_capped() -> None:
    assert value("stakeholders", alone(1.0, 1.0, 0.4), **CAPPED) == pytest.approx(0.8)


def test_a_violated_hard_constraint_caps_the_utility_by_the_share_of_the_hard_ones_that_hold() -> None:
    assert value("stakeholders", alone(1.0, 0.0, 1.0), **CAPPED) == 0.5 * 0.5
    assert value("stakeholders", alone(0.0, 0.0, 1.0), **CAPPED) == 0.0


def test_partial_credit_of_a_violated_constraint_counts_under_the_cap() -> None:
    assert value("stakeholders", alone(1.0, 0.8, 1.0, met=[True, False, True]), **CAPPED) == 0.5 * 0.9


def test_a_cap_never_lifts_a_utility() -> None:
    scores = alone(1.0, 0.0, 0.0)
    assert value("stakeholders", scores, hard={"a": [0, 1]}, cap=1.0) == pytest.approx(1 / 3)


def test_a_violated_wish_caps_nothing() -> None:
    assert value("stakeholders", alone(1.0, 1.0, 0.0), **CAPPED, soft={"a": [2]}) == pytest.approx(2 / 3)


def test_a_hard_constraint_that_does_not_apply_violates_nothing() -> None:
    cells = {"a": one([1.0, 0.0, 0.5], live=[True, False, True])}
    assert value("stakeholders", cells, **CAPPED) == 0.75


# Rules of welfare


def test_the_egalitarian_rule_is_the_weighted_sum_where_everybody_reaches_the_floor() -> None:
    assert value("egalitarian", TABLE_4, floor=0.4) == value("stakeholders", TABLE_4)


def test_below_the_floor_it_gives_no_more_than_the_least_utility() -> None:
    assert value("egalitarian", TABLE_4, floor=0.41) == 0.4


def test_nash_is_the_product_of_the_utilities() -> None:
    assert value("nash", TABLE_4) == 0.4 * 0.95 * 0.8
    assert value("nash", {"a": one(1.0, input_weight=0.5), "b": one(0.0, input_weight=0.5)}) == 0.0


def test_whom_nothing_was_asked_about_neither_lowers_nor_lifts_them() -> None:
    cells = {"a": one(0.0, input_weight=0.5, live=False), "b": one(0.6, input_weight=0.5)}
    assert value("nash", cells) == 0.6
    assert value("egalitarian", cells, floor=0.5) == pytest.approx(0.6)


# Figures of the group


def figures(cells: dict[str, ScoreMatrix], **params: object) -> dict[str, float]:
    return {name: float(shown[0]) for name, shown in combined("stakeholders", cells, **params).diagnostics.items()}


def test_the_figures_are_decomprs() -> None:
    shown = figures(TABLE_4)
    assert shown == {
        "group utility": pytest.approx(2.15 / 3),
        "least utility": 0.4,
        "gini": pytest.approx(2 * (0.55 + 0.4 + 0.15) / (2 * 3 * 2.15)),
        "jain": pytest.approx(2.15**2 / (3 * (0.16 + 0.9025 + 0.64))),
    }


def test_preferences_addressed_are_the_share_of_soft_constraints_that_are_met() -> None:
    cells = {"a": one([1.0, 0.6, 0.2], input_weight=0.5), "b": one([0.0, 0.9], input_weight=0.5)}
    assert figures(cells, soft={"a": [1, 2], "b": [1]})["preferences addressed"] == pytest.approx(2 / 3)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5))
def test_every_figure_lies_between_0_and_1(utilities: list[float]) -> None:
    share = 1.0 / len(utilities)
    cells = {f"s{place}": one(utility, input_weight=share) for place, utility in enumerate(utilities)}
    assert all(-1e-12 <= shown <= 1.0 + 1e-12 for shown in figures(cells).values())
