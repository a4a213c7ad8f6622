"""A writer lock that is held while its file is open, so that a killed process leaves no lock."""

import errno
import fcntl
import json
import os
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from jurygraph.errors import InputError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SIGNATURE = b'{"pid": '
"""Beginning of the text that jurygraph writes into a lock."""


def acquire(path: Path) -> IO[str]:
    """Lock a file until it is closed. Raises `InputError` naming the holder if another process holds the lock.

    A link, or a file that is not a lock written by jurygraph, is refused and not changed.
    """
    file = _open(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        description = _describe_holder(file)
        file.close()
        raise InputError(f"{path.parent}: is being written by {description}; wait until it ends, or end it") from None
    except OSError as error:
        file.close()
        problem = f"cannot be locked there ({error.strerror})"
        raise InputError(f"{path.parent}: {problem}; name a folder on a local disk with --out") from None
    if not _is_at(path, file):
        file.close()  # the previous holder has just removed the file
        return acquire(path)
    try:
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        file.flush()
    except OSError as error:
        with suppress(OSError):  # closing tries to write again
            file.close()
        problem = f"cannot be written ({error.strerror})"
        raise InputError(f"{path}: {problem}; free some space, or name another folder with --out") from None
    return file


def _open(path: Path) -> IO[str]:
    try:
        number = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _foreign_error(path, "is a link, a folder or a device") from None
        problem = f"cannot be written ({error.strerror})"
        raise InputError(f"{path.parent}: {problem}; name a folder that you may write to with --out") from None
    wrong = _find_problem(number)
    if wrong is not None:
        os.close(number)
        raise _foreign_error(path, wrong)
    return os.fdopen(number, "r+", encoding="utf-8", errors="replace")


def _find_problem(number: int) -> str | None:
    """Return why an open file is not a lock written by jurygraph; None if it is."""
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        return "is not a regular file"
    if state.st_uid != os.geteuid():
        return "belongs to another user"
    if state.st_nlink > 1:
        return "has a second name (a hard link)"
    is_ours = _SIGNATURE.startswith(os.pread(number, len(_SIGNATURE), 0))
    return None if is_ours else "has content that jurygraph did not write"


def _foreign_error(path: Path, problem: str) -> InputError:
    return InputError(f"{path}: {problem}, so it is not the lock of a run; move it away, or name another folder")


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def release(file: IO[str]) -> None:
    """Release the lock, so that another process can write."""
    file.truncate(0)
    file.close()


def _describe_holder(file: IO[str]) -> str:
    """Return the process that holds the lock, which is unnamed until it has written into the lock."""
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
