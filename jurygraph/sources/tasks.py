"""TASKS and RESPONSES: every line is validated before any is used, and read again when its task is processed.

An index of ids and lines is kept on disk, so that millions of them use no memory.
"""

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal, Self

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import Path as FieldPath
from jurygraph.messages import Problem, did_you_mean, quote
from jurygraph.schema import NO_TASK_DEFAULTS, Response, ResponseLine, Task, TaskDefaults, TaskLine
from jurygraph.sources.files import ByteRange, FileDigest, TextFile, TextLine, require_temporary_space
from jurygraph.sources.json_lines import TaskKeyedFile, raise_line_error, read_lines, reread_line
from jurygraph.sources.reviewed_graphs import EdgesFile
from jurygraph.sources.table_rows import check_table_files, folder_of_tasks
from jurygraph.sources.task_tables import TableColumns, is_table, open_table

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE task (n INTEGER PRIMARY KEY, id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER);
CREATE TABLE response (task INTEGER, id TEXT UNIQUE, line INTEGER, start INTEGER, length INTEGER);
BEGIN;
"""


class TaskIndex:
    """The ids of tasks and responses, and their lines. Tasks are numbered from 0 in the order of their file.

    It is a database in a temporary file of SQLite's own, which is deleted when it is closed, however the process ends.
    Raises `sqlite3.OperationalError` if there is no space for it.
    """

    def __init__(self) -> None:
        # Another thread than the opening one may use the index; SQLite itself serializes the access.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_TABLES)

    def close(self) -> None:
        """Delete the index."""
        self._db.close()

    def add(
        self, kind: Literal["task", "response"], number: int, name: str, line: TextLine, path: FieldPath
    ) -> Problem | None:
        """Add a task, or a response to the task of this number; return the problem if its id, at `path`, is taken."""
        try:
            self._db.execute(f"INSERT INTO {kind} VALUES (?, ?, ?, ?, ?)", (number, name, line.number, *line.place))
        except sqlite3.IntegrityError:
            (earlier,) = self._db.execute(f"SELECT line FROM {kind} WHERE id = ?", (name,)).fetchone()
            problem = f"{kind} {quote(name)} is already in line {earlier}"
            return Problem(path, problem, f"give each {kind} an id of its own")
        return None

    def sort(self) -> None:
        """Index the responses by task, after all are added."""
        self._db.execute("CREATE INDEX by_task ON response (task)")

    def find(self, task: str) -> tuple[int, int] | None:
        """Return the number of a task, and its line."""
        row: tuple[int, int] | None = self._db.execute("SELECT n, line FROM task WHERE id = ?", (task,)).fetchone()
        return row

    def task_ids(self) -> Iterator[str]:
        """Return the id of every task."""
        return (name for (name,) in self._db.execute("SELECT id FROM task ORDER BY n"))

    def first_without_responses(self) -> tuple[str, int] | None:
        """Return the first task that has no response, and its line."""
        query = "SELECT id, line FROM task WHERE NOT EXISTS (SELECT 1 FROM response WHERE task = n) ORDER BY n LIMIT 1"
        row: tuple[str, int] | None = self._db.execute(query).fetchone()
        return row

    def count(self, start: int, stop: int | None, skipped: Collection[int] = ()) -> tuple[int, int]:
        """Count the tasks from number `start` up to `stop` without those skipped, and the responses to them."""
        bounds = (start, sys.maxsize if stop is None else stop)
        (tasks,) = self._db.execute("SELECT count(*) FROM task WHERE n >= ? AND n < ?", bounds).fetchone()
        (responses,) = self._db.execute("SELECT count(*) FROM response WHERE task >= ? AND task < ?", bounds).fetchone()
        for number in skipped:
            if bounds[0] <= number < bounds[1]:
                (left_out,) = self._db.execute("SELECT count(*) FROM response WHERE task = ?", (number,)).fetchone()
                tasks = tasks - 1
                responses = responses - left_out
        return tasks, responses

    def tasks(self, start: int, stop: int | None) -> Iterator[tuple[int, ByteRange]]:
        """Yield the number and place of every task from number `start` up to `stop`."""
        query = "SELECT n, start, length FROM task WHERE n >= ? AND n < ? ORDER BY n"
        for n, offset, length in self._db.execute(query, (start, sys.maxsize if stop is None else stop)):
            yield n, ByteRange(offset, length)

    def responses(self, task: int) -> Iterator[ByteRange]:
        """Return the places of the responses to a task, in the order of their file."""
        query = "SELECT start, length FROM response WHERE task = ? ORDER BY rowid"
        return (ByteRange(*place) for place in self._db.execute(query, (task,)))


Pair = tuple[Task, tuple[Response, ...]]
_EMPTY_HINT = "write one task per line, each a JSON object"


class TaskSource:
    """Tasks with their responses, in the order of the tasks file.

    `tasks_file`, `responses_file` and `edges_file` are the digests of the source files, which stay open until `close`;
    `columns` are those of a table, whose digest is that of the tasks. `graphs` is the number of tasks with a line in
    the `edges` file.
    """

    def __init__(
        self,
        path: str | Path,
        responses: str | Path | None,
        edges: str | Path | None,
        *,
        columns: TableColumns | None,
        folder: Path | None,
        defaults: TaskDefaults,
    ) -> None:
        """Open the files, and validate every line; tasks may name files below `folder`."""
        self._folder = folder
        self._defaults = defaults
        with ExitStack() as resources, require_temporary_space():
            enter = resources.enter_context
            self._responses: TextFile | None
            if columns is not None:
                self._tasks, self._responses = enter(open_table(path, columns))
            else:
                self._tasks = enter(closing(TextFile(path)))
                self._responses = None if responses is None else enter(closing(TextFile(responses)))
            self._edges = None if edges is None else enter(closing(EdgesFile(edges)))
            self.columns = columns
            self.tasks_file: FileDigest = self._tasks.file_digest
            apart = self._responses if columns is None else None  # those of a table have the table's digest
            self.responses_file: FileDigest | None = None if apart is None else apart.file_digest
            self.edges_file: FileDigest | None = None if self._edges is None else self._edges.file_digest
            self.graphs = 0 if self._edges is None else len(self._edges)
            self._index = enter(closing(TaskIndex()))
            self._validate(self._index)
            self._resources = resources.pop_all()

    def _validate(self, index: TaskIndex) -> None:
        self._check_tasks(index)
        if self._responses is not None:
            _check_responses(self._responses, index)
        if self._edges is not None:
            self._edges.refuse_unknown(index.find, index.task_ids(), "leave the line out")
        index.sort()
        unanswered = index.first_without_responses()
        if unanswered is not None:
            problem = f"task {quote(unanswered[0])} has no responses"
            remedy = "give it one, or leave it out"
            raise_line_error(self._tasks.name, unanswered[1], Problem(("responses",), problem, remedy))

    def _check_tasks(self, index: TaskIndex) -> None:
        number = -1
        for number, (line, task) in enumerate(read_lines(self._tasks, TaskLine)):
            for problem in self._task_problems(index, number, line, task):
                if problem is not None:
                    raise_line_error(self._tasks.name, line.number, problem)
        if number < 0:
            raise InputError(f"{self._tasks.name}: the file is empty; {_EMPTY_HINT}")

    def _task_problems(self, index: TaskIndex, number: int, line: TextLine, task: TaskLine) -> Iterator[Problem | None]:
        """Add a task and its responses to the index, and yield its problems."""
        if self._responses is not None and task.responses:
            problem = "is set although --responses names a file with responses"
            yield Problem(("responses",), problem, "leave out one of the two")
        yield index.add("task", number, task.id, line, ("id",))
        for position, response in enumerate(task.responses):
            yield index.add("response", number, response.id, line, ("responses", position, "id"))
        if task.query == ():
            yield Problem(("query",), "is an empty list", "give it one message at least")
        yield check_table_files(task.facts, self._folder)

    def extent(self, start: int = 0, stop: int | None = None, skipped: Collection[int] = ()) -> tuple[int, int]:
        """Count the tasks from the one numbered `start` (from 0) up to `stop`, and the responses to them.

        Tasks whose numbers are `skipped` do not count.
        """
        return self._index.count(start, stop, skipped)

    def pairs(self, start: int = 0, stop: int | None = None, skipped: Collection[int] = ()) -> Iterator[Pair]:
        """Yield these tasks, each with its responses in the order of their file; may be called again.

        Raises `InputError` if a file was changed since it was validated, or if a reviewed graph does not fit its task.
        """
        for number, place in self._index.tasks(start, stop):
            if number in skipped:
                continue
            task, responses = reread_line(self._tasks, place, TaskLine).split()
            task = self._defaults.complete(task)
            if self._responses is not None:
                places = self._index.responses(number)
                responses = tuple(reread_line(self._responses, place, ResponseLine).split()[1] for place in places)
            yield (task if self._edges is None else self._edges.with_edges(task)), responses

    def place(self, task_id: str) -> str | None:
        """Return the line of a task in its file, or its row: "line 7"; None if there is no such task."""
        place = self._index.find(task_id)
        return None if place is None else f"{self._tasks.unit} {place[1]}"

    def close(self) -> None:
        """Close the files and the index. May be called more than once."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_tasks(
    path: str | Path,
    responses: str | Path | None = None,
    *,
    columns: TableColumns | None = None,
    allow_files_outside: bool = False,
) -> list[Pair]:
    """Read the tasks of a JSONL file (`.gz` too; `-` is standard input), each with its responses, into memory.

    `responses` names a second file for the responses; `columns` those of a table, which is read instead. Table files
    that tasks name must be below the folder of the file, unless files outside are allowed. Raises `InputError` with
    file, line and field.
    """
    with open_tasks(path, responses, columns=columns, allow_files_outside=allow_files_outside) as work:
        return list(work.pairs())


def open_tasks(
    path: str | Path,
    responses: str | Path | None = None,
    edges: str | Path | None = None,
    *,
    columns: TableColumns | None = None,
    allow_files_outside: bool = False,
    defaults: TaskDefaults = NO_TASK_DEFAULTS,
) -> TaskSource:
    """Read files as `read_tasks` does, but of any size: every line is validated here, and read again when needed.

    `edges` names a TASKS file whose rubric graphs are used. A task gets the `defaults` for parts that it lacks; their
    table files must be below the same folder.
    """
    if edges is not None and str(edges) == "-":
        raise InputError("reviewed graphs are read from a file; name it")
    if responses is not None and str(path) == str(responses) == "-":
        raise InputError("tasks and responses cannot both come from standard input; put one of them in a file")
    if columns is not None and responses is not None:
        raise InputError("a table holds the responses to its tasks; leave out --responses, or give the tasks as JSONL")
    if columns is None and is_table(path):
        hint = "name its columns with --prompt-column and --response-column"
        raise InputError(f"{Path(path).name}: is a table; {hint}")
    folder = None if allow_files_outside else folder_of_tasks(path)
    outside = check_table_files(defaults.facts, folder)
    if outside is not None:
        raise ConfigError(f"task_defaults.{outside.field}: {outside}")
    return TaskSource(path, responses, edges, columns=columns, folder=folder, defaults=defaults)


def _check_responses(file: TextFile, index: TaskIndex) -> None:
    response = None
    for line, response in read_lines(file, ResponseLine):
        task = index.find(response.task)
        if task is None:
            hint = did_you_mean(response.task, index.task_ids()) or "name a task of the tasks file"
            problem = Problem(("task",), f"there is no task {quote(response.task)}", hint)
            raise_line_error(file.name, line.number, problem)
        duplicate = index.add("response", task[0], response.id, line, ("id",))
        if duplicate is not None:
            raise_line_error(file.name, line.number, duplicate)
    if response is None:
        raise InputError(f"{file.name}: the file is empty; write one response a line, each a JSON object")


class TaskLines(TaskKeyedFile[TaskLine]):
    """The tasks of a TASKS file that are `wanted`, completed by `defaults`; `len` counts these alone.

    They need no response, and may name files below `folder`, or anywhere without one.
    """

    def __init__(
        self,
        path: str | Path,
        wanted: Callable[[Task], bool] = lambda task: True,
        defaults: TaskDefaults = NO_TASK_DEFAULTS,
        folder: Path | None = None,
    ) -> None:
        """Validate the file. Raises `InputError` with file, line and field, and for a file without a line."""
        self._is_wanted = wanted
        self._defaults = defaults
        self._folder = folder
        self._wanted: list[str] = []
        super().__init__(path, TaskLine, "id", "give each task an id of its own", _EMPTY_HINT)

    def _check(self, number: int, entry: TaskLine) -> None:
        outside = check_table_files(entry.facts, self._folder)
        if outside is not None:
            raise_line_error(self._file.name, number, outside)
        if self._is_wanted(self._defaults.complete(entry)):
            self._wanted.append(entry.id)

    def __len__(self) -> int:
        return len(self._wanted)

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each wanted task, with its line."""
        for task_id in self._wanted:
            number, place = self._lines[task_id]
            yield number, self._defaults.complete(reread_line(self._file, place, TaskLine).split()[0])

    def raw_lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield every line, wanted or not, without its end, and the id of its task: as written unless completed."""
        for task_id, (_, place) in self._lines.items():
            entry = reread_line(self._file, place, TaskLine)
            completed = self._defaults.complete(entry)
            if completed is entry:
                yield task_id, self._file.read(place).rstrip()
            else:
                yield task_id, completed.model_dump_json(exclude_defaults=True).encode()

    @property
    def ids(self) -> Collection[str]:
        """The ids of all tasks."""
        return self._lines.keys()
