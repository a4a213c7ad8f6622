"""Restrict the table files that tasks name (`facts.tables.*.file`) to one folder: tasks may be untrusted."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jurygraph.messages import Problem, quote
from jurygraph.sources.json_lines import raise_line_error

ALLOW_OPTION = "--allow-files-outside"


def folder_of_tasks(path: str | Path) -> Path:
    """Return the folder of a TASKS file; the current one for standard input and anything but a regular file."""
    file = Path(path)
    return file.parent if str(path) != "-" and file.is_file() else Path()


def check_table_files(facts: Mapping[str, Any] | None, folder: Path) -> Problem | None:
    """Return an error for the first table file that is not below a folder, with symbolic links and `..` resolved."""
    for field, file in _table_files(facts):
        root = folder.resolve()
        if not _is_below(Path(file), root):
            problem = f"is {quote(file)}, which is not below {root}"
            return Problem(field, problem, f"move the file there, or allow files elsewhere with {ALLOW_OPTION}")
    return None


def require_files_inside(name: str, line: int, facts: Mapping[str, Any] | None, folder: Path | None) -> None:
    """Raise `InputError` if the task in this line names a table file that is not below a folder."""
    problem = None if folder is None else check_table_files(facts, folder)
    if problem is not None:
        raise_line_error(name, line, problem)


def _table_files(facts: Mapping[str, Any] | None) -> Iterator[tuple[tuple[str, ...], str]]:
    tables = None if facts is None else facts.get("tables")
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        file = table.get("file") if isinstance(table, Mapping) else None
        if isinstance(file, str):
            yield ("facts", "tables", name, "file"), file


def _is_below(file: Path, root: Path) -> bool:
    try:
        return file.resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a cycle of links, or not a valid path: it cannot be opened either
        return True
