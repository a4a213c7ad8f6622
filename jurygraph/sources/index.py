"""Index of ids and their lines, on disk, so that millions of them use no memory."""

import sqlite3
from collections.abc import Iterator

from jurygraph.sources.files import ByteRange, Line

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE task (n INTEGER PRIMARY KEY, id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER);
CREATE TABLE response (id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER, task INTEGER);
BEGIN;
"""
_LAST = (1 << 63) - 1


class TaskIndex:
    """The ids of tasks and responses, and their lines. Tasks are numbered from 0 in the order of their file.

    It is a database in a temporary file of SQLite's own, which is deleted when it is closed, however the process ends.
    Raises `sqlite3.OperationalError` if there is no space for it.
    """

    def __init__(self) -> None:
        # Another thread than the opening one may use the work; SQLite itself serializes the access.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_TABLES)

    def close(self) -> None:
        """Delete the index."""
        self._db.close()

    def add_task(self, n: int, name: str, line: Line) -> int | None:
        """Add a task; if its id is taken, return the line of the earlier task."""
        return self._insert("task", name, (n, name, line.number, *line.place))

    def add_response(self, task: int, name: str, line: Line) -> int | None:
        """Add a response to a task; if its id is taken, return the line of the earlier response."""
        return self._insert("response", name, (name, line.number, *line.place, task))

    def sort(self) -> None:
        """Index the responses by task, after all are added."""
        self._db.execute("CREATE INDEX by_task ON response (task)")

    def number_of(self, task: str) -> int | None:
        """Return the number of a task."""
        return self._select_value("SELECT n FROM task WHERE id = ?", task)

    def line_of(self, task: str) -> int | None:
        """Return the line of a task."""
        return self._select_value("SELECT line FROM task WHERE id = ?", task)

    def task_ids(self) -> Iterator[str]:
        """Return the id of every task."""
        return (name for (name,) in self._db.execute("SELECT id FROM task ORDER BY n"))

    def first_without_responses(self) -> tuple[str, int] | None:
        """Return the first task that has no response, and its line."""
        query = "SELECT id, line FROM task WHERE NOT EXISTS (SELECT 1 FROM response WHERE task = n) ORDER BY n LIMIT 1"
        row: tuple[str, int] | None = self._db.execute(query).fetchone()
        return row

    def count(self, start: int, stop: int | None) -> tuple[int, int]:
        """Count the tasks from number `start` up to `stop`, and the responses to them."""
        bounds = (start, _LAST if stop is None else stop)
        (tasks,) = self._db.execute("SELECT count(*) FROM task WHERE n >= ? AND n < ?", bounds).fetchone()
        (responses,) = self._db.execute("SELECT count(*) FROM response WHERE task >= ? AND task < ?", bounds).fetchone()
        return tasks, responses

    def tasks(self, start: int, stop: int | None) -> Iterator[tuple[int, ByteRange]]:
        """Yield the number and place of every task from number `start` up to `stop`."""
        query = "SELECT n, start, length FROM task WHERE n >= ? AND n < ? ORDER BY n"
        for n, offset, length in self._db.execute(query, (start, _LAST if stop is None else stop)):
            yield n, ByteRange(offset, length)

    def responses(self, task: int) -> Iterator[ByteRange]:
        """Return the places of the responses to a task, in the order of their file."""
        query = "SELECT start, length FROM response WHERE task = ? ORDER BY rowid"
        return (ByteRange(*place) for place in self._db.execute(query, (task,)))

    def _insert(self, table: str, name: str, row: tuple[str | int, ...]) -> int | None:
        try:
            self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        except sqlite3.IntegrityError:
            return self._select_value(f"SELECT line FROM {table} WHERE id = ?", name)
        return None

    def _select_value(self, query: str, name: str) -> int | None:
        row = self._db.execute(query, (name,)).fetchone()
        return None if row is None else row[0]
