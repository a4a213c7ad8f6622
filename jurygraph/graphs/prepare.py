"""prepare: once a task, from the task alone to a frozen plan."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.profile import read_profiles
from jurygraph.errors import ModelError
from jurygraph.graphs import annotate
from jurygraph.graphs.planning import (
    list_derivations,
    list_questions,
    survey_of,
    view_task,
)
from jurygraph.graphs.recipe import decision_of, freeze_specs
from jurygraph.graphs.secret_fields import refuse_secrets_in_plan
from jurygraph.graphs.state import AnnotateInput, PrepareOutput, PrepareState, Roster
from jurygraph.graphs.weighing import weigh_stakeholders
from jurygraph.schema import Audience, Plan, Rubric, Task
from jurygraph.schema.plan import with_graph
from jurygraph.schema.profile import in_text_alone, with_profiles
from jurygraph.schema.task import by_id
from jurygraph.sources.complaint import shortened

PrepareGraph = CompiledStateGraph[PrepareState, Roster, PrepareState, PrepareOutput]
Update = dict[str, Any]


async def _read(state: PrepareState, runtime: Runtime[Roster]) -> Command[str]:
    """Where nobody asks about stakeholders, what their profiles say would change no question and no weight."""
    task, audiences = state["task"], _audiences(runtime.context)
    alone = state.get("stated") is not None or any(map(in_text_alone, task.stakeholders))
    update = {"digest": task.content_digest, "profiles": None, "views": view_task(task, ["task", *audiences])}
    update["rubric"] = None
    return Command(goto="profiles" if alone and "stakeholder" in audiences else "weigh", update=update)


async def _profiles(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster = runtime.context
    model = None if roster.config.model == "none" else roster.gateway
    read = await read_profiles(state["task"], state.get("stated"), model)
    whole = with_profiles(state["task"], read)
    return {"profiles": read, "task": whole, "views": view_task(whole, ["task", *_audiences(roster)])}


async def _weigh(state: PrepareState, runtime: Runtime[Roster]) -> Command[str]:
    """A rubric without edges goes to the annotator, where the config wants that and somebody asks about criteria."""
    roster, task = runtime.context, state["task"]
    weights, difficulty = weigh_stakeholders(task, roster.config.weights, _audiences(roster))
    goto = "annotate" if _wants_a_graph(roster) and _lacks_a_graph(task.rubric) else "question"
    return Command(goto=goto, update={"weights": weights, "difficulty": difficulty})


def _wants_a_graph(roster: Roster) -> bool:
    """Whether rubrics are to be annotated and somebody will judge a criterion: under model none only code does, and
    where nothing is judged there is nothing that a graph could license."""
    asked = [one for one in roster.evaluators.values() if one.audience == "criterion"]
    judged = asked if roster.config.model != "none" else [one for one in asked if not one.asks_model]
    return roster.config.annotation is not None and bool(judged)


def _lacks_a_graph(rubric: Rubric | None) -> bool:
    return rubric is not None and not rubric.edges and rubric.annotation is None


async def _question(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster, views = runtime.context, state["views"]
    whole = next(view for view in views if view.audience == "task")
    uses = {use.known_as: use for use in roster.config.evaluators}
    derivations = list_derivations(roster.derivers, whole)
    questions = list_questions(roster.evaluators, uses, views, [deriver.gives for deriver in roster.derivers.values()])
    for question in questions:
        roster.evaluators[question.evaluator].check(question)
    return {"survey": survey_of(views, derivations, questions, roster.config.safety.gates)}


async def _recipe(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster, weighed = runtime.context, (state["weights"], state["difficulty"])
    task = with_graph(state["task"], _answered(state["task"], state["rubric"]))
    specs = freeze_specs(task, state["survey"], roster.config, roster.seats, roster.combiners, *weighed)
    return {"decision": decision_of(roster.config, specs, roster.combiners)}


def _answered(task: Task, rubric: Rubric | None) -> Rubric | None:
    """The rubric; a graph of which a part has no answer is none to score by: what it lacks would count as licensed.

    Raises ModelError.
    """
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        lacking = [f"{one.parent} -> {one.child} {one.why}" for one in record.unanswered]
        lacking += [f"{name} {why}" for name, why in record.unassigned.items()]
        how = "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        wrong = f"its rubric graph lacks {len(lacking)} answers, such as: {shortened(lacking[0], _SHOWN)}"
        raise ModelError(f"task {task.id!r}: {wrong}; {how}")
    return rubric


_SHOWN = 200


async def _freeze(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    gateway = runtime.context.gateway
    refuse_secrets_in_plan(state["task"], state["survey"], state["decision"], runtime.context.redactor)
    plan = Plan(
        task_id=state["task"].id,
        task_digest=state["digest"],
        survey=state["survey"],
        decision=state["decision"],
        profiles=state["profiles"],
        rubric=_in_order(state["rubric"]),
        calls=() if gateway is None else tuple(gateway.calls[name] for name in sorted(gateway.calls)),
    )
    return {"plan": plan}


def _in_order(rubric: Rubric | None) -> Rubric | None:
    """The order in which a file lists criteria decides nothing, and is no part of the plan."""
    return None if rubric is None else rubric.model_copy(update={"criteria": by_id(rubric.criteria)})


def _audiences(roster: Roster) -> list[Audience]:
    return [evaluator.audience for evaluator in roster.evaluators.values()]


async def _annotate(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    annotated = await _annotate_graph().ainvoke(AnnotateInput(task=state["task"]), context=runtime.context)
    return {"rubric": annotated["rubric"]}


@cache
def _annotate_graph() -> annotate.AnnotateGraph:
    return annotate.build()


_STEPS: Mapping[str, Callable[[PrepareState, Runtime[Roster]], Awaitable[Update | Command[str]]]] = {
    "read": _read,
    "profiles": _profiles,
    "weigh": _weigh,
    "annotate": _annotate,
    "question": _question,
    "recipe": _recipe,
    "freeze": _freeze,
}
_AFTER = {"profiles": "weigh", "annotate": "question", "question": "recipe", "recipe": "freeze", "freeze": END}
"""What follows a step that does not say so itself."""


async def prepare_directly(start: PrepareState, roster: Roster) -> Plan:
    """Return the plan that the compiled graph makes, without what a graph keeps of its steps: that takes most of the
    time, and a forecast of many tasks needs the plans alone."""
    state, runtime, step = start.copy(), Runtime(context=roster), "read"
    while step != END:
        made = await _STEPS[step](state, runtime)
        step, update = (str(made.goto), made.update) if isinstance(made, Command) else (_AFTER[step], made)
        state.update(update)  # type: ignore[typeddict-item]
    return state["plan"]


def build() -> PrepareGraph:
    """The compiled graph: read (→ profiles) → weigh (→ annotate) → question → recipe → freeze."""
    graph = StateGraph(PrepareState, context_schema=Roster, output_schema=PrepareOutput)
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
