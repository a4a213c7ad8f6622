"""Check that an existing plan matches the current task, evaluators, derivers and combiners."""

from collections.abc import Mapping
from typing import Any

from jurygraph.errors import InputError
from jurygraph.graphs.state import RunContext
from jurygraph.schema import Plan, Task, digest_of


def check_plan_compatibility(plan: Plan, task: Task, context: RunContext) -> None:
    """Refuse a plan that was made from another task, or with components of other names or versions.

    Raises InputError for such a plan, and whatever an evaluator's `check` raises for one of its questions.
    """
    if plan.task_id != task.id:
        raise InputError(f"the plan is for task {plan.task_id!r}, not for {task.id!r}")
    if plan.task_digest != task.content_digest:
        raise InputError(f"the plan was made from another version of task {task.id!r}: prepare it again")
    _check_basis(plan, context)
    required: list[tuple[str, str, str, Mapping[str, Any]]] = []
    required += [("evaluator", q.evaluator, q.version, context.evaluators) for q in plan.survey.questions]
    required += [("deriver", d.deriver, d.version, context.derivers) for d in plan.survey.derivations]
    required += [("combiner", s.combiner, s.version, context.combiners) for s in plan.decision.specs]
    for role, name, version, available in required:
        version_here = available[name].version if name in available else "none"
        if version_here != version:
            problem = f"the plan was made with {role} {name!r} of version {version!r}"
            raise InputError(f"{problem}; this jury has {version_here}: prepare it again")


def _check_basis(plan: Plan, context: RunContext) -> None:
    """Check that other inputs of derivers and evaluators, such as files, have not changed since the plan was made."""
    for derivation in plan.survey.derivations:
        if derivation.deriver in context.derivers:
            params = context.derivers[derivation.deriver].params_for(plan.survey.views[derivation.view])
            if digest_of(dict(params)) != digest_of(derivation.params):
                changed = f"the input of deriver {derivation.deriver!r} (its params, or files) has changed"
                raise InputError(
                    f"the plan for task {plan.task_id!r} was made with other facts: {changed}; put that back as it "
                    "was, or prepare the task again (a run: score into another --out, with --branch)"
                )
    for question in plan.survey.questions:
        if question.evaluator in context.evaluators:
            context.evaluators[question.evaluator].check(question)
