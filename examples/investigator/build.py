"""Writes trips.jsonl and prices.csv: two trips of TravelPlanner, each with its reference plan in three versions.

    python -m examples.investigator.build TRAVELPLANNER_TRAIN.jsonl

Prices of meals and rooms are in prices.csv, those of flights in the tables of the task. The judge sees neither.
"""

import csv
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TRIPS = ("travelplanner-train-00", "travelplanner-train-04")
"""Trips of one person, by plane."""
CRITERIA = {
    "prices": "Each price in the plan is the one of the price table or of the flights.",
    "budget": "By the prices of these tables, the plan costs no more than the budget.",
}
MEALS = ("breakfast", "lunch", "dinner")
STALE = 1.6
"""How much dearer rooms are in a plan by an old price list."""
HOPEFUL_PRICE = 60
"""What a hopeful plan writes for a room that costs more than all of its budget."""


class PlanItem(NamedTuple):
    """A line of a plan with a price: its day, what is done there, the name in the tables, and the price."""

    day: int
    purpose: str
    name: str
    price: int


class PriceTables(NamedTuple):
    """The prices of one trip: of meals and rooms by their names, and the rows of its flights by number."""

    meals: Mapping[str, Mapping[str, Any]]
    rooms: Mapping[str, Mapping[str, Any]]
    flights: Mapping[str, Mapping[str, Any]]


def main(source: str) -> None:
    path = Path(source)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    rows = {row["id"]: row for row in map(json.loads, content.splitlines())}
    lines = []
    priced: dict[str, tuple[str, str, str, int]] = {}
    for name in TRIPS:
        tables = read_tables(rows[name]["facts"])
        lines.append(make_task(rows[name], tables))
        priced |= {row[0]: row for row in price_rows(tables)}
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (HERE / "trips.jsonl").write_text(written, encoding="utf-8")
    with (HERE / "prices.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", "city", "unit", "price"])
        writer.writerows(priced[name] for name in sorted(priced))


def read_tables(facts: Mapping[str, Any]) -> PriceTables:
    by_kind: dict[str, dict[str, Mapping[str, Any]]] = {"R": {}, "A": {}, "F": {}}
    names = {"R": "Name", "A": "NAME", "F": "Flight Number"}
    for title, rows in facts.items():
        kind = re.match(r"Restaurants|Accommodations|Flight ", title)
        if kind is not None and isinstance(rows, list):
            key = kind[0][0]
            by_kind[key] |= {row[names[key]].strip(): row for row in rows}
    return PriceTables(by_kind["R"], by_kind["A"], by_kind["F"])


def price_rows(tables: PriceTables) -> Iterator[tuple[str, str, str, int]]:
    for name, row in tables.meals.items():
        yield name, row["City"], "meal", row["Average Cost"]
    for name, row in tables.rooms.items():
        yield name, row["city"], "night", round(row["price"])


def make_task(row: Mapping[str, Any], tables: PriceTables) -> dict[str, Any]:
    """Return a trip with three plans: as it is, by an old price list, and with a room that it cannot pay."""
    budget = int(re.findall(r"\$([\d,]+)", row["query"])[-1].replace(",", ""))
    plan = list(read_plan(row["plan"], tables))
    versions = {
        "reference": plan,
        "stale": [raise_room(item) for item in plan],
        "hopeful": list(take_dear_room(plan, tables, budget)),
    }
    flights = [tables.flights[item.name] for item in plan if item.purpose.startswith("flight")]
    return {
        "id": row["id"],
        "query": row["query"],
        "facts": {"tables": {"flights": {"key": ["Flight Number"], "rows": flights}}},
        "rubric": {
            "criteria": [{"id": name, "text": text, "weight": 1} for name, text in CRITERIA.items()]
        },
        "responses": [
            {"id": f"{row['id']}/{agent}", "agent": agent, "text": write_plan(items)}
            for agent, items in versions.items()
        ],
    }


def read_plan(days: Sequence[Mapping[str, Any]], tables: PriceTables) -> Iterator[PlanItem]:
    for day in days:
        number = day["days"]
        flight = re.search(r"Flight Number: (\w+), from (.*?) to (.*?),", day["transportation"])
        if flight is not None:
            price = tables.flights[flight[1]]["Price"]
            yield PlanItem(number, f"flight from {flight[2]} to {flight[3]}", flight[1], price)
        for meal in MEALS:
            name = day[meal].rpartition(",")[0].strip()
            if name:
                yield PlanItem(number, meal, name, tables.meals[name]["Average Cost"])
        room = day["accommodation"].rpartition(",")[0].strip()
        if room:
            yield PlanItem(number, "night", room, round(tables.rooms[room]["price"]))


def raise_room(item: PlanItem) -> PlanItem:
    return item._replace(price=round(item.price * STALE)) if item.purpose == "night" else item


def take_dear_room(
    plan: Sequence[PlanItem], tables: PriceTables, budget: int
) -> Iterator[PlanItem]:
    """Yield the plan with the dearest room of the first city, at a price that nobody asks for it."""
    first_room = next(item for item in plan if item.purpose == "night")
    city = tables.rooms[first_room.name]["city"]
    prices = {name: row["price"] for name, row in tables.rooms.items() if row["city"] == city}
    dearest = max(prices, key=prices.__getitem__)
    for item in plan:
        is_swapped = item.name == first_room.name
        yield item._replace(name=dearest, price=HOPEFUL_PRICE) if is_swapped else item


def write_plan(items: Sequence[PlanItem]) -> str:
    """Return a plan as its writer tells it: each price, and what they add up to."""
    lines = []
    for day in sorted({item.day for item in items}):
        lines.append(f"Day {day}")
        for item in items:
            if item.day == day:
                lines.append(f"- {item.purpose}: {item.name}, ${item.price}")
    total = sum(item.price for item in items)
    return "\n".join(chain(lines, [f"In all ${total:,}."]))


if __name__ == "__main__":
    main(*sys.argv[1:])
