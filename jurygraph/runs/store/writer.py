"""Group commits: records are appended in the event loop, and one thread makes those of two milliseconds durable.

Python's lock lets threads that compute take turns, which costs more than the records: the thread only waits for the
disk.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger

_MAX_WAIT = 0.002
_MAX_WAITING = 4096
"""Number of records that wait for a commit before the event loop waits for it, too."""


class _Commit:
    """A commit under way, and who waits for it."""

    def __init__(self, waiting: Sequence["asyncio.Future[None]"]) -> None:
        self.waiting = waiting
        self.is_done = threading.Event()
        self.error: BaseException | None = None


class Writer:
    """Appends batches of records to a ledger, each batch completely or not at all. Used in one event loop.

    A batch is durable once it would survive a power failure. If it could not be written, whoever waits for it gets the
    error; after an error nothing more is written.
    """

    def __init__(self, ledger: Ledger) -> None:
        ledger.make_durable()
        self._ledger = ledger
        self._drafts: list[Draft] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._commit: _Commit | None = None
        self._error: BaseException | None = None
        self._commits: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Commit] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._commit_each, name="jurygraph-ledger", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> None:
        """Append a batch with the next commit. Raises the error that stopped the writing."""
        self._enqueue(drafts)

    async def append_durably(self, drafts: Sequence[Draft]) -> None:
        """Append a batch as `append` does, and wait until it is durable."""
        durable = asyncio.get_running_loop().create_future()
        self._enqueue(drafts, durable)
        await durable

    def _enqueue(self, drafts: Sequence[Draft], *waiting: "asyncio.Future[None]") -> None:
        if self._error is not None:
            raise self._error
        self._drafts += drafts
        self._waiting += waiting
        if len(self._drafts) > _MAX_WAITING:
            self._write_now()
        else:
            self._schedule_commit()

    def _schedule_commit(self) -> None:
        """Commit what waits soon, unless a commit is planned or under way: its end schedules the next."""
        if self._drafts and self._timer is None and self._commit is None:
            self._timer = asyncio.get_running_loop().call_later(_MAX_WAIT, self._start_commit)

    def close(self) -> None:
        """Write what is left and stop the thread. Raises the error that stopped the writing."""
        self._write_now()
        self._commits.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _start_commit(self) -> None:
        """Append the waiting batches, and have the thread commit them."""
        self._timer = None
        commit = self._append_waiting()
        if commit.error is None:
            self._commit = commit
            self._commits.put((asyncio.get_running_loop(), commit))
        else:
            self._settle(commit)

    def _append_waiting(self) -> _Commit:
        drafts = self._drafts
        commit = _Commit(self._waiting)
        self._drafts = []
        self._waiting = []
        try:
            if self._error is None:
                self._ledger.append(*drafts)
        except BaseException as error:  # noqa: BLE001 - it is raised by the next append
            commit.error = error
        return commit

    def _commit_each(self) -> None:
        while (next_commit := self._commits.get()) is not None:
            loop, commit = next_commit
            self._make_durable(commit)
            with suppress(RuntimeError):  # a closed loop has no one who waits
                loop.call_soon_threadsafe(self._end_commit, commit)

    def _make_durable(self, commit: _Commit) -> None:
        try:
            self._ledger.commit()
        except BaseException as error:  # noqa: BLE001 - as above
            commit.error = error
        commit.is_done.set()

    def _end_commit(self, commit: _Commit) -> None:
        if commit is self._commit:  # else `_write_now` ended it
            self._commit = None
            self._settle(commit)
            self._schedule_commit()

    def _write_now(self) -> None:
        """Wait for the commit under way, then write all that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (under_way := self._commit) is not None:
            under_way.is_done.wait()
            self._commit = None
            self._settle(under_way)
        commit = self._append_waiting()
        if commit.error is None:
            self._make_durable(commit)
        self._settle(commit)

    def _settle(self, commit: _Commit) -> None:
        """Tell those who wait for a commit how it ended."""
        if commit.error is not None and self._error is None:
            self._error = commit.error
            self._ledger.rollback()
        for future in commit.waiting:
            if not future.done():  # whoever waits may have been cancelled
                future.set_exception(self._error) if self._error else future.set_result(None)
