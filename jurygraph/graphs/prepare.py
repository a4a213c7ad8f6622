"""prepare: once a task, from the task alone to a frozen plan."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from jurygraph.graphs.planning import (
    list_derivations,
    list_questions,
    survey_of,
    task_digest,
    view_task,
    weigh_stakeholders,
)
from jurygraph.graphs.recipe import decision_of, freeze_specs
from jurygraph.graphs.state import PrepareOutput, PrepareState, Roster
from jurygraph.schema import Plan

PrepareGraph = CompiledStateGraph[PrepareState, Roster, PrepareState, PrepareOutput]
Update = dict[str, Any]


async def _read(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    evaluators = runtime.context.evaluators.values()
    return {"views": view_task(state["task"], ["task", *(e.audience for e in evaluators)])}


async def _weigh(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    asked = any(e.audience == "stakeholder" for e in runtime.context.evaluators.values())
    weights, difficulty = weigh_stakeholders(state["task"], runtime.context.config.weights) if asked else ({}, {})
    return {"weights": weights, "difficulty": difficulty}


async def _question(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    roster, views = runtime.context, state["views"]
    whole = next(view for view in views if view.audience == "task")
    uses = {use.known_as: use for use in roster.config.evaluators}
    derivations = list_derivations(roster.derivers, whole)
    questions = list_questions(roster.evaluators, uses, views)
    return {"questions": questions, "survey": survey_of(views, derivations, questions)}


async def _recipe(state: PrepareState, runtime: Runtime[Roster]) -> Update:
    specs = freeze_specs(
        state["task"], runtime.context, state["views"], state["questions"], state["weights"], state["difficulty"]
    )
    return {"decision": decision_of(runtime.context.config, specs)}


async def _freeze(state: PrepareState) -> Update:
    task = state["task"]
    plan = Plan(task_id=task.id, task_digest=task_digest(task), survey=state["survey"], decision=state["decision"])
    return {"plan": plan}


def build() -> PrepareGraph:
    """The compiled graph: read → weigh stakeholders → list questions → recipe (rubric graph, λ) → freeze."""
    graph = StateGraph(PrepareState, context_schema=Roster, output_schema=PrepareOutput)
    graph.add_node("read", _read)
    graph.add_node("weigh", _weigh)
    graph.add_node("question", _question)
    graph.add_node("recipe", _recipe)
    graph.add_node("freeze", _freeze)
    graph.add_edge(START, "read")
    graph.add_edge("read", "weigh")
    graph.add_edge("weigh", "question")
    graph.add_edge("question", "recipe")
    graph.add_edge("recipe", "freeze")
    graph.add_edge("freeze", END)
    return graph.compile(name="prepare")
