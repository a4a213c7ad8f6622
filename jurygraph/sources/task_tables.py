"""Tables in files, row by row: CSV, JSON, JSON lines, Parquet or Excel, whatever their size; and tables as tasks.

The files that tasks name (`facts.tables.*.file`) are restricted to one folder: tasks may be untrusted. As tasks, a row
is a task with a response in each response column, or one of several rows of a task. Such a table is read once, row by
row; its tasks and responses are kept as JSON lines in temporary files."""

import csv
import importlib
import math
import os
import re
import tempfile
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn, Self, TypeVar

from pydantic import Field, model_validator
from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import (
    MAX_INT_BITS,
    Problem,
    describe_value,
    did_you_mean,
    format_field_path,
    join_names,
    nearest_name,
    quote,
    shell_quote,
    shorten,
    validate,
)
from jurygraph.schema import FrozenModel, ResponseLine, Task, digest_of
from jurygraph.schema.conversation import OMITTED_IF_NONE, SplitConversation, split_conversation
from jurygraph.schema.frozen_model import (
    Count,
    Id,
    JsonFields,
    JsonMapping,
    StrPath,
    require_unique_ids,
)
from jurygraph.schema.task import Messages, read_rubric_fields, split_criteria
from jurygraph.sources.files import (
    MAX_LINE_BYTES,
    FileDigest,
    TextFile,
    TextLine,
    explain_full_temp_disk,
    explain_unreadable_file,
    file_change_stamp,
    sha256_of_file,
)

_MAX_JSON_BYTES = 256 << 20
_MAX_SHEET_ROWS = 1_048_576  # as in Excel
_MAX_SHEET_COLUMNS = 16_384
_CELL_VALUE_PATTERN = re.compile(
    r"[-+]?\d+([.,]\d+)?|true|false|yes|no|(un)?met|(in)?correct", re.IGNORECASE
)
_DELIMITER_DESCRIPTIONS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


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
    suffix = _suffix_of(path)
    if suffix not in reader_by_suffix:
        with explain_unreadable_file(path):
            path.open("rb").close()  # a folder, or a name without a file, has no format either
        raise InputError(
            f"{path}: has no table format in its name; give "
            ".csv, .tsv, .json or .jsonl (.gz too), .parquet or .xlsx"
        )
    if path.is_fifo():  # it would be read twice
        raise InputError(f"{path}: is not a regular file; name a file")
    return reader_by_suffix[suffix](path)


def read_first_row(path: StrPath) -> TableRow:
    """Return the first row of a table; empty if it has none."""
    return next(read_rows(Path(path)), ("", {}))[1]


def _suffix_of(path: Path) -> str:
    """Return the suffix that names the format of a file, which may be gzipped."""
    lowercase_suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(lowercase_suffixes) if suffix != ".gz"), "")


def is_csv(path: Path) -> bool:
    return _suffix_of(path) in (".csv", ".tsv")


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
    columns_text = shorten(", ".join(present_columns), 200)
    hint = f"name one that is there: {columns_text}"
    if option is not None:
        hint = f"name one that is there with {option}: {columns_text}"
    if has_values(present_columns):
        hint = _no_header_hint(columns_text)
    if suggestion_sentence is not None:
        should_show_guess_only = len(columns) == 1 and option is None
        hint = (
            suggestion_sentence
            if should_show_guess_only
            else f"{suggestion_sentence} If not, {hint}"
        )
    names = " or ".join(map(quote, columns))
    return InputError(f"{location}: has no column {names}; {hint}")


def has_values(header: Iterable[str]) -> bool:
    """Return whether what should be names of columns looks like a row: it has a number or a decision."""
    return any(map(_CELL_VALUE_PATTERN.fullmatch, header))


def _no_header_hint(values_text: str) -> str:
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
    with closing(TextFile(path, str(path))) as file:
        return _layout_of_first_line(next((line.text for line in file.iter_all_lines()), ""))


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
    with closing(TextFile(path, str(path))) as file:
        lines = (line.text for line in file.iter_all_lines())
        header = next(lines, "")
        separator, header_line = _layout_of_first_line(header)
        reader = csv.reader(chain([header], lines), strict=True, delimiter=separator)
        if header_line > 1:
            next(reader)
        last_line_number = reader.line_num
        try:
            columns = next(reader, [])
            _check_column_names(path, columns, header_line)
            last_line_number = reader.line_num
            for values in reader:
                if not any(value.strip() for value in values):
                    last_line_number = reader.line_num
                    continue  # such as the last rows of a sheet
                if len(values) > len(columns):
                    problem = f"does not have the {len(columns)} columns of the first line, but {len(values)}"
                    raise InputError(
                        f"{path}, line {reader.line_num}: {problem}; "
                        f"quote a value that holds {_DELIMITER_DESCRIPTIONS[separator]}"
                    )
                if values == columns and len(columns) > 1:
                    location = f"{path}, line {last_line_number + 1}"
                    raise InputError(f"{location}: is the header once more; remove the line")
                missing = len(columns) - len(values)
                row = dict(zip(columns, [*values, *[None] * missing], strict=True))
                yield f"line {last_line_number + 1}", row
                last_line_number = reader.line_num
        except csv.Error as error:
            line = reader.line_num
            problem = (
                f"is not CSV ({error}); quote values with double quotes, and end lines with LF"
            )
            if "unexpected end of data" in str(error):
                problem = "a quote that opens in this row is never closed; close it, or double it"
                line = last_line_number + 1
            elif line > last_line_number + 1:
                end = f"ends in line {line}, with text after it"
                problem = f"a quote that opens in this row {end}; close it before, or double it"
                line = last_line_number + 1
            raise InputError(f"{path}, line {line}: {problem}") from None


def _check_column_names(path: Path, columns: list[str], line: int = 1) -> None:
    names = set()
    for name in columns:
        if name in names or not name:
            problem = "leaves a column without a name"
            if name:
                problem = f"names column {quote(name)} twice"
            remedy = "the first line names each column once"
            if has_values(columns):
                remedy = _no_header_hint(shorten(", ".join(columns), 200))
            raise InputError(f"{path}, line {line}: {problem}; {remedy}")
        if "\0" in name:
            raise InputError(
                f"{path}, line {line}: holds a NUL byte, as UTF-16 does; save the file as UTF-8"
            )
        names.add(name)


def _read_json_lines(path: Path) -> Iterator[RowWithPlace]:
    with closing(TextFile(path, str(path))) as file:
        for line in file.lines():
            position = f"line {line.number}"
            location = f"{path}, {position}"
            if line.text.startswith("["):
                raise InputError(
                    f"{location}: is a list, or begins one; "
                    "name the file .json, or make lines of it with `jq -c '.[]'`"
                )
            value = _parse_json_text(line.text, location)
            yield position, _require_json_object(value, location)


def _parse_json_text(text: str | bytes, location: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"{location}: {_explain_invalid_json(text, error)}") from None


_NAN_OR_INFINITY_PATTERN = re.compile(r"[:,\[]\s*(-?(?:NaN|Infinity))\b")
_SURROGATE_ESCAPE_PATTERN = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _explain_invalid_json(text: str | bytes, error: ValueError) -> str:
    """Return what is wrong, in words for what programs write that is no JSON."""
    decoded_text = text.decode(errors="replace") if isinstance(text, bytes) else text
    number = _NAN_OR_INFINITY_PATTERN.search(decoded_text)
    if "expected value" in str(error) and number is not None:
        return f"holds {number[1]}, which is no number in JSON; write null, or leave it out"
    if "hex escape" in str(error) and _SURROGATE_ESCAPE_PATTERN.search(decoded_text):
        return "holds half of a surrogate pair, which is not a character; write the whole character"
    return f"is not valid JSON ({error}); fix it there"


def _require_json_object(value: Any, location: str) -> TableRow:
    if not isinstance(value, dict):
        raise InputError(
            f"{location}: is {describe_value(value)}; a row is an object, with a value for each column"
        )
    return row_to_json_values(value)


def _read_json(path: Path) -> Iterator[RowWithPlace]:
    with closing(TextFile(path, str(path))) as file:
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
            values = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets[0]
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


def folder_of_tasks_file(path: StrPath) -> Path:
    """Return the folder of a TASKS file; the current one for standard input and anything but a regular file."""
    file = Path(path)
    return file.parent if str(path) != "-" and file.is_file() else Path()


def locate_table_files(facts: JsonMapping | None, folder: Path) -> JsonFields | None:
    """Return facts with absolute names for the table files that are found from `folder`, that of TASKS or a config.

    A name that leads to no file from there, or to the same one from the current folder, stays as stored runs have it.
    None if no name changes.
    """
    tables_with_absolute_files = {}
    for name, table in iter_fact_tables(facts):
        file = table.get("file")
        if not isinstance(file, str) or not os.path.isfile(folder / file):
            continue
        path = os.path.realpath(folder / file)
        if path != os.path.realpath(file):
            tables_with_absolute_files[name] = {**table, "file": path}
    if facts is None or not tables_with_absolute_files:
        return None
    return {**facts, "tables": {**facts["tables"], **tables_with_absolute_files}}


def iter_fact_tables(facts: JsonMapping | None) -> Iterator[tuple[str, JsonMapping]]:
    """Yield the tables of facts by name; what is no mapping is none."""
    tables = (facts or {}).get("tables")
    if isinstance(tables, Mapping):
        for name, table in tables.items():
            if isinstance(table, Mapping):
                yield name, table


def find_outside_table_error(facts: JsonMapping | None, folder: Path | None) -> Problem | None:
    """Return an error for the first table file that is not below a folder, with symbolic links and `..` resolved.

    Without a folder, files may be anywhere.
    """
    if folder is None:
        return None
    for name, table in iter_fact_tables(facts):
        file = table.get("file")
        if not isinstance(file, str):
            continue
        # Only here: every task is looked at, and few name files.
        root = folder.resolve()
        if not _is_below_folder(file, root):
            problem = f"is {quote(file)}, which is not below {root}"
            is_missing = not (os.path.isabs(file) or os.path.exists(file))
            if is_missing and root != Path.cwd():
                problem = f"is {quote(file)}, which is neither in {root} nor in {Path.cwd()}"
            return Problem(
                ("facts", "tables", name, "file"),
                problem,
                "move the file there, or allow files elsewhere with --allow-files-outside",
            )
    return None


def _is_below_folder(file: str, root: Path) -> bool:
    try:
        return Path(file).resolve().is_relative_to(root)
    # A cycle of links, or not a valid path: it cannot be opened either.
    except (OSError, RuntimeError, ValueError):
        return True


M = TypeVar("M", bound=FrozenModel)
RowCells = Mapping[str | None, Any]

_PLAIN_NUMBER_PATTERN = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?", re.ASCII)
_TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx")


_TASK_COLUMN_ROLES = ("tools", "reference_actions")
"""Columns that a table of messages is read with, as JSON, if it has them."""
_OPTIONAL_COLUMN_ROLES = ("response_from", *_TASK_COLUMN_ROLES, "system")
"""What a row need not have."""
_SHARED_COLUMN_ROLES = ("prompt", "messages", "reference", "rubric", "context", *_TASK_COLUMN_ROLES)
"""What all rows of a task have alike."""


class TableColumns(FrozenModel):
    """The columns of a table that make tasks and responses. All others become labels of the responses.

    With several `response` columns, each is an agent of that name. Rows with the same value in `group_by` are one task.
    Instead of prompts and responses, a column may have the `messages` of conversations: the response is what follows
    the last message of a user, or begins with the message of index `response_from`, or with the first of an assistant
    (`first-reply`). A row need not have the `tools` and the `reference_actions` of its task, nor a `system` message
    outside the others, as Anthropic's form has it. `workspace` is the column of the folders or archives with a
    response's files.
    """

    prompt: Id | None = None
    response: tuple[Id, ...] = ()
    reference: Id | None = None
    rubric: Id | None = None
    id: Id | None = None
    group_by: Id | None = None
    agent: Id | None = None
    messages: Id | None = OMITTED_IF_NONE
    context: Id | None = OMITTED_IF_NONE
    response_from: Count | Literal["first-reply"] | None = OMITTED_IF_NONE
    tools: Id | None = OMITTED_IF_NONE
    reference_actions: Id | None = OMITTED_IF_NONE
    system: Id | None = OMITTED_IF_NONE
    workspace: Id | None = OMITTED_IF_NONE

    @model_validator(mode="after")
    def _require_prompts_and_responses(self) -> Self:
        if self.messages is None:
            for role in ("prompt", "response"):
                if not getattr(self, role):
                    raise ValueError(
                        f"`{role}` is missing; "
                        "a table needs a column of prompts and one of responses, or one of messages; "
                        "without one, make one, of a constant text if need be"
                    )
        elif self.prompt or self.response:
            role = "prompt" if self.prompt else "response"
            raise ValueError(f"`{role}` is named although `messages` has both; leave it out")
        if self.response_from is not None and self.messages is None:
            raise ValueError("`response_from` is a place in messages; name their column as well")
        return self

    @model_validator(mode="after")
    def _validate_response_columns(self) -> Self:
        require_unique_ids("response", "response[{}]", self.response, "a column of its own")
        if self.prompt in self.response:
            raise ValueError(
                f"`response` is {quote(self.prompt)}, the column of prompts; name another column"
            )
        if self.agent is not None and len(self.response) > 1:
            raise ValueError(
                "`agent` names who wrote the one response of a row, and there are several; leave it out"
            )
        return self

    @property
    def iter_roles_and_columns(self) -> Iterator[tuple[str, str]]:
        """Yield the role and the name of every column that a row needs; a role may have several."""
        for role in type(self).model_fields:
            names = None if role in _OPTIONAL_COLUMN_ROLES else getattr(self, role)
            if not isinstance(names, tuple):
                names = (names,)
            for name in filter(None, names):
                yield role, name

    @property
    def shared(self) -> list[str]:
        """The columns whose cells all rows of a task share; none without `group_by`, where each row is a task."""
        if self.group_by is None:
            return []
        columns = [getattr(self, role) for role in _SHARED_COLUMN_ROLES]
        return [name for name in columns if name is not None]


def is_table(path: StrPath) -> bool:
    return str(path).lower().endswith(_TABLE_SUFFIXES)


CHAT_COLUMN_ROLES = ("id", "agent", *_TASK_COLUMN_ROLES, "system")
"""Columns that a file of chats is read with, if it has them and nobody names others."""
_MESSAGES_COLUMN_NAMES = ("messages", "conversations")
"""What a file of chats calls its messages; the second is ShareGPT's."""
_MESSAGES_COLUMN_ALIASES = ("message", "conversation", "traj", "trajectory", "dialogue")
"""What other projects call the `messages` of a chat."""


def chat_file_columns(path: StrPath, messages: str | None = None) -> TableColumns | None:
    """Return the columns of a file of `{"messages": […]}` or ShareGPT's, by its first entry; None for other files.

    `messages` is the field that a user named for them. Without, raises `InputError` for a chat by another name, as a
    line of tasks would have no word for it.
    """
    if str(path) == "-" or is_table(path) or not Path(path).is_file():
        return None
    first = _read_first_object(Path(path))
    if not isinstance(first, dict) or {"query", "responses"} & first.keys():
        return None
    name = messages or next((name for name in _MESSAGES_COLUMN_NAMES if name in first), None)
    if name is None:
        _refuse_renamed_messages(f"{path}, line 1", first, may_be_named=True)
        return None
    has_id_column = isinstance(first.get("id"), str | int)
    has_agent_column = isinstance(first.get("agent"), str)
    return TableColumns(
        messages=name,
        id="id" if has_id_column else None,
        agent="agent" if has_agent_column else None,
        tools="tools",
        reference_actions="reference_actions",
        system="system",
    )


def missing_column_options_error(path: StrPath) -> InputError:
    """Return the error that nobody named the columns of a table. Raises that of a file without a first row."""
    first_row = read_first_row(path)
    hint = "name its columns with --prompt-column and --response-column, or --messages-column"
    for name in _MESSAGES_COLUMN_NAMES:
        if name in first_row:
            hint = f"add --messages-column {name}"
    if {"query", "responses"} <= first_row.keys():
        return InputError(
            f"{path}: has tasks with `query` and `responses`; leave out the options of columns"
        )
    names = f"; it has {join_names(first_row)}" if first_row else ""
    return InputError(f"{path}: is a table; {hint}{names}")


def _read_first_object(path: Path) -> Any:
    """Return the first line of a file as JSON, or in an array its first row; None if there is none, or no JSON."""
    with closing(TextFile(path)) as file:
        line = next(file.lines(), None)
    try:
        if line is not None and line.text.startswith("[") and _suffix_of(path) == ".json":
            return next(read_rows(path), (None, None))[1]
        return None if line is None else from_json(line.text)
    except (ValueError, InputError):
        return None


def _refuse_renamed_messages(location: str, row: JsonMapping, *, may_be_named: bool) -> None:
    for name, value in row.items():
        if name in _MESSAGES_COLUMN_NAMES:
            continue
        is_messages_column = name in _MESSAGES_COLUMN_ALIASES or nearest_name(
            name, _MESSAGES_COLUMN_NAMES, min_similarity=0.8
        )
        if is_messages_column and isinstance(value, list):
            option = f", or add --messages-column {shell_quote(name)}" if may_be_named else ""
            raise InputError(
                f"{location}, field {name}: is a list of messages by another name; "
                f"call it `messages`, each an object with `role` and `content`{option}"
            )


def add_columns_of_chats(path: StrPath, columns: TableColumns) -> TableColumns:
    """Return the columns that a user named, for a file of chats with the ids, the agents and the tools that it has.

    A column that was named for something else keeps that role.
    """
    if columns.messages is None:
        return columns
    chats = chat_file_columns(path, columns.messages)
    if is_table(path):
        chats = TableColumns(
            messages=columns.messages,
            tools="tools",
            reference_actions="reference_actions",
            system="system",
        )
    if chats is None:
        return columns
    assigned_columns = {column for _, column in columns.iter_roles_and_columns}
    added_chat_columns = {}
    for role in CHAT_COLUMN_ROLES:
        column = getattr(chats, role)
        if getattr(columns, role) is None and column not in assigned_columns:
            added_chat_columns[role] = column
    return columns.model_copy(update=added_chat_columns)


class _ConvertedTable(TextFile):
    """JSON lines in a temporary file, each numbered like the row of the table from which it was made."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed like every `TextFile`
        self._numbers = array("Q")

    def append(self, number: int, entry: FrozenModel) -> None:
        self._file.write(entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self._numbers.append(number)

    def finish(self, digest: FileDigest, unit: str) -> None:
        """End writing; name and digest are those of the table, and messages count its lines or rows, the `unit`."""
        self.name = digest.name
        self.file_digest = digest
        self.unit = unit
        self._file.flush()
        self._state = file_change_stamp(self._file)

    def lines(self) -> Iterator[TextLine]:
        for line, number in zip(super().lines(), self._numbers, strict=True):
            yield line._replace(number=number)


@contextmanager
def open_table_as_lines(
    path: StrPath, columns: TableColumns
) -> Iterator[tuple[TextFile, TextFile]]:
    """Yield the tasks and the responses of a table as lines of two files, open until the end of the context.

    An empty cell of a response column is an empty response. Raises `InputError` naming the file, the line and the
    column: for a missing column, another empty cell, a cell that is not text, a repeated id, and for rows of one task
    whose prompt or reference differ.
    """
    if str(path) == "-":
        raise InputError(
            "standard input: a table is read from a file; name one, or pipe in tasks as JSONL"
        )
    path = Path(path)
    with ExitStack() as files:
        with explain_full_temp_disk():
            tasks = files.enter_context(closing(_ConvertedTable()))
            responses = files.enter_context(closing(_ConvertedTable()))
            unit = _convert_table_rows(path, columns, tasks, responses)
            digest = FileDigest(name=path.name, sha256=sha256_of_file(path))
            for file in (tasks, responses):
                file.finish(digest, unit)
        yield tasks, responses


def _convert_table_rows(
    path: Path, columns: TableColumns, tasks: _ConvertedTable, responses: _ConvertedTable
) -> str:
    """Write the tasks and responses of all rows; return "line" or "row", in which they are counted."""
    unit = "row"
    count = 0
    ids: dict[str, int] = {}
    groups: dict[str, _FirstTaskRow] = {}
    first_position = None
    has_text_cells_only = is_csv(path)
    allows_numbers_as_text = _suffix_of(path) == ".xlsx"  # where a number may stand for a text
    for count, (position, values) in enumerate(read_rows(path), start=1):
        word, _, line = position.rpartition(" ")
        unit, number = (word, int(line)) if word else ("row", count)
        first_position = first_position or position
        _require_columns(path, position, columns, values, first_position)
        cells = _read_cells(path, position, values, columns, allows_numbers_as_text)
        location = f"{path}, {position}"
        row_id = cells[columns.id] or f"row-{count}"
        if ids.setdefault(row_id, number) != number:
            _raise_cell_error(
                location,
                columns.id,
                f"is {quote(row_id)}, as in {unit} {ids[row_id]}",
                _unique_id_remedy(row_id, columns),
            )
        task = _to_task(location, row_id, cells, columns)
        shared_cell_digests = {name: _digest_of_shared_cell(cells[name]) for name in columns.shared}
        first = _FirstTaskRow(number, task.id, shared_cell_digests)
        if columns.group_by is not None:
            first = groups.setdefault(digest_of(cells[columns.group_by]), first)
        for column, digest in shared_cell_digests.items():
            if digest != first.cells[column]:
                _raise_cell_error(
                    location,
                    column,
                    f"is not that of {unit} {first.number}, which is the same task by --group-by",
                    _same_task_remedy(column, columns),
                )
        if first.number == number:
            tasks.append(number, task)
        labels = {column: value for column, value in values.items() if column not in cells}
        if has_text_cells_only:
            labels = {column: _parse_label_cell(text or "") for column, text in labels.items()}
        for response in _to_responses(location, row_id, first.task, cells, labels, columns):
            responses.append(number, response)
    if not count:
        raise InputError(f"{path}: has no rows; name a table with one row at least")
    return unit


def _same_task_remedy(column: str, columns: TableColumns) -> str:
    remedy = "write the same, or make them two tasks"
    if column != columns.messages or columns.response_from is not None:
        return remedy
    return f"{remedy}; --response-from first-reply judges all that an agent replied"


def _unique_id_remedy(row_id: str, columns: TableColumns) -> str:
    """Return the remedy for an id that several rows have."""
    hint = f"give each row an id of its own, such as {quote(f'{row_id}/v1')}"
    if columns.group_by is not None:
        return hint
    group = "--group-by instead where its rows are one task"
    return f"{hint}, or name the column with {group}, with responses row-1, row-2, …"


def _digest_of_shared_cell(cell: Any) -> str:
    """Return the digest of the part of a cell that all rows of a task share."""
    if isinstance(cell, SplitConversation):
        cell = [message.model_dump(mode="json") for message in cell.query]
    return digest_of(cell)


class _FirstTaskRow(NamedTuple):
    """The number of the first row of a task, the id of the task, and the digests of the cells that its rows share."""

    number: int
    task: str
    cells: Mapping[str, str]


def _read_cells(
    path: Path, position: str, values: TableRow, columns: TableColumns, allows_numbers_as_text: bool
) -> RowCells:
    """Return the cells of the named columns as text, prompts and rubrics also as lists; None for no column.

    A whole number is text where it is a name or a reference, and any number is where `allows_numbers_as_text`: a
    spreadsheet makes numbers of texts such as 42.
    """
    cells = _read_optional_cells(values, columns)
    location = f"{path}, {position}"
    for role, column in columns.iter_roles_and_columns:
        value = values[column]
        _refuse_missing_cell(path, location, column, value)
        is_number_allowed = role not in ("prompt", "response") or allows_numbers_as_text
        if is_number_allowed and type(value) is int and value.bit_length() <= MAX_INT_BITS:
            value = str(value)
        if allows_numbers_as_text and type(value) is float:
            value = str(value)
        if role == "response" and value is None:
            value = ""
        has_no_passages = role == "context" and value == []
        if role != "response" and _is_empty_cell(value) and not has_no_passages:
            if role != "workspace":  # a response may have no files
                hint = "; write [] where nothing was found" if role == "context" else ""
                remedy = f"fill it, or leave the row out{hint}"
                _raise_cell_error(location, column, "is empty", remedy)
            value = ""
        if role == "messages":
            cells[column] = _parse_conversation_cell(
                location, value, cells.get(columns.system), columns
            )
            continue
        is_list = isinstance(value, list)
        may_be_list = column in (columns.prompt, columns.rubric, columns.context)
        if not isinstance(value, str) and not (is_list and may_be_list):
            remedy = "write text"
            if role == "response" and is_list:
                remedy += ", one response a row, and name their common column with --group-by"
            _raise_cell_error(location, column, f"is {describe_value(value)}", remedy)
        cells[column] = value
    return cells


def _read_optional_cells(values: TableRow, columns: TableColumns) -> dict[str | None, Any]:
    """Return the cells that a row need not have; anything else that is called `system` is a label."""
    optional = (columns.tools, columns.reference_actions)
    cells = {column: values.get(str(column)) for column in optional}
    system = _parse_text_or_list(values.get(str(columns.system)))
    if isinstance(system, str | list):
        cells[columns.system] = system
    cells[None] = None
    return cells


def _require_columns(
    path: Path, position: str, columns: TableColumns, values: TableRow, first_position: str
) -> None:
    """Raise `InputError` for a column that a row lacks; of JSON lines, the first one may have it."""
    for role, column in columns.iter_roles_and_columns:
        if column in values:
            continue
        if role == "messages":
            _refuse_renamed_messages(f"{path}, {position}", values, may_be_named=False)
        location = column_names_location(path, position)
        if position != first_position:
            raise InputError(
                f"{location}: has no column {quote(column)}, and {first_position} has it; "
                "give it one, or leave it out of all"
            )
        if values.keys() >= set(map(str.strip, column.split(","))):
            raise InputError(
                f"{location}: has no column {quote(column)}; repeat the option for each"
            )
        raise missing_column_error(location, (column,), values)


def _refuse_missing_cell(path: Path, location: str, column: str, value: Any) -> None:
    """Raise `InputError` for a cell of CSV without a value: one that the line ends before, or a program's NaN.

    An empty one would be an empty response, and NaN would be judged as its text.
    """
    if not is_csv(path):
        return
    if value is None:
        _raise_cell_error(
            location, column, "is missing, as the line ends before it", "write the cell"
        )
    if value in ("NaN", "nan"):
        _raise_cell_error(
            location,
            column,
            f"is {value}, as programs write a missing value",
            "leave the cell empty, or the row out; where that is the text, give JSON lines",
        )


def column_names_location(path: Path, position: str) -> str:
    """Return where the columns of a row are named: in a line above, in the file's header, or in the row itself."""
    if is_csv(path):
        return f"{path}, line {read_csv_layout(path).header_line}"
    return str(path) if position.startswith("row ") else f"{path}, {position}"


def _parse_conversation_cell(
    location: str, value: Any, system: Any, columns: TableColumns
) -> SplitConversation:
    """Return the conversation in a cell, a list of messages or its JSON, as query and response."""
    column = str(columns.messages)
    if isinstance(value, str):
        try:
            value = from_json(value)
        except ValueError as error:
            _raise_cell_error(
                location,
                column,
                f"is not valid JSON ({error})",
                "write a list of messages as json.dumps does",
            )
    if system:
        value = {"system": system, "messages": value}
    chat = validate(_Chat, {"messages": value})
    if isinstance(chat, Problem):
        _raise_cell_error(
            location, format_field_path((column, *chat.path[1:])), chat.problem, chat.remedy
        )
    try:
        return split_conversation(chat.messages, columns.response_from)
    except ValueError as error:
        _raise_cell_error(location, column, str(error), None)


class _Chat(FrozenModel):
    messages: Messages = Field(min_length=1)


def _is_empty_cell(value: Any) -> bool:
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


def _parse_label_cell(text: str) -> str | int | float:
    """Return the number that a cell of a CSV file writes plainly, else its text: `007` and `1e5` may be names."""
    if not _PLAIN_NUMBER_PATTERN.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _to_task(location: str, row_id: str, cells: RowCells, columns: TableColumns) -> Task:
    """Return the task of a row: named by its group unless that is the prompt, else like the row."""
    has_group_id = columns.group_by not in (None, columns.prompt)
    id_column = columns.group_by if has_group_id else columns.id
    chat = cells[columns.messages]
    content = {
        "id": cells[id_column] if has_group_id else row_id,
        "query": cells[columns.prompt] if chat is None else chat.query,
        "reference": cells[columns.reference],
    }
    for role in _TASK_COLUMN_ROLES:
        column = getattr(columns, role)
        if column is not None:
            content[role] = _parse_list_cell(cells[column])
    if columns.context is not None:
        content["context"] = _parse_text_or_list(cells[columns.context])
    if columns.rubric is not None:
        content["rubric"] = _parse_rubric_cell(location, columns.rubric, cells[columns.rubric])
    names = {"id": id_column, "query": columns.prompt, "rubric": columns.rubric}
    return _validate_row(location, Task, content, names)


def _parse_text_or_list(cell: Any) -> Any:
    """Return the list in a cell, also as JSON; a text that begins none is left as it is."""
    is_text = isinstance(cell, str) and not cell.lstrip().startswith("[")
    return cell if is_text else _parse_list_cell(cell)


def _parse_list_cell(cell: Any) -> Any:
    """Return the list in a cell, also as JSON; None for an empty one. Anything else is left to validation."""
    if not isinstance(cell, str):
        return cell
    try:
        return from_json(cell) if cell.strip() else None
    except ValueError:  # a passage may begin with a bracket
        return cell


def _parse_rubric_cell(location: str, column: str, cell: str | list[Any]) -> Any:
    """Return the rubric in a cell: of a list, also as JSON, or of a criterion in each line."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = from_json(cell)
        except ValueError as error:
            _raise_cell_error(
                location,
                column,
                f"is not valid JSON ({error})",
                "write a list of criteria, or a criterion a line",
            )
    return read_rubric_fields(split_criteria(cell) if isinstance(cell, str) else cell)


def _to_responses(
    location: str, row_id: str, task: str, cells: RowCells, labels: TableRow, columns: TableColumns
) -> Iterator[ResponseLine]:
    """Yield the responses of a row to a task; one of several response columns is the agent, and part of the id."""
    content = {"task": task, "id": row_id, "agent": cells[columns.agent], "labels": labels}
    if cells[columns.workspace]:
        content["workspace"] = cells[columns.workspace]
    chat = cells[columns.messages]
    if chat is not None:
        chat_content = {**content, "messages": chat.response}
        yield _validate_row(location, ResponseLine, chat_content, {"messages": columns.messages})
    names = {"id": columns.id, "agent": columns.agent}
    for column in columns.response:
        text_content = {**content, "text": cells[column]}
        if len(columns.response) > 1:
            text_content |= {"id": f"{row_id}/{column}", "agent": column}
        yield _validate_row(location, ResponseLine, text_content, names)


def _validate_row(
    location: str, model: type[M], content: TableRow, columns: Mapping[str, str | None]
) -> M:
    """Return the content as a model. Raises `InputError` with the column of the field that is wrong."""
    entry = validate(model, content)
    if isinstance(entry, Problem):
        field, *inner = entry.path
        column = format_field_path((columns.get(str(field)) or field, *inner))
        _raise_cell_error(location, column, entry.problem, entry.remedy)
    return entry


def _raise_cell_error(
    location: str, column: str | None, problem: str, remedy: str | None
) -> NoReturn:
    raise InputError(f"{location}, column {column}: {Problem((), problem, remedy)}")
