"""How utilities of stakeholders become one number, against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import PlanError, ScoreMatrix
from jurygraph.agents.registry import load_combiner
from tests.decision.test_combiners import component_inputs, matrix, parts_of, run_combiner, value_of

TABLE_4 = {
    "a": matrix(0.4, input_weight=0.67),
    "b": matrix(0.95, input_weight=0.09),
    "c": matrix(0.8, input_weight=0.24),
}


def test_decompr_table_4() -> None:
    assert value_of("stakeholders", TABLE_4) == pytest.approx(
        0.67 * 0.4 + 0.09 * 0.95 + 0.24 * 0.8, abs=1e-15
    )
    assert value_of("stakeholders", TABLE_4) == pytest.approx(0.55, abs=0.005)
    assert parts_of("stakeholders", TABLE_4) == {"a": 0.4, "b": 0.95, "c": 0.8}


def test_the_weights_of_the_others_are_scaled_up_where_a_stakeholder_does_not_apply() -> None:
    cells = {
        "a": matrix(1.0, input_weight=0.5, applicable=False),
        "b": matrix(0.2, input_weight=0.25),
        "c": matrix(0.6, input_weight=0.25),
    }
    assert value_of("stakeholders", cells) == pytest.approx(0.4, abs=1e-15)


def test_where_no_stakeholder_applies_there_is_no_component() -> None:
    cells = {
        "a": matrix(1.0, input_weight=0.5, applicable=False),
        "b": matrix(1.0, input_weight=0.5, applicable=False),
    }
    assert run_combiner("stakeholders", cells).present.tolist() == [False]


def test_weights_of_stakeholders_that_do_not_sum_to_1_are_refused() -> None:
    with pytest.raises(PlanError, match=r"weights sum to 2\.0; choose weights that sum to 1"):
        run_combiner("stakeholders", {"a": matrix(1.0), "b": matrix(1.0)})


def test_the_terms_of_difficulty_are_kept_and_nothing_else() -> None:
    combiner = load_combiner("stakeholders")
    assert combiner.freeze(component_inputs(TABLE_4), {"difficulty": {"a": 5.0}}) == {
        "difficulty": {"a": 5.0}
    }
    with pytest.raises(PlanError, match=r"params\.gamma: unknown"):
        combiner.freeze(component_inputs(TABLE_4), {"gamma": 0.5})


# Violated hard constraints

CAPPED = {"hard": {"a": [0, 1]}, "cap": 0.5}


def one_stakeholder(*scores: float, met: list[bool] | None = None) -> dict[str, ScoreMatrix]:
    return {"a": matrix(scores, met=met)}


def test_a_utility_with_all_hard_constraints_met_is_not_capped() -> None:
    assert value_of("stakeholders", one_stakeholder(1.0, 1.0, 0.4), **CAPPED) == pytest.approx(0.8)


def test_a_violated_hard_constraint_caps_the_utility_by_the_share_of_the_hard_ones_that_hold() -> (
    None
):
    assert value_of("stakeholders", one_stakeholder(1.0, 0.0, 1.0), **CAPPED) == 0.5 * 0.5
    assert value_of("stakeholders", one_stakeholder(0.0, 0.0, 1.0), **CAPPED) == 0.0


def test_partial_credit_of_a_violated_constraint_counts_under_the_cap() -> None:
    assert (
        value_of("stakeholders", one_stakeholder(1.0, 0.8, 1.0, met=[True, False, True]), **CAPPED)
        == 0.5 * 0.9
    )


def test_a_cap_never_lifts_a_utility() -> None:
    scores = one_stakeholder(1.0, 0.0, 0.0)
    assert value_of("stakeholders", scores, hard={"a": [0, 1]}, cap=1.0) == pytest.approx(1 / 3)


def test_a_hard_constraint_that_does_not_apply_violates_nothing() -> None:
    cells = {"a": matrix([1.0, 0.0, 0.5], applicable=[True, False, True])}
    assert value_of("stakeholders", cells, **CAPPED) == 0.75


# Rules of welfare


def test_the_egalitarian_rule_is_the_weighted_sum_where_everybody_reaches_the_floor() -> None:
    assert value_of("egalitarian", TABLE_4, floor=0.4) == value_of("stakeholders", TABLE_4)


def test_below_the_floor_it_gives_no_more_than_the_least_utility() -> None:
    assert value_of("egalitarian", TABLE_4, floor=0.41) == 0.4


def test_nash_is_the_product_of_the_utilities() -> None:
    assert value_of("nash", TABLE_4) == 0.4 * 0.95 * 0.8
    assert (
        value_of("nash", {"a": matrix(1.0, input_weight=0.5), "b": matrix(0.0, input_weight=0.5)})
        == 0.0
    )


def test_a_stakeholder_without_questions_does_not_change_welfare() -> None:
    cells = {
        "a": matrix(0.0, input_weight=0.5, applicable=False),
        "b": matrix(0.6, input_weight=0.5),
    }
    assert value_of("nash", cells) == 0.6
    assert value_of("egalitarian", cells, floor=0.5) == pytest.approx(0.6)


# Figures of the group


def diagnostics_of(cells: dict[str, ScoreMatrix], **params: object) -> dict[str, float]:
    return {
        name: float(shown[0])
        for name, shown in run_combiner("stakeholders", cells, **params).diagnostics.items()
    }


def test_group_diagnostics_equal_those_of_decompr() -> None:
    shown = diagnostics_of(TABLE_4)
    assert shown == {
        "group utility": pytest.approx(2.15 / 3),
        "least utility": 0.4,
        "gini": pytest.approx(2 * (0.55 + 0.4 + 0.15) / (2 * 3 * 2.15)),
        "jain": pytest.approx(2.15**2 / (3 * (0.16 + 0.9025 + 0.64))),
        "group fairness": pytest.approx(100 * 0.4 / 0.95),
    }


def test_group_diagnostics_leave_out_who_has_no_utility_and_what_does_not_apply() -> None:
    away = matrix([0.0, 0.0], input_weight=0.5, applicable=False)
    cells = {"a": away, "b": matrix(0.6, input_weight=0.5)}
    expected = {"group utility": 0.6, "least utility": 0.6, "gini": 0.0, "jain": 1.0}
    figures = {
        name: shown for name, shown in diagnostics_of(cells).items() if name != "group fairness"
    }
    assert figures == expected
    nobody = diagnostics_of({"a": away, "b": away}, soft={"a": [1]}, collected={"a": [0]})
    assert np.isnan(list(nobody.values())).all()


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5))
def test_every_figure_lies_between_0_and_1_and_group_fairness_up_to_100(
    utilities: list[float],
) -> None:
    share = 1.0 / len(utilities)
    cells = {
        f"s{place}": matrix(utility, input_weight=share) for place, utility in enumerate(utilities)
    }
    shown = diagnostics_of(cells)
    assert 0.0 <= shown.pop("group fairness") <= 100.0
    assert all(-1e-12 <= figure <= 1.0 + 1e-12 for figure in shown.values())


# The figures of GroupTravelBench


def test_a_stakeholder_without_a_utility_leaves_no_group_fairness_rather_than_that_of_the_others() -> (
    None
):
    away = matrix([0.0], input_weight=0.5, applicable=False)
    assert np.isnan(
        diagnostics_of({"a": away, "b": matrix(0.6, input_weight=0.5)})["group fairness"]
    )


def test_a_verdict_that_is_missing_or_set_by_a_gate_leaves_no_group_fairness() -> None:
    # filled with 0, a lost verdict of the better-off would make the two equal
    better_off = matrix([1.0, 0.0], input_weight=0.5, judged=[True, False])
    assert np.isnan(
        diagnostics_of({"a": better_off, "b": matrix([0.5, 0.5], input_weight=0.5)})[
            "group fairness"
        ]
    )


def test_preference_completeness_is_the_share_of_all_preferences_together_that_were_recorded() -> (
    None
):
    cells = {
        "a": matrix([0.5, 1.0, 1.0, 0.0], input_weight=0.5, weight=[1.0, 0.0, 0.0, 0.0]),
        "b": matrix([0.5, 0.0], input_weight=0.5, weight=[1.0, 0.0]),
    }
    shown = diagnostics_of(cells, collected={"a": [1, 2, 3], "b": [1]})
    assert shown["preference completeness"] == 50.0  # 2 of 4; the mean of 2/3 and 0 would be 33.3
    assert (shown["group utility"], shown["group fairness"]) == (0.5, 100.0)
