"""Facts: the tables of a task, by row and key, its kinds of claims, and values as texts, numbers and moments."""

import json
import logging
import math
import re
import sqlite3
import sys
import unicodedata
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, JsonValue, model_validator

from jurygraph.agents import notation
from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import EMPTY_OBJECT, Id, JsonObject, UnitInterval
from jurygraph.sources.files import explain_full_temp_disk, path_change_stamp, sha256_of_file
from jurygraph.sources.table_rows import is_csv, read_rows, row_to_json_values

_LOGGER = logging.getLogger(__name__)

_MAX_NORMALISED_LENGTH = 10_000
_MAX_NUMBER_LENGTH = 300
_MAX_MOMENT_LENGTH = 30
_NUMERAL_PATTERN = re.compile(
    r"(?P<sign>[-+]?)\$?\s?(?P<whole>\d{1,3}(?:,\d{3})+|0|[1-9]\d*)?(?P<rest>(?:\.\d+)?(?:e[-+]\d+)?)",
    re.ASCII,
)
_MOMENT_FORMATS = {
    "time": ("%H:%M", "%H:%M:%S", "%I:%M %p"),
    "date": ("%Y-%m-%d",),
    "both": ("%Y-%m-%d %H:%M",),
}


def normalise_text(value: Any) -> str:
    """Return a name or value with Unicode's compatibility forms (NFKC) and white space folded; case-sensitive.

    Beyond 10,000 characters, which no name has, only white space is folded: NFKC can take time quadratic in the length.
    """
    text = value_to_text(value)
    return (
        _normalise_short_text(text)
        if len(text) <= _MAX_NORMALISED_LENGTH
        else " ".join(text.split())
    )


@lru_cache(maxsize=1 << 14)
def _normalise_short_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", " ".join(text.split())).split())


def value_to_text(value: Any) -> str:
    """Return a value as text: whole numbers without a fraction, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "" if value is None else str(value)


def is_missing(value: Any) -> bool:
    """Return true if a table has no value here: None, an empty text or NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def parse_number(value: Any) -> int | float | None:
    """Return a number, or the number that a text such as 12, 1,200 or $12.50 spells; None if it is none.

    A text with a needless leading zero, such as 007, is a code and no number.
    """
    if isinstance(value, int | float):
        return value if not isinstance(value, bool) and abs(value) <= sys.float_info.max else None
    if not isinstance(value, str) or len(value) > _MAX_NUMBER_LENGTH:
        return None
    match = _NUMERAL_PATTERN.fullmatch(value.strip())
    if match is None or not (match["whole"] or match["rest"].startswith(".")):
        return None
    integer_digits = (match["whole"] or "0").replace(",", "")
    rest = match["rest"]
    size = float(integer_digits + rest) if rest else int(integer_digits)
    if size == math.inf:
        return None
    return -size if match["sign"] == "-" else size


def value_sort_key(value: Any) -> tuple[int, float, str]:
    """Return a sort key of a value: numbers before words before empty values."""
    number = parse_number(value)
    if number is not None:
        return 0, number, ""
    return (1, 0, value) if isinstance(value, str) and value else (2, 0, "")


def claimed_value_matches(claimed_value: str, value: Any, relative_tolerance: float = 0.0) -> bool:
    """Return true if a claimed value equals a table's: numbers by value, anything else by normalised text.

    A number may differ by the share `relative_tolerance` of the table's number.
    """
    number = parse_number(claimed_value)
    expected = parse_number(value)
    if number is None or expected is None:
        return not is_missing(value) and normalise_text(claimed_value) == normalise_text(value)
    if number == expected or relative_tolerance <= 0:
        return number == expected
    difference = abs(float(number) - float(expected))
    return difference <= relative_tolerance * abs(float(expected))


@lru_cache(maxsize=1 << 14)
def parse_moment(text: str) -> tuple[str, datetime] | None:
    """Return a time (9:30, 21:05:10, 9:30 PM), a date (2022-03-01) or both, and which; None if it is none."""
    if len(text) > _MAX_MOMENT_LENGTH:
        return None
    for kind, date_formats in _MOMENT_FORMATS.items():
        for date_format in date_formats:
            try:
                return kind, datetime.strptime(text.strip(), date_format)
            except ValueError:
                continue
    return None


def equality_key(value: Any) -> Hashable:
    """Return a key that is equal for values that are equal: number, moment or normalised text."""
    if isinstance(value, str) and len(value) <= _MAX_NUMBER_LENGTH:
        return _equality_key_of_text(value)
    number = parse_number(value)
    return normalise_text(value) if number is None else number


@lru_cache(maxsize=1 << 14)
def _equality_key_of_text(text: str) -> Hashable:
    """Return the key of a text. Cached, since the values of a table's rows recur often."""
    number = parse_number(text)
    return number if number is not None else parse_moment(text) or normalise_text(text)


def are_equal(first: Any, second: Any) -> bool:
    return equality_key(first) == equality_key(second)


def is_one_of(value: Any, others: Iterable[Any]) -> bool:
    return any(are_equal(value, other) for other in others)


def compare_values(value: Any, other: Any) -> int | None:
    """Return -1, 0 or 1: numbers compare by value, moments of one kind by time; None if the two do not compare."""
    first = parse_number(value)
    second = parse_number(other)
    if first is not None and second is not None:
        return (first > second) - (first < second)
    if not isinstance(value, str) or not isinstance(other, str):
        return None
    moment = parse_moment(value)
    other_moment = parse_moment(other)
    if moment is None or other_moment is None or moment[0] != other_moment[0]:
        return None
    return (moment > other_moment) - (moment < other_moment)


def split_list(value: Any, separator: str | None) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if not separator:
        return [value]
    return [part.strip() for part in value_to_text(value).split(separator)]


class FactTableSpec(FrozenModel):
    """A table of facts, from one of three sources: `rows` in the task, a `file`, or a `tool` of the config.

    `key` are the columns that identify a row: the name first, then place or time. Of rows that share a key the first
    counts, by the column `order` or else as listed. `lists` maps columns that hold several values in one text to their
    separators. `file` is CSV, JSON, JSON lines or Parquet, relative to the working directory. Of a TASKS file or a
    config it is looked for in that folder first, and below that of TASKS alone (`jurygraph.sources.task_tables`).
    """

    key: tuple[Id, ...] = Field(min_length=1)
    rows: tuple[JsonObject, ...] | None = None
    file: str | None = None
    tool: str | None = None
    order: Id | None = None
    lists: dict[Id, str] = EMPTY_OBJECT

    @model_validator(mode="after")
    def _check_single_source(self) -> Self:
        sources = [name for name in ("rows", "file", "tool") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(
                f"is given by {' and '.join(sources) or 'nothing'}; give one of rows, file and tool"
            )
        return self


class ClaimPattern(FrozenModel):
    """One way in which a claim may be written.

    `pattern` (RE2) has a named group for every claimed column; `columns` maps groups with other names to their columns.
    Without a pattern the whole text is the name. `states` are fixed values of this form, and `within` is the share by
    which a claimed number may differ.
    """

    table: Id
    pattern: notation.PatternText | None = None
    columns: dict[Id, Id] = EMPTY_OBJECT
    states: dict[Id, JsonValue] = EMPTY_OBJECT
    within: dict[Id, UnitInterval] = EMPTY_OBJECT

    @model_validator(mode="after")
    def _check_pattern_groups(self) -> Self:
        unknown_names = sorted(self.columns.keys() - self.groups)
        if unknown_names:
            groups = ", ".join(self.groups) or "none"
            raise ValueError(
                f"`columns.{unknown_names[0]}` is not a group of the pattern; it has {groups}"
            )
        return self

    @cached_property
    def compiled_pattern(self) -> Any:
        return None if self.pattern is None else notation.compile_pattern(self.pattern)

    @property
    def groups(self) -> tuple[str, ...]:
        return () if self.compiled_pattern is None else tuple(self.compiled_pattern.groupindex)


class RecordField(FrozenModel):
    """A value from the record that holds a claim: that of a `field`, translated by `map` if given."""

    field: Id
    map: JsonObject | None = None


class ClaimsSpec(FrozenModel):
    """One kind of claims: their JSONPaths `at` (RFC 9535) in the response's data, and the `forms` they may have.

    `split` separates several claims in one text; "" and "-" claim nothing. `beside` are values of the record
    that contains the claim: numbers, and texts of up to 1,000 characters. Claims are ordered by the record's field
    `order`, or as in the data. With `merged`, equal claims of successive orders become one, and their number is its
    value of that name.
    """

    at: tuple[notation.JsonPathText, ...] = Field(min_length=1)
    forms: tuple[ClaimPattern, ...] = Field(min_length=1)
    split: str | None = None
    beside: dict[Id, RecordField] = EMPTY_OBJECT
    order: Id | None = None
    merged: Id | None = None

    @model_validator(mode="after")
    def _require_order_if_merged(self) -> Self:
        if self.merged is not None and self.order is None:
            raise ValueError(
                "`merged` joins claims of successive orders; name the field that has them in `order`"
            )
        return self

    @cached_property
    def paths(self) -> list[Any]:
        return [notation.compile_jsonpath(path) for path in self.at]

    def match_claim_form(self, text: str) -> tuple[ClaimPattern | None, Mapping[str, str]]:
        """Return the form that a text matches, and its values by column."""
        for form in self.forms:
            if form.compiled_pattern is None:
                return form, {}
            match = form.compiled_pattern.fullmatch(text)
            if match is not None:
                return form, {
                    form.columns.get(group, group): value.strip()
                    for group, value in match.groupdict().items()
                    if value is not None
                }
        return None, {}


class FactsSpec(FrozenModel):
    tables: dict[Id, FactTableSpec]
    claims: dict[Id, ClaimsSpec] = EMPTY_OBJECT


TableKey = tuple[str, ...]
RowValues = Mapping[str, Any]
_ROWS_PER_CHUNK = 10_000
_MAX_CACHED_KEYS = 1_000


class FactRow(NamedTuple):
    """A row of a table: its number, from 1, and its values by column."""

    number: int
    values: RowValues


class ReferenceFactTable(ABC):
    """Base class of tables: rows by normalised keys, of which the name is the first part, then place or time."""

    digest: str | None = None
    """SHA-256 of the source of the rows if that is not in the task."""

    columns: frozenset[str] | None = None
    """The columns of the rows; None if they are unknown before a row is found."""

    def __init__(self, name: str, spec: FactTableSpec) -> None:
        self.name = name
        self.spec = spec

    @property
    def is_up_to_date(self) -> bool:
        return True

    @abstractmethod
    async def find(self, key: TableKey) -> Sequence[FactRow]:
        """Return the rows of a key, the preferred one first."""

    def places(self, name: str) -> Collection[TableKey]:
        """Return the places of rows with this name: the rest of their keys; none if rows can only be looked up."""
        return ()

    def build_row_key(self, values: RowValues) -> TableKey:
        return tuple(normalise_text(values.get(column)) for column in self.spec.key)

    def sort_rows(self, rows: Iterable[FactRow]) -> list[FactRow]:
        """Return rows that share a key, the preferred one first: by the column `order`, else as they are listed."""
        order = self.spec.order
        if order is None:
            return list(rows)
        return sorted(rows, key=lambda row: value_sort_key(row.values.get(order)))


class RowTable(ReferenceFactTable):
    """Rows of the task or of a file, in an SQLite index: of a file in a temporary one, so that memory holds none.

    Raises `InputError` if the file cannot be read or changes meanwhile, or if there is no room for its index.
    """

    def __init__(self, name: str, spec: FactTableSpec) -> None:
        super().__init__(name, spec)
        self._path = None if spec.file is None else Path(spec.file)
        self._state = path_change_stamp(self._path)
        # The responses of a group share claims.
        self._find = lru_cache(maxsize=_MAX_CACHED_KEYS)(self._find_rows)
        database_path = ":memory:" if spec.file is None else ""
        self._index = sqlite3.connect(database_path, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._index.close)
        with explain_full_temp_disk():
            rows: Iterable[RowValues] = spec.rows or ()
            if self._path is not None:
                rows = _read_file_rows(self._path)
            self.columns = self._index_rows(rows) or None
        if self._path is not None:
            self.digest = sha256_of_file(self._path)
            if self.columns is None:
                raise InputError(
                    f"{spec.file}: holds no rows, so nothing could be found in it; name another file"
                )
            if not self.is_up_to_date:
                raise InputError(
                    f"{spec.file}: changed while it was read; leave it as it is and prepare again"
                )

    def _index_rows(self, rows: Iterable[RowValues]) -> frozenset[str]:
        columns: set[str] = set()
        numbered_rows = enumerate(rows, start=1)
        self._index.execute(
            "CREATE TABLE rows (name TEXT, place TEXT, number INTEGER, content TEXT)"
        )
        self._index.execute("BEGIN")
        while chunk := list(islice(numbered_rows, _ROWS_PER_CHUNK)):
            index_rows = []
            for number, values in chunk:
                columns.update(values)
                name, rest = _to_index_key(self.build_row_key(values))
                index_rows.append((name, rest, number, json.dumps(values)))
            self._index.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", index_rows)
        self._index.execute("COMMIT")
        self._index.execute("CREATE INDEX by_key ON rows (name, place)")
        return frozenset(columns)

    @property
    def is_up_to_date(self) -> bool:
        if self._path is None:
            return True
        return self._state is not None and self._state == path_change_stamp(self._path)

    async def find(self, key: TableKey) -> Sequence[FactRow]:
        return self._find(key)

    def _find_rows(self, key: TableKey) -> Sequence[FactRow]:
        sql = "SELECT number, content FROM rows WHERE name = ? AND place = ? ORDER BY number"
        rows = self._index.execute(sql, _to_index_key(key))
        return self.sort_rows(FactRow(number, json.loads(content)) for number, content in rows)

    def places(self, name: str) -> Collection[TableKey]:
        sql = "SELECT DISTINCT place FROM rows WHERE name = ?"
        return [tuple(json.loads(rest)) for (rest,) in self._index.execute(sql, (name,))]


def _read_file_rows(path: Path) -> Iterator[RowValues]:
    """Yield the rows of a file, and log the first line of a CSV that lacks cells."""
    may_be_short = is_csv(path)  # once: it takes a fifth of the time of a row
    for place, row in read_rows(path):
        if may_be_short and None in row.values():
            may_be_short = False
            _LOGGER.warning("%s, %s: has fewer cells than columns; they are empty", path, place)
        yield row


def _to_index_key(key: TableKey) -> tuple[str, str]:
    return key[0], json.dumps(key[1:])


class ToolTable(ReferenceFactTable):
    """Rows from a langchain-core tool: its input is the key's columns, its result a row, rows or None.

    Rows without exactly the key are discarded: a search for similar ones does not count as found, and neither does an
    answer such as {"error": "not found"}.
    """

    def __init__(self, name: str, spec: FactTableSpec, tool: Any = None) -> None:
        super().__init__(name, spec)
        self._tool = tool

    async def find(self, key: TableKey) -> Sequence[FactRow]:
        assert self._tool is not None, "who looks up here was given the config's tools"
        result = await self._tool.ainvoke(dict(zip(self.spec.key, key, strict=True)))
        rows = result
        if result is None:
            rows = []
        elif isinstance(result, Mapping):
            rows = [result]
        if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
            raise TypeError(
                f"facts table {self.name!r}: its tool gave {type(result).__name__}; "
                "give a mapping, or a list of such"
            )
        matching_rows = []
        for number, content in enumerate(rows, start=1):
            row = FactRow(number, row_to_json_values(content))
            if self.build_row_key(row.values) == key:
                matching_rows.append(row)
        return self.sort_rows(matching_rows)
