"""A plan's costs and rules worked out a second time: from the raw lines alone, by plain Python of its own."""

import re
from collections.abc import Iterable
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple

Row = dict[str, Any]


class Audit(NamedTuple):
    """The cost of a plan, and the constraints that it meets."""

    cost: float
    days: int
    nights: bool
    """Whether every stay is as long as it must be."""
    rules: list[str]
    """The house rules of each stay."""
    rooms: list[str]
    cuisines: set[str]
    modes: list[str]
    beds: int
    """Nights that are slept somewhere."""
    ends: tuple[set[str], set[str]]
    """Where legs set out from, and where they lead."""
    in_place: dict[str, bool]
    """By kind, whether there are any, and each is in a city that the day names."""


def audit(facts: dict[str, Any], plan: list[dict[str, Any]], people: int) -> Audit:
    """Look up everything that a plan names, and add up what it costs."""
    days = sorted(plan, key=lambda day: day["days"])
    meals = [
        first(facts, "Restaurants", day[meal])
        for day in days
        for meal in ("breakfast", "lunch", "dinner")
        if day[meal] != "-"
    ]
    stays = [
        (first(facts, "Accommodations", text), len(list(nights)))
        for text, nights in groupby(day["accommodation"] for day in days if day["accommodation"] != "-")
    ]
    legs = [leg(facts, day["transportation"], people) for day in days if day["transportation"] != "-"]
    cost = sum(meal["Average Cost"] * people for meal in meals) + sum(price for _, price in legs)
    cost += sum(stay["price"] * nights * ceil(people / stay["maximum occupancy"]) for stay, nights in stays)
    return Audit(
        cost=cost,
        days=len(plan),
        nights=all(nights >= stay["minimum nights"] for stay, nights in stays),
        rules=[stay["house_rules"] for stay, _ in stays],
        rooms=[stay["room type"] for stay, _ in stays],
        cuisines={cuisine.strip() for meal in meals for cuisine in meal["Cuisines"].split(",")},
        modes=[mode for mode, _ in legs],
        beds=sum(day["accommodation"] != "-" for day in days),
        ends=ends(day["transportation"] for day in days),
        in_place={kind: in_place(days, *fields) for kind, fields in KINDS.items()},
    )


KINDS = {"meals": ("breakfast", "lunch", "dinner"), "attractions": ("attraction",), "stays": ("accommodation",)}


def ends(ways: Iterable[str]) -> tuple[set[str], set[str]]:
    found = [re.search(r", from ([^,(]+?)(?:\(.*?\))? to ([^,(]+?)(?:\(.*?\))?,", way) for way in ways]
    return tuple({one[end] for one in found if one} for end in (1, 2))  # type: ignore[return-value]


def in_place(days: list[dict[str, Any]], *fields: str) -> bool:
    """Return whether each place's city, without its state, is named in the `current_city` of its day."""
    named = [
        (day["current_city"], text.rsplit(", ", 1)[1].split("(")[0])
        for day in days
        for field in fields
        for text in day[field].rstrip(";").split(";" if field == "attraction" else "\0")
        if text.strip() not in ("", "-")
    ]
    return bool(named) and all(city in re.split(r"from | to |\(|\)", where) for where, city in named)


def first(facts: dict[str, Any], kind: str, text: str) -> Row:
    """The first row of that name in that city, in the order of the file."""
    name, _, city = text.removesuffix(text[text.rindex("(") :] if text.endswith(")") else "").rpartition(", ")
    rows: list[Row] = facts[f"{kind} in {city}"]
    return next(row for row in rows if str(row.get("Name", row.get("NAME"))).split() == name.split())


def leg(facts: dict[str, Any], text: str, people: int) -> tuple[str, float]:
    """How a way is made, and what it costs all of them."""
    if text.startswith("Flight Number: "):
        number = text.removeprefix("Flight Number: ").split(",")[0]
        flights = [
            row for key, rows in facts.items() if key.startswith("Flight") and isinstance(rows, list) for row in rows
        ]
        return "Flight", people * next(row["Price"] for row in flights if row["Flight Number"] == number)
    mode, way, *_ = text.split(", ")
    origin, destination = (place.split("(")[0] for place in way.removeprefix("from ").split(" to "))
    cost = float(facts[f"{mode} from {origin} to {destination}"].rpartition("cost: ")[2])
    return mode, cost * ceil(people / {"Self-driving": 5, "Taxi": 4}[mode])
