"""Tables as tasks: a row is a task with a response in each response column, or one of several rows of a task.

A table is a CSV, JSON, JSON lines, Parquet or Excel file. It is read once, row by row; its tasks and responses
are kept as JSON lines in temporary files.
"""

import re
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

from pydantic import Field, model_validator
from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import MAX_INT_BITS, Problem, describe_value, format_path, quote, validate
from jurygraph.schema import FrozenModel, ResponseLine, Task, digest_of
from jurygraph.schema.frozen_model import Id, require_unique
from jurygraph.sources.files import FileDigest, TextFile, TextLine, file_state, require_temporary_space
from jurygraph.sources.table_rows import (
    Row,
    is_csv,
    is_spreadsheet,
    missing_column_error,
    read_rows,
    sha256_of,
)

M = TypeVar("M", bound=FrozenModel)
Cells = Mapping[str | None, Any]

_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?", re.ASCII)
_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx")


class TableColumns(FrozenModel):
    """The columns of a table that make tasks and responses. All others become labels of the responses.

    With several `response` columns, each is an agent of that name. Rows with the same value in `group_by` are one task.
    """

    prompt: Id
    response: tuple[Id, ...] = Field(min_length=1)
    reference: Id | None = None
    rubric: Id | None = None
    id: Id | None = None
    group_by: Id | None = None
    agent: Id | None = None

    @model_validator(mode="after")
    def _require_one_agent_for_each_response(self) -> Self:
        require_unique("response", "response[{}]", self.response, "a column of its own")
        if self.prompt in self.response:
            raise ValueError(f"`response` is {quote(self.prompt)}, the column of prompts; name another column")
        if self.agent is not None and len(self.response) > 1:
            raise ValueError("`agent` names who wrote the one response of a row, and there are several; leave it out")
        return self

    @property
    def by_role(self) -> Iterator[tuple[str, str]]:
        """Yield the role and the name of every column; a role may have several."""
        for role in type(self).model_fields:
            names = getattr(self, role)
            for name in names if isinstance(names, tuple) else filter(None, [names]):
                yield role, name

    @property
    def shared(self) -> list[str]:
        """The columns whose cells all rows of a task share; none without `group_by`, where each row is a task."""
        columns = () if self.group_by is None else (self.prompt, self.reference, self.rubric)
        return [column for column in columns if column is not None]


def is_table(path: str | Path) -> bool:
    """Return True for a file that is a table by its name."""
    return str(path).lower().endswith(_SUFFIXES)


class _TableLines(TextFile):
    """JSON lines in a temporary file, each numbered like the row of the table from which it was made."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed like every `TextFile`
        self._numbers = array("Q")

    def append(self, number: int, entry: FrozenModel) -> None:
        """Add the line of a row."""
        self._file.write(entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self._numbers.append(number)

    def finish(self, digest: FileDigest, unit: str) -> None:
        """End writing; name and digest are those of the table, and messages count its lines or rows, the `unit`."""
        self.name = digest.name
        self.file_digest = digest
        self.unit = unit
        self._file.flush()
        self._state = file_state(self._file)

    def lines(self) -> Iterator[TextLine]:
        """Yield every line with the number of its row."""
        for line, number in zip(super().lines(), self._numbers, strict=True):
            yield line._replace(number=number)


@contextmanager
def open_table(path: str | Path, columns: TableColumns) -> Iterator[tuple[TextFile, TextFile]]:
    """Yield the tasks and the responses of a table as lines of two files, open until the end of the context.

    An empty cell of a response column is an empty response. Raises `InputError` naming the file, the line and the
    column: for a missing column, another empty cell, a cell that is not text, a repeated id, and for rows of one task
    whose prompt or reference differ.
    """
    if str(path) == "-":
        raise InputError("standard input: a table is read from a file; name one, or pipe in tasks as JSONL")
    path = Path(path)
    with ExitStack() as files:
        with require_temporary_space():
            tasks, responses = (files.enter_context(closing(_TableLines())) for _ in range(2))
            before = _state(path)
            unit = _write_rows(path, columns, tasks, responses)
            digest = FileDigest(name=path.name, sha256=sha256_of(path))
            if _state(path) != before:
                raise InputError(f"{path}: changed while it was read; leave it as it is and score again")
            for file in (tasks, responses):
                file.finish(digest, unit)
        yield tasks, responses


def _state(path: Path) -> tuple[int, int] | None:
    """Return values that change when the table is written; None without a file."""
    if not path.exists():
        return None
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _write_rows(path: Path, columns: TableColumns, tasks: _TableLines, responses: _TableLines) -> str:
    """Write the tasks and responses of all rows; return "line" or "row", in which they are counted."""
    unit = "row"
    count = 0
    ids: dict[str, int] = {}
    groups: dict[str, _FirstRow] = {}
    has_texts_only = is_csv(path)
    is_text_as_number = is_spreadsheet(path)
    for count, (place, values) in enumerate(read_rows(path), start=1):
        word, _, line = place.rpartition(" ")
        unit, number = (word, int(line)) if word else ("row", count)
        cells = _read_cells(path, place, values, columns, is_text_as_number)
        location = f"{path}, {place}"
        row_id = cells[columns.id] or f"row-{count}"
        if ids.setdefault(row_id, number) != number:
            problem = f"is {quote(row_id)}, as in {unit} {ids[row_id]}"
            _refuse(location, columns.id, problem, "give each row an id of its own")
        task = _to_task(location, row_id, cells, columns)
        own = _FirstRow(number, task.id, {name: digest_of(cells[name]) for name in columns.shared})
        first = own if columns.group_by is None else groups.setdefault(digest_of(cells[columns.group_by]), own)
        for column, digest in own.cells.items():
            if digest != first.cells[column]:
                problem = f"is not that of {unit} {first.number}, which is the same task by --group-by"
                _refuse(location, column, problem, "write the same, or make them two tasks")
        if first.number == number:
            tasks.append(number, task)
        labels = {column: value for column, value in values.items() if column not in cells}
        if has_texts_only:
            labels = {column: _to_label(text) for column, text in labels.items()}
        for response in _to_responses(location, row_id, first.task, cells, labels, columns):
            responses.append(number, response)
    if not count:
        raise InputError(f"{path}: has no rows; name a table with one row at least")
    return unit


class _FirstRow(NamedTuple):
    """The number of the first row of a task, the id of the task, and the digests of the cells that its rows share."""

    number: int
    task: str
    cells: Mapping[str, str]


def _read_cells(path: Path, place: str, values: Row, columns: TableColumns, is_text_as_number: bool) -> Cells:
    """Return the cells of the named columns as text, prompts and rubrics also as lists; None for no column.

    A whole number is text where it is a name or a reference, and any number is where `is_text_as_number`: a spreadsheet
    makes numbers of texts such as 42.
    """
    cells: dict[str | None, Any] = {None: None}
    for role, column in columns.by_role:
        if column not in values:
            header = (
                f"{path}, line 1" if is_csv(path) else str(path) if place.startswith("row ") else f"{path}, {place}"
            )
            raise missing_column_error(header, (column,), list(values))
        value = values[column]
        is_name = role not in ("prompt", "response") or is_text_as_number
        if is_name and type(value) is int and value.bit_length() <= MAX_INT_BITS:
            value = str(value)
        if is_text_as_number and type(value) is float:
            value = str(value)
        if role == "response" and value is None:
            value = ""
        if role != "response" and _is_empty(value):
            _refuse(f"{path}, {place}", column, "is empty", "fill it, or leave the row out")
        if not isinstance(value, str) and not (column in (columns.prompt, columns.rubric) and isinstance(value, list)):
            several = role == "response" and isinstance(value, list)
            remedy = "write text" + ", one response a row, and name their common column with --group-by" * several
            _refuse(f"{path}, {place}", column, f"is {describe_value(value)}", remedy)
        cells[column] = value
    return cells


def _is_empty(value: Any) -> bool:
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


def _to_label(text: str) -> str | int | float:
    """Return the number that a cell of a CSV file writes plainly, else its text: `007` and `1e5` may be names."""
    if not _PLAIN_NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _to_task(location: str, row_id: str, cells: Cells, columns: TableColumns) -> Task:
    """Return the task of a row: named by its group unless that is the prompt, else like the row."""
    is_named = columns.group_by not in (None, columns.prompt)
    content = {"id": cells[columns.group_by] if is_named else row_id}
    content |= {"query": cells[columns.prompt], "reference": cells[columns.reference]}
    if columns.rubric is not None:
        content["rubric"] = _to_rubric(location, columns.rubric, cells[columns.rubric])
    names = {"id": columns.group_by if is_named else columns.id, "query": columns.prompt, "rubric": columns.rubric}
    return _validate(location, Task, content, names)


def _to_rubric(location: str, column: str, cell: str | list[Any]) -> Row:
    """Return the rubric in a cell: a criterion of weight 1 in each line, or a list of criteria, also as JSON.

    A criterion is a text, or an object as in a task; those that are texts have the ids c1, c2, …
    """
    criteria: list[Any]
    if isinstance(cell, list):
        criteria = cell
    elif cell.lstrip().startswith("["):
        try:
            criteria = from_json(cell)
        except ValueError as error:
            _refuse(location, column, f"is not valid JSON ({error})", "write a list of criteria, or a criterion a line")
    else:
        criteria = [line.strip() for line in cell.splitlines() if line.strip()]
    return {"criteria": [_to_criterion(f"c{number}", one) for number, one in enumerate(criteria, start=1)]}


def _to_criterion(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return {"id": name, "text": value, "weight": 1.0}
    if isinstance(value, dict):  # in Parquet, each has the fields of all
        return {field: content for field, content in value.items() if content is not None}
    return value


def _to_responses(
    location: str, row_id: str, task: str, cells: Cells, labels: Row, columns: TableColumns
) -> Iterator[ResponseLine]:
    """Yield the responses of a row to a task; one of several response columns is the agent, and part of the id."""
    is_only = len(columns.response) == 1
    for column in columns.response:
        name, agent = (row_id, cells[columns.agent]) if is_only else (f"{row_id}/{column}", column)
        content = {"task": task, "id": name, "text": cells[column], "agent": agent, "labels": labels}
        yield _validate(location, ResponseLine, content, {"id": columns.id, "agent": columns.agent})


def _validate(location: str, model: type[M], content: Row, columns: Mapping[str, str | None]) -> M:
    """Return the content as a model. Raises `InputError` with the column of the field that is wrong."""
    entry = validate(model, content)
    if isinstance(entry, Problem):
        field, *rest = entry.path
        _refuse(location, format_path((columns.get(str(field)) or field, *rest)), entry.problem, entry.remedy)
    return entry


def _refuse(location: str, column: str | None, problem: str, remedy: str | None) -> NoReturn:
    raise InputError(f"{location}, column {column}: {Problem((), problem, remedy)}")
