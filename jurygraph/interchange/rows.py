"""Rows of published benchmarks, each of which becomes a task; shared by their formats.

Rubrics are scored as GEAR's profiles do (its Table 9 and D.2): HealthBench's by a probability, WritingBench's on its
scale, PLawBench's by partial credit.
"""

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from jurygraph.errors import InputError
from jurygraph.messages import Problem, join_names, quote
from jurygraph.schema import FrozenModel, TaskLine
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, Number, StrPath
from jurygraph.sources.files import (
    TextFile,
    raise_field_error,
    read_lines,
    validate_at_location,
)
from jurygraph.sources.table_rows import is_json_array, read_rows

M = TypeVar("M", bound=FrozenModel)

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)


def _text_to_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value


NOT_EMPTY: Any = Field(min_length=1)
"""Of a field: its text has a character, or its list an entry."""

ShortName = Annotated[str, StringConstraints(max_length=240)]
"""Part of an id: two of them, and the number of a response, are no longer than an id may be."""

WHOLE_NUMBER_AS_TEXT: Any = BeforeValidator(
    lambda value: str(value) if type(value) is int else value
)
"""Of a field: a whole number is read as text."""

RowKey = Annotated[ShortName, NOT_EMPTY, WHOLE_NUMBER_AS_TEXT]
"""Id of a published row: text, or a whole number, which is read as text."""

StrippedKey = Annotated[RowKey, StringConstraints(strip_whitespace=True)]
"""A name in a published row, without blanks around it."""

CriterionPoints = Annotated[Number, BeforeValidator(_text_to_number)]
"""A finite number; PLawBench writes it as text."""


class ImportedRow(FrozenModel):
    """A row of a published file, or a part of one. Publishers may add fields: those that are not read are kept."""

    model_config = ConfigDict(extra="allow")

    @property
    def other(self) -> JsonFields:
        return nonempty_fields(**(self.model_extra or {}))


class ImportedTurn(ImportedRow):
    role: Literal["system", "user", "assistant", "tool"]
    content: str

    def message(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


class ImportNote(NamedTuple):
    """A row or part that was left out or is odd: what it is, in the plural, and its location."""

    what: str
    where: str


def describe_notes(notes: Iterable[ImportNote]) -> list[str]:
    """Return each kind of note, with the number of those of it and the first locations."""
    locations_by_text = defaultdict(list)
    for note_text, location in notes:
        locations_by_text[note_text].append(location)
    return [
        f"{note_text}: {len(locations)} ({join_names(locations)})"
        for note_text, locations in locations_by_text.items()
    ]


class ImportResult(NamedTuple):
    """A row as a task, or None if it is left out, and notes about it."""

    task: TaskLine | None
    notes: tuple[ImportNote, ...] = ()


TaskFieldsAndNotes = tuple[JsonMapping | None, Sequence[ImportNote]]
"""The fields of a row's task line, or None if the row is left out, for the reason in the last note; and the notes."""


class TaskRow(ImportedRow):
    KEY: ClassVar[str | None]
    """The field with the id of a row; None if the id is computed from the whole row."""
    EXPECTED_FILE_CONTENT: ClassVar[str]
    """The expected content of a file in words, for the error about an empty one."""
    REPEAT_REMEDY: ClassVar[str] = "keep one of them"

    @abstractmethod
    def to_content(self) -> TaskFieldsAndNotes:
        """Convert the row to the content of a task."""

    @classmethod
    def read(cls, path: StrPath) -> Iterator[ImportResult]:
        """Yield every row of a file, as `read_entries` does.

        Raises `InputError` if an entry is not a valid row, if an id occurs twice, or if no row makes a task.
        """
        location_by_task: dict[str, str] = {}
        left_out: list[ImportNote] = []
        for location, row in read_entries(path, cls):
            fields, notes = row.to_content()
            if fields is None:
                left_out.append(notes[-1])
                yield ImportResult(None, tuple(notes))
                continue
            task = validate_at_location(location, TaskLine, fields)
            first = location_by_task.setdefault(task.id, location)
            if first != location:
                position = first.rpartition(", ")[2]
                problem = f"makes the task {quote(task.id)}, which is already in {position}"
                id_field_path = () if cls.KEY is None else (cls.KEY,)
                raise_field_error(location, Problem(id_field_path, problem, cls.REPEAT_REMEDY))
            yield ImportResult(task, tuple(notes))
        if not location_by_task:
            notes_text = "; ".join(describe_notes(left_out))
            reason = f"has no row that makes a task ({notes_text})" if left_out else "holds no rows"
            raise InputError(
                f"{Path(path).name}: {reason}; name a file of {cls.EXPECTED_FILE_CONTENT}"
            )


def read_entries(path: StrPath, model: type[M]) -> Iterator[tuple[str, M]]:
    """Yield each line of a file of JSON lines (`.gz` too; `-` is standard input), or entry of an array in a `.json`.

    With each is its location: "in.jsonl, line 7" or "in.json, [7]". Raises `InputError` with location and field.
    """
    if is_json_array(Path(path)):
        for position, row in read_rows(Path(path)):
            location = f"{Path(path).name}, {position}"
            yield location, validate_at_location(location, model, row)
        return
    with TextFile(path) as file:
        for line, value in read_lines(file, model):
            yield f"{file.name}, line {line.number}", value


def nonempty_fields(**fields: Any) -> JsonFields:
    """Return the fields that are neither null nor empty, as JSON values."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value not in (None, "", [], {}, ())
    }


EMPTY_CRITERIA_IMPORT_NOTE = "criteria without words, or of 0 points, are left out"
NONPOSITIVE_WEIGHTS_IMPORT_NOTE = (
    "tasks whose rubric has no criterion of positive weight are left out, "
    "since no reward can be formed from it"
)


def add_rubric(
    task: JsonMapping, items: Iterable[JsonMapping], notes: Sequence[ImportNote] = ()
) -> TaskFieldsAndNotes:
    """Return the task with a rubric of these items, each the fields of a criterion.

    The task is left out if no weight is above 0. An item's `about`, with other published fields, goes to the task's
    metadata, by the id of the criterion. Ids count the published items, so that leaving one out renames no other.
    """
    all_notes = list(notes)
    criteria = []
    about: JsonFields = {}
    for number, item in enumerate(items, 1):
        name = item.get("id", f"criterion-{number}")
        if not item["text"].strip() or item["weight"] == 0:
            all_notes.append(ImportNote(EMPTY_CRITERIA_IMPORT_NOTE, f"{task['id']}: {name}"))
            continue
        fields = {field: value for field, value in item.items() if field != "about"}
        criteria.append({**fields, "id": name})
        about |= nonempty_fields(**{name: item["about"]})
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return None, [*all_notes, ImportNote(NONPOSITIVE_WEIGHTS_IMPORT_NOTE, task["id"])]
    metadata = {**task["metadata"], **nonempty_fields(criteria=about)}
    return {**task, "metadata": metadata, "rubric": {"criteria": criteria}}, all_notes


class ScoredItem(ImportedRow):
    """A criterion for a response, or the required content of a section of it, and its points, possibly negative."""

    criterion: str
    points: CriterionPoints

    def criterion_fields(self) -> JsonFields:
        return {"text": self.criterion, "weight": self.points, "about": self.other}
