"""From components to one number, and how far it could be from it: gates by interval arithmetic."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.decision.combiners import Component
from jurygraph.decision.fusing import fuse, fuse_reward_bounds
from jurygraph.schema import (
    ComponentSpec,
    Decision,
    FormatGate,
    Must,
    PrecisionShaping,
    RepetitionControl,
)
from jurygraph.schema.plan import RewardGate
from tests.examples import at_most

NAMES = ("format", "accuracy", "repetition")
VALUES = st.sampled_from([0.0, 1.0, 0.5, 0.25]) | st.floats(-1.0, 1.0)
UNITS = st.sampled_from([0.0, 1.0, 0.5, 0.25]) | st.floats(0.0, 1.0)
WEIGHTS = st.sampled_from([1.0, -1.0, 0.0, 0.5, -0.2])


def decision_with(weights: dict[str, float], *gates: RewardGate, **fields: Any) -> Decision:
    specs = tuple(
        ComponentSpec(name=n, weight=weights[n], combiner="mean", version="1", inputs={})
        for n in sorted(weights)
    )
    return Decision(specs=specs, gates=gates, **fields)


def components_of(values: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Component]:
    return {name: Component(value, present[name], {}) for name, value in values.items()}


@st.composite
def random_decisions(draw: st.DrawFn) -> Decision:
    gates: list[RewardGate] = []
    if draw(st.booleans()):
        auxiliary = draw(st.sampled_from([("format",), ("repetition",), ("format", "repetition")]))
        gates.append(PrecisionShaping(below=draw(UNITS), auxiliary=auxiliary, fraction=draw(UNITS)))
    if draw(st.booleans()):
        gates.append(FormatGate(below=draw(UNITS)))
    if draw(st.booleans()):
        gates.append(RepetitionControl(above=draw(UNITS)))
    if draw(st.booleans()):
        gates.append(Must(component="format", below=draw(UNITS)))
    clip = draw(st.none() | st.just((-0.3, 0.4)))
    return decision_with(
        {n: draw(WEIGHTS) for n in NAMES},
        *gates,
        scale=draw(st.sampled_from([1.0, 3.0])),
        clip=clip,
    )


@settings(max_examples=at_most(200), deadline=None)
@given(random_decisions(), *[st.tuples(VALUES, VALUES, UNITS)] * 3)
def test_every_reward_between_the_bounds_of_its_components_lies_between_its_own(
    how: Decision, one: tuple[float, ...], two: tuple[float, ...], three: tuple[float, ...]
) -> None:
    ends = dict(zip(NAMES, (one, two, three), strict=True))
    low = {name: np.array([min(a, b)]) for name, (a, b, _) in ends.items()}
    high = {name: np.array([max(a, b)]) for name, (a, b, _) in ends.items()}
    present = {name: np.array([True]) for name in NAMES}
    floor, ceiling = fuse_reward_bounds(
        how, {name: (low[name], high[name]) for name in NAMES}, present
    )
    for share in (0.0, 1.0, None):
        inside = {
            n: low[n] + (t if share is None else share) * (high[n] - low[n])
            for n, (_, _, t) in ends.items()
        }
        value = fuse(how, components_of(inside, present)).value
        assert floor[0] - 1e-12 <= value[0] <= ceiling[0] + 1e-12


@settings(max_examples=at_most(100), deadline=None)
@given(random_decisions(), st.tuples(VALUES, VALUES, VALUES))
def test_bounds_without_unknown_values_equal_the_reward(
    how: Decision, values: tuple[float, ...]
) -> None:
    known = {name: np.array([value]) for name, value in zip(NAMES, values, strict=True)}
    present = {name: np.array([True]) for name in NAMES}
    value = fuse(how, components_of(known, present)).value
    floor, ceiling = fuse_reward_bounds(
        how, {name: (value, value) for name, value in known.items()}, present
    )
    assert floor.tolist() == ceiling.tolist() == value.tolist()


def test_a_component_that_does_not_apply_counts_nothing_and_opens_and_shuts_no_gate() -> None:
    how = decision_with({"format": 1.0, "accuracy": 1.0}, FormatGate(below=0.5))
    values = {"format": np.array([0.0, 0.0]), "accuracy": np.array([0.75, 0.75])}
    present = {"format": np.array([False, True]), "accuracy": np.array([True, True])}
    assert fuse(how, components_of(values, present)).value.tolist() == [0.75, 0.0]
    bounds = fuse_reward_bounds(
        how, {name: (value, value) for name, value in values.items()}, present
    )
    assert [bound.tolist() for bound in bounds] == [[0.75, 0.0]] * 2


def test_a_clip_at_zero_has_one_zero() -> None:
    """Which of -0.0 and 0.0 is the smaller depends on the CPU."""
    how = decision_with({"repetition": -1.0}, RepetitionControl(above=0.5), clip=(0.0, 1.0))
    components = components_of({"repetition": np.array([1.0])}, {"repetition": np.array([True])})
    value = fuse(how, components).value
    assert not np.signbit(value[0])
    assert value[0] == 0.0


ENDS = st.tuples(VALUES, VALUES).map(sorted)


@settings(max_examples=at_most(300), deadline=None)
@given(random_decisions(), ENDS, ENDS, ENDS, st.data())
def test_bounds_are_no_wider_than_they_must_be(
    how: Decision, one: list[float], two: list[float], span: list[float], data: st.DataObject
) -> None:
    """Where the gate's component is no term of the sum, the extremes are reached at corners and at its threshold."""
    gate = data.draw(st.sampled_from([None, *how.gates]))
    changes = {
        "component": "judge",
        **({"auxiliary": ("format",)} if isinstance(gate, PrecisionShaping) else {}),
    }
    weights = {"format": data.draw(WEIGHTS), "accuracy": data.draw(WEIGHTS), "judge": 0.0}
    gates = () if gate is None else (gate.model_copy(update=changes),)
    how = decision_with(weights, *gates, scale=how.scale, clip=how.clip)
    threshold = getattr(gate, "below", getattr(gate, "above", 0.0))
    near = (threshold, np.nextafter(threshold, -1.0))
    present = {name: np.array([True]) for name in weights}

    def values(*each: float) -> dict[str, Any]:
        return dict(zip(weights, map(np.atleast_1d, each), strict=True))

    measures = [*span, *(measure for measure in near if span[0] <= measure <= span[1])]
    inside = (
        components_of(values(*each), present) for each in itertools.product(one, two, measures)
    )
    reached = [fuse(how, components).value[0] for components in inside]
    low, high = values(one[0], two[0], span[0]), values(one[1], two[1], span[1])
    floor, ceiling = fuse_reward_bounds(
        how, {name: (low[name], high[name]) for name in weights}, present
    )
    assert (floor[0], ceiling[0]) == (
        pytest.approx(min(reached), abs=1e-12),
        pytest.approx(max(reached), abs=1e-12),
    )
