"""The end of a run: a record of how much it holds, after which nothing more is scored into it."""

from pathlib import Path
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.folder import require


class Closed(NamedTuple):
    """What a run came to: its traces, its records and its head."""

    traces: int
    records: int
    head: str


def close_run(folder: Path) -> Closed:
    """Close a run that is not to be gone on with; one that is closed stays as it is.

    Raises `InputError` where there is no run, or another process writes it.
    """
    require(folder)
    run = Run.to_write(folder)
    if run is None:
        raise InputError(f"{folder}: holds no run yet, it was stopped while it planned; `jurygraph score` makes it")
    try:
        if not run.closed:
            close_record(run)
        return Closed(run.ledger.number("trace"), run.ledger.count, run.ledger.head.hex())
    finally:
        run.close()


def close_record(run: Run) -> None:
    """Append the record of a run's end: how many traces it holds, and the head before it."""
    body = {"traces": run.ledger.number("trace"), "head": run.ledger.head.hex()}
    run.ledger.append(Draft("close", "", body))
    run.ledger.commit()
