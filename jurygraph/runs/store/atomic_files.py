"""Write files atomically: into a replacement file with an unpredictable name, which then replaces the file.

A replacement file is locked while its writer runs. An unlocked one was left by a killed writer; it is removed by the
next process that writes into that folder or opens the run in it.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CREATE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAMES = f".jurygraph-{16 * '[0-9a-f]'}.draft"


def write_atomically(path: Path, content: bytes | Iterable[bytes], private: bool = True) -> None:
    """Write a file so that it is never visible half-written. Raises `OSError` with the name of the file.

    A `private` file can be read by its owner only; any other has the mode of the file it replaces, or the default.
    """
    with open_replacement(path, private) as replacement, replacement.open("r+b") as file:
        file.writelines([content] if isinstance(content, bytes) else content)


@contextmanager
def open_replacement(path: Path, private: bool = True) -> Iterator[Path]:
    """Yield a new, empty file that replaces another one at the end, or is removed if an error is raised."""
    remove_leftovers(path.parent)
    replacement = None
    try:
        replacement, descriptor = _create_locked_replacement(path.parent)
        try:
            yield replacement
            os.fsync(descriptor)
            if not private:
                replacement.chmod(_mode_of(path))
            replacement.replace(path)
        finally:
            os.close(descriptor)
    except OSError as error:
        error.filename = str(path)  # the error names the replacement file, or no file if the disk is full
        error.filename2 = None
        raise
    finally:
        if replacement is not None:
            replacement.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the replacement files of killed writers in a folder."""
    with suppress(OSError):  # in an unreadable folder there is nothing that we could remove
        for replacement in sorted(folder.glob(_NAMES)):
            with suppress(OSError):  # a link or folder of that name, or of a running writer, is kept
                _remove_unlocked(replacement)


def _create_locked_replacement(folder: Path) -> tuple[Path, int]:
    while True:
        replacement = folder / f".jurygraph-{secrets.token_hex(8)}.draft"
        descriptor = os.open(replacement, _CREATE_FLAGS, 0o600)
        with suppress(OSError):  # without file locks, no process removes replacement files either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if replacement.exists():
            return replacement, descriptor
        os.close(descriptor)  # another process removed it before it was locked


def _remove_unlocked(replacement: Path) -> None:
    descriptor = os.open(replacement, _OPEN_FLAGS)
    try:
        state = os.fstat(descriptor)
        if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer is running
            replacement.unlink()
    finally:
        os.close(descriptor)


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0o077)  # the umask can only be read by setting it
        os.umask(umask)
        return 0o666 & ~umask
