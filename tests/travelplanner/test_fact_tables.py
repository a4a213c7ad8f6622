"""TravelPlanner's facts as tables, and its plans read as claims about them."""

import asyncio
from datetime import date
from typing import Any

import pytest

from examples.group_trip.travelplanner.fact_tables import claim_rules, origin_of, tables
from jurygraph.agents.facts.evaluators import FactFinding, load_facts, look_up
from jurygraph.schema import TaskView
from tests.rows import all_rows
from tests.travelplanner.train import lines

DRIVE = "self-driving, from Bangor to New York, duration: 13 hours 26 mins, distance: 1,510 km, cost: 75"
FLIGHT = {
    "Flight Number": "F12",
    "Price": 90,
    "DepTime": "10:00",
    "ArrTime": "12:00",
    "FlightDate": "2022-03-16",
}
FACTS: dict[str, Any] = {
    "Attractions in Bangor": [{"Name": "The Mill", "City": "Bangor"}],
    "Restaurants in Bangor": [
        {"Name": "Tea, Please", "City": "Bangor", "Average Cost": 9, "Cuisines": "Tea, Cafe"},
        {"Name": "Tea, Please", "City": "Bangor", "Average Cost": 5, "Cuisines": "Tea"},
    ],
    "Restaurants in New York": [
        {"Name": "Deli (West)", "City": "New York", "Average Cost": 7, "Cuisines": "Deli"}
    ],
    "Accommodations in Bangor": [
        {"NAME": "Inn", "city": "Bangor", "price": 80.0, "house_rules": "No pets & No parties"}
    ],
    "Flight from Bangor to New York on 2022-03-16": [
        {**FLIGHT, "OriginCityName": "Bangor", "DestCityName": "New York"}
    ],
    "Flight from New York to Bangor on 2022-03-18": "There is no flight from New York to Bangor on 2022-03-18.",
    "Self-driving from Bangor to New York": DRIVE,
    "Taxi from Bangor to New York": "No valid information.",
}
DAYS = tuple(date(2022, 3, day) for day in (16, 17, 18))
DAY = dict.fromkeys(
    ("breakfast", "lunch", "dinner", "attraction", "accommodation", "transportation"), "-"
)


def read(kind: str, *days: dict[str, Any]) -> list[FactFinding]:
    """Return the findings about the claims of a plan."""
    view = TaskView(id="t", query="?", facts={"tables": tables(FACTS), "claims": claim_rules(DAYS)})
    facts = load_facts(view)
    plan = [
        {"days": number, "current_city": "Bangor", **DAY, **day}
        for number, day in enumerate(days, start=1)
    ]
    return asyncio.run(look_up(facts.claims[kind], facts.tables, plan))


def test_road_routes_are_rows_and_missing_ones_are_none() -> None:
    made = tables(FACTS)
    assert made["drives"]["rows"] == [
        {
            "mode": "Self-driving",
            "OriginCityName": "Bangor",
            "DestCityName": "New York",
            "duration": "13 hours 26 mins",
            "distance": "1,510 km",
            "cost": 75.0,
            "row": 1,
        }
    ]
    assert len(made["flights"]["rows"]) == 1


@pytest.mark.parametrize("cost", ["1.2.3", "free", ""])
def test_a_way_without_a_cost_is_refused(cost: str) -> None:
    with pytest.raises(
        ValueError,
        match=r"^contains in 'Taxi from A to B' 'taxi, from A to B, .*; write mode, ends, ",
    ):
        tables({"Taxi from A to B": f"taxi, from A to B, duration: 1, distance: 1, cost: {cost}"})


@pytest.mark.parametrize(
    "key", ["Attractions in Bangor", "Flight from Bangor to Rome on 2022-03-01", "Taxi from A to B"]
)
def test_no_result_is_reported_in_the_words_of_the_source(key: str) -> None:
    assert not any(table["rows"] for table in tables({key: "There is no such thing."}).values())
    with pytest.raises(ValueError, match=r"^(contains|has no list of rows) in "):
        tables({key: "nonsense"})


def test_a_trip_begins_where_the_first_city_of_the_facts_is_named() -> None:
    facts = {
        "Flight from York to New York on 2022-03-01": [],
        "Taxi from Rome to York": "No valid information.",
    }
    assert origin_of("Fly from New York to Rome.", facts) == "New York"
    assert origin_of("From Rome, and on to York.", facts) == "Rome"
    assert origin_of("From Paris.", facts) is None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"Hotels in Bangor": []},
            "contains 'Hotels in Bangor', which is not a table of TravelPlanner",
        ),
        (
            {"Restaurants in Bangor": ["Tea"]},
            "has no list of rows in 'Restaurants in Bangor'; each row is an",
        ),
        (
            {"Attractions in Bangor": {"Name": "Mill"}},
            "has no list of rows in 'Attractions in Bangor'",
        ),
        (
            {"Flight from A to B on 2022-03-16": 5},
            "has no list of rows in 'Flight from A to B on 2022-03-16'",
        ),
    ],
)
def test_a_path_that_is_not_a_table_is_named(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r"contains|has no") as caught:
        tables(facts)
    assert str(caught.value).startswith(words)


def test_a_name_may_have_commas_and_a_city_its_state() -> None:
    found = read(
        "meals", {"breakfast": "Deli (West), New York(New York)", "lunch": "Tea, Please, New York"}
    )
    assert [one["found"] for one in found] == ["confirmed", "elsewhere"]


def test_nights_in_a_row_are_one_stay() -> None:
    night = {"accommodation": "Inn, Bangor(Maine)"}
    assert [one["values"]["nights"] for one in read("stays", night, night, {})] == [2]
    assert [
        one["values"]["nights"]
        for one in read("stays", night, {"accommodation": "Barn, Bangor"}, night)
    ] == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("way", "found", "mode"),
    [
        ("Flight Number: F12, from Bangor to New York(New York), Departure Time: 10:00, Arrival Time: 12:00",
         "confirmed", "Flight"),
        ("Flight Number: F12, from Bangor to New York, Departure Time: 10:00, Arrival Time: 9:30", "differs", "Flight"),
        ("Self-driving, from Bangor(Maine) to New York, duration: 13 hours, distance: 1,500 km, cost: 75",
         "confirmed", "Self-driving"),
        ("Self-driving, from Bangor to New York, duration: 1, distance: 1, cost: 78", "confirmed", "Self-driving"),
        ("Self-driving, from Bangor to New York, duration: 1, distance: 1, cost: 80", "differs", "Self-driving"),
        ("Taxi, from Bangor to New York, duration: 1, distance: 1, cost: 1", "unknown", "Taxi"),
        ("by train to New York", "unread", None),
    ],
)  # fmt: skip
def test_a_leg_is_a_flight_of_that_day_or_a_way_by_road(
    way: str, found: str, mode: str | None
) -> None:
    (leg,) = read("legs", {"transportation": way})
    assert (leg["found"], leg["values"].get("mode")) == (found, mode)


@all_rows("name", lines())
def test_no_fact_of_the_training_set_is_lost(name: str) -> None:
    facts = lines()[name]["facts"]
    made = tables(facts)
    listed = sum(len(rows) for rows in facts.values() if isinstance(rows, list))
    ways = sum(isinstance(text, str) and "cost: " in text for text in facts.values())
    assert sum(len(table["rows"]) for table in made.values()) == listed + ways
