"""Record groups that are scored from Python, into a run that has no file of tasks and is open-ended until it is closed.

A group has a name: the id of its task, a step and a phase. A trainer meets the same task in every epoch, so that a
counter gives the steps that it does not. A group under a name that is stored is not judged again: its traces are read,
and only what failed by infrastructure, or left a response without a reward, is requested once more.
"""

import asyncio
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from glob import escape, glob
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from jurygraph.decision.decide import has_independent_rows
from jurygraph.errors import InputError
from jurygraph.graphs.groups import Group, GroupOutcome
from jurygraph.messages import quote
from jurygraph.runs.calls import find_call_record
from jurygraph.runs.recorder import RecordedJury, open_open_ended_run, reusable_results
from jurygraph.runs.run import ERASED_CHANGE_TEXT, ScoredResponse, changes_by_response
from jurygraph.runs.sessions import match_responses, phase_in_session, read_session_of_phase
from jurygraph.runs.store.ledger import LedgerRecord, RecordDraft, Writer
from jurygraph.runs.writable_run import CallStore, append_close_record
from jurygraph.schema import Call, Material, Plan, RecordedVerdict, Task, Trace, Verdict
from jurygraph.schema.frozen_model import JsonFields, StrPath
from jurygraph.schema.verdict import has_transient_failure
from jurygraph.sources.files import close_on_error

log = logging.getLogger(__name__)

_MAX_PLANS_IN_MEMORY = 1024
"""Plans of stored tasks that are kept in memory, those that were used last."""


class GroupName(NamedTuple):
    """The name of a group: its task's id, its phase (None for the only one) and its step, from 1 on if counted."""

    task: str
    phase: str | None
    step: int

    @classmethod
    def of(cls, group: Group) -> Self:
        assert group.step is not None, "a begun group has a step"
        return cls(group.task.id, group.phase, group.step)

    @classmethod
    def read(cls, record: LedgerRecord) -> Self:
        body = record.content
        return cls(record.key, body.get("phase"), body["step"])


def resolve_recording_folder(folder: StrPath) -> Path:
    """Return the folder to record in, with this process's rank for `{rank}` and its number for `{pid}`.

    Raises `InputError` for any other field, and for a file.
    """
    path = Path(str(folder).replace("{rank}", _read_rank()).replace("{pid}", str(os.getpid())))
    if unknown := re.search(r"\{[^/}]*\}?", str(path)):
        raise InputError(
            f"{folder}: {unknown[0]!r} is no field of a folder to record in; write {{rank}} or {{pid}}"
        )
    if path.is_file():
        raise InputError(f"{path}: is a file; to record, name a folder, such as run")
    return path


def list_recording_folders(folder: StrPath) -> list[Path]:
    """Return the folder that this process records in, and then those of all processes. Raises as
    `resolve_recording_folder`."""
    pattern = re.sub(r"\{rank\}|\{pid\}", "*", escape(str(folder)))
    return [resolve_recording_folder(folder), *map(Path, sorted(glob(pattern)))]


def _read_rank() -> str:
    """Return the rank of this process; 0 without one, so that a training that is started again goes on with its run."""
    return os.environ.get("RANK") or "0"


class OpenEndedRecorder:
    """The open-ended run of a jury. Groups may be scored in several threads and event loops.

        with jury.record("run") as recorder:
            traces = jury.score(task, responses, step=7)

    `phase` is that of the groups without one of their own. The folder may contain `{rank}`, the RANK of a distributed
    training, else 0, or `{pid}`, the number of this process. Leaving the block releases the run, and `close_run` ends
    it.
    """

    def __init__(self, folder: StrPath, jury: RecordedJury, phase: str | None = None) -> None:
        """Open the run, or make one. Raises `InputError` as `resolve_recording_folder` and `open_open_ended_run`."""
        self.folder = resolve_recording_folder(folder)
        self._rank: str | None = None
        """What keeps the names of groups apart from those of other processes."""
        if str(self.folder) != str(folder):
            self._rank = str(os.getpid()) if "{pid}" in str(folder) else _read_rank()
        self.phase = phase
        self._defaults = jury.config.task_defaults
        self._combiners = jury.combiners
        self._run = open_open_ended_run(self.folder, jury)
        self._writer = Writer(self._run.ledger)
        self.sink = CallStore(self._run.ledger, writer=self._writer)
        """The sink of the run, in which a repeated request finds its reply."""
        self._guard = threading.Lock()
        self._ended: str | None = None
        """Why nothing more is recorded, and what to do."""
        self._stored: set[GroupName] = set()
        """The groups that are durable."""
        for record in self._run.ledger.records("group"):
            self._stored.add(GroupName.read(record))
            self.sink.note_unusable(record.content.get("unusable", {}))
        self._last_steps: Counter[tuple[str, str | None]] = Counter()
        """The last step of each task and phase. One that was counted is not given out again, if its group fails."""
        self._session = 1
        """The last session of a training whose groups recur (see `find_recurring`)."""
        for name in self._stored:
            self._note_last_step(name)
            self._session = max(self._session, read_session_of_phase(name.phase))
        self._unrepeated_steps = dict(self._last_steps)
        """The last steps that were stored when the run was opened, of tasks that did not come without a step since."""
        self._in_work: set[str] = set()
        """Names of groups, and ids of responses, that are being scored."""
        self._id_hashes = set(map(hash, self._run.ledger.keys("trace")))
        """Hashes of the ids of the appended responses: most ids are new, and to look one up waits for the writer."""
        self._tasks = set(self._run.ledger.keys("task"))
        """The tasks whose plans are durable."""
        self._read_plan = lru_cache(maxsize=_MAX_PLANS_IN_MEMORY)(self._run.plan_of)
        self._appended_plans: dict[str, str] = {}
        """Digests of the plans that were appended here, of which the last may not be durable yet."""

    def count_records(self) -> int:
        """Return the number of records of the run so far."""
        return self._run.ledger.count

    def has_reply(self, call: Call, record_count: int) -> bool:
        """Return whether a call had its reply when the run had this many records."""
        record = find_call_record(self._run.ledger, "call", call)
        return record is not None and record.seq <= record_count and call.fault is None

    def _note_last_step(self, name: GroupName) -> None:
        key = name.task, name.phase
        self._last_steps[key] = max(name.step, self._last_steps[key])

    def find_recurring(self, group: Group, size: int | None) -> tuple[Group, Sequence[int | None]]:
        """Return a group as it is stored, in whatever order it came; else as one of the training's current session.

        `size` is that of the cohort whose members the responses are, None for a whole group. Also return the positions
        of the responses in the group, None for one that came after it was scored. A step that is stored with other
        responses begins the next session, which is a part of the phase, and the label `session`; raises `InputError`
        instead if one of them has a stored id.
        """
        stored_group = self._find_stored_group(group, size)
        if stored_group is not None:
            return stored_group
        name = GroupName.of(group)
        session = self._session
        if name._replace(phase=phase_in_session(name.phase, session)) in self._stored:
            session += 1
        if session > 1:
            group = _move_to_session(group, session)
        if session > self._session:
            self._refuse_stored_ids(group)
            self._session = session
            log.warning(
                "task %s is stored at step %d with other responses: session %d of the training begins, with the label "
                "session=%d; trainings at the same time need a `policy` each",
                *(quote(name.task), name.step, session, session),
            )
        return group, range(len(group.responses))

    def _find_stored_group(
        self, group: Group, size: int | None
    ) -> tuple[Group, Sequence[int | None]] | None:
        """Return what `find_recurring` does for a group that the latest possible session has; None if none has it."""
        name = GroupName.of(group)
        for session in range(self._session, 0, -1):
            stored_name = name._replace(phase=phase_in_session(name.phase, session))
            if stored_name not in self._stored:
                continue
            scored = self._run.group(self._find_group_record(stored_name))
            positions = match_responses([item.response for item in scored], group.responses, size)
            if positions is None:
                continue
            response_by_position = dict(zip(positions, group.responses, strict=True))
            members = []
            for position, (trace, response) in enumerate(scored):
                if response is None:  # erased
                    response = response_by_position.get(position, group.responses[0])
                    response = response.model_copy(update={"id": trace.response_id})
                members.append(response)
            return replace(group, responses=members, phase=stored_name.phase), positions
        return None

    def begin(self, group: Group) -> Group | list[Trace]:
        """Return a group under its name, with its plan and what is reused; its stored traces, if nothing is missing.

        A group that is returned is to be given to `finish` or `end`. Raises `InputError` if it cannot be recorded.
        """
        if self._ended is not None:
            raise InputError(f"{self.folder}: {self._ended}")
        task = self._defaults.complete(group.task)
        plan = self._find_plan(task, group.plan)
        phase = self.phase if group.phase is None else group.phase
        with self._guard:
            step = group.step
            if step is None:
                step = self._last_steps[task.id, phase] + 1
            begun_group = group.at(step, phase, self._rank, task, plan)
            names = _group_and_response_names(begun_group)
            names_being_scored = sorted(names & self._in_work)
            if names_being_scored:
                raise InputError(
                    f"{quote(names_being_scored[0])} is being scored already; await that, "
                    "or leave the step out"
                )
            self._in_work |= names
            name = GroupName.of(begun_group)
            self._note_last_step(name)
        with close_on_error(partial(self.end, begun_group)):
            if name not in self._stored:
                self._refuse_stored_ids(begun_group)
                if group.step is None:
                    self._note_repetition(begun_group)
                return begun_group
            repeated = self._reuse_stored_results(begun_group)
        if not isinstance(repeated, Group):
            self.end(begun_group)
        return repeated

    def _note_repetition(self, group: Group) -> None:
        """Say once how to continue a run, if a group has the responses of the last step before the run was opened."""
        step = self._unrepeated_steps.pop((group.task.id, group.phase), None)
        if step is None:
            return
        if self._find_stored_group(replace(group, step=step), None) is not None:
            self._unrepeated_steps.clear()  # further groups need no comparison
            log.warning(
                "task %s is stored with these responses already, and is scored again as its next step; to continue a "
                "run that was interrupted, write jury.score_many(items, step=%d)",
                *(quote(group.task.id), step),
            )

    async def finish(
        self, begun_group: Group, outcome_future: Awaitable[GroupOutcome]
    ) -> GroupOutcome:
        """Return the outcome of a group when its traces are durable, or the error that prevents that."""
        try:
            traces = await outcome_future
            if isinstance(traces, list):
                await self._store_group(begun_group, traces)
            return traces
        except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
            return error
        finally:
            self.end(begun_group)

    def end(self, begun_group: Group) -> None:
        """Free the names of a group that is no longer scored."""
        with self._guard:
            self._in_work -= _group_and_response_names(begun_group)

    def _find_plan(self, task: Task, plan: Plan | None) -> Plan | None:
        """Return the plan that is stored for a task, else the given one. Raises for another task or plan."""
        if task.id not in self._tasks:
            return plan
        stored_plan = self._read_plan(task.id)
        if stored_plan.task_digest != task.content_digest:
            raise InputError(
                f"task {quote(task.id)} is another one than in {self.folder}; "
                "give it an id of its own, or record it elsewhere"
            )
        if plan is not None and plan.digest != stored_plan.digest:
            raise InputError(
                f"task {quote(task.id)} was planned otherwise in {self.folder}; "
                "leave the plan out, or record it elsewhere"
            )
        return stored_plan

    def _refuse_stored_ids(self, group: Group) -> None:
        """Raise `InputError` for a response whose id is stored, in another group.

        So may one be that comes from the group and the position: somebody gave that id to a response, or a task or a
        phase has "@" or ":" in its name.
        """
        for position, response in enumerate(group.responses):
            is_stored_id = hash(response.id) in self._id_hashes
            if is_stored_id and self._run.ledger.find("trace", response.id) is not None:
                hint = "leave its id out: it comes from the group and the position then"
                if position in group.unnamed:
                    hint = "give it another id, or its task or phase another name"
                raise InputError(
                    f"response {quote(response.id)} is stored in {self.folder} already, "
                    f"in another group; {hint}"
                )

    def _find_group_record(self, name: GroupName) -> LedgerRecord:
        records = self._run.ledger.find_all_records("group", name.task)
        return next(record for record in reversed(records) if GroupName.read(record) == name)

    def _reuse_stored_results(self, group: Group) -> Group | list[Trace]:
        """Return the stored traces of a group; or, where some is requested again, the group with all other results."""
        record = self._find_group_record(GroupName.of(group))
        scored = {item.trace.response_id: item for item in self._run.group(record)}
        _refuse_other_responses(group, scored.values())
        traces = [scored[response.id].trace for response in group.responses]
        results: list[Verdict | Material] = []
        for trace in traces:
            results += [*trace.verdicts, *trace.material]
        # Where a reward has a value, which a trainer may have learned from, a reply that could not be used stays.
        failed_ids = {
            trace.response_id
            for trace in traces
            if trace.reward.value is None and trace.reward.counts.failed
        }
        has_value = any(trace.reward.value is not None for trace in traces)
        if failed_ids and has_value:
            plan = self._read_plan(group.task.id)
            questions = plan.survey.questions
            if not has_independent_rows(plan.decision, questions, self._combiners):
                failed_ids = set()  # another judgement would change the rewards that have a value
        if failed_ids or any(map(has_transient_failure, results)):
            reused_results = reusable_results(
                traces, lambda verdict: verdict.failure is None or verdict.about not in failed_ids
            )
            return replace(group, reused_results=reused_results)
        return [trace.model_copy(update={"plan": group.plan}) for trace in traces]

    async def _store_group(self, group: Group, traces: Sequence[Trace]) -> None:
        """Append a group after the plan of its task; both are durable when this returns."""
        plan = traces[0].plan
        assert plan is not None, "a trace that was just made has its plan"
        commit_future = asyncio.get_running_loop().create_future()
        unusable_calls = dict(self._find_unusable_calls(traces))
        with self._guard:  # two groups of a new task do not both bring its plan
            drafts = self._draft_records(group, traces, plan, unusable_calls)
            self._writer.append(list(drafts), commit_future)
            # before the wait, which may be cancelled while the group becomes durable
            self._id_hashes.update(hash(response.id) for response in group.responses)
        await commit_future
        with self._guard:
            self._tasks.add(group.task.id)
            self._stored.add(GroupName.of(group))
            self.sink.note_unusable(unusable_calls)

    def _find_unusable_calls(self, traces: Sequence[Trace]) -> Iterator[tuple[str, int]]:
        """Yield the calls on which only judgements rest that failed by the reply, each with its record's number.

        Later groups send their requests again: the model may be mended, and the useless reply would be kept for ever.
        """
        useless_ids: set[str] = set()
        used_ids: set[str] = set()
        for trace in traces:
            results: list[RecordedVerdict | Material] = [*trace.verdicts, *trace.material]
            for result in results:
                call_ids = {use.id for use in result.calls}
                if result.failure is None:
                    used_ids |= call_ids
                elif not result.failure.is_transient:
                    useless_ids |= call_ids
        unusable_ids = useless_ids - used_ids
        for call in chain.from_iterable(trace.calls for trace in traces):
            if call.id in unusable_ids:
                record = find_call_record(self._run.ledger, "call", call)
                if record is not None:
                    yield call.id, record.seq

    def _draft_records(
        self, group: Group, traces: Sequence[Trace], plan: Plan, unusable_calls: Mapping[str, int]
    ) -> Iterator[RecordDraft]:
        task = group.task
        if task.id not in self._tasks and task.id not in self._appended_plans:
            yield from self._run.plan_drafts(task, plan)
            self._appended_plans[task.id] = plan.digest
        if self._appended_plans.get(task.id, plan.digest) != plan.digest:
            raise InputError(
                f"task {quote(task.id)} is another one, or planned otherwise, "
                "than in a group scored meanwhile; give it an id of its own, or score it again"
            )
        name = GroupName.of(group)
        group_name_fields: JsonFields = {"step": name.step}
        if name.phase is not None:
            group_name_fields["phase"] = name.phase
        if name in self._stored:
            group_name_fields["again"] = True
        if unusable_calls:
            group_name_fields["unusable"] = unusable_calls
        yield from self._run.group_drafts(plan, traces, group.responses, group_name_fields)

    def close_run(self) -> None:
        """End the run: what is recorded stays, and nothing more can be recorded into it."""
        self._ended = "was closed; record into another folder"
        try:
            self._writer.close()
            append_close_record(self._run)
        finally:
            self._run.close()

    def release_run(self) -> None:
        """Release the run for other processes, which may continue it. May be called more than once."""
        if self._ended is None:
            self._ended = "was released; begin to record into it again"
            try:
                self._writer.close()
            finally:
                self._run.close()


def _move_to_session(group: Group, session: int) -> Group:
    """Return a group as one of a later session: with its phase, its label and new ids where these are not given."""
    responses = [
        response.model_copy(
            update={
                "id": "" if position in group.unnamed else response.id,
                "labels": {"session": session, **response.labels},
            }
        )
        for position, response in enumerate(group.responses)
    ]
    return replace(group, responses=responses, phase=phase_in_session(group.phase, session))


def _group_and_response_names(group: Group) -> set[str]:
    """Return the name of a group and the ids of its responses."""
    return {group.name, *(response.id for response in group.responses)}


def _refuse_other_responses(group: Group, scored: Iterable[ScoredResponse]) -> None:
    """Raise `InputError` unless the responses of a group are those stored under its name, if they were not erased."""
    for name, change in changes_by_response(scored, group.responses).items():
        if change != ERASED_CHANGE_TEXT:
            raise InputError(
                f"group {quote(group.name)} is stored with other responses: "
                f"response {quote(name)} {change}; give it another step, "
                "or leave the step out (such groups are counted on from the last step)"
            )
