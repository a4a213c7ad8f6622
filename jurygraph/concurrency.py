"""Run many asyncio tasks at once with a bound, calls in threads, and coroutines for callers without an event loop."""

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop, with which a question costs a tenth less CPU, or of asyncio without it."""
    try:
        import uvloop
    except ImportError:  # Windows has none
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


# seconds that a thread waits for its next call, since starting takes longer than most calls
_MAX_THREAD_IDLE_SECONDS = 1.0


async def gather_in_order(
    asyncio_tasks: "Iterable[asyncio.Task[T]]", max_concurrent: int, max_waiting_results: int
) -> AsyncGenerator[T, None]:
    """Yield the results of asyncio tasks in order; the iterable starts a task each time its next item is taken.

    At most `max_concurrent` tasks run at once. A finished task makes room for another, and its result waits until those
    before it are yielded: up to `max_concurrent` * `max_waiting_results` finished results may wait, and the iterable is
    read no further than that. The error of a task is raised in the place of its result. Tasks that still run then, or
    when the generator is closed, are cancelled.
    """
    waiting_tasks: deque[asyncio.Task[T]] = deque()
    slot_semaphore = asyncio.Semaphore(max_concurrent - 1)
    try:
        for task in asyncio_tasks:
            waiting_tasks.append(task)
            task.add_done_callback(lambda _: slot_semaphore.release())
            await slot_semaphore.acquire()  # wait for a free place before the next task is started
            while waiting_tasks and (
                waiting_tasks[0].done()
                or len(waiting_tasks) >= max_concurrent * (1 + max_waiting_results)
            ):
                yield await waiting_tasks.popleft()
        while waiting_tasks:
            yield await waiting_tasks.popleft()
    finally:
        for task in waiting_tasks:
            task.cancel()
        await asyncio.gather(*waiting_tasks, return_exceptions=True)


def split_into_batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the items in batches of so many, of which the last may have fewer."""
    return [items[start : start + size] for start in range(0, len(items), size)]


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results of all; the first error is raised after all have ended, so that replies paid for are kept."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


class ThreadCall:
    """A call in a thread of `DaemonThreads`, which nobody waits for any more once it `is_abandoned`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        self.is_abandoned = False
        self._work = work
        self._began: float | None = None
        self._ended: float | None = None

    @property
    def duration(self) -> float:
        """Seconds that the call has taken so far; 0 while it waits for a thread."""
        if self._began is None:
            return 0.0
        return (monotonic() if self._ended is None else self._ended) - self._began

    def run(self) -> None:
        """Call the function, unless the call was cancelled, and settle its future."""
        if not self.future.set_running_or_notify_cancel():
            return
        self._began = monotonic()
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised to the caller who awaits it
            self._ended = monotonic()
            self.future.set_exception(error)
        else:
            self._ended = monotonic()
            self.future.set_result(result)


_RECORDED_THREAD_CALLS: "ContextVar[list[ThreadCall] | None]" = ContextVar(
    "_RECORDED_THREAD_CALLS", default=None
)


class DaemonThreads(ThreadPoolExecutor):
    """An executor whose threads never keep the process from ending, and can be abandoned while they hang.

    At most `size` threads run calls, by default as many as asyncio's own executor has. An abandoned one does not count:
    nothing can end it, but another takes its place. It is a ThreadPoolExecutor because asyncio accepts no other as the
    default of a loop; the threads of that class are never started.
    """

    def __init__(self, size: int = min(32, (os.cpu_count() or 1) + 4)) -> None:
        super().__init__(1)
        self._size = size
        self._running = 0
        self._idle = 0
        self._waiting: deque[ThreadCall] = deque()
        self._guard = threading.Condition()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        call = ThreadCall(partial(fn, *args, **kwargs))
        recorded_calls = _RECORDED_THREAD_CALLS.get()
        if recorded_calls is not None:
            recorded_calls.append(call)
        with self._guard:
            self._waiting.append(call)
            self._start_thread()
        return call.future

    @contextmanager
    def record_calls(self) -> Iterator[list[ThreadCall]]:
        """Collect the calls that are submitted in the current context, and in tasks created in it."""
        recorded_calls: list[ThreadCall] = []
        token = _RECORDED_THREAD_CALLS.set(recorded_calls)
        try:
            yield recorded_calls
        finally:
            _RECORDED_THREAD_CALLS.reset(token)

    def abandon_calls(self, calls: Iterable[ThreadCall]) -> list[ThreadCall]:
        """Give the threads of unfinished calls up, and cancel those that wait for one; return the former."""
        running_calls = [
            call for call in calls if not call.future.done() and not call.future.cancel()
        ]
        with self._guard:
            unfinished_thread_calls = [
                call for call in running_calls if not call.future.done() and not call.is_abandoned
            ]
            for call in unfinished_thread_calls:
                call.is_abandoned = True
                self._running -= 1
                self._start_thread()
        return unfinished_thread_calls

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: there is nothing to release, and an event loop that ends must not wait for a call that hangs."""

    def _start_thread(self) -> None:
        """Let a thread take the next call: one that is idle, else a new one if there may be more."""
        self._guard.notify()
        if len(self._waiting) > self._idle and self._running < self._size:
            self._running += 1
            threading.Thread(target=self._run_calls, name="jurygraph-call", daemon=True).start()

    def _run_calls(self) -> None:
        while True:
            with self._guard:
                self._idle += 1
                has_waiting_call = self._guard.wait_for(
                    lambda: self._waiting, _MAX_THREAD_IDLE_SECONDS
                )
                self._idle -= 1
                if not has_waiting_call:
                    self._running -= 1
                    return
                call = self._waiting.popleft()
            call.run()
            with self._guard:
                if call.is_abandoned:
                    return


class EventLoopThread:
    """One long-lived event loop in a thread of its own, started when it is first needed.

    Its calls in threads, such as those of `asyncio.to_thread`, run in `threads`.
    """

    def __init__(self, threads: DaemonThreads) -> None:
        self._threads = threads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def is_current_thread(self) -> bool:
        """Return true in code that the loop runs, which would wait for itself in `run` and `close`."""
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result; an interrupted caller cancels it."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine in the loop, for callers that await it in a loop of their own."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._get_or_start_loop())

    def close(self) -> None:
        """Cancel what is left in the loop and end it. Can be called more than once; `run` starts another."""
        loop = self._loop
        thread = self._thread
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_tasks(loop), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = self._thread = None

    def _get_or_start_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = new_event_loop()
                self._loop.set_default_executor(self._threads)
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="jurygraph", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            return loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue  # the awaiting caller gets it from the task; asyncio also stops the loop, so run it again


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception may be somebody's Ctrl-C, rather than raised by user code.

    Python's own handler alone raises one, in the main thread; commands and `asyncio.run` install others.
    """
    is_sigint_handled_by_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    is_main_thread = threading.current_thread() is threading.main_thread()
    return isinstance(error, KeyboardInterrupt) and is_main_thread and is_sigint_handled_by_python


async def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that are left, so that their callers get a cancellation, and stop the executor."""
    remaining_asyncio_tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in remaining_asyncio_tasks:
        task.cancel()
    await asyncio.gather(*remaining_asyncio_tasks, return_exceptions=True)
    await loop.shutdown_default_executor()
