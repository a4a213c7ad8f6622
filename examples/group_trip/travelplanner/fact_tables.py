"""TravelPlanner's facts as tables, and the rules to read a plan as claims about them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from examples.group_trip.travelplanner.vocabulary import load_vocabulary, pattern
from jurygraph.messages import quote

Rows = list[dict[str, Any]]

_ENDPOINTS = {"origin": "OriginCityName", "destination": "DestCityName"}


def tables(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the five tables. Rows are numbered as in the source, since the first of a name counts.

    Raises ValueError for a key of no known table, and for an invalid row.
    """
    kinds: dict[str, Rows] = {
        "Attractions": [],
        "Restaurants": [],
        "Accommodations": [],
        "Flight": [],
        "road": [],
    }
    for key, value in facts.items():
        kind = re.split(r" in | from ", key)[0]
        if kind in ("Self-driving", "Taxi") and isinstance(value, str):
            kinds["road"] += _parse_drive(key, value)
        elif kind not in kinds:
            raise ValueError(f"contains {quote(key)}, which is not a table of TravelPlanner")
        elif isinstance(value, list) and all(isinstance(row, dict) for row in value):
            kinds[kind] += value
        elif not isinstance(value, str) or not pattern("no_data").search(value):
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
    positions = {
        city: route.start()
        for city in cities
        if (route := re.search(rf"\b{re.escape(city)}\b", query))
    }
    return min(sorted(positions), key=lambda city: positions[city], default=None)


def _table(
    rows: Rows, key: Sequence[str], lists: Mapping[str, str] | None = None
) -> dict[str, Any]:
    numbered = [{**row, "row": number} for number, row in enumerate(rows, start=1)]
    return {"key": key, "rows": numbered, "order": "row", **({"lists": lists} if lists else {})}


def _parse_drive(key: str, text: str) -> Rows:
    match = pattern("drive").fullmatch(text)
    if match is None and pattern("no_data").search(text):
        return []
    if match is None:
        raise ValueError(
            f"contains in {quote(key)} {quote(text)}; write mode, ends, duration, distance and cost as elsewhere"
        )
    fields = {_ENDPOINTS.get(name, name): value for name, value in match.groupdict().items()}
    return [{**fields, "mode": match["mode"].capitalize(), "cost": float(match["cost"])}]


def claim_rules(dates: Iterable[date]) -> dict[str, Any]:
    """Return the rules to read the plan of a day, for a trip on these dates."""
    rules = load_vocabulary()["claims"]
    days = {str(number): day.isoformat() for number, day in enumerate(dates, start=1)}
    beside = {**rules["legs"]["beside"], "FlightDate": {"field": "days", "map": days}}
    return {**rules, "legs": {**rules["legs"], "beside": beside}}
