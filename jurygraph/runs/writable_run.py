"""Write a run: create or lock it, append plans and traces, and close it."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

from jurygraph.errors import InputError
from jurygraph.runs.run import Run, open_ledger
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.header import Header, header_draft, read_header
from jurygraph.runs.store.ledger import Draft, Ledger, close_on_error
from jurygraph.runs.store.packing import Body, number_shared_lists, pack_reward, pack_trace, task_text
from jurygraph.schema import Plan, Response, Task, Trace


class WritableRun(Run):
    """A run that this process has locked until `close`, so that no other process writes it."""

    def __init__(self, folder: Path, ledger: Ledger, header: Header, lock: IO[str]) -> None:
        super().__init__(folder, ledger, header)
        self._lock: IO[str] | None = lock
        self._created_folders: Sequence[Path] = ()
        self._is_discarded = False
        self._last_parts: Body = {}  # digests of the survey and the decision of the last task

    @classmethod
    def open_for_writing(cls, folder: Path) -> "WritableRun | None":
        """Open and lock the run in a folder; None where a new run can be created there.

        Raises `InputError` where another process writes it, or where the folder holds something other than a run.
        """
        if not (folder / run_folder.LEDGER).exists():
            run_folder.refuse_foreign(folder)
            return None
        run_folder.refuse_links(folder)
        lock = run_folder.acquire_lock(folder / run_folder.LOCK)
        try:
            ledger = open_ledger(folder, write=True)
            if ledger is not None:
                with close_on_error(ledger.close):
                    return cls(folder, ledger, read_header(ledger), lock)
        except BaseException:
            run_folder.release_lock(lock)
            raise
        run_folder.release_lock(lock)  # stopped before its plans were committed
        return None

    @classmethod
    def open_existing(cls, folder: Path) -> "WritableRun":
        """Open and lock the run in a folder. Raises `InputError` where there is none, or another process writes it."""
        run_folder.require_run(folder)
        run = cls.open_for_writing(folder)
        if run is None:
            raise InputError(f"{folder}: contains no run yet: planning was interrupted; run `jurygraph score` again")
        return run

    @classmethod
    def create(cls, folder: Path, header: Header, run_id: str) -> "WritableRun":
        """Create and lock a new run. It exists once it is committed; closed before, it leaves nothing behind."""
        folder = folder.resolve()
        created = run_folder.create_folder(folder)
        run_folder.refuse_links(folder)
        text = run_folder.config_text(header.config)
        header = header.model_copy(update={"config_file": sha256(text).hexdigest()})
        lock = run_folder.acquire_lock(folder / run_folder.LOCK)
        try:
            run = cls(folder, Ledger.create(folder / run_folder.LEDGER), header, lock)
        except BaseException:
            run_folder.remove_folder(folder, created)
            run_folder.release_lock(lock)
            raise
        run._created_folders = created
        try:
            if run.ledger.count:
                raise InputError(f"{folder}: another process made a run there first; start again to go on with it")
            write_atomically(folder / run_folder.CONFIG, text)
            run.ledger.append(header_draft(header, run_id))
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Release the run, so that another process can write it; one that was never committed is removed."""
        if self._lock is not None:
            self.ledger.close_as_plain_file()
            if not self.ledger.count or self._is_discarded:
                run_folder.remove_folder(self.folder, self._created_folders)
            run_folder.release_lock(self._lock)
            self._lock = None
        super().close()

    def discard(self) -> None:
        """Remove the run when it is closed: it has no result and no call that is of use."""
        self._is_discarded = True

    def add_plan(self, task: Task, plan: Plan) -> None:
        """Append the plan of a task, together with its survey and decision unless these are stored already."""
        parts = {"survey": plan.survey.outline, "decision": plan.decision}
        body: Body = {kind: part.digest for kind, part in parts.items()}
        for kind, part in parts.items():
            if self._last_parts.get(kind) != part.digest and self.ledger.find(kind, part.digest) is None:
                self.ledger.append(Draft(kind, part.digest, part.model_dump(mode="json")))
        self._last_parts = dict(body)
        if plan.calls:
            body["calls"] = [call.model_dump(mode="json") for call in plan.calls]
        self.ledger.append(Draft("task", task.id, body, [task_text(task, plan)]))

    def group_drafts(self, plan: Plan, traces: Sequence[Trace], responses: Sequence[Response]) -> list[Draft]:
        """Return the records of a task's whole group, ready to be appended."""
        # Imported lazily: it loads NumPy, which closing a run does not need.
        from jurygraph.decision.decide import RewardRow

        response_by_id = {response.id: response for response in responses}
        outline = plan.survey.outline
        shared_lists = number_shared_lists(traces)
        group = {"size": len(traces), "statistics": traces[0].statistics}
        if shared_lists:
            group["shown"] = list(shared_lists)
        drafts = [Draft("group", plan.task_id, group, [traces[0].group.encode()])]
        for number, trace in enumerate(traces, start=1):
            reward = pack_reward(RewardRow.from_reward(trace.reward))
            body, texts = pack_trace(trace, response_by_id[trace.response_id], outline, reward, number, shared_lists)
            drafts.append(Draft("trace", trace.response_id, body, texts))
        return drafts


class ClosedRun(NamedTuple):
    """The state of a closed run: its numbers of traces and records, and its head."""

    traces: int
    records: int
    head: str


def close_run(folder: Path) -> ClosedRun:
    """Close a run, so that nothing more can be scored into it; a run that is closed already is left unchanged.

    Raises `InputError` where there is no run, or where another process writes it.
    """
    with WritableRun.open_existing(folder) as run:
        if not run.is_closed:
            append_close_record(run)
        return ClosedRun(run.ledger.count_records("trace"), run.ledger.count, run.ledger.head.hex())


def append_close_record(run: Run) -> None:
    """Append the closing record of a run: its number of traces, and the head before this record."""
    body = {"traces": run.ledger.count_records("trace"), "head": run.ledger.head.hex()}
    run.ledger.append(Draft("close", "", body))
    run.ledger.commit()
