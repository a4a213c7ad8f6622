"""The score graph: plan, then route ⇄ branches and decide, which gives rewards. No group waits for another's judge.

A run of the graph has many groups, and takes turns as long as there are any. `plan` is the first turn, and makes the
plan of a group that came without one. `route` waits until groups are new or have all answers of their wave, and finds
their next work; the branches start the calls of that and await none; `decide` lets the groups out that are complete,
those of a turn in one computation. A step of LangGraph costs as much CPU as a question: a run for each group would
double the cost, and a batch that ends as a whole waits for its slowest reply. What is known of the groups lies in the
context, `GroupsInWork`; the state, which each step copies, only names them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.decision.decide import GroupVerdicts, RewardRow, compute_rewards_of_each
from jurygraph.graphs.answers import catch_errors
from jurygraph.graphs.calls import (
    GroupCalls,
    ReadAnswer,
    StartedCalls,
    deriver_calls,
    evaluator_calls,
)
from jurygraph.graphs.events import QuestionSent, VerdictGiven
from jurygraph.graphs.prepare_graph import plan_by_code
from jurygraph.graphs.routing import (
    EvaluatorTask,
    WaveWork,
    mark_superseded,
    next_work,
)
from jurygraph.graphs.state import (
    BatchContext,
    Group,
    Outcome,
    PlannedGroup,
    RunContext,
    ScoreState,
    fresh_context,
    plan_group,
)
from jurygraph.safety.evidence import search_off_loop
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Branch,
    Call,
    Material,
    RecordedVerdict,
    Response,
    Reward,
    Trace,
    digest_of,
)
from jurygraph.schema.trace import group_statistics, group_verdicts_by_response, permitted_purpose
from jurygraph.schema.verdict import VerdictKey

PAUSE = 0.02
"""Seconds for which a turn waits for more groups, while others are judged: a turn costs CPU, however many it takes."""
TURNS_A_RUN = 500
"""Number of turns after which another run of the graph goes on, since a tracer keeps a run until its end."""


@dataclass(slots=True, eq=False)
class GroupInWork:
    """A group, what is known of it, and the calls of its present wave, by branch.

    `pending` counts the branches of the wave that have not started their calls, the calls without an answer, and the
    readers of answers for the listener.
    """

    number: int
    group: PlannedGroup
    context: RunContext
    outcome: "asyncio.Future[Outcome]"
    report_answered: "Callable[[GroupInWork], None]"
    wave: int = 0
    material: list[Material] = field(default_factory=list)
    verdicts: list[RecordedVerdict] = field(default_factory=list)
    started: dict[str, StartedCalls] = field(default_factory=dict)
    pending: int = 0
    error: BaseException | None = None
    arrived: list[ReadAnswer] = field(default_factory=list)
    """The answers for the listener since the last reader started."""
    readers: list[asyncio.Task[None]] = field(default_factory=list)
    reported: dict[VerdictKey, RecordedVerdict] = field(default_factory=dict)
    """The verdicts that the listener got."""

    @property
    def is_in_last_wave(self) -> bool:
        survey = self.group.plan.survey
        return 0 < self.wave >= len(survey.waves) and not survey.escalated

    def take_next_work(self) -> WaveWork:
        """Return the next work, without any branches after the last wave or an error."""
        if self.error is not None:
            return _NO_WORK
        survey = self.group.plan.survey
        findings = self.material, self.verdicts
        work, self.wave = next_work(
            survey, self.wave, self.group.responses, *findings, self.group.reused_results
        )
        self.material += work.material
        self.verdicts += work.settled_verdicts
        self.pending = len(work.branches)
        return work

    def report_questions(self, tasks: Sequence[EvaluatorTask]) -> None:
        """Pass the questions on to the listener, if there is one."""
        listener = self.context.listener
        if listener is None:
            return
        for task in tasks:
            question = task.question
            listener(
                QuestionSent(
                    task_id=self.group.plan.task_id,
                    question=question.id,
                    evaluator=question.evaluator,
                    responses=task.shown,
                    sample=task.sample,
                    judge=task.judge,
                    turn=task.turn,
                )
            )

    def report_verdicts(self, verdicts: Iterable[RecordedVerdict]) -> None:
        """Tell the listener, if there is one, the verdicts that are new; in the event loop, unlike what finds them.

        One that differs from when its answer came is new, too: its batch failed later, or the environment got a secret.
        """
        listener = self.context.listener
        if listener is None:
            return
        for verdict in verdicts:
            if self.reported.get(verdict.key) != verdict:
                self.reported[verdict.key] = verdict
                listener(VerdictGiven(task_id=self.group.plan.task_id, verdict=verdict))

    def note_answer(self, answer: ReadAnswer) -> None:
        """Take an answer that the listener should hear of before the wave is over; those that come together have one
        reader."""
        if not self.pending:
            return  # `read` gives them all
        self.arrived.append(answer)
        if len(self.arrived) == 1:
            self.pending += 1
            isolated = fresh_context(self.context.config.langsmith)
            reader = asyncio.create_task(self._read_arrived(), context=isolated)
            reader.add_done_callback(self._count_answer)
            self.readers.append(reader)

    async def _read_arrived(self) -> None:
        """Report the verdicts of answers; those that are stored are read by `read`, at the end of the wave."""
        arrived = self.arrived
        self.arrived = []
        if self.pending == 1:  # this reader, after the last answer: most groups have one request
            return
        redactor = self.context.redactor
        letters = max((calls.calls.letters for calls in self.started.values()), default=0)
        found = await search_off_loop(lambda: [read(redactor) for read in arrived], letters)
        # a thread that hung may report after the wave is over
        self.report_verdicts(
            verdict for verdict in chain(*found) if verdict.key not in self.reported
        )

    def start(self, branch: str, calls: GroupCalls) -> None:
        """Start the calls of a branch; `report_answered` gets this group when all of all branches have an answer."""
        self.started[branch] = started = calls.start(self.context.config.langsmith)
        self.pending += len(started.tasks)
        for task in started.tasks:
            task.add_done_callback(self._count_answer)
        self._count_answer()

    def _count_answer(self, _task: object = None) -> None:
        self.pending -= 1
        if not self.pending:
            self.report_answered(self)

    def read(self, answers: Mapping[str, Sequence[Sequence[Any]]], redactor: Redactor) -> None:
        """Add what the branches found, in the order of their names, whichever was answered first."""
        for reader in self.readers:
            self.error = self.error or reader.exception()
        self.readers = []
        for branch in sorted(answers):
            calls = self.started.pop(branch).calls
            found = catch_errors(partial(calls.read, answers[branch], redactor))
            if isinstance(found, BaseException):
                self.error = found
            elif branch == "derive":
                self.material += found
            else:
                self.verdicts += found


class UnplannedGroup(NamedTuple):
    """A group that the score graph plans at its first step: a run of another graph, for one task, costs as much."""

    group: Group
    context: RunContext
    outcome: "asyncio.Future[Outcome]"


@dataclass(slots=True, eq=False)
class GroupsInWork:
    """The groups of a run of the score graph. Others may be added until `close`; the run ends when all are out."""

    has_begun: bool = False
    _unplanned: list[UnplannedGroup] = field(default_factory=list)
    _groups: dict[int, GroupInWork] = field(default_factory=dict)
    _ready: list[GroupInWork] = field(default_factory=list)
    _count: int = 0
    _running_nodes: int = 0
    _is_closed: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __getitem__(self, number: int) -> GroupInWork:
        return self._groups[number]

    @property
    def is_over(self) -> bool:
        return self._is_closed and not self._groups and not self._unplanned

    def add(
        self, groups: Iterable[PlannedGroup], context: BatchContext
    ) -> "list[asyncio.Future[Outcome]]":
        """Let groups in, each with its context; return the future traces, or the error, of each."""
        loop = asyncio.get_running_loop()
        added = []
        for group, group_context in zip(groups, context.groups, strict=True):
            outcome: asyncio.Future[Outcome] = loop.create_future()
            self._enter(group, group_context, outcome)
            added.append(outcome)
        return added

    def add_unplanned(self, group: Group, context: RunContext) -> "asyncio.Future[Outcome]":
        """Let a group in whose task code can plan, before the run begins; return its future traces, or its error."""
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._unplanned.append(UnplannedGroup(group, context, outcome))
        return outcome

    def plan_by_code(self) -> None:
        """Make the plans of the unplanned groups, from their tasks alone; an error is the outcome of its group."""
        for group, context, outcome in self._unplanned:
            plan = plan_by_code(group.task, context)
            if isinstance(plan, Exception):
                outcome.set_result(plan)
            else:
                self._enter(plan_group(group, plan), context, outcome)
        self._unplanned.clear()

    def _enter(
        self, group: PlannedGroup, context: RunContext, outcome: "asyncio.Future[Outcome]"
    ) -> None:
        entry = GroupInWork(self._count, group, context, outcome, self._note_ready)
        self._groups[self._count] = entry
        self._count += 1
        self._note_ready(entry)

    def close(self) -> None:
        self._is_closed = True
        self._news.set()

    def _note_ready(self, entry: GroupInWork) -> None:
        self._ready.append(entry)
        if len(self._ready) in (
            1,
            len(self._groups),
        ):  # to wake the graph costs as much as a turn saves
            self._news.set()

    async def wait(self) -> list[GroupInWork]:
        """Return the groups that are new or answered, in the order of their numbers; none if all are out."""
        while not self._ready and not self.is_over:
            await self._wait_for_news()
        if len(self._ready) < len(self._groups):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wait_for_news(), PAUSE)
        return self._take_ready()

    async def _wait_for_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _take_ready(self) -> list[GroupInWork]:
        ready = sorted(self._ready, key=attrgetter("number"))
        self._ready = []
        return ready

    def begin_step(self, nodes: int) -> None:
        """Note the number of nodes that run at once; the last of them to end calls `go_on` with an effect."""
        self._running_nodes = nodes

    def go_on(self, state: ScoreState) -> Command[str]:
        """Return where the graph goes after a node: nowhere while others of the step run.

        Where every group has all answers, as those of code do at once, and no wave is left, a step is spared.
        """
        self._running_nodes -= 1
        if self._running_nodes:
            return Command()
        is_answered = 0 < len(self._ready) == len(self._groups)
        if is_answered and all(entry.is_in_last_wave for entry in self._ready):
            self.begin_step(1)
            complete = tuple(entry.number for entry in self._take_ready())
            return Command(goto="decide", update={"work": {}, "complete": complete})
        if self.is_over or state["turn"] >= TURNS_A_RUN:
            return Command(goto=END)
        return Command(goto="route")

    def let_out(self, entry: GroupInWork, outcome: Outcome) -> None:
        del self._groups[entry.number]
        entry.outcome.set_result(outcome)

    async def cancel(self) -> None:
        """Cancel all calls, and wait until they have ended."""
        started = [calls for entry in self._groups.values() for calls in entry.started.values()]
        tasks = [task for calls in started for task in calls.tasks]
        tasks += [reader for entry in self._groups.values() for reader in entry.readers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for entry in self._groups.values():
            entry.outcome.cancel()
        for unplanned in self._unplanned:
            unplanned.outcome.cancel()


ScoreNode = Callable[[ScoreState, Runtime[GroupsInWork]], Awaitable[Command[str]]]
GroupCallsMaker = Callable[[GroupInWork, WaveWork], GroupCalls | None]
BRANCHES: tuple[str, ...] = get_args(Branch)
_NO_WORK = WaveWork()


async def score_groups(groups: Sequence[PlannedGroup], context: BatchContext) -> list[Outcome]:
    """Return the traces of each group, in the order in which its responses were submitted, or its error."""
    in_work = GroupsInWork()
    outcomes = in_work.add(groups, context)
    in_work.close()
    await run_machine(in_work)
    return [outcome.result() for outcome in outcomes]


async def run_machine(groups: GroupsInWork) -> None:
    """Run the score graph until the groups are closed and all of them are out."""
    limit = RunnableConfig(recursion_limit=3 * TURNS_A_RUN + 10)
    start = ScoreState(turn=0)
    groups.has_begun = True
    try:
        while not groups.is_over:
            # what it finds is in the groups, and without a checkpointer nothing is streamed: not to
            # stream the states spares 3 % of the CPU of one `ascore`
            await build().ainvoke(start, config=limit, context=groups, stream_mode="checkpoints")
    finally:
        await groups.cancel()


async def _plan(state: ScoreState, runtime: Runtime[GroupsInWork]) -> Command[str]:
    """Make the plans that are missing, and then route the groups, because another step costs as much as a question."""
    runtime.context.plan_by_code()
    return await _take_turn(runtime.context, state["turn"])


async def _route(state: ScoreState, runtime: Runtime[GroupsInWork]) -> Command[str]:
    return await _take_turn(runtime.context, state["turn"])


async def _take_turn(groups: GroupsInWork, turn: int) -> Command[str]:
    """Wait for groups, and choose their next work; those without any are complete.

    A Command makes a run a third cheaper than conditional edges, which copy every channel.
    """
    arrived = await groups.wait()
    await _read_answers(arrived)
    # response gates read the whole text
    texts = (response.text for entry in arrived for response in entry.group.responses)
    longest = max(map(len, texts), default=0)
    found = await search_off_loop(lambda: [entry.take_next_work() for entry in arrived], longest)
    work = {}
    complete = []
    for entry, entry_work in zip(arrived, found, strict=True):
        entry.report_verdicts(entry.verdicts)
        if entry_work.branches:
            work[entry.number] = entry_work
        else:
            complete.append(entry.number)
    branches = {branch for entry_work in work.values() for branch in entry_work.branches}
    nodes = [*sorted(branches), *(["decide"] if complete else [])]
    groups.begin_step(len(nodes))
    update = {"turn": turn + 1, "work": work, "complete": tuple(complete)}
    return Command(goto=nodes or END, update=update)


async def _read_answers(entries: Sequence[GroupInWork]) -> None:
    """Read the answers of groups that have all of their wave.

    The redactor is for the environment after these calls, since the code that they ran may have changed it.
    """
    answered = [entry for entry in entries if entry.started]
    if not answered:
        return
    context = answered[0].context
    answers = [
        {branch: calls.take_answers() for branch, calls in entry.started.items()}
        for entry in answered
    ]

    def read_all() -> None:
        redactor = context.redactor
        for entry, entry_answers in zip(answered, answers, strict=True):
            entry.read(entry_answers, redactor)

    letters = (calls.calls.letters for entry in answered for calls in entry.started.values())
    isolated = partial(fresh_context(context.config.langsmith).run, read_all)
    await search_off_loop(isolated, max(letters))


def _derivations_of(entry: GroupInWork, work: WaveWork) -> GroupCalls | None:
    tasks = work.derivation_tasks
    return deriver_calls(tasks, entry.group.plan.survey, entry.context) if tasks else None


def _questions_of(branch: str) -> GroupCallsMaker:
    def make_calls(entry: GroupInWork, work: WaveWork) -> GroupCalls | None:
        tasks = work.evaluator_tasks.get(branch)
        if not tasks:
            return None
        entry.report_questions(tasks)
        return evaluator_calls(tasks, entry.group.plan.survey, entry.context, entry.note_answer)

    return make_calls


def _branch_node(branch: str, make_calls: GroupCallsMaker) -> ScoreNode:
    """Return a node that starts the calls of a branch for the groups of the turn."""

    async def node(state: ScoreState, runtime: Runtime[GroupsInWork]) -> Command[str]:
        groups = runtime.context
        for number, work in state["work"].items():
            calls = make_calls(groups[number], work)
            if calls is not None:
                groups[number].start(branch, calls)
        return groups.go_on(state)

    return node


async def _decide(state: ScoreState, runtime: Runtime[GroupsInWork]) -> Command[str]:
    """Compute statistics, rewards and traces of each complete group, and let it out.

    An error of a combiner is that of its group.
    """
    groups = runtime.context
    complete = [groups[number] for number in state["complete"]]
    await _read_answers(complete)
    decided = [entry for entry in complete if entry.error is None]
    for entry in decided:
        entry.report_verdicts(entry.verdicts)
        entry.verdicts = list(mark_superseded(entry.group.plan.survey, entry.verdicts))
    inputs = [_decision_input(entry) for entry in decided]
    combiners = complete[0].context.combiners
    rewards = compute_rewards_of_each(inputs, combiners, RewardRow.to_reward)
    for entry, group_rewards in zip(decided, rewards, strict=True):
        if isinstance(group_rewards, Exception):
            entry.error = group_rewards
            continue
        findings = GroupFindings(entry.verdicts, entry.material, group_rewards)
        groups.let_out(
            entry, catch_errors(partial(build_traces, entry.group, findings, entry.context))
        )
    for entry in complete:
        if entry.error is not None:
            groups.let_out(entry, entry.error)
    return groups.go_on(state)


def _decision_input(entry: GroupInWork) -> GroupVerdicts:
    plan = entry.group.plan
    names = [response.id for response in entry.group.responses]
    return GroupVerdicts(plan.decision, plan.survey.questions, names, entry.verdicts)


_BRANCH_NODES: Mapping[str, ScoreNode] = {
    "derive": _branch_node("derive", _derivations_of),
    **{branch: _branch_node(branch, _questions_of(branch)) for branch in BRANCHES},
}


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[ScoreState, GroupsInWork, ScoreState, ScoreState]:
    """Return the compiled graph: the branches and `decide` lead back to `route`, which chooses the next nodes."""
    graph = StateGraph(ScoreState, context_schema=GroupsInWork)
    turns = ("derive", *BRANCHES, "decide", END)
    graph.add_node("plan", _plan, destinations=turns)
    graph.add_node("route", _route, destinations=turns)
    graph.add_edge(START, "plan")
    for branch, node in _BRANCH_NODES.items():
        graph.add_node(branch, node, destinations=("route", "decide"))  # type: ignore[call-overload]
    graph.add_node("decide", _decide, destinations=("route", END))
    return graph.compile(name="score")


class GroupFindings(NamedTuple):
    """The findings about a group: verdicts and material in any order, and the rewards in canonical order."""

    verdicts: Sequence[RecordedVerdict]
    material: Sequence[Material]
    rewards: Sequence[Reward]


def build_traces(group: PlannedGroup, findings: GroupFindings, context: RunContext) -> list[Trace]:
    """Return one trace for each response, in the order in which they were submitted.

    Raises ConfigError where the judge would evaluate what was trained on its own rewards, and that is refused.
    """
    plan = group.plan
    questions = plan.survey.questions
    calls = {**group.reused_results.calls, **context.calls}
    counting = (
        (verdict.question, verdict.score) for verdict in findings.verdicts if not verdict.superseded
    )
    statistics = group_statistics(questions, counting)
    in_order = sorted(findings.verdicts, key=lambda verdict: verdict.key.sort_key)
    by_response = group_verdicts_by_response(questions, [r.id for r in group.responses], in_order)
    material_of: dict[str, list[Material]] = defaultdict(list)
    for item in findings.material:
        material_of[item.response].append(item)
    reward_of = {
        response.id: reward
        for response, reward in zip(group.responses, findings.rewards, strict=True)
    }
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


def _referenced_calls(
    calls: Mapping[str, Call], users: Iterable[RecordedVerdict | Material]
) -> tuple[Call, ...]:
    referenced = {use.id for user in users for use in user.calls}
    return tuple(calls[name] for name in sorted(referenced & calls.keys()))


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])
