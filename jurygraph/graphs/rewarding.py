"""Writing rewards down: from what is known of many responses, as arrays, to one `Reward` each, with its reasons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jurygraph.agents.roles import Bools, Component, Floats
from jurygraph.graphs.fusing import Fused
from jurygraph.schema import Counts, Decision, Reward, Spec

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of some responses before their rewards are written down; arrays are [R].

    `partial` is as if what was not judged had never been asked; `low` and `high` bound what it could make of the
    reward; `lost` says where the rule itself fails the reward; `dropped` are the questions left out for all.
    """

    components: Mapping[str, Component]
    fused: Fused
    partial: Mapping[str, Component]
    partial_fused: Fused
    low: Floats
    high: Floats
    coverage: Floats
    lost: Bools
    dropped: frozenset[str]


class Row(NamedTuple):
    """A reward without what its decision says anyway: components and terms have their places instead of names."""

    value: float | None
    status: str
    partial: float | None
    coverage: float
    range: tuple[float, float] | None
    components: Sequence[float | None]
    terms: Sequence[float | None]
    counts: Counts
    parts: Mapping[str, Mapping[str, float]]
    figures: Mapping[str, Mapping[str, float]]
    adjustments: Sequence[tuple[str, float, float]]
    notes: Sequence[str]

    @classmethod
    def of(cls, reward: Reward) -> "Row":
        """A reward's row."""
        return cls(
            value=reward.value,
            status=reward.status,
            partial=reward.partial,
            coverage=reward.coverage,
            range=reward.range,
            components=list(reward.components.values()),
            terms=[term.value for term in reward.terms],
            counts=reward.counts,
            parts=reward.parts,
            figures=reward.figures,
            adjustments=[(one.name, one.before, one.after) for one in reward.adjustments],
            notes=reward.notes,
        )

    def reward(self, decision: Decision) -> Reward:
        """The reward, under the decision that gave it."""
        # One mapping: pydantic reads it faster than `model_construct` sets fields, and refuses what is no number.
        return Reward.model_validate(
            {
                **self._asdict(),
                "components": dict(zip([spec.name for spec in decision.specs], self.components, strict=True)),
                "terms": [_term(spec, value) for spec, value in zip(decision.specs, self.terms, strict=True)],
                "adjustments": [{"name": name, "before": b, "after": a} for name, b, a in self.adjustments],
                "weights_fixed": decision.weights_fixed,
            }
        )


def _term(spec: Spec, value: float | None) -> dict[str, Any]:
    contribution = None if value is None else spec.weight * value
    return {"name": spec.name, "weight": spec.weight, "value": value, "contribution": contribution}


def reward_rows(decision: Decision, judged: Judged, counts: Sequence[Counts], alone: Sequence[bool]) -> list[Row]:
    """The rewards of all rows. For each, `counts` and whether it was `alone`, with nothing to be compared with."""
    rows, coverage = len(counts), judged.coverage
    failed = judged.lost | _below(coverage, decision.min_coverage) | (coverage == 0.0)
    open_ = judged.low < judged.high  # what was not judged could still change the reward
    degraded = _below(coverage, 1.0) | open_ | np.array(alone, dtype=np.bool_) | bool(judged.dropped)
    status = np.where(failed, "failed", np.where(degraded, "degraded", "ok")).tolist()
    why = zip(status, coverage.tolist(), judged.lost.tolist(), open_.tolist(), alone, strict=True)
    columns: dict[str, Iterable[Any]] = {
        "value": _numbers(judged.fused.value, ~failed),
        "status": status,
        "partial": _numbers(judged.partial_fused.value, coverage > 0.0),
        "coverage": coverage.tolist(),
        "range": zip(judged.low.tolist(), judged.high.tolist(), strict=True),
        "components": _places(decision, judged.partial),
        "terms": _places(decision, judged.components),
        "counts": counts,
        "parts": _named({name: one.parts for name, one in judged.components.items()}, rows),
        "figures": _figures(judged.components, rows),
        "adjustments": _adjustments(judged.fused, rows),
        "notes": (() if word == "ok" else _notes(decision, judged.dropped, *known) for word, *known in why),
    }
    return list(map(Row._make, zip(*(columns[name] for name in Row._fields), strict=True)))


def _rows(columns: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Columns by name as one mapping for each row."""
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _numbers(values: Floats, there: Bools) -> list[float | None]:
    """The values where there are any, else None."""
    numbers = np.asarray(values, dtype=np.float64).tolist()
    return (
        numbers
        if there.all()
        else [value if shown else None for value, shown in zip(numbers, there.tolist(), strict=True)]
    )


def _below(coverage: Floats, asked: float) -> Bools:
    """Whether less was judged than is asked for; four fifths of five weights of 0.3 are not less than 0.8."""
    return np.less(coverage, asked - ROUNDING)


def _places(decision: Decision, components: Mapping[str, Component]) -> Iterable[tuple[float | None, ...]]:
    """In every row, what each component is, in the decision's order."""
    ordered = (components[spec.name] for spec in decision.specs)
    return zip(*(_numbers(one.value, one.present) for one in ordered), strict=True)


def _named(components: Mapping[str, Mapping[str, Floats]], rows: int) -> Iterable[dict[str, Any]]:
    """In every row, the named numbers of the components that have some."""
    shown = {
        name: _rows({one: np.asarray(value, dtype=np.float64).tolist() for one, value in numbers.items()})
        for name, numbers in components.items()
        if numbers
    }
    return _rows(shown) if shown else [{}] * rows


def _figures(components: Mapping[str, Component], rows: int) -> Iterable[dict[str, Any]]:
    """In every row, the figures of the components; NaN stands where there is nothing to tell."""
    named = _named({name: one.figures for name, one in components.items()}, rows)
    if not any(np.isnan(value).any() for one in components.values() for value in one.figures.values()):
        return named
    told = ({n: {k: v for k, v in own.items() if v == v} for n, own in row.items()} for row in named)
    return ({name: own for name, own in row.items() if own} for row in told)


def _adjustments(fused: Fused, rows: int) -> Iterable[Sequence[tuple[str, float, float]]]:
    """In every row, the steps that changed its reward."""
    steps = [zip([name] * rows, before.tolist(), after.tolist(), strict=True) for name, before, after in fused.changes]
    changed = ([step for step in row if step[1] != step[2]] for row in zip(*steps, strict=True))
    return changed if steps else [()] * rows


def _notes(
    decision: Decision, dropped: frozenset[str], coverage: float, lost: bool, open_: bool, alone: bool
) -> list[str]:
    """Why a reward is degraded or failed."""
    notes = []
    if lost:
        rule = (
            "a failure" if decision.rule == "strict" else "a penalty that was not judged, by no fault of the response,"
        )
        notes.append(f"under the {decision.rule} rule {rule} fails the reward")
    if coverage == 0.0:
        notes.append("nothing that counts was judged")
    elif coverage < decision.min_coverage - ROUNDING:
        notes.append(f"{coverage:.3g} of the weight was judged, and {decision.min_coverage:g} is asked for")
    elif coverage < 1.0 - ROUNDING:
        notes.append(f"{coverage:.3g} of the weight was judged; the rest counts as the {decision.rule} rule says")
    elif open_:
        notes.append("what a gate or a comparison looks at was not judged, and could still change the reward")
    if alone:
        notes.append("the group has one response, so nothing could be compared")
    notes += [f"{name} was dropped for the whole group, because it was not judged for all" for name in sorted(dropped)]
    return notes
