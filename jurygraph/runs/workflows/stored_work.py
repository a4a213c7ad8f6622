"""The stored part of a job: the run that it goes on with, if it may resume that, and which tasks are left."""

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from operator import attrgetter
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.jury import check_unchanged_inputs
from jurygraph.messages import shell_quote
from jurygraph.runs.recorder import build_run_header
from jurygraph.runs.run import ERASED_CHANGE_TEXT, Run, changes_by_response
from jurygraph.runs.store.folder import remove_discarded_run
from jurygraph.runs.store.header import (
    RunExtent,
    RunHeader,
    changes,
    differences,
    format_value,
)
from jurygraph.runs.workflows.task_file_job import TaskFileJob
from jurygraph.runs.writable_run import WritableRun, append_close_record, open_run_if_exists
from jurygraph.schema import Response, Task
from jurygraph.schema.frozen_model import StrPath
from jurygraph.sources import TableColumns, TaskSource
from jurygraph.sources.files import close_on_error
from jurygraph.sources.task_tables import CHAT_COLUMN_ROLES, add_columns_of_chats, chat_file_columns
from jurygraph.sources.tasks import TaskAndResponses

_MAX_LISTED_DIFFERENCES = 3
"""Number of differing tasks and responses that are described if a run cannot be resumed."""


class StoredJobProgress(AbstractContextManager["StoredJobProgress"]):
    """The run in the folder of a job, None until there is one, and the tasks that were left when it was opened.

    An open run is locked until `release`; a new one leaves nothing behind unless its plans are committed. One with
    other settings whose calls had no reply is made anew, as it has nothing to lose.
    """

    def __init__(self, job: TaskFileJob) -> None:
        """Open the run, and find out which tasks are scored.

        Raises `InputError` where it has other files, config, model or evaluators, or where another process writes it.
        """
        self._job = job
        self.run = open_run_if_exists(job.folder)
        self._scored: frozenset[int] = frozenset()
        if self.run is not None:
            with close_on_error(self.run.close):
                if self._matches_run(self.run):
                    self._scored = _scored_task_numbers(self.run)
                else:
                    self.release_run()
        self.tasks_done = len(self._scored)
        tasks, responses = job.source.extent(0, job.limit, self._scored)
        self.remaining = RunExtent(tasks=tasks, responses=responses)
        self.is_finished = self.run is not None and not tasks
        if self.run is not None:
            with close_on_error(self.release_run):
                if self.is_finished:
                    self._refuse_changed_files(self.run)
                elif self.run.is_closed:
                    raise InputError(
                        f"{job.folder}: was closed when {self.run.tasks_scored} of "
                        f"{job.task_count} tasks were scored; score into another --out, with "
                        f"--branch {shell_quote(job.folder)}"
                    )

    def __exit__(self, *_: object) -> None:
        self.release_run()

    def _matches_run(self, run: Run) -> bool:
        """Return whether a run is that of the job; False for another one without any reply. Raises `InputError`."""
        folder = self._job.folder
        if run.header.is_open_ended:
            raise InputError(
                f"{folder}: was recorded from Python, without a file of tasks; use another --out"
            )
        found = list(describe_run_differences(run, self._build_run_header(), self._job.source))
        if not found:
            return True
        if _has_only_failed_calls(run):
            return False
        hint = "use another --out, or --branch to request only what changed"
        if not run.tasks_scored:
            hint = f"no task of it is scored yet: `rm -r {shell_quote(folder)}`, or {hint}"
        raise InputError(f"{folder}: was started with other settings: {'; '.join(found)}; {hint}")

    def _refuse_changed_files(self, run: Run) -> None:
        """Raise `InputError` if a finished run was scored with other files of facts; any other run compares later."""
        context = self._job.jury.context
        if not (context.derivers or any(context.toolsets)):
            return
        for record in run.ledger.records("task"):
            content = run.stored_task_record(record.key)
            if content and (context.derivers or "files" in content):
                check_unchanged_inputs(run.plan_of(record.key), context)

    def _build_run_header(self) -> RunHeader:
        job = self._job
        source = job.source
        tasks, responses = source.extent()
        file_extent = None
        if source.shard is not None:
            file_task_count, file_response_count = source.file_extent()
            file_extent = RunExtent(tasks=file_task_count, responses=file_response_count)
        return build_run_header(
            job.jury,
            job.folder,
            tasks=source.tasks_file,
            responses=source.responses_file,
            profiles=None if job.profiles is None else job.profiles.file_digest,
            edges=source.edges_file,
            columns=source.columns,
            extent=RunExtent(tasks=tasks, responses=responses),
            branch=job.branch and job.branch.run.origin(job.folder),
            shard=source.shard,
            file_extent=file_extent,
        )

    def remaining_pairs(self) -> Iterator[TaskAndResponses]:
        """Yield the tasks that are not scored, up to the limit, with their responses."""
        return self._job.source.pairs(0, self._job.limit, self._scored)

    @property
    def unplanned_task_count(self) -> int:
        if self.is_finished:
            return 0
        planned_count = self.run.planned_task_count if self.run else 0
        return self._job.source.extent(planned_count, self._job.limit)[0]

    def create_run_if_missing(self) -> WritableRun:
        if self.run is None:
            self._remove_run_without_reply()
            self.run = WritableRun.create(
                self._job.folder, self._build_run_header(), uuid.uuid4().hex
            )
        assert isinstance(self.run, WritableRun), "a closed run is finished"
        return self.run

    def _remove_run_without_reply(self) -> None:
        """Remove the run that this one is made anew of, unless another process has gone on with it meanwhile."""
        run = open_run_if_exists(self._job.folder)
        if run is None:
            return
        with run:
            has_only_failed_calls = _has_only_failed_calls(run)
        if has_only_failed_calls:
            remove_discarded_run(self._job.folder, ())

    def close_run_if_complete(self) -> None:
        """Close a run that is complete; it may have been stopped just before it was closed."""
        run = self.run
        if run is not None and not run.is_closed and run.tasks_scored == self._job.task_count:
            append_close_record(run)

    def release_run(self) -> None:
        """Release the run for other processes; a new run that was not planned is removed."""
        if self.run is not None:
            self.run.close()
            self.run = None


def choose_chat_columns(
    path: StrPath, folder: Path, user_columns: TableColumns | None
) -> TableColumns | None:
    """Return the columns by which a run in a folder reads this file, of those that a user named; None if none.

    A file of chats has columns that need no name. Runs that were made before these were read kept them as labels. They
    go on with that: the tasks that are left are read like those that are scored, and are the tasks that were planned.
    """
    columns = (
        chat_file_columns(path)
        if user_columns is None
        else add_columns_of_chats(path, user_columns)
    )
    if columns is None or columns == user_columns:
        return columns
    run = Run.open_if_begun(folder)
    if run is None:
        return columns
    with run:
        stored_columns = run.header.columns
    if stored_columns is None:
        return columns
    missing_column_roles = [
        role for role in CHAT_COLUMN_ROLES if getattr(stored_columns, role) is None
    ]
    merged_columns = stored_columns.model_copy(
        update={role: getattr(columns, role) for role in missing_column_roles}
    )
    return stored_columns if merged_columns == columns else columns


def _has_only_failed_calls(run: Run) -> bool:
    """Return whether nothing came of a run: it has no trace, and none of its calls had a reply."""
    if run.ledger.count_records("trace"):
        return False
    faults = [record.content["call"].get("fault") for record in run.ledger.records("call")]
    return bool(faults) and all(faults)


def _scored_task_numbers(run: Run) -> frozenset[int]:
    """Return the numbers of the scored tasks in the tasks file, from 0: it is planned in its order."""
    ledger = run.source.ledger
    last = run.last_base_record_number
    scored = {task for _, task in ledger.ordered_group_numbers(last)}
    tasks = enumerate(ledger.record_numbers("task", last))
    return frozenset(number for number, task in tasks if task in scored)


def describe_run_differences(
    run: Run, current_header: RunHeader, source: TaskSource
) -> Iterator[str]:
    """Yield one sentence for each difference; where the files differ, for the first tasks and responses that differ.

    Their contents are compared, too, after an erasure, which removes the digests of the files.
    """
    yield from differences(run.header, current_header)
    if _file_checksums(run.header) != _file_checksums(current_header):
        sentences = list(
            islice(_describe_content_differences(run, source), _MAX_LISTED_DIFFERENCES + 1)
        )
        yield from sentences[:_MAX_LISTED_DIFFERENCES]
        if len(sentences) > _MAX_LISTED_DIFFERENCES:
            yield "and more"


def _file_checksums(header: RunHeader) -> list[str | None]:
    files = (header.tasks, header.responses, header.edges)
    return [None if file is None else file.sha256 for file in files]


def _describe_content_differences(run: Run, source: TaskSource) -> Iterator[str]:
    stored_task_ids = [record.key for record in run.ledger.records("task")]
    for number, (task, responses) in enumerate(source.pairs()):
        if number >= run.header.extent.tasks or (
            number < len(stored_task_ids) and task.id != stored_task_ids[number]
        ):
            yield f"task {task.id!r} is new, or at another position"
        elif number < len(stored_task_ids):
            stored_task = run.task(task.id)
            if stored_task is not None:
                yield from _compare_task(stored_task, task, responses, run)
    for name in run.ledger.keys("task"):
        if source.place(name) is None:
            yield f"task {name!r} is gone"


def _compare_task(
    stored_task: Task, task: Task, responses: tuple[Response, ...], run: Run
) -> Iterator[str]:
    stored_task_fields = stored_task.model_dump(mode="json")
    for field, before, after in changes(stored_task_fields, task.model_dump(mode="json")):
        yield (
            f"task {task.id!r}, field {field}: is {format_value(before)} in the run and "
            f"{format_value(after)} here"
        )
    if run.source.ledger.find("group", task.id) is None:
        return
    identity = attrgetter("content_digest", "agent", "labels", "metadata")
    for name, change in changes_by_response(run.group_of(task.id), responses, identity).items():
        if change != ERASED_CHANGE_TEXT:
            yield f"response {name!r} {change}"
