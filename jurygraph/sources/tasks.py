"""TASKS and RESPONSES: every line is checked before the first one counts."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.schema import Response, ResponseLine, Task, TaskLine
from jurygraph.sources.complaint import Complaint, nearest
from jurygraph.sources.files import FileMark, TextFile
from jurygraph.sources.json_lines import read_lines, refuse

Pair = tuple[Task, tuple[Response, ...]]


@dataclass(frozen=True)
class Work:
    """Tasks with their responses, in the order of the file; the files they came from, and the line of each task."""

    pairs: list[Pair]
    tasks: FileMark
    responses: FileMark | None = None
    lines: dict[str, int] = field(default_factory=dict)


def read_tasks(path: str | Path, responses: str | Path | None = None) -> list[Pair]:
    """The tasks of a JSONL file (`.gz` too; `-` is standard input), each with its responses.

    `responses` names a second file that holds them apart. Raises `InputError` with file, line and field.
    """
    return read_work(path, responses).pairs


def read_work(path: str | Path, responses: str | Path | None = None) -> Work:
    """As `read_tasks`, with the marks by which the files are known again."""
    if responses is not None and str(path) == str(responses) == "-":
        raise InputError("tasks and responses cannot both come from standard input; put one of them in a file")
    with closing(TextFile(path)) as file:
        tasks = _Tasks(file, responses_apart=responses is not None)
    if responses is None:
        return Work(_complete(file.name, tasks, tasks.responses), file.mark, lines=tasks.lines)
    with closing(TextFile(responses)) as apart:
        groups = _responses_apart(apart, tasks.lines)
    return Work(_complete(file.name, tasks, groups), file.mark, apart.mark, tasks.lines)


class _Ids:
    """Ids that must differ within a file, and the line in which each one stands."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.lines: dict[str, int] = {}

    def add(self, name: str, place: str, path: tuple[str | int, ...], line: int) -> None:
        if name in self.lines:
            wrong = f"{self.what} {name!r} stands already in line {self.lines[name]}"
            refuse(place, Complaint(path, wrong, f"give each {self.what} an id of its own"))
        self.lines[name] = line


class _Tasks:
    """The tasks of one file by id, their lines, and the responses that stand beside them."""

    def __init__(self, file: TextFile, responses_apart: bool) -> None:
        self.tasks: dict[str, Task] = {}
        self.responses: dict[str, list[Response]] = {}
        self._ids, self._answers = _Ids("task"), _Ids("response")
        for number, line in read_lines(file, TaskLine):
            place = f"{file.name}, line {number}"
            if responses_apart and line.responses:
                wrong = "stands here although --responses gives the responses apart"
                refuse(place, Complaint(("responses",), wrong, "leave out one of the two"))
            self._add(line, place, number)
        if not self.tasks:
            raise InputError(f"{file.name}: the file is empty; it holds one task, a JSON object, a line")

    @property
    def lines(self) -> dict[str, int]:
        return self._ids.lines

    def _add(self, line: TaskLine, place: str, number: int) -> None:
        self._ids.add(line.id, place, ("id",), number)
        for index, response in enumerate(line.responses):
            self._answers.add(response.id, place, ("responses", index, "id"), number)
        if not line.query and not isinstance(line.query, str):
            refuse(place, Complaint(("query",), "is an empty list", "give it one message at least"))
        task, responses = line.split()
        self.tasks[task.id], self.responses[task.id] = task, list(responses)


def _responses_apart(file: TextFile, known: Iterable[str]) -> dict[str, list[Response]]:
    groups: dict[str, list[Response]] = {task: [] for task in known}
    ids = _Ids("response")
    for number, line in read_lines(file, ResponseLine):
        place = f"{file.name}, line {number}"
        if line.task not in groups:
            wrong = f"there is no task {line.task!r}"
            near = nearest(line.task, groups) or "name a task of the tasks file"
            refuse(place, Complaint(("task",), wrong, near))
        ids.add(line.id, place, ("id",), number)
        task, response = line.split()
        groups[task].append(response)
    if not ids.lines:
        raise InputError(f"{file.name}: the file is empty; it holds one response, a JSON object, a line")
    return groups


def _complete(name: str, tasks: _Tasks, groups: dict[str, list[Response]]) -> list[Pair]:
    for task, responses in groups.items():
        if not responses:
            wrong = Complaint(("responses",), f"task {task!r} has no responses", "give it one, or leave it out")
            refuse(f"{name}, line {tasks.lines[task]}", wrong)
    return [(task, tuple(groups[task.id])) for task in tasks.tasks.values()]
