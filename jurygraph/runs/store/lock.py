"""One writer at a time: a lock that lives as long as its file is open, so that no kill leaves it behind."""

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
_SIGNED = b'{"pid": '
"""How the text begins that we write into a lock."""


def hold(path: Path) -> IO[str]:
    """Lock a file, until it is closed. Raises `InputError` saying who holds it where another process does.

    A link, or a file that is not a lock of ours, is refused and stays as it is.
    """
    file = _open(path)
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
    if not _is_at(path, file):
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


def _open(path: Path) -> IO[str]:
    try:
        number = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _foreign(path, "is a link, a folder or a device") from None
        problem = f"cannot be written ({error.strerror})"
        raise InputError(f"{path.parent}: {problem}; name a folder that you may write to with --out") from None
    wrong = _wrong(number)
    if wrong is not None:
        os.close(number)
        raise _foreign(path, wrong)
    return os.fdopen(number, "r+", encoding="utf-8", errors="replace")


def _wrong(number: int) -> str | None:
    """Why an open file is not a lock of ours, if it is not."""
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        return "is no regular file"
    if state.st_uid != os.geteuid():
        return "belongs to another user"
    if state.st_nlink > 1:
        return "has a second name (a hard link)"
    ours = _SIGNED.startswith(os.pread(number, len(_SIGNED), 0))
    return None if ours else "has content that jurygraph did not write"


def _foreign(path: Path, wrong: str) -> InputError:
    return InputError(f"{path}: {wrong}, so it is not the lock of a run; move it away, or name another folder")


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _sign(file: IO[str]) -> None:
    """Write into the lock who holds it."""
    _empty(file)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
    file.flush()


def _empty(file: IO[str]) -> None:
    """Take out what was written into the lock before."""
    file.seek(0)
    file.truncate(0)


def release(file: IO[str]) -> None:
    """Let another process write."""
    _empty(file)
    file.close()


def _holder(file: IO[str]) -> str:
    """Who wrote into the lock; between taking it and writing there is a moment in which nobody is named."""
    file.seek(0)
    try:
        stated = json.loads(file.read())
        return f"process {stated['pid']} on {stated['host']} since {stated['since']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
