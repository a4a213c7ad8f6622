"""The annotate graph: derive from a query and its rubric which criterion licenses which (GEAR, Appendix A).

roles → candidate pairs by role → a model's answers about the pairs → validation → acyclic projection. No field of its
state can hold a response.
"""

from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from jurygraph.agents.graph_annotator import (
    CheckedRoles,
    EdgeVoteResult,
    GraphAnnotator,
    build_known_graph,
    build_projection_rejections,
    candidate_pairs,
    drop_cycle_edges,
    elect_edges,
    freeze_graph,
    load_domain,
)
from jurygraph.errors import GraphCycleError, PlanError
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.state import AnnotateInput, AnnotateOutput, AnnotateState
from jurygraph.schema import Annotation, AnnotationConfig, Rubric

AnnotateStateUpdate = dict[str, Any]


async def _roles(state: AnnotateState, runtime: Runtime[GraphContext]) -> AnnotateStateUpdate:
    task = state["task"]
    rubric = _rubric_of_state(state)
    try:
        graph = build_known_graph(task, rubric, state.get("reviewed"))
    except GraphCycleError as error:
        error.args = (f"task {task.id!r}: {error}; leave out one of these edges",)
        raise
    ids_without_role = [
        criterion.id for criterion in rubric.criteria if criterion.id not in graph.roles
    ]
    assigned_roles = CheckedRoles()
    if ids_without_role:
        assigned_roles = await _make_graph_annotator(state, runtime.context).roles(ids_without_role)
    roles = dict(sorted({**graph.roles, **assigned_roles.roles}.items()))
    return {"known_graph": graph, "assigned_roles": assigned_roles, "roles": roles}


async def _candidates(state: AnnotateState) -> AnnotateStateUpdate:
    pairs = candidate_pairs(state["roles"])
    return {
        "candidates": len(pairs),
        "requested_pairs": state["known_graph"].find_pairs_to_ask(pairs),
    }


async def _edges(state: AnnotateState, runtime: Runtime[GraphContext]) -> AnnotateStateUpdate:
    if not state["requested_pairs"]:
        return {"batches": [], "source": None}
    annotator = _make_graph_annotator(state, runtime.context)
    config = _annotation_config(runtime.context)
    batches = await annotator.edges(
        state["requested_pairs"], state["roles"], config.batch, config.votes
    )
    return {"batches": batches, "source": annotator.source}


async def _validate(state: AnnotateState) -> AnnotateStateUpdate:
    source = state["source"]
    edge_vote_result = (
        EdgeVoteResult([], [], []) if source is None else elect_edges(state["batches"], source)
    )
    return edge_vote_result._asdict()


async def _project(state: AnnotateState, runtime: Runtime[GraphContext]) -> AnnotateStateUpdate:
    rubric = _rubric_of_state(state)
    graph = state["known_graph"]
    assigned_roles = state["assigned_roles"]
    requested_pairs = state["requested_pairs"]
    edges = [*state["proposed"], *graph.annotated_edges, *graph.projected_out_edges]
    kept_edges, dropped_edges = drop_cycle_edges(edges, graph.hand_written_edges)
    if graph.record is None or requested_pairs or assigned_roles.roles or assigned_roles.unassigned:
        domain = load_domain(_annotation_config(runtime.context).domain).name
    else:  # nothing new was requested
        domain = graph.record.domain
    record = Annotation(
        domain=domain,
        candidates=state["candidates"],
        roles=assigned_roles.roles,
        unassigned=assigned_roles.unassigned,
        seen={},
        rejected=(*state["rejected"], *build_projection_rejections(dropped_edges)),
        unanswered=tuple(state["unanswered"]),
    )
    return {
        "rubric": freeze_graph(state["task"], rubric, graph, requested_pairs, kept_edges, record)
    }


def _rubric_of_state(state: AnnotateState) -> Rubric:
    rubric = state["task"].rubric
    if rubric is None:
        raise PlanError(
            f"task {state['task'].id!r}: there is no rubric to annotate; give the task one"
        )
    return rubric


def _annotation_config(context: GraphContext) -> AnnotationConfig:
    return context.config.annotation or AnnotationConfig()


def _make_graph_annotator(state: AnnotateState, context: GraphContext) -> GraphAnnotator:
    if context.judge_client is None:
        raise PlanError(
            f"task {state['task'].id!r}: its rubric has no graph yet, and there is no model to annotate it; name a "
            "model, give a reviewed graph with --edges-from, or leave `annotation` out"
        )
    return GraphAnnotator(
        state["task"],
        _rubric_of_state(state),
        load_domain(_annotation_config(context).domain),
        context.judge_client,
    )


@cache
def build() -> CompiledStateGraph[AnnotateState, GraphContext, AnnotateInput, AnnotateOutput]:
    """Return the compiled graph: roles → candidates → edges → validate → project."""
    graph = StateGraph(
        AnnotateState,
        context_schema=GraphContext,
        input_schema=AnnotateInput,
        output_schema=AnnotateOutput,
    )
    steps: list[Any] = [_roles, _candidates, _edges, _validate, _project]
    graph.add_sequence([(step.__name__.removeprefix("_"), step) for step in steps])
    graph.add_edge(START, "roles")
    graph.add_edge("project", END)
    return graph.compile(name="annotate")
