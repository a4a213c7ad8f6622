"""The scores of a response's criteria from a stored run: p from the verdicts, q from the reward."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jurygraph.decision.recipe import RUBRIC
from jurygraph.decision.table import OK, STOPPED, is_judged, is_unjudged
from jurygraph.errors import InputError
from jurygraph.runs.group_table import group_table
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentSpec, Decision, Task, Trace
from jurygraph.studies.pictures.picture import Score, Scores


def scores_of(run: Run, response: str) -> tuple[Task, Scores]:
    """Return the task of a response, with its planned rubric, and the scores under the run's own aggregation.

    p is the score from the verdicts, filled by the run's rule if there is none; q is the value from which the reward
    was computed. Raises `InputError` if there is no such response, its task was erased or has no rubric, or the run
    computed no component from the rubric.
    """
    trace = run.find_trace(response)
    task = run.planned_task(trace.task_id)
    if task is None:
        raise InputError(f"{run.folder}: the texts of task {trace.task_id!r} were erased, its rubric with them")
    if task.rubric is None:
        raise InputError(f"{run.folder}: task {task.id!r} has no rubric to draw; name a response to one that has")
    decision, names = run.decision_of(task.id), {criterion.id for criterion in task.rubric.criteria}
    spec = next((one for one in decision.specs if one.name == RUBRIC and set(one.inputs) == names), None)
    if spec is None:
        problem = f"made no component {RUBRIC!r} of the criteria of task {task.id!r}, so there are no scores to draw"
        raise InputError(f"{run.folder}: {problem}; draw the graph alone with --task")
    return task, Scores(
        response=response,
        aggregation=spec.combiner,
        kappa=run.config.rubric.kappa,
        criteria=_criterion_scores(run, trace, decision, spec),
        retention=_retention(spec),
        failed=trace.reward.status == "failed",
    )


def _criterion_scores(run: Run, trace: Trace, decision: Decision, spec: ComponentSpec) -> dict[str, Score]:
    group = [member.trace for member in run.group_of(trace.task_id)]
    row = sorted(member.response_id for member in group).index(trace.response_id)
    table = group_table(run, trace.task_id, group)
    scores = {}
    for name, entry in spec.inputs.items():
        matrix = table.score_matrix(entry, decision.rule, spec.direction, "counted")
        p, _ = matrix.mean()
        outcome = table.outcomes(entry)[0][row]
        reasons = [one.reason for question in entry.questions for one in trace.verdicts if one.question == question]
        scores[name] = Score(
            judged_score=float(p[row]),
            remaining=trace.reward.parts[spec.name][name],
            missing=_describe_missing(outcome, bool(matrix.applicable[row].any())),
            reason="; ".join(dict.fromkeys(filter(None, reasons))),
            judged=bool((outcome == OK).any()),
        )
    return scores


def _describe_missing(outcome: NDArray[np.int8], is_counted: bool) -> str:
    """Return the missing part of a criterion's judgement, from the outcome of each question and sample."""
    if not is_counted:
        return "does not count"
    if (outcome == STOPPED).any():
        return "stopped by a gate"
    if is_unjudged(outcome).any():
        return "partly judged" if is_judged(outcome).any() else "unjudged"
    return "" if is_judged(outcome).any() else "not asked"


def _retention(spec: ComponentSpec) -> Mapping[tuple[str, str], float]:
    """Return λ of every edge, by its ends; the decision stores edges by the places of the criteria."""
    names, params = list(spec.inputs), cast(Mapping[str, list[Any]], spec.params)
    edges = zip(params["parents"], params["children"], params["retention"], strict=True)
    return {(names[parent], names[child]): retention for parent, child, retention in edges}
