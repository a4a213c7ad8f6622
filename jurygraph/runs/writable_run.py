"""Write a run: create or lock it, store calls, turn plans and traces into records, and close it.

A call is one record, with the request and the reply as texts outside the chain. Calls that read profiles and annotate
rubrics are stored together with the plans: all of them or none. Until these are committed, each reply is durable in a
separate ledger, so that a run that is stopped while planning does not repeat it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple, Self

from jurygraph.errors import InputError
from jurygraph.models.request import AnsweredCall, Reply, Request, StoredLookup, encode_compact_json
from jurygraph.runs.calls import find_call_record
from jurygraph.runs.run import Run, open_ledger
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.folder import (
    CONFIG_FILE,
    LEDGER_FILE,
    LOCK_FILE,
    PLANNING_FILE,
    acquire_lock,
    create_folder,
    encode_config,
    missing_run_error,
    refuse_foreign_files,
    refuse_links,
    release_lock,
    remove_discarded_run,
    remove_planning_calls,
    require_run,
)
from jurygraph.runs.store.header import RunHeader, draft_header_record, read_run_header
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, RecordDraft, Writer
from jurygraph.runs.store.packing import (
    RecordBody,
    number_shared_id_lists,
    pack_reward,
    pack_task,
    pack_trace,
)
from jurygraph.schema import Call, Lookup, Plan, Response, Task, Trace
from jurygraph.schema.frozen_model import JsonMapping
from jurygraph.sources.files import close_on_error


class CallStore:
    """A call sink over ledgers: a call is found in the first that has it, so that a killed run does not repeat it.

    New calls are stored by `writer`, in the first ledger; without it, none is stored. Calls found in the other ledgers,
    such as that of a branch's origin, are not copied: a repeated request gets the same reply. A tool may not give the
    same result, as its files may have changed: one that is deterministic is called again where calls are stored.
    Those of the ledgers `to_repeat` are, too.
    """

    def __init__(
        self,
        *ledgers: Ledger,
        writer: "Writer | _TransactionWriter | None" = None,
        to_repeat: Sequence[Ledger] = (),
    ) -> None:
        self._ledgers = ledgers
        self._writer = writer
        self._ledgers_to_repeat = to_repeat if writer is None else ledgers[1:]
        self.hidden: frozenset[str] = frozenset()
        """Ids of calls that are not found, because their replies came too late to count."""
        self._unusable: dict[str, int] = {}
        self.last_record: int | None = None
        """The last record of the first ledger that is read; shards may have got other replies to a request later."""
        self.expected_calls: Mapping[str, Call] = MappingProxyType({})
        """By id the calls of which those are found that are equal, where a request was sent several times."""

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; None where it has no reply, or where its texts were erased."""
        if key in self.hidden:
            return None
        for ledger, keys in zip(self._ledgers, self._call_hashes, strict=True):
            record = self._find_call_record(ledger, key) if hash(key) in keys else None
            texts = {} if record is None else ledger.texts_of_record(record)
            if record is not None and 1 in texts:
                return AnsweredCall(
                    Reply.model_validate_json(texts[1]), Call.model_validate(record.content["call"])
                )
        return None

    def _find_call_record(self, ledger: Ledger, key: str) -> LedgerRecord | None:
        expected_call = self.expected_calls.get(key)
        record = None if expected_call is None else find_call_record(ledger, "call", expected_call)
        if record is None:
            record = ledger.find("call", key, self._last_record_of(ledger))
        is_unusable = record is not None and record.seq <= self._unusable.get(key, 0)
        return None if is_unusable else record

    def note_unusable(self, calls: Mapping[str, int]) -> None:
        """Note calls whose replies could not be used, by their ids and the numbers of their records: later requests are
        sent again."""
        for key, number in calls.items():
            # a group that is repeated has its old replies, and another group may have got a later one
            self._unusable[key] = max(number, self._unusable.get(key, 0))

    def _last_record_of(self, ledger: Ledger) -> int | None:
        return self.last_record if ledger is self._ledgers[0] else None

    async def store(self, request: Request, answered_call: AnsweredCall) -> None:
        """Store a call; it is durable (survives a power cut) when this returns."""
        if self._writer is not None:
            self._call_hashes[0].add(hash(answered_call.call.id))
            await self._writer.append_durably(
                [_draft_call_record(request, answered_call.call, answered_call.reply)]
            )

    def store_unanswered(self, request: Request, call: Call) -> None:
        """Store a call without a reply, unless the request is stored already; `find` does not find it."""
        if self._writer is not None and hash(call.id) not in self._call_hashes[0]:
            self._writer.append([_draft_call_record(request, call)])

    def find_lookup(self, key: str) -> StoredLookup | None:
        """Return the call of a tool of this id; None where there is none, or where its texts were erased."""
        for ledger in self._ledgers:
            record = ledger.find("lookup", key, self._last_record_of(ledger))
            texts = {} if record is None else ledger.texts_of_record(record)
            if record is None or len(texts) != _TEXTS_PER_TOOL_CALL:
                continue
            lookup = Lookup.model_validate(record.content["lookup"])
            if not (ledger in self._ledgers_to_repeat and lookup.can_be_repeated):
                return StoredLookup(lookup, texts[0].decode(), texts[1].decode())
        return None

    async def store_lookup(self, stored_lookup: StoredLookup) -> None:
        """Store a call of a tool; it is durable when this returns."""
        if self._writer is not None:
            body = {"lookup": stored_lookup.lookup.model_dump(mode="json")}
            texts = [stored_lookup.arguments.encode(), stored_lookup.result.encode()]
            await self._writer.append_durably(
                [RecordDraft("lookup", stored_lookup.lookup.id, body, texts)]
            )

    @cached_property
    def _call_hashes(self) -> list[set[int]]:
        """Hashes of the digests of all calls: most requests are new, and a lookup in the file costs more."""
        return [set(map(hash, ledger.keys("call"))) for ledger in self._ledgers]


_TEXTS_PER_TOOL_CALL = 2
"""The texts of a call of a tool: its arguments, and its result."""


def _draft_call_record(request: Request, call: Call, *reply: Reply) -> RecordDraft:
    texts = [encode_compact_json(request.to_dict())]
    texts += [part.model_dump_json().encode() for part in reply]
    return RecordDraft("call", call.id, {"call": call.model_dump(mode="json")}, texts)


class _TransactionWriter(NamedTuple):
    """Appends at once to a ledger whose transaction is committed later, with the plans that the calls belong to."""

    ledger: Ledger

    def append(self, drafts: Sequence[RecordDraft]) -> None:
        self.ledger.append(*drafts)

    async def append_durably(self, drafts: Sequence[RecordDraft]) -> None:
        self.append(drafts)


class PlanningCallStore(CallStore):
    """A call sink that stores calls in the transaction of a run's plans and, until its end, in a separate file.

    The file is written only if `uses_planning_file`: a jury with a cache has its replies there. Calls that an earlier
    session left in it are copied to the run once they are requested. The file is kept until `discard`.
    """

    def __init__(self, run: Run, *others: Ledger, uses_planning_file: bool) -> None:
        super().__init__(run.ledger, *others, writer=_TransactionWriter(run.ledger))
        self._run = run
        self._is_durable = uses_planning_file
        self._file_ledger: Ledger | None = None
        if (run.folder / PLANNING_FILE).exists():
            self._create_planning_file()

    def _create_planning_file(self) -> None:
        self._file_ledger = Ledger.create(self._run.folder / PLANNING_FILE)
        self._file_writer = Writer(self._file_ledger)
        self._file_calls = CallStore(self._file_ledger, writer=self._file_writer)

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; a call from the file is copied to the run's ledger."""
        call = super().find(key)
        if call is not None or self._file_ledger is None:
            return call
        call = self._file_calls.find(key)
        if call is not None:
            record = self._file_ledger.require("call", key)
            texts = self._file_ledger.texts_of_record(record)
            self._run.ledger.append(
                RecordDraft("call", key, {"call": record.content["call"]}, [*texts.values()])
            )
            self._call_hashes[0].add(hash(key))
        return call

    async def store(self, request: Request, answered_call: AnsweredCall) -> None:
        """Store a call; it is durable when this returns, in the file or in the jury's cache."""
        if self._is_durable:
            if self._file_ledger is None:
                self._create_planning_file()
            await self._file_calls.store(request, answered_call)
        await super().store(request, answered_call)

    def close(self) -> int:
        """Close the file and keep it; return the number of calls in it, for the next session."""
        if self._file_ledger is None:
            return 0
        stored_call_count = self._file_ledger.count_records("call")
        self._file_writer.close()
        self._file_ledger.close_as_plain_file()
        self._file_ledger = None
        return stored_call_count

    def discard(self) -> None:
        """Remove the file: the run has everything that was needed from it."""
        self.close()
        remove_planning_calls(self._run.folder)


class WritableRun(Run):
    """A run that this process has locked until `close`, so that no other process writes it."""

    def __init__(self, folder: Path, ledger: Ledger, header: RunHeader, lock: IO[str]) -> None:
        super().__init__(folder, ledger, header)
        self._lock: IO[str] | None = lock
        self._created_folders: Sequence[Path] = ()
        self._is_discarded = False
        self._parts: set[str] = set()
        """Digests of the surveys and decisions that were written or are about to be."""

    @classmethod
    def open_for_writing(cls, folder: Path) -> "WritableRun | None":
        """Open and lock the run in a folder; None where a new run can be created there.

        Raises `InputError` where another process writes it, or where the folder holds something other than a run.
        """
        if not (folder / LEDGER_FILE).exists():
            refuse_foreign_files(folder)
            return None
        refuse_links(folder)
        lock = acquire_lock(folder / LOCK_FILE)
        with close_on_error(partial(release_lock, lock)):
            ledger = open_ledger(folder, write=True)
            if ledger is not None:
                with close_on_error(ledger.close):
                    return cls(folder, ledger, read_run_header(ledger), lock)
        release_lock(lock)  # stopped before its plans were committed
        return None

    @classmethod
    def open_existing_run(cls, folder: Path) -> "WritableRun":
        """Open and lock the run in a folder. Raises `InputError` where there is none, or another process writes it."""
        require_run(folder)
        run = cls.open_for_writing(folder)
        if run is None:
            raise missing_run_error(folder)
        return run

    @classmethod
    def create(
        cls, folder: Path, header: RunHeader, run_id: str, *, in_single_transaction: bool = False
    ) -> "WritableRun":
        """Create and lock a new run. It exists once it is committed; closed before, it leaves nothing behind.

        One that is committed `in_single_transaction` is written without a log.
        """
        folder = folder.resolve()
        created_folders = create_folder(folder)
        refuse_links(folder)
        text = encode_config(header.config)
        header = header.model_copy(update={"config_file": sha256(text).hexdigest()})
        lock = acquire_lock(folder / LOCK_FILE)
        try:
            run = cls(folder, Ledger.create(folder / LEDGER_FILE), header, lock)
        except BaseException:
            remove_discarded_run(folder, created_folders)
            release_lock(lock)
            raise
        run._created_folders = created_folders
        with close_on_error(run.close):
            if run.ledger.count:
                raise InputError(
                    f"{folder}: another process made a run there first; start again to go on with it"
                )
            write_atomically(folder / CONFIG_FILE, text)
            if in_single_transaction:
                run.ledger.prepare_for_single_transaction()
            run.ledger.append(draft_header_record(header, run_id))
        return run

    def close(self) -> None:
        """Release the run, so that another process can write it; one that was never committed is removed."""
        if self._lock is not None:
            self.ledger.close_as_plain_file()
            if not self.ledger.count or self._is_discarded:
                remove_discarded_run(self.folder, self._created_folders)
            release_lock(self._lock)
            self._lock = None
        super().close()

    def discard(self) -> None:
        """Remove the run when it is closed: it has no result and no call that is of use."""
        self._is_discarded = True

    def plan_drafts(self, task: Task, plan: Plan, number: int | None = None) -> list[RecordDraft]:
        """Return the record of a task's plan, after those of its survey and decision unless these are stored.

        `number` is that of the task in the whole file, which a shard stores.
        """
        drafts = []
        body: RecordBody = {}
        for kind, part in (("survey", plan.survey.without_texts), ("decision", plan.decision)):
            body[kind] = part.digest
            if part.digest not in self._parts and self.ledger.find(kind, part.digest) is None:
                drafts.append(RecordDraft(kind, part.digest, part.model_dump(mode="json")))
            self._parts.add(part.digest)
        if number is not None:
            body["number"] = number
        if plan.calls:
            body["calls"] = [call.model_dump(mode="json") for call in plan.calls]
        return [*drafts, RecordDraft("task", task.id, body, [pack_task(task, plan)])]

    def group_drafts(
        self,
        plan: Plan,
        traces: Sequence[Trace],
        responses: Sequence[Response],
        group_name_fields: JsonMapping = MappingProxyType({}),
    ) -> list[RecordDraft]:
        """Return the records of a task's whole group, ready to be appended.

        `group_name_fields` are what an open-ended run stores: `step`, `phase`, `again` if it replaces one of a name,
        and `unusable`, the calls whose replies nobody could use.
        """
        # Imported lazily: it loads NumPy, which closing a run does not need.
        from jurygraph.decision.decide import RewardRow

        response_by_id = {response.id: response for response in responses}
        survey = plan.survey.without_texts
        shared_id_lists = number_shared_id_lists(traces)
        group = {"size": len(traces), "statistics": traces[0].statistics, **group_name_fields}
        if shared_id_lists:
            group["shown"] = list(shared_id_lists)
        drafts = [RecordDraft("group", plan.task_id, group, [traces[0].group.encode()])]
        for number, trace in enumerate(traces, start=1):
            reward = pack_reward(RewardRow.from_reward(trace.reward))
            body, texts = pack_trace(
                trace, response_by_id[trace.response_id], survey, reward, number, shared_id_lists
            )
            drafts.append(RecordDraft("trace", trace.response_id, body, texts))
        return drafts


def open_run_if_exists(folder: Path) -> Run | None:
    """Open the run in a folder for writing, or for reading if it is closed; None where there is none yet."""
    return Run.open_if_closed(folder) or WritableRun.open_for_writing(folder)


def refuse_existing_run(folder: Path) -> None:
    """Raise `InputError` where a folder contains a run or other files, so that none can be created in it."""
    existing_run = open_run_if_exists(folder)
    if existing_run is not None:
        existing_run.close()
        raise InputError(f"{folder}: contains a run already; name another folder with --out")


class ClosedRunSummary(NamedTuple):
    """The state of a closed run: its numbers of traces and records, and its head."""

    traces: int
    records: int
    head: str

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(run.ledger.count_records("trace"), run.ledger.count, run.ledger.head.hex())


def close_run(folder: Path) -> ClosedRunSummary:
    """Close a run, so that nothing more can be scored into it; a run that is closed already is left unchanged.

    Raises `InputError` where there is no run, or where another process writes it.
    """
    with WritableRun.open_existing_run(folder) as run:
        if not run.is_closed:
            append_close_record(run)
        return ClosedRunSummary.of(run)


def append_close_record(run: Run) -> None:
    """Append the closing record of a run: its number of traces, and the head before this record."""
    body = {"traces": run.ledger.count_records("trace"), "head": run.ledger.head.hex()}
    run.ledger.append(RecordDraft("close", "", body))
    run.ledger.commit()
