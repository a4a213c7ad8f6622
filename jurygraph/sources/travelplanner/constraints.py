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


def constraints(asked: Asked) -> list[dict[str, Any]]:
    """Every constraint of the query; all are hard."""
    return [{"id": name, "kind": "hard", "text": text, "check": check} for name, text, check in _stated(asked)]


def _stated(asked: Asked) -> Iterator[tuple[str, str, dict[str, Any]]]:
    days, nights = len(asked.dates), {"nights": {"at_least": {"column": "minimum nights"}}}
    yield "days", f"a plan of {days} days", {"count": "$[*]", "equals": days}
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
    for mode in asked.barred:
        barred = {"count": "legs", "where": {"mode": {"equals": mode}}, "at_most": 0}
        yield f"no-{mode.lower()}", f"no {mode.lower()}", barred
