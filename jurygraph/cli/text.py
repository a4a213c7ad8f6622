"""Lines for a terminal. Text that others wrote is shown, never obeyed."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

import typer
from rich.cells import cell_len

from jurygraph.cli.boundary import Exit
from jurygraph.safety.unseen import UNSEEN


def visible(text: str, limit: int | None = None) -> str:
    """The text in one line, with control and other unseen characters written as escapes."""
    told = text if limit is None else short(text, limit)
    if told.isascii() and told.isprintable():  # nearly every id and number
        return told
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], told)


_UNSEEN = re.compile(f"[\x00-\x1f{UNSEEN}]")


def visible_lines(text: str) -> str:
    """The text with control and other unseen characters written as escapes, but for line feeds and tabs."""
    return re.sub(f"[\x00-\x08\x0b-\x1f{UNSEEN}]", lambda found: json.dumps(found[0])[1:-1], text)


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
    """Four decimals, or a dash where there is no number."""
    return "-" if value is None else f"{round(value, 4) + 0.0:.4f}"


def plain(value: float | None) -> str:
    """As in a sentence: four decimals at most; never minus zero."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines; the first `left` columns to the left, the others, numbers, to the right."""
    cells = [[visible(cell, _WIDEST) for cell in row] for row in (header, *rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    lines = [_aligned(row, widths, left) for row in cells]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


_WIDEST = 160
"""Characters of a cell."""


def _aligned(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    return "  ".join(_padded(c, w, i < left) for i, (c, w) in enumerate(zip(cells, widths, strict=True))).rstrip()


def _padded(cell: str, width: int, left: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if left else space + cell


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)


class SpooledTable:
    """A table of any number of rows, as `table` lays it out: they wait in a temporary file for the widest of them."""

    def __init__(self, file: IO[str], left: int) -> None:
        self._file = file
        self._left = left
        self._widths: list[int] = []

    def add(self, row: Sequence[str]) -> None:
        """Add a row; a later one may have more columns."""
        cells = [visible(cell, _WIDEST) for cell in row]
        self._widen(cells)
        self._file.write(json.dumps(cells) + "\n")

    def _widen(self, cells: Sequence[str]) -> None:
        self._widths += [0] * (len(cells) - len(self._widths))
        widest = [max(width, _width(cell)) for width, cell in zip(self._widths, cells, strict=False)]
        self._widths[: len(widest)] = widest

    def lines(self, header: Sequence[str], missing: str) -> Iterator[str]:
        """Return the header and all rows as aligned lines; `missing` fills rows that have fewer columns."""
        first = [visible(cell, _WIDEST) for cell in header]
        self._widen(first)
        yield _aligned(first, self._widths, self._left)
        yield "  ".join("─" * width for width in self._widths)
        self._file.seek(0)
        for line in self._file:
            cells: list[str] = json.loads(line)
            yield _aligned([*cells, *[missing] * (len(first) - len(cells))], self._widths, self._left)


@contextmanager
def spooled_table(left: int) -> Iterator[SpooledTable]:
    """Have a table whose rows wait in a temporary file. Raises `InputError` where there is no room for it."""
    from jurygraph.sources.files import temporary_room

    with temporary_room(), TemporaryFile("w+", encoding="utf-8") as file:
        yield SpooledTable(file, left)
