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

from jurygraph.cli.streams import ExitCode, make_current_redactor
from jurygraph.display import ProgressCallback, format_number
from jurygraph.errors import InputError
from jurygraph.messages import escape_hidden_characters, escape_multiline_text, shorten

command_line: ContextVar[str] = ContextVar("command_line", default="")
"""The command that is running, as one line for a shell."""


def escape_line(text: str, limit: int | None = None) -> str:
    """Return the text as one line of at most `limit` characters, control and invisible characters as escapes."""
    line = text if limit is None else shorten(text, limit)
    return escape_hidden_characters(line)


def print_result(line: str | bytes) -> None:
    """Print a line of the result without secrets; the bytes of an export are printed as they are.

    On a terminal, control characters are printed as escapes. A closed pipe is no error: the command exits with code
    141. Raises InputError if standard output has no room.
    """
    is_terminal = sys.stdout.isatty()
    if isinstance(line, str):
        line = make_current_redactor().redact_text(line)
    elif is_terminal:
        line = line.decode(errors="backslashreplace")
    if is_terminal and isinstance(line, str):
        line = escape_multiline_text(line)
    try:
        typer.echo(line)
    except OSError as error:
        # What is left of it is lost without an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        raise InputError(
            f"standard output: cannot be written ({error.strerror}); send it to a place with room"
        ) from None


def print_result_lines(lines: Iterable[str]) -> None:
    """Print many lines of the result, 500 at a time."""
    lines = iter(lines)
    while batch := list(islice(lines, _LINES_PER_BATCH)):
        print_result("\n".join(batch))


_LINES_PER_BATCH = 500


def print_message(line: str) -> None:
    typer.echo(escape_line(make_current_redactor().redact_text(line)), err=True)


def print_messages(lines: Iterable[str]) -> None:
    for line in lines:
        print_message(line)


def print_report(as_json: bool, report: Any, lines: Iterable[str]) -> None:
    """Print a report, a JSON value, as one line of JSON, or else its lines.

    Values are redacted before encoding, so that it stays valid JSON.
    """
    if as_json:
        print_result(json.dumps(make_current_redactor().redact_json(report)))
    else:
        print_result_lines(lines)


def wrap_lines(lines: Iterable[str]) -> Iterator[str]:
    """Break lines at the width of the terminal, with their continuations indented; a file or a pipe gets them whole."""
    width = get_terminal_width()
    for line in lines:
        if width is None:
            yield line
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            yield from textwrap.wrap(
                line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False
            )


def format_component_value(value: float | None, is_filled_in: bool) -> str:
    """Format the value of a component, with an asterisk if the failure rule filled it in; a dash if none counts."""
    return f"{'*' * is_filled_in}{format_number(value)}"


def format_verdict_counts(
    judged: int, gated: Mapping[str, int], abstained: int, failed: int, not_applicable: int
) -> str:
    """Format the numbers of verdicts as summands; scores set by a gate (`gated`) are not judged."""
    gated_counts = [f"{count} set by {name}" for name, count in sorted(gated.items())]
    other_counts = (
        f"{abstained} abstained",
        f"{failed} failed",
        f"{not_applicable} not applicable",
    )
    return " + ".join([f"{judged} judged", *gated_counts, *other_counts])


def format_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], left_aligned_count: int = 1
) -> list[str]:
    """Return aligned lines; the first `left_aligned_count` are left-aligned, the others, numbers, right-aligned.

    Floats have four decimals, and None is a dash. Columns that do not fit on the terminal follow below, after the
    first `left_aligned_count` once more.
    """
    columns = [[escape_line(name)] for name in header]
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            column.append(escape_line(_format_cell(cell)))
    return list(_table_lines(columns, left_aligned_count))


def _format_cell(cell: object) -> str:
    return format_number(cell) if cell is None or isinstance(cell, float) else str(cell)


def _table_lines(columns: Sequence[Sequence[str]], left_aligned_count: int) -> Iterator[str]:
    available_width = get_terminal_width()
    column_widths = [max(map(cell_len, column)) for column in columns]
    if available_width is not None:
        while (
            len(column_widths) > left_aligned_count + 1
            and sum(column_widths) + 2 * (len(column_widths) - 1) > available_width
        ):
            column_widths.pop()
    columns_in_width = columns[: len(column_widths)]
    padded_columns = [
        [_pad_cell(cell, width, is_left_aligned=index < left_aligned_count) for cell in cells]
        for index, (cells, width) in enumerate(zip(columns_in_width, column_widths, strict=True))
    ]
    header_line, *body = ("  ".join(row).rstrip() for row in zip(*padded_columns, strict=True))
    yield header_line
    yield "  ".join("─" * width for width in column_widths)
    yield from body
    others = columns[len(column_widths) :]
    if others:
        yield ""
        yield from _table_lines([*columns[:left_aligned_count], *others], left_aligned_count)


def _pad_cell(cell: str, width: int, is_left_aligned: bool) -> str:
    padding = " " * (width - cell_len(cell))
    return cell + padding if is_left_aligned else padding + cell


def get_terminal_width() -> int | None:
    """Return the number of cells in a line of the terminal, 100 if it has no size; None for a file or a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


_MIN_SHARE_BETWEEN_REPORTS = 0.1
_MIN_SECONDS_BETWEEN_REPORTS = 2.0
_MIN_SECONDS_BEFORE_ESTIMATE = 10.0
_MAX_SECONDS_BETWEEN_REPORTS = 30.0


@contextmanager
def progress(
    label: str, total: int, what: str, suffix: Callable[[], str] = str
) -> Iterator[ProgressCallback]:
    """Yield a function to call with the number of items done since the last call; `suffix` returns text to append."""
    if not sys.stderr.isatty():
        lines = _ProgressLines(label, total, what, suffix)
        with nullcontext() if suffix is str else lines.print_in_background():
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

    # standard output may be a file, and is not moved into the bar
    with Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
        SuffixColumn(),
        console=Console(stderr=True),
        redirect_stdout=False,
    ) as progress_bar:
        task = progress_bar.add_task(label, total=total)
        yield lambda count: progress_bar.advance(task, count)


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
        elapsed_seconds = time.monotonic() - self._reported_at
        has_progressed_enough = (
            self._done - self._reported >= _MIN_SHARE_BETWEEN_REPORTS * self._total
        )
        if has_progressed_enough and elapsed_seconds >= _MIN_SECONDS_BETWEEN_REPORTS:
            self.print_progress()

    def print_progress(self) -> None:
        self._reported = self._done
        self._reported_at = time.monotonic()
        share = f"{self._done / self._total:.0%}" if self._total else "0%"
        line = f"{self._label}: {self._done} of {self._total} {self._what} ({share})"
        suffix = self._suffix()
        print_message(
            "; ".join(filter(None, (line, suffix, suffix and self._describe_remaining())))
        )

    def _describe_remaining(self) -> str:
        elapsed_seconds = time.monotonic() - self._began
        if not self._done or elapsed_seconds < _MIN_SECONDS_BEFORE_ESTIMATE:
            return ""
        remaining_minutes = elapsed_seconds / self._done * (self._total - self._done) / 60.0
        if remaining_minutes < 1.0:
            return "less than a minute left"
        return f"about {remaining_minutes:.0f} min left"

    @contextmanager
    def print_in_background(self) -> Iterator[None]:
        """Print while nothing is finished, from a thread of its own, until the block ends."""
        heartbeat_thread = threading.Thread(target=self._print_repeatedly, daemon=True)
        heartbeat_thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            heartbeat_thread.join()

    def _print_repeatedly(self) -> None:
        while not self._is_over.wait(_MAX_SECONDS_BETWEEN_REPORTS):
            if time.monotonic() - self._reported_at >= _MAX_SECONDS_BETWEEN_REPORTS:
                self.print_progress()
