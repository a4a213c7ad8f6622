"""Convert TravelPlanner's facts to tables, and its plans' wording to claims about them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from jurygraph.messages import quote

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
            f"holds in {quote(key)} {quote(text)}; write mode, ends, duration, distance and cost as elsewhere"
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
