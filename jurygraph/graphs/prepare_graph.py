"""The prepare graph, run once for a batch of tasks: make a frozen plan from each task alone.

An error is the result of its task, which the later nodes leave alone; the other tasks go on. A step that is due for no
task is passed over, since a step of LangGraph costs as much CPU as planning a task does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.agents.profile import read_profiles
from jurygraph.decision.recipe import build_decision, decision_key
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import ConfigError, ModelError, PlanError, add_part_to_plan_errors
from jurygraph.graphs import annotate_graph
from jurygraph.graphs.context import GraphContext, TaskContexts
from jurygraph.graphs.state import AnnotateInput, PrepareState, TaskPlanning
from jurygraph.graphs.survey import (
    build_survey,
    configure_questions,
    digests_of_tool_files,
    list_material_derivations,
    list_questions_of_evaluators,
    survey_cache_key,
    view_task,
)
from jurygraph.graphs.user_calls import call_component_method
from jurygraph.messages import shorten
from jurygraph.schema import (
    Audience,
    Decision,
    Plan,
    Survey,
    Task,
    TaskDefaults,
)
from jurygraph.schema.plan import task_as_planned
from jurygraph.schema.task import ProfilesLine, apply_profiles, has_text_profile_only, sort_by_id

_MAX_SHOWN_CHARACTERS = 200
TaskPlanningUpdate = dict[str, Any]
TaskWithProfiles = tuple[Task, ProfilesLine | None]
"""A task, and its line of a PROFILES file, if it has any."""


async def plan_tasks(
    tasks: Sequence[TaskWithProfiles], contexts: Sequence[GraphContext]
) -> list[Plan | Exception]:
    """Return the plan of each task of a batch, or its error. Each has its profiles of a PROFILES file, if any.

    There is a context for each task, with clients of its own.

    Parts that a task lacks are those of the config's `task_defaults`.
    """
    defaults = contexts[0].config.task_defaults
    start = [_make_task_planning(defaults.complete(task), line) for task, line in tasks]
    output = await build().ainvoke(PrepareState(tasks=start), context=TaskContexts(contexts))
    plans = []
    for planning, initial_planning in zip(output["tasks"], start, strict=True):
        plan = planning.get("plan")
        plans.append(
            plan or _to_config_error(planning["error"], initial_planning["task"], defaults)
        )
    return plans


def _make_task_planning(task: Task, line: ProfilesLine | None = None) -> TaskPlanning:
    return TaskPlanning(task=task, profiles_line=line, digest=task.content_digest)


def plan_by_code(task: Task, context: GraphContext) -> Plan | Exception | None:
    """Return the plan of a complete task, or its error, as the prepare graph would; the task is all that it sees.

    None where something about it has to be read or annotated first.
    """
    planning = _make_task_planning(task)
    if _has_unread_profiles(planning, context) or _lacks_rubric_graph(planning, context):
        return None
    try:
        planning = cast(TaskPlanning, {**planning, **_weigh_task(planning, context)})
        plan: Plan = _plan_questions(planning, context)["plan"]
    except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
        return _to_config_error(error, task, context.config.task_defaults)
    return plan


def _to_config_error(error: Exception, task: Task, defaults: TaskDefaults) -> Exception:
    """Return an error of planning, as a ConfigError with its key if the part is one from `task_defaults`."""
    if not isinstance(error, PlanError) or not error.part:
        return error
    if getattr(task, error.part[0]) is not getattr(defaults, error.part[0]):
        return error
    message = str(error).removeprefix(f"task {task.id!r}: ")
    if not message.startswith(f"{error.part[0]}."):  # else it begins with the field itself
        message = f"{defaults.key_of_part(error.part)}: {message}"
    located_error = ConfigError(f"task_defaults.{message}")
    located_error.__cause__ = error
    return located_error


def _has_unread_profiles(planning: TaskPlanning, context: GraphContext) -> bool:
    """Return whether profiles in text have to be read: else, or if nobody judges stakeholders, they change nothing."""
    has_profiles_line = planning["profiles_line"] is not None
    has_text_profiles = has_profiles_line or any(
        map(has_text_profile_only, planning["task"].stakeholders)
    )
    return has_text_profiles and "stakeholder" in _evaluator_audiences(context)


async def _read_profiles(planning: TaskPlanning, context: GraphContext) -> TaskPlanningUpdate:
    client = None if context.config.model == "none" else context.judge_client
    task = planning["task"]
    read = await read_profiles(task, planning["profiles_line"], client)
    return {"profiles": read, "task": apply_profiles(task, read)}


def _has_weights(planning: TaskPlanning, context: GraphContext) -> bool:
    return bool(planning["task"].stakeholders) and "stakeholder" in _evaluator_audiences(context)


def _weigh_task(planning: TaskPlanning, context: GraphContext) -> TaskPlanningUpdate:
    task = planning["task"]
    with add_part_to_plan_errors("stakeholders"):
        weights, difficulty = weigh_stakeholders(
            task, context.config.weights, _evaluator_audiences(context), find_tensions
        )
    return {"weights": weights, "difficulty": difficulty}


def _lacks_rubric_graph(planning: TaskPlanning, context: GraphContext) -> bool:
    """Return whether the annotator is needed: for a rubric without edges, if the config enables that and an
    evaluator judges criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    rubric = planning["task"].rubric
    if context.config.annotation is None or rubric is None:
        return False
    if rubric.edges or rubric.annotation is not None:
        return False
    has_model = context.config.model != "none"
    return any(
        evaluator.audience == "criterion" and (has_model or not evaluator.uses_model)
        for evaluator in context.evaluators.values()
    )


async def _annotate_rubric(planning: TaskPlanning, context: GraphContext) -> TaskPlanningUpdate:
    annotate_output = await annotate_graph.build().ainvoke(
        AnnotateInput(task=planning["task"]), context=context
    )
    return {"rubric": annotate_output["rubric"]}


def _plan_questions(planning: TaskPlanning, context: GraphContext) -> TaskPlanningUpdate:
    """Return the plan. Another step to freeze it would cost a task that is planned alone a quarter more CPU."""
    survey = _make_survey(planning, context)
    decision = _make_decision(planning, survey, context)
    calls = {} if context.judge_client is None else context.judge_client.calls
    rubric = planning.get("rubric")
    if rubric is not None:  # the order of criteria in a file must not change the plan
        rubric = rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})
    plan = Plan(
        task_id=planning["task"].id,
        task_digest=planning["digest"],
        survey=survey,
        decision=decision,
        files=digests_of_tool_files(survey, context.toolsets),
        profiles=planning.get("profiles"),
        rubric=rubric,
        calls=tuple(calls[name] for name in sorted(calls)),
    )
    return {"plan": plan}


def _make_survey(planning: TaskPlanning, context: GraphContext) -> Survey:
    views = view_task(planning["task"], ["task", *_evaluator_audiences(context)])
    task_view = next(view for view in views if view.audience == "task")
    derivations = list_material_derivations(context.derivers, task_view)
    listed_questions = list_questions_of_evaluators(
        context.evaluators, views, context.config.evaluators
    )
    key = survey_cache_key(views, derivations, listed_questions)
    survey_without_texts = context.surveys_without_texts.get(key)
    if survey_without_texts is not None:
        survey = survey_without_texts.with_views(views)
    else:
        uses = {use.known_as: use for use in context.config.evaluators}
        materials = [derivation.gives for derivation in derivations]
        questions = configure_questions(listed_questions, context.evaluators, uses, materials)
        survey = build_survey(views, derivations, questions, context.config.safety.gates)
        context.surveys_without_texts.store_part(key, survey.without_texts)
    for question in survey.questions:
        evaluator = context.evaluators[question.evaluator]
        call_component_method(evaluator, evaluator.check, question)
    return survey


def _make_decision(planning: TaskPlanning, survey: Survey, context: GraphContext) -> Decision:
    """Return the decision. Raises ModelError for an incomplete graph, because missing edges would count as licensed."""
    rubric = planning.get("rubric")
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        missing = [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered]
        missing += [f"{name} {why}" for name, why in record.unassigned.items()]
        first = shorten(missing[0], _MAX_SHOWN_CHARACTERS)
        raise ModelError(
            f"task {planning['task'].id!r}: its rubric graph lacks {len(missing)} answers, such as: {first}; "
            "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        )
    task = task_as_planned(planning["task"], rubric=rubric)
    weights = planning.get("weights", {})
    difficulty = planning.get("difficulty", {})
    key = decision_key(task, survey, weights, difficulty)
    decision = context.shared_decisions.get(key)
    if decision is None:
        records = {name: evaluator.record for name, evaluator in context.evaluators.items()}
        decision = build_decision(
            task, survey, context.config, records, context.combiners, weights, difficulty
        )
        context.shared_decisions.store_part(key, decision)
    return decision


def _evaluator_audiences(context: GraphContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]


class _PlanningStep(NamedTuple):
    """A step that is taken with every task for which it `is_due`; what it takes is added to the task's planning."""

    name: str
    take: Callable[[TaskPlanning, GraphContext], TaskPlanningUpdate | Awaitable[TaskPlanningUpdate]]
    is_due: Callable[[TaskPlanning, GraphContext], bool] = lambda *_: True

    def due_task_indices(self, state: PrepareState, contexts: Sequence[GraphContext]) -> list[int]:
        """Return the indices of the tasks for which the step is due; those with an error are left alone."""
        return [
            index
            for index, planning in enumerate(state["tasks"])
            if "error" not in planning and self.is_due(planning, contexts[index])
        ]

    async def run_or_record_error(
        self, planning: TaskPlanning, context: GraphContext
    ) -> TaskPlanningUpdate:
        try:
            update = self.take(planning, context)
            return await update if isinstance(update, Awaitable) else update
        except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this task's plan
            return {"error": error}


_PLANNING_STEPS = (
    _PlanningStep("profiles", _read_profiles, _has_unread_profiles),
    _PlanningStep("weigh", _weigh_task, _has_weights),
    _PlanningStep("annotate", _annotate_rubric, _lacks_rubric_graph),
    _PlanningStep("question", _plan_questions),
)


async def _name_next_step(
    steps: Sequence[_PlanningStep], state: PrepareState, runtime: Runtime[TaskContexts]
) -> str:
    """Return the name of the first of the steps that is due for any task, else the end.

    It is a coroutine because LangGraph calls others in a thread.
    """
    contexts = runtime.context.contexts
    return next((step.name for step in steps if step.due_task_indices(state, contexts)), END)


async def _take_step(
    step: _PlanningStep,
    later_steps: Sequence[_PlanningStep],
    state: PrepareState,
    runtime: Runtime[TaskContexts],
) -> Command[str]:
    """Take a step with all tasks at once, and go to the next of `later_steps` that is due."""
    contexts = runtime.context.contexts
    tasks = list(state["tasks"])
    due_indices = step.due_task_indices(state, contexts)
    due_update_coroutines = [
        step.run_or_record_error(tasks[index], contexts[index]) for index in due_indices
    ]
    planning_updates = await asyncio.gather(*due_update_coroutines)
    for index, update in zip(due_indices, planning_updates, strict=True):
        tasks[index] = cast(TaskPlanning, {**tasks[index], **update})
    updated_state = PrepareState(tasks=tasks)
    next_step = await _name_next_step(later_steps, updated_state, runtime)
    return Command(goto=next_step, update=updated_state)


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[PrepareState, TaskContexts, PrepareState, PrepareState]:
    """Return the compiled graph: profiles → weigh → annotate → question, less what is due for no task."""
    graph = StateGraph(PrepareState, context_schema=TaskContexts)
    names = [step.name for step in _PLANNING_STEPS]
    graph.add_conditional_edges(START, partial(_name_next_step, _PLANNING_STEPS), names)
    for number, step in enumerate(_PLANNING_STEPS):
        node = partial(_take_step, step, _PLANNING_STEPS[number + 1 :])
        next_node_names = (*names[number + 1 :], END)
        graph.add_node(step.name, node, destinations=next_node_names)
    return graph.compile(name="prepare")
