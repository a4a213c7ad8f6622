"""The constraints of a TravelPlanner query, as checks."""

from datetime import date
from typing import Any

import pytest

from examples.group_trip.travelplanner.queries import TripRequest
from examples.group_trip.travelplanner.trip_checks import constraints, cost_terms
from tests.agents.checks.items import decide, row_item
from tests.rows import all_rows

PLAIN = TripRequest(
    2, (date(2022, 3, 1), date(2022, 3, 2)), 1234.5, (), None, False, (), (), (), ()
)
FULL = PLAIN._replace(
    house_rules=("No pets", "No children under 10"),
    room="Private room",
    cuisines=("Thai", "Greek"),
    unwanted=("Fish",),
    barred=("Flight", "Self-driving"),
)


def check_of(trip: TripRequest) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in constraints(trip, "Oslo")}


@all_rows(
    ("trip", "name", "holds", "fails"),
    [
        (
            FULL,
            "house-rule-pets",
            {"house_rules": "No parties & No smoking"},
            {"house_rules": "No parties & No pets"},
        ),
        (FULL, "room-type", {"room type": "Private room"}, {"room type": "Entire home/apt"}),
        (
            PLAIN._replace(not_shared=True),
            "room-type",
            {"room type": "Private room"},
            {"room type": "Shared room"},
        ),
        (
            FULL,
            "minimum-nights",
            {"nights": 2, "minimum nights": 2.0},
            {"nights": 1, "minimum nights": 2.0},
        ),
        (FULL, "no-flight", {"mode": "Taxi"}, {"mode": "Flight"}),
        (FULL, "no-self-driving", {"mode": "Flight"}, {"mode": "Self-driving"}),
        (FULL, "no-cuisines", {"Cuisines": "Thai, Tea"}, {"Cuisines": "Thai, Fish"}),
        (PLAIN, "nights", {"nights": 1}, {"nights": 2}),
        (PLAIN, "sets-out", {"OriginCityName": "Oslo"}, {"OriginCityName": "Rome"}),
        (PLAIN, "comes-home", {"DestCityName": "Oslo"}, {"DestCityName": "Rome"}),
        (
            PLAIN,
            "meals-in-place",
            {"City": "Rome", "where": "from Oslo to Rome(Lazio)"},
            {"City": "Rome", "where": "Oslo"},
        ),
        (
            PLAIN,
            "stays-in-place",
            {"city": "New York", "where": "New York"},
            {"city": "York", "where": "Yorkshire"},
        ),
        (FULL, "cuisines", {"Cuisines": "Thai, Tea, Greek"}, {"Cuisines": "Thai, Tea"}),
    ],
)
def test_each_constraint_accepts_and_rejects_a_plan(
    trip: TripRequest, name: str, holds: dict[str, Any], fails: dict[str, Any]
) -> None:
    check, lists = check_of(trip)[name]["check"], {"house_rules": "&", "Cuisines": ","}
    assert decide(check, row_item(lists=lists, **holds)).holds is True
    assert decide(check, row_item(lists=lists, **fails)).holds is False


@pytest.mark.parametrize(
    ("people", "values", "cost"),
    [
        (5, {"Average Cost": 12}, 60),
        (5, {"price": 100.0, "nights": 3, "maximum occupancy": 2}, 900),
        (5, {"mode": "Flight", "Price": 90}, 450),
        (5, {"mode": "Self-driving", "cost": 75.0}, 75),
        (6, {"mode": "Self-driving", "cost": 75.0}, 150),
        (4, {"mode": "Taxi", "cost": 30.0}, 30),
        (5, {"mode": "Taxi", "cost": 30.0}, 60),
    ],
)
def test_a_plan_has_its_cost(people: int, values: dict[str, Any], cost: float) -> None:
    """Each thing is looked at alone: the sum of the terms that have a value for it."""
    terms = [term for term in cost_terms(people) if term["column"] in values]
    assert decide({"sum": terms, "equals": cost}, row_item(**values)).holds is True
