"""Rows after the published schemas, made for the tests: none is copied from a benchmark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jurygraph.interchange.readers import READERS
from jurygraph.interchange.rows import ImportResult
from jurygraph.schema import TaskLine

Row = dict[str, Any]


def _read_rows(form: str) -> list[Row]:
    lines = (
        (Path(__file__).parent / "rows" / f"{form}.jsonl").read_text(encoding="utf-8").splitlines()
    )
    return [json.loads(line) for line in lines]


ROWS: Mapping[str, list[Row]] = {form: _read_rows(form) for form in READERS}
HEALTHBENCH = ROWS["healthbench"]
PLAWBENCH = ROWS["plawbench"]
WRITINGBENCH = ROWS["writingbench"]
REWARDBENCH = ROWS["rewardbench"]
JUDGEBENCH = ROWS["judgebench"]
GROUPTRAVELBENCH = ROWS["grouptravelbench"]


def write_rows(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def import_rows(form: str, path: Path) -> list[ImportResult]:
    return list(READERS[form](path))


def tasks(form: str, path: Path, *rows: Row) -> list[TaskLine]:
    """The tasks that rows of a format make, of which none may be left out."""
    made = [one.task for one in import_rows(form, write_rows(path, *rows))]
    assert None not in made
    return [one for one in made if one is not None]


def notes_of(form: str, path: Path, *rows: Row) -> list[tuple[str, str]]:
    """Return the notes about rows of a format."""
    return [tuple(note) for one in import_rows(form, write_rows(path, *rows)) for note in one.notes]
