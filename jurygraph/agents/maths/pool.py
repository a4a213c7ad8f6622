"""Symbolic equivalence by math-verify in warm worker processes that are killed at their time limit.

Nothing in-process can stop sympy: SIGALRM fails in threads and under asyncio, and C code that holds the GIL runs no
signal handler. So a comparison runs in a child (`worker`). One dispatcher thread per child takes items from a shared
queue and sends up to 64 comparisons in one write, so that the child is never idle between them.

Messages are lines of JSON, never pickles: the worker reads hostile text, and unpickling what it sends would run code of
its choice in this process. It is a new interpreter, without secrets in its environment.
"""

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, Self, TypeAlias

from jurygraph.errors import JurygraphError, TimeLimitExceeded

Status: TypeAlias = Literal["equal", "different", "unparsed-answer", "unparsed-reference", "error"]

TEXT_LIMIT = 10_000  # characters of an answer or a reference
START_LIMIT = 60.0  # seconds for a worker to import math-verify
_BATCH_ITEMS, _BATCH_BYTES = 64, 32_768
_MAX_CACHED = 4096
_ROOT = Path(__file__).resolve().parents[3]
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")


class Channel:
    """A worker process and the socket to it. Use it from one thread at a time.

    The constructor does not wait for the start of the process: the first reply reports if it is ready. To send and to
    receive raise TimeoutError, any other OSError if the worker is gone, and ValueError if it violates the protocol.
    """

    def __init__(self, time_limit: float) -> None:
        self.ready, self._buffer = False, b""
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        paths = filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])
        environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
        self._socket, workers_end = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "jurygraph.agents.maths.worker", str(time_limit)],
                stdin=workers_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # a terminal's Ctrl-C goes only to the parent
            )
        except OSError:
            self._socket.close()
            raise
        finally:
            workers_end.close()

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

    def close(self) -> None:
        """Kill the process, wait for its end and free the socket."""
        self.process.kill()
        self.process.wait()
        self._socket.close()


class AnswerTooLong(JurygraphError):
    """An answer or reference is longer than 10,000 characters, so it is not sent to a worker."""


class WorkerDied(JurygraphError):
    """Two workers in a row died over the same comparison: by a crash or out of memory."""


class WorkerNotStarted(JurygraphError):
    """The worker process cannot start."""


class PoolClosed(JurygraphError):
    """The pool is closed, or was opened by another process (a fork)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one comparison, and as its `detail` the deciding rule.

    `equal` and `different` are judgements. `unparsed-answer` and `unparsed-reference`: that side does not read as one
    mathematical value; the reference is checked first. `error`: the worker's comparison failed, and `detail` is the
    exception type (`RecursionError`, `MemoryError`).
    """

    status: Status
    detail: str = ""


@dataclass(slots=True, eq=False)
class _Item:
    """A comparison that is not finished, with the futures of all who wait for it."""

    key: tuple[str, str]
    futures: list[Future[Comparison]]
    line: bytes
    deaths: int = 0


class _Shared:
    """State shared by the pool and its dispatchers. It has no reference to the pool, so an unused pool is collected."""

    def __init__(self, workers: int, time_limit: float) -> None:
        self.workers, self.time_limit, self.process_id = workers, time_limit, os.getpid()
        self.lock = threading.RLock()  # reentrant: garbage collection inside the lock may run the finaliser
        self.queue: SimpleQueue[_Item | None] = SimpleQueue()
        self.pending: dict[tuple[str, str], _Item] = {}
        self.known: OrderedDict[tuple[str, str], Comparison] = OrderedDict()
        self.channels: set[Channel] = set()
        self.threads: list[threading.Thread] = []
        self.closed = False

    def settle(self, item: _Item, result: Comparison | JurygraphError) -> None:
        """Give the result to all who wait for the item, unless that was done before."""
        with self.lock:
            if self.pending.get(item.key) is not item:
                return
            del self.pending[item.key]
            if isinstance(result, Comparison):
                self.known[item.key] = result
                if len(self.known) > _MAX_CACHED:
                    self.known.popitem(last=False)
        for future in item.futures:
            if not future.set_running_or_notify_cancel():
                continue
            if isinstance(result, Comparison):
                future.set_result(result)
            else:
                future.set_exception(result)

    def is_wanted(self, item: _Item) -> bool:
        """Return true if a caller still waits for the item; drop it if not."""
        with self.lock:
            is_wanted = not all(future.cancelled() for future in item.futures)
            if not is_wanted:
                self.settle(item, PoolClosed("the comparison was cancelled"))
        return is_wanted


class EquivalencePool:
    """Compare answers with references in `workers` processes, each comparison limited to `time_limit` seconds.

    Use it from any thread and any event loop (`asyncio.wrap_future`). Futures settle on a dispatcher's thread. Raises
    ValueError if `workers` is below 1 or `time_limit` is not a positive number.
    """

    def __init__(self, workers: int = 1, time_limit: float = 2.0) -> None:
        if workers < 1 or not 0 < time_limit < math.inf:
            raise ValueError(f"workers >= 1 and 0 < time_limit < inf are needed, not {workers} and {time_limit}")
        self._shared = _Shared(workers, time_limit)
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
                name = f"jurygraph-maths-{len(shared.threads)}"
                shared.threads.append(threading.Thread(target=_Dispatcher(shared).run, name=name, daemon=True))
                shared.threads[-1].start()
        return self

    def submit(self, answer: str, reference: str) -> "Future[Comparison]":
        """Compare `answer` with `reference`. The two are not interchangeable, since math-verify is not symmetric.

        A pair that is being compared, or was compared recently, is compared once; each caller has its own future.
        The future gives a `Comparison` or raises AnswerTooLong, TimeLimitExceeded, WorkerDied, WorkerNotStarted or, if
        the pool closes meanwhile, PoolClosed. Raises PoolClosed at once if it is closed already.
        """
        future: Future[Comparison] = Future()
        key, shared = (answer, reference), self._shared
        with shared.lock:
            self.open()
            if max(len(answer), len(reference)) > TEXT_LIMIT:
                future.set_exception(AnswerTooLong(f"an answer or reference is longer than {TEXT_LIMIT} characters"))
            elif key in shared.known:
                shared.known.move_to_end(key)
                future.set_result(shared.known[key])
            elif key in shared.pending:
                shared.pending[key].futures.append(future)
            else:
                request = json.dumps({"answer": answer, "reference": reference}, ensure_ascii=False) + "\n"
                shared.pending[key] = item = _Item(key, [future], request.encode("utf-8", "surrogatepass"))
                shared.queue.put(item)
        return future

    def close(self) -> None:
        """Kill the workers; unfinished comparisons fail with PoolClosed. May be called repeatedly."""
        self._close()
        for thread in self._shared.threads:
            if thread is not threading.current_thread() and self._shared.process_id == os.getpid():
                thread.join()


def _shut_down(shared: _Shared) -> None:
    """Close the pool. Also runs when the pool is collected and when the interpreter ends."""
    if shared.process_id != os.getpid():
        return  # a forked copy: the workers are its parent's
    with shared.lock:
        shared.closed = True
        for channel in shared.channels:
            channel.process.kill()
        items = list(shared.pending.values())
    for item in items:
        shared.settle(item, PoolClosed("the pool was closed before this comparison was made"))
    for _ in shared.threads:
        shared.queue.put(None)


class _Dispatcher:
    """A thread's side of its worker process: at most one channel at a time, replaced when it fails."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._channel: Channel | None = None

    def run(self) -> None:
        """Start the worker at once, and compare the queued items until the pool is closed."""
        try:
            self._start()
            while (item := self._shared.queue.get()) is not None:
                self._compare(self._batch(item))
        finally:
            self._stop()

    def _batch(self, first: _Item) -> deque[_Item]:
        queue, batch, size = self._shared.queue, deque([first]), len(first.line)
        limit = min(_BATCH_ITEMS, 1 + queue.qsize() // self._shared.workers)
        with contextlib.suppress(Empty):
            while len(batch) < limit and size < _BATCH_BYTES:
                item = queue.get_nowait()
                if item is None:
                    queue.put(None)
                    break
                batch.append(item)
                size += len(item.line)
        return batch

    def _compare(self, batch: deque[_Item]) -> None:
        while batch := deque(filter(self._shared.is_wanted, batch)):
            try:
                channel = self._ready_channel()
            except JurygraphError as error:
                for item in batch:
                    self._shared.settle(item, error)
                return
            self._compare_on(channel, batch)

    def _compare_on(self, channel: Channel, batch: deque[_Item]) -> None:
        """Settle items from the left until all are settled or the worker fails; then the worker is replaced."""
        limit = self._shared.time_limit
        failure: JurygraphError | None = None
        try:
            channel.send(b"".join(item.line for item in batch), limit)
            while batch:
                reply = channel.receive(limit)
                self._shared.settle(batch.popleft(), Comparison(reply["status"], reply["detail"]))
            return
        except TimeoutError:
            failure = TimeLimitExceeded(f"the comparison ran past its time limit of {limit:g} s")
        except (OSError, ValueError, KeyError):
            batch[0].deaths += 1  # a first death may not be the item's fault
            if batch[0].deaths > 1:
                failure = WorkerDied("two maths workers in a row died over this comparison")
        self._stop()
        self._start()
        if failure:
            self._shared.settle(batch.popleft(), failure)

    def _ready_channel(self) -> Channel:
        """Return a channel that reported readiness. A worker that dies while it starts is replaced once."""
        for _ in range(2):
            channel = self._channel or self._new_channel()
            if channel.ready:
                return channel
            try:
                first = channel.receive(START_LIMIT)
            except TimeoutError:
                self._stop()
                raise WorkerNotStarted(f"the maths worker did not start within {START_LIMIT:g} s") from None
            except (OSError, ValueError):
                self._stop()
                continue
            if first.get("ready"):
                channel.ready = True
                return channel
            self._stop()
            raise WorkerNotStarted(f"the maths worker cannot start: {first.get('detail')}")
        raise WorkerNotStarted("the maths worker died twice while it started")

    def _start(self) -> None:
        """Start a process; a failure shows when it is used."""
        with contextlib.suppress(PoolClosed, WorkerNotStarted):
            self._new_channel()

    def _new_channel(self) -> Channel:
        with self._shared.lock:
            if self._shared.closed:
                raise PoolClosed("the pool is closed")
            try:
                self._channel = channel = Channel(self._shared.time_limit)
            except OSError as error:
                raise WorkerNotStarted(f"the maths worker cannot start: {error}") from error
            self._shared.channels.add(channel)
            return channel

    def _stop(self) -> None:
        if self._channel:
            with self._shared.lock:
                self._shared.channels.discard(self._channel)
            self._channel.close()
            self._channel = None
