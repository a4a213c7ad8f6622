"""TASKS and RESPONSES: every line is checked before the first one counts, and read again when it is its turn."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from jurygraph.errors import InputError
from jurygraph.schema import Response, ResponseLine, Task, TaskLine
from jurygraph.sources.complaint import Complaint, nearest, quoted
from jurygraph.sources.edges import EdgesFile
from jurygraph.sources.fact_files import folder_of_tasks, refuse_file_outside
from jurygraph.sources.files import FileMark, Line, TextFile, temporary_room
from jurygraph.sources.index import Index
from jurygraph.sources.json_lines import read_again, read_lines, refuse

Pair = tuple[Task, tuple[Response, ...]]


class CheckedFiles(NamedTuple):
    """TASKS and RESPONSES whose lines were all checked earlier, and how many tasks and responses they have."""

    tasks: FileMark
    responses: FileMark | None
    extent: tuple[int, int]


class Work:
    """Tasks with their responses, in the order of the tasks file, of which a pair at a time is in memory.

    `tasks`, `responses` and `edges` are the marks of the files they come from, which stay open until `close`. `graphs`
    is of how many tasks the last has a line. The first method that needs a line checks all of them; `extent` needs none
    where it is given.
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
        """Take files that `held` closes; `folder` is the one below which tasks may name files."""
        self.tasks: FileMark = tasks.mark
        self.responses: FileMark | None = None if responses is None else responses.mark
        self.edges: FileMark | None = None if edges is None else edges.mark
        self.graphs = 0 if edges is None else len(edges)
        self._tasks, self._responses, self._edges, self._held = tasks, responses, edges, held
        self._folder, self._extent = folder, extent

    @cached_property
    def _index(self) -> Index:
        return self._held.enter_context(
            closing(_checked_index(self._tasks, self._responses, self._edges, self._folder))
        )

    def check(self) -> None:
        """Check every line. Raises `InputError` with file, line and field."""
        with temporary_room():
            self._index  # noqa: B018 - it is made now

    def extent(self, start: int = 0, stop: int | None = None) -> tuple[int, int]:
        """How many tasks there are from the one numbered `start` (from 0) up to `stop`, and responses to them."""
        if self._extent is not None and (start, stop) == (0, None):
            return self._extent
        if self._extent is not None and start >= self._extent[0]:
            return 0, 0
        self.check()
        return self._index.extent(start, stop)

    def pairs(self, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
        """These tasks, each with its responses as their file orders them; may be asked for again.

        Raises `InputError` where a file was changed since it was checked, or a reviewed graph does not fit its task.
        """
        self.check()
        for number, place in self._index.tasks(start, stop):
            task, responses = read_again(self._tasks, place, TaskLine).split()
            if self._responses is not None:
                apart = (read_again(self._responses, place, ResponseLine) for place in self._index.responses(number))
                responses = tuple(line.split()[1] for line in apart)
            yield (task if self._edges is None else self._edges.with_edges(task)), responses

    def line(self, task_id: str) -> int | None:
        """The line of a task in its file; None where there is no such task."""
        self.check()
        return self._index.line_of(task_id)

    def close(self) -> None:
        """Let go of the files, and of what was kept about them. May be called more than once."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def read_tasks(
    path: str | Path, responses: str | Path | None = None, *, allow_files_outside: bool = False
) -> list[Pair]:
    """The tasks of a JSONL file (`.gz` too; `-` is standard input), each with its responses; all in memory.

    `responses` names a second file that holds them apart. The files of tables that tasks name lie below the folder of
    the file, unless files outside are allowed. Raises `InputError` with file, line and field.
    """
    with read_work(path, responses, allow_files_outside=allow_files_outside) as work:
        return list(work.pairs())


def read_work(
    path: str | Path,
    responses: str | Path | None = None,
    edges: str | Path | None = None,
    *,
    allow_files_outside: bool = False,
    checked: CheckedFiles | None = None,
) -> Work:
    """As `read_tasks`, for files of any size: every line is checked here, and none is kept in memory.

    `edges` names a TASKS file of which the graphs of the rubrics are taken. Where the files have the SHA-256 of those
    that were `checked` earlier, their lines are checked when one is needed.
    """
    if edges is not None and str(edges) == "-":
        raise InputError("reviewed graphs are read from a file; name it")
    if responses is not None and str(path) == str(responses) == "-":
        raise InputError("tasks and responses cannot both come from standard input; put one of them in a file")
    folder = None if allow_files_outside else folder_of_tasks(path)
    with temporary_room(), ExitStack() as failed:
        held = failed.enter_context(ExitStack())
        tasks = held.enter_context(closing(TextFile(path)))
        apart = None if responses is None else held.enter_context(closing(TextFile(responses)))
        graphs = None if edges is None else held.enter_context(closing(EdgesFile(edges)))
        known = checked is not None and graphs is None and _are_same(checked, tasks, apart)
        extent = checked.extent if checked is not None and known else None
        work = Work(tasks, apart, graphs, held, folder=folder, extent=extent)
        if not known:
            work.check()
        failed.pop_all()
        return work


def _are_same(checked: CheckedFiles, tasks: TextFile, responses: TextFile | None) -> bool:
    there = [mark and mark.sha256 for mark in (checked.tasks, checked.responses)]
    return there == [tasks.mark.sha256, responses and responses.mark.sha256]


def _checked_index(tasks: TextFile, responses: TextFile | None, graphs: EdgesFile | None, folder: Path | None) -> Index:
    """Return the index of files of which every line was checked."""
    with ExitStack() as failed:
        index = failed.enter_context(closing(Index()))
        _check_tasks(tasks, index, responses is not None, folder)
        if responses is not None:
            _check_responses(responses, index)
        if graphs is not None:
            graphs.check(lambda name: index.number_of(name) is not None, index.task_ids)
        index.sort()
        _refuse_lonely(tasks, index)
        failed.pop_all()
        return index


def _check_tasks(file: TextFile, index: Index, responses_apart: bool, folder: Path | None) -> None:
    """Check every line; of its tables' files, where a `folder` is given, that they lie below that."""
    number = -1
    for number, (line, task) in enumerate(read_lines(file, TaskLine)):
        if responses_apart and task.responses:
            wrong = "stands here although --responses gives the responses apart"
            refuse(file.name, line.number, Complaint(("responses",), wrong, "leave out one of the two"))
        _refuse_taken(file, line, "task", task.id, ("id",), index.add_task(number, task.id, line))
        for place, response in enumerate(task.responses):
            earlier = index.add_response(number, response.id, line)
            _refuse_taken(file, line, "response", response.id, ("responses", place, "id"), earlier)
        if not task.query and not isinstance(task.query, str):
            refuse(file.name, line.number, Complaint(("query",), "is an empty list", "give it one message at least"))
        refuse_file_outside(file.name, line.number, task.facts, folder)
    if number < 0:
        raise InputError(f"{file.name}: the file is empty; write one task a line, each a JSON object")


def _check_responses(file: TextFile, index: Index) -> None:
    response = None
    for line, response in read_lines(file, ResponseLine):
        task = index.number_of(response.task)
        if task is None:
            near = nearest(response.task, index.task_ids()) or "name a task of the tasks file"
            refuse(file.name, line.number, Complaint(("task",), f"there is no task {quoted(response.task)}", near))
        _refuse_taken(file, line, "response", response.id, ("id",), index.add_response(task, response.id, line))
    if response is None:
        raise InputError(f"{file.name}: the file is empty; write one response a line, each a JSON object")


def _refuse_taken(
    file: TextFile, line: Line, what: str, name: str, path: tuple[str | int, ...], earlier: int | None
) -> None:
    if earlier is not None:
        wrong = f"{what} {quoted(name)} stands already in line {earlier}"
        refuse(file.name, line.number, Complaint(path, wrong, f"give each {what} an id of its own"))


def _refuse_lonely(file: TextFile, index: Index) -> None:
    lonely = index.without_responses()
    if lonely is not None:
        name, line = lonely
        wrong = f"task {quoted(name)} has no responses"
        refuse(file.name, line, Complaint(("responses",), wrong, "give it one, or leave it out"))
