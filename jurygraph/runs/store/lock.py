"""One writer at a time: a lock that lives as long as its file is open, so that no kill leaves it behind."""

import fcntl
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from jurygraph.errors import InputError


def hold(path: Path) -> IO[str]:
    """Lock a file, until it is closed. Raises `InputError` saying who holds it where another process does."""
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        wrong = f"cannot be written ({error.strerror})"
        raise InputError(f"{path.parent}: {wrong}; name a folder that you may write to with --out") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(file)
        file.close()
        raise InputError(f"{path.parent}: is being written by {holder}; wait until it ends, or end it") from None
    except OSError as error:
        file.close()
        wrong = f"cannot be locked there ({error.strerror})"
        raise InputError(f"{path.parent}: {wrong}; name a folder on a local disk with --out") from None
    if not path.exists() or os.fstat(file.fileno()).st_ino != path.stat().st_ino:
        file.close()  # who had it has just removed it
        return hold(path)
    try:
        _sign(file)
    except OSError as error:
        with suppress(OSError):  # it tries to write once more
            file.close()
        wrong = f"cannot be written ({error.strerror})"
        raise InputError(f"{path}: {wrong}; free some space, or name another folder with --out") from None
    return file


def _sign(file: IO[str]) -> None:
    """Write into the lock who holds it."""
    file.truncate(0)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
    file.flush()


def release(file: IO[str]) -> None:
    """Let another process write."""
    file.truncate(0)
    file.close()


def _holder(file: IO[str]) -> str:
    """Who wrote into the lock; between taking it and writing there is a moment in which nobody is named."""
    file.seek(0)
    try:
        stated = json.loads(file.read())
        return f"process {stated['pid']} on {stated['host']} since {stated['since']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
