"""Reward records: from arrays over many responses to one `Reward` for each, with its notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiner import Component
from jurygraph.decision.fusion import FusedRewards
from jurygraph.schema import Counts, Decision, RepetitionControl, Reward

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Results for some responses before their rewards are built; arrays are [R].

    `partial` is the result if verdicts that were not judged had never been requested; `low` and `high` bound the reward
    over all values of the missing verdicts; `failed_by_rule` marks rewards that the rule itself fails; `dropped` are
    the questions left out for all.
    """

    components: Mapping[str, Component]
    fused: FusedRewards
    partial: Mapping[str, Component]
    partial_fused: FusedRewards
    low: Floats
    high: Floats
    coverage: Floats
    failed_by_rule: Bools
    dropped: frozenset[str]


class RewardRow(NamedTuple):
    """A reward without the fields that its decision implies: components and terms have positions instead of names.

    `gate_values` are the values of components that gates used by kind, where these are the worst of several.
    """

    value: float | None
    status: str
    partial: float | None
    coverage: float
    range: tuple[float, float] | None
    components: Sequence[float | None]
    terms: Sequence[float | None]
    counts: Counts
    parts: Mapping[str, Mapping[str, float]]
    diagnostics: Mapping[str, Mapping[str, float]]
    adjustments: Sequence[tuple[str, float, float]]
    gate_values: Mapping[str, float]
    notes: Sequence[str]

    @classmethod
    def from_reward(cls, reward: Reward) -> "RewardRow":
        """Return a reward's row."""
        fields = {
            **vars(reward),
            "components": list(reward.components.values()),
            "terms": [term.value for term in reward.terms],
            "adjustments": [(step.name, step.before, step.after) for step in reward.adjustments],
            "gate_values": {gate.kind: gate.value for gate in reward.gates if gate.is_worst_case},
        }
        return cls(**{name: fields[name] for name in cls._fields})

    def to_reward(self, decision: Decision) -> Reward:
        """Return the reward, under its decision."""
        # Validation of one mapping is faster than `model_construct`, and refuses values that are not numbers.
        return Reward.model_validate(
            {
                **{name: value for name, value in self._asdict().items() if name != "gate_values"},
                "components": dict(zip([spec.name for spec in decision.specs], self.components, strict=True)),
                "terms": [
                    {
                        "name": spec.name,
                        "weight": spec.weight,
                        "value": value,
                        "contribution": None if value is None else spec.weight * value,
                    }
                    for spec, value in zip(decision.specs, self.terms, strict=True)
                ],
                "adjustments": [{"name": name, "before": b, "after": a} for name, b, a in self.adjustments],
                "gates": list(self._gate_results(decision)) if decision.gates else (),
                "weights_fixed": decision.weights_fixed,
            }
        )

    def _gate_results(self, decision: Decision) -> Iterator[dict[str, Any]]:
        """Yield the result of every reward gate: they follow from the row."""
        values = dict(zip([spec.name for spec in decision.specs], self.terms, strict=True))
        weights = {spec.name: spec.weight for spec in decision.specs}
        changed = {name: after for name, _, after in self.adjustments}
        reward = float(aggregation.total([weights[name] * (values[name] or 0.0) for name in sorted(values)]))
        for gate in decision.gates:
            value = self.gate_values.get(gate.kind, values[gate.component])
            yield {
                "kind": gate.kind,
                "component": gate.component,
                "value": None if value is None else min(max(value, 0.0), 1.0),
                "is_worst_case": gate.kind in self.gate_values,
                "op": ">" if isinstance(gate, RepetitionControl) else "<",
                "threshold": gate.above if isinstance(gate, RepetitionControl) else gate.below,
                "before": reward,
                "after": (reward := changed.get(f"{gate.kind} gate", reward)),
            }


def reward_rows(
    decision: Decision, result: GroupResult, counts: Sequence[Counts], is_single: Sequence[bool]
) -> list[RewardRow]:
    """Return the rewards of all rows. `counts` are those of a row's verdicts by status; `is_single` marks rows with no
    response to be compared with."""
    rows = len(counts)
    coverage = result.coverage
    # with tolerance: four of five weights of 0.3 are not less than 0.8
    is_failed = result.failed_by_rule | (coverage < decision.min_coverage - ROUNDING) | (coverage == 0.0)
    is_open = result.low < result.high  # missing verdicts could still change the reward
    is_degraded = (coverage < 1.0 - ROUNDING) | is_open | np.array(is_single, dtype=np.bool_) | bool(result.dropped)
    status = np.where(is_failed, "failed", np.where(is_degraded, "degraded", "ok")).tolist()
    why = zip(status, coverage.tolist(), result.failed_by_rule.tolist(), is_open.tolist(), is_single, strict=True)
    columns: dict[str, Iterable[Any]] = {
        "value": _to_numbers(result.fused.value, ~is_failed),
        "status": status,
        "partial": _to_numbers(result.partial_fused.value, coverage > 0.0),
        "coverage": coverage.tolist(),
        "range": zip(result.low.tolist(), result.high.tolist(), strict=True),
        "components": _component_rows(decision, result.partial),
        "terms": _component_rows(decision, result.components),
        "counts": counts,
        "parts": _named_rows({name: component.parts for name, component in result.components.items()}, rows),
        "diagnostics": _named_rows({name: c.diagnostics for name, c in result.components.items()}, rows),
        "adjustments": _adjustments(result.fused, rows),
        "gate_values": (row.get("", {}) for row in _named_rows({"": result.fused.gate_values}, rows)),
        "notes": (() if word == "ok" else _notes(decision, result.dropped, *reasons) for word, *reasons in why),
    }
    return list(map(RewardRow._make, zip(*(columns[name] for name in RewardRow._fields), strict=True)))


def _transpose(columns: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Convert columns by name to one mapping for each row."""
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _to_numbers(values: Floats, is_present: Bools) -> list[float | None]:
    """Return the values as a list, with None where there is none."""
    numbers = np.asarray(values, dtype=np.float64).tolist()
    if is_present.all():
        return numbers  # type: ignore[no-any-return]
    return [value if is_shown else None for value, is_shown in zip(numbers, is_present.tolist(), strict=True)]


def _component_rows(decision: Decision, components: Mapping[str, Component]) -> Iterable[tuple[float | None, ...]]:
    ordered = (components[spec.name] for spec in decision.specs)
    return zip(*(_to_numbers(component.value, component.present) for component in ordered), strict=True)


def _named_rows(components: Mapping[str, Mapping[str, Floats]], rows: int) -> Iterable[dict[str, Any]]:
    """Return each row's named numbers by component, without NaN, which marks a value that is not available."""
    columns = {
        name: _transpose({key: np.asarray(value, dtype=np.float64).tolist() for key, value in numbers.items()})
        for name, numbers in components.items()
        if numbers
    }
    named = _transpose(columns) if columns else [{}] * rows
    if not np.isnan([value for numbers in components.values() for value in numbers.values()]).any():
        return named
    cleaned = ({n: {k: v for k, v in numbers.items() if v == v} for n, numbers in row.items()} for row in named)
    return ({name: numbers for name, numbers in row.items() if numbers} for row in cleaned)


def _adjustments(fused: FusedRewards, rows: int) -> Iterable[Sequence[tuple[str, float, float]]]:
    steps = [zip([name] * rows, before.tolist(), after.tolist(), strict=True) for name, before, after in fused.changes]
    changed = ([step for step in row if step[1] != step[2]] for row in zip(*steps, strict=True))
    return changed if steps else [()] * rows


def _notes(
    decision: Decision, dropped: frozenset[str], coverage: float, is_failed: bool, is_open: bool, is_alone: bool
) -> list[str]:
    """Return why a reward is degraded or failed."""
    notes = []
    if is_failed:
        penalty = "a penalty that was not judged, by no fault of the response,"
        cause = "a failure" if decision.rule == "strict" else penalty
        notes.append(f"under the {decision.rule} rule {cause} fails the reward")
    if coverage == 0.0:
        notes.append("nothing that counts was judged")
    elif coverage < decision.min_coverage - ROUNDING:
        notes.append(f"{coverage:.3g} of the weight was judged, and {decision.min_coverage:g} is asked for")
    elif coverage < 1.0 - ROUNDING:
        notes.append(f"{coverage:.3g} of the weight was judged; the rest counts as the {decision.rule} rule says")
    elif is_open:
        notes.append("what a gate or a comparison looks at was not judged, and could still change the reward")
    if is_alone:
        notes.append("the group has one response, so nothing could be compared")
    notes += [f"{name} was dropped for the whole group, because it was not judged for all" for name in sorted(dropped)]
    return notes
