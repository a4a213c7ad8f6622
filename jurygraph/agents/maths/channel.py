"""One worker process and the socket to it. Use it from one thread at a time; `kill` may be called from any.

Messages are lines of JSON, never pickles: the worker reads hostile text, and unpickling what it sends would run code of
its choice in this process. It is a new interpreter, without secrets in its environment.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")
_CHUNK = 65536


class ChannelEnded(Exception):
    """The worker is gone, or violates the protocol."""


class Channel:
    """A running worker. The constructor does not wait for its start: the first reply reports if it is ready."""

    def __init__(self, time_limit: float) -> None:
        self._buffer = b""
        self.ready = False
        self._socket, workers_end = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "jurygraph.agents.maths.worker", str(time_limit)],
                stdin=workers_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_worker_environment(),
                start_new_session=True,  # a terminal's Ctrl-C goes only to the parent
            )
        except OSError:
            self._socket.close()
            raise
        finally:
            workers_end.close()

    def send(self, data: bytes, seconds: float) -> None:
        """Send all of `data`. Raises ChannelEnded, or TimeoutError if the worker does not read it in time."""
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelEnded from error

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message; one that has arrived already is never overdue, however late the call.

        Raises ChannelEnded, or TimeoutError if there is none within `seconds`.
        """
        deadline = time.monotonic() + seconds
        try:
            while b"\n" not in self._buffer:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
                chunk = self._socket.recv(_CHUNK)
                if not chunk:
                    raise ChannelEnded
                self._buffer += chunk
            line, _, self._buffer = self._buffer.partition(b"\n")
            message = json.loads(line)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise ChannelEnded from error
        if not isinstance(message, dict):
            raise ChannelEnded
        return message

    def kill(self) -> None:
        """End the process; may be called repeatedly."""
        self.process.kill()

    def close(self) -> None:
        """Kill the process, wait for its end and free the socket. Only for the thread that uses the channel."""
        self.process.kill()
        self.process.wait()
        self._socket.close()


def _worker_environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return inherited | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
