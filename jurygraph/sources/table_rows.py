"""Rows of a table in a file: CSV, JSON, JSON lines, Parquet or SQLite, one after another, whatever the file's size."""

import csv
import gzip
import hashlib
import importlib
import math
import sqlite3
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.sources.complaint import described, nearest, quoted
from jurygraph.sources.files import TextFile, meant_file
from jurygraph.sources.formats import GZIP, UTF8_MARK
from jurygraph.sources.limits import LineReader, read_whole, refuse_large_ratio

Row = dict[str, Any]
_LARGEST_JSON = 256 << 20
_TOO_LARGE = "a JSON file is read whole, and this one has over 256 MB; give it as JSON lines"
_AT_ONCE = 8192
_SQLITE = b"SQLite format 3\0"
_PARQUET = b"PAR1"
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


class PlacedRow(NamedTuple):
    """A row, and where it stands: "line 7" of a text, "[7]" in a list, "row 7" elsewhere."""

    place: str
    values: Row


def read_rows(path: Path, table: str | None = None) -> Iterator[Row]:
    """The rows, by column, with values as JSON has them. `table` is one of a SQLite file.

    Raises `InputError` naming the file, and the line where it has lines.
    """
    return (row.values for row in read_placed_rows(path, table))


def read_placed_rows(path: Path, table: str | None = None) -> Iterator[PlacedRow]:
    """As `read_rows`, each row with its place; one whose values span lines has the first of them."""
    start = _start(path)
    if start.startswith(_SQLITE):
        return _sqlite(path, table)
    if table is not None:
        raise InputError(f"{path}: `table` names a table of a SQLite file, and this is none; leave it out")
    return _reader(path, start)(path)


def is_csv(path: Path) -> bool:
    """Whether a file is read as CSV, in which every value is text."""
    start = _start(path)
    return not start.startswith(_SQLITE) and _reader(path, start) is _csv


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(row: Mapping[Any, Any]) -> Row:
    """A row with values as JSON has them: no number where it is not finite, and dates and the like as text."""
    return {str(column): _plain(value) for column, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)


def _start(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is {'a folder' if path.is_dir() else 'no regular file'}; name a file")
        with path.open("rb") as file:
            return file.read(len(_SQLITE))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {meant_file(path)}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); name a file that can be read") from None


def _reader(path: Path, start: bytes) -> Callable[[Path], Iterator[PlacedRow]]:
    readers = {".csv": _csv, ".json": _json, ".jsonl": _json_lines, ".parquet": _parquet}
    if start.startswith(_PARQUET):
        return _parquet
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = next((one for one in reversed(suffixes) if one != ".gz"), "")
    if suffix not in readers:
        raise InputError(f"{path}: is no table by its name; give {', '.join(readers)} (.gz too), or a SQLite file")
    return readers[suffix]


def _csv(path: Path) -> Iterator[PlacedRow]:
    with closing(_lines(path)) as lines:
        reader = csv.reader(lines, strict=True)
        try:
            columns = next(reader, [])
            _check_columns(path, columns)
            done = reader.line_num
            for values in reader:
                if values and len(values) != len(columns):
                    wrong = f"does not have the {len(columns)} columns of the first line, but {len(values)}"
                    raise InputError(f"{path}, line {reader.line_num}: {wrong}; quote a value that holds a comma")
                if values:
                    yield PlacedRow(f"line {done + 1}", dict(zip(columns, values, strict=True)))
                done = reader.line_num
        except csv.Error as error:
            wrong = f"is not CSV ({error}); quote values with double quotes, and end lines with LF"
            raise InputError(f"{path}, line {reader.line_num}: {wrong}") from None


def _check_columns(path: Path, columns: list[str]) -> None:
    for name in columns:
        if columns.count(name) > 1 or not name:
            wrong = f"names column {quoted(name)} twice" if name else "leaves a column without a name"
            raise InputError(f"{path}, line 1: {wrong}; the first line names each column once")


def _lines(path: Path) -> Generator[str, None, None]:
    """The lines of a text, with their ends."""
    with _unpacked(path) as file:
        reader, size = LineReader(str(path), file), path.stat().st_size
        try:
            while line := reader.read():
                if isinstance(file, gzip.GzipFile):
                    refuse_large_ratio(f"{path}, line {reader.number}", size, reader.size)
                yield line.decode("utf-8-sig" if reader.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
            raise InputError(f"{path}, line {reader.number}: {wrong}") from None
        except _DAMAGED as error:
            raise _damaged(f"{path}, line {reader.number + 1}", error) from None


def _damaged(where: str, error: Exception) -> InputError:
    return InputError(f"{where}: the gzip file is cut short or damaged ({error}); copy it again")


def _unpacked(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file, to be read as what a gzip file holds."""
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def _json_lines(path: Path) -> Iterator[PlacedRow]:
    with closing(TextFile(path)) as file:
        for line in file.lines():
            place = f"line {line.number}"
            where = f"{path}, {place}"
            yield PlacedRow(place, _object(_parsed(line.text, where), where))


def _parsed(text: str | bytes | bytearray, where: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"{where}: is not valid JSON ({error}); mend it there") from None


def _object(value: Any, where: str) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"{where}: is {described(value)}; a row is an object, with a value for each column")
    return plain(value)


def _json(path: Path) -> Iterator[PlacedRow]:
    try:
        with _unpacked(path) as file:
            content = read_whole(str(path), file, _LARGEST_JSON, _TOO_LARGE)
    except _DAMAGED as error:
        raise _damaged(str(path), error) from None
    rows = _parsed(content.removeprefix(UTF8_MARK), str(path))
    if not isinstance(rows, list):
        raise InputError(f"{path}: is {described(rows)}; a table is a list of rows")
    for number, row in enumerate(rows):
        place = f"[{number}]"
        yield PlacedRow(place, _object(row, f"{path}, {place}"))


def _parquet(path: Path) -> Iterator[PlacedRow]:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install 'jurygraph[parquet]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches(_AT_ONCE) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield PlacedRow(f"row {number}", plain(row))
    except (OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}); copy it again") from None


def _sqlite(path: Path, table: str | None) -> Iterator[PlacedRow]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        try:
            chosen = _chosen(path, table, database).replace('"', '""')
            found = database.execute(f'SELECT * FROM "{chosen}"')
            columns = [column[0] for column in found.description]
            for number, row in enumerate(found, start=1):
                yield PlacedRow(f"row {number}", plain(dict(zip(columns, row, strict=True))))
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: cannot be read as SQLite ({error}); copy it again") from None


def _chosen(path: Path, table: str | None, database: sqlite3.Connection) -> str:
    """The table that is named, or the only one."""
    stated = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    tables = [str(name) for (name,) in stated]
    if table is None and len(tables) == 1:
        return tables[0]
    if table is not None and table in tables:
        return table
    known = f"there are {', '.join(tables) or 'none'}"
    if table is None:
        raise InputError(f"{path}: holds {len(tables)} tables; say which in `table`: {known}")
    raise InputError(f"{path}: has no table {quoted(table)}; {nearest(table, tables) or known}")
