"""prepare: once a task, from the task alone to a frozen plan."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.profile import read_profiles
from jurygraph.graphs.planning import (
    list_derivations,
    list_questions,
    survey_of,
    view_task,
)
from jurygraph.graphs.recipe import decision_of, freeze_specs
from jurygraph.graphs.state import PrepareOutput, PrepareState, Roster
from jurygraph.graphs.weighing import weigh_stakeholders
from jurygraph.schema import Audience, Plan
from jurygraph.schema.profile import in_text_alone, with_profiles

PrepareGraph = CompiledStateGraph[PrepareState, Roster, PrepareState, PrepareOutput]
Update = dict[str, Any]


async def _read(state: PrepareState, runtime: Runtime[Roster]) -> Command[str]:
    """Where nobody asks about stakeholders, what their profiles say would change no question and no weight."""
    task, audiences = state["task"], _audiences(runtime.context)
    alone = state.get("stated") is not None or any(map(in_text_alone, task.stakeholders))
    update = {"digest": task.content_digest, "profiles": None, "views": view_task(task, ["task", *audiences])}
    return Command(goto="profiles" if alone and "stakeholder" in audiences else "weigh", update=update)


async def _profiles(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster = runtime.context
    model = None if roster.config.model == "none" else roster.gateway
    read = await read_profiles(state["task"], state.get("stated"), model)
    whole = with_profiles(state["task"], read)
    return {"profiles": read, "task": whole, "views": view_task(whole, ["task", *_audiences(roster)])}


async def _weigh(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster = runtime.context
    weights, difficulty = weigh_stakeholders(state["task"], roster.config.weights, _audiences(roster))
    return {"weights": weights, "difficulty": difficulty}


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
    specs = freeze_specs(state["task"], state["survey"], roster.config, roster.seats, roster.combiners, *weighed)
    return {"decision": decision_of(roster.config, specs, roster.combiners)}


async def _freeze(state: PrepareState) -> Update:
    plan = Plan(
        task_id=state["task"].id,
        task_digest=state["digest"],
        survey=state["survey"],
        decision=state["decision"],
        profiles=state["profiles"],
    )
    return {"plan": plan}


def _audiences(roster: Roster) -> list[Audience]:
    return [evaluator.audience for evaluator in roster.evaluators.values()]


def build() -> PrepareGraph:
    """The compiled graph: read (→ profiles) → weigh stakeholders → list questions → recipe (rubric graph) → freeze."""
    graph = StateGraph(PrepareState, context_schema=Roster, output_schema=PrepareOutput)
    graph.add_node("read", _read, destinations=("profiles", "weigh"))
    graph.add_node("profiles", _profiles)
    graph.add_node("weigh", _weigh)
    graph.add_node("question", _question)
    graph.add_node("recipe", _recipe)
    graph.add_node("freeze", _freeze)
    graph.add_edge(START, "read")
    graph.add_edge("profiles", "weigh")
    graph.add_edge("weigh", "question")
    graph.add_edge("question", "recipe")
    graph.add_edge("recipe", "freeze")
    graph.add_edge("freeze", END)
    return graph.compile(name="prepare")
