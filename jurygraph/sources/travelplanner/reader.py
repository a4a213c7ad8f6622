"""Convert a file of TravelPlanner to tasks, one line at a time."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, JsonValue, ValidationError

from jurygraph.errors import InputError
from jurygraph.messages import Problem, describe_validation_error, did_you_mean, quote
from jurygraph.schema import FrozenModel, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import raise_line_error, read_lines
from jurygraph.sources.travelplanner.constraints import constraints
from jurygraph.sources.travelplanner.query import read_query
from jurygraph.sources.travelplanner.tables import claim_rules, origin_of, tables

N = TypeVar("N", bound=FrozenModel)
T = TypeVar("T")


UNREAD = "unread"
"""Key in a task's metadata: words of its query about a constraint that no rule understands."""


class _Line(FrozenModel):
    """A line of the file: a query, its tables, and the reference plan, a record for each day."""

    id: Id
    query: str
    facts: dict[str, JsonValue]
    plan: list[dict[str, JsonValue]] | None = None


class _Profiles(FrozenModel):
    """The travellers of a task."""

    task: Id
    stakeholders: tuple[Stakeholder, ...] = Field(min_length=1)
    tensions: tuple[Tension, ...] = ()


class _ProfilesByTask(NamedTuple):
    """The profiles of a file by task, each with the number of its line."""

    name: str
    lines: Mapping[str, tuple[int, _Profiles]]


def read_travelplanner(path: str | Path, stakeholders: str | Path | None = None) -> Iterator[TaskLine]:
    """Yield every line as a task with its reference plan as the one response.

    Without `stakeholders` (lines of {"task", "stakeholders", "tensions"}), a single stakeholder has the query's own
    constraints. Raises `InputError` naming file, line and field.
    """
    profiles = None if stakeholders is None else _read_profiles(stakeholders)
    ids: set[str] = set()
    with closing(TextFile(path)) as file:
        for line, entry in read_lines(file, _Line):
            if entry.id in ids:
                raise_line_error(
                    file.name, line.number, Problem(("id",), f"is {quote(entry.id)} again", "give each one id")
                )
            ids.add(entry.id)
            yield _to_task(file.name, line.number, entry, profiles)
    if not ids:
        raise InputError(f"{file.name}: holds no lines; name a file of TravelPlanner's queries")
    if profiles is not None:
        _refuse_unknown(profiles, ids, file.name)


def _refuse_unknown(profiles: _ProfilesByTask, ids: Collection[str], name: str) -> None:
    for task, (number, _) in profiles.lines.items():
        if task not in ids:
            problem = f"is {quote(task)}, which {name} does not have"
            raise_line_error(
                profiles.name, number, Problem(("task",), problem, did_you_mean(task, ids) or "leave the line out")
            )


def _read_profiles(path: str | Path) -> _ProfilesByTask:
    lines: dict[str, tuple[int, _Profiles]] = {}
    with closing(TextFile(path)) as file:
        for line, entry in read_lines(file, _Profiles):
            if entry.task in lines:
                raise_line_error(
                    file.name, line.number, Problem(("task",), f"is {quote(entry.task)} again", "keep one of them")
                )
            content = {"id": entry.task, "query": "", **entry.model_dump(mode="json", exclude={"task"})}
            _validate(file.name, line.number, Task, content)
            lines[entry.task] = line.number, entry
    return _ProfilesByTask(file.name, lines)


def _to_task(name: str, number: int, line: _Line, profiles: _ProfilesByTask | None) -> TaskLine:
    request = _read_field(name, number, "query", lambda: read_query(line.query))
    facts = {
        "tables": _read_field(name, number, "facts", lambda: tables(line.facts)),
        "claims": claim_rules(request.dates),
    }
    people: dict[str, Any]
    if profiles is None:
        query_constraints = constraints(request, origin_of(line.query, line.facts))
        people = {"stakeholders": [{"id": "travellers", "constraints": query_constraints}]}
    elif line.id in profiles.lines:
        people = profiles.lines[line.id][1].model_dump(mode="json", exclude={"task"})
    else:
        raise_line_error(
            name, number, Problem(("id",), f"is {quote(line.id)}, which {profiles.name} does not have", "add it")
        )
    reference = {"id": f"{line.id}/reference", "agent": "reference", "text": _plan_text(line.plan), "data": line.plan}
    content = {"id": line.id, "query": line.query, "facts": facts, **people}
    if profiles is None and request.unread:
        content["metadata"] = {UNREAD: list(request.unread)}
    return _validate(name, number, TaskLine, {**content, "responses": [] if line.plan is None else [reference]})


def _read_field(name: str, number: int, field: str, read: Callable[[], T]) -> T:
    """Read a field of a line; raises its error with file and line."""
    try:
        return read()
    except ValueError as error:
        raise_line_error(name, number, Problem((field,), str(error)))


def _validate(name: str, number: int, model: type[N], content: Mapping[str, Any]) -> N:
    """Validate the content of a line; raises its error with file and line."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise_line_error(name, number, describe_validation_error(error, model, content))


def _plan_text(plan: list[dict[str, JsonValue]] | None) -> str:
    """Return a plan as text, a line for each day."""
    return "\n".join(json.dumps(day, ensure_ascii=False) for day in plan or ())
