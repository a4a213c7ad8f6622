"""The groups of a run of the score graph: what is known of each, and the calls of its present wave."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from langgraph.graph import END
from langgraph.types import Command

from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.calls import MakeVerdicts, NodeCalls
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.events import QuestionSent, VerdictGiven
from jurygraph.graphs.groups import GroupOutcome, PlannedGroup
from jurygraph.graphs.routing import DueJudgement, WaveWork, next_work
from jurygraph.graphs.state import ScoreState
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Material, RecordedVerdict
from jurygraph.schema.verdict import VerdictKey

PAUSE_SECONDS = 0.02
"""Seconds for which a turn waits for more groups, while others are judged: a turn costs CPU, however many it takes."""
MAX_TURNS_PER_GRAPH_RUN = 500
"""Number of turns after which another run of the graph goes on, since a tracer keeps a run until its end."""


@dataclass(slots=True, eq=False)
class ActiveGroup:
    """A group, what is known of it, and the calls of its present wave, by branch.

    `pending_count` counts the branches of the wave that have not started their calls, and the calls without an answer.
    """

    number: int
    group: PlannedGroup
    context: GraphContext
    outcome_future: "asyncio.Future[GroupOutcome]"
    report_group_answered: "Callable[[ActiveGroup], None]"
    wave_number: int = 0
    material: list[Material] = field(default_factory=list)
    verdicts: list[RecordedVerdict] = field(default_factory=list)
    started_calls: dict[str, NodeCalls] = field(default_factory=dict)
    pending_count: int = 0
    error: BaseException | None = None
    reported_verdict_by_key: dict[VerdictKey, RecordedVerdict] = field(default_factory=dict)
    """The verdicts that the listener got."""

    @property
    def is_in_last_wave(self) -> bool:
        survey = self.group.plan.survey
        return 0 < self.wave_number >= len(survey.waves) and not survey.escalating_questions

    def take_next_work(self) -> WaveWork:
        """Return the next work, without any branches after the last wave or an error."""
        if self.error is not None:
            return _NO_WORK
        survey = self.group.plan.survey
        findings = self.material, self.verdicts
        work, self.wave_number = next_work(
            survey, self.wave_number, self.group.responses, *findings, self.group.reused_results
        )
        self.material += work.material
        self.verdicts += work.settled_verdicts
        self.pending_count = len(work.due_branch_names)
        return work

    def report_questions(self, judgements: Sequence[DueJudgement]) -> None:
        """Pass the questions on to the listener, if there is one."""
        listener = self.context.listener
        if listener is None:
            return
        for judgement in judgements:
            question = judgement.question
            listener(
                QuestionSent(
                    task_id=self.group.plan.task_id,
                    question=question.id,
                    evaluator=question.evaluator,
                    responses=judgement.shown_response_ids,
                    sample=judgement.sample,
                    judge=judgement.judge,
                    turn=judgement.turn,
                )
            )

    def report_verdicts(self, verdicts: Iterable[RecordedVerdict]) -> None:
        """Tell the listener, if there is one, the verdicts that are new.

        One that differs from when its answer came is new, too: its batch failed later, or the environment got a secret.
        """
        listener = self.context.listener
        if listener is None:
            return
        for verdict in verdicts:
            if self.reported_verdict_by_key.get(verdict.key) != verdict:
                self.reported_verdict_by_key[verdict.key] = verdict
                listener(VerdictGiven(task_id=self.group.plan.task_id, verdict=verdict))

    def note_answer(self, make_verdicts: MakeVerdicts) -> None:
        """Tell the listener the verdicts of an answer that comes before the wave is over; `add_findings` gives all."""
        if not self.pending_count:
            return

        def report() -> None:
            verdicts = make_verdicts(self.context.redactor)
            # a thread that hung may report after its wave is over
            self.report_verdicts(
                verdict for verdict in verdicts if verdict.key not in self.reported_verdict_by_key
            )

        self.error = self.error or result_or_error(report)

    def start(self, branch: str, node_calls: NodeCalls) -> None:
        """Start the calls of a branch; `report_group_answered` gets this group when all of all branches have an
        answer."""
        self.started_calls[branch] = node_calls
        tasks = node_calls.start(self.context.config.langsmith)
        self.pending_count += len(tasks)
        for task in tasks:
            task.add_done_callback(self._count_down_pending)
        self._count_down_pending()

    def _count_down_pending(self, _task: object = None) -> None:
        self.pending_count -= 1
        if not self.pending_count:
            self.report_group_answered(self)

    def add_findings(self, redactor: Redactor) -> None:
        """Add what the branches found, in the order of their names, whichever was answered first."""
        for branch, node_calls in sorted(self.started_calls.items()):
            found = result_or_error(partial(node_calls.findings, redactor))
            if isinstance(found, BaseException):
                self.error = found
            elif branch == "derive":
                self.material += found
            else:
                self.verdicts += found
        self.started_calls.clear()


@dataclass(slots=True, eq=False)
class ActiveGroups:
    """The groups of a run of the score graph. Others may be admitted until `close`; the run ends when all are out."""

    _groups_by_number: dict[int, ActiveGroup] = field(default_factory=dict)
    _ready_groups: list[ActiveGroup] = field(default_factory=list)
    _admitted_count: int = 0
    _running_node_count: int = 0
    _is_closed: bool = False
    _group_change_event: asyncio.Event = field(default_factory=asyncio.Event)

    def __getitem__(self, number: int) -> ActiveGroup:
        return self._groups_by_number[number]

    @property
    def has_ended(self) -> bool:
        return self._is_closed and not self._groups_by_number

    def admit_group(
        self, group: PlannedGroup, context: GraphContext
    ) -> "asyncio.Future[GroupOutcome]":
        """Let a group in; return the future of its traces, or of its error."""
        outcome_future = asyncio.get_running_loop().create_future()
        active_group = ActiveGroup(
            self._admitted_count, group, context, outcome_future, self._note_ready_group
        )
        self._groups_by_number[self._admitted_count] = active_group
        self._admitted_count += 1
        self._note_ready_group(active_group)
        return outcome_future

    def close(self) -> None:
        self._is_closed = True
        self._group_change_event.set()

    def _note_ready_group(self, active_group: ActiveGroup) -> None:
        self._ready_groups.append(active_group)
        # to wake the graph costs as much as a turn saves
        if len(self._ready_groups) in (1, len(self._groups_by_number)):
            self._group_change_event.set()

    async def wait(self) -> list[ActiveGroup]:
        """Return the groups that are new or answered, in the order of their numbers; none if all are out."""
        while not self._ready_groups and not self.has_ended:
            await self._wait_for_group_change()
        if len(self._ready_groups) < len(self._groups_by_number):
            # Python 3.11's `asyncio.wait_for` loses a cancellation that comes together with the news.
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._wait_for_group_change()
        return self._take_ready_groups()

    async def _wait_for_group_change(self) -> None:
        self._group_change_event.clear()
        await self._group_change_event.wait()

    def _take_ready_groups(self) -> list[ActiveGroup]:
        ready = sorted(self._ready_groups, key=attrgetter("number"))
        self._ready_groups = []
        return ready

    def note_running_nodes(self, nodes: int) -> None:
        """Note the number of nodes that run at once; the last of them to end calls `next_command` with an effect."""
        self._running_node_count = nodes

    async def next_command(self, state: ScoreState) -> Command[str]:
        """Return where the graph goes after a node: nowhere while others of the step run.

        Where every group has all answers, as those of inline code do at once, and no wave is left, a step is spared.
        So is the one that would only wait for the answers of the last group, since there is no other to let in or out.
        """
        self._running_node_count -= 1
        if self._running_node_count:
            return Command()
        if self._is_closed and len(self._groups_by_number) == 1:
            while not self._ready_groups:
                await self._wait_for_group_change()
        is_answered = 0 < len(self._ready_groups) == len(self._groups_by_number)
        if is_answered and all(active_group.is_in_last_wave for active_group in self._ready_groups):
            self.note_running_nodes(1)
            complete = tuple(active_group.number for active_group in self._take_ready_groups())
            return Command(goto="decide", update={"work": {}, "complete": complete})
        if self.has_ended or state["turn"] >= MAX_TURNS_PER_GRAPH_RUN:
            return Command(goto=END)
        return Command(goto="route")

    def release_group(self, active_group: ActiveGroup, outcome: GroupOutcome) -> None:
        del self._groups_by_number[active_group.number]
        active_group.outcome_future.set_result(outcome)

    async def cancel(self) -> None:
        """Cancel all calls, and wait until they have ended; cancelled again meanwhile, it still ends all outcomes."""
        tasks = []
        for active_group in self._groups_by_number.values():
            for node_calls in active_group.started_calls.values():
                tasks += node_calls.tasks
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for active_group in self._groups_by_number.values():
                active_group.outcome_future.cancel()


_NO_WORK = WaveWork()
