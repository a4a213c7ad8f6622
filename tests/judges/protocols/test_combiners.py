"""The protocols' combiners against values worked out by hand, and the bounds that they promise."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import PlanError, ScoreMatrix
from jurygraph.decision.combiners import Component, Mean
from jurygraph.judges.combiners import AdaptiveSum, InputWeightedMean
from jurygraph.schema import ComponentInput
from tests.examples import at_most

Draw = Callable[[st.SearchStrategy[Any]], Any]


def matrix(value: Any, judged: Any = True, live: Any = True) -> ScoreMatrix:
    """Return the score matrix [R,Q] of these values."""
    numbers = np.atleast_2d(np.array(value, dtype=float))
    return ScoreMatrix(
        value=numbers,
        met=numbers >= 0.5,
        judged=np.broadcast_to(np.array(judged), numbers.shape),
        applicable=np.broadcast_to(np.array(live), numbers.shape),
        weight=np.ones(numbers.shape[1]),
        input_weight=float(numbers.shape[1]),
    )


def adaptive(
    utility: ScoreMatrix, weight: ScoreMatrix, people: Sequence[str] = "abcdefgh"
) -> Component:
    number = len(people) if len(people) < 8 else utility.value.shape[1]
    return AdaptiveSum().combine(
        {"utility": utility, "weight": weight}, {"people": list(people[:number])}
    )


def value(utility: ScoreMatrix, weight: ScoreMatrix) -> float:
    component = adaptive(utility, weight)
    assert component.present.tolist() == [True]
    return float(component.value[0])


def bounds_of(utility: ScoreMatrix, weight: ScoreMatrix) -> tuple[float, float]:
    """The bounds, from cells whose unjudged values are filled by 0 and by 1."""

    def filled(one: ScoreMatrix, fill: float) -> ScoreMatrix:
        values = np.where(one.judged, one.value, fill)
        return ScoreMatrix(
            values, one.met, one.judged, one.applicable, one.weight, one.input_weight
        )

    params = {"people": list("abcdefgh"[: utility.value.shape[1]])}
    both = (
        {"utility": filled(utility, fill), "weight": filled(weight, fill)} for fill in (0.0, 1.0)
    )
    least, greatest = AdaptiveSum().bounds(*both, params)
    return float(least[0]), float(greatest[0])


# The protocols' mean


def test_a_protocol_is_a_mean_and_its_score_on_the_papers_scale() -> None:
    given_ = {"a": matrix([[0.2, 0.4], [0.0, 0.0]]), "b": matrix([[1.0], [0.0]])}
    mean, one = Mean().combine(given_, {}), InputWeightedMean().combine(given_, {})
    assert one.value.tobytes() == mean.value.tobytes()
    assert one.value.tolist() == pytest.approx([1.6 / 3, 0.0], abs=1e-15)
    assert one.diagnostics["R"].tolist() == pytest.approx([1 + 9 * 1.6 / 3, 1.0], abs=1e-14)
    assert one.parts.keys() == {"a", "b"}


# The adaptive sum


def test_the_value_is_the_weighted_mean_of_utilities() -> None:
    component = adaptive(matrix([0.4, 0.95, 0.8]), matrix([0.67, 0.09, 0.24]))
    assert component.value[0] == pytest.approx(0.67 * 0.4 + 0.09 * 0.95 + 0.24 * 0.8, abs=1e-15)
    assert {name: part[0] for name, part in component.parts.items()} == {
        "a": 0.4,
        "b": 0.95,
        "c": 0.8,
    }
    assert component.diagnostics["R"][0] == pytest.approx(1 + 9 * 0.5455, abs=1e-14)
    assert component.diagnostics["weight of a"][0] == pytest.approx(0.67, abs=1e-15)


def test_weights_that_sum_to_0_give_0() -> None:
    assert value(matrix([1.0, 1.0]), matrix([0.0, 0.0])) == 0.0


def test_a_person_of_whom_one_half_does_not_apply_is_left_out() -> None:
    assert value(matrix([1.0, 0.5]), matrix([0.5, 0.5], live=[False, True])) == 0.5
    assert value(matrix([1.0, 0.5], live=[False, True]), matrix([0.5, 0.5])) == 0.5
    nobody = adaptive(matrix([1.0, 0.5], live=False), matrix([0.5, 0.5]))
    assert (nobody.present.tolist(), nobody.value.tolist()) == ([False], [0.0])


# What was not judged


def test_a_reply_of_which_a_weight_is_unjudged_counts_0_and_at_best_the_highest_utility() -> None:
    weight = matrix([0.0, 0.5], judged=[False, True])
    assert value(matrix([0.1, 0.9]), weight) == 0.0
    assert bounds_of(matrix([0.1, 0.9]), weight) == (0.0, 0.9)
    filled_high = matrix([0.5, 1.0], judged=[True, False])
    assert value(matrix([0.1, 0.9]), filled_high) == 0.9


def test_without_judged_weights_the_value_is_0_and_the_range_open() -> None:
    nothing = matrix([0.0, 0.0], judged=False)
    assert value(matrix([0.4, 0.9]), nothing) == 0.0
    assert bounds_of(matrix([0.4, 0.9]), nothing) == (0.0, 0.9)
    assert bounds_of(matrix([0.0, 0.0], judged=False), nothing) == (0.0, 1.0)


unit = st.floats(0.0, 1.0, allow_subnormal=False)  # a share of the least float is no more exact


@st.composite
def draw_groups(draw: Draw) -> tuple[int, list[dict[str, ScoreMatrix]]]:
    """Draw the number of people, and a group's matrices: filled low, filled high, and fully judged."""
    rows, people, samples = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 2)),
    )
    shape = (rows, people * samples)

    def grid(kind: st.SearchStrategy[Any]) -> Any:
        size = shape[0] * shape[1]
        return np.array(draw(st.lists(kind, min_size=size, max_size=size))).reshape(shape)

    made: list[dict[str, ScoreMatrix]] = [{}, {}, {}]
    for name in ("utility", "weight"):
        values, live = grid(unit), grid(st.integers(0, 5).map(bool))
        judged = grid(st.booleans()) | ~live
        for one, filling in zip(made, (0.0, 1.0, grid(unit)), strict=True):
            known = judged if one is not made[2] else np.ones(shape, dtype=bool)
            filled = np.where(judged, values, filling)
            one[name] = ScoreMatrix(
                filled, filled >= 0.5, known, live, np.ones(shape[1]), float(shape[1])
            )
    return people, made


@settings(max_examples=at_most(150), deadline=None)
@given(draw_groups())
def test_the_bounds_hold_for_any_unjudged_verdicts(
    drawn: tuple[int, list[dict[str, ScoreMatrix]]],
) -> None:
    people, (low, high, filled) = drawn
    params = {"people": [str(place) for place in range(people)]}
    least, greatest = AdaptiveSum().bounds(low, high, params)
    result = AdaptiveSum().combine(filled, params)
    assert (least <= result.value + 1e-12).all()
    assert (result.value <= greatest + 1e-12).all()
    assert ((least >= 0.0) & (greatest <= 1.0 + 1e-12)).all()


# Plans


def component_input(*questions: str) -> ComponentInput:
    return ComponentInput(
        questions=questions,
        weights=(1.0,) * len(questions),
        reduce=None,
        input_weight=float(len(questions)),
    )


def test_utilities_and_weights_are_paired_by_person() -> None:
    names = ["", "a/utility/b", "x/weight/y"]
    for evaluator in ("e", "e/utility/e"):
        utility = component_input(*(f"{evaluator}/utility/{name}" for name in names))
        weight = component_input(*(f"{evaluator}/weight/{name}" for name in names))
        assert AdaptiveSum().freeze({"utility": utility, "weight": weight}, {}) == {"people": names}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"utility": component_input("e/utility/a")},
            "takes the inputs 'utility' and 'weight', not \\['utility'\\]",
        ),
        (
            {
                "utility": component_input("e/utility/a", "e/utility/b"),
                "weight": component_input("e/weight/a"),
            },
            "has 2 utilities and 1 weights",
        ),
        (
            {"utility": component_input("e/utility/a"), "weight": component_input("e/weight/b")},
            "'e/utility/a' and 'e/weight/b' are not about the same person",
        ),
    ],
)
def test_an_unpaired_entry_is_refused(inputs: dict[str, ComponentInput], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        AdaptiveSum().freeze(inputs, {})
