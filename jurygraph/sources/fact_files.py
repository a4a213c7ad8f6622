"""Keep the table files that tasks name (`facts.tables.*.file`) below one folder: tasks may come from a stranger."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jurygraph.sources.complaint import Complaint, quoted
from jurygraph.sources.json_lines import refuse

ALLOW = "--allow-files-outside"


def folder_of_tasks(path: str | Path) -> Path:
    """The folder of a TASKS file; the current one for standard input and what else is no regular file."""
    file = Path(path)
    return file.parent if str(path) != "-" and file.is_file() else Path()


def file_outside(facts: Mapping[str, Any] | None, folder: Path) -> Complaint | None:
    """What is wrong with the first table file that is not below a folder, symbolic links and `..` resolved."""
    for field, file in _files(facts):
        home = folder.resolve()
        if not _is_below(Path(file), home):
            wrong = f"is {quoted(file)}, which is not below {home}"
            return Complaint(field, wrong, f"move the file there, or allow files elsewhere with {ALLOW}")
    return None


def refuse_file_outside(name: str, line: int, facts: Mapping[str, Any] | None, folder: Path | None) -> None:
    """Raise `InputError` where the task in this line of a file names a table file that is not below a folder."""
    wrong = None if folder is None else file_outside(facts, folder)
    if wrong is not None:
        refuse(name, line, wrong)


def _files(facts: Mapping[str, Any] | None) -> Iterator[tuple[tuple[str, ...], str]]:
    tables = None if facts is None else facts.get("tables")
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        file = table.get("file") if isinstance(table, Mapping) else None
        if isinstance(file, str):
            yield ("facts", "tables", name, "file"), file


def _is_below(file: Path, home: Path) -> bool:
    try:
        return file.resolve().is_relative_to(home)
    except (OSError, RuntimeError, ValueError):  # a circle of links, or no path: it cannot be opened either
        return True
