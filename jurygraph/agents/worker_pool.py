"""Work in warm worker processes that are killed at their time limit: symbolic maths, and isolated evaluators.

Nothing in-process can stop code that hangs: SIGALRM fails in threads and under asyncio, and C code that holds the GIL
runs no signal handler. So it runs in a child (`worker`). One dispatcher thread per child takes requests from a shared
queue. It may send several in one write, so that the child is never idle between them.

Messages are lines of JSON, never pickles: the worker reads hostile text, and unpickling what it sends would run code of
its choice in this process. It is a new interpreter, without secrets in its environment.
"""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from jurygraph.agents.worker import START_LIMIT
from jurygraph.errors import JurygraphError, TimeLimitExceeded

T = TypeVar("T")
Reply = dict[str, Any]
"""`{"result": …}`, or `{"error": …, "message": …}` with the name of an exception."""

_BATCH_BYTES = 32_768
_ROOT = Path(__file__).resolve().parents[2]
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """A kind of work: its name in messages, and the function that does it in the worker.

    `prepare` is the `module:function` that the worker calls with `setup` (plain JSON); it returns the function that is
    called with each request. `read` turns a reply into the result, and raises ValueError or KeyError for one that
    violates the protocol. Up to `batch` requests are sent in one write, and `cached` results are kept. A new worker
    answers the request `opening`, if there is one, before all others; if it fails, no other worker is started.
    """

    name: str
    prepare: str
    read: Callable[[Reply], T]
    setup: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    cached: int = 0
    opening: Mapping[str, Any] | None = None


class Channel:
    """A worker process and the socket to it. Use it from one thread at a time.

    The constructor does not wait for the start of the process: the first reply reports if it is ready. To send and to
    receive raise TimeoutError, any other OSError if the worker is gone, and ValueError if it violates the protocol.
    """

    def __init__(self, work: Work[Any], time_limit: float) -> None:
        self.ready = False
        self._buffer = b""
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        paths = filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])
        environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
        self._socket, workers_end = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "jurygraph.agents.worker", work.prepare, str(time_limit)],
                stdin=workers_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # a terminal's Ctrl-C goes only to the parent; `kill` ends the whole group
            )
        except OSError:
            self._socket.close()
            raise
        finally:
            workers_end.close()
        with contextlib.suppress(OSError):  # a worker that is gone already is noticed by `receive`
            self.send(_to_line(work.setup), START_LIMIT)

    def send(self, data: bytes, seconds: float) -> None:
        """Send all of `data`; raise TimeoutError if the worker does not read it within `seconds`."""
        self._socket.settimeout(seconds)
        self._socket.sendall(data)

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message; one that has arrived already is never overdue, however late the call."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise ConnectionError("the worker is gone")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("a message is a JSON object")
        return message

    def kill(self) -> None:
        """Kill the process, and those that it started unless they have a session of their own."""
        if self.process.returncode is None:  # until its end is awaited, the number of its group is not given again
            with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter is macOS: all have ended
                os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the process, wait for its end and free the socket."""
        self.kill()
        self.process.wait()
        self._socket.close()


class WorkerDied(JurygraphError):
    """Two workers in a row died over the same request: by a crash or out of memory."""


class WorkerNotStarted(JurygraphError):
    """The worker process cannot start."""


class PoolClosed(JurygraphError):
    """The pool is closed, or was opened by another process (a fork)."""


@dataclass(slots=True, eq=False)
class _Item(Generic[T]):
    """A request that is not finished, as a line of JSON, with the futures of all who wait for it."""

    line: bytes
    futures: list[Future[T]]
    deaths: int = 0


class _Shared(Generic[T]):
    """State shared by the pool and its dispatchers. It has no reference to the pool, so an unused pool is collected."""

    def __init__(self, work: Work[T], workers: int, time_limit: float) -> None:
        self.work = work
        self.workers = workers
        self.time_limit = time_limit
        self.process_id = os.getpid()
        self.lock = threading.RLock()  # reentrant: garbage collection inside the lock may run the finaliser
        self.queue: SimpleQueue[_Item[T] | None] = SimpleQueue()
        self.pending: dict[bytes, _Item[T]] = {}
        self.known: OrderedDict[bytes, T] = OrderedDict()
        self.channels: set[Channel] = set()
        self.threads: list[threading.Thread] = []
        self.closed = False
        self.refusal: WorkerNotStarted | None = None

    def settle(self, item: _Item[T], result: T | JurygraphError) -> None:
        """Give the result to all who wait for the item, unless that was done before."""
        with self.lock:
            if self.pending.get(item.line) is not item:
                return
            del self.pending[item.line]
            if not isinstance(result, JurygraphError):
                self.known[item.line] = result
                if len(self.known) > self.work.cached:
                    self.known.popitem(last=False)
        for future in item.futures:
            if not future.set_running_or_notify_cancel():
                continue
            if isinstance(result, JurygraphError):
                future.set_exception(result)
            else:
                future.set_result(result)

    def is_wanted(self, item: _Item[T]) -> bool:
        """Return true if a caller still waits for the item; drop it if not."""
        with self.lock:
            is_wanted = not all(future.cancelled() for future in item.futures)
            if not is_wanted:
                self.settle(item, PoolClosed("the request was cancelled"))
        return is_wanted


class WorkerPool(Generic[T]):
    """Do work in `workers` processes, each request limited to `time_limit` seconds.

    Use it from any thread and any event loop (`asyncio.wrap_future`). Futures settle on a dispatcher's thread. Raises
    ValueError if `workers` is below 1 or `time_limit` is not a positive number.
    """

    def __init__(self, work: Work[T], workers: int, time_limit: float) -> None:
        if workers < 1 or not 0 < time_limit < math.inf:
            raise ValueError(f"workers >= 1 and 0 < time_limit < inf are needed, not {workers} and {time_limit}")
        self._shared = _Shared(work, workers, time_limit)
        _OPEN_POOLS.add(self._shared)
        self._close = weakref.finalize(self, _shut_down, self._shared)

    def open(self) -> Self:
        """Start the worker processes without waiting for them, as `submit` does too. Raises PoolClosed."""
        shared = self._shared
        with shared.lock:
            if shared.closed:
                raise PoolClosed("the pool is closed")
            if shared.process_id != os.getpid():
                raise PoolClosed("the pool was opened by another process: open one after the fork")
            while len(shared.threads) < shared.workers:
                name = f"jurygraph-{shared.work.name}-{len(shared.threads)}"
                shared.threads.append(threading.Thread(target=_Dispatcher(shared).run, name=name, daemon=True))
                shared.threads[-1].start()
        return self

    def submit(self, request: Mapping[str, Any]) -> "Future[T]":
        """Send a request, an object of plain JSON, to a worker.

        One that is under way, or whose result is kept, is sent once; each caller has its own future. The future gives
        the result or raises TimeLimitExceeded, WorkerDied, WorkerNotStarted or, if the pool closes meanwhile,
        PoolClosed. Raises PoolClosed at once if it is closed already.
        """
        future: Future[T] = Future()
        line = _to_line(request)
        shared = self._shared
        with shared.lock:
            self.open()
            if line in shared.known:
                shared.known.move_to_end(line)
                future.set_result(shared.known[line])
            elif line in shared.pending:
                shared.pending[line].futures.append(future)
            else:
                shared.pending[line] = item = _Item(line, [future])
                shared.queue.put(item)
        return future

    def close(self) -> None:
        """Kill the workers; unfinished requests fail with PoolClosed. May be called repeatedly."""
        self._close()
        for thread in self._shared.threads:
            if thread is not threading.current_thread() and self._shared.process_id == os.getpid():
                thread.join()


_OPEN_POOLS: "weakref.WeakSet[_Shared[Any]]" = weakref.WeakSet()


def kill_workers() -> None:
    """Kill the worker processes of all pools, where this process ends without closing them."""
    for shared in list(_OPEN_POOLS):
        for channel in list(shared.channels) if shared.process_id == os.getpid() else ():
            channel.kill()


def _to_line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _shut_down(shared: _Shared[Any]) -> None:
    """Close the pool. Also runs when the pool is collected and when the interpreter ends."""
    if shared.process_id != os.getpid():
        return  # a forked copy: the workers are its parent's
    with shared.lock:
        shared.closed = True
        for channel in shared.channels:
            channel.kill()
        items = list(shared.pending.values())
    for item in items:
        shared.settle(item, PoolClosed("the pool was closed before this request was answered"))
    for _ in shared.threads:
        shared.queue.put(None)


class _Dispatcher(Generic[T]):
    """A thread's side of its worker process: at most one channel at a time, replaced when it fails."""

    def __init__(self, shared: _Shared[T]) -> None:
        self._shared = shared
        self._channel: Channel | None = None

    def run(self) -> None:
        """Start the worker at once, and send the queued requests until the pool is closed."""
        try:
            self._start()
            while (item := self._shared.queue.get()) is not None:
                self._handle(self._batch(item))
        finally:
            self._stop()

    def _batch(self, first: _Item[T]) -> deque[_Item[T]]:
        queue = self._shared.queue
        batch = deque([first])
        size = len(first.line)
        limit = min(self._shared.work.batch, 1 + queue.qsize() // self._shared.workers)
        with contextlib.suppress(Empty):
            while len(batch) < limit and size < _BATCH_BYTES:
                item = queue.get_nowait()
                if item is None:
                    queue.put(None)
                    break
                batch.append(item)
                size += len(item.line)
        return batch

    def _handle(self, batch: deque[_Item[T]]) -> None:
        while batch := deque(filter(self._shared.is_wanted, batch)):
            try:
                channel = self._ready_channel()
            except JurygraphError as error:
                for item in batch:
                    self._shared.settle(item, error)
                return
            self._handle_on(channel, batch)

    def _handle_on(self, channel: Channel, batch: deque[_Item[T]]) -> None:
        """Settle items from the left until all are settled or the worker fails; then the worker is replaced."""
        limit = self._shared.time_limit
        name = self._shared.work.name
        failure: JurygraphError | None = None
        try:
            channel.send(b"".join(item.line for item in batch), limit)
            while batch:
                result = self._shared.work.read(channel.receive(limit))
                self._shared.settle(batch.popleft(), result)
            return
        except TimeoutError:
            failure = TimeLimitExceeded(f"{name!r} ran past its time limit of {limit:g} s and was killed")
        except (OSError, ValueError, KeyError):
            batch[0].deaths += 1  # a first death may not be the item's fault
            if batch[0].deaths > 1:
                failure = WorkerDied(f"two {name} workers in a row died over this request")
        self._stop()
        self._start()
        if failure:
            self._shared.settle(batch.popleft(), failure)

    def _ready_channel(self) -> Channel:
        """Return a channel that is ready and open. A worker that dies while it starts is replaced once."""
        if self._shared.refusal is not None:
            raise self._shared.refusal
        for _ in range(2):
            channel = self._channel or self._new_channel()
            if channel.ready:
                return channel
            try:
                first = channel.receive(START_LIMIT)
            except TimeoutError:
                self._stop()
                raise WorkerNotStarted(
                    f"the {self._shared.work.name} worker did not start within {START_LIMIT:g} s"
                ) from None
            except (OSError, ValueError):
                self._stop()
                continue
            if first.get("ready"):
                self._open(channel)
                return channel
            self._stop()
            raise WorkerNotStarted(f"the {self._shared.work.name} worker cannot start: {first.get('detail')}")
        raise WorkerNotStarted(f"the {self._shared.work.name} worker died twice while it started")

    def _open(self, channel: Channel) -> None:
        """Send the opening request. Raises WorkerNotStarted if it fails, as for all later requests."""
        opening = self._shared.work.opening
        limit = self._shared.time_limit
        reply = Reply()
        try:
            if opening is not None:
                channel.send(_to_line(opening), limit)
                reply = channel.receive(limit)
        except TimeoutError:
            reply = {"error": f"it ran past its time limit of {limit:g} s and was killed"}
        except (OSError, ValueError):
            reply = {"error": "its worker died"}
        if "error" in reply:
            self._stop()
            problem = ": ".join(str(reply[key]) for key in ("error", "message") if key in reply)
            self._shared.refusal = WorkerNotStarted(f"{self._shared.work.name!r} cannot be opened: {problem}")
            raise self._shared.refusal
        channel.ready = True

    def _start(self) -> None:
        """Start a process; a failure shows when it is used."""
        with contextlib.suppress(PoolClosed, WorkerNotStarted):
            self._new_channel()

    def _new_channel(self) -> Channel:
        with self._shared.lock:
            if self._shared.closed:
                raise PoolClosed("the pool is closed")
            try:
                self._channel = channel = Channel(self._shared.work, self._shared.time_limit)
            except OSError as error:
                raise WorkerNotStarted(f"the {self._shared.work.name} worker cannot start: {error}") from error
            self._shared.channels.add(channel)
            return channel

    def _stop(self) -> None:
        if self._channel:
            with self._shared.lock:
                self._shared.channels.discard(self._channel)
            self._channel.close()
            self._channel = None
