"""The prepare graph, run once for a batch of tasks: make a frozen plan from each task alone.

An error is the result of its task, which the later nodes leave alone; the other tasks go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, cast

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from jurygraph.agents.checks.tensions import find_tensions
from jurygraph.agents.profile import read_profiles
from jurygraph.decision.recipe import build_decision, decision_key
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import ConfigError, ModelError, PlanError, name_part
from jurygraph.graphs import annotate_graph
from jurygraph.graphs.planning import (
    ask_evaluators,
    build_survey,
    configure_questions,
    list_derivations,
    outline_key,
    view_task,
)
from jurygraph.graphs.state import AnnotateInput, BatchContext, PrepareState, RunContext, TaskPlanning
from jurygraph.graphs.time_limits import call_within_limit
from jurygraph.messages import shorten
from jurygraph.schema import Audience, Decision, Plan, Survey, Task, TaskDefaults
from jurygraph.schema.plan import with_planning_results
from jurygraph.schema.task import ProfilesLine, is_text_only, sort_by_id, with_profiles

_MAX_SHOWN = 200
Update = dict[str, Any]
Node = Callable[[PrepareState, Runtime[BatchContext]], Awaitable[PrepareState]]


async def plan_tasks(
    tasks: Sequence[tuple[Task, ProfilesLine | None]], context: BatchContext
) -> list[Plan | Exception]:
    """Return the plan of each task of a batch, or its error. Each has its profiles of a PROFILES file, if any.

    Parts that a task lacks are those of the config's `task_defaults`.
    """
    defaults = context.groups[0].config.task_defaults
    start = [
        TaskPlanning(task=task, profiles_line=line, digest=task.content_digest)
        for task, line in ((defaults.complete(task), line) for task, line in tasks)
    ]
    output = await build().ainvoke(PrepareState(tasks=start), context=context)
    return [
        planning.get("plan") or _locate_error(planning["error"], began["task"], defaults)
        for planning, began in zip(output["tasks"], start, strict=True)
    ]


def _locate_error(error: Exception, task: Task, defaults: TaskDefaults) -> Exception:
    """Return an error of planning, as a ConfigError with its key if the part is one from `task_defaults`."""
    if not isinstance(error, PlanError) or not error.part:
        return error
    if getattr(task, error.part[0]) is not getattr(defaults, error.part[0]):
        return error
    message = str(error).removeprefix(f"task {task.id!r}: ")
    if not message.startswith(f"{error.part[0]}."):  # else it begins with the field itself
        message = f"{defaults.key_of(error.part)}: {message}"
    located = ConfigError(f"task_defaults.{message}")
    located.__cause__ = error
    return located


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[PrepareState, BatchContext, PrepareState, PrepareState]:
    """Return the compiled graph: profiles → weigh → annotate → question → freeze."""
    graph = StateGraph(PrepareState, context_schema=BatchContext)
    graph.add_sequence(
        [
            ("profiles", _node_that_asks(_has_unread_profiles, _read_profiles)),
            ("weigh", _node(_weigh)),
            ("annotate", _node_that_asks(_lacks_graph, _annotate)),
            ("question", _node(_question)),
            ("freeze", _node(_freeze)),
        ]  # type: ignore[arg-type]
    )
    graph.add_edge(START, "profiles")
    return graph.compile(name="prepare")


def _node(take: Callable[[TaskPlanning, RunContext], Update]) -> Node:
    """Return a node that takes a step with every task."""

    async def node(state: PrepareState, runtime: Runtime[BatchContext]) -> PrepareState:
        return _with_all(take, state, runtime.context)

    return node


def _with_all(
    take: Callable[[TaskPlanning, RunContext], Update], state: PrepareState, context: BatchContext
) -> PrepareState:
    def try_with(planning: TaskPlanning, context: RunContext) -> TaskPlanning:
        if "error" in planning:
            return planning
        try:
            return _updated(planning, take(planning, context))
        except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this task's plan
            return _updated(planning, {"error": error})

    return {"tasks": [try_with(*each) for each in zip(state["tasks"], context.groups, strict=True)]}


def _node_that_asks(
    is_due: Callable[[TaskPlanning, RunContext], bool], ask: Callable[[TaskPlanning, RunContext], Awaitable[Update]]
) -> Node:
    """Return a node that may ask the model: about all tasks at once for which that `is_due`."""

    async def try_with(planning: TaskPlanning, context: RunContext) -> TaskPlanning:
        try:
            return _updated(planning, await ask(planning, context))
        except Exception as error:  # noqa: BLE001 - as above
            return _updated(planning, {"error": error})

    async def node(state: PrepareState, runtime: Runtime[BatchContext]) -> PrepareState:
        tasks = list(state["tasks"])
        contexts = runtime.context.groups
        due = [place for place, one in enumerate(tasks) if "error" not in one and is_due(one, contexts[place])]
        results = await asyncio.gather(*(try_with(tasks[place], contexts[place]) for place in due))
        for place, planning in zip(due, results, strict=True):
            tasks[place] = planning
        return {"tasks": tasks}

    return node


def _updated(planning: TaskPlanning, update: Update) -> TaskPlanning:
    return cast(TaskPlanning, {**planning, **update})


def _has_unread_profiles(planning: TaskPlanning, context: RunContext) -> bool:
    """Return whether profiles in text have to be read: else, or if nobody judges stakeholders, they change nothing."""
    has_text = planning["profiles_line"] is not None or any(map(is_text_only, planning["task"].stakeholders))
    return has_text and "stakeholder" in _audiences(context)


async def _read_profiles(planning: TaskPlanning, context: RunContext) -> Update:
    model = None if context.config.model == "none" else context.judge_client
    task = planning["task"]
    read = await read_profiles(task, planning["profiles_line"], model)
    return {"profiles": read, "task": with_profiles(task, read)}


def _weigh(planning: TaskPlanning, context: RunContext) -> Update:
    task = planning["task"]
    with name_part("stakeholders"):
        weights, difficulty = weigh_stakeholders(task, context.config.weights, _audiences(context), find_tensions)
    return {"weights": weights, "difficulty": difficulty}


def _lacks_graph(planning: TaskPlanning, context: RunContext) -> bool:
    """Return whether the annotator is needed: for a rubric without edges, if the config enables that and an
    evaluator judges criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    rubric = planning["task"].rubric
    if context.config.annotation is None or rubric is None or rubric.edges or rubric.annotation is not None:
        return False
    return any(
        evaluator.audience == "criterion" and (context.config.model != "none" or not evaluator.uses_model)
        for evaluator in context.evaluators.values()
    )


async def _annotate(planning: TaskPlanning, context: RunContext) -> Update:
    annotated = await annotate_graph.build().ainvoke(AnnotateInput(task=planning["task"]), context=context)
    return {"rubric": annotated["rubric"]}


def _question(planning: TaskPlanning, context: RunContext) -> Update:
    """List the questions, and decide how their answers count."""
    survey = _survey_of(planning, context)
    return {"survey": survey, "decision": _decision_of(planning, survey, context)}


def _survey_of(planning: TaskPlanning, context: RunContext) -> Survey:
    views = view_task(planning["task"], ["task", *_audiences(context)])
    derivations = list_derivations(context.derivers, next(view for view in views if view.audience == "task"))
    listed = ask_evaluators(context.evaluators, views)
    key = outline_key(views, derivations, listed)
    if (outline := context.outlines.get(key)) is not None:
        survey = outline.survey(views)
    else:
        uses = {use.known_as: use for use in context.config.evaluators}
        materials = [derivation.gives for derivation in derivations]
        questions = configure_questions(listed, context.evaluators, uses, materials)
        survey = build_survey(views, derivations, questions, context.config.safety.gates)
        context.outlines.keep(key, survey.outline)
    for question in survey.questions:
        evaluator = context.evaluators[question.evaluator]
        call_within_limit(evaluator, evaluator.check, question)
    return survey


def _decision_of(planning: TaskPlanning, survey: Survey, context: RunContext) -> Decision:
    """Return the decision. Raises ModelError for an incomplete graph, because missing edges would count as licensed."""
    rubric = planning.get("rubric")
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        missing = [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered]
        missing += [f"{name} {why}" for name, why in record.unassigned.items()]
        how = "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        problem = f"its rubric graph lacks {len(missing)} answers, such as: {shorten(missing[0], _MAX_SHOWN)}"
        raise ModelError(f"task {planning['task'].id!r}: {problem}; {how}")
    task = with_planning_results(planning["task"], rubric=rubric)
    weighed = planning["weights"], planning["difficulty"]
    key = decision_key(task, survey, *weighed)
    if (decision := context.decisions.get(key)) is None:
        records = context.evaluator_records
        decision = build_decision(task, survey, context.config, records, context.combiners, *weighed)
        context.decisions.keep(key, decision)
    return decision


def _freeze(planning: TaskPlanning, context: RunContext) -> Update:
    client = context.judge_client
    rubric = planning.get("rubric")
    if rubric is not None:  # the order of criteria in a file must not change the plan
        rubric = rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})
    plan = Plan(
        task_id=planning["task"].id,
        task_digest=planning["digest"],
        survey=planning["survey"],
        decision=planning["decision"],
        profiles=planning.get("profiles"),
        rubric=rubric,
        calls=() if client is None else tuple(client.calls[name] for name in sorted(client.calls)),
    )
    return {"plan": plan}


def _audiences(context: RunContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]
