"""Merge the shards of a run into one run, with the records of a run that one process scored.

Shards are read side by side and written in the order of the tasks file, so that memory does not grow with them. Records
and texts are copied to the byte, after the chain of each shard has been verified: nothing is judged, decided or packed
again. All is written in a single transaction: whatever stops the merge, there is no run, and the same command repeats
it.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from heapq import merge as merge_sorted
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.messages import quote, shell_quote
from jurygraph.runs.run import Run, relocate
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.header import Header, differences
from jurygraph.runs.store.ledger import Record, Text, record_label
from jurygraph.runs.store.packing import Body
from jurygraph.runs.writable_run import ClosedRun, WritableRun, append_close_record
from jurygraph.sources import Shard

_LAST_TEXT: Mapping[str, int] = {"call": 1, "lookup": 1}
"""The index of the reply, or of the result, among the texts of a call of a model or of a tool."""
_BATCH = 500


def merge_shards(
    folders: Sequence[Path], out: Path, report: ProgressCallback = lambda count: None
) -> ClosedRun:
    """Merge all shards of a run into a new run in the folder `out`; `report` receives the responses of each group.

    A folder may be that of a shard, or one with the folders of several. They may come in any order. Raises `InputError`
    where a shard is missing, named twice, not complete or of other settings, or where `out` has other files, and
    `TraceMismatch` where a shard was changed.
    """
    with _open_shards(folders) as shards, ExitStack() as stack:
        for run in shards:
            _refuse_unmergeable(run)
        shards.sort(key=lambda run: _shard_of(run).index)
        _refuse_other_shards(shards)
        _refuse_existing(out)
        for run in shards:
            stack.enter_context(run.ledger.snapshot())
            _verify_chain(run)
        header = _merged_header(shards, out)
        with WritableRun.create(out, header, uuid.uuid4().hex, at_once=True) as merged:
            _Merger(shards, merged, report).merge()
            append_close_record(merged)
            traces = merged.ledger.count_records("trace")
            return ClosedRun(traces, merged.ledger.count, merged.ledger.head.hex())


@contextmanager
def _open_shards(folders: Sequence[Path]) -> Iterator[list[Run]]:
    """Open the runs in some folders, each of which is that of a run, or has folders of several."""
    with ExitStack() as stack:
        shards: list[Run] = []
        for folder in folders:
            for member in run_folder.member_folders(folder) or [folder]:
                shards.append(stack.enter_context(Run.open(member)))
        yield shards


def count_responses(folders: Sequence[Path]) -> int:
    with _open_shards(folders) as shards:
        return sum(run.ledger.count_records("trace") for run in shards)


def _shard_of(run: Run) -> Shard:
    shard = run.header.shard
    assert shard is not None, "others are refused"
    return shard


def _refuse_unmergeable(run: Run) -> None:
    """Raise `InputError` for a run that is no complete shard."""
    if run.header.base is not None:
        raise InputError(f"{run.folder}: is a re-scored run; merge the runs that were scored")
    if run.header.shard is None:
        raise InputError(f"{run.folder}: is no shard; it was scored without --shard")
    expected = run.header.extent.tasks
    if not run.is_closed or run.tasks_scored != expected:
        state = f"{run.tasks_scored} of its {expected} tasks are scored"
        hint = f"run its `jurygraph score --shard {run.header.shard}` again"
        raise InputError(f"{run.folder}: is not complete: {state}; {hint}")
    if run.ledger.count_records("erasure"):
        hint = f"score it again into another folder with --branch {shell_quote(run.folder)}"
        raise InputError(
            f"{run.folder}: texts were erased from it; {hint}, and erase after merging"
        )


def _refuse_other_shards(shards: Sequence[Run]) -> None:
    """Raise `InputError` unless these, in order, are all shards of one run, each once."""
    if not shards:
        raise InputError("name the runs of the shards, or the folder that contains them")
    first = shards[0]
    header = first.header.without_shard()
    count = _shard_of(first).of
    for run in shards:
        shard = _shard_of(run)
        if shard.of != count:
            raise InputError(f"{run.folder}: is shard {shard}, and {first.folder} is 1 of {count}")
        found = next(differences(header, run.header.without_shard()), None)
        if found is None and _branch_head(run.header) != _branch_head(header):
            found = "the run was branched from other records of the same run"
        if found is not None:
            raise InputError(f"{run.folder}: has other settings than {first.folder}: {found}")
    for index, members in groupby(shards, key=lambda run: _shard_of(run).index):
        _, *others = members
        if others:
            raise InputError(f"{others[0].folder}: shard {index}/{count} is there twice")
    present = {_shard_of(run).index for run in shards}
    missing = [index for index in range(1, count + 1) if index not in present]
    if missing:
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(f"shard {missing[0]}/{count}{more} missing; name its folder, too")


def _branch_head(header: Header) -> str | None:
    return None if header.branch is None else header.branch.head


def _refuse_existing(out: Path) -> None:
    existing = Run.open_if_closed(out) or WritableRun.open_for_writing(out)
    if existing is not None:
        existing.close()
        raise InputError(f"{out}: contains a run already; name another folder with --out")


def _verify_chain(run: Run) -> None:
    """Check the links of all records, and the config; texts are checked when they are copied."""
    config = run.folder / run_folder.CONFIG
    if not config.is_file() or sha256(config.read_bytes()).hexdigest() != run.header.config_file:
        raise TraceMismatch(f"{config}: is not the config that was written; it has been changed")
    for _ in run.ledger.verified_records(1, run.ledger.count):
        pass


def _merged_header(shards: Sequence[Run], out: Path) -> Header:
    first = shards[0]
    fields = relocate(first.header, first.folder, out)
    fields["merged"] = tuple(run.origin(out) for run in shards)
    return first.header.without_shard().model_copy(update=fields)


class _ShardTask(NamedTuple):
    """The record of a task with its number in the tasks file, and the run of its shard."""

    number: int
    record: Record
    body: Body
    run: Run


class _Merger:
    """Copies the records of shards whose chains are verified."""

    def __init__(
        self, shards: Sequence[Run], merged: WritableRun, report: ProgressCallback
    ) -> None:
        self._shards = shards
        self._merged = merged.ledger
        self._extent = merged.header.extent
        self._report = report
        self._copies: list[tuple[Record, Sequence[Text]]] = []
        """Records that are written together: to write each by itself takes twice as long."""
        self._parts: set[str] = set()
        """Digests of the surveys and decisions that were copied; the tasks of a file share few of them."""

    def merge(self) -> None:
        """Copy all tasks, then all groups, as scoring writes them, and what calls are left."""
        for task in self._tasks():
            self._copy_task(task)
        for task in self._tasks():
            self._copy_group(task)
        for kind in _LAST_TEXT:
            for run in self._shards:
                for record in run.ledger.records(kind):
                    if self._find_merged(kind, record.key) is None:
                        self._copy_call(run, kind, record.key)
        self._write()
        self._refuse_lost_records()

    def _write(self) -> None:
        self._merged.append_copies(self._copies)
        self._copies.clear()

    def _find_merged(self, kind: str, key: str) -> Record | None:
        self._write()
        return self._merged.find(kind, key)

    def _tasks(self) -> Iterator[_ShardTask]:
        """Yield the tasks in the order of their file. Raises `TraceMismatch` where one is missing, or there twice."""
        expected = 0
        ordered = merge_sorted(*map(_read_tasks, self._shards), key=lambda task: task.number)
        for task in ordered:
            name = task.record.key
            if task.number != expected or not _shard_of(task.run).has_task(name):
                problem = f"has task {quote(name)} as number {task.number} of the file"
                raise TraceMismatch(f"{task.run.ledger.path}: {problem}, where it cannot be")
            expected += 1
            yield task
        if expected != self._extent.tasks:
            raise TraceMismatch(
                f"{self._shards[0].folder.parent}: {expected} of {self._extent.tasks} tasks are there"
            )

    def _copy_task(self, task: _ShardTask) -> None:
        """Copy a plan, after the calls that it took, and its survey and its decision, unless they are there."""
        self._copy_calls(task.run, [task.body])
        for kind in ("survey", "decision"):
            digest = task.body[kind]
            if digest not in self._parts:
                self._parts.add(digest)
                self._copies.append((task.run.ledger.require(kind, digest), ()))
        self._copy(task.run, [(task.record, task.body)])

    def _copy_group(self, task: _ShardTask) -> None:
        """Copy the group of a task, after the calls that its traces name."""
        ledger = task.run.ledger
        group = ledger.find("group", task.record.key)
        if group is None:
            raise TraceMismatch(f"{ledger.path}: has no group of task {quote(task.record.key)}")
        group_body = _read_body(task.run, group)
        last = group.seq + group_body["size"]
        traces = list(ledger.records(after=group.seq, up_to=last))
        if [trace.kind for trace in traces] != ["trace"] * (last - group.seq):
            raise TraceMismatch(
                f"{ledger.path}, {record_label(group)}: its traces are not after it"
            )
        bodies = [_read_body(task.run, trace) for trace in traces]
        self._copy_calls(task.run, bodies)
        self._copy(task.run, [(group, group_body), *zip(traces, bodies, strict=True)])
        self._report(len(traces))

    def _copy_calls(self, run: Run, bodies: Sequence[Body]) -> None:
        """Copy the calls that records name, those of tools too, unless the last reply to the same request is the same.

        Two shards may have sent one request, and got different replies. So each reply stands before the verdicts that
        were made from it, where a reader finds it as the last one.
        """
        for body in bodies:
            for kind in _LAST_TEXT:
                for call in body.get(f"{kind}s", ()):
                    name = call["id"]
                    stored = self._find_merged(kind, name)
                    if stored is None or not self._has_same_reply(run, name, stored):
                        self._copy_call(run, kind, name)

    def _has_same_reply(self, run: Run, name: str, stored: Record) -> bool:
        record = run.ledger.find(stored.kind, name)
        if record is None:
            return True  # of the run from which the shard was branched
        index = _LAST_TEXT[stored.kind]
        reply = run.ledger.texts_of(record).get(index)
        return reply == self._merged.texts_of(stored).get(index)

    def _copy_call(self, run: Run, kind: str, name: str) -> None:
        records = run.ledger.find_all(kind, name)
        self._copy(run, [(record, _read_body(run, record)) for record in records])

    def _copy(self, run: Run, records: Sequence[tuple[Record, Body]]) -> None:
        """Copy records with their texts. Raises `TraceMismatch` where a text differs from its commitment."""
        commitments = {record.seq: body.get("texts", ()) for record, body in records}
        texts = run.ledger.salted_texts(commitments) if records else {}
        self._copies += [(record, texts[record.seq]) for record, _ in records]
        if len(self._copies) > _BATCH:
            self._write()

    def _refuse_lost_records(self) -> None:
        """Raise `TraceMismatch` where a shard has groups or traces that belong to no task."""
        for kind in ("task", "group", "trace"):
            expected = sum(run.ledger.count_records(kind) for run in self._shards)
            if self._merged.count_records(kind) != expected:
                folder = self._shards[0].folder.parent
                raise TraceMismatch(f"{folder}: its shards have a {kind} that belongs to no task")


def _read_tasks(run: Run) -> Iterator[_ShardTask]:
    for record in run.ledger.records("task"):
        body = _read_body(run, record)
        yield _ShardTask(body["number"], record, body, run)


def _read_body(run: Run, record: Record) -> Body:
    try:
        body: Body = from_json(record.body)
        return body
    except ValueError as error:
        problem = f"cannot be read ({error}); it has been changed"
        raise TraceMismatch(f"{run.ledger.path}, {record_label(record)}: {problem}") from None
