"""Lines for a terminal. Text that others wrote is shown, never obeyed."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

import typer
from rich.cells import cell_len

from jurygraph.cli.boundary import Exit
from jurygraph.cli.streams import RedactedStream
from jurygraph.safety.unseen import UNSEEN


def visible(text: str, limit: int | None = None) -> str:
    """The text in one line, with control and other unseen characters written as escapes."""
    told = text if limit is None else short(text, limit)
    if told.isascii() and told.isprintable():  # nearly every id and number
        return told
    return _UNSEEN.sub(_escape, told)


_UNSEEN = re.compile(f"[\x00-\x1f{UNSEEN}]")
_UNSEEN_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{UNSEEN}]")


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def visible_lines(text: str) -> str:
    """The text with control and other unseen characters written as escapes, but for line feeds and tabs."""
    return _UNSEEN_IN_LINES.sub(_escape, text)


def short(text: str, limit: int) -> str:
    """No more than so many characters of the text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def word(value: object) -> str:
    """A path or id as one types it in a command."""
    from pathlib import Path

    from jurygraph.runs.store.folder import typed

    return typed(value) if isinstance(value, Path) else shlex.quote(str(value))


def out(line: str | bytes) -> None:
    """A line of the result. Nobody reading on is no error.

    A terminal gets control characters as escapes; a file or a pipe gets bytes as they are.
    """
    try:
        if isinstance(line, bytes) and isinstance(sys.stdout, RedactedStream) and not sys.stdout.isatty():
            sys.stdout.write_as_is(line + b"\n")
        else:
            typer.echo(_for_terminal(line) if sys.stdout.isatty() else line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Exit.NOBODY_READS) from None


def out_all(lines: Iterable[str]) -> None:
    """Many lines of the result, some hundred at a time."""
    lines = iter(lines)
    while some := list(islice(lines, _AT_ONCE)):
        out("\n".join(some))


_AT_ONCE = 500


def _for_terminal(line: str | bytes) -> str:
    return visible_lines(line if isinstance(line, str) else line.decode(errors="backslashreplace"))


def say(line: str) -> None:
    """A line for the person at the terminal, on standard error."""
    typer.echo(visible(line), err=True)


def out_json(value: Any) -> None:
    """The result as one line of JSON, redacted before it is written, so that it stays JSON."""
    from jurygraph.cli.streams import known_redactor

    out(json.dumps(known_redactor().value(value)))


def number(value: float | None) -> str:
    """Four decimals, or a dash where there is no number; never minus zero."""
    if value is None:
        return "-"
    text = f"{value:.4f}"
    return "0.0000" if text == "-0.0000" else text


def plain(value: float | None) -> str:
    """As in a sentence: four decimals at most; never minus zero."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines; the first `left` columns to the left, the others, numbers, to the right."""
    columns = [_visible_cells(column) for column in zip(header, *rows, strict=True)]
    widths = [_width(column) for column in columns]
    lines = list(_aligned(columns, widths, left))
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


_WIDEST = 160
"""Characters of a cell."""


def _visible_cells(cells: Sequence[str]) -> Sequence[str]:
    """Return the cells of a column as they are printed."""
    text = "".join(cells)
    if text.isascii() and text.isprintable() and max(map(len, cells)) <= _WIDEST:  # checked once for all of them
        return cells
    return [visible(cell, _WIDEST) for cell in cells]


def _width(cells: Sequence[str]) -> int:
    """Return how many places of a terminal the widest of some cells takes."""
    return max(map(_length_of(cells), cells))


def _length_of(cells: Sequence[str]) -> Callable[[str], int]:
    return len if "".join(cells).isascii() else cell_len


def _aligned(columns: Sequence[Sequence[str]], widths: Sequence[int], left: int) -> Iterator[str]:
    """Return a line for each row; the first `left` columns are aligned to the left, the others to the right."""
    padded = [_padded(cells, width, i < left) for i, (cells, width) in enumerate(zip(columns, widths, strict=True))]
    return ("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def _padded(cells: Sequence[str], width: int, left: bool) -> list[str]:
    length = _length_of(cells)
    if left:
        return [cell + " " * (width - length(cell)) for cell in cells]
    return [" " * (width - length(cell)) + cell for cell in cells]


class SpooledTable:
    """A table of any number of rows, as `table` lays it out: they wait in a temporary file for the widest of them."""

    def __init__(self, file: IO[str], left: int) -> None:
        self._file = file
        self._left = left
        self._widths: list[int] = []
        self._rows: list[Sequence[str]] = []

    def add(self, row: Sequence[str]) -> None:
        """Add a row; a later one may have more columns."""
        if self._rows and (len(self._rows) == _AT_ONCE or len(self._rows[0]) != len(row)):
            self._write()
        self._rows.append(row)

    def _write(self) -> None:
        """Write the rows that were added, which all have the same number of columns, column by column."""
        columns = [_visible_cells(column) for column in zip(*self._rows, strict=True)]
        self._widen(columns)
        self._file.write(json.dumps(columns) + "\n")
        self._rows = []

    def _widen(self, columns: Sequence[Sequence[str]]) -> None:
        self._widths += [0] * (len(columns) - len(self._widths))
        for place, cells in enumerate(columns):
            self._widths[place] = max(self._widths[place], _width(cells))

    def lines(self, header: Sequence[str], missing: str) -> Iterator[str]:
        """Return the header and all rows as aligned lines; `missing` fills rows that have fewer columns."""
        if self._rows:
            self._write()
        first = [_visible_cells([cell]) for cell in header]
        self._widen(first)
        yield from _aligned(first, self._widths, self._left)
        yield "  ".join("─" * width for width in self._widths)
        self._file.seek(0)
        for line in self._file:
            columns: list[list[str]] = json.loads(line)
            columns += [[missing] * len(columns[0])] * (len(first) - len(columns))
            yield from _aligned(columns, self._widths, self._left)


@contextmanager
def spooled_table(left: int) -> Iterator[SpooledTable]:
    """Have a table whose rows wait in a temporary file. Raises `InputError` where there is no room for it."""
    from jurygraph.sources.files import temporary_room

    with temporary_room(), TemporaryFile("w+", encoding="utf-8") as file:
        yield SpooledTable(file, left)
