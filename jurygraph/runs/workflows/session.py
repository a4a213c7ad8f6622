"""Score into a run: existing results are kept, and only missing ones are requested."""

import asyncio
import gc
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jurygraph.concurrency import gather_in_order
from jurygraph.errors import BudgetExceeded, InputError, ModelError, PlanError
from jurygraph.graphs.routing import NO_KNOWN_RESULTS, KnownResults
from jurygraph.group import Group
from jurygraph.planner import Planner
from jurygraph.runs.calls import CallStore
from jurygraph.runs.canary import Canaries, Canary
from jurygraph.runs.close_record import append_close_record
from jurygraph.runs.outline import TraceOutline, failure_message, read_groups
from jurygraph.runs.progress import ProgressCallback
from jurygraph.runs.reports.estimate import Estimator, Forecast, ReplySource, is_replay, without_model_conditions
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import relative_folder, shell_quote
from jurygraph.runs.store.header import Extent, Header
from jurygraph.runs.store.identity import model_of
from jurygraph.runs.store.writer import Writer
from jurygraph.runs.workflows.planning import PlanningCalls, describe_profile_differences, open_planning_calls
from jurygraph.runs.workflows.run_differences import describe_differences
from jurygraph.runs.writable_run import WritableRun
from jurygraph.schema import Call, Plan, Response, Task, Trace
from jurygraph.sources import TaskSource
from jurygraph.sources.profiles import ProfilesFile

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.models.request import CallSink, Request
    from jurygraph.runs.store.ledger import Ledger
    from jurygraph.runs.workflows.branch import Branch
    from jurygraph.schema.profile import ProfilesLine


def _lacks_roles(task: Task) -> bool:
    """Return whether an annotator must assign roles before the candidate pairs of criteria are known."""
    return task.rubric is not None and any(criterion.role is None for criterion in task.rubric.criteria)


class _StartedGroup(NamedTuple):
    """A group whose traces are still to be stored; `canary` is its known-bad response, None for a task's own group."""

    plan: Plan
    responses: Sequence[Response]
    canary: Canary | None = None


class ScoringSession:
    """A session of a jury over a file of tasks: `prepare` plans the remaining tasks, `score` scores them into the run.

    An existing run is locked until `close`; a new one leaves nothing behind unless `prepare` succeeds. `profiles` gives
    the constraints and tensions of profiles in text. `tasks_needing_model` counts the tasks of a forecast whose
    profiles or criterion roles a model must determine first: requests that depend on these are not in the forecast.
    `unanswered_annotations` counts the pairs and criteria that an annotator left unanswered in the planned tasks.
    `stored_planning_calls` is the number of calls that a stopped planning left in the folder for the next session.
    """

    def __init__(
        self,
        folder: Path,
        jury: "Jury",
        work: TaskSource,
        limit: int | None = None,
        branch: "Branch | None" = None,
        profiles: ProfilesFile | None = None,
    ) -> None:
        """Open the run in the folder, if there is one, and count its results.

        Raises `InputError` where a run was begun with other files, config, model or evaluators, or where another
        process writes it.
        """
        self.folder = folder
        self.jury = jury
        self._planner = Planner(jury)
        self.limit = limit
        self.summary = Summary()
        self._canaries = Canaries.from_jury(jury)
        self.summary.canaries = None if self._canaries is None else self._canaries.tally
        self.tasks_needing_model = self.unanswered_annotations = self.stored_planning_calls = 0
        self._work = work
        self._branch = branch
        self._profiles = profiles
        if branch is not None:
            branch.set_jury(jury)
        self._run = Run.open_if_closed(folder) or WritableRun.open_for_writing(folder)
        if self._run is not None:
            self._load_run(self._run)
        self.tasks_done = self._run.tasks_scored if self._run else 0
        self.remaining = Extent.of(work.extent(self.tasks_done, limit))
        self.is_finished = self._run is not None and not self.remaining.tasks

    def _load_run(self, run: Run) -> None:
        try:
            differences = [
                *describe_differences(run, self._build_header(), self._work),
                *describe_profile_differences(run, self._profiles, self._work),
            ]
            if differences:
                hint = "use another --out, or --branch to request only what changed"
                raise InputError(f"{self.folder}: was started with other settings: {'; '.join(differences)}; {hint}")
            for call in run.planning_calls():
                self.summary.bill.add(call, self._source(run, call))
            for group in read_groups(run):
                for outline in group.traces:
                    self._count_stored(run, outline)
            if self._canaries is not None:
                for call in self._canaries.load(run.ledger):
                    self.summary.bill.add(call, self._source(run, call))
            if run.is_closed and self._work.extent(run.tasks_scored, self.limit)[0]:
                problem = f"was closed when {run.tasks_scored} of {self.tasks} tasks were scored"
                hint = f"score into another --out, with --branch {shell_quote(self.folder)}"
                raise InputError(f"{self.folder}: {problem}; {hint}")
        except BaseException:
            run.close()
            raise

    def _build_header(self) -> Header:
        jury, work = self.jury, self._work
        return Header(
            tasks=work.tasks,
            responses=work.responses,
            profiles=None if self._profiles is None else self._profiles.mark,
            edges=self._work.edges,
            config=jury.config,
            model=model_of(jury),
            domain=jury.domain,
            evaluators={name: component.record for name, component in jury.evaluators.items()},
            derivers={name: component.version for name, component in jury.derivers.items()},
            combiners={name: component.version for name, component in jury.combiners.items()},
            code=relative_folder(self.folder, jury.code_folder),
            extent=Extent.of(work.extent()),
            branch=self._branch.origin(self.folder) if self._branch else None,
        )

    @property
    def tasks(self) -> int:
        """Return the number of tasks in the file."""
        return self._work.extent()[0]

    async def forecast(self, report: ProgressCallback) -> Forecast:
        """Return a forecast of the remaining work and, with a model, of its calls. Sends and writes nothing.

        `report` receives the number of responses of each group.
        """
        estimator = self._make_estimator()
        try:
            with _rare_garbage_collection():
                expected = await self._forecast_with(estimator, report)
        finally:
            if self.jury.gateway is not None:
                await self.jury.gateway.close()
        return expected if estimator is None else replace(expected, model=estimator.estimate())

    async def _forecast_with(self, estimator: Estimator | None, report: ProgressCallback) -> Forecast:
        """Return a forecast of the remaining work, and add the requests of a model to the estimator."""
        expected, evaluators = Forecast(), self.jury.evaluators
        for task, group in self._work.pairs(self.tasks_done, self.limit):
            plan = await self._dry_run_plan(task, estimator)
            if plan is None:
                expected = replace(expected, tasks=expected.tasks + 1, responses=expected.responses + len(group))
            else:
                known_results = self._find_known_results(task, group, plan)
                expected = expected.with_group(plan, len(group), evaluators, known_results.verdicts.values())
                if estimator is not None:
                    plan_without_conditions = without_model_conditions(plan, evaluators)
                    requests = await self._planner.aestimate_requests(
                        task, group, plan_without_conditions, known_results
                    )
                    estimator.add(requests)
                    estimator.add(await self._canary_requests(task, plan_without_conditions))
            report(len(group))
        return expected

    async def _canary_requests(self, task: Task, plan: Plan) -> "list[Request]":
        """Return the requests about the canary of a task."""
        canary = self._canaries.next_for(task, plan) if self._canaries else None
        return [] if canary is None else await self._planner.aestimate_requests(task, (canary.response,), plan)

    async def _dry_run_plan(self, task: Task, estimator: Estimator | None) -> Plan | None:
        """Return the plan of a task, without a graph that a model would have to annotate.

        None where a model must read its profiles first. The first requests are added to the estimator.
        """
        sink = None if estimator is None else self._known_calls
        with self._locate_errors(task):
            plan, first = await self._planner.aestimate_plan(task, self._profile_line(task), sink)
        if estimator is not None:
            estimator.add(first)
            self.tasks_needing_model += plan is None or (bool(first) and _lacks_roles(task))
        return plan

    @cached_property
    def _known_calls(self) -> CallStore:
        earlier = open_planning_calls(self.folder)
        return CallStore(*self._profile_ledgers, *([] if earlier is None else [earlier]))

    @property
    def _profile_ledgers(self) -> "list[Ledger]":
        """Return the ledgers that may hold the calls that read profiles."""
        ledgers = [self._run.ledger] if self._run is not None else []
        return ledgers if self._branch is None else [*ledgers, self._branch.ledger]

    def _make_estimator(self) -> Estimator | None:
        """Return an estimator of the calls to a model, which knows the calls of the run; None without a model."""
        gateway = self.jury.gateway
        if gateway is None:
            return None
        return Estimator(gateway, None if self._run is None else CallStore(self._run.ledger))

    async def prepare(self, report: ProgressCallback) -> None:
        """Plan all remaining tasks, or none of them; `report` receives 1 for each.

        Raises `PlanError`, and `ModelError` or `BudgetExceeded` where a profile could not be read, each with the file
        and line of the task.
        """
        if self.is_finished:
            return
        run = self._run = self._run or WritableRun.create(self.folder, self._build_header(), uuid.uuid4().hex)
        assert isinstance(run, WritableRun), "a closed run is finished"
        gateway = self.jury.gateway
        if gateway is None:
            with _rare_garbage_collection():
                await self._plan_tasks(run, None, report)
            return
        others = [] if self._branch is None else [self._branch.ledger]
        calls = PlanningCalls(run, *others, is_durable=not gateway.has_cache)
        try:
            with _rare_garbage_collection():
                await self._plan_tasks(run, calls, report)
        except BaseException as error:
            if isinstance(error, ModelError | BudgetExceeded):
                # The cache or the file of calls needs every reply for the next session.
                await gateway.wait_for_pending()
            await gateway.close()
            self.stored_planning_calls = calls.stored_count
            calls.close()
            raise
        calls.discard()

    async def _plan_tasks(self, run: WritableRun, sink: "CallSink | None", report: ProgressCallback) -> None:
        tasks = (task for task, _ in self._work.pairs(run.tasks_planned, self.limit))
        plan_tasks = (asyncio.create_task(self._plan_task(task, sink)) for task in tasks)
        at_once = 1 if self.jury.gateway is None else self.jury.max_concurrent_groups
        async with aclosing(gather_in_order(plan_tasks, at_once, _AHEAD)) as plans:
            async for task, plan in plans:
                run.add_plan(task, plan)
                if task.rubric is not None and (record := task.rubric.annotation) is not None:
                    self.unanswered_annotations += len(record.unanswered) + len(record.unassigned)
                for call in plan.calls:
                    self.summary.bill.add(call, self._source(run, call))
                report(1)
        run.ledger.commit()

    @property
    def tasks_to_plan(self) -> int:
        """Return the number of tasks that are still to be planned."""
        return 0 if self.is_finished else self._work.extent(self._run.tasks_planned if self._run else 0, self.limit)[0]

    async def _plan_task(self, task: Task, sink: "CallSink | None") -> tuple[Task, Plan]:
        with self._locate_errors(task):
            return task, await self.jury.aprepare(task, self._profile_line(task), sink)

    def _profile_line(self, task: Task) -> "ProfilesLine | None":
        """Return the line of the PROFILES file for a task; None without such a line."""
        return None if self._profiles is None else self._profiles.line_of(task)

    def _find_known_results(self, task: Task, responses: Sequence[Response], plan: Plan) -> KnownResults:
        """Return the verdicts and material that the branch carries over."""
        return self._branch.find_known_results(task, responses, plan) if self._branch else NO_KNOWN_RESULTS

    @contextmanager
    def _locate_errors(self, task: Task) -> Iterator[None]:
        """Add the file and line of the task to errors raised inside."""
        try:
            yield
        except (PlanError, ModelError, BudgetExceeded) as error:
            line = self._work.line(task.id)
            place = self._work.tasks.name + ("" if line is None else f", line {line}")
            hint = "" if isinstance(error, PlanError) else f"; {_describe_retry(self.jury)}"
            # changed in place, to keep its class and attributes, such as the cycle of a GraphCycleError
            error.args = (f"{place}: {error}{hint}",)
            raise

    async def score(self, report: ProgressCallback) -> None:
        """Score the planned tasks; `report` receives the size of each group. Results are durable when this returns."""
        if self.is_finished:
            return
        run = self._run
        assert isinstance(run, WritableRun), "prepare() comes before score()"
        writer, gateway = Writer(run.ledger), self.jury.gateway
        reusable = self._branch.reusable_ledgers if self._branch else ()
        sink = CallStore(run.ledger, *reusable, append=writer.append)
        started: deque[_StartedGroup] = deque()
        try:
            with _rare_garbage_collection():
                async for traces in self.jury.ascore_all(self._start_groups(run, started), sink):
                    _refuse_over_budget(traces)
                    self._store_group(run, writer, started.popleft(), traces, report)
        except BudgetExceeded:
            if gateway is not None:
                await gateway.wait_for_pending()
            raise
        finally:
            if gateway is not None:
                await gateway.close()
            writer.close()
        self.close_if_complete()

    def _start_groups(self, run: WritableRun, started: "deque[_StartedGroup]") -> Iterator[Group]:
        """Yield the groups that are left to score, each preceded by its canary, and append them to `started`."""
        for task, responses in self._work.pairs(self.tasks_done, self.limit):
            plan = run.plan_of(task.id)
            canary = self._canaries.next_for(task, plan) if self._canaries else None
            if canary is not None:  # the canary first: a resumed session skips tasks that are scored
                started.append(_StartedGroup(plan, (canary.response,), canary))
                yield self._group(task, (canary.response,), plan)
            started.append(_StartedGroup(plan, responses))
            yield self._group(task, responses, plan)

    def _group(self, task: Task, responses: Sequence[Response], plan: Plan) -> Group:
        return Group(task, responses, plan, self._find_known_results(task, responses, plan))

    def _store_group(
        self, run: WritableRun, writer: Writer, group: "_StartedGroup", traces: list[Trace], report: ProgressCallback
    ) -> None:
        """Append the traces of a group, or the record of a canary, and count them."""
        if group.canary is not None and self._canaries is not None:
            writer.append([self._canaries.record(group.canary, traces[0])])
            for call in traces[0].calls:
                self.summary.bill.add(call, self._source(run, call))
            return
        writer.append(run.group_drafts(group.plan, traces, group.responses))
        if self._branch is not None:
            self._branch.count(traces)
        for trace in traces:
            self._count_trace(run, trace)
        report(len(traces))

    def _count_trace(self, run: Run, trace: Trace) -> None:
        self.summary.add(trace)
        for call in trace.calls:
            self.summary.bill.add(call, self._source(run, call))

    def _count_stored(self, run: Run, outline: TraceOutline) -> None:
        self.summary.add_outline(outline, lambda verdict: failure_message(run, outline, verdict))
        for call in map(Call.model_validate, outline.body.get("calls", ())):
            self.summary.bill.add(call, self._source(run, call))

    def _source(self, run: Run, call: Call) -> ReplySource:
        """Return the source of a call's reply; a call without a record in a branched run is carried over."""
        if run.header.branch is not None and run.ledger.find("call", call.id) is None:
            return "carried"
        if is_replay(self.jury):
            return "replayed"
        return "cached" if call.cache_hit else "sent"

    def close_if_complete(self) -> None:
        """Close a run that is complete; it may have been stopped just before it was closed."""
        run = self._run
        if run is not None and not run.is_closed and run.tasks_scored == self.tasks:
            append_close_record(run)

    def close(self) -> None:
        """Release the run for other processes; a new run that was not prepared is removed."""
        if self._run is not None:
            self._run.close()
            self._run = None


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Run the garbage collector rarely: planning and judging create few cycles, and existing objects stay alive."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_GC_THRESHOLDS = (100_000, 50, 100)
_AHEAD = 8
"""Number of finished plans that may wait for an earlier one, for each task that is planned concurrently."""


def _describe_retry(jury: "Jury") -> str:
    kept_part = ": it continues from the cache" if jury.config.calls.cache else ": it continues with the stored replies"
    return f"nothing was written; run the same command again{kept_part}"


def _refuse_over_budget(traces: Sequence[Trace]) -> None:
    """Raise `BudgetExceeded` for an incomplete group, so that it is not stored and can be judged completely later."""
    for verdict in (verdict for trace in traces for verdict in trace.verdicts):
        if verdict.failure is not None and verdict.failure.kind == "budget":
            raise BudgetExceeded(
                f"{verdict.failure.message}; finished groups are kept; run the same command again to continue"
            )
