"""Close a run: append a record of its traces and head, after which nothing more can be scored into it."""

from pathlib import Path
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.folder import require_run
from jurygraph.runs.writable_run import WritableRun


class ClosedRun(NamedTuple):
    """The state of a closed run: its numbers of traces and records, and its head."""

    traces: int
    records: int
    head: str


def close_run(folder: Path) -> ClosedRun:
    """Close a run that will not be continued; a run that is already closed is left unchanged.

    Raises `InputError` where there is no run, or where another process writes it.
    """
    require_run(folder)
    run = WritableRun.open_for_writing(folder)
    if run is None:
        raise InputError(f"{folder}: contains no run yet: planning was interrupted; run `jurygraph score` again")
    try:
        if not run.is_closed:
            append_close_record(run)
        return ClosedRun(run.ledger.count_records("trace"), run.ledger.count, run.ledger.head.hex())
    finally:
        run.close()


def append_close_record(run: Run) -> None:
    """Append the closing record of a run: its number of traces, and the head before this record."""
    body = {"traces": run.ledger.count_records("trace"), "head": run.ledger.head.hex()}
    run.ledger.append(Draft("close", "", body))
    run.ledger.commit()
