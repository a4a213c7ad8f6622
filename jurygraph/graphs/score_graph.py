"""The score graph: route ⇄ branches and decide, which gives rewards. No group waits for another's judge.

A run of the graph has many groups, each with its plan, and takes turns as long as there are any. `route` waits until
groups are new or have all answers of their wave, and finds their next work; the branches start the calls of that and
await none, but calls of code alone start in `route`; `decide` lets the groups out that are complete, those of a turn in
one computation. A step of LangGraph costs as much CPU as a question: a run for each group would double the cost, and a
batch that ends as a whole waits for its slowest reply. What is known of the groups lies in the context, `ActiveGroups`;
the state, which each step copies, only names them.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import get_args

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.decision.decide import GroupVerdicts, decide_groups
from jurygraph.graphs.active_groups import MAX_TURNS_PER_GRAPH_RUN, ActiveGroup, ActiveGroups
from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.calls import deriver_calls, evaluator_calls
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.groups import GroupOutcome, PlannedGroup
from jurygraph.graphs.routing import (
    WaveWork,
    mark_superseded,
)
from jurygraph.graphs.state import ScoreState
from jurygraph.graphs.time_limits import new_contextvars_context
from jurygraph.graphs.traces import build_traces
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import (
    GraphBranchName,
)

BRANCH_NODE_NAMES = ("derive", *get_args(GraphBranchName))


async def score_one_group(group: PlannedGroup, context: GraphContext) -> GroupOutcome:
    """Return the traces of a group, in the order in which its responses were submitted, or its error."""
    active_groups = ActiveGroups()
    outcome_future = active_groups.admit_group(group, context)
    active_groups.close()
    await run_score_graph(active_groups)
    return outcome_future.result()


async def run_score_graph(groups: ActiveGroups) -> None:
    """Run the score graph until the groups are closed and all of them are out."""
    limit = RunnableConfig(recursion_limit=3 * MAX_TURNS_PER_GRAPH_RUN + 10)
    start = ScoreState(turn=0)
    try:
        while not groups.has_ended:
            # what it finds is in the groups, and without a checkpointer nothing is streamed: not to
            # stream the states spares 3 % of the CPU of one `ascore`
            await build().ainvoke(start, config=limit, context=groups, stream_mode="checkpoints")
    finally:
        await groups.cancel()


async def _route_groups(state: ScoreState, runtime: Runtime[ActiveGroups]) -> Command[str]:
    """Wait for groups, and choose their next work; those without any are complete.

    A Command makes a run a third cheaper than conditional edges, which copy every channel.
    """
    groups = runtime.context
    turn = state["turn"] + 1
    arrived_groups = await groups.wait()
    await _collect_group_findings(arrived_groups)
    # response gates read the whole text
    texts = (
        response.text
        for active_group in arrived_groups
        for response in active_group.group.responses
    )
    longest = max(map(len, texts), default=0)
    found = await search_off_loop(
        lambda: [active_group.take_next_work() for active_group in arrived_groups], longest
    )
    work = {}
    complete_group_numbers = []
    for active_group, group_work in zip(arrived_groups, found, strict=True):
        active_group.report_verdicts(active_group.verdicts)
        if group_work.due_branch_names:
            work[active_group.number] = group_work
        else:
            complete_group_numbers.append(active_group.number)
    due_branch_names = sorted(
        {branch for group_work in work.values() for branch in group_work.due_branch_names}
    )
    asks_only_code = all(_asks_only_code(groups[number], work[number]) for number in work)
    if work and not complete_group_numbers and asks_only_code:
        return await _start_code_calls(due_branch_names, groups, work, turn)
    nodes = [*due_branch_names, *(["decide"] if complete_group_numbers else [])]
    groups.note_running_nodes(len(nodes))
    update = {"turn": turn, "work": work, "complete": tuple(complete_group_numbers)}
    return Command(goto=nodes or END, update=update)


async def _start_code_calls(
    due_branch_names: Sequence[str], groups: ActiveGroups, work: Mapping[int, WaveWork], turn: int
) -> Command[str]:
    """Start calls of code: a step of LangGraph for its branch would be a tenth of the CPU of one `ascore`."""
    for branch in due_branch_names:
        _start_branch_calls(branch, groups, work)
    groups.note_running_nodes(1)
    command = await groups.next_command(ScoreState(turn=turn))
    return Command(goto=command.goto, update={"turn": turn, **(command.update or {})})


def _asks_only_code(active_group: ActiveGroup, work: WaveWork) -> bool:
    """Return whether no evaluator of the work asks a model, and no deriver has any work."""
    evaluators = active_group.context.evaluators
    judgements = chain.from_iterable(work.judgements.values())
    return not work.derivations and not any(
        evaluators[judgement.question.evaluator].uses_model for judgement in judgements
    )


async def _collect_group_findings(active_groups: Sequence[ActiveGroup]) -> None:
    """Add the findings of groups that have all answers of their wave.

    The redactor is for the environment after these calls, since the code that they ran may have changed it.
    """
    started_groups = [active_group for active_group in active_groups if active_group.started_calls]
    if not started_groups:
        return
    context = started_groups[0].context

    def add_all_findings() -> None:
        redactor = context.redactor
        for active_group in started_groups:
            active_group.add_findings(redactor)

    character_counts = (
        node_calls.character_count
        for active_group in started_groups
        for node_calls in active_group.started_calls.values()
    )
    add_findings_in_new_context = partial(
        new_contextvars_context(context.config.langsmith).run, add_all_findings
    )
    await search_off_loop(add_findings_in_new_context, max(character_counts))


def _start_branch_calls(branch: str, groups: ActiveGroups, work: Mapping[int, WaveWork]) -> None:
    """Start the calls of a branch for the groups of the turn."""
    for number, group_work in work.items():
        if branch not in group_work.due_branch_names:
            continue
        active_group = groups[number]
        survey = active_group.group.plan.survey
        if branch == "derive":
            calls = deriver_calls(group_work.derivations, survey, active_group.context)
        else:
            judgements = group_work.judgements[branch]
            active_group.report_questions(judgements)
            calls = evaluator_calls(
                judgements, survey, active_group.context, active_group.note_answer
            )
        active_group.start(branch, calls)


async def _start_branch(
    branch: str, state: ScoreState, runtime: Runtime[ActiveGroups]
) -> Command[str]:
    groups = runtime.context
    _start_branch_calls(branch, groups, state["work"])
    return await groups.next_command(state)


async def _decide_rewards(state: ScoreState, runtime: Runtime[ActiveGroups]) -> Command[str]:
    """Compute statistics, rewards and traces of each complete group, and let it out.

    An error of a combiner is that of its group.
    """
    groups = runtime.context
    complete_groups = [groups[number] for number in state["complete"]]
    await _collect_group_findings(complete_groups)
    valid_groups = [active_group for active_group in complete_groups if active_group.error is None]
    inputs = []
    for active_group in valid_groups:
        plan = active_group.group.plan
        active_group.report_verdicts(active_group.verdicts)
        active_group.verdicts = list(mark_superseded(plan.survey, active_group.verdicts))
        names = [response.id for response in active_group.group.responses]
        inputs.append(
            GroupVerdicts(plan.decision, plan.survey.questions, names, active_group.verdicts)
        )
    rewards = decide_groups(inputs, complete_groups[0].context.combiners)
    for active_group, rows in zip(valid_groups, rewards, strict=True):
        if isinstance(rows, Exception):
            active_group.error = rows
            continue
        groups.release_group(
            active_group, result_or_error(partial(build_traces, active_group, rows))
        )
    for active_group in complete_groups:
        if active_group.error is not None:
            groups.release_group(active_group, active_group.error)
    return await groups.next_command(state)


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[ScoreState, ActiveGroups, ScoreState, ScoreState]:
    """Return the compiled graph: the branches and `decide` lead back to `route`, which chooses the next nodes."""
    graph = StateGraph(ScoreState, context_schema=ActiveGroups)
    graph.add_node("route", _route_groups, destinations=(*BRANCH_NODE_NAMES, "decide", END))
    graph.add_edge(START, "route")
    for branch in BRANCH_NODE_NAMES:
        node = partial(_start_branch, branch)
        graph.add_node(branch, node, destinations=("route", "decide"))
    graph.add_node("decide", _decide_rewards, destinations=("route", END))
    return graph.compile(name="score")
