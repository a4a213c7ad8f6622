"""The tasks of a TASKS file, with or without responses: for commands that read tasks and score nothing."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NoReturn, Self

from jurygraph.errors import InputError
from jurygraph.messages import Problem, quote
from jurygraph.schema import Task, TaskLine
from jurygraph.sources.files import ByteRange, Line, TextFile, require_temporary_space
from jurygraph.sources.index import TaskIndex
from jurygraph.sources.json_lines import raise_line_error, read_lines, reread_line


class TaskLines:
    """The tasks of a TASKS file that are `wanted`. The constructor validates every line. Open until `close`."""

    def __init__(self, path: str | Path, wanted: Callable[[Task], bool]) -> None:
        """Validate the file. Raises `InputError` with file, line and field, and for a file without a line."""
        self._wanted: list[tuple[int, ByteRange]] = []
        self._places: dict[str, ByteRange] = {}
        with require_temporary_space(), closing(TaskIndex()) as index, ExitStack() as resources:
            self._file = resources.enter_context(closing(TextFile(path)))
            for number, (line, task) in enumerate(read_lines(self._file, TaskLine)):
                earlier = index.add_task(number, task.id, line)
                if earlier is not None:
                    self._refuse_taken(line, task.id, earlier)
                self._places[task.id] = line.place
                if wanted(task):
                    self._wanted.append((line.number, line.place))
            if not self._places:
                raise InputError(f"{self._file.name}: the file is empty; write one task per line, each a JSON object")
            resources.pop_all()

    def _refuse_taken(self, line: Line, name: str, earlier: int) -> NoReturn:
        problem = f"task {quote(name)} stands already in line {earlier}"
        raise_line_error(self._file.name, line.number, Problem(("id",), problem, "give each task an id of its own"))

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.name

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each wanted task, with its line."""
        for number, place in self._wanted:
            yield number, reread_line(self._file, place, TaskLine).split()[0]

    def raw(self) -> Iterator[tuple[str, bytes]]:
        """Return every line as written, wanted or not, without its end, and the id of its task."""
        return ((name, self._file.read(place).rstrip()) for name, place in self._places.items())

    @property
    def ids(self) -> Collection[str]:
        """The ids of all tasks."""
        return self._places.keys()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
