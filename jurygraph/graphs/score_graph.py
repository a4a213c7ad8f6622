"""The score graph, run once for a batch of groups: route ⇄ branches, then decide, which gives rewards and traces.

Each group of the batch has its own waves, verdicts, failures and calls; they share the engine's cost.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.decision.decide import GroupVerdicts, compute_rewards_of_each
from jurygraph.graphs.execution import GroupCalls, catch_errors, deriver_calls, evaluator_calls, make_calls
from jurygraph.graphs.routing import WaveWork, mark_superseded, next_work
from jurygraph.graphs.state import BatchContext, PlannedGroup, RunContext, ScoreOutput, ScoreState
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Branch, Call, Material, RecordedVerdict, Response, Reward, Trace, digest_of
from jurygraph.schema.trace import group_statistics, group_verdicts_by_response, permitted_purpose


class GroupFindings(NamedTuple):
    """The findings about a group: verdicts and material in any order, and the rewards in canonical order."""

    verdicts: Sequence[RecordedVerdict]
    material: Sequence[Material]
    rewards: Sequence[Reward]


def build_traces(group: PlannedGroup, found: GroupFindings, context: RunContext) -> list[Trace]:
    """Return one trace for each response, in the order in which they were submitted.

    Raises ConfigError where the judge would evaluate what was trained on its own rewards, and that is refused.
    """
    plan = group.plan
    questions = plan.survey.questions
    calls = {**group.reused_results.calls, **context.calls}
    counting = ((one.question, one.score) for one in found.verdicts if not one.superseded)
    statistics = group_statistics(questions, counting)
    by_response = group_verdicts_by_response(questions, [r.id for r in group.responses], found.verdicts)
    material_of: dict[str, list[Material]] = defaultdict(list)
    for item in found.material:
        material_of[item.response].append(item)
    reward_of = {response.id: reward for response, reward in zip(group.responses, found.rewards, strict=True)}
    of_group = group_digest(group.responses)
    traces = []
    for response in group.submitted:
        verdicts = tuple(by_response[response.id])
        material = tuple(sorted(material_of[response.id], key=lambda item: item.name))
        referenced = _referenced_calls(calls, (*verdicts, *material))
        served = [call.served for call in referenced if call.served]
        made = Trace(
            task_id=plan.task_id,
            response_id=response.id,
            agent=response.agent,
            group=of_group,
            labels=response.labels,
            plan_digest=plan.digest,
            reward=reward_of[response.id],
            verdicts=verdicts,
            calls=referenced,
            material=material,
            statistics=statistics,
            purpose=permitted_purpose(context.config.purpose, context.judges, served),
            plan=plan,
        )
        traces.append(made)
    return traces


def _referenced_calls(calls: Mapping[str, Call], users: Iterable[RecordedVerdict | Material]) -> tuple[Call, ...]:
    """Return the calls that were made for verdicts and material, sorted by id."""
    referenced = {use.id for user in users for use in user.calls}
    return tuple(calls[name] for name in sorted(referenced & calls.keys()))


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])


Update = dict[str, Any]
BranchNode = Callable[[ScoreState, Runtime[BatchContext]], Awaitable[Update]]
BRANCHES: tuple[str, ...] = get_args(Branch)
_NO_WORK = WaveWork()


async def score_groups(groups: Sequence[PlannedGroup], context: BatchContext) -> list[list[Trace] | BaseException]:
    """Return the traces of each group of a batch, in the order in which its responses were submitted, or its error."""
    nothing: list[Any] = [()] * len(groups)
    start = ScoreState(groups=groups, waves=[0] * len(groups), material=nothing, verdicts=nothing, errors={})
    waves = max((len(group.plan.survey.waves) for group in groups), default=0)
    limit = RunnableConfig(recursion_limit=4 * waves + 10)  # a wave may be asked of a second judge
    output = await build().ainvoke(start, context=context, config=limit)
    outcomes: list[list[Trace] | BaseException] = output["outcomes"]
    return outcomes


async def _route(state: ScoreState) -> Command[str]:
    """Choose the next work. A Command makes a run a third cheaper than conditional edges, which copy every channel."""
    # response gates read the whole text
    longest = max((len(one.text) for group in state["groups"] for one in group.responses), default=0)
    work, waves = await search_off_loop(lambda: _next_work_of_each(state), longest)
    update = {
        "work": work,
        "waves": waves,
        "verdicts": [one.settled_verdicts for one in work],
        "material": [one.material for one in work],
    }
    branches = {branch for one in work for branch in one.branches}
    return Command(goto=sorted(branches) or ["decide"], update=update)


def _next_work_of_each(state: ScoreState) -> tuple[list[WaveWork], list[int]]:
    work = []
    waves = []
    for number, (group, wave) in enumerate(zip(state["groups"], state["waves"], strict=True)):
        found = state["material"][number], state["verdicts"][number], group.reused_results
        is_ended = number in state["errors"]
        one, next_wave = (_NO_WORK, wave) if is_ended else next_work(group.plan.survey, wave, group.responses, *found)
        work.append(one)
        waves.append(next_wave)
    return work, waves


async def _derive(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
    def prepare(group: PlannedGroup, work: WaveWork, context: RunContext) -> GroupCalls | None:
        tasks = work.derivation_tasks
        return deriver_calls(tasks, group.plan.survey, context) if tasks else None

    return await _collect("material", prepare, state, runtime.context)


def _answer_node(branch: str) -> BranchNode:
    def prepare(group: PlannedGroup, work: WaveWork, context: RunContext) -> GroupCalls | None:
        tasks = work.evaluator_tasks.get(branch)
        return evaluator_calls(tasks, group.plan.survey, context) if tasks else None

    async def node(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
        return await _collect("verdicts", prepare, state, runtime.context)

    return node


async def _collect(
    field: str,
    prepare: Callable[[PlannedGroup, WaveWork, RunContext], GroupCalls | None],
    state: ScoreState,
    context: BatchContext,
) -> Update:
    """Return what the groups with work found, in `field`, and the error of each group that has one."""
    each = zip(state["groups"], state["work"], context.groups, strict=True)
    calls = {number: prepared for number, one in enumerate(each) if (prepared := prepare(*one)) is not None}
    results = dict(zip(calls, await make_calls(list(calls.values()), context.groups[0]), strict=True))
    errors = {number: result for number, result in results.items() if isinstance(result, BaseException)}
    found = [() if number in errors else results.get(number, ()) for number in range(len(state["groups"]))]
    return {field: found, "errors": errors}


async def _decide(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
    """Compute statistics, rewards and traces of each group. An error of a combiner is that of its group."""
    groups = state["groups"]
    errors = state["errors"]
    contexts = runtime.context.groups
    decided = [number for number in range(len(groups)) if number not in errors]
    verdicts = {number: mark_superseded(groups[number].plan.survey, state["verdicts"][number]) for number in decided}
    inputs = [_decision_input(groups[number], verdicts[number]) for number in decided]
    rewards = compute_rewards_of_each(inputs, contexts[0].combiners)
    outcomes: dict[int, list[Trace] | BaseException] = dict(errors)
    for number, its_rewards in zip(decided, rewards, strict=True):
        if isinstance(its_rewards, Exception):
            outcomes[number] = its_rewards
        else:
            found = GroupFindings(verdicts[number], state["material"][number], its_rewards)
            outcomes[number] = catch_errors(partial(build_traces, groups[number], found, contexts[number]))
    return {"outcomes": [outcomes[number] for number in range(len(groups))]}


def _decision_input(group: PlannedGroup, verdicts: Sequence[RecordedVerdict]) -> GroupVerdicts:
    names = [response.id for response in group.responses]
    return GroupVerdicts(group.plan.decision, group.plan.survey.questions, names, verdicts)


_BRANCH_NODES: Mapping[str, BranchNode] = {
    "derive": _derive,
    **{branch: _answer_node(branch) for branch in BRANCHES},
}


def _then_go_on(node: BranchNode) -> Callable[[ScoreState, Runtime[BatchContext]], Awaitable[Command[str]]]:
    """Return a node that goes back to `route`, or on to `decide` if this was the last wave of every group."""

    async def go_on(state: ScoreState, runtime: Runtime[BatchContext]) -> Command[str]:
        each = zip(state["groups"], state["waves"], strict=True)
        has_waves = any(wave < len(group.plan.survey.waves) or group.plan.survey.escalated for group, wave in each)
        return Command(goto="route" if has_waves else "decide", update=await node(state, runtime))

    return go_on


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[ScoreState, BatchContext, ScoreState, ScoreOutput]:
    """Return the compiled graph: every branch leads back to `route`, which chooses the next nodes."""
    graph = StateGraph(ScoreState, context_schema=BatchContext, output_schema=ScoreOutput)
    graph.add_node("route", _route, destinations=("derive", *BRANCHES, "decide"))
    graph.add_edge(START, "route")
    for branch, node in _BRANCH_NODES.items():
        graph.add_node(branch, _then_go_on(node), destinations=("route", "decide"))  # type: ignore[arg-type]
    graph.add_node("decide", _decide)
    graph.add_edge("decide", END)
    return graph.compile(name="score")
