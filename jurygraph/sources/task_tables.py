"""Tables as tasks: a row is a task with a response in each response column, or one of several rows of a task.

The files that tasks name (`facts.tables.*.file`) are restricted to one folder: tasks may be untrusted. A table is read
once, row by row; its tasks and responses are kept as JSON lines in temporary files."""

import ast
import json
import os
import re
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, Self, TypeVar

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
    list_first,
    nearest_name,
    quote,
    shell_quote,
    validate,
)
from jurygraph.schema import FrozenModel, ResponseLine, Task, TaskLine, digest_of
from jurygraph.schema.conversation import OMITTED_IF_NONE, SplitConversation, split_conversation
from jurygraph.schema.frozen_model import (
    Count,
    Id,
    JsonFields,
    JsonMapping,
    StrPath,
    require_unique_ids,
)
from jurygraph.schema.message_forms import refuse_single_word
from jurygraph.schema.task import Messages, read_rubric_fields, split_criteria
from jurygraph.sources.files import (
    FileDigest,
    TextFile,
    TextLine,
    file_change_stamp,
    sha256_of_file,
)
from jurygraph.sources.table_rows import (
    TableRow,
    column_names_location,
    is_csv,
    is_json_array,
    missing_column_error,
    read_first_row,
    read_rows,
    table_suffix,
)


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


_MAX_FURTHER_FAULTS_LISTED = 19
"""Most bad rows of a table that are listed after the first."""
_PARTS_OF_A_ROW_PATTERN = re.compile(r"'[^']*'|\d+")
"""What differs between the same faults of two rows."""

_TASK_COLUMN_ROLES = ("tools", "reference_actions", "reference_messages")
"""Columns that a table of messages is read with, as JSON, if it has them."""
_OPTIONAL_COLUMN_ROLES = ("response_from", *_TASK_COLUMN_ROLES, "system")
"""What a row need not have."""
_CHAT_COLUMN_ROLES = (*_TASK_COLUMN_ROLES, "system", "context")
_OPTIONAL_CHAT_ROLES = ("response_from", *_CHAT_COLUMN_ROLES)
_SHARED_COLUMN_ROLES = (
    *("prompt", "messages", "reference", "rubric", "context", "group"),
    *_TASK_COLUMN_ROLES,
)
"""What all rows of a task have alike."""


class TableColumns(FrozenModel):
    """The columns of a table that make tasks and responses. All others become labels of the responses.

    With several `response` columns, each is an agent of that name. Rows with the same value in `group_by` are one task.
    Instead of prompts and responses, a column may have the `messages` of conversations: the response is what follows
    the last message of a user, or begins with the message of index `response_from`, or with the first of an assistant
    (`first-reply`). A row need not have the `tools`, `reference_actions` and `reference_messages` of its task, nor a
    `system` message outside the others, as Anthropic's form has it; of conversations, nor the `context`. `workspace`
    is the column of the folders or archives with a response's files. Tasks with the same `group` are one unit of
    intervals and comparisons. A `prompt` that is empty says that the texts answer none.
    """

    prompt: Id | Literal[""] | None = None
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
    reference_messages: Id | None = OMITTED_IF_NONE
    system: Id | None = OMITTED_IF_NONE
    workspace: Id | None = OMITTED_IF_NONE
    group: Id | None = OMITTED_IF_NONE

    @model_validator(mode="after")
    def _require_prompts_and_responses(self) -> Self:
        if self.messages is None:
            for role in ("prompt", "response"):
                if getattr(self, role) in (None, ()):
                    raise ValueError(
                        f"`{role}` is missing; "
                        "a table needs a column of prompts and one of responses, or one of messages; "
                        "where the texts answer no prompt, say so with --no-prompt"
                    )
        elif self.prompt is not None or self.response:
            role = "response" if self.response else "prompt"
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
        optional_roles = _OPTIONAL_COLUMN_ROLES if self.messages is None else _OPTIONAL_CHAT_ROLES
        for role in type(self).model_fields:
            names = None if role in optional_roles else getattr(self, role)
            if not isinstance(names, tuple):
                names = (names,)
            for name in filter(None, names):
                yield role, name

    @property
    def shared(self) -> list[str]:
        """The columns whose cells all rows of a task share; none without `group_by`, where each row is a task."""
        if self.group_by is None:
            return []
        return list(filter(None, (getattr(self, role) for role in _SHARED_COLUMN_ROLES)))


def is_table(path: StrPath) -> bool:
    return str(path).lower().endswith(_TABLE_SUFFIXES)


_CHAT_NAME_ROLES = ("id", "agent")
CHAT_COLUMN_ROLES = (*_CHAT_NAME_ROLES, *_CHAT_COLUMN_ROLES)
"""Columns that a file of chats is read with, each line if it has them, unless somebody names others."""
_MESSAGES_COLUMN_NAMES = ("messages", "conversations")
"""What a file of chats calls its messages; the second is ShareGPT's."""
_MESSAGES_COLUMN_ALIASES = ("message", "conversation", "traj", "trajectory", "dialogue")
"""What other projects call the `messages` of a chat."""


def chat_file_columns(path: StrPath) -> TableColumns | None:
    """Return the columns of a file of `{"messages": […]}` or ShareGPT's, by its first entry; None for other files.

    Raises `InputError` for a chat by another name, and for rows of LangSmith's: a line of tasks has no word for them.
    """
    if str(path) == "-" or is_table(path) or not Path(path).is_file():
        return None
    first = _read_first_object(Path(path))
    if not isinstance(first, dict) or {"query", "responses"} & first.keys():
        return None
    name = next((name for name in _MESSAGES_COLUMN_NAMES if name in first), None)
    if name is None:
        _refuse_renamed_messages(f"{path}, line 1", first, may_be_named=True)
        if {"inputs", "outputs"} <= first.keys():
            raise InputError(
                f"{path}, line 1: is a row of LangSmith's; make tasks of it: "
                f"jurygraph import langsmith {shell_quote(path)} --out tasks.jsonl"
            )
        return None
    return add_columns_of_chats(path, TableColumns(messages=name))


def missing_column_options_error(path: StrPath) -> InputError:
    """Return the error that nobody named the columns of a table. Raises that of a file without a first row."""
    first_row = read_first_row(path)
    hint = "name its columns with --prompt-column (or --no-prompt) and --response-column, or --messages-column"
    for name in _MESSAGES_COLUMN_NAMES:
        if name in first_row:
            hint = f"add --messages-column {name}"
    if "query" in first_row and first_row.keys() <= TaskLine.model_fields.keys():
        return InputError(
            f"{path}: has tasks, each with a `query`; leave out the options of columns"
        )
    names = f"; it has {join_names(first_row)}" if first_row else ""
    return InputError(f"{path}: is a table; {hint}{names}")


def _read_first_object(path: Path) -> Any:
    """Return the first line of a file as JSON, or in an array its first row; None if there is none, or no JSON."""
    try:
        if is_json_array(path):
            return read_first_row(path)
        with TextFile(path) as file:
            line = next(file.lines(), None)
        return None if line is None else from_json(line.text)
    except ValueError:
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
    assigned_columns = {column for _, column in columns.iter_roles_and_columns}
    added_chat_columns = {}
    for role in _CHAT_COLUMN_ROLES if is_table(path) else CHAT_COLUMN_ROLES:
        if getattr(columns, role) is None and role not in assigned_columns:
            added_chat_columns[role] = role
    return columns.model_copy(update=added_chat_columns)


class ConvertedTable(TextFile):
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


def convert_table(
    file: StrPath,
    file_columns: TableColumns,
    tasks: ConvertedTable,
    responses: ConvertedTable | None = None,
) -> None:
    """Write the tasks of a table as lines of one file, and the responses as those of another, if there is one.

    An empty cell of a response column is an empty response. Raises `InputError` naming the file, the line and the
    column, with a note on each other bad row: for a missing column, another empty cell, a cell that is not text, a
    repeated id, and for rows of one task whose prompt or reference differ. A chat needs a reply where responses are
    written.
    """
    if str(file) == "-":
        raise InputError(
            "standard input: a table is read from a file; name one, or pipe in tasks as JSONL"
        )
    path = Path(file)
    unit = "row"
    count = 0
    first_position = None
    has_context = False
    converted_rows = _ConvertedRows(path, tasks, responses)
    faults: _FaultsByKind = defaultdict(dict)
    with _collect_faults(faults):  # that of a line which is no JSON is the last
        for count, (position, values) in enumerate(read_rows(path), start=1):
            columns = _columns_of_row(path, file_columns, values)
            unit = position.rpartition(" ")[0] or unit
            has_context |= file_columns.context in values
            if first_position is None:
                first_position = position
                _require_columns(path, position, columns, values, position)
            with _collect_faults(faults):
                _require_columns(path, position, columns, values, first_position)
                converted_rows.add(count, position, values, columns)
    if faults:
        # what many rows share, as by a wrong option, hides nothing else
        kinds = sorted(faults.values(), key=len)
        first_fault, *others = [_join_faults(path, list(kind)) for kind in kinds]
        error = InputError(first_fault)
        for fault in list_first(others, _MAX_FURTHER_FAULTS_LISTED):
            error.add_note(fault)
        raise error
    if not count:
        raise InputError(f"{path}: has no rows; name a table with one row at least")
    # some conversations may lack it; `context` is the default for files of them, which need not have it
    if not has_context and file_columns.context not in (None, "context"):
        raise missing_column_error(str(path), (file_columns.context,), values)
    digest = FileDigest(name=path.name, sha256=sha256_of_file(path))
    for lines in filter(None, (tasks, responses)):
        lines.finish(digest, unit)


_FaultsByKind = defaultdict[str, dict[str, None]]


@contextmanager
def _collect_faults(faults: _FaultsByKind) -> Iterator[None]:
    """Keep the message of an `InputError` and go on; rows that share a fault of the header have one."""
    try:
        yield
    except InputError as error:
        kind = _PARTS_OF_A_ROW_PATTERN.sub("", str(error))
        faults[kind][str(error)] = None


def _join_faults(path: Path, faults: Sequence[str]) -> str:
    """Return faults of one kind as one line: the first, the number of the others, and their first places."""
    first, *others = faults
    places = [re.split("[,:]", fault.removeprefix(f"{path}, "), maxsplit=1)[0] for fault in others]
    return f"{first} (and {len(others)} more: {join_names(places)})" if others else first


@dataclass(frozen=True)
class _ConvertedRows:
    """The rows of a table that were converted: their ids, the first of each task, and the names as first spelt."""

    path: Path
    tasks: ConvertedTable
    responses: ConvertedTable | None
    ids: dict[str, int] = field(default_factory=dict)
    groups: dict[str, "_FirstTaskRow"] = field(default_factory=dict)
    spellings: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, count: int, position: str, values: TableRow, columns: TableColumns) -> None:
        """Write the task of a row, unless an earlier one has it, and its responses. Raises `InputError`."""
        path = self.path
        word, _, line = position.rpartition(" ")
        unit, number = (word, int(line)) if word else ("row", count)
        cells = _read_cells(path, position, values, columns)
        location = f"{path}, {position}"
        row_id = cells[columns.id] or f"row-{count}"
        if self.ids.setdefault(row_id, number) != number:
            _raise_cell_error(
                location,
                columns.id,
                f"is {quote(row_id)}, as in {unit} {self.ids[row_id]}",
                _unique_id_remedy(row_id, columns),
            )
        named_cells = _name_as_before(cells, columns, self.spellings)
        task = _to_task(location, row_id, cells, named_cells, columns)
        shared_cell_digests = {
            name: _digest_of_shared_cell(named_cells.get(name)) for name in columns.shared
        }
        first = _FirstTaskRow(number, task.id, shared_cell_digests)
        if columns.group_by is not None:
            first = self.groups.setdefault(digest_of(named_cells[columns.group_by]), first)
        _refuse_other_cells(f"{unit} {first.number}", location, first, shared_cell_digests, columns)
        if first.number == number:
            self.tasks.append(number, task)
        if self.responses is not None:
            labels = _read_labels(path, values, cells)
            for response in _to_responses(
                location, row_id, first.task, named_cells, labels, columns
            ):
                self.responses.append(number, response)


def _columns_of_row(path: Path, columns: TableColumns, values: TableRow) -> TableColumns:
    """Return the columns without the `id` and the `agent` that a chat lacks; what is no name there is a label."""
    if columns.messages is None or is_table(path):
        return columns
    absent_columns = [
        role
        for role in _CHAT_NAME_ROLES
        if getattr(columns, role) == role and not isinstance(values.get(role), str | int)
    ]
    return columns.model_copy(update=dict.fromkeys(absent_columns)) if absent_columns else columns


def _read_labels(path: Path, values: TableRow, cells: RowCells) -> TableRow:
    """Return the values of the columns without a role; those of CSV are text, which may write a number."""
    labels = {column: value for column, value in values.items() if column not in cells}
    if is_csv(path):
        labels = {column: _parse_label_cell(text or "") for column, text in labels.items()}
    return labels


def _refuse_other_cells(
    first_place: str,
    location: str,
    first: "_FirstTaskRow",
    digests: Mapping[str, str],
    columns: TableColumns,
) -> None:
    for column, digest in digests.items():
        if digest != first.cells[column]:
            _raise_cell_error(
                location,
                column,
                f"is not that of {first_place}, which is the same task by --group-by",
                _same_task_remedy(column, columns),
            )


def _same_task_remedy(column: str, columns: TableColumns) -> str:
    """Return the remedy for rows of one task that differ: the prompt and the tools of a log stay as they are."""
    remedy = "make them two tasks"
    if column not in (columns.messages, columns.tools):
        remedy = f"write the same, or {remedy}"
    if columns.group is None:
        group = shell_quote(columns.group_by)
        remedy += f", compared as one by --group-column {group} in place of --group-by"
    if column == columns.messages and columns.response_from is None:
        remedy += "; --response-from first-reply judges all that an agent replied"
    return remedy


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


def _read_cells(path: Path, position: str, values: TableRow, columns: TableColumns) -> RowCells:
    """Return the cells of the named columns as text, prompts and rubrics also as lists; None for no column.

    A whole number is text where it is a name or a reference, and any number is in a spreadsheet, which makes numbers
    of texts such as 42.
    """
    allows_numbers_as_text = table_suffix(path) == ".xlsx"
    location = f"{path}, {position}"
    cells = _read_optional_cells(location, values, columns)
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
        if role != "response" and _is_empty_cell(value) and (role, value) != ("context", []):
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


def _read_optional_cells(
    location: str, values: TableRow, columns: TableColumns
) -> dict[str | None, Any]:
    """Return the cells that a row need not have; a `system` or a context that is no text or list is a label.

    Raises `InputError` for a single word there, which names the compared system and would be in its prompt.
    """
    names = [getattr(columns, role) for role in _TASK_COLUMN_ROLES]
    cells = {column: values.get(str(column)) for column in names}
    context = values.get(str(columns.context))
    is_number = _PLAIN_NUMBER_PATTERN.fullmatch(str(context))  # of CSV, as text
    if columns.messages is not None and isinstance(context, str | list | None) and not is_number:
        cells[columns.context] = None if context == "" else context
    system = _parse_text_or_list(values.get(str(columns.system)))
    if isinstance(system, str | list):
        try:
            cells[columns.system] = refuse_single_word(system)
        except ValueError as error:
            remedy = f"or add --agent-column {columns.system}"
            _raise_cell_error(location, columns.system, str(error), remedy)
    return {**cells, None: None}


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
        problem = f"{location}: has no column {quote(column)}"
        if position != first_position:
            hint = did_you_mean(column, values) or "give it one"
            raise InputError(f"{problem}, and {first_position} has it; {hint}")
        if values.keys() >= set(map(str.strip, column.split(","))):
            raise InputError(f"{problem}; repeat the option for each")
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
            "leave the cell of a response empty, fill another, or leave the row out; where that is the text, give "
            "JSON lines",
        )


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


def _name_as_before(
    cells: RowCells, columns: TableColumns, spellings: dict[tuple[str, str], str]
) -> RowCells:
    """Return the cells with the names of groups, tasks and agents as the first row has them, to the blanks around them.

    These would make two of one, and half a pair would be compared alone. They are not stripped: a run that was begun
    with them goes on.
    """
    named_cells = {**cells}
    for column in filter(None, (columns.group_by, columns.group, columns.agent)):
        name = cells[column]
        if isinstance(name, str):
            named_cells[column] = spellings.setdefault((column, name.strip()), name)
    return named_cells


def _is_empty_cell(value: Any) -> bool:
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


def _parse_label_cell(text: str) -> str | int | float:
    """Return the number that a cell of a CSV file writes plainly, else its text: `007` and `1e5` may be names."""
    if not _PLAIN_NUMBER_PATTERN.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _to_task(
    location: str, row_id: str, cells: RowCells, named_cells: RowCells, columns: TableColumns
) -> Task:
    """Return the task of a row: named by its group unless that is the prompt, else like the row."""
    has_group_id = columns.group_by not in (None, columns.prompt)
    id_column = columns.group_by if has_group_id else columns.id
    chat = cells[columns.messages]
    content = {
        "id": named_cells[id_column] if has_group_id else row_id,
        "query": cells.get(columns.prompt, "") if chat is None else chat.query,
        "reference": cells[columns.reference],
    }
    for role in _TASK_COLUMN_ROLES:
        column = getattr(columns, role)
        if column is not None:
            content[role] = _parse_list_cell(cells[column])
    if columns.context is not None:
        context = _parse_text_or_list(cells.get(columns.context))
        if isinstance(context, str) and _WRITTEN_LIST_PATTERN.fullmatch(context):
            remedy = "write a list of passages as json.dumps does"
            context = _parse_written_list(location, columns.context, context, remedy)
        content["context"] = context
    if columns.group is not None:
        content["group"] = named_cells[columns.group]
    if columns.rubric is not None:
        content["rubric"] = _parse_rubric_cell(location, columns.rubric, cells[columns.rubric])
    names = {
        "id": id_column,
        "query": columns.prompt,
        "rubric": columns.rubric,
        "context": columns.context,
    }
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


_WRITTEN_LIST_PATTERN = re.compile(r"\s*\[\s*\{?\s*[\"']([^\]]*|.*\]\s*)", re.DOTALL)
"""A list of texts or objects, or one that is cut off; a text that begins `[1]`, `[sic]` or `["Foo"](link)` is none."""


def _parse_written_list(location: str, column: str, text: str, remedy: str) -> Any:
    """Return the list that a text is, as JSON or as Python prints it. Raises `InputError` for another text."""
    try:
        return from_json(text)
    except ValueError as error:
        problem = f"is not valid JSON ({error})"
    value = printed = None
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = ast.literal_eval(text.strip())
        json.dumps(value, ensure_ascii=False).encode()  # it has no half of a surrogate pair
        printed = repr(value)
    if printed != text.strip():  # NumPy prints no commas, and Python would join the texts
        _raise_cell_error(location, column, problem, remedy)
    return value


def _parse_rubric_cell(location: str, column: str, cell: str | list[Any]) -> Any:
    """Return the rubric in a cell: of a list, also as JSON, or of a criterion in each line."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        remedy = "write a list of criteria, or a criterion a line"
        cell = _parse_written_list(location, column, cell, remedy)
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
        if not chat.response:
            _raise_cell_error(
                location,
                columns.messages,
                "has no reply to judge: its last message is the user's",
                "leave the chat out, or say where the response starts with --response-from",
            )
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
