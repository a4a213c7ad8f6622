"""TravelPlanner (Xie et al., ICML 2024): its queries, tables and plans as tasks, one row at a time.

Published columns are read where they are; queries are parsed by rules on their words. Constraints become checks, and
plans are read as claims about tables.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

from pydantic import BeforeValidator, Field, JsonValue

from examples.group_trip.travelplanner.columns import Columns, Reading, parse_literal, read_request
from examples.group_trip.travelplanner.fact_tables import claim_rules, origin_of, tables
from examples.group_trip.travelplanner.reference_text import read_reference
from examples.group_trip.travelplanner.trip_checks import constraints
from jurygraph.errors import InputError
from jurygraph.interchange.rows import ImportNote, ImportResult, RowKey, nonempty_fields
from jurygraph.messages import Problem, quote, validate
from jurygraph.schema import FrozenModel, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import (
    TaskKeyedFile,
    TextFile,
    describe_field_error,
    parse_lines,
    raise_line_error,
    validate_at_location,
)
from jurygraph.sources.table_rows import read_rows

UNREAD, ASSUMED, DIFFERS = "unread", "assumed", "differs"
"""Keys in a task's metadata: words of its query about a constraint that no rule understands; what no text states, and
is assumed; and where a column and the query differ, of which the column counts."""
NOTES = {
    UNREAD: "phrases in queries that no rule parses were not imported as constraints",
    ASSUMED: "queries do not state how many people travel; one person is assumed",
    DIFFERS: "columns and queries differ; the columns count",
}
FACTLESS = "rows have no tables of facts, so that nothing in a plan can be looked up"

_MAX_QUERY_CHARACTERS = 4_000
"""Characters, several times the longest published query; the time to read one grows with the square of its length."""


class Skipped(NamedTuple):
    """A row that cannot be read: the error, with file, line and field."""

    error: str


class _Row(Columns):
    """A row of the file: a query, its tables, and the reference plan, a record for each day."""

    id: Id | None = None
    idx: RowKey | None = None
    query: str = Field(min_length=1, max_length=_MAX_QUERY_CHARACTERS)
    facts: dict[str, JsonValue] | None = None
    reference_information: Annotated[JsonValue, BeforeValidator(parse_literal)] = None
    plan: list[dict[str, JsonValue]] | None = None
    annotated_plan: Annotated[JsonValue, BeforeValidator(parse_literal)] = None


class _Profiles(FrozenModel):
    """The travellers of a task."""

    task: Id
    stakeholders: tuple[Stakeholder, ...] = Field(min_length=1)
    tensions: tuple[Tension, ...] = ()

    @property
    def people(self) -> dict[str, Any]:
        """The fields of a task that they fill."""
        return self.model_dump(mode="json", exclude={"task"})


class _ProfilesFile(TaskKeyedFile[_Profiles]):
    """The profiles of a file by task."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(TextFile(path), _Profiles, "task", "keep one of them")

    def _check(self, number: int, entry: _Profiles) -> None:
        location = f"{self._file.name}, line {number}"
        validate_at_location(location, Task, {"id": entry.task, "query": "", **entry.people})


def import_travelplanner(
    path: str | Path, stakeholders: str | Path | None = None
) -> Iterator[ImportResult | Skipped]:
    """Yield every row as a task with its reference plan as the one response, or the error for which it is skipped.

    The file has JSON lines, or is CSV. Without `stakeholders` (lines of {"task", "stakeholders", "tensions"}), a single
    stakeholder has the query's own constraints. Raises `InputError` if no row can be read, and for an error in
    `stakeholders`.
    """
    with ExitStack() as stack:
        profiles = (
            None if stakeholders is None else stack.enter_context(_ProfilesFile(stakeholders))
        )
        importer = _Importer("standard input" if str(path) == "-" else Path(path).name, profiles)
        for number, row in _read_rows(path, stack):
            yield importer.convert(number, row)
        importer.finish()


def read_travelplanner(
    path: str | Path, stakeholders: str | Path | None = None
) -> Iterator[TaskLine]:
    """Yield the task of every row. Raises `InputError` for a row that cannot be read, and as `import_travelplanner`."""
    for row in import_travelplanner(path, stakeholders):
        if isinstance(row, Skipped):
            raise InputError(row.error)
        if row.task is not None:
            yield row.task


def _read_rows(path: str | Path, stack: ExitStack) -> Iterator[tuple[int, _Row | Problem]]:
    """Yield each row, or what is wrong with it, and its line."""
    if Path(path).name.removesuffix(".gz").endswith(".csv"):
        for place, values in read_rows(Path(path)):
            filled = {column: value for column, value in values.items() if value != ""}
            yield int(place.removeprefix("line ")), validate(_Row, filled)
    else:
        file = stack.enter_context(TextFile(path))
        for line, entry in parse_lines(file, _Row):
            yield line.number, entry


class _Importer:
    """Conversion of the rows of one file; it remembers their ids."""

    def __init__(self, name: str, profiles: _ProfilesFile | None) -> None:
        self._name, self._profiles = name, profiles
        self._lines: dict[str, int] = {}
        self._errors: list[str] = []
        self._skipped: set[str] = set()

    def convert(self, number: int, row: _Row | Problem) -> ImportResult | Skipped:
        """Return the task of a row with notes, or the error in it."""
        found = row if isinstance(row, Problem) else self._convert(number, row)
        if isinstance(found, ImportResult):
            return found
        if isinstance(row, _Row):
            self._skipped.add(_id_of(number, row))
        self._errors.append(describe_field_error(f"{self._name}, line {number}", found))
        return Skipped(self._errors[-1])

    def _convert(self, number: int, row: _Row) -> ImportResult | Problem:
        task_id, field = _id_of(number, row), "id"
        try:
            if task_id in self._lines:
                raise ValueError(
                    f"is {quote(task_id)} again, as in line {self._lines[task_id]}; give each row one id"
                )
            field = "query"
            reading = read_request(row.query, row)
            field = "facts" if row.facts is not None else "reference_information"
            facts = (
                row.facts if row.facts is not None else read_reference(row.reference_information)
            )
            content = _to_content(task_id, row, reading, facts)
            field = "annotated_plan"
            content["responses"] = list(_responses(task_id, row))
        except ValueError as error:
            return Problem((field,), str(error))
        if self._profiles is not None:
            content |= {**self._people_of(number, task_id, self._profiles), "metadata": {}}
        task = validate(TaskLine, content)
        if isinstance(task, Problem):
            return task
        self._lines[task_id] = number
        return ImportResult(
            task, (*_notes(task), *([] if facts is not None else [ImportNote(FACTLESS, task_id)]))
        )

    def _people_of(self, number: int, task_id: str, profiles: _ProfilesFile) -> dict[str, Any]:
        travellers = profiles.get(task_id)
        if travellers is None:
            problem = f"is {quote(task_id)}, which {profiles.file_digest.name} does not have"
            raise_line_error(self._name, number, Problem(("id",), problem, "add it"))
        return travellers.people

    def finish(self) -> None:
        """Raise `InputError` if no row could be read, or if a profile is of no row."""
        if not self._lines:
            count = len(self._errors)
            several = (
                f"{self._name}: none of its {count} rows can be read; the first error: "
                if count > 1
                else ""
            )
            empty = f"{self._name}: holds no lines; name a file of TravelPlanner's queries"
            raise InputError(several + self._errors[0] if self._errors else empty)
        if self._profiles is not None:
            ids = {*self._lines, *self._skipped}
            self._profiles.refuse_unknown(
                ids.__contains__, ids, f"name a task of {self._name}, or leave the line out"
            )


def _id_of(number: int, row: _Row) -> str:
    return row.id or row.idx or f"row-{number}"


def _notes(task: TaskLine) -> Iterator[ImportNote]:
    """Yield a note for each word in the metadata about how the query was read."""
    for key, text in NOTES.items():
        for words in cast(list[str], task.metadata.get(key, [])):
            yield ImportNote(text, task.id if key == ASSUMED else f"{task.id}: {words}")


def _to_content(
    task_id: str, row: _Row, reading: Reading, facts: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the fields of a task with the constraints of its query."""
    request = reading.request
    origin = row.org or origin_of(row.query, facts or {})
    told = {
        UNREAD: request.unread,
        ASSUMED: ("people",) if request.is_assumed else (),
        DIFFERS: reading.differs,
    }
    columns = nonempty_fields(
        level=row.level, org=row.org, dest=row.dest, visiting_city_number=row.visiting_city_number
    )
    content: dict[str, Any] = {
        "id": task_id,
        "query": row.query,
        "stakeholders": [{"id": "travellers", "constraints": constraints(request, origin)}],
        "metadata": nonempty_fields(**told) | columns,
    }
    if facts is not None:
        content["facts"] = {"tables": tables(facts), "claims": claim_rules(request.dates)}
    return content


def _responses(task_id: str, row: _Row) -> Iterator[dict[str, Any]]:
    """Yield the plan, if there is one, with the number of each day in `days`, where the claims look for it."""
    plan = row.plan if row.plan is not None else _annotated_days(row.annotated_plan)
    if plan is not None:
        days = [
            {("days" if key == "day" else key): value for key, value in day.items()} for day in plan
        ]
        text = "\n".join(json.dumps(day, ensure_ascii=False) for day in days)
        yield {"id": f"{task_id}/reference", "agent": "reference", "text": text, "data": days}


def _annotated_days(plan: Any) -> list[dict[str, Any]] | None:
    """Return the days of an `annotated_plan`: [the row's columns, the days], where spare days are empty."""
    if plan is None:
        return None
    days = plan[-1] if isinstance(plan, list) and plan and isinstance(plan[-1], list) else plan
    if not isinstance(days, list) or not all(isinstance(day, dict) for day in days):
        raise ValueError("is not a list of the columns and the days; each day is a record")
    return [day for day in days if day]
