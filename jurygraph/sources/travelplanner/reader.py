"""Convert a file of TravelPlanner to tasks, one line at a time: its facts to tables, its plans' wording to claims."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, JsonValue, ValidationError

from jurygraph.errors import InputError
from jurygraph.messages import Problem, describe_validation_error, did_you_mean, quote
from jurygraph.schema import FrozenModel, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import raise_line_error, read_lines
from jurygraph.sources.travelplanner.query import constraints, read_query

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


Rows = list[dict[str, Any]]

_DRIVE = re.compile(
    r"(?P<mode>self-driving|taxi), from (?P<origin>.+?) to (?P<destination>.+?), duration: (?P<duration>[^:]+?), "
    r"distance: (?P<distance>[^:]+?), cost: (?P<cost>\d+(?:\.\d+)?)"
)
_NO_DATA = re.compile(r"(?i)\b(?:no valid|there is no|there are no|no information)\b")
"""Phrases of the source for an empty table."""

_PLACE = r"(?:\([^)]*\))?"
_NAME_AND_CITY = rf"(?s)(?P<name>.+), (?P<city>[^,(]+){_PLACE}"  # some names span several lines
_LEG = rf"from (?P<origin>.+?){_PLACE} to (?P<destination>.+?){_PLACE}"
_FLIGHT = (
    rf"Flight Number: (?P<number>[^,]+), {_LEG}, Departure Time: (?P<departs>[^,]+), Arrival Time: (?P<arrives>[^,]+)"
)
_BY_ROAD = (
    rf"(?P<mode>Self-driving|Taxi), {_LEG}, "
    r"duration: [^:]+, distance: [^:]+, cost: (?P<cost>.+)"
)
_ENDPOINTS = {"origin": "OriginCityName", "destination": "DestCityName"}
_TOLERANCE = 0.05
"""Relative tolerance of costs: the plans were written after a later query of the map than the tables.

Minutes and kilometres differ nearly always, costs by up to 2 %.
"""


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
    """Return the rules to read the plan of a day: meals, attractions, stays by nights in a row, and legs."""
    days = {str(number): day.isoformat() for number, day in enumerate(dates, start=1)}
    place_columns = {"name": "Name", "city": "City"}
    other_fields = {"day": {"field": "days"}, "where": {"field": "current_city"}}
    flight = {"number": "Flight Number", **_ENDPOINTS}
    times = {"departs": "DepTime", "arrives": "ArrTime"}
    return {
        "meals": {
            "at": ["$[*].breakfast", "$[*].lunch", "$[*].dinner"],
            "forms": [{"table": "restaurants", "pattern": _NAME_AND_CITY, "columns": place_columns}],
            "beside": other_fields,
            "order": "days",
        },
        "attractions": {
            "at": ["$[*].attraction"],
            "split": ";",
            "forms": [{"table": "attractions", "pattern": _NAME_AND_CITY, "columns": place_columns}],
            "beside": other_fields,
            "order": "days",
        },
        "stays": {
            "at": ["$[*].accommodation"],
            "forms": [
                {
                    "table": "accommodations",
                    "pattern": _NAME_AND_CITY,
                    "columns": {"name": "NAME", "city": "city"},
                }
            ],
            "beside": other_fields,
            "order": "days",
            "merged": "nights",
        },
        "legs": {
            "at": ["$[*].transportation"],
            "forms": [
                {"table": "flights", "pattern": _FLIGHT, "columns": flight | times, "states": {"mode": "Flight"}},
                {"table": "drives", "pattern": _BY_ROAD, "columns": _ENDPOINTS, "within": {"cost": _TOLERANCE}},
            ],
            "beside": {"day": {"field": "days"}, "FlightDate": {"field": "days", "map": days}},
            "order": "days",
        },
    }
