"""The deterministic aggregation node: rewards as a pure function of a decision and a group's verdicts.

Only + - * / min max on float64, in canonical order, so that the same decision and verdicts give the same bits on any
machine, for any order of anything that has none, and for any split of the group where no question looks across it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.errors import PlanError
from jurygraph.graphs.fusing import Fused, covered, fuse, fuse_bounds
from jurygraph.graphs.routing import GROUP_OF_ONE
from jurygraph.graphs.table import (
    ABSENT,
    ABSTAINED,
    FAILED_BY_INFRASTRUCTURE,
    FAILED_BY_RESPONSE,
    NO_MODEL,
    OK,
    Scenario,
    Table,
    dropped_questions,
    lay_out,
    unjudged,
)
from jurygraph.schema import Adjustment, Counts, Decision, Question, Reward, Spec, Term, Verdict

Combiners = Mapping[str, Combiner]
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is known of a group before its rewards are written down; arrays are [R]."""

    components: Mapping[str, Component]
    fused: Fused
    partial: Mapping[str, Component]
    partial_fused: Fused
    low: Floats
    high: Floats
    coverage: Floats
    lost: Bools
    dropped: frozenset[str]

    def open(self, row: int) -> bool:
        """Whether what was not judged could still change the reward."""
        return bool(self.low[row] < self.high[row])


def decide(
    decision: Decision,
    questions: Sequence[Question],
    responses: Sequence[str],
    verdicts: Sequence[Verdict],
    combiners: Combiners,
) -> tuple[Reward, ...]:
    """The rewards of a group, in the order of `responses` (ids). Inside, rows stand in the order of the ids."""
    names = sorted(responses)
    judged = _judge(decision, lay_out(questions, names, verdicts), combiners)
    mine = verdicts_of(questions, names, verdicts)
    rewards = {name: _reward(decision, judged, row, mine[name]) for row, name in enumerate(names)}
    return tuple(rewards[name] for name in responses)


def verdicts_of(
    questions: Sequence[Question], responses: Sequence[str], verdicts: Sequence[Verdict]
) -> dict[str, list[Verdict]]:
    """Each response's verdicts, in canonical order; one on an unordered pair belongs to both of it."""
    mirrored = {q.id for q in questions if q.scope == "pair" and q.pairs == "unordered"}
    found: dict[str, list[Verdict]] = {name: [] for name in responses}
    for verdict in sorted(verdicts, key=lambda v: (v.question, v.about, v.responses, v.sample)):
        found[verdict.about].append(verdict)
        if verdict.question in mirrored and verdict.responses:
            found[verdict.responses[1]].append(verdict)
    return found


def _judge(decision: Decision, table: Table, combiners: Combiners) -> _Judged:
    dropped = dropped_questions(decision, table)
    counted = table.marked(dropped, ABSENT) if dropped else table
    components = _components(decision, counted, combiners, "counted")
    present = {name: one.present for name, one in components.items()}
    if all((columns.outcome == OK).all() for columns in table.columns.values()):
        fused = fuse(decision, _values(components), present)
        everything, nothing = np.ones_like(fused.value), np.zeros_like(fused.value, dtype=np.bool_)
        return _Judged(components, fused, components, fused, fused.value, fused.value, everything, nothing, dropped)
    partial = _components(decision, counted, combiners, "partial")
    partial_fused = fuse(decision, _values(partial), {name: one.present for name, one in partial.items()})
    missing = np.stack([unjudged(columns.outcome).any(axis=1) for columns in counted.columns.values()]).any(axis=0)
    least, most = _bounds(decision, counted, combiners)
    spans = {
        name: (np.where(missing, least[name], one.value), np.where(missing, most[name], one.value))
        for name, one in components.items()
    }
    fused = fuse(decision, _values(components), present, spans)
    ends = fuse_bounds(decision, least, most, present)
    low, high = (np.where(missing, end, fused.value) for end in ends)
    coverage = _coverage(decision, table.marked(dropped, ABSTAINED) if dropped else table)
    lost = _lost(decision, table if decision.rule == "strict" else counted)
    return _Judged(components, fused, partial, partial_fused, low, high, coverage, lost, dropped)


def _values(components: Mapping[str, Component]) -> dict[str, Floats]:
    return {name: one.value for name, one in components.items()}


def _components(decision: Decision, table: Table, combiners: Combiners, scenario: Scenario) -> dict[str, Component]:
    components = {}
    for spec in decision.specs:
        one = combiners[spec.combiner].combine(_cells(spec, table, decision.rule, scenario), spec.params)
        if not np.isfinite(one.value[one.present]).all():
            raise PlanError(f"combiner {spec.combiner!r} gave component {spec.name!r} a value that is not finite")
        components[spec.name] = one
    return components


def _cells(spec: Spec, table: Table, rule: str, scenario: Scenario) -> dict[str, Cells]:
    return {name: table.cells(one, rule, spec.direction, scenario) for name, one in spec.inputs.items()}


def _bounds(decision: Decision, table: Table, combiners: Combiners) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The least and the greatest that each component could be."""
    least, most = {}, {}
    for spec in decision.specs:
        cells = (_cells(spec, table, decision.rule, "low"), _cells(spec, table, decision.rule, "high"))
        least[spec.name], most[spec.name] = combiners[spec.combiner].bounds(*cells, spec.params)
    return least, most


def _coverage(decision: Decision, table: Table) -> Floats:
    """Judged share of the absolute weight, [R]: by component, by the masses of its inputs, by the weights of cells."""
    shares = {spec.name: _judged_share(spec, table) for spec in decision.specs}
    return covered(shares, {spec.name: spec.weight for spec in decision.specs})


def _judged_share(spec: Spec, table: Table) -> tuple[Floats, Bools]:
    masses, shares = [], []
    for one in spec.inputs.values():
        judged, asked = table.judged(one)
        masses.append(np.where(asked > 0, one.mass, 0.0))
        shares.append(judged / np.where(asked > 0, asked, 1.0))
    mass = np.stack(masses, axis=1)
    total = np.asarray(aggregation.total(mass))
    share = aggregation.total(mass * np.stack(shares, axis=1)) / np.where(total > 0, total, 1.0)
    return share, np.greater(total, 0.0)


def _lost(decision: Decision, table: Table) -> Bools:
    """Where the rule itself fails the reward, [R].

    `conservative`: at a penalty that was not judged for no fault of the response. `strict`: at any failure too, also
    of what does not count or was dropped for the group.
    """
    lost = np.zeros(len(table.responses), dtype=np.bool_)
    for spec in decision.specs if decision.rule == "strict" else decision.counting:
        for one in spec.inputs.values():
            outcome, weights = table.outcomes(one)
            lost |= _fatal(decision.rule, outcome, weights * spec.direction < 0).any(axis=1)
    return lost


def _fatal(rule: str, outcome: NDArray[np.int8], penalty: Bools) -> Bools:
    if rule == "gear":
        return np.zeros_like(outcome, dtype=np.bool_)
    fatal: Bools = penalty & np.isin(outcome, [FAILED_BY_INFRASTRUCTURE, NO_MODEL])
    return fatal | np.isin(outcome, [FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE]) if rule == "strict" else fatal


def _reward(decision: Decision, judged: _Judged, row: int, verdicts: Sequence[Verdict]) -> Reward:
    coverage = float(judged.coverage[row])
    failed = bool(judged.lost[row]) or _below(coverage, decision.min_coverage) or coverage == 0.0
    alone = any(v.gated_by == GROUP_OF_ONE for v in verdicts)
    degraded = _below(coverage, 1.0) or judged.open(row) or alone or bool(judged.dropped)
    some = coverage > 0.0
    return Reward(
        value=None if failed else float(judged.fused.value[row]),
        status="failed" if failed else "degraded" if degraded else "ok",
        partial=float(judged.partial_fused.value[row]) if some else None,
        coverage=coverage,
        range=(float(judged.low[row]), float(judged.high[row])),
        components={name: _at(one, row) for name, one in judged.partial.items()},
        terms=tuple(_term(spec, judged, row) for spec in decision.specs),
        counts=_count(verdicts),
        parts={
            name: {part: float(value[row]) for part, value in one.parts.items()}
            for name, one in judged.components.items()
            if one.parts
        },
        adjustments=_adjustments(judged.fused, row),
        weights_fixed=decision.weights_fixed,
        notes=_notes(decision, judged, row, alone),
    )


def _below(coverage: float, asked: float) -> bool:
    """Whether less was judged than is asked for; four fifths of five weights of 0.3 are not less than 0.8."""
    return coverage < asked - ROUNDING


def _at(component: Component, row: int) -> float | None:
    return float(component.value[row]) if component.present[row] else None


def _term(spec: Spec, judged: _Judged, row: int) -> Term:
    value = _at(judged.components[spec.name], row)
    contribution = None if value is None else float(judged.fused.contributions[spec.name][row])
    return Term(name=spec.name, weight=spec.weight, value=value, contribution=contribution)


def _count(verdicts: Sequence[Verdict]) -> Counts:
    statuses = [v.status for v in verdicts]
    return Counts(
        judged=statuses.count("ok"),
        abstained=statuses.count("abstained"),
        failed=statuses.count("failed"),
        not_applicable=statuses.count("not_applicable"),
    )


def _adjustments(fused: Fused, row: int) -> tuple[Adjustment, ...]:
    changes = ((name, float(before[row]), float(after[row])) for name, before, after in fused.changes)
    return tuple(Adjustment(name=name, before=b, after=a) for name, b, a in changes if b != a)


def _notes(decision: Decision, judged: _Judged, row: int, alone: bool) -> tuple[str, ...]:
    """Why a reward is degraded or failed."""
    coverage = float(judged.coverage[row])
    notes = []
    if judged.lost[row]:
        rule = "a failure" if decision.rule == "strict" else "a penalty that could not be judged, by no fault of it"
        notes.append(f"under the {decision.rule} rule {rule} fails the reward")
    if coverage == 0.0:
        notes.append("nothing that counts was judged")
    elif _below(coverage, decision.min_coverage):
        notes.append(f"{coverage:.3g} of the weight was judged, and {decision.min_coverage:g} is asked for")
    elif _below(coverage, 1.0):
        notes.append(f"{coverage:.3g} of the weight was judged; the rest counts as the {decision.rule} rule says")
    elif judged.open(row):
        notes.append("what a gate looks at was not judged, and could still change the reward")
    if alone:
        notes.append("the group has one response, so nothing could be compared")
    notes += [
        f"{name} was dropped for the whole group, because it was not judged for all" for name in sorted(judged.dropped)
    ]
    return tuple(notes)
