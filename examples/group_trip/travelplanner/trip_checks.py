"""The constraints of a request as checks on a plan."""

from collections.abc import Iterator
from typing import Any

from examples.group_trip.travelplanner.queries import TripRequest
from examples.group_trip.travelplanner.vocabulary import load_vocabulary


def cost_terms(people: int) -> list[dict[str, Any]]:
    """Return the costs of a plan: meals and flights per person, stays by rooms and nights, roads by cars."""
    roads = [
        {
            "of": "legs",
            "column": "cost",
            "where": {"mode": {"equals": mode}},
            "people": people,
            "places": seats,
        }
        for mode, seats in load_vocabulary()["seats"].items()
    ]
    flights = {
        "of": "legs",
        "column": "Price",
        "where": {"mode": {"equals": "Flight"}},
        "people": people,
    }
    meals = {"of": "meals", "column": "Average Cost", "people": people}
    stays = {
        "of": "stays",
        "column": "price",
        "times": "nights",
        "people": people,
        "places": "maximum occupancy",
    }
    return [meals, stays, flights, *roads]


def constraints(request: TripRequest, origin: str | None) -> list[dict[str, Any]]:
    """Return every constraint of the query; all are hard.

    `origin` is the city where the trip begins and ends, if known.
    """
    return [
        {"id": name, "kind": "hard", "text": text, "check": check}
        for name, text, check in (*_trip_constraints(request, origin), *_query_constraints(request))
    ]


def _trip_constraints(
    request: TripRequest, origin: str | None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    days = len(request.dates)
    yield "days", f"a plan of {days} days", {"count": "$[*]", "equals": days}
    yield (
        "nights",
        f"a bed for {days - 1} nights",
        {"sum": [{"of": "stays", "column": "nights"}], "equals": days - 1},
    )
    if origin is not None:
        endpoint_cities = {"values": "legs", "includes": [origin]}
        yield "sets-out", f"sets out from {origin}", {**endpoint_cities, "column": "OriginCityName"}
        yield "comes-home", f"comes back to {origin}", {**endpoint_cities, "column": "DestCityName"}
    for kind, city in (("meals", "City"), ("attractions", "City"), ("stays", "city")):
        in_city = {"where": {"names": {"column": city}}}
        yield (
            f"{kind}-in-place",
            f"{kind} where the day is spent",
            {"share": kind, "where": in_city},
        )


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
        yield (
            "room-type",
            request.room,
            {"share": "stays", "where": {"room type": {"equals": request.room}}},
        )
    elif request.not_shared:
        yield (
            "room-type",
            "no shared room",
            {"share": "stays", "where": {"room type": {"is_not": "Shared room"}}},
        )
    if request.cuisines:
        included = {
            "values": "meals",
            "column": "Cuisines",
            "includes": list(request.cuisines),
            "partial": True,
        }
        yield "cuisines", ", ".join(request.cuisines), included
    if request.unwanted:
        excluded = {"values": "meals", "column": "Cuisines", "excludes": list(request.unwanted)}
        yield "no-cuisines", f"no {' and no '.join(request.unwanted)} food", excluded
    for mode in request.barred:
        exclusion = {"count": "legs", "where": {"mode": {"equals": mode}}, "at_most": 0}
        yield f"no-{mode.lower()}", f"no {mode.lower()}", exclusion
