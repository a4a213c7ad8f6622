"""Work in worker processes that are killed at their time limit: symbolic maths, and isolated evaluators.

Nothing in-process can stop code that hangs: SIGALRM fails in threads and under asyncio, and C code that holds the GIL
runs no signal handler. So pebble runs it in child processes and kills them. Only plain data crosses the pipe, both
ways: never an exception of the code, which would have to be imported here.
"""

import asyncio
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from pkgutil import resolve_name
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jurygraph.errors import JurygraphError, TimeLimitExceeded

if TYPE_CHECKING:
    from pebble import ProcessPool

WORKER_START_LIMIT_SECONDS = 60  # seconds for a worker to import what it needs
_PASSED_ENVIRONMENT_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
)
_ORPHAN_EXIT_SECONDS = 5  # after its time limit, a worker ends itself: its parent may be gone
_MAX_MESSAGE_LENGTH = 2_000  # characters of an error that are sent
_start_lock = threading.Lock()


class WorkFailed(JurygraphError):
    """The work raised an exception, `kind`, in its worker."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class WorkerDied(JurygraphError):
    """A worker died over a request: by a crash or out of memory."""


class WorkerNotStarted(JurygraphError):
    """No worker process can start."""


class WorkerPool:
    """Do work in `workers` processes, each call limited to `time_limit` seconds.

    `prepare` is the path `module:function` of what a worker calls with `setup` when it starts; it returns the function
    that does the work. Use the pool from any thread and any event loop. Processes start with the first call.
    """

    def __init__(
        self, name: str, prepare: str, setup: Any = None, *, time_limit: float, workers: int = 1
    ) -> None:
        self.name = name
        self.time_limit = time_limit
        self._workers = workers
        self._initargs = (prepare, setup, time_limit)
        self._lock = threading.Lock()
        self._processes: ProcessPool | None = None
        self._opened_by = 0
        self._has_replied = False
        self._underway: set[Future[Any]] = set()

    async def call(self, *arguments: str) -> Any:
        """Return what the work makes of the arguments.

        Raises TimeLimitExceeded, WorkFailed, WorkerDied or WorkerNotStarted.
        """
        from pebble import ProcessExpired  # imported lazily, as below: most runs need no worker

        try:
            with self._lock:
                future = self._open_process_pool().schedule(
                    _answer_worker_call, args=arguments, timeout=self.time_limit
                )
                self._underway.add(future)
                future.add_done_callback(self._underway.discard)
            outcome_kind, *outcome_details = await asyncio.wrap_future(future)
        except TimeoutError:
            problem = (
                f"{self.name!r} ran past its time limit of {self.time_limit:g} s and was killed"
            )
            raise TimeLimitExceeded(problem) from None
        except ProcessExpired as error:
            raise WorkerDied(
                f"the worker of {self.name!r} died over this request (exit {error.exitcode})"
            ) from None
        except BrokenProcessPool:
            raise WorkerNotStarted(
                f"the worker of {self.name!r} died or hung while it started"
            ) from None
        if outcome_kind == "not started":
            raise WorkerNotStarted(
                f"the worker of {self.name!r} cannot start: {': '.join(outcome_details)}"
            )
        self._has_replied = True
        if outcome_kind == "failed":
            raise WorkFailed(*outcome_details)
        return outcome_details[0]

    def close(self) -> None:
        """Kill the processes; calls under way are cancelled. May be called repeatedly, and the pool opened again."""
        with self._lock:
            process_pool = self._processes
            self._processes = None
            for future in list(self._underway):
                future.cancel()
            if process_pool is not None and self._opened_by == os.getpid():
                _stop_processes(process_pool)

    def _open_process_pool(self) -> "ProcessPool":
        if self._processes is not None and self._opened_by == os.getpid():
            if self._processes.active:
                return self._processes
            if not self._has_replied:  # it would fail again, perhaps only after its time limit
                raise WorkerNotStarted(f"the worker of {self.name!r} died or hung while it started")
            _stop_processes(self._processes)  # a thread of it waits for more
        from pebble import ProcessPool

        self._opened_by = os.getpid()
        self._underway = set()
        process_pool = ProcessPool(
            self._workers, 0, _prepare_worker_process, self._initargs, _WorkerSpawnContext()
        )
        try:
            process_pool.active  # noqa: B018 - to look starts it
        # The latter is raised within a daemon of multiprocessing.
        except (BrokenProcessPool, AssertionError) as error:
            raise WorkerNotStarted(f"the worker of {self.name!r} cannot start: {error}") from None
        self._processes = process_pool
        weakref.finalize(self, _stop_processes_in_thread, process_pool).atexit = False
        return process_pool


def _stop_processes(process_pool: "ProcessPool") -> None:
    process_pool.stop()  # type: ignore[no-untyped-call]
    process_pool.join()


def _stop_processes_in_thread(process_pool: "ProcessPool") -> None:
    """End the processes of a pool that is collected, perhaps on one of the threads that have to end for it."""
    threading.Thread(target=_stop_processes, args=(process_pool,), daemon=True).start()


class _WorkerProcess(SpawnProcess):
    """A new interpreter that does not run the user's script again, and that is killed with all that it started."""

    def start(self) -> None:
        with _start_lock:
            # A spawned interpreter imports the file of its parent's `__main__`: an empty module has none.
            main_module = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main_module

    def terminate(self) -> None:
        # It has no group yet; on macOS, all have ended.
        with suppress(ProcessLookupError, PermissionError):
            if self.exitcode is None and self.pid is not None:
                os.killpg(self.pid, signal.SIGKILL)
        super().kill()

    kill = terminate


class _WorkerSpawnContext(SpawnContext):
    Process = _WorkerProcess


_answer_function: Callable[..., Any] | None = None
_start_problem = ("", "")
_call_limit_seconds = 0.0


def _prepare_worker_process(prepare: str, setup: Any, limit: float) -> None:
    """Prepare this worker process for its work, which may print, and read its input, but sees no secrets."""
    global _answer_function, _start_problem, _call_limit_seconds
    os.setsid()  # a terminal's Ctrl-C goes only to the parent, and the whole group is killed
    for name in set(os.environ).difference(_PASSED_ENVIRONMENT_VARIABLES):
        del os.environ[name]
    null_device_descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device_descriptor, 1)
    os.dup2(null_device_descriptor, 2)
    _call_limit_seconds = limit
    try:
        with end_process_after(WORKER_START_LIMIT_SECONDS):
            _answer_function = resolve_name(prepare)(setup)
    except BaseException as error:  # noqa: BLE001 - each call reports it
        _start_problem = (type(error).__name__, _describe_exception(error))


def _answer_worker_call(*arguments: str) -> tuple[Any, ...]:
    if _answer_function is None:
        return "not started", *_start_problem
    try:
        with end_process_after(_call_limit_seconds + _ORPHAN_EXIT_SECONDS):
            return "done", _answer_function(*arguments)
    except BaseException as error:  # noqa: BLE001 - user code ends here, as in `graphs.calls`
        return "failed", type(error).__name__, _describe_exception(error)


@contextmanager
def end_process_after(seconds: float) -> Iterator[None]:
    """End this process if what is done within takes longer; SIGALRM's default action ends C code, too."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _describe_exception(error: BaseException) -> str:
    frame = extract_tb(error.__traceback__)[-1]
    where = f"({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"
    try:
        return f"{str(error)[:_MAX_MESSAGE_LENGTH]} {where}"
    except Exception:  # noqa: BLE001 - even a message can run user code
        return f"it has no message {where}"
