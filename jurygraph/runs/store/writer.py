"""Group commits: one thread makes durable what others append, as much at once as comes within a few milliseconds."""

import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger

_LONGEST_WAIT = 0.005
_AT_ONCE = 256
_WAITING = 64


class _Batch(NamedTuple):
    drafts: Sequence[Draft]
    durable: "Future[None]"


class Writer:
    """Appends batches of records to a ledger, each batch whole or not at all.

    A batch's future is done once it would survive a power cut, and carries the error if it could not be written;
    after an error nothing more is written.
    """

    def __init__(self, ledger: Ledger) -> None:
        ledger.make_durable()  # before the thread: whoever plans from the ledger reads it meanwhile
        self._ledger = ledger
        self._batches: queue.Queue[_Batch | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="jurygraph-ledger", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Hand over a batch; waits while too much is waiting already. Raises the error that stopped the writing."""
        if self._error is not None:
            raise self._error
        batch = _Batch(drafts, Future())
        self._batches.put(batch)
        return batch.durable

    def close(self) -> None:
        """Write what is waiting and end. Raises the error that stopped the writing."""
        self._batches.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        ended = False
        while not ended:
            batches, ended = self._gathered()
            if batches:
                self._commit(batches)

    def _gathered(self) -> tuple[list[_Batch], bool]:
        """What has come, and what comes within the wait; whether it is the last."""
        first = self._batches.get()
        if first is None:
            return [], True
        batches, until = [first], time.monotonic() + _LONGEST_WAIT
        while len(batches) < _AT_ONCE:
            try:
                batch = self._batches.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if batch is None:
                return batches, True
            batches.append(batch)
        return batches, False

    def _commit(self, batches: Sequence[_Batch]) -> None:
        try:
            if self._error is None:
                self._ledger.append(*(draft for batch in batches for draft in batch.drafts))
                self._ledger.commit()
        except BaseException as error:  # noqa: BLE001 - it is raised where the next batch is appended
            self._error = error
            self._ledger.rollback()
        for batch in batches:
            batch.durable.set_exception(self._error) if self._error else batch.durable.set_result(None)
