"""Read rows of a table in a file: CSV, JSON, JSON lines, Parquet or Excel, row by row, whatever its size.

The files that tasks name (`facts.tables.*.file`) are restricted to one folder: tasks may be untrusted.
"""

import csv
import hashlib
import importlib
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import Problem, describe_value, did_you_mean, quote, shorten
from jurygraph.sources.files import LONGEST_LINE, TextFile, refuse_unreadable

_MAX_JSON = 256 << 20
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


Row = dict[str, Any]
PlacedRow = tuple[str, Row]
"""The place of a row (the first "line 7" of a text, "[7]" in a list, "row 7" elsewhere), and its values by column."""


def read_rows(path: Path) -> Iterator[PlacedRow]:
    """Yield the rows with JSON values, each with its place. Raises `InputError` naming the file, and its line."""
    readers: Mapping[str, Callable[[Path], Iterator[PlacedRow]]] = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".json": _read_json,
        ".jsonl": _read_json_lines,
        ".parquet": _read_parquet,
        ".xlsx": _read_xlsx,
    }
    suffix = _suffix_of(path)
    if suffix not in readers:
        known = ".csv, .tsv, .json or .jsonl (.gz too), .parquet or .xlsx"
        raise InputError(f"{path}: has no table format in its name; give {known}")
    if path.is_fifo():  # it would be read twice
        raise InputError(f"{path}: is not a regular file; name a file")
    return readers[suffix](path)


def _suffix_of(path: Path) -> str:
    """Return the suffix that names the format of a file, which may be gzipped."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def is_spreadsheet(path: Path) -> bool:
    """Return True if a file is read as Excel's .xlsx, where a number may stand for a text."""
    return _suffix_of(path) == ".xlsx"


def is_csv(path: Path) -> bool:
    """Return True if a file is read as CSV, in which every value is text."""
    return _suffix_of(path) in (".csv", ".tsv")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def missing_column_error(location: str, columns: Sequence[str], present: Sequence[str]) -> InputError:
    """Return the error that a table lacks a column, or all of several, with the nearest of the `present` ones."""
    hints = (did_you_mean(column, present) for column in columns)
    choice = f"name one that is there: {shorten(', '.join(present), 200)}"
    guess = next(filter(None, hints), None)
    hint = choice if guess is None else f"{guess} If not, {choice}" if len(columns) > 1 else guess
    return InputError(f"{location}: has no column {' or '.join(map(quote, columns))}; {hint}")


def to_json_values(row: Mapping[Any, Any]) -> Row:
    """Convert a row to JSON values: numbers that are not finite become None, and dates and the like become text."""
    return {str(column): _to_json_value(value) for column, value in row.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return to_json_values(value)
    if isinstance(value, list | tuple):
        return [_to_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)


def _read_csv(path: Path) -> Iterator[PlacedRow]:
    csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))  # by default 128 KB, which long prompts exceed
    with closing(TextFile(path, str(path))) as file:
        lines = (line.text for line in file.all_lines())
        header = next(lines, "")
        separator = _separator_of(header)
        reader = csv.reader(chain([header], lines), strict=True, delimiter=separator)
        try:
            columns = next(reader, [])
            _check_columns(path, columns)
            last_line = reader.line_num
            for values in reader:
                if values and len(values) != len(columns):
                    problem = f"does not have the {len(columns)} columns of the first line, but {len(values)}"
                    has_more = len(values) > len(columns)
                    sign = _SEPARATORS[separator]
                    advice = f"quote a value that holds {sign}" if has_more else f"write {sign} for each empty cell"
                    raise InputError(f"{path}, line {reader.line_num}: {problem}; {advice}")
                if values:
                    yield f"line {last_line + 1}", dict(zip(columns, values, strict=True))
                last_line = reader.line_num
        except csv.Error as error:
            problem = f"is not CSV ({error}); quote values with double quotes, and end lines with LF"
            raise InputError(f"{path}, line {reader.line_num}: {problem}") from None


def _separator_of(header: str) -> str:
    """Return the first of comma, semicolon and tab that a header line has outside of quotes; a comma without any."""
    names = re.sub(r'"[^"]*"', "", header)
    return next((sign for sign in _SEPARATORS if sign in names), ",")


def _check_columns(path: Path, columns: list[str]) -> None:
    known: set[str] = set()
    for name in columns:
        if name in known or not name:
            problem = f"names column {quote(name)} twice" if name else "leaves a column without a name"
            raise InputError(f"{path}, line 1: {problem}; the first line names each column once")
        if "\0" in name:
            raise InputError(f"{path}, line 1: holds a NUL byte, as UTF-16 does; save the file as UTF-8")
        known.add(name)


def _read_json_lines(path: Path) -> Iterator[PlacedRow]:
    with closing(TextFile(path, str(path))) as file:
        for line in file.lines():
            place = f"line {line.number}"
            location = f"{path}, {place}"
            yield place, _require_object(_parse_json(line.text, location), location)


def _parse_json(text: str | bytes, location: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"{location}: is not valid JSON ({error}); fix it there") from None


def _require_object(value: Any, location: str) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"{location}: is {describe_value(value)}; a row is an object, with a value for each column")
    return to_json_values(value)


def _read_json(path: Path) -> Iterator[PlacedRow]:
    with closing(TextFile(path, str(path))) as file:
        rows = _parse_json(file.read_whole(_MAX_JSON, "give it as JSON lines"), str(path))
    if not isinstance(rows, list):
        raise InputError(f"{path}: is {describe_value(rows)}; a table is a list of rows")
    for number, row in enumerate(rows):
        place = f"[{number}]"
        yield place, _require_object(row, f"{path}, {place}")


def _read_parquet(path: Path) -> Iterator[PlacedRow]:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install 'jurygraph[parquet]'") from None
    with refuse_unreadable(path):
        opened = path.open("rb")
    try:
        with opened, parquet.ParquetFile(opened) as file:
            rows = (row for batch in file.iter_batches(8192) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield f"row {number}", to_json_values(row)
    except (OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}); copy it again") from None


def _read_xlsx(path: Path) -> Iterator[PlacedRow]:
    """Yield the rows of the first sheet: its first row has the names of the columns, and empty rows are left out."""
    try:
        openpyxl: Any = importlib.import_module("openpyxl")
    except ImportError:
        raise InputError(f"{path}: reading Excel needs openpyxl: pip install 'jurygraph[xlsx]'") from None
    with refuse_unreadable(path):
        file = path.open("rb")
    with file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: cannot be read as Excel ({error}); save it again as .xlsx") from None
        rows = book.worksheets[0].iter_rows(values_only=True)
        columns = ["" if name is None else str(name) for name in next(rows, ())]
        while columns and not columns[-1]:
            columns.pop()
        _check_columns(path, columns)
        for number, values in enumerate(rows, start=2):
            cells = list(values)[: len(columns)]
            if any(value is not None for value in cells):
                filled = cells + [None] * (len(columns) - len(cells))
                yield f"row {number}", to_json_values(dict(zip(columns, filled, strict=True)))


def folder_of_tasks(path: str | Path) -> Path:
    """Return the folder of a TASKS file; the current one for standard input and anything but a regular file."""
    file = Path(path)
    return file.parent if str(path) != "-" and file.is_file() else Path()


def check_table_files(facts: Mapping[str, Any] | None, folder: Path | None) -> Problem | None:
    """Return an error for the first table file that is not below a folder, with symbolic links and `..` resolved.

    Without a folder, files may be anywhere.
    """
    if facts is None or folder is None:
        return None
    tables = facts.get("tables")
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        file = table.get("file") if isinstance(table, Mapping) else None
        if isinstance(file, str) and not _is_below(file, root := folder.resolve()):
            problem = f"is {quote(file)}, which is not below {root}"
            hint = "move the file there, or allow files elsewhere with --allow-files-outside"
            return Problem(("facts", "tables", name, "file"), problem, hint)
    return None


def _is_below(file: str, root: Path) -> bool:
    try:
        return Path(file).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a cycle of links, or not a valid path: it cannot be opened either
        return True
