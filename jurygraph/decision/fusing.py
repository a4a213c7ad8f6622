"""A reward of components: their weighted sum, then gates, scale and clip (MACRM, Eq. 4), and the bounds of that.

All rows are fused at once. It is the last step of `decide`, which measures the components.
"""

from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import BoundArrays, Component, RowValuesByName
from jurygraph.errors import PlanError
from jurygraph.schema import Decision, FormatGate, Must, RepetitionControl
from jurygraph.schema.plan import RewardGate

Components = Mapping[str, Component]
"""The components of a reward, by name."""
RewardStepChange = tuple[str, Floats, Floats]
"""Name of a step, and the rewards before and after it, each [R]."""


class FusionResult(NamedTuple):
    """Rewards [R], the effect of each step after the weighted sum, and the value that each gate used, by `key`.

    That value is NaN where the gate's component has only one possible value, its own, unless it is a must.
    """

    value: Floats
    changes: tuple[RewardStepChange, ...]
    gate_values: RowValuesByName


def fuse(
    decision: Decision,
    components: Components,
    spans: Mapping[str, BoundArrays] | None = None,
) -> FusionResult:
    """Return R_collab = Σ w_k r_k (MACRM Eq. 3) in the order of the components' names, then F: gates, scale, clip.

    A component contributes 0 and opens no gate where it is not present. `spans` are the least and greatest possible
    values of components that were not completely judged: a gate that could be open or shut then takes the state with
    the lower reward. PlanError names the step at which a reward overflows.
    """
    weights = {spec.name: spec.weight for spec in decision.specs}
    zero_filled_values = {
        name: np.where(components[name].present, components[name].value, 0.0) for name in weights
    }
    reward = require_finite(
        "the weighted sum of the components", fusion.collaborative(zero_filled_values, weights)
    )
    changes: list[RewardStepChange] = []
    gate_values: dict[str, Floats] = {}

    def record_reward_change(name: str, after: Floats) -> Floats:
        changes.append((name, reward, require_finite(f"the reward after the {name}", after)))
        return after

    for gate in decision.gates:
        measured, present = components[gate.component].value, components[gate.component].present
        span = (spans or {}).get(gate.component, ())
        # The component's value comes first, then the two ends of its span, if it has one.
        measures = [_clip_values(measure, 0.0, 1.0) for measure in (measured, *span)]
        gated_rewards = [
            _apply_gate(gate, reward, zero_filled_values, weights, measure) for measure in measures
        ]
        least_reward = reduce(np.minimum, gated_rewards)
        if isinstance(gate, Must):
            # Also of a criterion, which is no term of the reward. Only one that is surely broken costs something: if
            # it could be, the reward fails, or another decides it.
            gate_values[gate.key] = np.where(present, reduce(np.minimum, measures), np.nan)
            least_reward = reduce(np.maximum, gated_rewards)
        elif span:
            # Where several measures give the least reward, the one at the bad end is reported.
            measure_indices = (1, 2, 0)
            if isinstance(gate, RepetitionControl):
                measure_indices = (2, 1, 0)
            gives_least_reward = [gated_rewards[index] == least_reward for index in measure_indices]
            reported_gate_value = np.select(
                gives_least_reward, [measures[index] for index in measure_indices]
            )
            is_measure_uncertain = present & (measures[1] < measures[2])
            gate_values[gate.key] = np.where(is_measure_uncertain, reported_gate_value, np.nan)
        reward = record_reward_change(gate.step, np.where(present, least_reward, reward))
    if decision.scale != 1.0:
        reward = record_reward_change("scale", reward * decision.scale)
    if decision.clip is not None:
        reward = record_reward_change("clip", _clip_values(reward, *decision.clip))
    return FusionResult(reward, tuple(changes), gate_values)


def _apply_gate(
    gate: RewardGate,
    reward: Floats,
    values: RowValuesByName,
    weights: Mapping[str, float],
    measure: Floats,
) -> Floats:
    """Return the reward after a gate, if the gate's component has the value `measure`: our reading of MACRM's F.

    `values` are those of the components, which precision shaping adds up anew: it takes only a fraction of the
    auxiliary ones where the answer is wrong.
    """
    if isinstance(gate, FormatGate):
        return np.where(measure < gate.below, 0.0, reward)
    if isinstance(gate, Must):  # what penalties took below 0 stays there: a fault is no gain
        return np.where(measure < gate.below, np.minimum(reward, 0.0), reward)
    if isinstance(gate, RepetitionControl):
        return np.where(measure > gate.above, reward * (1.0 - measure), reward)
    factor = np.where(measure < gate.below, gate.fraction, 1.0)
    gated_values = dict(values)
    for name in gate.auxiliary:
        gated_values[name] = values[name] * factor
    return np.asarray(fusion.collaborative(gated_values, weights))


def require_finite(name: str, reward: np.float64 | Floats) -> Floats:
    """Return the reward, or raise PlanError naming `name` if it is not finite."""
    if not np.isfinite(reward).all():
        raise PlanError(
            f"{name} overflows: it is larger than any number; make the weights or the scale smaller"
        )
    return np.asarray(reward)


def _clip_values(reward: Floats, low: float, high: float) -> Floats:
    """Return the reward in [low, high]; + 0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU."""
    return np.minimum(np.maximum(reward, low), high) + 0.0


def fuse_reward_bounds(
    decision: Decision, spans: Mapping[str, BoundArrays], present: Mapping[str, Bools]
) -> BoundArrays:
    """Return the least and greatest reward [R] by interval arithmetic, from those of the components, [R] each."""
    weights = {spec.name: spec.weight for spec in decision.specs}
    worst_case_values = {}
    best_case_values = {}
    for name, weight in weights.items():
        # A penalty lowers the reward the most at the upper end of its span.
        low, high = spans[name] if weight >= 0 else reversed(spans[name])
        worst_case_values[name] = np.where(present[name], low, 0.0)
        best_case_values[name] = np.where(present[name], high, 0.0)
    ends = (worst_case_values, best_case_values)
    # The least rewards and the greatest ones, [2,R].
    bounds = np.stack([fusion.collaborative(values, weights) for values in ends])
    for gate in decision.gates:
        name = gate.component
        low, high = spans[name]
        span = (_clip_values(low, 0.0, 1.0), _clip_values(high, 0.0, 1.0))
        gated_bounds = _bounds_after_gate(gate, bounds, span, ends, weights)
        bounds = np.where(present[name], gated_bounds, bounds)
    bounds = bounds * decision.scale
    if decision.clip is not None:
        bounds = _clip_values(bounds, *decision.clip)
    floor, ceiling = bounds
    return floor, ceiling


def _bounds_after_gate(
    gate: RewardGate,
    bounds: Floats,
    span: BoundArrays,
    ends: tuple[RowValuesByName, RowValuesByName],
    weights: Mapping[str, float],
) -> BoundArrays:
    """Return the least and the greatest reward after a gate whose component can have any value in `span`."""
    if isinstance(gate, RepetitionControl):
        # The factor falls as the measure rises, so the span's ends give its ends; below 0 it raises the reward, though.
        gate_factors = [np.where(s > gate.above, 1.0 - s, 1.0) for s in span]
        return _widest_bounds(*(bound * factor for bound, factor in product(bounds, gate_factors)))
    zeros = np.zeros_like(bounds[0])
    # A gate is shut at a measure of 0.
    bounds_if_gate_shut = [
        _apply_gate(gate, bound, values, weights, zeros)
        for bound, values in zip(bounds, ends, strict=True)
    ]
    bounds_if_unsure = _widest_bounds(*bounds, *bounds_if_gate_shut)
    least_measure, greatest_measure = span
    is_surely_closed = greatest_measure < gate.below
    is_surely_open = least_measure >= gate.below
    floor, ceiling = (
        np.where(is_surely_closed, shut, np.where(is_surely_open, bound, unsure))
        for shut, bound, unsure in zip(bounds_if_gate_shut, bounds, bounds_if_unsure, strict=True)
    )
    return floor, ceiling


def _widest_bounds(*arrays: Floats) -> BoundArrays:
    return reduce(np.minimum, arrays), reduce(np.maximum, arrays)
