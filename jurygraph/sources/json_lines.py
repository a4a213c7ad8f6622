"""Read lines of JSON as models. Ambiguous JSON is rejected: duplicate keys, NaN, unpaired surrogates."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, NoReturn, Self, TypeVar

from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.messages import Path as FieldPath
from jurygraph.messages import Problem, describe_validation_error, describe_value, did_you_mean, quote, validate
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import decode_strictly, iter_parts
from jurygraph.sources.files import ByteRange, FileDigest, TextFile, TextLine

N = TypeVar("N", bound=FrozenModel)

_MAX_DEPTH = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_lines(file: TextFile, model: type[N]) -> Iterator[tuple[TextLine, N]]:
    """Yield every line of the file as a model. Raises `InputError` with file, line and field."""
    for line, entry in parse_lines(file, model):
        if isinstance(entry, Problem):
            raise_line_error(file.name, line.number, entry)
        yield line, entry


def parse_lines(file: TextFile, model: type[N]) -> Iterator[tuple[TextLine, N | Problem]]:
    """Yield every line of the file as a model, or the error in it."""
    return ((line, _parse_line(line.text, model)) for line in file.lines())


def reread_line(file: TextFile, place: ByteRange, model: type[N]) -> N:
    """Return the model of a line that `read_lines` has yielded before."""
    return model.model_validate_json(file.read(place), strict=True)


def validate_line(name: str, line: int, model: type[N], content: Any) -> N:
    """Return the content of a line of a file as a model. Raises `InputError` with file, line and field."""
    entry = validate(model, content)
    if isinstance(entry, Problem):
        raise_line_error(name, line, entry)
    return entry


def raise_line_error(name: str, line: int, problem: Problem) -> NoReturn:
    """Raise the error in a line of a file."""
    raise InputError(describe_line_error(name, line, problem))


def describe_line_error(name: str, line: int, problem: Problem) -> str:
    """Return the message of the error in a line of a file."""
    return f"{name}, line {line}{f', field {problem.field}' if problem.path else ''}: {problem}"


class TaskKeyedFile(Generic[N]):
    """A file with a line for each of some tasks, validated as a whole; lines are read again when needed.

    Open until `close`.
    """

    def __init__(
        self, path: str | Path, model: type[N], key: str, duplicate_hint: str, empty_hint: str | None = None
    ) -> None:
        """Validate the file, whose lines name their task in the field `key`.

        Raises `InputError` with file, line and field; also for a file without a line if there is an `empty_hint`.
        """
        self._file = TextFile(path)
        self._model = model
        self._key = key
        self._lines: dict[str, tuple[int, ByteRange]] = {}
        try:
            for line, entry in read_lines(self._file, model):
                task_id = getattr(entry, key)
                if task_id in self._lines:
                    problem = f"task {quote(task_id)} is already in line {self._lines[task_id][0]}"
                    self._refuse(line.number, (key,), problem, duplicate_hint)
                self._lines[task_id] = line.number, line.place
                self._check(line.number, entry)
            if empty_hint is not None and not self._lines:
                raise InputError(f"{self._file.name}: the file is empty; {empty_hint}")
        except BaseException:
            self.close()
            raise

    def _check(self, number: int, entry: N) -> None:
        """Check a line beyond its model."""

    def refuse_unknown(self, is_known: Callable[[str], object], ids: Iterable[str], hint: str) -> None:
        """Raise `InputError`, with the hint `hint` if none of the `ids` is similar, for a task that is not known."""
        for name, (number, _) in self._lines.items():
            if not is_known(name):
                remedy = did_you_mean(name, ids) or hint
                self._refuse(number, (self._key,), f"there is no task {quote(name)}", remedy)

    def _refuse(self, number: int, path: FieldPath, problem: str, remedy: str) -> NoReturn:
        raise_line_error(self._file.name, number, Problem(path, problem, remedy))

    @property
    def file_digest(self) -> FileDigest:
        """Name and digest of the file."""
        return self._file.file_digest

    def __len__(self) -> int:
        """Return the number of tasks in the file."""
        return len(self._lines)

    def __iter__(self) -> Iterator[N]:
        """Yield the entries of all tasks, in the order of the file."""
        return (reread_line(self._file, place, self._model) for _, place in self._lines.values())

    def get(self, task_id: str) -> N | None:
        """Return the entry of a task; None if there is none."""
        return reread_line(self._file, self._lines[task_id][1], self._model) if task_id in self._lines else None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parse_line(text: str, model: type[N]) -> N | Problem:
    value = _parse_value(text)
    if isinstance(value, Problem):
        return value
    if not isinstance(value, dict):
        return Problem((), f"is {describe_value(value)}", 'each line is one JSON object, such as {"id": "a", …}')
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["type"] != "json_invalid":
            return describe_validation_error(error, model, value)
        halves = (path for path, part in iter_parts(value) if isinstance(part, str) and _SURROGATE.search(part))
        problem = "holds half of a surrogate pair, which is not a character"
        return Problem(next(halves, ()), problem, "write the whole character")


def _parse_value(text: str) -> Any:
    try:
        value = decode_strictly(text)
        if text.count("{") + text.count("[") > _MAX_DEPTH and _depth(value) > _MAX_DEPTH:
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        return _describe_invalid(error)
    except RecursionError:
        return Problem((), "is nested too deeply", f"keep it within {_MAX_DEPTH} levels")


def _describe_invalid(error: json.JSONDecodeError) -> Problem:
    if error.msg == "Extra data":
        problem = f"goes on at column {error.colno} after its JSON object"
        return Problem((), problem, "put each object on a line of its own")
    problem = f"is not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    return Problem((), problem, "each line is one whole JSON object")


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
