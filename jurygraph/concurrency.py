"""Run many asyncio tasks at once with a bound, and coroutines for callers that have no event loop."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_in_order(
    asyncio_tasks: "Iterable[asyncio.Task[T]]", max_concurrent: int, max_waiting: int
) -> AsyncGenerator[T, None]:
    """Yield the results of asyncio tasks in order; the iterable starts a task each time its next item is taken.

    At most `max_concurrent` tasks run at once. A finished task makes room for another, and its result waits until those
    before it are yielded: up to `max_concurrent` * `max_waiting` finished results may wait, and the iterable is read
    no further than that. The error of a task is raised in the place of its result. Tasks that still run then, or when
    the generator is closed, are cancelled.
    """
    waiting: deque[asyncio.Task[T]] = deque()
    room = asyncio.Semaphore(max_concurrent - 1)
    try:
        for task in asyncio_tasks:
            waiting.append(task)
            task.add_done_callback(lambda _: room.release())
            await room.acquire()  # wait for a free place before the next task is started
            while waiting and (waiting[0].done() or len(waiting) >= max_concurrent * (1 + max_waiting)):
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class LoopThread:
    """One long-lived event loop in a thread of its own, started when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result; an interrupted caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what is left in the loop and end it. Can be called more than once; `run` starts another."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_tasks(loop), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = self._thread = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="jurygraph", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            return loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue  # the awaiting caller gets it from the task; asyncio also stops the loop, so run it again


async def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that are left, so that their callers get a cancellation, and stop the executor."""
    remaining = asyncio.all_tasks() - {asyncio.current_task()}
    for task in remaining:
        task.cancel()
    await asyncio.gather(*remaining, return_exceptions=True)
    await loop.shutdown_default_executor()
