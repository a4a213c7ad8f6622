"""Group commits: one thread makes appended records durable, in batches of what arrives within a few milliseconds."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger

_MAX_WAIT = 0.005
_MAX_WAITING = 1024


class _Batch(NamedTuple):
    """Drafts to be appended together, and who waits until they are durable: a thread, or a task of an event loop."""

    drafts: Sequence[Draft]
    durable: "Future[None] | asyncio.Future[None]"


class Writer:
    """Appends batches of records to a ledger, each batch completely or not at all.

    A batch is durable once it would survive a power failure. If it could not be written, whoever waits for it gets the
    error; after an error nothing more is written.
    """

    def __init__(self, ledger: Ledger) -> None:
        ledger.make_durable()  # before the thread starts: planning reads the ledger at the same time
        self._ledger = ledger
        self._waiting: list[_Batch] = []
        self._changed = threading.Condition()
        self._is_closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="jurygraph-ledger", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Enqueue a batch, and return a future that is done once it is durable.

        Blocks while the queue is full. Raises the error that stopped the writing.
        """
        durable: Future[None] = Future()
        self._enqueue(_Batch(drafts, durable))
        return durable

    async def append_durably(self, drafts: Sequence[Draft]) -> None:
        """Enqueue a batch as `append` does, and wait until it is durable."""
        durable = asyncio.get_running_loop().create_future()
        self._enqueue(_Batch(drafts, durable))
        await durable

    def _enqueue(self, batch: _Batch) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or len(self._waiting) < _MAX_WAITING)
            if self._error is not None:
                raise self._error
            self._waiting.append(batch)
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def close(self) -> None:
        """Write the enqueued batches and stop the thread. Raises the error that stopped the writing."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while batches := self._gather():
            self._commit(batches)

    def _gather(self) -> list[_Batch]:
        """Return the batches that arrive within `_MAX_WAIT` seconds after the first; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            self._changed.wait_for(lambda: self._is_closing or len(self._waiting) >= _MAX_WAITING, timeout=_MAX_WAIT)
            batches, self._waiting = self._waiting, []
            self._changed.notify_all()
        return batches

    def _commit(self, batches: Sequence[_Batch]) -> None:
        try:
            if self._error is None:
                self._ledger.append(*(draft for batch in batches for draft in batch.drafts))
                self._ledger.commit()
        except BaseException as error:  # noqa: BLE001 - it is raised by the next append
            self._error = error
            self._ledger.rollback()
        _settle([batch.durable for batch in batches], self._error)


def _settle(waiting: "Sequence[Future[None] | asyncio.Future[None]]", error: BaseException | None) -> None:
    """Settle the futures; those of an event loop all at once, because waking a loop is slow."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Any]] = defaultdict(list)
    for future in waiting:
        if isinstance(future, asyncio.Future):
            by_loop[future.get_loop()].append(future)
        else:
            _settle_each([future], error)
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # a closed loop has no one who waits
            loop.call_soon_threadsafe(_settle_each, futures, error)


def _settle_each(futures: "Sequence[Future[None] | asyncio.Future[None]]", error: BaseException | None) -> None:
    for future in futures:
        if not future.done():  # whoever waits may have been cancelled
            future.set_exception(error) if error else future.set_result(None)
