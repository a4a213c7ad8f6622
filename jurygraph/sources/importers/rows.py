"""Base of the readers: rows that may have unknown fields, and notes about them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints

from jurygraph.errors import InputError
from jurygraph.messages import Problem, quote
from jurygraph.schema import FrozenModel, TaskLine
from jurygraph.schema.frozen_model import Number
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import raise_line_error, read_lines, validate_line

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)


def _int_to_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text_to_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value


Name = Annotated[str, StringConstraints(max_length=240)]
"""Part of an id: two of them, and the number of a response, are no longer than an id may be."""

Key = Annotated[Name, Field(min_length=1), BeforeValidator(_int_to_text)]
"""Id of a published row: text, or a whole number, which is read as text."""

Points = Annotated[Number, BeforeValidator(_text_to_number)]
"""A finite number; PLawBench writes it as text."""


class Row(FrozenModel):
    """A row of a published file, or a part of one.

    `other` has fields that are not read here, which the publisher may add.
    """

    model_config = ConfigDict(extra="allow")

    @property
    def other(self) -> dict[str, JsonValue]:
        """The fields that are not read, by name."""
        return dict(self.model_extra or {})


class Turn(Row):
    """A message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str

    def message(self) -> dict[str, str]:
        """Return the message in the form of a task's query."""
        return {"role": self.role, "content": self.content}


class Note(NamedTuple):
    """A row or part that was left out or is odd: what it is, in the plural, and its location."""

    what: str
    where: str


class Content(NamedTuple):
    """The result of a row: the fields of a task line, or None if it is left out, for the reason in the last note."""

    task: Mapping[str, Any] | None
    notes: tuple[Note, ...] = ()


class Imported(NamedTuple):
    """A row as a task, or None if it is left out, and notes about it."""

    task: TaskLine | None
    notes: tuple[Note, ...] = ()


R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Format(Generic[R]):
    """A published format: the model of a row, and the conversion of a row to the content of a task.

    `key` is the field with the id of a row; None if the id is computed from the whole row. `expected` is the expected
    content in words, for the error about an empty file.
    """

    model: type[R]
    to_content: Callable[[R], Content]
    key: str | None
    expected: str

    def read(self, path: str | Path) -> Iterator[Imported]:
        """Yield every row of a file of JSON lines (`.gz` too; `-` is standard input).

        Raises `InputError` if a line is not a valid row, if an id occurs twice, or if no row makes a task.
        """
        seen: dict[str, int] = {}
        last_reason = ""
        with closing(TextFile(path)) as file:
            _refuse_array(file)
            for line, row in read_lines(file, self.model):
                fields, notes = self.to_content(row)
                task = None if fields is None else validate_line(file.name, line.number, TaskLine, fields)
                if task is None:
                    last_reason = f"{notes[-1].what}: {notes[-1].where}"
                elif seen.setdefault(task.id, line.number) != line.number:
                    raise_line_error(file.name, line.number, self._duplicate_error(task.id, seen[task.id]))
                yield Imported(task, notes)
        if not seen:
            problem = f"has no row that makes a task ({last_reason})" if last_reason else "holds no rows"
            raise InputError(f"{file.name}: {problem}; name a file of {self.expected}")

    def _duplicate_error(self, task: str, earlier: int) -> Problem:
        if self.key is None:
            return Problem((), f"is the same row as line {earlier}", "keep one of them")
        problem = f"makes the task {quote(task)}, which is already in line {earlier}"
        return Problem((self.key,), problem, "give each row an id of its own")


def _refuse_array(file: TextFile) -> None:
    line = next(file.lines(), None)
    if line is not None and line.text.lstrip().startswith("["):
        remedy = "write one object a line, as `jq -c '.[]' FILE` does"
        raise_line_error(file.name, line.number, Problem((), "begins a JSON array", remedy))


def nonempty_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that are neither null nor empty, as JSON values."""
    nonempty = {name: value for name, value in fields.items() if value not in (None, "", [], {}, ())}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in nonempty.items()}


WORDLESS = "criteria without words are left out"
WORTHLESS = "criteria of 0 points are left out"
NO_GAIN = "tasks whose rubric has no criterion of positive weight are left out, since no reward can be formed from it"


def with_rubric(task: Mapping[str, Any], items: Iterable[Mapping[str, Any]], notes: Sequence[Note] = ()) -> Content:
    """Return the task with a rubric of these items, each the fields of a criterion.

    The task is left out if no weight is above 0. An item's `about`, with other published fields, goes to the task's
    metadata, by the id of the criterion. Ids count the published items, so that leaving one out renames no other.
    """
    all_notes, criteria = list(notes), []
    about: dict[str, Any] = {}
    for number, item in enumerate(items, 1):
        name = f"criterion-{number}"
        if not item["text"].strip():
            all_notes.append(Note(WORDLESS, f"{task['id']}: {name}"))
        elif item["weight"] == 0:
            all_notes.append(Note(WORTHLESS, f"{task['id']}: {name}"))
        else:
            criteria.append({"id": name, **{field: value for field, value in item.items() if field != "about"}})
            about |= {name: item["about"]} if item["about"] else {}
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return Content(None, (*all_notes, Note(NO_GAIN, task["id"])))
    metadata = {**task["metadata"], **({"criteria": about} if about else {})}
    return Content({**task, "metadata": metadata, "rubric": {"criteria": criteria}}, tuple(all_notes))
