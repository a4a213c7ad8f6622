"""Group commits: one thread makes appended records durable, in batches of what arrives within a few milliseconds."""

import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress

from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger

_MAX_WAIT = 0.005
_MAX_BATCHES = 256
_QUEUE_SIZE = 64
_Batch = tuple[Sequence[Draft], "Future[None]"]


class Writer:
    """Appends batches of records to a ledger, each batch completely or not at all.

    The future of a batch is done once the batch would survive a power failure, and carries the error if it could not be
    written; after an error nothing more is written.
    """

    def __init__(self, ledger: Ledger) -> None:
        ledger.make_durable()  # before the thread starts: planning reads the ledger at the same time
        self._ledger = ledger
        self._batches: queue.Queue[_Batch | None] = queue.Queue(_QUEUE_SIZE)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="jurygraph-ledger", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Enqueue a batch; blocks while the queue is full. Raises the error that stopped the writing."""
        if self._error is not None:
            raise self._error
        durable: Future[None] = Future()
        self._batches.put((drafts, durable))
        return durable

    def close(self) -> None:
        """Write the enqueued batches and stop the thread. Raises the error that stopped the writing."""
        self._batches.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        batches: list[_Batch | None] = []
        while None not in batches:
            batches = self._gather()
            self._commit([batch for batch in batches if batch is not None])

    def _gather(self) -> list[_Batch | None]:
        """Return the batches that are waiting or arrive within `_MAX_WAIT` seconds; None is the end."""
        batches, until = [self._batches.get()], time.monotonic() + _MAX_WAIT
        with suppress(queue.Empty):
            while batches[-1] is not None and len(batches) < _MAX_BATCHES:
                batches.append(self._batches.get(timeout=max(0.0, until - time.monotonic())))
        return batches

    def _commit(self, batches: Sequence[_Batch]) -> None:
        try:
            if batches and self._error is None:
                self._ledger.append(*(draft for drafts, _ in batches for draft in drafts))
                self._ledger.commit()
        except BaseException as error:  # noqa: BLE001 - it is raised by the next append
            self._error = error
            self._ledger.rollback()
        for _, durable in batches:
            durable.set_exception(self._error) if self._error else durable.set_result(None)
