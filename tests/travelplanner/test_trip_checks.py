"""The constraints of a TravelPlanner query, as checks."""

from datetime import date
from typing import Any

import pytest

from examples.group_trip.travelplanner.queries import TripRequest
from examples.group_trip.travelplanner.trip_checks import constraints, cost_terms
from tests.agents.checks.items import decide, row_item
from tests.rows import all_rows

PLAIN = TripRequest(2, (date(2022, 3, 1), date(2022, 3, 2)), 1234.5, (), None, False, (), (), (), ())
FULL = PLAIN._replace(
    house_rules=("No pets", "No children under 10"),
    room="Private room",
    cuisines=("Thai", "Greek"),
    unwanted=("Fish",),
    barred=("Flight", "Self-driving"),
)


def check_of(trip: TripRequest) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in constraints(trip, "Oslo")}


def test_a_plain_query_asks_for_a_whole_trip_a_budget_and_long_enough_stays() -> None:
    whole = {
        "days": "a plan of 2 days",
        "nights": "a bed for 1 nights",
        "sets-out": "sets out from Oslo",
        "comes-home": "comes back to Oslo",
        "meals-in-place": "meals where the day is spent",
        "attractions-in-place": "attractions where the day is spent",
        "stays-in-place": "stays where the day is spent",
    }
    assert {name: one["text"] for name, one in check_of(PLAIN).items() if name in whole} == whole
    assert check_of(PLAIN).keys() - {one["id"] for one in constraints(PLAIN, None)} == {"sets-out", "comes-home"}
    assert {name: one["text"] for name, one in check_of(PLAIN).items() if name not in whole} == {
        "budget": "$1,234.50 for 2",
        "minimum-nights": "no stay is shorter than it may be",
    }


def test_every_wish_is_a_constraint_of_its_own() -> None:
    assert {name: one["text"] for name, one in check_of(FULL).items() if name not in check_of(PLAIN)} == {
        "house-rule-pets": "pets must be allowed",
        "house-rule-children-under-10": "children under 10 must be allowed",
        "room-type": "Private room",
        "cuisines": "Thai, Greek",
        "no-cuisines": "no Fish food",
        "no-flight": "no flight",
        "no-self-driving": "no self-driving",
    }


@all_rows(
    ("trip", "name", "holds", "fails"),
    [
        (FULL, "house-rule-pets", {"house_rules": "No parties & No smoking"}, {"house_rules": "No parties & No pets"}),
        (FULL, "room-type", {"room type": "Private room"}, {"room type": "Entire home/apt"}),
        (PLAIN._replace(not_shared=True), "room-type", {"room type": "Private room"}, {"room type": "Shared room"}),
        (FULL, "minimum-nights", {"nights": 2, "minimum nights": 2.0}, {"nights": 1, "minimum nights": 2.0}),
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
        (PLAIN, "stays-in-place", {"city": "New York", "where": "New York"}, {"city": "York", "where": "Yorkshire"}),
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
