"""From a file of TravelPlanner to tasks, one line at a time."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, JsonValue, ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import Noun, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.noun import Id
from jurygraph.sources.complaint import Complaint, complaint, nearest, quoted
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import read_lines, refuse
from jurygraph.sources.travelplanner.constraints import constraints
from jurygraph.sources.travelplanner.query import read_query
from jurygraph.sources.travelplanner.tables import claims, origin_of, tables

N = TypeVar("N", bound=Noun)
T = TypeVar("T")


UNREAD = "unread"
"""In a task's metadata: what its query speaks of in words that no rule understands."""


class _Line(Noun):
    """A line of the file: a query, its tables, and the reference plan, a record for each day."""

    id: Id
    query: str
    facts: dict[str, JsonValue]
    plan: list[dict[str, JsonValue]] | None = None


class _Profiles(Noun):
    """Who travels on a task."""

    task: Id
    stakeholders: tuple[Stakeholder, ...] = Field(min_length=1)
    tensions: tuple[Tension, ...] = ()


class _Joined(NamedTuple):
    """The profiles of a file by task, each with the number of its line."""

    name: str
    lines: Mapping[str, tuple[int, _Profiles]]


def read_travelplanner(path: str | Path, stakeholders: str | Path | None = None) -> Iterator[TaskLine]:
    """Every line as a task with its reference plan as the one response.

    Without `stakeholders` (lines of {"task", "stakeholders", "tensions"}), one holds the query's own constraints.
    Raises `InputError` naming file, line and field.
    """
    profiles = None if stakeholders is None else _profiles(stakeholders)
    known: set[str] = set()
    with closing(TextFile(path)) as file:
        for line, found in read_lines(file, _Line):
            if found.id in known:
                refuse(file.name, line.number, Complaint(("id",), f"is {quoted(found.id)} again", "give each one id"))
            known.add(found.id)
            yield _task(file.name, line.number, found, profiles)
    if not known:
        raise InputError(f"{file.name}: holds no lines; name a file of TravelPlanner's queries")
    if profiles is not None:
        _refuse_unknown(profiles, known, file.name)


def _refuse_unknown(profiles: _Joined, known: Collection[str], name: str) -> None:
    for task, (number, _) in profiles.lines.items():
        if task not in known:
            wrong = f"is {quoted(task)}, which {name} does not have"
            refuse(profiles.name, number, Complaint(("task",), wrong, nearest(task, known) or "leave the line out"))


def _profiles(path: str | Path) -> _Joined:
    found: dict[str, tuple[int, _Profiles]] = {}
    with closing(TextFile(path)) as file:
        for line, one in read_lines(file, _Profiles):
            if one.task in found:
                refuse(file.name, line.number, Complaint(("task",), f"is {quoted(one.task)} again", "keep one of them"))
            content = {"id": one.task, "query": "", **one.model_dump(mode="json", exclude={"task"})}
            _made(file.name, line.number, Task, content)
            found[one.task] = line.number, one
    return _Joined(file.name, found)


def _task(name: str, number: int, line: _Line, profiles: _Joined | None) -> TaskLine:
    asked = _understood(name, number, "query", lambda: read_query(line.query))
    facts = {"tables": _understood(name, number, "facts", lambda: tables(line.facts)), "claims": claims(asked.dates)}
    people: dict[str, Any]
    if profiles is None:
        stated = constraints(asked, origin_of(line.query, line.facts))
        people = {"stakeholders": [{"id": "travellers", "constraints": stated}]}
    elif line.id in profiles.lines:
        people = profiles.lines[line.id][1].model_dump(mode="json", exclude={"task"})
    else:
        refuse(name, number, Complaint(("id",), f"is {quoted(line.id)}, which {profiles.name} does not have", "add it"))
    reference = {"id": f"{line.id}/reference", "agent": "reference", "text": _shown(line.plan), "data": line.plan}
    content = {"id": line.id, "query": line.query, "facts": facts, **people}
    if profiles is None and asked.unread:
        content["metadata"] = {UNREAD: list(asked.unread)}
    return _made(name, number, TaskLine, {**content, "responses": [] if line.plan is None else [reference]})


def _understood(name: str, number: int, field: str, read: Callable[[], T]) -> T:
    """What is read from a field of a line."""
    try:
        return read()
    except ValueError as error:
        refuse(name, number, Complaint((field,), str(error)))


def _made(name: str, number: int, noun: type[N], content: Mapping[str, Any]) -> N:
    """What the content of a line makes."""
    try:
        return noun.model_validate(content)
    except ValidationError as error:
        refuse(name, number, complaint(error, noun, content))


def _shown(plan: list[dict[str, JsonValue]] | None) -> str:
    """A plan as text, a line for each day."""
    return "\n".join(json.dumps(day, ensure_ascii=False) for day in plan or ())
