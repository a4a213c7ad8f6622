"""Write files whole: into a draft that nobody can guess or link to, which then takes the place of the file.

A draft is locked as long as its writer lives. One that is not locked was left by a writer who was killed, and the next
who writes into that folder, or opens the run in it, removes it.
"""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIVATE = 0o600
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THERE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME = re.compile(r"\.jurygraph-[0-9a-f]{16}\.draft")


def write_whole(path: Path, content: bytes | Iterable[bytes], private: bool = True) -> None:
    """Write a file so that it is never seen half-written. Raises `OSError` naming it.

    A `private` file is for its owner alone. Any other keeps the mode of the one that it replaces, or has the usual one.
    """
    with draft_of(path, private) as draft, draft.open("r+b") as file:
        file.writelines([content] if isinstance(content, bytes) else content)


@contextmanager
def draft_of(path: Path, private: bool = True) -> Iterator[Path]:
    """A new, empty file that takes the place of another one at the end, or is gone if that fails."""
    remove_leftovers(path.parent)
    draft = None
    try:
        draft, number = _locked_draft(path.parent)
        try:
            yield draft
            os.fsync(number)
            if not private:
                draft.chmod(_mode_of(path))
            draft.replace(path)
        finally:
            os.close(number)
    except OSError as error:
        error.filename = str(path)  # not the draft; and a full disk names none
        error.filename2 = None
        raise
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove drafts in a folder whose writers were killed."""
    names: list[str] = []
    with suppress(OSError):  # a folder that cannot be read has nothing to tidy up for us
        names = sorted(os.listdir(folder))
    for name in names:
        if _NAME.fullmatch(name):
            with suppress(OSError):  # a link or another thing of that name is none of ours, and stops nothing
                _remove_unlocked(folder / name)


def _locked_draft(folder: Path) -> tuple[Path, int]:
    while True:
        draft = folder / f".jurygraph-{secrets.token_hex(8)}.draft"
        number = os.open(draft, _NEW, PRIVATE)
        with suppress(OSError):  # where no file can be locked, nobody removes a draft either
            fcntl.flock(number, fcntl.LOCK_EX)
        if draft.exists():
            return draft, number
        os.close(number)  # somebody who tidied up was faster than the lock


def _remove_unlocked(draft: Path) -> None:
    number = os.open(draft, _THERE)
    try:
        state = os.fstat(number)
        if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid():
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
    except BlockingIOError:
        return  # its writer lives
    finally:
        os.close(number)


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0o077)  # it can only be read by setting it
        os.umask(umask)
        return 0o666 & ~umask
