"""TravelPlanner's facts as tables, and its plans' wording as claims about them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from jurygraph.sources.complaint import quoted

Rows = list[dict[str, Any]]

_DRIVE = re.compile(
    r"(?P<mode>self-driving|taxi), from (?P<origin>.+?) to (?P<destination>.+?), duration: (?P<duration>[^:]+?), "
    r"distance: (?P<distance>[^:]+?), cost: (?P<cost>\d+(?:\.\d+)?)"
)
_NONE = re.compile(r"(?i)\b(?:no valid|there is no|there are no|no information)\b")
"""How the source says that there is nothing."""

_PLACE = r"(?:\([^)]*\))?"
_NAME_AND_CITY = rf"(?s)(?P<name>.+), (?P<city>[^,(]+){_PLACE}"  # some names have several lines
_LEG = rf"from (?P<origin>.+?){_PLACE} to (?P<destination>.+?){_PLACE}"
_FLIGHT = (
    rf"Flight Number: (?P<number>[^,]+), {_LEG}, Departure Time: (?P<departs>[^,]+), Arrival Time: (?P<arrives>[^,]+)"
)
_BY_ROAD = (
    rf"(?P<mode>Self-driving|Taxi), {_LEG}, "
    r"duration: [^:]+, distance: [^:]+, cost: (?P<cost>.+)"
)
_ENDS = {"origin": "OriginCityName", "destination": "DestCityName"}
_NEAR = 0.05
"""The plans were written after another look at the map than the tables: minutes and kilometres differ nearly always,
costs by up to 2 %."""


def tables(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The five tables. Rows are numbered as in the source, for the first of a name is the one that counts.

    Raises ValueError at a key that is of no table, and at a row that is none.
    """
    kinds: dict[str, Rows] = {"Attractions": [], "Restaurants": [], "Accommodations": [], "Flight": [], "road": []}
    for key, value in facts.items():
        kind = re.split(r" in | from ", key)[0]
        if kind in ("Self-driving", "Taxi") and isinstance(value, str):
            kinds["road"] += _by_road(key, value)
        elif kind not in kinds:
            raise ValueError(f"holds {quoted(key)}, which is no table of TravelPlanner")
        elif isinstance(value, list) and all(isinstance(row, dict) for row in value):
            kinds[kind] += value
        elif not isinstance(value, str) or not _NONE.search(value):
            raise ValueError(f"holds in {quoted(key)} what is no list of rows; each row is an object")
    return {
        "attractions": _table(kinds["Attractions"], ["Name", "City"]),
        "restaurants": _table(kinds["Restaurants"], ["Name", "City"], {"Cuisines": ","}),
        "accommodations": _table(kinds["Accommodations"], ["NAME", "city"], {"house_rules": "&"}),
        "flights": _table(kinds["Flight"], ["Flight Number"]),
        "drives": _table(kinds["road"], ["mode", *_ENDS.values()]),
    }


def origin_of(query: str, facts: Mapping[str, Any]) -> str | None:
    """The city that a trip begins in: of those between which there are facts the first that the query names."""
    ends = (re.search(r" from (.+?) to (.+?)(?: on |$)", key) for key in facts)
    cities = {city for found in ends if found is not None for city in found.groups()}
    places = {city: found.start() for city in cities if (found := re.search(rf"\b{re.escape(city)}\b", query))}
    return min(sorted(places), key=lambda city: places[city], default=None)


def _table(rows: Rows, key: Sequence[str], lists: Mapping[str, str] | None = None) -> dict[str, Any]:
    numbered = [{**row, "row": number} for number, row in enumerate(rows, start=1)]
    return {"key": key, "rows": numbered, "order": "row", **({"lists": lists} if lists else {})}


def _by_road(key: str, text: str) -> Rows:
    found = _DRIVE.fullmatch(text)
    if found is None and _NONE.search(text):
        return []
    if found is None:
        raise ValueError(
            f"holds in {quoted(key)} {quoted(text)}; write mode, ends, duration, distance and cost as elsewhere"
        )
    said = {_ENDS.get(name, name): value for name, value in found.groupdict().items()}
    return [{**said, "mode": found["mode"].capitalize(), "cost": float(found["cost"])}]


def claims(dates: Iterable[date]) -> dict[str, Any]:
    """How the plan of a day is read: meals, attractions, stays by nights in a row, and legs."""
    days = {str(number): day.isoformat() for number, day in enumerate(dates, start=1)}
    place = {"name": "Name", "city": "City"}
    beside = {"day": {"field": "days"}, "where": {"field": "current_city"}}
    flight = {"number": "Flight Number", **_ENDS}
    times = {"departs": "DepTime", "arrives": "ArrTime"}
    return {
        "meals": {
            "at": ["$[*].breakfast", "$[*].lunch", "$[*].dinner"],
            "forms": [{"table": "restaurants", "pattern": _NAME_AND_CITY, "columns": place}],
            "beside": beside,
            "order": "days",
        },
        "attractions": {
            "at": ["$[*].attraction"],
            "split": ";",
            "forms": [{"table": "attractions", "pattern": _NAME_AND_CITY, "columns": place}],
            "beside": beside,
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
            "beside": beside,
            "order": "days",
            "merged": "nights",
        },
        "legs": {
            "at": ["$[*].transportation"],
            "forms": [
                {"table": "flights", "pattern": _FLIGHT, "columns": flight | times, "states": {"mode": "Flight"}},
                {"table": "drives", "pattern": _BY_ROAD, "columns": _ENDS, "within": {"cost": _NEAR}},
            ],
            "beside": {"day": {"field": "days"}, "FlightDate": {"field": "days", "map": days}},
            "order": "days",
        },
    }
