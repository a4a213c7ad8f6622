"""One worker process and the two pipes to it. Use it from one thread at a time; `kill` may be called from any."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
_PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
)
_CHUNK = 65536


class ChannelEnded(Exception):
    """The worker is gone: it crashed or was killed."""


class ReplyOverdue(Exception):
    """The worker did not reply in time."""


class Channel:
    """A running worker. The constructor does not wait for its start: the first reply reports if it is ready."""

    def __init__(self, time_limit: float) -> None:
        self._buffer = b""
        self.ready = False
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", "jurygraph.agents.maths.worker", str(time_limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_worker_environment(),
            bufsize=0,
            start_new_session=True,  # a terminal's Ctrl-C goes only to the parent
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)

    def send(self, data: bytes, seconds: float) -> None:
        """Write all of `data`.

        Raises:
            ChannelEnded: the worker is gone.
            ReplyOverdue: the worker does not read.
        """
        deadline, view = time.monotonic() + seconds, memoryview(data)
        while view:
            try:
                view = view[os.write(self._stdin.fileno(), view) :]
            except BlockingIOError:
                _wait(self._stdin.fileno(), select.POLLOUT, deadline)
            except (OSError, ValueError) as error:
                raise ChannelEnded from error

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next reply. A reply that is already buffered is never overdue, however late the call.

        Raises:
            ChannelEnded: the worker is gone or violates the protocol.
            ReplyOverdue: there is no reply within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            try:
                chunk = os.read(self._stdout.fileno(), _CHUNK)
            except BlockingIOError:
                _wait(self._stdout.fileno(), select.POLLIN, deadline)
                continue
            except (OSError, ValueError) as error:
                raise ChannelEnded from error
            if not chunk:
                raise ChannelEnded
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return _parse_message(line)

    def kill(self) -> None:
        """End the process; may be called repeatedly."""
        self.process.kill()

    def close(self) -> None:
        """Kill the process, wait for its end and free the pipes. Only for the thread that uses the channel."""
        self.process.kill()
        self.process.wait()
        self._stdin.close()
        self._stdout.close()


def _wait(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    remaining = max(0.0, deadline - time.monotonic())
    if not poll.poll(remaining * 1000 + 1) and time.monotonic() >= deadline:
        raise ReplyOverdue


def _parse_message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ChannelEnded from error
    if not isinstance(message, dict):
        raise ChannelEnded
    return message


def _worker_environment() -> dict[str, str]:
    """Return the environment of the worker, without secrets: it reads hostile text and needs no keys."""
    inherited = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return inherited | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
