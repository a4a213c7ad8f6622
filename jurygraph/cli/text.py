"""Lines for a terminal. Text that others wrote is shown, never obeyed."""

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import typer
from rich.cells import cell_len

from jurygraph.cli.boundary import Exit
from jurygraph.safety.unseen import UNSEEN


def visible(text: str, limit: int | None = None) -> str:
    """The text in one line, with control and other unseen characters written as escapes."""
    told = text if limit is None else short(text, limit)
    return re.sub(f"[\x00-\x1f{UNSEEN}]", lambda found: json.dumps(found[0])[1:-1], told)


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


def _for_terminal(line: str | bytes) -> str:
    return visible_lines(line if isinstance(line, str) else line.decode(errors="backslashreplace"))


def say(line: str) -> None:
    """A line for the person at the terminal, on standard error."""
    typer.echo(visible(line), err=True)


def out_json(value: Any) -> None:
    """The result as one line of JSON."""
    out(json.dumps(value))


def number(value: float | None) -> str:
    """Four decimals, or a dash where there is no number."""
    return "-" if value is None else f"{round(value, 4) + 0.0:.4f}"


def plain(value: float | None) -> str:
    """As in a sentence: four decimals at most; never minus zero."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines; the first `left` columns to the left, the others, numbers, to the right."""
    cells = [[visible(cell, 160) for cell in row] for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(_padded(c, w, i < left) for i, (c, w) in enumerate(zip(r, widths, strict=True))) for r in cells]
    return [line.rstrip() for line in (lines[0], "  ".join("─" * width for width in widths), *lines[1:])]


def _padded(cell: str, width: int, left: bool) -> str:
    space = " " * (width - cell_len(cell))
    return cell + space if left else space + cell
