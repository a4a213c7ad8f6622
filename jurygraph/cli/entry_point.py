"""Run a command; convert errors to one line on standard error and an exit code."""

import logging
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper

from jurygraph.cli.app import root_command
from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.render.text import command_line, escape_lines, print_message
from jurygraph.cli.streams import current_redactor
from jurygraph.errors import BudgetExceeded, JurygraphError, ModelError, TraceMismatch

_EXIT_CODES = {TraceMismatch: ExitCode.INTEGRITY, ModelError: ExitCode.INCONCLUSIVE, BudgetExceeded: ExitCode.BUDGET}


def main(argv: Sequence[str] | None = None) -> None:
    try:
        _run(argv)
    except SystemExit as end:
        limits = sys.modules.get("jurygraph.graphs.state")
        if argv is None and limits is not None and limits.LEFT_ALONE:  # the interpreter could not destroy these tasks
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code or 0))
        raise


def _run(argv: Sequence[str] | None) -> None:
    if logging.lastResort is not None:  # it writes warnings to standard error
        logging.lastResort.setFormatter(_VisibleFormatter())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    command_line.set(shlex.join(["jurygraph", *(sys.argv[1:] if argv is None else argv)]))
    try:
        try:
            root_command(None if argv is None else list(argv), prog_name="jurygraph")
        finally:
            sys.stdout.flush()
    except JurygraphError as error:
        code = next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), ExitCode.WRONG_INPUT)
        _exit_with_message(str(error), code)
    except OSError as error:
        _exit_with_message(f"{error.filename or 'a file'}: {error.strerror or error}", ExitCode.WRONG_INPUT)
    except Exception as error:  # noqa: BLE001 - the outermost handler: any other exception is a bug
        sys.stderr.write(_make_printable(traceback.format_exc()))
        _exit_with_message(
            f"this is a bug in jurygraph, please report it: {type(error).__name__}: {error}", ExitCode.BUG
        )


def _make_printable(text: str) -> str:
    """Return a text without secrets, and with escapes for control characters, which would control the terminal."""
    return escape_lines(current_redactor().redact_text(text))


class _VisibleFormatter(logging.Formatter):
    """Log formatter for the terminal; a log record may repeat a key, or contain control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return _make_printable(super().format(record))


def _exit_with_message(message: str, code: ExitCode) -> None:
    print_message(f"error: {message}")
    sys.exit(code)
