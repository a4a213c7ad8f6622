"""TASKS and RESPONSES: every line is validated before any is used, and read again when its task is processed.

An index of ids and lines is kept on disk, so that millions of them use no memory.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from jurygraph.errors import InputError
from jurygraph.messages import Problem, did_you_mean, quote
from jurygraph.schema import Response, ResponseLine, Task, TaskLine
from jurygraph.sources.files import ByteRange, FileDigest, Line, TextFile, require_temporary_space
from jurygraph.sources.json_lines import TaskKeyedFile, raise_line_error, read_lines, reread_line
from jurygraph.sources.reviewed_graphs import EdgesFile
from jurygraph.sources.table_rows import folder_of_tasks, require_files_inside


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


Pair = tuple[Task, tuple[Response, ...]]


class ValidatedFiles(NamedTuple):
    """TASKS and RESPONSES whose lines were all validated earlier, with their numbers of tasks and responses."""

    tasks: FileDigest
    responses: FileDigest | None
    extent: tuple[int, int]


class TaskSource:
    """Tasks with their responses, in the order of the tasks file, with one pair at a time in memory.

    `tasks`, `responses` and `edges` are the marks of the source files, which stay open until `close`. `graphs` is the
    number of tasks with a line in the `edges` file. The first method that needs a line validates all of them; `extent`
    needs none if it was passed.
    """

    def __init__(
        self,
        tasks: TextFile,
        responses: TextFile | None,
        edges: EdgesFile | None,
        held: ExitStack,
        *,
        folder: Path | None,
        extent: tuple[int, int] | None,
    ) -> None:
        """Take files that `held` closes; tasks may name files below `folder`."""
        self.tasks: FileDigest = tasks.mark
        self.responses: FileDigest | None = None if responses is None else responses.mark
        self.edges: FileDigest | None = None if edges is None else edges.mark
        self.graphs = 0 if edges is None else len(edges)
        self._tasks, self._responses, self._edges, self._resources = tasks, responses, edges, held
        self._folder, self._extent = folder, extent

    @cached_property
    def _index(self) -> TaskIndex:
        return self._resources.enter_context(
            closing(_build_index(self._tasks, self._responses, self._edges, self._folder))
        )

    def check(self) -> None:
        """Validate every line. Raises `InputError` with file, line and field."""
        with require_temporary_space():
            self._index  # noqa: B018 - builds the index, which validates the lines

    def extent(self, start: int = 0, stop: int | None = None) -> tuple[int, int]:
        """Count the tasks from the one numbered `start` (from 0) up to `stop`, and the responses to them."""
        if self._extent is not None and (start, stop) == (0, None):
            return self._extent
        if self._extent is not None and start >= self._extent[0]:
            return 0, 0
        self.check()
        return self._index.count(start, stop)

    def pairs(self, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
        """Yield these tasks, each with its responses in the order of their file; may be called again.

        Raises `InputError` if a file was changed since it was validated, or if a reviewed graph does not fit its task.
        """
        self.check()
        for number, place in self._index.tasks(start, stop):
            task, responses = reread_line(self._tasks, place, TaskLine).split()
            if self._responses is not None:
                lines = (reread_line(self._responses, place, ResponseLine) for place in self._index.responses(number))
                responses = tuple(line.split()[1] for line in lines)
            yield (task if self._edges is None else self._edges.with_edges(task)), responses

    def line(self, task_id: str) -> int | None:
        """Return the line of a task in its file; None if there is no such task."""
        self.check()
        return self._index.line_of(task_id)

    def close(self) -> None:
        """Close the files and the index. May be called more than once."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_tasks(
    path: str | Path, responses: str | Path | None = None, *, allow_files_outside: bool = False
) -> list[Pair]:
    """Read the tasks of a JSONL file (`.gz` too; `-` is standard input), each with its responses, into memory.

    `responses` names a second file for the responses. Table files that tasks name must be below the folder of the file,
    unless files outside are allowed. Raises `InputError` with file, line and field.
    """
    with read_work(path, responses, allow_files_outside=allow_files_outside) as work:
        return list(work.pairs())


def read_work(
    path: str | Path,
    responses: str | Path | None = None,
    edges: str | Path | None = None,
    *,
    allow_files_outside: bool = False,
    checked: ValidatedFiles | None = None,
) -> TaskSource:
    """Read files as `read_tasks` does, but of any size: every line is validated here, and none is kept in memory.

    `edges` names a TASKS file whose rubric graphs are used. If the files have the SHA-256 of those that were `checked`
    earlier, their lines are validated only when one is needed.
    """
    if edges is not None and str(edges) == "-":
        raise InputError("reviewed graphs are read from a file; name it")
    if responses is not None and str(path) == str(responses) == "-":
        raise InputError("tasks and responses cannot both come from standard input; put one of them in a file")
    folder = None if allow_files_outside else folder_of_tasks(path)
    with require_temporary_space(), ExitStack() as failed:
        held = failed.enter_context(ExitStack())
        tasks = held.enter_context(closing(TextFile(path)))
        responses_file = None if responses is None else held.enter_context(closing(TextFile(responses)))
        graphs = None if edges is None else held.enter_context(closing(EdgesFile(edges)))
        is_unchanged = checked is not None and graphs is None and _is_unchanged(checked, tasks, responses_file)
        extent = checked.extent if checked is not None and is_unchanged else None
        work = TaskSource(tasks, responses_file, graphs, held, folder=folder, extent=extent)
        if not is_unchanged:
            work.check()
        failed.pop_all()
        return work


def _is_unchanged(checked: ValidatedFiles, tasks: TextFile, responses: TextFile | None) -> bool:
    digests = [mark and mark.sha256 for mark in (checked.tasks, checked.responses)]
    return digests == [tasks.mark.sha256, responses and responses.mark.sha256]


def _build_index(
    tasks: TextFile, responses: TextFile | None, graphs: EdgesFile | None, folder: Path | None
) -> TaskIndex:
    """Validate every line of the files, and return their index."""
    with ExitStack() as failed:
        index = failed.enter_context(closing(TaskIndex()))
        _check_tasks(tasks, index, responses is not None, folder)
        if responses is not None:
            _check_responses(responses, index)
        if graphs is not None:
            graphs.check(lambda name: index.number_of(name) is not None, index.task_ids)
        index.sort()
        _refuse_without_responses(tasks, index)
        failed.pop_all()
        return index


def _check_tasks(file: TextFile, index: TaskIndex, has_responses_file: bool, folder: Path | None) -> None:
    """Validate every line; if `folder` is given, also that table files are below it."""
    number = -1
    for number, (line, task) in enumerate(read_lines(file, TaskLine)):
        if has_responses_file and task.responses:
            problem = "is set although --responses names a file with responses"
            raise_line_error(file.name, line.number, Problem(("responses",), problem, "leave out one of the two"))
        _refuse_taken(file, line, "task", task.id, ("id",), index.add_task(number, task.id, line))
        for position, response in enumerate(task.responses):
            earlier = index.add_response(number, response.id, line)
            _refuse_taken(file, line, "response", response.id, ("responses", position, "id"), earlier)
        if not task.query and not isinstance(task.query, str):
            raise_line_error(
                file.name, line.number, Problem(("query",), "is an empty list", "give it one message at least")
            )
        require_files_inside(file.name, line.number, task.facts, folder)
    if number < 0:
        raise InputError(f"{file.name}: the file is empty; write one task per line, each a JSON object")


def _check_responses(file: TextFile, index: TaskIndex) -> None:
    response = None
    for line, response in read_lines(file, ResponseLine):
        task = index.number_of(response.task)
        if task is None:
            hint = did_you_mean(response.task, index.task_ids()) or "name a task of the tasks file"
            raise_line_error(
                file.name, line.number, Problem(("task",), f"there is no task {quote(response.task)}", hint)
            )
        _refuse_taken(file, line, "response", response.id, ("id",), index.add_response(task, response.id, line))
    if response is None:
        raise InputError(f"{file.name}: the file is empty; write one response a line, each a JSON object")


def _refuse_taken(
    file: TextFile, line: Line, kind: str, name: str, path: tuple[str | int, ...], earlier: int | None
) -> None:
    if earlier is not None:
        problem = f"{kind} {quote(name)} is already in line {earlier}"
        raise_line_error(file.name, line.number, Problem(path, problem, f"give each {kind} an id of its own"))


def _refuse_without_responses(file: TextFile, index: TaskIndex) -> None:
    task = index.first_without_responses()
    if task is not None:
        name, line = task
        problem = f"task {quote(name)} has no responses"
        raise_line_error(file.name, line, Problem(("responses",), problem, "give it one, or leave it out"))


_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE task (n INTEGER PRIMARY KEY, id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER);
CREATE TABLE response (id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER, task INTEGER);
BEGIN;
"""
_LAST = (1 << 63) - 1


class TaskLines(TaskKeyedFile[TaskLine]):
    """The tasks of a TASKS file that are `wanted`; `len` counts these alone."""

    def __init__(self, path: str | Path, wanted: Callable[[Task], bool]) -> None:
        """Validate the file. Raises `InputError` with file, line and field, and for a file without a line."""
        self._is_wanted = wanted
        self._wanted: list[str] = []
        super().__init__(path, TaskLine, "id", "give each task an id of its own")
        if not self._lines:
            self.close()
            raise InputError(f"{self._file.name}: the file is empty; write one task a line, each a JSON object")

    def _check(self, number: int, entry: TaskLine) -> None:
        if self._is_wanted(entry):
            self._wanted.append(entry.id)

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.name

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each wanted task, with its line."""
        for task_id in self._wanted:
            yield self._lines[task_id][0], self._read_entry(task_id).split()[0]

    def raw_lines(self) -> Iterator[tuple[str, bytes]]:
        """Return every line as written, wanted or not, without its end, and the id of its task."""
        return ((task_id, self._file.read(place).rstrip()) for task_id, (_, place) in self._lines.items())

    @property
    def ids(self) -> Collection[str]:
        """The ids of all tasks."""
        return self._lines.keys()
