"""Work on a whole run, such as a ranking or a verification: in a thread of its own, so that pages do not wait for it.

The thread opens the run itself: a ledger belongs to the thread of the pages. Both read the index.
"""

import asyncio
import ctypes
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from jurygraph.display import ProgressCallback
from jurygraph.runs.run import Run
from jurygraph.studies.ranking import AgentRanker
from jurygraph.viewer.index import RunIndex

T = TypeVar("T")
_M_MMAP_THRESHOLD = -3
"""Number of an option of glibc's `mallopt` (malloc.h)."""
_LARGE_ARRAY_BYTES = 2**20


def return_freed_arrays() -> None:
    """Let large arrays of this process go back to the system when they are freed, where the C library is glibc.

    With the first arrays of a ranking it would raise that size to 32 MB, and keep what is smaller: 35 MB of a run of
    100,000 responses.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_ARRAY_BYTES)


class RunScanQueue:
    """The scans of one run, one after another. The verdicts of the last ranking stay in memory until the run grows."""

    _scan_lock = Lock()
    """Held by whatever scans, of any run: two threads of a process take twice as long for anything."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._folder = index.run.folder
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-scan")
        self._check_executor = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-check")
        self._ranker: AgentRanker | None = None
        self._records = 0
        self._is_ending = False

    async def rank(self, function: Callable[[AgentRanker], T]) -> T:
        """Return what a function computes with the ranker of the run as it is in the index.

        It stops at its next decision where the server ends.
        """
        self._index.complete()
        records = self._index.records

        def rank_agents() -> T:
            if self._ranker is None or records != self._records:
                self.forget()
                run = Run.open(self._folder)
                self._ranker = AgentRanker(
                    run, self._index.iter_packed_groups(), self._require_running
                )
                self._records = records
            return function(self._ranker)

        return await self.call(rank_agents)

    async def check(self, function: Callable[[Run, ProgressCallback], T]) -> T:
        """Return what a function finds in the run, which reports its progress and stops where the server ends.

        It goes on when no scan runs and, after a turn of the loop, no page is being made: each would take twice as
        long.
        """
        loop = asyncio.get_running_loop()

        def wait_for_others(count: int) -> None:
            self._require_running(count)
            with self._scan_lock:
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()

        def check_run() -> T:
            with Run.open(self._folder) as run:
                return function(run, wait_for_others)

        return await loop.run_in_executor(self._check_executor, check_run)

    def _require_running(self, count: int) -> None:
        if self._is_ending:
            raise CancelledError("the server ends")

    async def call(self, function: Callable[[], T]) -> T:
        def scan() -> T:
            with self._scan_lock:
                return function()

        return await asyncio.get_running_loop().run_in_executor(self._executor, scan)

    async def close(self) -> None:
        """End the scan that runs, as soon as it reports its progress, and forget the others."""
        self._is_ending = True
        # in a thread: a check may be waiting for a turn of this loop
        for executor in (self._executor, self._check_executor):
            await asyncio.to_thread(executor.shutdown, cancel_futures=True)
        self.forget()

    def forget(self) -> None:
        """Let go of the verdicts of the last ranking, in the thread of the scans."""
        if self._ranker is not None:
            self._ranker.run.close()
        self._ranker = None
