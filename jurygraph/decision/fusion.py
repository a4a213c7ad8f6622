"""Fusion of components into one reward: signed weights, then gates, scale and clip, with the effect of each step."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiner import Component
from jurygraph.errors import PlanError
from jurygraph.schema import Decision, FormatGate, RepetitionControl, RewardGate

Values = Mapping[str, Floats]
"""Values of components [R], by name."""
Interval = tuple[Floats, Floats]
Change = tuple[str, Floats, Floats]
"""Name of a step, and the rewards before and after it, each [R]."""


@dataclass(frozen=True, slots=True)
class FusedRewards:
    """Rewards [R], the effect of each step after the weighted sum, and the value that each kind of gate used.

    That value is NaN where the gate's component has only one possible value, its own.
    """

    value: Floats
    changes: tuple[Change, ...]
    gate_values: Values


def fuse(
    decision: Decision, components: Mapping[str, Component], spans: Mapping[str, Interval] | None = None
) -> FusedRewards:
    """Return R_collab = Σ w_k r_k (MACRM Eq. 3) in the order of the components' names, then F: gates, scale, clip.

    A component contributes 0 and opens no gate where it is not present. `spans` are the least and greatest possible
    values of components that were not completely judged: a gate that could be open or shut then takes the state with
    the lower reward. PlanError names the step at which a reward overflows.
    """
    weights = {spec.name: spec.weight for spec in decision.specs}
    effective = {name: np.where(component.present, component.value, 0.0) for name, component in components.items()}
    reward = require_finite("the weighted sum of the components", fusion.collaborative(effective, weights))
    changes: list[Change] = []
    gate_values: dict[str, Floats] = {}

    def advance(name: str, after: Floats) -> Floats:
        changes.append((name, reward, require_finite(f"the reward after the {name}", after)))
        return after

    for gate in decision.gates:
        present = components[gate.component].present
        span = (spans or {}).get(gate.component, ())
        measures = [_clip(measure, 0.0, 1.0) for measure in (effective[gate.component], *span)]
        gated = [_apply_gate(gate, reward, effective, weights, measure) for measure in measures]
        least = reduce(np.minimum, gated)
        if span:
            places = (2, 1, 0) if isinstance(gate, RepetitionControl) else (1, 2, 0)  # of equal ones, the bad end
            used = np.select([gated[place] == least for place in places], [measures[place] for place in places])
            gate_values[gate.kind] = np.where(present & (measures[1] < measures[2]), used, np.nan)
        reward = advance(f"{gate.kind} gate", np.where(present, least, reward))
    if decision.scale != 1.0:
        reward = advance("scale", reward * decision.scale)
    if decision.clip is not None:
        reward = advance("clip", _clip(reward, *decision.clip))
    return FusedRewards(reward, tuple(changes), gate_values)


def _apply_gate(
    gate: RewardGate, reward: Floats, values: Values, weights: Mapping[str, float], measure: Floats
) -> Floats:
    """Return the reward after a gate, if the gate's component has the value `measure`."""
    if isinstance(gate, FormatGate):
        return np.asarray(fusion.format_gate(reward, measure, gate.below))
    if isinstance(gate, RepetitionControl):
        return np.asarray(fusion.repetition_control(reward, measure, gate.above))
    return np.asarray(fusion.precision_shaping(values, weights, measure, gate.auxiliary, gate.fraction, gate.below))


def require_finite(name: str, reward: np.float64 | Floats) -> Floats:
    """Return the reward, or raise PlanError naming `name` if it is not finite."""
    if not np.isfinite(reward).all():
        raise PlanError(f"{name} overflows: it is larger than any number; make the weights or the scale smaller")
    return np.asarray(reward)


def _clip(reward: Floats, low: float, high: float) -> Floats:
    """Return the reward in [low, high]; + 0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU."""
    return np.minimum(np.maximum(reward, low), high) + 0.0


def fuse_bounds(decision: Decision, spans: Mapping[str, Interval], present: Mapping[str, Bools]) -> Interval:
    """Return the least and greatest reward [R] by interval arithmetic, from those of the components, [R] each."""
    weights = {spec.name: spec.weight for spec in decision.specs}
    least, most = (
        {name: np.where(present[name], spans[name][end if w >= 0 else 1 - end], 0.0) for name, w in weights.items()}
        for end in (0, 1)
    )
    floor, ceiling = (np.asarray(fusion.collaborative(each, weights)) for each in (least, most))
    for gate in decision.gates:
        name = gate.component
        low, high = (_clip(bound, 0.0, 1.0) for bound in spans[name])
        gated = _bounds_after_gate(gate, (floor, ceiling), (low, high), (least, most), weights)
        floor = np.where(present[name], gated[0], floor)
        ceiling = np.where(present[name], gated[1], ceiling)
    floor = floor * decision.scale
    ceiling = ceiling * decision.scale
    if decision.clip is not None:
        floor = _clip(floor, *decision.clip)
        ceiling = _clip(ceiling, *decision.clip)
    return floor, ceiling


def _bounds_after_gate(
    gate: RewardGate, bounds: Interval, span: Interval, ends: tuple[Values, Values], weights: Mapping[str, float]
) -> Interval:
    """Return the bounds after a gate whose component can have any value in `span`."""
    if isinstance(gate, RepetitionControl):
        factors = [np.where(s > gate.above, 1.0 - s, 1.0) for s in span]
        return _hull(*(bound * factor for bound in bounds for factor in factors))
    zero = np.zeros_like(bounds[0])
    shut = [_apply_gate(gate, zero, each, weights, zero) for each in ends]  # each gate is shut at a measure of 0
    surely_shut = span[1] < gate.below
    surely_open = span[0] >= gate.below
    least, most = (
        np.where(surely_shut, when_shut, np.where(surely_open, when_open, either))
        for when_shut, when_open, either in zip(shut, bounds, _hull(*bounds, *shut), strict=True)
    )
    return least, most


def _hull(*arrays: Floats) -> Interval:
    return reduce(np.minimum, arrays), reduce(np.maximum, arrays)
