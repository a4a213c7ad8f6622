"""TravelPlanner (Xie et al., ICML 2024): its queries, tables and plans as tasks, one line at a time.

Queries are parsed by rules on their words, and their constraints become checks; plans are read as claims about tables.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, JsonValue

from jurygraph.errors import InputError
from jurygraph.messages import Problem, quote
from jurygraph.schema import FrozenModel, Stakeholder, Task, TaskLine, Tension
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import TextFile
from jurygraph.sources.json_lines import TaskKeyedFile, raise_line_error, read_lines, validate_line
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
            profiles.refuse_unknown(ids.__contains__, ids, f"name a task of {file.name}, or leave the line out")


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
        travellers = profiles.get(line.id)
        if travellers is None:
            problem = f"is {quote(line.id)}, which {profiles.file_digest.name} does not have"
            raise_line_error(name, number, Problem(("id",), problem, "add it"))
        content |= travellers.people
    text = "\n".join(json.dumps(day, ensure_ascii=False) for day in line.plan or ())
    reference = {"id": f"{line.id}/reference", "agent": "reference", "text": text, "data": line.plan}
    return validate_line(name, number, TaskLine, {**content, "responses": [] if line.plan is None else [reference]})


@cache
def _data() -> Any:
    return Document(files("jurygraph.sources").joinpath("travelplanner.yaml").read_text(encoding="utf-8")).value


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the data file, for any case; `{{other}}` in it is replaced by another one."""
    words = {**_data()["patterns"], "months": "|".join(_data()["months"])}
    return re.compile(re.sub(r"\{\{(\w+)\}\}", lambda other: words[other[1]], words[name]), re.IGNORECASE)


Rows = list[dict[str, Any]]

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
        elif not isinstance(value, str) or not _pattern("no_data").search(value):
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
    match = _pattern("drive").fullmatch(text)
    if match is None and _pattern("no_data").search(text):
        return []
    if match is None:
        raise ValueError(
            f"contains in {quote(key)} {quote(text)}; write mode, ends, duration, distance and cost as elsewhere"
        )
    fields = {_ENDPOINTS.get(name, name): value for name, value in match.groupdict().items()}
    return [{**fields, "mode": match["mode"].capitalize(), "cost": float(match["cost"])}]


def claim_rules(dates: Iterable[date]) -> dict[str, Any]:
    """Return the rules to read the plan of a day, for a trip on these dates."""
    rules = _data()["claims"]
    days = {str(number): day.isoformat() for number, day in enumerate(dates, start=1)}
    beside = {**rules["legs"]["beside"], "FlightDate": {"field": "days", "map": days}}
    return {**rules, "legs": {**rules["legs"], "beside": beside}}


class TripRequest(NamedTuple):
    """The content of a query. `house_rules` are those of a stay that would forbid what the travellers want.

    `unread` are words of the query about a constraint that no rule here understands.
    """

    people: int
    dates: tuple[date, ...]
    budget: float
    house_rules: tuple[str, ...]
    room: str | None
    not_shared: bool
    cuisines: tuple[str, ...]
    unwanted: tuple[str, ...]
    barred: tuple[str, ...]
    unread: tuple[str, ...]


def read_query(query: str) -> TripRequest:
    """Parse a query. Raises ValueError naming which of people, dates and budget is missing or occurs twice."""
    (budget, each), people = _parse_budget(query), _parse_people(query)
    rules, rooms, modes = (
        {name: _classify_mention(query, words) for name, words in patterns.items()}
        for patterns in (_data()["rules"], _data()["rooms"], _data()["modes"])
    )
    about_food = [sentence for sentence in re.split(r"[.!?](?:\s|$)", query) if _pattern("food").search(sentence)]
    dishes = (name for name in _data()["cuisines"] if any(name in sentence for sentence in about_food))
    cuisines = {name: _classify_mention(query, rf"\b{name}\b") for name in dishes}
    wanted = next((room for room, mention in rooms.items() if mention == "wanted"), None)
    shared_denied = rooms["Shared room"] == "denied" or _pattern("not_shared").search(query) is not None
    return TripRequest(
        people=people,
        dates=_parse_dates(query),
        budget=budget * (people if each else 1),
        house_rules=_names_mentioned(rules, "wanted"),
        room=wanted,
        not_shared=wanted is None and shared_denied,
        cuisines=_names_mentioned(cuisines, "wanted"),
        unwanted=_names_mentioned(cuisines, "denied"),
        barred=_names_mentioned(modes, "denied"),
        unread=(
            *(name.removeprefix("No ") for name in _names_mentioned(rules, "denied", "unclear")),
            *(
                room
                for room in _names_mentioned(rooms, "denied", "unclear")
                if (room, rooms[room]) != ("Shared room", "denied")
            ),
            *_names_mentioned(cuisines, "unclear"),
            *_names_mentioned(modes, "unclear"),
        ),
    )


Mention = Literal["wanted", "denied", "indifferent", "unclear"]


def _names_mentioned(mentions: Mapping[str, Mention | None], *kinds: Mention) -> tuple[str, ...]:
    return tuple(name for kind in kinds for name, mention in mentions.items() if mention == kind)


def _classify_mention(query: str, words: str) -> Mention | None:
    """Classify how a query mentions something for the first time, by the words around it in its sentence."""
    match = re.search(words, query, re.IGNORECASE)
    if match is None:
        return None
    before = _pattern("no_denial").sub("", query[: match.start()])
    if _pattern("indifferent").search(before):
        return "indifferent"
    if _pattern("denied_after").search(query[match.end() :]):
        return "unclear"
    denied = _pattern("denied").search(before)
    if denied is None:
        return "wanted"
    if _pattern("denied_twice").match(denied["since"]):
        return "unclear"
    return "wanted" if _pattern("affirmed").search(denied["since"]) else "denied"


def _parse_budget(query: str) -> tuple[float, bool]:
    """Return the amount, and whether it is for each traveller."""
    amounts = []
    for match in _pattern("budget").finditer(query):
        if match["per"]:
            raise ValueError(f"has a budget {match['per'].strip()}; write one for the whole trip")
        amount = float(match["n"].replace(",", "")) * _data()["multipliers"][(match["size"] or "").lower()]
        amounts.append((amount, bool(match["each"] or _pattern("each_before").search(query[: match.start()]))))
    if not amounts:
        raise ValueError("has no budget such as $1,700")
    if len(set(amounts)) > 1:
        several = ", ".join(f"${amount:,.0f}{' each' if each else ''}" for amount, each in dict.fromkeys(amounts))
        raise ValueError(f"has several budgets ({several}); keep the one that counts")
    return amounts[0]


def _parse_people(query: str) -> int:
    for name in ("party", "persons", "for", "alone"):
        match = _pattern(name).search(query)
        if match is not None:
            number = match.groupdict().get("n")
            people = 1 if number is None else _data()["numbers"].get(number.lower()) or int(number)
            if people:
                return people
    raise ValueError("does not state how many people travel, such as a group of 4")


def _parse_dates(query: str) -> tuple[date, ...]:
    """Return every day from the first date to the last."""
    dates = [(match[1] or match[4], match[2] or match[3] or match[5]) for match in _pattern("date").finditer(query)]
    year = _pattern("year").search(query)
    if len(dates) < 2 or year is None:
        raise ValueError("does not state its first and last day, such as from March 1st to March 5th, 2022")
    (first_month, first_day), (last_month, last_day) = dates[0], dates[-1]
    months = [_data()["months"].index(month) + 1 for month in (first_month or last_month, last_month or first_month)]
    try:
        first, last = date(int(year[1]), months[0], int(first_day)), date(int(year[1]), months[1], int(last_day))
    except ValueError as error:
        raise ValueError(f"has an invalid date ({error})") from error
    if last < first:
        raise ValueError(f"has a last day, {last}, before its first, {first}")
    return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))


def cost_terms(people: int) -> list[dict[str, Any]]:
    """Return the costs of a plan: meals and flights per person, stays by rooms and nights, roads by cars."""
    roads = [
        {"of": "legs", "column": "cost", "where": {"mode": {"equals": mode}}, "people": people, "places": seats}
        for mode, seats in _data()["seats"].items()
    ]
    flights = {"of": "legs", "column": "Price", "where": {"mode": {"equals": "Flight"}}, "people": people}
    meals = {"of": "meals", "column": "Average Cost", "people": people}
    stays = {"of": "stays", "column": "price", "times": "nights", "people": people, "places": "maximum occupancy"}
    return [meals, stays, flights, *roads]


def constraints(request: TripRequest, origin: str | None) -> list[dict[str, Any]]:
    """Return every constraint of the query; all are hard.

    `origin` is the city where the trip begins and ends, if known.
    """
    return [
        {"id": name, "kind": "hard", "text": text, "check": check}
        for name, text, check in (*_trip_constraints(request, origin), *_query_constraints(request))
    ]


def _trip_constraints(request: TripRequest, origin: str | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    days = len(request.dates)
    yield "days", f"a plan of {days} days", {"count": "$[*]", "equals": days}
    yield "nights", f"a bed for {days - 1} nights", {"sum": [{"of": "stays", "column": "nights"}], "equals": days - 1}
    if origin is not None:
        endpoint_cities = {"values": "legs", "includes": [origin]}
        yield "sets-out", f"sets out from {origin}", {**endpoint_cities, "column": "OriginCityName"}
        yield "comes-home", f"comes back to {origin}", {**endpoint_cities, "column": "DestCityName"}
    for kind, city in (("meals", "City"), ("attractions", "City"), ("stays", "city")):
        in_city = {"where": {"names": {"column": city}}}
        yield f"{kind}-in-place", f"{kind} where the day is spent", {"share": kind, "where": in_city}


def _query_constraints(request: TripRequest) -> Iterator[tuple[str, str, dict[str, Any]]]:
    nights = {"nights": {"at_least": {"column": "minimum nights"}}}
    amount = f"${request.budget:,.2f}".removesuffix(".00")
    total = {"sum": cost_terms(request.people), "at_most": request.budget}
    yield "budget", f"{amount} for {request.people}", total
    yield "minimum-nights", "no stay is shorter than it may be", {"share": "stays", "where": nights}
    for rule in request.house_rules:
        wanted = rule.removeprefix("No ")
        check = {"share": "stays", "where": {"house_rules": {"has_not": rule}}}
        yield f"house-rule-{wanted.replace(' ', '-')}", f"{wanted} must be allowed", check
    if request.room is not None:
        yield "room-type", request.room, {"share": "stays", "where": {"room type": {"equals": request.room}}}
    elif request.not_shared:
        yield "room-type", "no shared room", {"share": "stays", "where": {"room type": {"is_not": "Shared room"}}}
    if request.cuisines:
        included = {"values": "meals", "column": "Cuisines", "includes": list(request.cuisines), "partial": True}
        yield "cuisines", ", ".join(request.cuisines), included
    if request.unwanted:
        excluded = {"values": "meals", "column": "Cuisines", "excludes": list(request.unwanted)}
        yield "no-cuisines", f"no {' and no '.join(request.unwanted)} food", excluded
    for mode in request.barred:
        exclusion = {"count": "legs", "where": {"mode": {"equals": mode}}, "at_most": 0}
        yield f"no-{mode.lower()}", f"no {mode.lower()}", exclusion
