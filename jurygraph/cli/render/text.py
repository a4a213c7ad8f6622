"""Output lines for a terminal. Text from outside is escaped, so that it cannot control the terminal."""

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.streams import current_redactor
from jurygraph.display import format_number
from jurygraph.errors import InputError
from jurygraph.messages import UNSEEN, escape_hidden, shorten

command_line: ContextVar[str] = ContextVar("command_line", default="")
"""The command that is running, as one line for a shell."""


def escape_line(text: str, limit: int | None = None) -> str:
    """Return the text as one line of at most `limit` characters, control and invisible characters as escapes."""
    line = text if limit is None else shorten(text, limit)
    return escape_hidden(line)


_HIDDEN_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{UNSEEN}]")


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def escape_lines(text: str) -> str:
    """Return the text with control and invisible characters as escapes, except line feeds and tabs."""
    return _HIDDEN_IN_LINES.sub(_escape, text)


def shell_quote(value: object) -> str:
    """Quote a path or id for use in a shell command."""
    from jurygraph.runs.store.folder import shell_quote

    return shell_quote(value) if isinstance(value, Path) else shlex.quote(str(value))


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
    try:
        typer.echo(escape_lines(line) if is_terminal and isinstance(line, str) else line)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is lost without an error
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(ExitCode.NOBODY_READS) from None
        problem = f"cannot be written ({error.strerror}); send it to a place with room"
        raise InputError(f"standard output: {problem}") from None


def print_result_lines(lines: Iterable[str]) -> None:
    """Print many lines of the result, 500 at a time."""
    lines = iter(lines)
    while batch := list(islice(lines, _BATCH)):
        print_result("\n".join(batch))


_BATCH = 500


def print_message(line: str) -> None:
    """Print a message without secrets to standard error."""
    typer.echo(escape_line(current_redactor().redact_text(line)), err=True)


def print_report(as_json: bool, report: Any, lines: Iterable[str]) -> None:
    """Print a report, a pydantic model or a JSON value, as one line of JSON, or else its lines.

    Values are redacted before encoding, so that it stays valid JSON.
    """
    if as_json:
        value = report if isinstance(report, dict | list) else report.model_dump(mode="json")
        print_result(json.dumps(current_redactor().redact_json(value)))
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
            yield from textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False)


def format_component(value: float | None, is_filled_in: bool) -> str:
    """Format the value of a component, with an asterisk if the failure rule filled it in; a dash if none counts."""
    return f"{'*' * is_filled_in}{format_number(value)}"


def format_counts(judged: int, gated: Mapping[str, int], abstained: int, failed: int, not_applicable: int) -> str:
    """Format the numbers of verdicts as summands; scores set by a gate (`gated`) are not judged."""
    by_gate = "".join(f" + {count} set by {name}" for name, count in sorted(gated.items()))
    return f"{judged} judged{by_gate} + {abstained} abstained + {failed} failed + {not_applicable} not applicable"


def format_table(header: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1, digits: int = 4) -> list[str]:
    """Return aligned lines; the first `left` columns are left-aligned, the others, numbers, right-aligned.

    Floats have `digits` decimals, and None is a dash. Columns that do not fit on the terminal follow below, after the
    first `left` columns once more.
    """
    cells = (
        [format_number(cell, digits) if cell is None or isinstance(cell, float) else str(cell) for cell in row]
        for row in rows
    )
    return list(_table_lines([_visible_cells(column) for column in zip(header, *cells, strict=True)], left))


def _table_lines(columns: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    widths = fit_widths(list(map(_width, columns)), left, terminal_width())
    head, *body = _align(columns[: len(widths)], widths, left)
    yield from (head, "  ".join("─" * width for width in widths), *body)
    if rest := columns[len(widths) :]:
        yield ""
        yield from _table_lines([*columns[:left], *rest], left)


def terminal_width() -> int | None:
    """Return the number of cells in a line of the terminal, 100 if it has no size; None for a file or a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def fit_widths(widths: Sequence[int], left: int, available: int | None) -> list[int]:
    """Return the widths of the columns that fit into a line of `available` cells; None is no limit.

    The widest of the first `left` columns, texts, are shortened to 20 cells. Then columns are removed from the right,
    but not the first after the texts, and at last the texts are shortened to 4 cells.
    """
    fitted = list(widths)
    while available is not None and sum(fitted) + 2 * (len(fitted) - 1) > available:
        widest = max(fitted[:left], default=0)
        has_one_number = len(fitted) <= left + 1
        if widest > 20 or (has_one_number and widest > 4):
            fitted[fitted.index(widest)] -= 1
        elif has_one_number:
            break
        else:
            fitted.pop()
    return fitted


def omission_line(total: int, most: int | None) -> list[str]:
    """Return a line that counts the entries after the first `most`, if there are more."""
    return [f"... and {total - most} more (--json)"] if most is not None and total > most else []


def _visible_cells(cells: Sequence[str]) -> Sequence[str]:
    text = "".join(cells)
    if text.isascii() and text.isprintable():  # one check for the whole column
        return cells
    return list(map(escape_line, cells))


def _width(cells: Sequence[str]) -> int:
    return max(map(_length_function(cells), cells))


def _length_function(cells: Sequence[str]) -> Callable[[str], int]:
    return len if "".join(cells).isascii() else cell_len


def _align(columns: Sequence[Sequence[str]], widths: Sequence[int], left: int) -> Iterator[str]:
    """Return a line for each row; the first `left` columns are aligned to the left, the others to the right."""
    padded = []
    for place, (cells, width) in enumerate(zip(columns, widths, strict=True)):
        length = _length_function(cells)
        cells = [cell if length(cell) <= width else _cut_middle(cell, width) for cell in cells]
        gaps = (" " * (width - length(cell)) for cell in cells)
        padded.append([cell + gap if place < left else gap + cell for cell, gap in zip(cells, gaps, strict=True)])
    return ("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def _cut_middle(text: str, width: int) -> str:
    """Return both ends of a text, in this many cells: the end of an id often says more than its beginning."""
    end = (width - 1) // 2
    return f"{set_cell_size(text, width - 1 - end)}…{set_cell_size(text[::-1], end)[::-1]}"
