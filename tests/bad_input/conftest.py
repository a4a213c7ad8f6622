"""The command line, as a person runs it."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from jurygraph.agents.functions import REGISTERED
from jurygraph.cli import main

NOBODY = 65534


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command as the console script does, without leaving compiled modules next to the evaluators."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):  # a command sets them: its process is its own
        monkeypatch.setenv(name, "false")

    def command(*arguments: object) -> Ended:
        with _own_evaluators(), pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        message = capsys.readouterr()
        return Ended(int(caught.value.code or 0), message.out, message.err)

    return command


@contextmanager
def _own_evaluators() -> Iterator[None]:
    """Forget the modules of a project: the next project has modules of the same names."""
    with patch.dict(REGISTERED, clear=True):
        yield
    for name in ("judges", "broken"):
        sys.modules.pop(name, None)


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
