"""Whether a plan that was made before fits what is here now: its task, and those who are to answer it."""

from collections.abc import Mapping
from typing import Any

from jurygraph.errors import InputError
from jurygraph.graphs.state import Roster
from jurygraph.schema import Plan, Task, digest_of


def refuse_other_plan(plan: Plan, task: Task, roster: Roster) -> None:
    """A plan serves the task it was made from, and those it was made with: of the same names and versions.

    Raises InputError for any other plan, and what an evaluator's `check` raises of its questions.
    """
    if plan.task_id != task.id:
        raise InputError(f"the plan is for task {plan.task_id!r}, not for {task.id!r}")
    if plan.task_digest != task.content_digest:
        raise InputError(f"the plan was made from another version of task {task.id!r}: prepare it again")
    _check_basis(plan, roster)
    wanted: list[tuple[str, str, str, Mapping[str, Any]]] = []
    wanted += [("evaluator", q.evaluator, q.version, roster.evaluators) for q in plan.survey.questions]
    wanted += [("deriver", d.deriver, d.version, roster.derivers) for d in plan.survey.derivations]
    wanted += [("combiner", s.combiner, s.version, roster.combiners) for s in plan.decision.specs]
    for role, name, version, known in wanted:
        found = known[name].version if name in known else "none"
        if found != version:
            made = f"the plan was made with {role} {name!r} of version {version!r}"
            raise InputError(f"{made}; this jury has {found}: prepare it again")


def _check_basis(plan: Plan, roster: Roster) -> None:
    """What derivers and evaluators rest on beside the task, such as files, is as it was when the plan was made."""
    for one in plan.survey.derivations:
        if one.deriver in roster.derivers:
            now = roster.derivers[one.deriver].params_for(plan.survey.views[one.view])
            if digest_of(dict(now)) != digest_of(one.params):
                changed = f"what deriver {one.deriver!r} rests on (its params, or files) is not what it was"
                raise InputError(
                    f"the plan for task {plan.task_id!r} was made with other facts: {changed}; put that back as it "
                    "was, or prepare the task again (a run: score into another --out, with --branch)"
                )
    for question in plan.survey.questions:
        if question.evaluator in roster.evaluators:
            roster.evaluators[question.evaluator].check(question)
