"""Merge the shards of a run into one run, with the records of a run that one process scored.

Shards are read side by side and written in the order of the tasks file, so that memory does not grow with them. In one
pass, the link of each record is verified, its texts are held against its commitments, and it is copied to the byte; no
body is parsed unless it names calls. All is written in a single transaction: whatever stops the merge, there is no run,
and the same command repeats it. SQLite itself cannot copy from all shards, because it attaches ten files at most.
"""

import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from heapq import merge as merge_sorted
from itertools import chain, pairwise, product
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.messages import quote, shell_quote
from jurygraph.runs.integrity.record_check import require_config_file_as_written
from jurygraph.runs.run import Run, relocated_header_fields
from jurygraph.runs.store.folder import list_run_folders
from jurygraph.runs.store.header import RunHeader, differences
from jurygraph.runs.store.ledger import LedgerRecord, RecordCopy, record_label
from jurygraph.runs.store.packing import RecordBody
from jurygraph.runs.writable_run import (
    ClosedRunSummary,
    WritableRun,
    append_close_record,
    refuse_existing_run,
)
from jurygraph.sources import Shard

ProgressStarter = Callable[[int], AbstractContextManager[ProgressCallback]]
_CALL_RECORD_KINDS = ("call", "lookup")
_REPLY_TEXT_INDEX = 1
"""The index of the reply, or of the result, among the texts of a call of a model or of a tool."""
_RECORDS_PER_BATCH = 500


def merge_shards(
    run_folders: Sequence[Path],
    out: Path,
    progress: ProgressStarter = lambda total: nullcontext(ignore_progress),
) -> ClosedRunSummary:
    """Merge all shards of a run into a new run in the folder `out`.

    A folder may be that of a shard, or one with the folders of several. They may come in any order. `progress` receives
    the number of responses, and what it yields that of the responses of each group. Raises `InputError` where a shard
    is missing, named twice, not complete or of other settings, or where `out` has other files, and `TraceMismatch`
    where a shard was changed.
    """
    with ExitStack() as stack:
        shards = []
        for folder in run_folders:
            for member in list_run_folders(folder) or [folder]:
                run = stack.enter_context(Run.open(member))
                _require_complete_shard(run)
                shards.append(run)
        shards.sort(key=lambda run: _shard_of_run(run).index)
        _require_all_shards(shards)
        refuse_existing_run(out)
        for run in shards:
            stack.enter_context(run.ledger.snapshot_transaction())
            require_config_file_as_written(run)
        header = _merged_header(shards, out)
        report = stack.enter_context(progress(header.extent.responses))
        with WritableRun.create(
            out, header, uuid.uuid4().hex, in_single_transaction=True
        ) as merged_run:
            _ShardMerger(shards, merged_run, report).merge()
            append_close_record(merged_run)
            return ClosedRunSummary.of(merged_run)


def _shard_of_run(run: Run) -> Shard:
    shard = run.header.shard
    assert shard is not None, "others are refused"
    return shard


def _require_complete_shard(run: Run) -> None:
    """Raise `InputError` for a run that is no complete shard."""
    if run.header.shard is None:
        raise InputError(f"{run.folder}: is no shard; it was scored without --shard")
    expected = run.header.extent.tasks
    if not run.is_closed or run.tasks_scored != expected:
        raise InputError(
            f"{run.folder}: is not complete: {run.tasks_scored} of its {expected} tasks are "
            f"scored; run its `jurygraph score --shard {run.header.shard}` again"
        )
    if run.ledger.count_records("erasure"):
        raise InputError(
            f"{run.folder}: texts were erased from it; "
            f"score it again into another folder with --branch {shell_quote(run.folder)}, "
            "and erase after merging"
        )


def _require_all_shards(shards: Sequence[Run]) -> None:
    """Raise `InputError` unless these, in order, are all shards of one run, each once."""
    first = shards[0]
    header = first.header.header_of_all_shards()
    count = _shard_of_run(first).of
    for run in shards:
        shard = _shard_of_run(run)
        if shard.of != count:
            raise InputError(f"{run.folder}: is shard {shard}, and {first.folder} is 1 of {count}")
        found = next(differences(header, run.header.header_of_all_shards()), None)
        if found is None and _branched_run_head(run.header) != _branched_run_head(header):
            found = "the run was branched from other records of the same run"
        if found is not None:
            raise InputError(f"{run.folder}: has other settings than {first.folder}: {found}")
    for previous, run in pairwise(shards):
        if _shard_of_run(previous) == _shard_of_run(run):
            raise InputError(f"{run.folder}: shard {_shard_of_run(run)} is there twice")
    missing = {*range(1, count + 1)} - {_shard_of_run(run).index for run in shards}
    if missing:
        more_text = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(f"shard {min(missing)}/{count}{more_text} missing; name its folder, too")


def _branched_run_head(header: RunHeader) -> str | None:
    return None if header.branch is None else header.branch.head


def _merged_header(shards: Sequence[Run], out: Path) -> RunHeader:
    first = shards[0]
    fields = relocated_header_fields(first.header, first.folder, out)
    fields["merged"] = tuple(run.origin(out) for run in shards)
    return first.header.header_of_all_shards().model_copy(update=fields)


class _ShardTask(NamedTuple):
    """The record of a task with its number in the tasks file, and the run of its shard."""

    number: int
    body: RecordBody
    copy: RecordCopy
    run: Run


class _ShardMerger:
    """Copies the records of shards, and verifies their chains meanwhile."""

    def __init__(
        self, shards: Sequence[Run], merged_run: WritableRun, report: ProgressCallback
    ) -> None:
        self._shards = shards
        self._merged = merged_run.ledger
        self._extent = merged_run.header.extent
        self._report = report
        self._copies: list[RecordCopy] = []
        """Records that are written together: to write each by itself takes twice as long."""
        self._parts: set[str] = set()
        """Digests of the surveys and decisions that were copied; the tasks of a file share few of them."""

    def merge(self) -> None:
        """Copy all tasks, then all groups, as scoring writes them, and what calls are left."""
        task_shard_indices = array("L", map(self._copy_task, self._sorted_shard_tasks()))
        groups = [_iter_groups_with_traces(run) for run in self._shards]
        # A group takes the place of its task, or in a shard whose groups ended in another order that of another task.
        for owner in task_shard_indices:
            run = self._shards[owner]
            group = next(groups[owner], [])
            self._copy_calls(run, group)
            self._add_records(run, group)
            self._report(len(group) - 1)
        for _ in chain.from_iterable(groups):
            pass  # what follows the last group is verified; another group is missed below
        for kind, run in product(_CALL_RECORD_KINDS, self._shards):
            for record in run.ledger.records(kind):
                if self._find_merged_record(kind, record.key) is None:
                    self._copy_call(run, kind, record.key)
        self._write()
        self._refuse_lost_records()

    def _write(self) -> None:
        self._merged.append_copies(self._copies)
        self._copies.clear()

    def _find_merged_record(self, kind: str, key: str) -> LedgerRecord | None:
        self._write()
        return self._merged.find(kind, key)

    def _sorted_shard_tasks(self) -> Iterator[_ShardTask]:
        """Yield the tasks in the order of their file. Raises `TraceMismatch` where one is missing, or there twice."""
        tasks_in_file_order = merge_sorted(
            *map(_read_task_records, self._shards), key=attrgetter("number")
        )
        for expected, task in enumerate(tasks_in_file_order):
            name = task.copy.record.key
            if task.number != expected or not _shard_of_run(task.run).includes_task(name):
                raise TraceMismatch(
                    f"{task.run.ledger.path}: has task {quote(name)} as number {task.number} of "
                    "the file, where it cannot be"
                )
            yield task

    def _copy_task(self, task: _ShardTask) -> int:
        """Copy a plan after its calls, and its survey and decision unless they are there; return its shard's index."""
        self._copy_calls(task.run, [task.copy])
        for kind in ("survey", "decision"):
            digest = task.body[kind]
            if digest not in self._parts:
                self._parts.add(digest)
                self._copies.append(RecordCopy(task.run.ledger.require(kind, digest), ()))
        self._add_records(task.run, [task.copy])
        return _shard_of_run(task.run).index - 1

    def _copy_calls(self, run: Run, record_copies: Sequence[RecordCopy]) -> None:
        """Copy the calls that records name, those of tools too, unless the last reply to the same request is the same.

        Two shards may have sent one request, and got different replies. So each reply stands before the verdicts that
        were made from it, where a reader finds it as the last one.
        """
        for (record, _), kind in product(record_copies, _CALL_RECORD_KINDS):
            field = f"{kind}s"
            if f'"{field}":' not in record.body:  # to parse all bodies takes a sixth of a merge
                continue
            for call in record.content.get(field, ()):
                merged_record = self._find_merged_record(kind, call["id"])
                if merged_record is None or not self._has_same_reply(run, merged_record):
                    self._copy_call(run, kind, call["id"])

    def _has_same_reply(self, run: Run, merged_record: LedgerRecord) -> bool:
        record = run.ledger.find(merged_record.kind, merged_record.key)
        if record is None:
            return True  # of the run from which the shard was branched
        reply = run.ledger.texts_of_record(record).get(_REPLY_TEXT_INDEX)
        return reply == self._merged.texts_of_record(merged_record).get(_REPLY_TEXT_INDEX)

    def _copy_call(self, run: Run, kind: str, name: str) -> None:
        for record in run.ledger.find_all_records(kind, name):
            texts = list(run.ledger.stored_texts(record.seq, record.seq))
            self._add_records(run, [RecordCopy(record, texts)])

    def _add_records(self, run: Run, record_copies: Iterable[RecordCopy]) -> None:
        """Add records with their texts. Raises `TraceMismatch` where a text differs from its commitment."""
        for copy in record_copies:
            if not copy.matches_commitments:
                raise TraceMismatch(
                    f"{run.ledger.path}, {record_label(copy.record)}: "
                    "its texts are not those that were written"
                )
            self._copies.append(copy)
        if len(self._copies) > _RECORDS_PER_BATCH:
            self._write()

    def _refuse_lost_records(self) -> None:
        """Raise `TraceMismatch` unless all tasks of the file are there, each with its group, and all traces."""
        folder = self._shards[0].folder.parent
        tasks, responses = self._extent.tasks, self._extent.responses
        for kind, expected in (("task", tasks), ("group", tasks), ("trace", responses)):
            if self._merged.count_records(kind) != expected:
                raise TraceMismatch(
                    f"{folder}: its shards have not {expected} {kind}s, as the file"
                )
        previous = None  # groups without a task come first, and those of one task together
        for _, task in self._merged.ordered_group_numbers():
            if task == previous:
                raise TraceMismatch(f"{folder}: its shards have a group that is of no task")
            previous = task


def _read_task_records(run: Run) -> Iterator[_ShardTask]:
    last = max(run.ledger.record_numbers("task"), default=1)
    for copy in run.ledger.verified_copies(1, last):
        if copy.record.kind == "task":
            body = copy.record.content
            yield _ShardTask(body["number"], body, copy, run)


def _iter_groups_with_traces(run: Run) -> Iterator[list[RecordCopy]]:
    """Yield each group with its traces, which are stored after it; verify what `_read_tasks` has not."""
    last_task_number = max(run.ledger.record_numbers("task"), default=1)
    first_group_number = next(run.ledger.record_numbers("group"), run.ledger.count)
    group: list[RecordCopy] = []
    for copy in run.ledger.verified_copies(
        min(first_group_number, last_task_number + 1), run.ledger.count
    ):
        if copy.record.kind != "trace":
            if group:
                yield group
            group = []
        if group or copy.record.kind == "group":
            group.append(copy)
