"""Rubric data of a run: the graph of each task, and how far each response meets each criterion.

Scores, decisions and weights are computed from the stored verdicts by the code that computed the rewards.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from jurygraph import aggregation
from jurygraph.aggregation import gear
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import (
    Combiner,
    Flat,
    Gear,
    HardLocal,
    HardTransitive,
    input_means,
    is_inferred_exactly,
    judged_criteria,
    marginals,
    signed_weights,
)
from jurygraph.decision.recipe import RUBRIC
from jurygraph.errors import GraphCycleError, InputError
from jurygraph.runs.integrity.recomputation import group_table
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import ComponentSpec, Edge, Rubric
from jurygraph.schema.config import ExactInference

_HARD: Mapping[str, Combiner] = {one.name: one for one in (HardLocal(), HardTransitive())}
_RULES = {Flat.name, Gear.name, *_HARD}


@dataclass(frozen=True, eq=False, slots=True)
class RubricSheet:
    """One task: R responses, C criteria, E edges.

    Attributes:
        responses: ids of the responses that have a reward, sorted [R].
        criteria: ids, sorted [C].
        edges: the rubric's edges in the order of their ends [E].
        parents, children: indices of the ends of each edge [E].
        graph: the same graph, compiled.
        base: λ of each edge at κ = 1 [E].
        p: local event scores [R, C]; missing ones are filled by the run's failure rule.
        is_judged: True where a score was judged [R, C].
        exact: the run's setting of exact inference, which decides by the size of a graph.
        weights, applied_weights: signed weights [C], and per response [R, C]: 0 where a criterion does not apply.
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
    exact: ExactInference
    weights: Floats
    applied_weights: Floats
    hard: Mapping[str, Floats]

    def retention(self, kappa: float) -> list[float]:
        """Return λ = base^κ of each edge, [E] (GEAR Eq. 17, our reading)."""
        return [float(base**kappa) for base in self.base]

    def gated_scores(self, retention: ArrayLike, graph: gear.Graph | None = None) -> Floats:
        """Return q [R, C] over a graph of these criteria, as the combiner `gear` computes it."""
        graph = graph or self.graph
        is_exact = is_inferred_exactly(graph, self.exact)
        return marginals(graph, self.p, retention, self.is_judged, self.weights > 0, is_exact)

    def judged_edges(self) -> Bools:
        """Return a mask of the edges whose ends were both judged, [R, E]."""
        return self.is_judged[:, self.parents] & self.is_judged[:, self.children]

    def shares(self) -> Floats:
        """Return |w| / Σ_{w>0} w over the criteria that apply, [R, C]."""
        return np.asarray(np.abs(self.applied_weights) / self._positive_weight()[:, None])

    def rewards(self, q: Floats) -> Floats:
        """Return Eq. 14 of GEAR over the criteria that apply, [R]: the rubric's component under q."""
        return np.asarray(aggregation.total(self.applied_weights * q) / self._positive_weight())

    def _positive_weight(self) -> Floats:
        return np.asarray(aggregation.total(np.maximum(self.applied_weights, 0.0)))


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
    """Return the sheets of a run, re-scored ones by their own decisions; `report` is called with 1 for each task.

    The edges are the task's own, also under flat aggregation; κ and inference are the run's. Left out and counted are
    tasks whose texts were erased, because their edges are no longer known; tasks without a rubric, or with one whose
    edges form a cycle or are not those that counted; responses whose reward failed; and those to which no criterion of
    positive weight applies.

    Raises `InputError` if no rubric of the run has an edge, or no response to such a task has a reward.
    """
    sheets = Sheets(kappa=run.config.rubric.kappa, tasks=run.tasks_scored)
    for group in run.group_records():
        scored = sorted(run.group(group), key=lambda one: one.trace.response_id)
        sheets.responses += len(scored)
        found = _find_rubric(run, group.key)
        if isinstance(found, str):
            sheets.left_out[found] += 1
        else:
            _add_sheet(sheets, run, group.key, scored, *found)
        report(1)
    sheets.sheets.sort(key=lambda sheet: sheet.task)  # sums are added in this order, whatever the file's
    if not any(sheet.edges for sheet in sheets.sheets):
        reasons = "; ".join(f"{reason}: {count}" for reason, count in sheets.left_out.items())
        problem = f"none of its {sheets.responses} responses has a reward from a rubric with edges"
        advice = "score tasks whose `rubric` has `edges`, such as `jurygraph annotate` finds"
        reasons = f" ({reasons})" if reasons else ""
        raise InputError(f"{run.folder}: {problem}{reasons}, so there is no credit to follow; {advice}")
    return sheets


def _find_rubric(run: Run, task_id: str) -> tuple[ComponentSpec, Rubric] | str:
    """Return the rubric's component and the rubric, or the reason why the task is left out."""
    task = run.planned_task(task_id)
    if task is None:
        return "tasks that were erased"
    specs = run.decision_of(task_id).specs
    spec = next((one for one in specs if one.name == RUBRIC and one.combiner in _RULES), None)
    if spec is None or task.rubric is None or set(spec.inputs) != {one.id for one in task.rubric.criteria}:
        return "tasks without a rubric that counts by its criteria"
    try:
        settings = run.config.rubric.model_dump(include={"kappa", "exact"})
        params = Gear().freeze(spec.inputs, {"edges": task.rubric.edges, **settings})
    except GraphCycleError:  # possible under `flat`, which ignores edges
        return "tasks whose edges form a cycle"
    if spec.combiner != Flat.name and any(value != params[name] for name, value in spec.params.items()):
        return "tasks of which the config states other edges, κ or inference than their rubric and the run"
    return spec, task.rubric


def _add_sheet(
    sheets: Sheets, run: Run, task_id: str, scored: list[ScoredResponse], spec: ComponentSpec, rubric: Rubric
) -> None:
    """Add the sheet of a task, with the responses that have a reward from its rubric."""
    table = group_table(run, task_id, [one.trace for one in scored])
    rule = run.decision_of(task_id).rule
    matrices = {name: table.score_matrix(one, rule, spec.direction, "counted") for name, one in spec.inputs.items()}
    p, applies = input_means(matrices)
    weights = signed_weights(matrices)
    names = tuple(matrices)
    has_reward = np.array([one.trace.reward.value is not None for one in scored])
    has_gain = (applies & (weights > 0.0)).any(axis=1)
    for reason, mask in (
        ("responses whose reward failed", ~has_reward),
        ("responses to which no criterion of positive weight applies", has_reward & ~has_gain),
    ):
        if mask.any():
            sheets.left_out[reason] += int(mask.sum())
    kept = np.flatnonzero(has_reward & has_gain)
    if not len(kept):
        return
    params = Gear().freeze(spec.inputs, {"edges": rubric.edges})
    sheet = RubricSheet(
        task=task_id,
        responses=tuple(scored[row].trace.response_id for row in kept),
        criteria=names,
        edges=tuple(sorted(rubric.edges, key=lambda edge: (edge.parent, edge.child))),  # as `freeze` sorts them
        parents=tuple(params["parents"]),
        children=tuple(params["children"]),
        graph=gear.compile(len(names), params["parents"], params["children"]),
        base=tuple(params["retention"]),
        p=p[kept],
        is_judged=judged_criteria(matrices)[kept],
        exact=run.config.rubric.exact,
        weights=weights,
        applied_weights=np.where(applies, weights, 0.0)[kept],
        hard={
            name: np.stack(list(one.combine(matrices, params).parts.values()), axis=1)[kept]
            for name, one in _HARD.items()
        },
    )
    sheets.sheets.append(sheet)
