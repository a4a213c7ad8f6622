"""The command line, as a person runs it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import Command, run

__all__ = ["Command", "run"]

NOBODY = 65534


@contextmanager
def unprivileged_user() -> Iterator[None]:
    """Root may read everything, so be nobody for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


def listing(folder: Path) -> dict[Path, tuple[int, int] | None]:
    """Everything in a folder; a file with its size and the time of its last change."""
    return {path: _state(path) for path in sorted(folder.rglob("*"))}


def _state(path: Path) -> tuple[int, int] | None:
    status = path.lstat()
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None
