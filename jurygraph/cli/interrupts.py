"""Ctrl-C during long work: the first ends it in good order within seconds, the second at once."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from typing import Any, NoReturn, TypeVar

import typer

from jurygraph.cli.render.text import print_message
from jurygraph.cli.streams import ExitCode
from jurygraph.concurrency import DaemonThreads, new_event_loop

T = TypeVar("T")
STOP_GRACE_SECONDS = 5
"""Seconds after Ctrl-C in which work under way may end; then it is cancelled."""
_CANCEL_GRACE_SECONDS = 3.0  # for cancelled work to end, before the process is ended without it
_SHOW_CURSOR_SEQUENCE = "\x1b[?25h"  # a progress bar hides it


def open_runner() -> asyncio.Runner:
    """Return what runs the coroutines of a command, in one loop until it is closed."""
    return asyncio.Runner(loop_factory=new_event_loop)


def run_interruptible(
    runner: asyncio.Runner,
    work: Coroutine[Any, Any, T],
    threads: DaemonThreads,
    stop: Callable[[], None] | None = None,
) -> T:
    """Run a coroutine whose calls in threads run in `threads`. Raises KeyboardInterrupt if Ctrl-C ended it.

    Ctrl-C is acknowledged at once. It calls `stop`, after which the work should end by itself, and cancels the work 5
    seconds later; without `stop` it cancels it at once. A second Ctrl-C ends the process, as does work that goes on.
    """
    runner.get_loop().set_default_executor(threads)
    interrupt_handler = _InterruptHandler(runner.get_loop(), stop)

    async def run() -> T:
        interrupt_handler.task = asyncio.current_task()
        before = signal.getsignal(signal.SIGINT)
        is_main_thread = threading.current_thread() is threading.main_thread()
        if before in (signal.SIG_IGN, None) or not is_main_thread:
            return await work
        signal.signal(signal.SIGINT, interrupt_handler)
        try:
            return await work
        finally:
            if not interrupt_handler.was_interrupted:
                signal.signal(signal.SIGINT, before)

    try:
        return runner.run(run())
    except asyncio.CancelledError:  # by Ctrl-C now, or during earlier work of the same session
        raise KeyboardInterrupt from None


@contextmanager
def exit_on_interrupt(message: str) -> Iterator[None]:
    """Print a message, and exit, where Ctrl-C ends the work inside the context."""
    try:
        yield
    except KeyboardInterrupt:
        print_message(message)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


class _InterruptHandler:
    """The handler of Ctrl-C while `task` runs in a loop. It writes to the descriptor, as streams are not reentrant."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None] | None) -> None:
        self.was_interrupted = False
        self.task: asyncio.Task[Any] | None = None
        self._loop = loop
        self._stop = stop

    def __call__(self, signal_number: int, frame: Any) -> None:
        if self.was_interrupted:
            _exit_now()
        self.was_interrupted = True
        limit = ""
        if self._stop:
            limit = f" after the questions in flight, at most {STOP_GRACE_SECONDS} s"
        _write_to_stderr(f"stopping{limit}; press again to stop now")
        watchdog_timer = threading.Timer(STOP_GRACE_SECONDS + _CANCEL_GRACE_SECONDS, _exit_now)
        watchdog_timer.daemon = True
        watchdog_timer.start()
        self._loop.call_soon_threadsafe(self._end_task)

    def _end_task(self) -> None:
        assert self.task is not None, "the handler is installed by the task"
        if self._stop:
            self._stop()
        self._loop.call_later(STOP_GRACE_SECONDS if self._stop else 0, self.task.cancel)


def _exit_now() -> NoReturn:
    _write_to_stderr("stopped; run the same command again to continue")
    for process in active_children():  # isolated evaluators and maths
        process.kill()
    os._exit(ExitCode.INTERRUPTED)


def _write_to_stderr(message: str) -> None:
    line = f"{message}\n"
    if os.isatty(2):
        line = f"{_SHOW_CURSOR_SEQUENCE}\n{line}"
    os.write(2, line.encode())
