"""Scoring into a run: what is there already stays, what is missing is asked."""

import asyncio
import gc
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import BudgetExceeded, InputError, ModelError, PlanError
from jurygraph.graphs.routing import NOTHING
from jurygraph.graphs.side_by_side import in_order
from jurygraph.runs.calls import Calls, CallsBeside, Found
from jurygraph.runs.canary import Canaries, Canary
from jurygraph.runs.closing import close_record
from jurygraph.runs.figures.bill import Source, is_replay
from jurygraph.runs.figures.forecast import Forecast, unscreened
from jurygraph.runs.figures.summary import Summary
from jurygraph.runs.making.difference import what_differs
from jurygraph.runs.making.planning import PlanningCalls, earlier_answers, profiles_differ
from jurygraph.runs.outline import TraceOutline, failure_message, read_outlines
from jurygraph.runs.progress import Report
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import folder_from, typed
from jurygraph.runs.store.header import Extent, Header
from jurygraph.runs.store.identity import model_of
from jurygraph.runs.store.writer import Writer
from jurygraph.schema import Call, Plan, Response, Task, Trace
from jurygraph.sources import Work
from jurygraph.sources.profiles import ProfilesFile

if TYPE_CHECKING:
    from jurygraph.jury import Group, Jury
    from jurygraph.models.asking import Request
    from jurygraph.runs.figures.estimate import Estimator
    from jurygraph.runs.making.branch import Branch
    from jurygraph.runs.store.ledger import Ledger
    from jurygraph.schema.profile import ProfilesLine


def _lacks_roles(task: Task) -> bool:
    """Whether an annotator must tell roles before it is known which pairs of criteria there are."""
    return task.rubric is not None and any(criterion.role is None for criterion in task.rubric.criteria)


class Session:
    """One sitting of a jury over a file of tasks: `prepare` plans what is to come, `score` fills the run.

    A run that is there already is locked until `close`; a new one leaves nothing behind unless `prepare` succeeds.
    `profiles` say how profiles in text are read. `unread` counts the tasks of a forecast of which a model would have to
    tell profiles, or the roles of criteria, first: of what hangs on that nothing is known. `unanswered` counts the
    pairs and criteria of which the graphs of planned tasks say that an annotator gave no answer. `answers_kept` counts
    those that a planning which was stopped left in the folder for the next sitting.
    """

    def __init__(
        self,
        folder: Path,
        jury: "Jury",
        work: Work,
        limit: int | None = None,
        branch: "Branch | None" = None,
        profiles: ProfilesFile | None = None,
    ) -> None:
        """Look at what is there.

        Raises `InputError` where a run was begun with other files, config, model or evaluators, or where another
        process writes it.
        """
        self.folder = folder
        self.jury = jury
        self.limit = limit
        self.summary = Summary()
        self._canaries = Canaries.of(jury)
        self.summary.canaries = None if self._canaries is None else self._canaries.tally
        self.unread = self.unanswered = self.answers_kept = 0
        self._work = work
        self._branch = branch
        self._profiles = profiles
        if branch is not None:
            branch.serve(jury)
        self._run = Run.complete(folder) or Run.to_write(folder)
        if self._run is not None:
            self._look_at(self._run)
        self.done = self._run.tasks_scored if self._run else 0
        self.left = Extent.of(work.extent(self.done, limit))
        self.finished = self._run is not None and not self.left.tasks

    def _look_at(self, run: Run) -> None:
        try:
            found = [*what_differs(run, self._header(), self._work), *profiles_differ(run, self._profiles, self._work)]
            if found:
                hint = "use another --out, or --branch to ask just what changed"
                raise InputError(f"{self.folder}: was begun with other settings: {'; '.join(found)}; {hint}")
            for call in run.planning_calls():
                self.summary.bill.add(call, self._source(run, call))
            for one in read_outlines(run):
                self._count_stored(run, one)
            if self._canaries is not None:
                for call in self._canaries.look_at(run.ledger):
                    self.summary.bill.add(call, self._source(run, call))
            if run.closed and self._work.extent(run.tasks_scored, self.limit)[0]:
                state = f"was closed when {run.tasks_scored} of {self.tasks} tasks were scored"
                hint = f"score into another --out, with --branch {typed(self.folder)}"
                raise InputError(f"{self.folder}: {state}; {hint}")
        except BaseException:
            run.close()
            raise

    def _header(self) -> Header:
        jury, work = self.jury, self._work
        return Header(
            tasks=work.tasks,
            responses=work.responses,
            profiles=None if self._profiles is None else self._profiles.mark,
            edges=self._work.edges,
            config=jury.config,
            model=model_of(jury),
            domain=jury.domain,
            evaluators={name: one.seat for name, one in jury.evaluators.items()},
            derivers={name: one.version for name, one in jury.derivers.items()},
            combiners={name: one.version for name, one in jury.combiners.items()},
            code=folder_from(self.folder, jury.code_folder),
            asked=Extent.of(work.extent()),
            branch=self._branch.origin(self.folder) if self._branch else None,
        )

    @property
    def tasks(self) -> int:
        """How many tasks the file has."""
        return self._work.extent()[0]

    async def forecast(self, report: Report) -> Forecast:
        """What is still to be asked, and what it would come to where a model is. Sends and writes nothing.

        `report` is told how many responses a group has.
        """
        estimator = self._estimator()
        try:
            with _collected_seldom():
                expected = await self._expected(estimator, report)
        finally:
            if self.jury.gateway is not None:
                await self.jury.gateway.close()
        return expected if estimator is None else replace(expected, model=estimator.estimate())

    async def _expected(self, estimator: "Estimator | None", report: Report) -> Forecast:
        """What is still to be asked; what of that a model would be asked is told the estimator."""
        expected, evaluators = Forecast(), self.jury.evaluators
        for task, group in self._work.pairs(self.done, self.limit):
            plan = await self._foreseen(task, estimator)
            if plan is None:
                expected = replace(expected, tasks=expected.tasks + 1, responses=expected.responses + len(group))
            else:
                recalled = self._branch.recall(task, group, plan) if self._branch else NOTHING
                expected = expected.with_group(plan, len(group), evaluators, recalled.verdicts.values())
                if estimator is not None:
                    asked = unscreened(plan, evaluators)
                    estimator.add(await self.jury.arequests(task, group, asked, recalled))
                    estimator.add(await self._about_canary(task, asked))
            report(len(group))
        return expected

    async def _about_canary(self, task: Task, plan: Plan) -> "list[Request]":
        """What the model would be asked about the canary of a task."""
        canary = self._canaries.next_for(task, plan) if self._canaries else None
        return [] if canary is None else await self.jury.arequests(task, (canary.response,), plan)

    async def _foreseen(self, task: Task, estimator: "Estimator | None") -> Plan | None:
        """The plan of a task, without a graph that a model would have to find; None where one must read its profiles.

        What it would be asked first is told the estimator.
        """
        gateway = self.jury.gateway
        if gateway is None or estimator is None:
            with self._placed(task):
                return (await self.jury.aforesee(task, *self._stated(task)))[0]
        sink, gateway.sink = gateway.sink, self._found
        try:
            with self._placed(task):
                plan, first = await self.jury.aforesee(task, *self._stated(task))
            estimator.add(first)
            self.unread += plan is None or (bool(first) and _lacks_roles(task))
        finally:
            gateway.sink = sink
        return plan

    @cached_property
    def _found(self) -> Found:
        earlier = earlier_answers(self.folder)
        return Found(*self._ledgers, *([] if earlier is None else [earlier]))

    @property
    def _ledgers(self) -> "list[Ledger]":
        """Where the calls by which profiles are read may be known from."""
        known = [self._run.ledger] if self._run is not None else []
        return known if self._branch is None else [*known, self._branch.ledger]

    def _estimator(self) -> "Estimator | None":
        """Who reckons what a model would be asked; it knows what the run holds."""
        gateway = self.jury.gateway
        if gateway is None:
            return None
        from jurygraph.runs.figures.estimate import Estimator  # nobody pays for it who asks no model

        if self._run is not None:
            gateway.sink = Calls(self._run.ledger)
        return Estimator(gateway)

    async def prepare(self, report: Report) -> None:
        """Plan every task that is still to be planned, all or none; `report` is told of each.

        Raises `PlanError`, and `ModelError` or `BudgetExceeded` where a profile could not be read, each with the file
        and line of the task.
        """
        if self.finished:
            return
        if self._run is None:
            self._run = Run.create(self.folder, self._header(), uuid.uuid4().hex)
        gateway = self.jury.gateway
        if gateway is None:
            with _collected_seldom():
                await self._plan(self._run, report)
            return
        others = [] if self._branch is None else [self._branch.ledger]
        gateway.sink = calls = PlanningCalls(self._run, *others, is_durable=not gateway.has_cache)
        try:
            with _collected_seldom():
                await self._plan(self._run, report)
        except BaseException as error:
            if isinstance(error, ModelError | BudgetExceeded):
                await gateway.settle()  # the cache has it then, or the file of answers, for the next time
            await gateway.close()
            self.answers_kept = calls.kept
            calls.close()
            raise
        calls.discard()

    async def _plan(self, run: Run, report: Report) -> None:
        tasks = (task for task, _ in self._work.pairs(run.tasks_planned, self.limit))
        begun = (asyncio.create_task(self._planned(task)) for task in tasks)
        at_once = 1 if self.jury.gateway is None else self.jury.at_once
        async with aclosing(in_order(begun, at_once, _AHEAD)) as planned:
            async for task, plan in planned:
                run.add_plan(task, plan)
                if task.rubric is not None and (record := task.rubric.annotation) is not None:
                    self.unanswered += len(record.unanswered) + len(record.unassigned)
                for call in plan.calls:
                    self.summary.bill.add(call, self._source(run, call))
                report(1)
        run.ledger.commit()

    @property
    def to_plan(self) -> int:
        """How many tasks are still to be planned."""
        return 0 if self.finished else self._work.extent(self._run.tasks_planned if self._run else 0, self.limit)[0]

    async def _planned(self, task: Task) -> tuple[Task, Plan]:
        with self._placed(task):
            return task, await self.jury.aprepare(task, *self._stated(task))

    def _stated(self, task: Task) -> "list[ProfilesLine]":
        """What the PROFILES file says of a task, where there is one that does."""
        stated = None if self._profiles is None else self._profiles.of(task)
        return [] if stated is None else [stated]

    @contextmanager
    def _placed(self, task: Task) -> Iterator[None]:
        """Errors name the file and line of the task."""
        try:
            yield
        except (PlanError, ModelError, BudgetExceeded) as error:
            line = self._work.line(task.id)
            place = self._work.tasks.name + ("" if line is None else f", line {line}")
            again = "" if isinstance(error, PlanError) else f"; {_tried_again(self.jury)}"
            error.args = (f"{place}: {error}{again}",)  # it stays the error that it is: a GraphCycleError has its cycle
            raise

    async def score(self, report: Report) -> None:
        """Score what was planned; `report` is told how many responses a group had. Durable when it returns."""
        if self.finished:
            return
        run = self._run
        assert run is not None, "prepare() comes before score()"
        writer, gateway = Writer(run.ledger), self.jury.gateway
        try:
            if gateway is not None:
                others = () if self._branch is None else self._branch.asked_alike
                gateway.sink = CallsBeside(Calls(run.ledger, writer), *others)
            with _collected_seldom():
                await self._fill(run, writer, report)
        except BudgetExceeded:
            if gateway is not None:
                await gateway.settle()
            raise
        finally:
            if gateway is not None:
                await gateway.close()
            writer.close()
        self.end()

    async def _fill(self, run: Run, writer: Writer, report: Report) -> None:
        shown: deque[tuple[Plan, tuple[Response, ...], Canary | None]] = deque()

        def groups() -> "Iterator[Group]":
            for task, responses in self._work.pairs(self.done, self.limit):
                plan = run.plan_of(task.id)
                canary = self._canaries.next_for(task, plan) if self._canaries else None
                if canary is not None:  # first: once its task is scored, nobody comes back to it
                    shown.append((plan, (canary.response,), canary))
                    yield task, (canary.response,), plan
                shown.append((plan, responses, None))
                yield task, responses, plan

        async for traces in self.jury.ascore_all(groups(), self._branch.recall if self._branch else None):
            _refuse_over_budget(traces)
            plan, responses, canary = shown.popleft()
            if canary is not None and self._canaries is not None:
                writer.append([self._canaries.kept(canary, traces[0])])
                for call in traces[0].calls:
                    self.summary.bill.add(call, self._source(run, call))
                continue
            writer.append(run.drafts(plan, traces, responses))
            if self._branch is not None:
                self._branch.count(traces)
            for trace in traces:
                self._count(run, trace)
            report(len(traces))

    def _count(self, run: Run, trace: Trace) -> None:
        self.summary.add(trace)
        for call in trace.calls:
            self.summary.bill.add(call, self._source(run, call))

    def _count_stored(self, run: Run, outline: TraceOutline) -> None:
        self.summary.add_outline(outline, lambda verdict: failure_message(run, outline, verdict))
        for call in map(Call.model_validate, outline.body.get("calls", ())):
            self.summary.bill.add(call, self._source(run, call))

    def _source(self, run: Run, call: Call) -> Source:
        """Where the reply of a call came from. One that the run itself has no record of is another run's."""
        if run.header.branch is not None and run.ledger.find("call", call.id) is None:
            return "carried"
        if is_replay(self.jury):
            return "replayed"
        return "cached" if call.cache_hit else "sent"

    def end(self) -> None:
        """Close a run that has everything: it may have been stopped just before it could say so."""
        run = self._run
        if run is not None and not run.closed and run.tasks_scored == self.tasks:
            close_record(run)

    def close(self) -> None:
        """Let another process write the run; one that was begun and not prepared is gone."""
        if self._run is not None:
            self._run.close()
            self._run = None


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """What is there stays, and what planning and judging make holds few cycles: the collector need not look often."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_SELDOM = (100_000, 50, 100)
_AHEAD = 8
"""Plans that may wait for one before them, for each task that is planned at once."""


def _tried_again(jury: "Jury") -> str:
    kept = ", with what the cache keeps of this time" if jury.config.calls.cache else ", with the answers kept so far"
    return f"nothing was written, and the same command tries again{kept}"


def _refuse_over_budget(traces: Sequence[Trace]) -> None:
    """A group that lacks what there was no money for is not kept: with more, the same command judges it whole."""
    for verdict in (verdict for trace in traces for verdict in trace.verdicts):
        if verdict.failure is not None and verdict.failure.kind == "budget":
            raise BudgetExceeded(f"{verdict.failure.message}; what was scored is kept, and the same command goes on")
