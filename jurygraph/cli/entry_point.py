"""Run a command; convert errors to one line on standard error and an exit code."""

import logging
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.redacted_streams import redacted_streams
from jurygraph.errors import BudgetExceeded, JurygraphError, ModelError, TraceMismatch


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    if logging.lastResort is not None:  # it writes warnings to standard error
        logging.lastResort.setFormatter(_VisibleFormatter())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with redacted_streams(for_good=argv is None):
        _run(argv)


def _run(argv: Sequence[str] | None) -> None:
    from jurygraph.cli.app import app

    try:
        app(None if argv is None else list(argv), prog_name="jurygraph")
    except JurygraphError as error:
        _exit_with_message(str(error), _exit_code(error))
    except OSError as error:
        _exit_with_message(f"{error.filename or 'a file'}: {error.strerror or error}", ExitCode.WRONG_INPUT)
    except Exception as error:  # noqa: BLE001 - the outermost handler: any other exception is a bug
        from jurygraph.cli.render.text import escape_lines

        sys.stderr.write(escape_lines(traceback.format_exc()))
        _exit_with_message(
            f"this is a bug in jurygraph, please report it: {type(error).__name__}: {error}", ExitCode.BUG
        )


class _VisibleFormatter(logging.Formatter):
    """Log formatter that escapes control characters, so that a message cannot control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message with control characters as escapes."""
        from jurygraph.cli.render.text import escape_lines

        return escape_lines(super().format(record))


def _exit_code(error: JurygraphError) -> ExitCode:
    if isinstance(error, TraceMismatch):
        return ExitCode.INTEGRITY
    if isinstance(error, ModelError):
        return ExitCode.INCONCLUSIVE
    return ExitCode.BUDGET if isinstance(error, BudgetExceeded) else ExitCode.WRONG_INPUT


def _exit_with_message(message: str, code: ExitCode) -> None:
    from jurygraph.cli.render.text import print_message

    print_message(f"error: {message}")
    sys.exit(code)
