"""The prepare graph, run once for a batch of tasks: make a frozen plan from each task alone."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

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
from jurygraph.safety.known_secrets import may_hold_secret, refuse_secrets_in_plan
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Audience, Decision, Plan, Survey, Task, TaskDefaults
from jurygraph.schema.plan import with_planning_results
from jurygraph.schema.profile import ProfilesLine, is_text_only, with_profiles
from jurygraph.schema.task import sort_by_id

_MAX_SHOWN = 200
Update = dict[str, Any]


def _read(planning: TaskPlanning, context: RunContext) -> Update:
    """Go to `profiles` only if an evaluator judges stakeholders: otherwise they change no question and no weight."""
    task = planning["task"]
    audiences = _audiences(context)
    has_unread_profiles = planning["profiles_line"] is not None or any(map(is_text_only, task.stakeholders))
    views = view_task(task, ["task", *audiences])
    step = "profiles" if has_unread_profiles and "stakeholder" in audiences else "weigh"
    return {"digest": task.content_digest, "profiles": None, "views": views, "rubric": None, "step": step}


async def _profiles(planning: TaskPlanning, context: RunContext) -> Update:
    model = None if context.config.model == "none" else context.judge_client
    read = await read_profiles(planning["task"], planning["profiles_line"], model)
    task = with_profiles(planning["task"], read)
    return {"profiles": read, "task": task, "views": view_task(task, ["task", *_audiences(context)]), "step": "weigh"}


def _weigh(planning: TaskPlanning, context: RunContext) -> Update:
    """Send a rubric without edges to the annotator, if the config enables that and an evaluator judges criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    task = planning["task"]
    with name_part("stakeholders"):
        weights, difficulty = weigh_stakeholders(task, context.config.weights, _audiences(context), find_tensions)
    has_no_graph = task.rubric is not None and not task.rubric.edges and task.rubric.annotation is None
    judges_criteria = any(
        evaluator.audience == "criterion" and (context.config.model != "none" or not evaluator.uses_model)
        for evaluator in context.evaluators.values()
    )
    should_annotate = context.config.annotation is not None and has_no_graph and judges_criteria
    return {"weights": weights, "difficulty": difficulty, "step": "annotate" if should_annotate else "question"}


async def _annotate(planning: TaskPlanning, context: RunContext) -> Update:
    annotated = await annotate_graph.build().ainvoke(AnnotateInput(task=planning["task"]), context=context)
    return {"rubric": annotated["rubric"], "step": "question"}


def _question(planning: TaskPlanning, context: RunContext) -> Update:
    """List the questions, and decide how their answers count."""
    survey = _survey_of(planning, context)
    return {"survey": survey, "decision": _decision_of(planning, survey, context), "step": "freeze"}


def _survey_of(planning: TaskPlanning, context: RunContext) -> Survey:
    views = planning["views"]
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
    rubric = planning["rubric"]
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


def _freeze(redactor: Redactor, planning: TaskPlanning, context: RunContext) -> Update:
    client = context.judge_client
    rubric = planning["rubric"]
    survey = planning["survey"]
    decision = planning["decision"]
    parts = survey.outline.digest, decision.digest, redactor
    if parts not in context.secret_free:
        if may_hold_secret(survey.outline, decision, redactor):
            refuse_secrets_in_plan(planning["task"], survey, decision, redactor)
        else:
            context.secret_free.keep(parts, True)
    if rubric is not None:  # the order of criteria in a file must not change the plan
        rubric = rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})
    plan = Plan(
        task_id=planning["task"].id,
        task_digest=planning["digest"],
        survey=survey,
        decision=decision,
        profiles=planning["profiles"],
        rubric=rubric,
        calls=() if client is None else tuple(client.calls[name] for name in sorted(client.calls)),
    )
    return {"plan": plan, "step": END}


def _audiences(context: RunContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]


Step = Callable[[TaskPlanning, RunContext], Update | Awaitable[Update]]
_STEPS: Mapping[str, Callable[[BatchContext], Step]] = {
    "read": lambda _: _read,
    "profiles": lambda _: _profiles,
    "weigh": lambda _: _weigh,
    "annotate": lambda _: _annotate,
    "question": lambda _: _question,
    # the environment, which user code may have changed, is read once for all tasks
    "freeze": lambda batch: partial(_freeze, batch.redactor),
}
"""In the order in which a task takes them; each names the next. `profiles` and `annotate` are left out where they are
not needed."""
_AFTER = {
    "read": ("profiles", "weigh"),
    "profiles": ("weigh",),
    "weigh": ("annotate", "question"),
    "annotate": ("question",),
    "question": ("freeze",),
    "freeze": (END,),
}
"""The nodes that may follow a node; of two, the first if any task of the batch needs it."""


def locate_error(error: Exception, task: Task, defaults: TaskDefaults) -> Exception:
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


def initial_state(tasks: Iterable[tuple[Task, ProfilesLine | None]]) -> PrepareState:
    """Return the state from which a batch of tasks is planned, each with its profiles of a PROFILES file, if any."""
    return PrepareState(tasks=[TaskPlanning(task=task, profiles_line=line, step="read") for task, line in tasks])


async def _advance(step: str, state: PrepareState, context: BatchContext) -> PrepareState:
    """Take a step with all tasks of which it is the next. An error is the result of its task; the others go on."""
    tasks = list(state["tasks"])
    places = [place for place, planning in enumerate(tasks) if planning["step"] == step]
    take = _STEPS[step](context)
    updates = {place: _start(take, tasks[place], context.groups[place]) for place in places}
    awaited = {place: _finish(update) for place, update in updates.items() if isinstance(update, Awaitable)}
    updates.update(zip(awaited, await asyncio.gather(*awaited.values()), strict=True))
    for place, update in updates.items():
        tasks[place] = cast(TaskPlanning, {**tasks[place], **cast(Update, update)})
    return {"tasks": tasks}


def _start(take: Step, planning: TaskPlanning, context: RunContext) -> Update | Awaitable[Update]:
    try:
        return take(planning, context)
    except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this task's plan
        return {"error": error, "step": END}


async def _finish(update: Awaitable[Update]) -> Update:
    try:
        return await update
    except Exception as error:  # noqa: BLE001 - as above
        return {"error": error, "step": END}


async def prepare_directly(start: PrepareState, context: BatchContext) -> PrepareState:
    """Return the same as the compiled graph, for dry runs: the bookkeeping of the graph engine takes most of the
    time of planning a single task."""
    state = start
    for step in _STEPS:
        state = await _advance(step, state, context)
    return state


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[PrepareState, BatchContext, PrepareState, PrepareState]:
    """Return the compiled graph: read (→ profiles) → weigh (→ annotate) → question → freeze."""
    graph = StateGraph(PrepareState, context_schema=BatchContext)
    graph.add_edge(START, "read")
    for step, after in _AFTER.items():
        has_one = len(after) == 1
        graph.add_node(step, _node(step, after), destinations=None if has_one else after)  # type: ignore[arg-type]
        if has_one:
            graph.add_edge(step, after[0])
    return graph.compile(name="prepare")


def _node(
    step: str, after: Sequence[str]
) -> Callable[[PrepareState, Runtime[BatchContext]], Awaitable[PrepareState | Command[str]]]:
    async def node(state: PrepareState, runtime: Runtime[BatchContext]) -> PrepareState | Command[str]:
        state = await _advance(step, state, runtime.context)
        if len(after) == 1:
            return state
        waiting = {planning["step"] for planning in state["tasks"]}
        return Command(goto=after[0] if after[0] in waiting else after[1], update=state)

    return node
