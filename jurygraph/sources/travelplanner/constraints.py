"""The constraints that a TravelPlanner query states, as checks."""

from collections.abc import Iterator
from typing import Any

from jurygraph.sources.travelplanner.query import Asked

SEATS = {"Self-driving": 5, "Taxi": 4}
"""People that fit in one car, as TravelPlanner counts them."""


def costs(people: int) -> list[dict[str, Any]]:
    """What a plan costs: meals and flights a head, stays by rooms and nights, roads by cars."""
    roads = [
        {"of": "legs", "column": "cost", "where": {"mode": {"equals": mode}}, "people": people, "places": seats}
        for mode, seats in SEATS.items()
    ]
    flights = {"of": "legs", "column": "Price", "where": {"mode": {"equals": "Flight"}}, "people": people}
    meals = {"of": "meals", "column": "Average Cost", "people": people}
    stays = {"of": "stays", "column": "price", "times": "nights", "people": people, "places": "maximum occupancy"}
    return [meals, stays, flights, *roads]


def constraints(asked: Asked, origin: str | None) -> list[dict[str, Any]]:
    """Every constraint of the query; all are hard. `origin` is the city that the trip begins and ends in, if known."""
    return [_hard(*one) for one in (*_whole(asked, origin), *_stated(asked))]


def whole_trip(asked: Asked, origin: str | None) -> list[dict[str, Any]]:
    """What any plan must be, whoever travels: as long as asked, with a bed a night, there and back, and in place."""
    return [_hard(*one) for one in _whole(asked, origin)]


Named = tuple[str, str, dict[str, Any]]


def _hard(name: str, text: str, check: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "kind": "hard", "text": text, "check": check}


def _whole(asked: Asked, origin: str | None) -> Iterator[Named]:
    days = len(asked.dates)
    yield "days", f"a plan of {days} days", {"count": "$[*]", "equals": days}
    yield "nights", f"a bed for {days - 1} nights", {"sum": [{"of": "stays", "column": "nights"}], "equals": days - 1}
    if origin is not None:
        ends = {"values": "legs", "includes": [origin]}
        yield "sets-out", f"sets out from {origin}", {**ends, "column": "OriginCityName"}
        yield "comes-home", f"comes back to {origin}", {**ends, "column": "DestCityName"}
    for kind, city in (("meals", "City"), ("attractions", "City"), ("stays", "city")):
        there = {"where": {"names": {"column": city}}}
        yield f"{kind}-in-place", f"{kind} where the day is spent", {"share": kind, "where": there}


def _stated(asked: Asked) -> Iterator[Named]:
    nights = {"nights": {"at_least": {"column": "minimum nights"}}}
    yield (
        "budget",
        f"${asked.budget:,.2f}".removesuffix(".00") + f" for {asked.people}",
        {"sum": costs(asked.people), "at_most": asked.budget},
    )
    yield "minimum-nights", "no stay is shorter than it may be", {"share": "stays", "where": nights}
    for rule in asked.house_rules:
        wanted = rule.removeprefix("No ").replace(" ", "-")
        yield (
            f"house-rule-{wanted}",
            f"{rule.removeprefix('No ')} must be allowed",
            {"share": "stays", "where": {"house_rules": {"has_not": rule}}},
        )
    if asked.room is not None:
        yield "room-type", asked.room, {"share": "stays", "where": {"room type": {"equals": asked.room}}}
    elif asked.not_shared:
        yield "room-type", "no shared room", {"share": "stays", "where": {"room type": {"is_not": "Shared room"}}}
    if asked.cuisines:
        included = {"values": "meals", "column": "Cuisines", "includes": list(asked.cuisines), "partial": True}
        yield "cuisines", ", ".join(asked.cuisines), included
    if asked.unwanted:
        excluded = {"values": "meals", "column": "Cuisines", "excludes": list(asked.unwanted)}
        yield "no-cuisines", f"no {' and no '.join(asked.unwanted)} food", excluded
    for mode in asked.barred:
        barred = {"count": "legs", "where": {"mode": {"equals": mode}}, "at_most": 0}
        yield f"no-{mode.lower()}", f"no {mode.lower()}", barred
