"""The scores of one response's criteria, as a run holds them: p from the verdicts, q from the reward."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import InputError
from jurygraph.graphs.recipe import RUBRIC
from jurygraph.graphs.table import OK, STOPPED, judged, unjudged
from jurygraph.runs.run import Run
from jurygraph.runs.tables import table_of
from jurygraph.schema import Decision, Spec, Task, Trace
from jurygraph.studies.pictures.picture import Score, Scores


def scores_of(run: Run, response: str) -> tuple[Task, Scores]:
    """The task of a response, with its rubric as it was planned, and the scores under the run's own aggregation.

    p is what the verdicts say, filled by the run's rule where there is none; q is what the reward was made of. Raises
    `InputError` where there is no such response, its task was erased or has no rubric, or the run judged none.
    """
    trace = run.find(response)
    task = run.planned_task(trace.task_id)
    if task is None:
        raise InputError(f"{run.folder}: the texts of task {trace.task_id!r} were erased, its rubric with them")
    decision = run.decision_of(task.id)
    spec = _rubric(run, task, decision)
    criteria = _criteria(run, trace, decision, spec)
    failed = trace.reward.status == "failed"
    return task, Scores(response, spec.combiner, run.config.rubric.kappa, criteria, _retention(spec), failed)


def _rubric(run: Run, task: Task, decision: Decision) -> Spec:
    """The component that was made of the task's criteria."""
    if task.rubric is None:
        raise InputError(f"{run.folder}: task {task.id!r} has no rubric to draw; name a response to one that has")
    wanted = {criterion.id for criterion in task.rubric.criteria}
    for spec in decision.specs:
        if spec.name == RUBRIC and set(spec.inputs) == wanted:
            return spec
    wrong = f"made no component {RUBRIC!r} of the criteria of task {task.id!r}, so there are no scores to draw"
    raise InputError(f"{run.folder}: {wrong}; draw the graph alone with --task")


def _criteria(run: Run, trace: Trace, decision: Decision, spec: Spec) -> dict[str, Score]:
    group = [one.trace for one in run.group_of(trace.task_id)]
    row = sorted(one.response_id for one in group).index(trace.response_id)
    table = table_of(run, trace.task_id, group)
    left = trace.reward.parts[spec.name]
    said_of = _reasons_by_question(trace)
    found = {}
    for name, stated in spec.inputs.items():
        cells = table.cells(stated, decision.rule, spec.direction, "counted")
        local, _ = cells.mean()
        outcome = table.outcomes(stated)[0][row]
        missing = _missing(outcome, bool(cells.live[row].any()))
        reasons = dict.fromkeys(reason for question in stated.questions for reason in said_of.get(question, ()))
        found[name] = Score(float(local[row]), left[name], missing, "; ".join(reasons), bool((outcome == OK).any()))
    return found


def _missing(outcome: NDArray[np.int8], counts: bool) -> str:
    """What of a criterion's judgement is not there, by what became of each question and sample."""
    if not counts:
        return "does not count"
    if (outcome == STOPPED).any():
        return "stopped by a gate"
    if unjudged(outcome).any():
        return "partly judged" if judged(outcome).any() else "unjudged"
    return "" if judged(outcome).any() else "not asked"


def _reasons_by_question(trace: Trace) -> Mapping[str, list[str]]:
    """Return what the judges said of each question, in the order of the trace."""
    found: dict[str, list[str]] = {}
    for verdict in trace.verdicts:
        if verdict.reason:
            found.setdefault(verdict.question, []).append(verdict.reason)
    return found


def _retention(spec: Spec) -> Mapping[tuple[str, str], float]:
    """λ of every edge, by its ends; the decision froze them by their places among the names."""
    names, frozen = list(spec.inputs), cast(Mapping[str, list[Any]], spec.params)
    ends = zip(frozen["parents"], frozen["children"], frozen["retention"], strict=True)
    return {(names[parent], names[child]): retention for parent, child, retention in ends}
