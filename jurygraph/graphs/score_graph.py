"""The score graph, run once for a task's group of responses: route ⇄ branches, then statistics → decide → trace."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast, get_args

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.decision.decide import compute_rewards
from jurygraph.graphs.execution import answer_evaluator_tasks, derive_material
from jurygraph.graphs.routing import ReusedResults, next_work, sort_responses
from jurygraph.graphs.state import RunContext, ScoreOutput, ScoreState
from jurygraph.graphs.tracing import build_traces, group_statistics
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Branch, Plan, Response

Update = dict[str, Any]
BRANCHES: tuple[str, ...] = get_args(Branch)


async def _route(state: ScoreState) -> Command[str]:
    """Choose the next work. A Command makes a run a third cheaper than conditional edges, which copy every channel."""
    survey, results = state["plan"].survey, (state["material"], state["verdicts"], state["reused_results"])
    wave, responses = state["wave"], state["responses"]
    longest = max((len(response.text) for response in responses), default=0)  # response gates read the whole text
    work, wave = await search_off_loop(lambda: next_work(survey, wave, responses, *results), longest)
    update = {"work": work, "wave": wave, "verdicts": work.settled_verdicts, "material": work.material}
    return Command(goto=work.branches or ["statistics"], update=update)


async def _derive(state: ScoreState, runtime: Runtime[RunContext]) -> Update:
    return {"material": await derive_material(state["work"].derivation_tasks, state["plan"].survey, runtime.context)}


def _answer_node(branch: str) -> Callable[[ScoreState, Runtime[RunContext]], Awaitable[Update]]:
    async def answer(state: ScoreState, runtime: Runtime[RunContext]) -> Update:
        evaluator_tasks = state["work"].evaluator_tasks[branch]
        return {"verdicts": await answer_evaluator_tasks(evaluator_tasks, state["plan"].survey, runtime.context)}

    return answer


async def _statistics(state: ScoreState) -> Update:
    scored = ((verdict.question, verdict.score) for verdict in state["verdicts"])
    return {"statistics": group_statistics(state["plan"].survey.questions, scored)}


async def _decide(state: ScoreState, runtime: Runtime[RunContext]) -> Update:
    plan, names = state["plan"], [r.id for r in state["responses"]]
    rewards = compute_rewards(plan.decision, plan.survey.questions, names, state["verdicts"], runtime.context.combiners)
    return {"rewards": rewards}


async def _trace(state: ScoreState, runtime: Runtime[RunContext]) -> Update:
    return {"traces": build_traces(state, {**state["reused_results"].calls, **runtime.context.calls})}


_NODES: Mapping[str, Callable[[ScoreState, Runtime[RunContext]], Awaitable[Update]]] = {
    "derive": _derive,
    **{branch: _answer_node(branch) for branch in BRANCHES},
}


def initial_state(plan: Plan, responses: Sequence[Response], reused_results: ReusedResults) -> ScoreState:
    """Return the state from which a group is scored, with the responses in canonical order."""
    return ScoreState(
        plan=plan, responses=sort_responses(responses), reused_results=reused_results, wave=0, material=[], verdicts=[]
    )


async def answer_questions(start: ScoreState, context: RunContext) -> None:
    """Ask every question that the compiled graph asks about a group, and compute no rewards.

    A dry run records requests only, and the bookkeeping of the graph engine would take most of its time.
    """
    state, runtime = start.copy(), Runtime(context=context)
    while True:
        _add(state, cast(Update, (await _route(state)).update))
        steps = [_NODES[step] for step in state["work"].branches]
        if not steps:
            return
        for update in await asyncio.gather(*(step(state, runtime) for step in steps)):
            _add(state, update)


def _add(state: ScoreState, update: Update) -> None:
    """Update a state as the graph engine does: verdicts and material are appended."""
    added = {name: [*state[name], *update[name]] for name in ("material", "verdicts") if name in update}
    state.update(cast(ScoreState, {**update, **added}))


def build() -> CompiledStateGraph[ScoreState, RunContext, ScoreState, ScoreOutput]:
    """Return the compiled graph: every branch has an edge back to `route`, which chooses the next nodes."""
    graph = StateGraph(ScoreState, context_schema=RunContext, output_schema=ScoreOutput)
    graph.add_node("route", _route, destinations=("derive", *BRANCHES, "statistics"))
    graph.add_edge(START, "route")
    for branch, node in _NODES.items():
        graph.add_node(branch, node)  # type: ignore[arg-type]
        graph.add_edge(branch, "route")
    last_steps: list[Any] = [("statistics", _statistics), ("decide", _decide), ("trace", _trace)]
    graph.add_sequence(last_steps)
    graph.add_edge("trace", END)
    return graph.compile(name="score")
