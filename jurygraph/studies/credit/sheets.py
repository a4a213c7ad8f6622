"""Rubric data of a run: the graph of each task, and how far each response meets each criterion.

Scores, decisions and weights are computed from the stored verdicts by the code that computed the rewards.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.aggregation import gear
from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.decision.combiner import Combiner, ScoreMatrix
from jurygraph.decision.combiners import (
    Flat,
    Gear,
    HardLocal,
    HardTransitive,
    input_means,
    judged_criteria,
    marginals,
    signed_weights,
)
from jurygraph.decision.recipe import RUBRIC
from jurygraph.errors import GraphCycleError, InputError
from jurygraph.runs.integrity.recomputation import group_table
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import ComponentSpec, Decision, Edge, Rubric, Task

_HARD: Mapping[str, Combiner] = {one.name: one for one in (HardLocal(), HardTransitive())}
_RULES = {Flat.name, Gear.name, *_HARD}


@dataclass(frozen=True, eq=False, slots=True)
class RubricSheet:
    """One task: R responses, C criteria, E edges.

    Attributes:
        task: id of the task.
        responses: ids of the responses that have a reward, sorted [R].
        criteria: ids, sorted [C].
        edges: the rubric's edges in the order of their ends [E].
        parents: index of the parent of each edge [E].
        children: index of the child of each edge [E].
        graph: the same graph, compiled.
        base: λ of each edge at κ = 1 [E].
        p: local event scores [R, C]; missing ones are filled by the run's failure rule.
        decided: True where a score was judged [R, C].
        weights: signed weights [C].
        size: the weights per response [R, C], 0 where a criterion does not apply to a response.
        hard: scores under hard gating [R, C], by the name of the rule.
    """

    task: str
    responses: tuple[str, ...]
    criteria: tuple[str, ...]
    edges: tuple[Edge, ...]
    parents: tuple[int, ...]
    children: tuple[int, ...]
    graph: gear.Graph
    base: tuple[float, ...]
    p: Floats
    is_judged: Bools
    weights: Floats
    applied_weights: Floats
    hard: Mapping[str, Floats]

    def retention(self, kappa: float) -> list[float]:
        """Return λ = base^κ of each edge, [E] (GEAR Eq. 17, our reading)."""
        return [float(base**kappa) for base in self.base]

    def gated_scores(self, graph: gear.Graph, retention: list[float]) -> Floats:
        """Return q [R, C] over a graph of these criteria, as the combiner `gear` computes it."""
        return marginals(graph, self.p, retention, self.is_judged, self.weights > 0)

    def positive_weight(self) -> Floats:
        """Return Σ_{w>0} w over the criteria that apply, [R]; above 0."""
        return np.asarray(aggregation.total(np.maximum(self.applied_weights, 0.0)))

    def rewards(self, q: Floats) -> Floats:
        """Return Eq. 14 of GEAR over the criteria that apply, [R]: the rubric's component under q."""
        return np.asarray(aggregation.total(self.applied_weights * q) / self.positive_weight())


@dataclass
class Sheets:
    """The sheets of a run, and what was left out of them.

    `kappa` is the run's; `left_out` counts tasks and responses by reason.
    """

    kappa: float
    tasks: int
    responses: int = 0
    sheets: list[RubricSheet] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read_sheets(run: Run, report: Callable[[int], None]) -> Sheets:
    """Return the sheets of a run; those of a re-scored run follow its own decisions. `report` is called with 1 for each
    task.

    The edges are the task's own, also under flat aggregation, and κ is the run's. Left out and counted are tasks whose
    texts were erased, because their edges are no longer known; tasks without a rubric, or with one whose edges form a
    cycle or are not those that counted; responses whose reward failed; and those to which no criterion of positive
    weight applies.

    Raises `InputError` if no rubric of the run has an edge, or no response to such a task has a reward.
    """
    sheets = Sheets(kappa=run.config.rubric.kappa, tasks=run.tasks_scored)
    for group in run.source.ledger.records("group", up_to=run.last_base_record):
        _add_task(sheets, run, group.key, run.group(group))
        report(1)
    sheets.sheets.sort(key=lambda sheet: sheet.task)  # the bootstrap draws by index, whatever the file's order
    if not any(sheet.edges for sheet in sheets.sheets):
        raise InputError(f"{run.folder}: {_describe_nothing_found(sheets)}")
    return sheets


def _describe_nothing_found(sheets: Sheets) -> str:
    reasons = "; ".join(f"{reason}: {count}" for reason, count in sheets.left_out.items())
    problem = f"none of its {sheets.responses} responses has a reward from a rubric with edges"
    advice = "score tasks whose `rubric` has `edges`, such as `jurygraph annotate` finds"
    return f"{problem}{f' ({reasons})' if reasons else ''}, so there is no credit to follow; {advice}"


def _add_task(sheets: Sheets, run: Run, task_id: str, scored: list[ScoredResponse]) -> None:
    sheets.responses += len(scored)
    decision = run.decision_of(task_id)
    rubric_or_reason = _find_rubric(run.planned_task(task_id), decision, sheets.kappa)
    if isinstance(rubric_or_reason, str):
        sheets.left_out[rubric_or_reason] += 1
        return
    spec, rubric = rubric_or_reason
    has_reward = np.array([one.trace.reward.value is not None for one in sorted(scored, key=_response_id)])
    sheets.left_out["responses whose reward failed"] += int((~has_reward).sum())
    sheet = _make_sheet(task_id, rubric, spec, _criterion_scores(run, task_id, decision, spec, scored), scored)
    applies = np.greater(sheet.positive_weight(), 0.0)
    sheets.left_out["responses to which no criterion of positive weight applies"] += int((has_reward & ~applies).sum())
    kept = np.flatnonzero(has_reward & applies).tolist()
    if kept:
        sheets.sheets.append(_select_rows(sheet, kept))
    sheets.left_out = +sheets.left_out  # drops reasons with a count of 0


def _response_id(scored: ScoredResponse) -> str:
    return scored.trace.response_id


def _find_rubric(task: Task | None, decision: Decision, kappa: float) -> tuple[ComponentSpec, Rubric] | str:
    """Return the rubric's component and the rubric, or the reason why the task is left out."""
    if task is None:
        return "tasks that were erased"
    spec = next((one for one in decision.specs if one.name == RUBRIC and one.combiner in _RULES), None)
    if spec is None or task.rubric is None or set(spec.inputs) != {one.id for one in task.rubric.criteria}:
        return "tasks without a rubric that counts by its criteria"
    try:
        params = Gear().freeze(spec.inputs, _edge_params(task.rubric) | {"kappa": kappa})
    except GraphCycleError:  # possible under `flat`, which ignores edges
        return "tasks whose edges form a cycle"
    if spec.combiner != Flat.name and any(spec.params[name] != params[name] for name in params):
        return "tasks of which the config states other edges or another κ than their rubric and the run"
    return spec, task.rubric


def _edge_params(rubric: Rubric) -> dict[str, Any]:
    return {"edges": [edge.model_dump() for edge in rubric.edges]}


def _criterion_scores(
    run: Run, task_id: str, decision: Decision, spec: ComponentSpec, scored: list[ScoredResponse]
) -> dict[str, ScoreMatrix]:
    """Return for every criterion the scores that the combiner received when the reward was decided."""
    table = group_table(run, task_id, [one.trace for one in scored])
    return {
        name: table.score_matrix(one, decision.rule, spec.direction, "counted") for name, one in spec.inputs.items()
    }


def _make_sheet(
    task_id: str, rubric: Rubric, spec: ComponentSpec, matrices: Mapping[str, ScoreMatrix], scored: list[ScoredResponse]
) -> RubricSheet:
    params = Gear().freeze(spec.inputs, _edge_params(rubric))
    p, applies = input_means(matrices)
    weights, names = signed_weights(matrices), list(matrices)
    edge_by_ends = {(edge.parent, edge.child): edge for edge in rubric.edges}
    ends = list(zip(params["parents"], params["children"], strict=True))
    return RubricSheet(
        task=task_id,
        responses=tuple(sorted(map(_response_id, scored))),
        criteria=tuple(names),
        edges=tuple(edge_by_ends[names[parent], names[child]] for parent, child in ends),
        parents=tuple(params["parents"]),
        children=tuple(params["children"]),
        graph=gear.compile(len(matrices), params["parents"], params["children"]),
        base=tuple(params["retention"]),
        p=p,
        is_judged=judged_criteria(matrices),
        applied_weights=np.where(applies, weights, 0.0),
        weights=weights,
        hard={name: _stack_columns(one.combine(matrices, params).parts) for name, one in _HARD.items()},
    )


def _stack_columns(parts: Mapping[str, Floats]) -> Floats:
    return np.stack(list(parts.values()), axis=1)


def _select_rows(sheet: RubricSheet, rows: list[int]) -> RubricSheet:
    """Return the sheet restricted to some of its responses."""
    return replace(
        sheet,
        responses=tuple(sheet.responses[row] for row in rows),
        p=sheet.p[rows],
        is_judged=sheet.is_judged[rows],
        applied_weights=sheet.applied_weights[rows],
        hard={name: q[rows] for name, q in sheet.hard.items()},
    )
