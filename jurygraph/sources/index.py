"""Which ids stand where: on disk, so that millions of them cost no memory."""

import sqlite3
from collections.abc import Iterator

from jurygraph.sources.files import Line, Place

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE task (n INTEGER PRIMARY KEY, id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER);
CREATE TABLE response (id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER, task INTEGER);
BEGIN;
"""
_LAST = (1 << 63) - 1


class Index:
    """The ids of tasks and responses, and their lines. Tasks are numbered from 0 in the order of their file.

    It is a database in a temporary file of SQLite's own, which is gone when it is closed, however the process ends.
    Raises `sqlite3.OperationalError` where there is no room for it.
    """

    def __init__(self) -> None:
        # Whoever opens the work may hand it on to a thread; SQLite itself lets one in at a time.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_TABLES)

    def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def add_task(self, n: int, name: str, line: Line) -> int | None:
        """Add a task; or, where its id is taken, give the line in which it stands."""
        return self._added("task", name, (n, name, line.number, *line.place))

    def add_response(self, task: int, name: str, line: Line) -> int | None:
        """Add a response to a task; or, where its id is taken, give the line in which it stands."""
        return self._added("response", name, (name, line.number, *line.place, task))

    def sort(self) -> None:
        """Order the responses by their tasks, once all are there."""
        self._db.execute("CREATE INDEX by_task ON response (task)")

    def number_of(self, task: str) -> int | None:
        """The number of a task."""
        return self._one("SELECT n FROM task WHERE id = ?", task)

    def line_of(self, task: str) -> int | None:
        """The line of a task."""
        return self._one("SELECT line FROM task WHERE id = ?", task)

    def task_ids(self) -> Iterator[str]:
        """The id of every task."""
        return (name for (name,) in self._db.execute("SELECT id FROM task ORDER BY n"))

    def without_responses(self) -> tuple[str, int] | None:
        """The first task that has no response, and its line."""
        lonely = "SELECT id, line FROM task WHERE NOT EXISTS (SELECT 1 FROM response WHERE task = n) ORDER BY n LIMIT 1"
        found: tuple[str, int] | None = self._db.execute(lonely).fetchone()
        return found

    def extent(self, start: int, stop: int | None) -> tuple[int, int]:
        """How many tasks there are from number `start` up to `stop`, and how many responses to them."""
        ends = (start, _LAST if stop is None else stop)
        (tasks,) = self._db.execute("SELECT count(*) FROM task WHERE n >= ? AND n < ?", ends).fetchone()
        (responses,) = self._db.execute("SELECT count(*) FROM response WHERE task >= ? AND task < ?", ends).fetchone()
        return tasks, responses

    def tasks(self, start: int, stop: int | None) -> Iterator[tuple[int, Place]]:
        """The number and place of every task from number `start` up to `stop`."""
        found = "SELECT n, start, length FROM task WHERE n >= ? AND n < ? ORDER BY n"
        for n, offset, length in self._db.execute(found, (start, _LAST if stop is None else stop)):
            yield n, Place(offset, length)

    def responses(self, task: int) -> Iterator[Place]:
        """The places of the responses to a task, in the order of their file."""
        found = "SELECT start, length FROM response WHERE task = ? ORDER BY rowid"
        return (Place(*place) for place in self._db.execute(found, (task,)))

    def _added(self, table: str, name: str, row: tuple[str | int, ...]) -> int | None:
        try:
            self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        except sqlite3.IntegrityError:
            return self._one(f"SELECT line FROM {table} WHERE id = ?", name)
        return None

    def _one(self, query: str, name: str) -> int | None:
        found = self._db.execute(query, (name,)).fetchone()
        return None if found is None else found[0]
