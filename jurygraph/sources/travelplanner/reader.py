"""Convert a file of TravelPlanner to tasks, one line at a time: its facts to tables, its plans' wording to claims."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from jurygraph.errors import InputError
from jurygraph.messages import Problem, did_you_mean, quote
from jurygraph.schema import FrozenModel, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import TaskKeyedFile, raise_line_error, read_lines, validate_line
from jurygraph.sources.travelplanner.query import constraints, read_query
from jurygraph.sources.yaml_document import Document

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

    @property
    def people(self) -> dict[str, Any]:
        """The fields of a task that they fill."""
        return self.model_dump(mode="json", exclude={"task"})


class _ProfilesFile(TaskKeyedFile[_Profiles]):
    """The profiles of a file by task."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, _Profiles, "task", "keep one of them")

    def _check(self, number: int, entry: _Profiles) -> None:
        validate_line(self._file.name, number, Task, {"id": entry.task, "query": "", **entry.people})

    def people_of(self, task_id: str) -> dict[str, Any] | Problem:
        """Return the fields of a task that its travellers fill."""
        if task_id in self._lines:
            return self._read_entry(task_id).people
        return Problem(("id",), f"is {quote(task_id)}, which {self._file.name} does not have", "add it")

    def refuse_unknown(self, ids: Collection[str], name: str) -> None:
        """Raise `InputError` for a task that is not one of these, of the file `name`."""
        for task, (number, _) in self._lines.items():
            if task not in ids:
                problem = f"is {quote(task)}, which {name} does not have"
                self._refuse(number, ("task",), problem, did_you_mean(task, ids) or "leave the line out")


def read_travelplanner(path: str | Path, stakeholders: str | Path | None = None) -> Iterator[TaskLine]:
    """Yield every line as a task with its reference plan as the one response.

    Without `stakeholders` (lines of {"task", "stakeholders", "tensions"}), a single stakeholder has the query's own
    constraints. Raises `InputError` naming file, line and field.
    """
    ids: set[str] = set()
    with ExitStack() as stack:
        profiles = None if stakeholders is None else stack.enter_context(_ProfilesFile(stakeholders))
        file = stack.enter_context(closing(TextFile(path)))
        for line, entry in read_lines(file, _Line):
            if entry.id in ids:
                problem = Problem(("id",), f"is {quote(entry.id)} again", "give each one id")
                raise_line_error(file.name, line.number, problem)
            ids.add(entry.id)
            yield _to_task(file.name, line.number, entry, profiles)
        if not ids:
            raise InputError(f"{file.name}: holds no lines; name a file of TravelPlanner's queries")
        if profiles is not None:
            profiles.refuse_unknown(ids, file.name)


def _to_task(name: str, number: int, line: _Line, profiles: _ProfilesFile | None) -> TaskLine:
    field = "query"
    try:
        request = read_query(line.query)
        field = "facts"
        facts = {"tables": tables(line.facts), "claims": claim_rules(request.dates)}
    except ValueError as error:
        raise_line_error(name, number, Problem((field,), str(error)))
    content: dict[str, Any] = {"id": line.id, "query": line.query, "facts": facts}
    if profiles is None:
        query_constraints = constraints(request, origin_of(line.query, line.facts))
        content["stakeholders"] = [{"id": "travellers", "constraints": query_constraints}]
        if request.unread:
            content["metadata"] = {UNREAD: list(request.unread)}
    else:
        people = profiles.people_of(line.id)
        if isinstance(people, Problem):
            raise_line_error(name, number, people)
        content |= people
    text = "\n".join(json.dumps(day, ensure_ascii=False) for day in line.plan or ())
    reference = {"id": f"{line.id}/reference", "agent": "reference", "text": text, "data": line.plan}
    return validate_line(name, number, TaskLine, {**content, "responses": [] if line.plan is None else [reference]})


Rows = list[dict[str, Any]]

_DRIVE = re.compile(
    r"(?P<mode>self-driving|taxi), from (?P<origin>.+?) to (?P<destination>.+?), duration: (?P<duration>[^:]+?), "
    r"distance: (?P<distance>[^:]+?), cost: (?P<cost>\d+(?:\.\d+)?)"
)
_NO_DATA = re.compile(r"(?i)\b(?:no valid|there is no|there are no|no information)\b")
"""Phrases of the source for an empty table."""

_ENDPOINTS = {"origin": "OriginCityName", "destination": "DestCityName"}


def tables(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the five tables. Rows are numbered as in the source, since the first of a name counts.

    Raises ValueError for a key of no known table, and for an invalid row.
    """
    kinds: dict[str, Rows] = {"Attractions": [], "Restaurants": [], "Accommodations": [], "Flight": [], "road": []}
    for key, value in facts.items():
        kind = re.split(r" in | from ", key)[0]
        if kind in ("Self-driving", "Taxi") and isinstance(value, str):
            kinds["road"] += _parse_drive(key, value)
        elif kind not in kinds:
            raise ValueError(f"contains {quote(key)}, which is not a table of TravelPlanner")
        elif isinstance(value, list) and all(isinstance(row, dict) for row in value):
            kinds[kind] += value
        elif not isinstance(value, str) or not _NO_DATA.search(value):
            raise ValueError(f"has no list of rows in {quote(key)}; each row is an object")
    return {
        "attractions": _table(kinds["Attractions"], ["Name", "City"]),
        "restaurants": _table(kinds["Restaurants"], ["Name", "City"], {"Cuisines": ","}),
        "accommodations": _table(kinds["Accommodations"], ["NAME", "city"], {"house_rules": "&"}),
        "flights": _table(kinds["Flight"], ["Flight Number"]),
        "drives": _table(kinds["road"], ["mode", *_ENDPOINTS.values()]),
    }


def origin_of(query: str, facts: Mapping[str, Any]) -> str | None:
    """Return the city where a trip begins: of the cities in the keys of the facts, the first that the query names."""
    routes = (re.search(r" from (.+?) to (.+?)(?: on |$)", key) for key in facts)
    cities = {city for route in routes if route is not None for city in route.groups()}
    positions = {city: route.start() for city in cities if (route := re.search(rf"\b{re.escape(city)}\b", query))}
    return min(sorted(positions), key=lambda city: positions[city], default=None)


def _table(rows: Rows, key: Sequence[str], lists: Mapping[str, str] | None = None) -> dict[str, Any]:
    numbered = [{**row, "row": number} for number, row in enumerate(rows, start=1)]
    return {"key": key, "rows": numbered, "order": "row", **({"lists": lists} if lists else {})}


def _parse_drive(key: str, text: str) -> Rows:
    match = _DRIVE.fullmatch(text)
    if match is None and _NO_DATA.search(text):
        return []
    if match is None:
        raise ValueError(
            f"contains in {quote(key)} {quote(text)}; write mode, ends, duration, distance and cost as elsewhere"
        )
    fields = {_ENDPOINTS.get(name, name): value for name, value in match.groupdict().items()}
    return [{**fields, "mode": match["mode"].capitalize(), "cost": float(match["cost"])}]


def claim_rules(dates: Iterable[date]) -> dict[str, Any]:
    """Return the rules to read the plan of a day, for a trip on these dates."""
    rules = _claim_rules()
    days = {str(number): day.isoformat() for number, day in enumerate(dates, start=1)}
    beside = {**rules["legs"]["beside"], "FlightDate": {"field": "days", "map": days}}
    return {**rules, "legs": {**rules["legs"], "beside": beside}}


@cache
def _claim_rules() -> Any:
    return Document(files("jurygraph.sources.travelplanner").joinpath("claims.yaml").read_text(encoding="utf-8")).value
