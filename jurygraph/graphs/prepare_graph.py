"""The prepare graph, run once per task: make a frozen plan from the task alone."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.checks.tensions import find_tensions
from jurygraph.agents.profile import read_profiles
from jurygraph.decision.recipe import build_decision
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import ConfigError, ModelError, PlanError, name_part
from jurygraph.graphs import annotate_graph
from jurygraph.graphs.planning import build_survey, list_derivations, list_questions, view_task
from jurygraph.graphs.state import AnnotateInput, PrepareOutput, PrepareState, RunContext
from jurygraph.graphs.time_limits import call_within_limit
from jurygraph.messages import shorten
from jurygraph.safety.known_secrets import refuse_secrets_in_plan
from jurygraph.schema import Audience, Plan, Task, TaskDefaults
from jurygraph.schema.plan import with_planning_results
from jurygraph.schema.profile import is_text_only, with_profiles
from jurygraph.schema.task import sort_by_id

_MAX_SHOWN = 200
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
    """Send a rubric without edges to the annotator, if the config enables that and an evaluator judges criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    context, task = runtime.context, state["task"]
    with name_part("stakeholders"):
        weights, difficulty = weigh_stakeholders(task, context.config.weights, _audiences(context), find_tensions)
    has_no_graph = task.rubric is not None and not task.rubric.edges and task.rubric.annotation is None
    judges_criteria = any(
        evaluator.audience == "criterion" and (context.config.model != "none" or not evaluator.uses_model)
        for evaluator in context.evaluators.values()
    )
    should_annotate = context.config.annotation is not None and has_no_graph and judges_criteria
    update = {"weights": weights, "difficulty": difficulty}
    return Command(goto="annotate" if should_annotate else "question", update=update)


async def _annotate(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    annotated = await annotate_graph.build().ainvoke(AnnotateInput(task=state["task"]), context=runtime.context)
    return {"rubric": annotated["rubric"]}


async def _question(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    context, views = runtime.context, state["views"]
    task_view = next(view for view in views if view.audience == "task")
    uses = {use.known_as: use for use in context.config.evaluators}
    derivations = list_derivations(context.derivers, task_view)
    questions = list_questions(context.evaluators, uses, views, [derivation.gives for derivation in derivations])
    for question in questions:
        evaluator = context.evaluators[question.evaluator]
        call_within_limit(evaluator, evaluator.check, question)
    return {"survey": build_survey(views, derivations, questions, context.config.safety.gates)}


async def _recipe(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    """Refuse an incomplete graph, because missing edges would count as licensed."""
    context, rubric = runtime.context, state["rubric"]
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        missing = [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered]
        missing += [f"{name} {why}" for name, why in record.unassigned.items()]
        how = "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        problem = f"its rubric graph lacks {len(missing)} answers, such as: {shorten(missing[0], _MAX_SHOWN)}"
        raise ModelError(f"task {state['task'].id!r}: {problem}; {how}")
    task, weighed = with_planning_results(state["task"], rubric=rubric), (state["weights"], state["difficulty"])
    records = context.evaluator_records
    decision = build_decision(task, state["survey"], context.config, records, context.combiners, *weighed)
    return {"decision": decision}


async def _freeze(state: PrepareState, runtime: Runtime[RunContext]) -> Update:
    client, rubric = runtime.context.judge_client, state["rubric"]
    refuse_secrets_in_plan(state["task"], state["survey"], state["decision"], runtime.context.redactor)
    if rubric is not None:  # the order of criteria in a file must not change the plan
        rubric = rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})
    plan = Plan(
        task_id=state["task"].id,
        task_digest=state["digest"],
        survey=state["survey"],
        decision=state["decision"],
        profiles=state["profiles"],
        rubric=rubric,
        calls=() if client is None else tuple(client.calls[name] for name in sorted(client.calls)),
    )
    return {"plan": plan}


def _audiences(context: RunContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]


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


@contextmanager
def located_errors(task: Task, defaults: TaskDefaults) -> Iterator[None]:
    """Re-raise a PlanError about a part that the task has from `task_defaults` as a ConfigError with its key."""
    try:
        yield
    except PlanError as error:
        if not error.part or getattr(task, error.part[0]) is not getattr(defaults, error.part[0]):
            raise
        message = str(error).removeprefix(f"task {task.id!r}: ")
        if not message.startswith(f"{error.part[0]}."):  # else it begins with the field itself
            message = f"{defaults.key_of(error.part)}: {message}"
        raise ConfigError(f"task_defaults.{message}") from error


async def prepare_directly(start: PrepareState, context: RunContext) -> Plan:
    """Return the same plan as the compiled graph, for dry runs: the bookkeeping of the graph engine takes most of the
    time of planning."""
    state, runtime, step = start.copy(), Runtime(context=context), "read"
    while step != END:
        result = await _STEPS[step](state, runtime)
        step, update = (str(result.goto), result.update) if isinstance(result, Command) else (_AFTER[step], result)
        state.update(update)  # type: ignore[typeddict-item]
    return state["plan"]


def build() -> CompiledStateGraph[PrepareState, RunContext, PrepareState, PrepareOutput]:
    """Return the compiled graph: read (→ profiles) → weigh (→ annotate) → question → recipe → freeze."""
    graph = StateGraph(PrepareState, context_schema=RunContext, output_schema=PrepareOutput)
    nodes: dict[str, Any] = {**_STEPS, "annotate": annotate_graph.build()}
    destinations = {"read": ("profiles", "weigh"), "weigh": ("annotate", "question")}
    for step, node in nodes.items():
        graph.add_node(step, node, destinations=destinations.get(step))
    graph.add_edge(START, "read")
    for step, after in _AFTER.items():
        graph.add_edge(step, after)
    return graph.compile(name="prepare")
