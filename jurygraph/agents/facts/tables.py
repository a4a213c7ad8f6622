"""Tables of facts: rows by their key, whether they stand in the task, in a file or behind a tool."""

import json
import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.agents.facts.names import COMPARED, missing, normalised, rank, shown, valued
from jurygraph.agents.facts.stated import TableStated
from jurygraph.errors import InputError, PlanError
from jurygraph.schema import canonical
from jurygraph.sources.files import temporary_room
from jurygraph.sources.table_rows import plain, read_rows, sha256_of

Key = tuple[str, ...]
Values = Mapping[str, Any]
_AT_ONCE = 10_000
_ALIKE = 2
_LAST = "\U0010ffff"


class Row(NamedTuple):
    """A row of a table: its number, from 1, and its values by column."""

    number: int
    values: Values


class Table(ABC):
    """Rows by their keys, which are given normalised: the name, then where or when."""

    digest: str | None = None
    """SHA-256 of what the rows come from, where that is not in the task."""

    def __init__(self, name: str, stated: TableStated) -> None:
        self.name = name
        self.stated = stated

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that rows have; None where they are not known before one is found."""
        return None

    @property
    def fresh(self) -> bool:
        """Whether what the rows come from is as it was when they were read."""
        return True

    @abstractmethod
    async def find(self, key: Key) -> Sequence[Row]:
        """The rows of a key, the first that counts first."""

    @abstractmethod
    def places(self, name: str) -> Collection[Key]:
        """Where rows of this name stand: the rest of their keys."""

    @abstractmethod
    def names_near(self, key: Key) -> Collection[str]:
        """Names that may have been meant: of rows that are where the key says.

        Of over 5,000 those that begin with the same two characters.
        """

    def listed(self, most: int) -> Sequence[Values]:
        """Rows of the table, at most so many, those of the first names; none where rows can only be asked for."""
        return ()

    def key_of(self, values: Values) -> Key:
        """A row's key, normalised."""
        return tuple(normalised(values.get(column)) for column in self.stated.key)

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """Rows that share a key, the first that counts first: whatever the order in which they were listed."""
        order = self.stated.order

        def place(row: Row) -> tuple[Any, ...]:
            return rank(None if order is None else row.values.get(order)), self.content(row)

        return sorted(rows, key=place)

    def content(self, row: Row) -> bytes:
        """What a row says, its place in the order apart; that numbers are text in a CSV file changes nothing."""
        said = {column: shown(valued(value)) for column, value in row.values.items() if not missing(value)}
        said.pop(self.stated.order or "", None)
        return canonical(said)


class InlineTable(Table):
    """Rows that stand in the task."""

    def __init__(self, name: str, stated: TableStated) -> None:
        super().__init__(name, stated)
        self._by_key: dict[Key, list[Row]] = {}
        self._places: dict[str, set[Key]] = {}
        self._names: dict[Key, set[str]] = {}
        self._columns = frozenset(column for row in stated.rows or () for column in row)
        for number, values in enumerate(stated.rows or (), start=1):
            first, *rest = key = self.key_of(values)
            self._by_key.setdefault(key, []).append(Row(number, values))
            self._places.setdefault(first, set()).add(tuple(rest))
            self._names.setdefault(tuple(rest), set()).add(first)
        for key, rows in self._by_key.items():
            self._by_key[key] = self.ordered(rows)
        _refuse_repeated(self, next((key for key, rows in self._by_key.items() if len(rows) > 1), None))

    @property
    def columns(self) -> frozenset[str] | None:
        return self._columns or None

    async def find(self, key: Key) -> Sequence[Row]:
        return self._by_key.get(key, ())

    def listed(self, most: int) -> Sequence[Values]:
        return [row.values for key in sorted(self._by_key) for row in self._by_key[key]][:most]

    def places(self, name: str) -> Collection[Key]:
        return self._places.get(name, ())

    def names_near(self, key: Key) -> Collection[str]:
        names = self._names.get(key[1:], set())
        return names if len(names) <= COMPARED else [name for name in names if name.startswith(key[0][:_ALIKE])]


class FileTable(Table):
    """Rows of a file, in a temporary SQLite index that is gone with the process: memory holds none of them.

    Raises `InputError` where the file cannot be read, is written meanwhile, or finds no room for its index.
    """

    def __init__(self, name: str, stated: TableStated) -> None:
        super().__init__(name, stated)
        self._path = Path(stated.file or "").absolute()
        self._state = _state(self._path)
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._index.close)
        with temporary_room():
            self._columns = self._read(Path(stated.file or ""), stated.table)
        if not self._columns:
            raise InputError(f"{stated.file}: holds no rows, so nothing could be found in it; name another file")
        if not self.fresh:
            raise InputError(f"{stated.file}: changed while it was read; leave it as it is and prepare again")
        _refuse_repeated(self, self._repeated() if stated.unique else None)

    def _read(self, path: Path, table: str | None) -> frozenset[str]:
        """Put the rows in the index; their columns."""
        columns: set[str] = set()
        rows = enumerate(read_rows(path, table), start=1)
        self._index.execute("CREATE TABLE rows (name TEXT, place TEXT, number INTEGER, content TEXT)")
        self._index.execute("BEGIN")
        while chunk := list(islice(rows, _AT_ONCE)):
            columns.update(column for _, values in chunk for column in values)
            self._index.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", [self._indexed(*row) for row in chunk])
        self._index.execute("COMMIT")
        self._index.execute("CREATE INDEX by_key ON rows (name, place)")
        self._index.execute("CREATE INDEX by_place ON rows (place, name)")
        self.digest = sha256_of(path)
        return frozenset(columns)

    def _indexed(self, number: int, values: Values) -> tuple[str, str, int, str]:
        name, *rest = self.key_of(values)
        return name, json.dumps(rest), number, json.dumps(values)

    @property
    def columns(self) -> frozenset[str] | None:
        return self._columns or None

    @property
    def fresh(self) -> bool:
        return self._state is not None and self._state == _state(self._path)

    async def find(self, key: Key) -> Sequence[Row]:
        query = "SELECT number, content FROM rows WHERE name = ? AND place = ? ORDER BY number"
        found = [Row(number, json.loads(content)) for number, content in self._found(query, *_place(key))]
        return found if len(found) < 2 else self.ordered(found)

    def listed(self, most: int) -> Sequence[Values]:
        return [json.loads(content) for (content,) in self._found(_LISTED, most)]

    def places(self, name: str) -> Collection[Key]:
        return [tuple(json.loads(place)) for (place,) in self._found(_PLACES, name)]

    def names_near(self, key: Key) -> Collection[str]:
        name, place = _place(key)
        names = self._names(place, "", COMPARED + 1)
        return names if len(names) <= COMPARED else self._names(place, name[:_ALIKE], COMPARED)

    def _names(self, place: str, start: str, most: int) -> list[str]:
        return [name for (name,) in self._found(_NAMES, place, start, start + _LAST, most)]

    def _found(self, query: str, *values: str | int) -> list[Any]:
        return self._index.execute(query, values).fetchall()

    def _repeated(self) -> Key | None:
        row = next(iter(self._found(_REPEATED)), None)
        return None if row is None else (row[0], *json.loads(row[1]))


_LISTED = "SELECT content FROM rows ORDER BY name, place, number LIMIT ?"
_PLACES = "SELECT DISTINCT place FROM rows WHERE name = ?"
_NAMES = "SELECT DISTINCT name FROM rows WHERE place = ? AND name >= ? AND name < ? ORDER BY name LIMIT ?"
_REPEATED = "SELECT name, place FROM rows GROUP BY name, place HAVING count(*) > 1 LIMIT 1"


def _place(key: Key) -> tuple[str, str]:
    """A key as it stands in the index of a file."""
    name, *rest = key
    return name, json.dumps(rest)


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written or replaced; None where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class ToolTable(Table):
    """Rows that a langchain-core tool is asked for: it is given the key's columns, and gives a row, rows or nothing.

    A row that does not state the key that was asked for is none: a search that gives what is near has not found, and
    what a tool says instead of a row, such as {"error": "not found"}, is no row.
    """

    def __init__(self, name: str, stated: TableStated, tool: Any = None) -> None:
        super().__init__(name, stated)
        self._tool = tool

    async def find(self, key: Key) -> Sequence[Row]:
        assert self._tool is not None, "who looks up here was given the config's tools"
        given = await self._tool.ainvoke(dict(zip(self.stated.key, key, strict=True)))
        rows = [] if given is None else [given] if isinstance(given, Mapping) else given
        if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
            raise TypeError(
                f"facts table {self.name!r}: its tool gave {_described(rows)}; give a mapping, or a list of such"
            )
        numbered = (Row(number, plain(row)) for number, row in enumerate(rows, start=1))
        return self.ordered(row for row in numbered if self._is_of(row, key))

    def _is_of(self, row: Row, key: Key) -> bool:
        asked = zip(self.stated.key, key, strict=True)
        return all(normalised(row.values.get(column)) == part for column, part in asked)

    def places(self, name: str) -> Collection[Key]:
        return ()

    def names_near(self, key: Key) -> Collection[str]:
        return ()


def _described(given: Any) -> str:
    """The type of a value; of a list, that of the first in it that is no mapping."""
    if isinstance(given, list | tuple):
        return f"a list with {next(type(row).__name__ for row in given if not isinstance(row, Mapping))}"
    return type(given).__name__


def _refuse_repeated(table: Table, key: Key | None) -> None:
    if table.stated.unique and key is not None:
        twice = ", ".join(f"{column} {value!r}" for column, value in zip(table.stated.key, key, strict=True))
        raise PlanError(
            f"facts.tables.{table.name}: has two rows of {twice}, and says that its key is unique; keep one of them, "
            "or leave `unique` out: the others are then listed as alternatives"
        )
