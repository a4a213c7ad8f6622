"""A worker process of `worker_pool`: `python -m jurygraph.agents.worker MODULE:FUNCTION TIME_LIMIT`.

Protocol on the socket that is its stdin, one JSON object per line: first it receives the setup, for which it calls the
function, and sends `{"ready": true}` or `{"ready": false, "detail": …}`; then one reply for each request, in order:
`{"result": …}` or `{"error": …, "message": …}`. It exits at the end of the requests.

It never outlives its parent for long: SIGALRM, with its default action (death, even inside C code), is armed one second
past the time limit for its start and for each request.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from io import BufferedRWPair
from pathlib import Path
from traceback import extract_tb
from typing import Any

Answer = Callable[[Any], Any]
START_LIMIT = 60.0  # seconds for a worker to import what it needs
_MAX_MESSAGE = 2_000  # characters of an error that are sent


def main() -> int:
    """Answer requests until they end; return 1 if it could not start or ran out of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, START_LIMIT + 1)
    (module, _, function), limit = sys.argv[1].partition(":"), float(sys.argv[2])
    with _take_socket() as channel:
        try:
            answer: Answer = getattr(import_module(module), function)(json.loads(channel.readline()))
        except BaseException as error:  # noqa: BLE001 - the parent reports any error
            _send(channel, {"ready": False, "detail": f"{type(error).__name__}: {_message(error)}"})
            return 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(channel, {"ready": True})
        for line in channel:
            reply = _reply(answer, line, limit)
            _send(channel, reply)
            if reply.get("error") == "MemoryError":
                return 1
    return 0


def _take_socket() -> BufferedRWPair:
    """Return the socket that is the standard input, and put nothing in its place: user code may read the latter."""
    channel = socket.socket(fileno=os.dup(0)).makefile("rwb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return channel


def _reply(answer: Answer, line: bytes, limit: float) -> dict[str, Any]:
    try:
        signal.setitimer(signal.ITIMER_REAL, limit + 1)
        return {"result": answer(json.loads(line))}
    except BaseException as error:  # noqa: BLE001 - user code ends here, as in `graphs.execution`
        return {"error": type(error).__name__, "message": _message(error)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _message(error: BaseException) -> str:
    """Return the message of an exception, and the innermost line of code that raised it."""
    frame = extract_tb(error.__traceback__)[-1]
    place = f"({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"
    try:
        return f"{str(error)[:_MAX_MESSAGE]} {place}"
    except Exception:  # noqa: BLE001 - even a message can run user code
        return f"it has no message {place}"


def _send(channel: BufferedRWPair, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message).encode() + b"\n")
    channel.flush()


if __name__ == "__main__":
    sys.exit(main())
