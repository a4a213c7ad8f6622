"""Output lines for a terminal, where text from outside is escaped, and the progress of a long command."""

import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from itertools import islice
from typing import Any

import typer
from rich.cells import cell_len

from jurygraph.cli.streams import ExitCode, current_redactor
from jurygraph.display import ProgressCallback, format_number
from jurygraph.errors import InputError
from jurygraph.messages import escape_hidden, escape_lines, shorten

command_line: ContextVar[str] = ContextVar("command_line", default="")
"""The command that is running, as one line for a shell."""


def escape_line(text: str, limit: int | None = None) -> str:
    """Return the text as one line of at most `limit` characters, control and invisible characters as escapes."""
    line = text if limit is None else shorten(text, limit)
    return escape_hidden(line)


def print_result(line: str | bytes) -> None:
    """Print a line of the result without secrets; the bytes of an export are printed as they are.

    On a terminal, control characters are printed as escapes. A closed pipe is no error: the command exits with code
    141. Raises InputError if standard output has no room.
    """
    is_terminal = sys.stdout.isatty()
    if isinstance(line, str):
        line = current_redactor().redact_text(line)
    elif is_terminal:
        line = line.decode(errors="backslashreplace")
    if is_terminal and isinstance(line, str):
        line = escape_lines(line)
    try:
        typer.echo(line)
    except OSError as error:
        # What is left of it is lost without an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(ExitCode.NOBODY_READS) from None
        problem = f"cannot be written ({error.strerror}); send it to a place with room"
        raise InputError(f"standard output: {problem}") from None


def print_result_lines(lines: Iterable[str]) -> None:
    """Print many lines of the result, 500 at a time."""
    lines = iter(lines)
    while batch := list(islice(lines, _LINES_PER_BATCH)):
        print_result("\n".join(batch))


_LINES_PER_BATCH = 500


def print_message(line: str) -> None:
    typer.echo(escape_line(current_redactor().redact_text(line)), err=True)


def print_report(as_json: bool, report: Any, lines: Iterable[str]) -> None:
    """Print a report, a JSON value, as one line of JSON, or else its lines.

    Values are redacted before encoding, so that it stays valid JSON.
    """
    if as_json:
        print_result(json.dumps(current_redactor().redact_json(report)))
    else:
        print_result_lines(lines)


def wrap_lines(lines: Iterable[str]) -> Iterator[str]:
    """Break lines at the width of the terminal, with their continuations indented; a file or a pipe gets them whole."""
    width = terminal_width()
    for line in lines:
        if width is None:
            yield line
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            yield from textwrap.wrap(
                line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False
            )


def format_component(value: float | None, is_filled_in: bool) -> str:
    """Format the value of a component, with an asterisk if the failure rule filled it in; a dash if none counts."""
    return f"{'*' * is_filled_in}{format_number(value)}"


def format_counts(
    judged: int, gated: Mapping[str, int], abstained: int, failed: int, not_applicable: int
) -> str:
    """Format the numbers of verdicts as summands; scores set by a gate (`gated`) are not judged."""
    counts = [f"{judged} judged"]
    for name, count in sorted(gated.items()):
        counts.append(f"{count} set by {name}")
    counts.append(f"{abstained} abstained")
    counts.append(f"{failed} failed")
    counts.append(f"{not_applicable} not applicable")
    return " + ".join(counts)


def format_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], left_columns: int = 1
) -> list[str]:
    """Return aligned lines; the first `left_columns` are left-aligned, the others, numbers, right-aligned.

    Floats have four decimals, and None is a dash. Columns that do not fit on the terminal follow below, after the
    first `left_columns` once more.
    """
    columns = [[escape_line(name)] for name in header]
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            column.append(escape_line(_format_cell(cell)))
    return list(_table_lines(columns, left_columns))


def _format_cell(cell: object) -> str:
    return format_number(cell) if cell is None or isinstance(cell, float) else str(cell)


def _table_lines(columns: Sequence[Sequence[str]], left_columns: int) -> Iterator[str]:
    available_width = terminal_width()
    widths = [max(map(cell_len, column)) for column in columns]
    if available_width is not None:
        while (
            len(widths) > left_columns + 1 and sum(widths) + 2 * (len(widths) - 1) > available_width
        ):
            widths.pop()
    fitting_columns = columns[: len(widths)]
    padded_columns = []
    for index, (cells, width) in enumerate(zip(fitting_columns, widths, strict=True)):
        padded_columns.append(
            [_pad_cell(cell, width, is_left=index < left_columns) for cell in cells]
        )
    head, *body = ("  ".join(row).rstrip() for row in zip(*padded_columns, strict=True))
    yield head
    yield "  ".join("─" * width for width in widths)
    yield from body
    others = columns[len(widths) :]
    if others:
        yield ""
        yield from _table_lines([*columns[:left_columns], *others], left_columns)


def _pad_cell(cell: str, width: int, is_left: bool) -> str:
    padding = " " * (width - cell_len(cell))
    return cell + padding if is_left else padding + cell


def terminal_width() -> int | None:
    """Return the number of cells in a line of the terminal, 100 if it has no size; None for a file or a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


_MIN_REPORTED_SHARE = 0.1
_MIN_SECONDS = 2.0
_MIN_ESTIMATED_SECONDS = 10.0
_HEARTBEAT_SECONDS = 30.0


@contextmanager
def progress(
    label: str, total: int, what: str, suffix: Callable[[], str] = str
) -> Iterator[ProgressCallback]:
    """Yield a function to call with the number of items done since the last call; `suffix` returns text to append."""
    if not sys.stderr.isatty():
        lines = _ProgressLines(label, total, what, suffix)
        with nullcontext() if suffix is str else lines.printing_repeatedly():
            yield lines.advance
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        RenderableColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    class SuffixColumn(RenderableColumn):
        def render(self, task: object) -> str:
            return suffix()

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
        SuffixColumn(),
    )
    # standard output may be a file, and is not moved into the bar
    with Progress(
        TextColumn(label), *columns, console=Console(stderr=True), redirect_stdout=False
    ) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


class _ProgressLines:
    """Prints about every tenth of the total, not more often than every 2 seconds; with a suffix, every 30 at least.

    So that work whose first item takes minutes is seen to go on.
    """

    def __init__(self, label: str, total: int, what: str, suffix: Callable[[], str]) -> None:
        self._label = label
        self._total = total
        self._what = what
        self._suffix = suffix
        self._done = 0
        self._reported = 0
        self._began = self._reported_at = time.monotonic()
        self._is_over = threading.Event()

    def advance(self, count: int) -> None:
        self._done += count
        elapsed = time.monotonic() - self._reported_at
        has_tenth = self._done - self._reported >= _MIN_REPORTED_SHARE * self._total
        if has_tenth and elapsed >= _MIN_SECONDS:
            self.print()

    def print(self) -> None:
        self._reported = self._done
        self._reported_at = time.monotonic()
        share = f"{self._done / self._total:.0%}" if self._total else "0%"
        line = f"{self._label}: {self._done} of {self._total} {self._what} ({share})"
        suffix = self._suffix()
        print_message(
            "; ".join(filter(None, (line, suffix, suffix and self._describe_remaining())))
        )

    def _describe_remaining(self) -> str:
        elapsed = time.monotonic() - self._began
        if not self._done or elapsed < _MIN_ESTIMATED_SECONDS:
            return ""
        minutes = elapsed / self._done * (self._total - self._done) / 60.0
        return f"about {minutes:.0f} min left" if minutes >= 1.0 else "less than a minute left"

    @contextmanager
    def printing_repeatedly(self) -> Iterator[None]:
        """Print while nothing is finished, from a thread of its own, until the block ends."""
        beat = threading.Thread(target=self._print_repeatedly, daemon=True)
        beat.start()
        try:
            yield
        finally:
            self._is_over.set()
            beat.join()

    def _print_repeatedly(self) -> None:
        while not self._is_over.wait(_HEARTBEAT_SECONDS):
            if time.monotonic() - self._reported_at >= _HEARTBEAT_SECONDS:
                self.print()
