"""Tables of facts: rows by their key, from the task, a file or a tool."""

import json
import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.agents.facts.spec import TableSpec
from jurygraph.agents.facts.values import normalise, value_sort_key
from jurygraph.errors import InputError
from jurygraph.sources.files import require_temporary_space
from jurygraph.sources.table_rows import read_rows, sha256_of, to_json_values

Key = tuple[str, ...]
Values = Mapping[str, Any]
_CHUNK_ROWS = 10_000
_MAX_CACHED_KEYS = 1_000


class FactRow(NamedTuple):
    """A row of a table: its number, from 1, and its values by column."""

    number: int
    values: Values


class FactTable(ABC):
    """Base class of tables: rows by normalised keys, of which the name is the first part, then place or time."""

    digest: str | None = None
    """SHA-256 of the source of the rows if that is not in the task."""

    columns: frozenset[str] | None = None
    """The columns of the rows; None if they are unknown before a row is found."""

    def __init__(self, name: str, spec: TableSpec) -> None:
        self.name = name
        self.spec = spec

    @property
    def is_fresh(self) -> bool:
        return True

    @abstractmethod
    async def find(self, key: Key) -> Sequence[FactRow]:
        """Return the rows of a key, the preferred one first."""

    def places(self, name: str) -> Collection[Key]:
        """Return the places of rows with this name: the rest of their keys; none if rows can only be looked up."""
        return ()

    def first_rows(self, most: int) -> Sequence[Values]:
        """Return the values of at most `most` rows, ordered by name; none if rows can only be looked up by key."""
        return ()

    def key_of(self, values: Values) -> Key:
        """Return a row's key, normalised."""
        return tuple(normalise(values.get(column)) for column in self.spec.key)

    def sort_rows(self, rows: Iterable[FactRow]) -> list[FactRow]:
        """Return rows that share a key, the preferred one first: by the column `order`, else as they are listed."""
        order = self.spec.order
        return sorted(rows, key=lambda row: value_sort_key(None if order is None else row.values.get(order)))


class RowTable(FactTable):
    """Rows of the task or of a file, in an SQLite index: of a file in a temporary one, so that memory holds none.

    Raises `InputError` if the file cannot be read or changes meanwhile, or if there is no room for its index.
    """

    def __init__(self, name: str, spec: TableSpec) -> None:
        super().__init__(name, spec)
        self._path = None if spec.file is None else Path(spec.file)
        self._state = _state(self._path)
        self._find = lru_cache(maxsize=_MAX_CACHED_KEYS)(self._find_uncached)  # the responses of a group share claims
        self._index = sqlite3.connect(
            ":memory:" if spec.file is None else "", isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, self._index.close)
        with require_temporary_space():
            rows = spec.rows or () if self._path is None else (row for _, row in read_rows(self._path))
            self.columns = self._build_index(rows) or None
        if self._path is not None:
            self.digest = sha256_of(self._path)
            if self.columns is None:
                raise InputError(f"{spec.file}: holds no rows, so nothing could be found in it; name another file")
            if not self.is_fresh:
                raise InputError(f"{spec.file}: changed while it was read; leave it as it is and prepare again")

    def _build_index(self, rows: Iterable[Values]) -> frozenset[str]:
        columns: set[str] = set()
        numbered = enumerate(rows, start=1)
        self._index.execute("CREATE TABLE rows (name TEXT, place TEXT, number INTEGER, content TEXT)")
        self._index.execute("BEGIN")
        while chunk := list(islice(numbered, _CHUNK_ROWS)):
            columns.update(column for _, values in chunk for column in values)
            indexed = [(*_index_key(self.key_of(values)), number, json.dumps(values)) for number, values in chunk]
            self._index.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", indexed)
        self._index.execute("COMMIT")
        self._index.execute("CREATE INDEX by_key ON rows (name, place)")
        return frozenset(columns)

    @property
    def is_fresh(self) -> bool:
        return self._path is None or (self._state is not None and self._state == _state(self._path))

    async def find(self, key: Key) -> Sequence[FactRow]:
        return self._find(key)

    def _find_uncached(self, key: Key) -> Sequence[FactRow]:
        sql = "SELECT number, content FROM rows WHERE name = ? AND place = ? ORDER BY number"
        rows = self._query(sql, *_index_key(key))
        return self.sort_rows(FactRow(number, json.loads(content)) for number, content in rows)

    def first_rows(self, most: int) -> Sequence[Values]:
        sql = "SELECT content FROM rows ORDER BY name, place, number LIMIT ?"
        return [json.loads(content) for (content,) in self._query(sql, most)]

    def places(self, name: str) -> Collection[Key]:
        sql = "SELECT DISTINCT place FROM rows WHERE name = ?"
        return [tuple(json.loads(place)) for (place,) in self._query(sql, name)]

    def _query(self, sql: str, *values: str | int) -> list[Any]:
        return self._index.execute(sql, values).fetchall()


def _index_key(key: Key) -> tuple[str, str]:
    return key[0], json.dumps(key[1:])


def _state(path: Path | None) -> tuple[int, ...] | None:
    """Return a state that changes when a file is written or replaced; None if there is no file."""
    if path is None:
        return None
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class ToolTable(FactTable):
    """Rows from a langchain-core tool: its input is the key's columns, its result a row, rows or None.

    Rows without exactly the key are discarded: a search for similar ones does not count as found, and neither does an
    answer such as {"error": "not found"}.
    """

    def __init__(self, name: str, spec: TableSpec, tool: Any = None) -> None:
        super().__init__(name, spec)
        self._tool = tool

    async def find(self, key: Key) -> Sequence[FactRow]:
        assert self._tool is not None, "who looks up here was given the config's tools"
        result = await self._tool.ainvoke(dict(zip(self.spec.key, key, strict=True)))
        rows = [] if result is None else [result] if isinstance(result, Mapping) else result
        if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
            found = type(result).__name__
            raise TypeError(f"facts table {self.name!r}: its tool gave {found}; give a mapping, or a list of such")
        numbered = (FactRow(number, to_json_values(row)) for number, row in enumerate(rows, start=1))
        return self.sort_rows(row for row in numbered if self.key_of(row.values) == key)
