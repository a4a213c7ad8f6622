"""Runs a command as the console script does, in this process, and leaves nothing of it behind.

A test of what is imported, of signals, or of two processes at once starts a new process instead.
"""

import io
import os
import runpy
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph.agents.functions import REGISTERED_EVALUATORS
from jurygraph.cli import main
from jurygraph.runs.store import ledger as ledger_module

JURYGRAPH = str(Path(sys.executable).with_name("jurygraph"))
_IMPORT_PATH = tuple(sys.path)  # before a test adds its project to it


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def run_command(*arguments: object, cwd: Path | None = None) -> CommandResult:
    """Run a command in a working directory (by default the present one) and return what it gave.

    It has closed each ledger that it opened.
    """
    with held_connections() as connections:
        ended = _run(lambda: main([str(argument) for argument in arguments]), cwd)
    assert not [connection for connection in connections if is_open(connection)]
    return ended


def run_script(script: Path, *arguments: object, cwd: Path | None = None) -> CommandResult:
    """Run a Python file as `python FILE ARGUMENT...` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        return _run(lambda: runpy.run_path(str(script), run_name="__main__"), cwd)


@contextmanager
def held_connections() -> Iterator[list[sqlite3.Connection]]:
    """Hold the connections of ledgers, so that one is closed only where somebody closes it, as if a frame held it."""
    held: list[sqlite3.Connection] = []
    connect = ledger_module._open_sqlite_connection

    def connect_and_hold(path: Path, mode: str) -> sqlite3.Connection:
        held.append(connect(path, mode))
        return held[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "_open_sqlite_connection", connect_and_hold)
        # one command may run within another
        patch.delattr(ledger_module.Ledger, "__del__", raising=False)
        yield held


def is_open(connection: sqlite3.Connection) -> bool:
    """Return whether a connection still keeps its file open."""
    try:
        connection.total_changes  # noqa: B018 - a closed one raises
    except sqlite3.ProgrammingError:
        return False
    return True


def _run(work: Callable[[], object], cwd: Path | None) -> CommandResult:
    out, err, code = _stream(), _stream(), 0
    with _nothing_left_behind(), chdir(cwd or "."), redirect_stdout(out), redirect_stderr(err):
        try:
            work()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return CommandResult(code, _text(out), _text(err))


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode("utf-8")


@contextmanager
def _nothing_left_behind() -> Iterator[None]:
    """Restore the environment, the import path and the registered evaluators; forget the modules of a project.

    A project's modules lie outside the import path of the run. That they are below the temporary folder says nothing:
    the checkout and its packages may be, too, and NumPy cannot be imported twice.
    """
    path = list(sys.path)
    modules = set(sys.modules)
    environment = dict(os.environ)
    registered = dict(REGISTERED_EVALUATORS)
    writes_no_bytecode = sys.dont_write_bytecode
    REGISTERED_EVALUATORS.clear()  # as in a new process
    sys.dont_write_bytecode = (
        True  # a module may be changed within a second, which compiled code does not notice
    )
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = writes_no_bytecode
        if os.environ != environment:
            _restore(os.environ, environment)
        _restore(REGISTERED_EVALUATORS, registered)
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file and not any(Path(file).is_relative_to(folder) for folder in _IMPORT_PATH):
                del sys.modules[name]


def _restore(changed: Any, before: Mapping[str, Any]) -> None:
    changed.clear()
    changed.update(before)
