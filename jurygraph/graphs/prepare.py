"""The prepare graph, run once per task: make a frozen plan from the task alone."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.checks.tensions import find_tensions
from jurygraph.agents.profile import read_profiles
from jurygraph.decision.recipe import build_decision
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import ModelError
from jurygraph.graphs import annotate
from jurygraph.graphs.planning import (
    build_survey,
    list_derivations,
    list_questions,
    view_task,
)
from jurygraph.graphs.state import AnnotateInput, PrepareOutput, PrepareState, RunContext
from jurygraph.messages import shorten
from jurygraph.safety.known_secrets import refuse_secrets_in_plan
from jurygraph.schema import Audience, Plan, Rubric, Task
from jurygraph.schema.plan import with_rubric_graph
from jurygraph.schema.profile import is_text_only, with_profiles
from jurygraph.schema.task import sort_by_id

PrepareGraph = CompiledStateGraph[PrepareState, RunContext, PrepareState, PrepareOutput]
Update = dict[str, Any]


async def _read(state: PrepareState, runtime: Runtime[RunContext]) -> Command[str]:
    """Go to `profiles` only if an evaluator judges stakeholders: otherwise they change no question and no weight."""
    task, audiences = state["task"], _audiences(runtime.context)
    has_unread_profiles = state.get("profiles_line") is not None or any(map(is_text_only, task.stakeholders))
    update = {"digest": task.content_digest, "profiles": None, "views": view_task(task, ["task", *audiences])}
    update["rubric"] = None
    return Command(goto="profiles" if has_unread_profiles and "stakeholder" in audiences else "weigh", update=update)


async def _profiles(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    context = runtime.context
    model = None if context.config.model == "none" else context.judge_client
    read = await read_profiles(state["task"], state.get("profiles_line"), model)
    task = with_profiles(state["task"], read)
    return {"profiles": read, "task": task, "views": view_task(task, ["task", *_audiences(context)])}


async def _weigh(state: PrepareState, runtime: Runtime[RunContext]) -> Command[str]:
    """Send a rubric without edges to the annotator, if the config enables that and an evaluator judges criteria."""
    context, task = runtime.context, state["task"]
    weights, difficulty = weigh_stakeholders(task, context.config.weights, _audiences(context), find_tensions)
    goto = "annotate" if _should_annotate(context) and _has_no_graph(task.rubric) else "question"
    return Command(goto=goto, update={"weights": weights, "difficulty": difficulty})


def _should_annotate(context: RunContext) -> bool:
    """Return whether annotation is enabled and an evaluator will judge criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    evaluators = [evaluator for evaluator in context.evaluators.values() if evaluator.audience == "criterion"]
    usable = (
        evaluators
        if context.config.model != "none"
        else [evaluator for evaluator in evaluators if not evaluator.uses_model]
    )
    return context.config.annotation is not None and bool(usable)


def _has_no_graph(rubric: Rubric | None) -> bool:
    return rubric is not None and not rubric.edges and rubric.annotation is None


async def _question(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    context, views = runtime.context, state["views"]
    task_view = next(view for view in views if view.audience == "task")
    uses = {use.known_as: use for use in context.config.evaluators}
    derivations = list_derivations(context.derivers, task_view)
    questions = list_questions(
        context.evaluators, uses, views, [deriver.gives for deriver in context.derivers.values()]
    )
    for question in questions:
        context.evaluators[question.evaluator].check(question)
    return {"survey": build_survey(views, derivations, questions, context.config.safety.gates)}


async def _recipe(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    context = runtime.context
    task = with_rubric_graph(state["task"], _require_complete_graph(state["task"], state["rubric"]))
    weighed = (state["weights"], state["difficulty"])
    records = context.evaluator_records
    decision = build_decision(task, state["survey"], context.config, records, context.combiners, *weighed)
    return {"decision": decision}


def _require_complete_graph(task: Task, rubric: Rubric | None) -> Rubric | None:
    """Return the rubric; refuse an incomplete graph, because missing edges would count as licensed.

    Raises ModelError where the annotator left a pair or a role unanswered.
    """
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        missing = [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered]
        missing += [f"{name} {why}" for name, why in record.unassigned.items()]
        how = "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        problem = f"its rubric graph lacks {len(missing)} answers, such as: {shorten(missing[0], _MAX_SHOWN)}"
        raise ModelError(f"task {task.id!r}: {problem}; {how}")
    return rubric


_MAX_SHOWN = 200


async def _freeze(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    gateway = runtime.context.judge_client
    refuse_secrets_in_plan(state["task"], state["survey"], state["decision"], runtime.context.redactor)
    plan = Plan(
        task_id=state["task"].id,
        task_digest=state["digest"],
        survey=state["survey"],
        decision=state["decision"],
        profiles=state["profiles"],
        rubric=_sort_criteria(state["rubric"]),
        calls=() if gateway is None else tuple(gateway.calls[name] for name in sorted(gateway.calls)),
    )
    return {"plan": plan}


def _sort_criteria(rubric: Rubric | None) -> Rubric | None:
    """Return the rubric with its criteria sorted by id: their order in a file must not change the plan."""
    return None if rubric is None else rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})


def _audiences(context: RunContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]


async def _annotate(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    annotated = await annotate.build().ainvoke(AnnotateInput(task=state["task"]), context=runtime.context)
    return {"rubric": annotated["rubric"]}


_STEPS: Mapping[str, Callable[[PrepareState, Runtime[RunContext]], Awaitable[Update | Command[str]]]] = {
    "read": _read,
    "profiles": _profiles,
    "weigh": _weigh,
    "annotate": _annotate,
    "question": _question,
    "recipe": _recipe,
    "freeze": _freeze,
}
_AFTER = {"profiles": "weigh", "annotate": "question", "question": "recipe", "recipe": "freeze", "freeze": END}
"""The next step, for steps that do not return a Command with it."""


async def prepare_directly(start: PrepareState, context: RunContext) -> Plan:
    """Return the same plan as the compiled graph, for dry runs: the bookkeeping of the graph engine takes most of the
    time of planning."""
    state, runtime, step = start.copy(), Runtime(context=context), "read"
    while step != END:
        result = await _STEPS[step](state, runtime)
        step, update = (str(result.goto), result.update) if isinstance(result, Command) else (_AFTER[step], result)
        state.update(update)  # type: ignore[typeddict-item]
    return state["plan"]


def build() -> PrepareGraph:
    """Return the compiled graph: read (→ profiles) → weigh (→ annotate) → question → recipe → freeze."""
    graph = StateGraph(PrepareState, context_schema=RunContext, output_schema=PrepareOutput)
    graph.add_node("read", _read, destinations=("profiles", "weigh"))
    graph.add_node("profiles", _profiles)
    graph.add_node("weigh", _weigh, destinations=("annotate", "question"))
    graph.add_node("annotate", annotate.build())
    graph.add_node("question", _question)
    graph.add_node("recipe", _recipe)
    graph.add_node("freeze", _freeze)
    graph.add_edge(START, "read")
    for step, after in _AFTER.items():
        graph.add_edge(step, after)
    return graph.compile(name="prepare")
