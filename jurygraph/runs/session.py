"""Scoring into a run: what is there already stays, what is missing is asked."""

import gc
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import BudgetExceeded, InputError, PlanError
from jurygraph.graphs.routing import NOTHING
from jurygraph.runs.bill import Source, is_replay
from jurygraph.runs.calls import Calls
from jurygraph.runs.closing import close_record
from jurygraph.runs.difference import what_differs
from jurygraph.runs.folder import typed
from jurygraph.runs.forecast import Forecast, unscreened
from jurygraph.runs.header import Extent, Header, Seat
from jurygraph.runs.identity import model_of
from jurygraph.runs.run import Run
from jurygraph.runs.summary import Summary
from jurygraph.runs.writer import Writer
from jurygraph.schema import Call, Plan, Response, Task, Trace
from jurygraph.sources import Work

if TYPE_CHECKING:
    from jurygraph.jury import Group, Jury
    from jurygraph.runs.branch import Branch
    from jurygraph.runs.estimate import Estimator

Report = Callable[[int], None]


class Session:
    """One sitting of a jury over a file of tasks: `prepare` plans what is to come, `score` fills the run.

    A run that is there already is locked until `close`; a new one leaves nothing behind unless `prepare` succeeds.
    """

    def __init__(
        self, folder: Path, jury: "Jury", work: Work, limit: int | None = None, branch: "Branch | None" = None
    ) -> None:
        """Look at what is there.

        Raises `InputError` where a run was begun with other files, config, model or evaluators, or where another
        process writes it.
        """
        self.folder = folder
        self.jury = jury
        self.limit = limit
        self.summary = Summary()
        self._work = work
        self._branch = branch
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
            found = list(what_differs(run, self._header(), self._work))
            if found:
                hint = "use another --out, or --branch to ask just what changed"
                raise InputError(f"{self.folder}: was begun with other settings: {'; '.join(found)}; {hint}")
            for one in run.scored():
                self._count(run, one.trace)
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
            config=jury.config,
            model=model_of(jury),
            evaluators={
                name: Seat(version=one.version, audience=one.audience) for name, one in jury.evaluators.items()
            },
            derivers={name: one.version for name, one in jury.derivers.items()},
            combiners={name: one.version for name, one in jury.combiners.items()},
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
        expected, estimator, evaluators = Forecast(), self._estimator(), self.jury.evaluators
        try:
            for task, group in self._work.pairs(self.done, self.limit):
                plan = await self._planned(task)
                recalled = self._branch.recall(task, group, plan) if self._branch else NOTHING
                expected = expected.with_group(plan, len(group), evaluators, recalled.verdicts.values())
                if estimator is not None:
                    estimator.add(await self.jury.arequests(task, group, unscreened(plan, evaluators), recalled))
                report(len(group))
        finally:
            if self.jury.gateway is not None:
                await self.jury.gateway.close()
        return expected if estimator is None else replace(expected, model=estimator.estimate())

    def _estimator(self) -> "Estimator | None":
        """Who reckons what a model would be asked; it knows what the run holds."""
        gateway = self.jury.gateway
        if gateway is None:
            return None
        from jurygraph.runs.estimate import Estimator  # nobody pays for it who asks no model

        if self._run is not None:
            gateway.sink = Calls(self._run.ledger)
        return Estimator(gateway)

    async def prepare(self, report: Report) -> None:
        """Plan every task that is still to be planned, all or none; `report` is told of each.

        Raises `PlanError` with the file and line of the task.
        """
        if self.finished:
            return
        if self._run is None:
            self._run = Run.create(self.folder, self._header(), uuid.uuid4().hex)
        for task, _ in self._work.pairs(self._run.tasks_planned, self.limit):
            self._run.add_plan(task, await self._planned(task))
            report(1)
        self._run.ledger.commit()

    @property
    def to_plan(self) -> int:
        """How many tasks are still to be planned."""
        return 0 if self.finished else self._work.extent(self._run.tasks_planned if self._run else 0, self.limit)[0]

    async def _planned(self, task: Task) -> Plan:
        try:
            return await self.jury.aprepare(task)
        except PlanError as error:
            line = self._work.line(task.id)
            place = self._work.tasks.name + ("" if line is None else f", line {line}")
            error.args = (f"{place}: {error}",)  # it stays the error that it is: a GraphCycleError has its cycle
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
                gateway.sink = Calls(run.ledger, writer)
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
        shown: dict[str, tuple[Plan, tuple[Response, ...]]] = {}

        def groups() -> "Iterator[Group]":
            for task, responses in self._work.pairs(self.done, self.limit):
                plan = run.plan_of(task.id)
                shown[task.id] = plan, responses
                yield task, responses, plan

        async for traces in self.jury.ascore_all(groups(), self._branch.recall if self._branch else None):
            _refuse_over_budget(traces)
            plan, responses = shown.pop(traces[0].task_id)
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
    """Libraries and plans stay, and what judging makes holds few cycles: the collector need not look for them often."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_SELDOM = (100_000, 50, 100)


def _refuse_over_budget(traces: Sequence[Trace]) -> None:
    """A group that lacks what there was no money for is not kept: with more, the same command judges it whole."""
    for verdict in (verdict for trace in traces for verdict in trace.verdicts):
        if verdict.failure is not None and verdict.failure.kind == "budget":
            raise BudgetExceeded(f"{verdict.failure.message}; what was scored is kept, and the same command goes on")
