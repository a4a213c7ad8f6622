"""Rows of tables in files: CSV, JSON, JSON lines, Parquet or Excel, one by one, whatever their size."""

import csv
import importlib
import logging
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import Problem, describe_value, did_you_mean, quote, shorten
from jurygraph.schema.frozen_model import StrPath, decode_json_strictly
from jurygraph.sources.files import (
    MAX_LINE_BYTES,
    TextFile,
    explain_unreadable_file,
    raise_field_error,
    suggest_chat_of_messages,
)

_LOGGER = logging.getLogger(__name__)

_MAX_JSON_BYTES = 256 << 20
_MAX_SHEET_ROWS = 1_048_576  # as in Excel
_MAX_SHEET_COLUMNS = 16_384
_CELL_VALUE_PATTERN = re.compile(
    r"[-+]?\d+([.,]\d+)?|true|false|yes|no|(un)?met|(in)?correct", re.IGNORECASE
)
_HEADING_FILLER_PATTERN = re.compile(r"^(input|answer)\.|[\s_-]")
"""What headings of one column differ in from file to file; Mechanical Turk writes the beginning."""
_DELIMITER_DESCRIPTIONS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


R = TypeVar("R")

TableRow = dict[str, Any]
RowWithPlace = tuple[str, TableRow]
"""The place of a row (the first "line 7" of a text, "[7]" in a list, "row 7" elsewhere), and its values by column."""


def read_rows(path: Path) -> Iterator[RowWithPlace]:
    """Yield the rows with JSON values, each with its place. Raises `InputError` naming the file, and its line."""
    reader_by_suffix = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".json": _read_json,
        ".jsonl": _read_json_lines,
        ".parquet": _read_parquet,
        ".xlsx": _read_xlsx,
    }
    suffix = table_suffix(path)
    if suffix not in reader_by_suffix:
        with explain_unreadable_file(path):
            path.open("rb").close()  # a folder, or a name without a file, has no format either
        raise InputError(
            f"{path}: has no table format in its name; give "
            ".csv, .tsv, .json or .jsonl (.gz too), .parquet or .xlsx"
        )
    if path.is_fifo():  # it would be read twice
        raise InputError(f"{path}: is not a regular file; name a file")
    return _strip_column_names(path, reader_by_suffix[suffix](path))


def _strip_column_names(path: Path, rows: Iterable[RowWithPlace]) -> Iterator[RowWithPlace]:
    """Yield the rows without the blanks around names of columns, which nobody sees, and which options lose."""
    for position, row in rows:
        stripped_row = {name.strip(): value for name, value in row.items()}
        if len(stripped_row) < len(row):
            names = ", ".join(map(quote, row))
            raise InputError(
                f"{path}, {position}: two columns differ in blanks around their names alone; rename one: {names}"
            )
        yield position, stripped_row


def leave_out_copies(path: StrPath, rows: Iterable[tuple[str, R]]) -> list[tuple[str, R]]:
    """Return the rows, each with its place, that repeat no earlier one in everything, and log how many do."""
    rows = list(rows)
    kept: dict[str, tuple[str, R]] = {}
    for position, row in rows:
        kept.setdefault(repr(row), (position, row))
    warn_of_copies(path, len(rows) - len(kept))
    return list(kept.values())


def warn_of_copies(path: StrPath, count: int) -> None:
    if count:
        message = "%s: rows left out that repeat another one in everything, as if pasted twice: %d"
        _LOGGER.warning(message, path, count)


def read_first_row(path: StrPath) -> TableRow:
    """Return the first row of a table; empty if it has none."""
    return next(read_rows(Path(path)), ("", {}))[1]


def table_suffix(path: Path) -> str:
    """Return the suffix that names the format of a file, which may be gzipped."""
    lowercase_suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(lowercase_suffixes) if suffix != ".gz"), "")


def is_json_array(path: Path) -> bool:
    """Return whether a file is an array of rows in a `.json`, and not lines."""
    if table_suffix(path) != ".json":
        return False
    with TextFile(path) as file:
        first = next(file.lines(), None)
    return first is not None and first.text.lstrip().startswith("[")


def is_csv(path: Path) -> bool:
    return table_suffix(path) in (".csv", ".tsv")


def fold_heading(name: str) -> str:
    """Return what `Reply ID` and `reply_id`, also behind `Input.`, have in common."""
    return _HEADING_FILLER_PATTERN.sub("", name.casefold())


def find_column(name: str, columns: Collection[str]) -> str | None:
    """Return the column of a name, or else the only one that differs in case alone, or that `fold_heading` makes the
    same; None without one."""
    for fold in (str, str.casefold, fold_heading):
        spellings = [column for column in columns if fold(column) == fold(name)]
        if len(spellings) == 1:
            return spellings[0]
    return None


def missing_column_error(
    location: str,
    columns: Sequence[str],
    present_columns: Collection[str],
    option: str | None = None,
) -> InputError:
    """Return the error that a table lacks a column, or all of several, with the nearest of the `present_columns` ones.

    `option` is that with which a user says which column is meant.
    """
    suggestion_sentences = [did_you_mean(column, present_columns) for column in columns]
    if option == "--id-column":  # an id looks less like "item" than a text does
        ids = [name for name in present_columns if name.casefold().endswith("id")]
        suggestion_sentences[:0] = [f"did you mean {name}?" for name in ids]
    suggestion_sentence = next(filter(None, suggestion_sentences), None)
    with_option = "" if option is None else f" with {option}"
    hint = f"name one that is there{with_option}: {shorten(', '.join(present_columns), 200)}"
    if has_values(present_columns):
        hint = _no_header_hint(present_columns)
    if suggestion_sentence is not None:
        has_only_guess = len(columns) == 1 and option is None
        if_not = "" if has_only_guess else f" If not, {hint}"
        hint = f"{suggestion_sentence}{if_not}"
    names = " or ".join(map(quote, columns))
    return InputError(f"{location}: has no column {names}; {hint}")


def has_values(header: Iterable[str]) -> bool:
    """Return whether what should be names of columns looks like a row: it has a number or a decision."""
    return any(map(_CELL_VALUE_PATTERN.fullmatch, header))


def _no_header_hint(header: Iterable[str]) -> str:
    values_text = shorten(", ".join(header), 200)
    return f"the first row is read as names of columns, and has values: {values_text}; write names above it"


def row_to_json_values(row: Mapping[Any, Any]) -> TableRow:
    """Convert a row to JSON values: numbers that are not finite become None, and dates and the like become text."""
    return {str(column): _to_json_value(value) for column, value in row.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return row_to_json_values(value)
    if isinstance(value, list | tuple):
        return [_to_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)


_DELIMITER_LINE_PATTERN = re.compile(r"sep=([,;\t])\s*")
"""The first line by which a file tells Excel what separates its cells."""


class CsvLayout(NamedTuple):
    """The sign between the cells of a CSV file, and the number of the line that names its columns."""

    separator: str
    header_line: int


def read_csv_layout(path: StrPath) -> CsvLayout:
    """Return the layout of a CSV file, by its first line. Raises `InputError` for a file that cannot be read."""
    with TextFile(path, str(path)) as file:
        return _layout_of_first_line(next((line.text for line in file.iter_all_lines()), ""))


def column_names_location(path: Path, position: str) -> str:
    """Return where the columns of a row are named: in a line above, in the file's header, or in the row itself."""
    if is_csv(path):
        return f"{path}, line {read_csv_layout(path).header_line}"
    return str(path) if position.startswith("row ") else f"{path}, {position}"


def _layout_of_first_line(line: str) -> CsvLayout:
    separator_match = _DELIMITER_LINE_PATTERN.fullmatch(line)
    if separator_match is not None:
        return CsvLayout(separator_match[1], 2)
    # The first of these that the header has outside of quotes; a comma where it has none.
    names = re.sub(r'"[^"]*"', "", line)
    return CsvLayout(next((sign for sign in _DELIMITER_DESCRIPTIONS if sign in names), ","), 1)


def _read_csv(path: Path) -> Iterator[RowWithPlace]:
    """Yield the rows of a CSV file that are not empty; cells that are missing at the end of a line are None."""
    # By default 128 KB, which long prompts exceed.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    with TextFile(path, str(path)) as file:
        lines = (line.text for line in file.iter_all_lines())
        header = next(lines, "")
        separator, header_line = _layout_of_first_line(header)
        reader = csv.reader(chain([header], lines), strict=True, delimiter=separator)
        if header_line > 1:
            next(reader)
        next_row_line = header_line
        try:
            columns = next(reader, [])
            _check_column_names(path, columns, header_line)
            next_row_line = reader.line_num + 1
            row_line = 0
            for values in reader:
                row_line = next_row_line
                next_row_line = reader.line_num + 1
                if not any(value.strip() for value in values):
                    continue  # such as the last rows of a sheet
                if len(values) > len(columns):
                    problem = f"does not have the {len(columns)} columns of the first line, but {len(values)}"
                    title_hint = ", or, if the headings are here, delete the lines above"
                    raise InputError(
                        f"{path}, line {reader.line_num}: {problem}; "
                        f"quote a value that holds {_DELIMITER_DESCRIPTIONS[separator]}"
                        f"{title_hint if len(columns) == 1 else ''}"
                    )
                if values == columns and len(columns) > 1:
                    raise InputError(
                        f"{path}, line {row_line}: is the header once more; remove the line"
                    )
                missing = len(columns) - len(values)
                row = dict(zip(columns, [*values, *[None] * missing], strict=True))
                yield f"line {row_line}", row
            if not row_line and has_values(columns):
                raise InputError(f"{path}: has no rows; {_no_header_hint(columns)}")
        except csv.Error as error:
            problem = (
                f"is not CSV ({str(error).partition(' - ')[0]}); quote values with double quotes, double a quote "
                "inside one, and end lines with LF, not with CR alone (a program saves so as CSV UTF-8)"
            )
            if "unexpected end of data" in str(error):
                problem = "a quote that opens in this row is never closed; close it, or double it"
            elif reader.line_num > next_row_line:
                end = f"ends in line {reader.line_num}, with text after it"
                problem = f"a quote that opens in this row {end}; close it before, or double it"
            raise InputError(f"{path}, line {next_row_line}: {problem}") from None


def _check_column_names(path: Path, columns: list[str], line: int = 1) -> None:
    names = set()
    for name in map(str.strip, columns):
        if name in names or not name:
            problem = "leaves a column without a name"
            if name:
                problem = f"names column {quote(name)} twice"
            remedy = "the first line names each column once"
            if sum(map(bool, columns)) == 1:
                remedy = "if the line is a title, delete all lines above the headings"
            if has_values(columns):
                remedy = _no_header_hint(columns)
            raise InputError(f"{path}, line {line}: {problem}; {remedy}")
        if "\0" in name:
            raise InputError(
                f"{path}, line {line}: holds a NUL byte, as UTF-16 does; save the file as UTF-8"
            )
        names.add(name)


def _read_json_lines(path: Path) -> Iterator[RowWithPlace]:
    with TextFile(path, str(path)) as file:
        for line in file.lines():
            position = f"line {line.number}"
            location = f"{path}, {position}"
            if line.text.startswith("["):
                hint = (
                    suggest_chat_of_messages(line.text)
                    or "name the file .json, or make lines of it with `jq -c '.[]'`"
                )
                raise InputError(f"{location}: is a list, or begins one; {hint}")
            value = _parse_json_text(line.text, location)
            yield position, _require_json_object(value, location)


def _parse_json_text(text: str, location: str) -> Any:
    try:
        from_json(text)  # in which half of a surrogate pair is an error
    except ValueError as error:
        problem = f"is not valid JSON ({error}); fix it there"
        if str(error).startswith("EOF"):
            problem = "ends within its JSON: the file was cut off, or a bracket or quote is not closed; complete it"
        if "hex escape" in str(error) and _SURROGATE_ESCAPE_PATTERN.search(text):
            problem = "holds half of a surrogate pair, which is not a character; write the whole character"
        raise InputError(f"{location}: {problem}") from None
    value = decode_json_strictly(text)
    if isinstance(value, Problem):
        raise_field_error(location, value)
    return value


_SURROGATE_ESCAPE_PATTERN = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _require_json_object(value: Any, location: str) -> TableRow:
    if not isinstance(value, dict):
        raise InputError(
            f"{location}: is {describe_value(value)}; a row is an object, with a value for each column"
        )
    return value


def _read_json(path: Path) -> Iterator[RowWithPlace]:
    with TextFile(path, str(path)) as file:
        text = file.read_whole(_MAX_JSON_BYTES, "give it as JSON lines")
        rows = _parse_json_text(text, str(path))
    if not isinstance(rows, list):
        raise InputError(f"{path}: is {describe_value(rows)}; a table is a list of rows")
    for index, row in enumerate(rows):
        position = f"[{index}]"
        yield position, _require_json_object(row, f"{path}, {position}")


def _open_with_library(path: Path, form: str, module: str, extra_name: str) -> tuple[Any, BinaryIO]:
    """Return the module of an optional library, and the file that it reads, open."""
    try:
        reader = importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise InputError(
            f"{path}: reading {form} needs {library}: pip install 'jurygraph[{extra_name}]'"
        ) from None
    with explain_unreadable_file(path):
        return reader, path.open("rb")


def _read_parquet(path: Path) -> Iterator[RowWithPlace]:
    parquet_module, opened_file = _open_with_library(path, "Parquet", "pyarrow.parquet", "parquet")
    try:
        with opened_file, parquet_module.ParquetFile(opened_file) as file:
            batches = (batch.to_pylist() for batch in file.iter_batches(8192))
            for number, row in enumerate(chain.from_iterable(batches), start=1):
                yield f"row {number}", row_to_json_values(row)
    except (OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}); copy it again") from None


def _read_xlsx(path: Path) -> Iterator[RowWithPlace]:
    """Yield the rows of the first sheet: its first row has the names of the columns, and empty rows are left out."""
    openpyxl, file = _open_with_library(path, "Excel", "openpyxl", "xlsx")
    with file:
        try:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            if len(workbook.sheetnames) > 1:
                _LOGGER.warning(
                    "%s: of the sheets %s the first is read; move another one first, or save it as CSV",
                    path,
                    workbook.sheetnames,
                )
            values = workbook.worksheets[0]
            formula_sheet = openpyxl.load_workbook(file, read_only=True).worksheets[0]
            yield from _read_sheet_rows(path, values, formula_sheet)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - openpyxl raises anything over a damaged file
            detail = shorten(f"{type(error).__name__}: {error}")
            raise InputError(
                f"{path}: cannot be read as Excel ({detail}); save it again as .xlsx, or name CSV .csv"
            ) from None


def _read_sheet_rows(path: Path, sheet: Any, formula_sheet: Any) -> Iterator[RowWithPlace]:
    """Yield the rows of a sheet; `formula_sheet` is the same one with formulas instead of what they gave."""
    header = next(sheet.iter_rows(max_row=1, max_col=_MAX_SHEET_COLUMNS, values_only=True), ())
    columns = ["" if name is None else str(name) for name in header]
    while columns and not columns[-1]:
        columns.pop()
    if not columns:
        return
    _check_column_names(path, columns)
    # openpyxl makes an empty row for each number that is left out: bounded, or a wrong number would never end.
    bounds = {"min_row": 2, "max_row": _MAX_SHEET_ROWS, "max_col": len(columns)}
    rows = sheet.iter_rows(**bounds, values_only=True)
    unevaluated_rows = formula_sheet.iter_rows(**bounds, values_only=True)
    for number, (values, contents) in enumerate(zip(rows, unevaluated_rows, strict=True), start=2):
        for column, value, content in zip(columns, values, contents, strict=True):
            # A program that writes sheets does not compute them: the cell is no empty answer.
            if value is None and content is not None:
                cell = f"{path}, sheet {quote(sheet.title)}, row {number}, column {quote(column)}"
                raise InputError(
                    f"{cell}: has a formula without a computed value; "
                    "open the file in a spreadsheet and save it"
                )
        if any(value is not None for value in values):
            yield f"row {number}", row_to_json_values(dict(zip(columns, values, strict=True)))
