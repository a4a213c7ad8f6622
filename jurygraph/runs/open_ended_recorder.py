"""Record groups that are scored from Python, into a run that has no file of tasks and is open-ended until it is closed.

A group has a name: the id of its task, a step and a phase. A trainer meets the same task in every epoch, so that a
counter gives the steps that it does not. A group under a name that is stored is not judged again: its traces are read,
and only what failed by infrastructure is requested once more.
"""

import asyncio
import os
import threading
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.errors import InputError
from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.groups import Group, GroupOutcome, settled_outcome
from jurygraph.graphs.routing import ReusedResults
from jurygraph.messages import quote
from jurygraph.models.request import CallSink
from jurygraph.runs.recorder import RecordedJury, RunRecorder, open_open_ended_run
from jurygraph.runs.run import WAS_ERASED, ScoredResponse, is_reusable, response_changes
from jurygraph.runs.store.ledger import Record, RecordDraft
from jurygraph.runs.writable_run import append_close_record
from jurygraph.schema import Material, Plan, RecordedVerdict, Task, Trace
from jurygraph.schema.verdict import VerdictKey

_KEPT_PLANS = 1024
"""Number of plans of stored tasks that are kept for the next group of their task."""


class GroupName(NamedTuple):
    """The name of a group: its task's id, its phase (None for the only one) and its step, from 1 on if counted."""

    task: str
    phase: str | None
    step: int


class BegunGroup(NamedTuple):
    """A group that is about to be scored, under its name; `is_again` if that is stored, with failed results."""

    name: GroupName
    group: Group
    is_again: bool = False


class OpenEndedRecorder:
    """The open-ended run of a jury. Groups may be scored in several threads and event loops.

        with jury.record("run") as recorder:
            traces = jury.score(task, responses, step=7)

    `phase` is that of the groups without one of their own. The folder may contain `{rank}`: the RANK of a distributed
    training, or the number of this process. Leaving the block releases the run, and `close_run` ends it.
    """

    def __init__(self, folder: str | Path, jury: RecordedJury, phase: str | None = None) -> None:
        """Open the run, or make one. Raises `InputError` as `open_open_ended_run`."""
        rank = os.environ.get("RANK") or str(os.getpid())
        self.folder = Path(str(folder).replace("{rank}", rank))
        self._rank = rank if str(self.folder) != str(folder) else None
        self.phase = phase
        self._defaults = jury.config.task_defaults
        self._recorder = RunRecorder(open_open_ended_run(self.folder, jury))
        self._run = self._recorder.run
        self._guard = threading.Lock()
        self._is_released = False
        self._is_closed = False
        self._stored_steps: dict[tuple[str, str | None], set[int]] = defaultdict(set)
        self._begun_steps: dict[tuple[str, str | None], set[int]] = defaultdict(set)
        self._in_work: set[str] = set()
        """Names of groups, and ids of responses, that are being scored."""
        for record in self._run.ledger.records("group"):
            name = _name_of(record)
            self._stored_steps[name.task, name.phase].add(name.step)
        self._tasks = set(self._run.ledger.keys("task"))
        self._appended_plans: dict[str, str] = {}
        """Digests of the plans that were appended here, of which the last may not be durable yet."""
        self._stored_plan = lru_cache(maxsize=_KEPT_PLANS)(self._run.plan_of)

    @property
    def calls(self) -> CallSink:
        """The sink of the run, in which a repeated request finds its reply."""
        return self._recorder.calls

    def begin(self, groups: Sequence[Group]) -> list[BegunGroup | GroupOutcome]:
        """Return each group under its name, its stored traces, or the error because of which it cannot begin."""
        return [result_or_error(partial(self._begin, group)) for group in groups]

    def finish_each(
        self,
        begun: Sequence[BegunGroup | GroupOutcome],
        outcomes: "Sequence[asyncio.Future[GroupOutcome]]",
    ) -> "list[asyncio.Future[GroupOutcome]]":
        """Return the outcomes of all groups; that of a begun one, which is in `outcomes`, comes once it is durable."""
        remaining = iter(outcomes)
        return [
            asyncio.ensure_future(self._finish(item, next(remaining)))
            if isinstance(item, BegunGroup)
            else settled_outcome(item)
            for item in begun
        ]

    async def _finish(self, begun: BegunGroup, outcome: Awaitable[GroupOutcome]) -> GroupOutcome:
        """Return the outcome of a group when its traces are durable, or the error that prevents that."""
        try:
            traces = await outcome
            if isinstance(traces, list):
                await self._store(begun, traces)
            return traces
        except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
            return error
        finally:
            self.end([begun])

    def _begin(self, group: Group) -> BegunGroup | list[Trace]:
        """Return a group with its name, its plan and what is reused; or its stored traces, if nothing is missing."""
        if self._is_released:
            ended = "was closed; record into another folder"
            released = "was released; begin to record into it again"
            raise InputError(f"{self.folder}: {ended if self._is_closed else released}")
        task = self._defaults.complete(group.task)
        plan = self._find_plan(task, group.plan)
        phase = self.phase if group.phase is None else group.phase
        key = task.id, phase
        with self._guard:
            stored = self._stored_steps[key]
            step = group.step
            if step is None:
                step = max((*stored, *self._begun_steps[key]), default=0) + 1
            named = group.at(step, phase, self._rank, task, plan)
            names = {named.name, *(response.id for response in named.responses)}
            names_in_work = sorted(names & self._in_work)
            if names_in_work:
                problem = f"{quote(names_in_work[0])} is being scored already"
                raise InputError(f"{problem}; await that, or leave the step out")
            self._begun_steps[key].add(step)
            self._in_work |= names
        begun = BegunGroup(GroupName(*key, step), named)
        opened: BegunGroup | list[Trace] | None = None
        try:
            if step in stored:
                opened = self._repeat(begun)
            else:
                self._refuse_stored_ids(group)
                opened = begun
        finally:
            if not isinstance(opened, BegunGroup):
                self.end([begun])
        return opened

    def end(self, begun: Iterable[BegunGroup | GroupOutcome]) -> None:
        """Free the names of groups that are no longer scored."""
        with self._guard:
            for item in begun:
                if isinstance(item, BegunGroup):
                    name = item.name
                    self._begun_steps[name.task, name.phase].discard(name.step)
                    response_ids = {response.id for response in item.group.responses}
                    self._in_work -= {item.group.name, *response_ids}

    def _find_plan(self, task: Task, plan: Plan | None) -> Plan | None:
        """Return the plan that is stored for a task, else the given one. Raises for another task or plan."""
        if task.id not in self._tasks:
            return plan
        stored = self._stored_plan(task.id)
        if stored.task_digest != task.content_digest:
            problem = f"task {quote(task.id)} is another one than in {self.folder}"
            raise InputError(f"{problem}; give it an id of its own, or record it elsewhere")
        if plan is not None and plan.digest != stored.digest:
            problem = f"task {quote(task.id)} was planned otherwise in {self.folder}"
            raise InputError(f"{problem}; leave the plan out, or record it elsewhere")
        return stored

    def _refuse_stored_ids(self, group: Group) -> None:
        for position, response in enumerate(group.responses):
            if position in group.unnamed:  # a new group's name is new
                continue
            if self._run.ledger.find("trace", response.id) is not None:
                problem = f"response {quote(response.id)} is stored in {self.folder} already"
                hint = "leave its id out: it comes from the group and the position then"
                raise InputError(f"{problem}, in another group; {hint}")

    def _repeat(self, begun: BegunGroup) -> BegunGroup | list[Trace]:
        """Return the stored traces of a group; or, where infrastructure failed, the group with all other results."""
        record = self._find_record(begun.name)
        scored = {item.trace.response_id: item for item in self._run.group(record)}
        _refuse_other_responses(begun.group, scored.values())
        traces = [scored[response.id].trace for response in begun.group.responses]
        results = chain.from_iterable(map(_results, traces))
        if not any(map(_is_transient, results)):
            plan = begun.group.plan
            return [trace.model_copy(update={"plan": plan}) for trace in traces]
        again = replace(begun.group, reused_results=_reusable_results(traces))
        return BegunGroup(begun.name, again, is_again=True)

    def _find_record(self, name: GroupName) -> Record:
        records = self._run.ledger.find_all("group", name.task)
        return next(record for record in reversed(records) if _name_of(record) == name)

    async def _store(self, begun: BegunGroup, traces: Sequence[Trace]) -> None:
        """Append a group after the plan of its task; both are durable when this returns."""
        durable = asyncio.get_running_loop().create_future()
        with self._guard:  # two groups of a new task do not both bring its plan
            self._recorder.append(list(self._drafts(begun, traces)), durable)
        await durable
        with self._guard:
            self._tasks.add(begun.name.task)
            self._stored_steps[begun.name.task, begun.name.phase].add(begun.name.step)

    def _drafts(self, begun: BegunGroup, traces: Sequence[Trace]) -> Iterator[RecordDraft]:
        plan = traces[0].plan
        assert plan is not None, "a trace that was just made has its plan"
        task = begun.group.task
        if task.id not in self._tasks and task.id not in self._appended_plans:
            yield from self._run.plan_drafts(task, plan)
            self._appended_plans[task.id] = plan.digest
        if self._appended_plans.get(task.id, plan.digest) != plan.digest:
            problem = f"task {quote(task.id)} is another one, or planned otherwise, than in a group scored meanwhile"
            raise InputError(f"{problem}; give it an id of its own, or score it again")
        naming: dict[str, Any] = {"step": begun.name.step}
        if begun.name.phase is not None:
            naming["phase"] = begun.name.phase
        if begun.is_again:
            naming["again"] = True
        yield from self._run.group_drafts(plan, traces, begun.group.responses, naming)

    def close_run(self) -> None:
        """End the run: what is recorded stays, and nothing more can be recorded into it."""
        self._is_released = self._is_closed = True
        try:
            self._recorder.flush()
            append_close_record(self._run)
        finally:
            self._recorder.close()

    def release(self) -> None:
        """Release the run for other processes; it can be gone on with. May be called more than once."""
        if not self._is_released:
            self._is_released = True
            self._recorder.close()


def _name_of(record: Record) -> GroupName:
    body = record.content
    return GroupName(record.key, body.get("phase"), body["step"])


def _results(trace: Trace) -> Iterator[Any]:
    yield from trace.verdicts
    yield from trace.material


def _is_transient(result: Any) -> bool:
    return result.failure is not None and result.failure.is_transient


def _reusable_results(traces: Sequence[Trace]) -> ReusedResults:
    """Return the results of a group that are not requested again: those that infrastructure did not prevent."""
    verdicts: dict[VerdictKey, RecordedVerdict] = {}
    material: dict[tuple[str, str], Material] = {}
    for trace in traces:
        for verdict in trace.verdicts:
            if is_reusable(verdict):
                verdicts[verdict.key] = verdict
        for item in trace.material:
            if item.status == "ok":
                material[item.name, item.response] = item
    return ReusedResults(verdicts, material).with_calls_of(traces)


def _refuse_other_responses(group: Group, scored: Iterable[ScoredResponse]) -> None:
    """Raise `InputError` unless the responses of a group are those stored under its name, if they were not erased."""
    for name, change in response_changes(scored, group.responses).items():
        if change != WAS_ERASED:
            problem = f"response {quote(name)} {change}"
            hint = "give it another step, or leave the step out"
            raise InputError(
                f"group {quote(group.name)} is stored with other responses: {problem}; {hint}"
            )
