"""A group of responses to score, and the checks that it is complete and that its plan can be used."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError

from jurygraph.errors import InputError
from jurygraph.graphs.routing import NO_KNOWN_RESULTS, KnownResults
from jurygraph.graphs.state import RunContext
from jurygraph.schema import Plan, Response, Task, digest_of


class Group(NamedTuple):
    """A task and all its responses, which are scored together.

    Without a plan, one is made. Verdicts and material in `known_results` are reused.
    """

    task: Task
    responses: Sequence[Response]
    plan: Plan | None = None
    known_results: KnownResults = NO_KNOWN_RESULTS


def check_group(group: Group, context: RunContext) -> None:
    """Refuse a group without responses or with repeated ids, and a plan that does not fit.

    Raises InputError, and whatever an evaluator's `check` raises for a question of the plan.
    """
    _check_responses(group.task, group.responses)
    if group.plan is not None:
        _check_plan(group.plan, group.task, context)
        _check_basis(group.plan, context)


def _check_responses(task: Task, responses: Sequence[Response]) -> None:
    if not responses:
        raise InputError(f"task {task.id!r} has no responses: a group of none cannot be scored")
    ids: set[str] = set()
    for response in responses:
        if response.id in ids:
            raise InputError(f"task {task.id!r} has two responses with the id {response.id!r}")
        ids.add(response.id)
        try:
            response.model_dump_json()
        except PydanticSerializationError as error:
            raise InputError(f"response {response.id!r} cannot be written as JSON: {error}") from error


def _check_plan(plan: Plan, task: Task, context: RunContext) -> None:
    """Refuse a plan that was made from another task, or with components of other names or versions."""
    if plan.task_id != task.id:
        raise InputError(f"the plan is for task {plan.task_id!r}, not for {task.id!r}")
    if plan.task_digest != task.content_digest:
        raise InputError(f"the plan was made from another version of task {task.id!r}: prepare it again")
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
