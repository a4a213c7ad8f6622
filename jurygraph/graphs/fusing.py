"""From components to one number: signed weights, then gates, scale and clip, each change kept for the trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Floats
from jurygraph.aggregation import fusion
from jurygraph.errors import PlanError
from jurygraph.schema import Decision, FormatGate, Gate, PrecisionShaping, RepetitionControl

Interval = tuple[Floats, Floats]
Change = tuple[str, Floats, Floats]
"""Name of a step, and the rewards before and after it, each [R]."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Rewards [R], and what each step after the weighted sum changed."""

    value: Floats
    changes: tuple[Change, ...]


def fuse(
    decision: Decision,
    values: Mapping[str, Floats],
    present: Mapping[str, Bools],
    spans: Mapping[str, Interval] | None = None,
) -> Fused:
    """R_collab = Σ w_k r_k (MACRM Eq. 3) in the order of the components' names, then F: gates, scale, clip.

    `values` and `present` are [R] by component; a component that is not present contributes 0 and opens no gate.
    `spans` are the least and greatest that components could be, where they were not wholly judged: a gate that could
    then be open or shut is taken as whichever gives less. PlanError names the step at which a reward overflows.
    """
    weights = {spec.name: spec.weight for spec in decision.specs}
    shown = {name: np.where(present[name], value, 0.0) for name, value in values.items()}
    reward = held("the weighted sum of the components", fusion.collaborative(shown, weights))
    changes: list[Change] = []
    for name, step in _steps(decision, shown, present, weights, spans or {}):
        after = held(f"the reward after the {name}", step(reward))
        changes.append((name, reward, after))
        reward = after
    return Fused(reward, tuple(changes))


def held(what: str, reward: np.float64 | Floats) -> Floats:
    """The reward, if floats can hold it. PlanError saying `what` overflowed, if they cannot."""
    if not np.isfinite(reward).all():
        raise PlanError(f"{what} overflows: it is larger than any number; make the weights or the scale smaller")
    return np.asarray(reward)


def _steps(
    decision: Decision,
    values: Mapping[str, Floats],
    present: Mapping[str, Bools],
    weights: Mapping[str, float],
    spans: Mapping[str, Interval],
) -> list[tuple[str, Callable[[Floats], Floats]]]:
    steps: list[tuple[str, Callable[[Floats], Floats]]] = []
    for gate in decision.gates:
        measures = (values[gate.component], *spans.get(gate.component, ()))
        steps.append((f"{gate.kind} gate", _gated(gate, values, measures, present[gate.component], weights)))
    if decision.scale != 1.0:
        steps.append(("scale", lambda reward: reward * decision.scale))
    if decision.clip is not None:
        low, high = decision.clip
        steps.append(("clip", lambda reward: _clipped(reward, low, high)))
    return steps


def _gated(
    gate: Gate,
    values: Mapping[str, Floats],
    measures: Sequence[Floats],
    present: Bools,
    weights: Mapping[str, float],
) -> Callable[[Floats], Floats]:
    """The gate as a function of the reward: the least that it gives over all that its component may be.

    It leaves the rows alone where its component does not apply.
    """

    def after(reward: Floats, measure: Floats) -> Floats:
        if isinstance(gate, FormatGate):
            return np.asarray(fusion.format_gate(reward, measure, gate.below))
        if isinstance(gate, RepetitionControl):
            return np.asarray(fusion.repetition_control(reward, measure, gate.above))
        shaped = fusion.precision_shaping(values, weights, measure, gate.auxiliary, gate.fraction, gate.below)
        return np.asarray(shaped)

    def apply(reward: Floats) -> Floats:
        least, _ = _hull(*(after(reward, _measured(measure)) for measure in measures))
        return np.where(present, least, reward)

    return apply


def _measured(value: Floats) -> Floats:
    """A component as a gate reads it: in [0, 1]."""
    return np.minimum(np.maximum(value, 0.0), 1.0)


def _clipped(reward: Floats, low: float, high: float) -> Floats:
    """The reward in [low, high]; + 0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU."""
    return np.minimum(np.maximum(reward, low), high) + 0.0


def fuse_bounds(
    decision: Decision, low: Mapping[str, Floats], high: Mapping[str, Floats], present: Mapping[str, Bools]
) -> tuple[Floats, Floats]:
    """Least and greatest reward [R] by interval arithmetic, from those of the components, [R] each."""
    weights = {spec.name: spec.weight for spec in decision.specs}
    least = {name: np.where(present[name], low[name] if w >= 0 else high[name], 0.0) for name, w in weights.items()}
    most = {name: np.where(present[name], high[name] if w >= 0 else low[name], 0.0) for name, w in weights.items()}
    floor, ceiling = (np.asarray(fusion.collaborative(each, weights)) for each in (least, most))
    for gate in decision.gates:
        name = gate.component
        span = (_measured(low[name]), _measured(high[name]))
        gated = _gated_bounds(gate, (floor, ceiling), span, (least, most), weights)
        floor, ceiling = np.where(present[name], gated[0], floor), np.where(present[name], gated[1], ceiling)
    floor, ceiling = floor * decision.scale, ceiling * decision.scale
    if decision.clip is not None:
        floor, ceiling = _clipped(floor, *decision.clip), _clipped(ceiling, *decision.clip)
    return floor, ceiling


def _gated_bounds(
    gate: Gate,
    bounds: Interval,
    span: Interval,
    components: tuple[Mapping[str, Floats], Mapping[str, Floats]],
    weights: Mapping[str, float],
) -> Interval:
    """Bounds after a gate whose component lies anywhere in `span`."""
    if isinstance(gate, RepetitionControl):
        factors = [np.where(s > gate.above, 1.0 - s, 1.0) for s in span]
        products = [bound * factor for bound in bounds for factor in factors]
        return _hull(*products)
    if isinstance(gate, FormatGate):
        shut: Interval = (np.zeros_like(bounds[0]), np.zeros_like(bounds[1]))
    else:
        shut = _shaped(gate, components, weights)
    surely_shut, surely_open = span[1] < gate.below, span[0] >= gate.below
    either = _hull(*bounds, *shut)
    return (
        np.where(surely_shut, shut[0], np.where(surely_open, bounds[0], either[0])),
        np.where(surely_shut, shut[1], np.where(surely_open, bounds[1], either[1])),
    )


def _shaped(
    gate: PrecisionShaping,
    components: tuple[Mapping[str, Floats], Mapping[str, Floats]],
    weights: Mapping[str, float],
) -> Interval:
    wrong = np.zeros_like(next(iter(components[0].values())))
    least, most = (
        fusion.precision_shaping(each, weights, wrong, gate.auxiliary, gate.fraction, 1.0) for each in components
    )
    return np.asarray(least), np.asarray(most)


def _hull(*arrays: Floats) -> Interval:
    least, most = arrays[0], arrays[0]
    for array in arrays[1:]:
        least, most = np.minimum(least, array), np.maximum(most, array)
    return least, most


def covered(shares: Mapping[str, tuple[Floats, Bools]], weights: Mapping[str, float]) -> Floats:
    """Judged share of the absolute weight, [R]: of every component that applies, its own judged share. 0 of nothing."""
    size = np.stack([np.where(shares[name][1], abs(weights[name]), 0.0) for name in weights], axis=1)
    judged = np.stack([shares[name][0] for name in weights], axis=1)
    total = aggregation.total(size)
    return aggregation.total(size * judged) / np.where(total > 0, total, 1.0)
