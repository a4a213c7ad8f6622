"""Parsed queries of TravelPlanner equal what a person reads in them."""

from datetime import date
from typing import Any

from examples.group_trip.travelplanner.columns import Columns, read_request
from examples.group_trip.travelplanner.queries import TripRequest
from tests.rows import all_rows
from tests.travelplanner.train import lines

ENTIRE, PRIVATE = "Entire home/apt", "Private room"
FLIGHT, DRIVING = "Flight", "Self-driving"
READ: dict[str, tuple[int, int, int, int, dict[str, Any]]] = {
    # people, the first and the last day of March 2022, budget in dollars, and all else that is asked for
    "00": (1, 16, 18, 1700, {}),
    "01": (1, 27, 29, 900, {}),
    "03": (1, 12, 14, 1900, {}),
    "04": (1, 12, 14, 1600, {}),
    "06": (1, 6, 10, 3600, {}),
    "07": (1, 1, 5, 2300, {}),
    "09": (1, 5, 9, 3400, {}),
    "10": (1, 23, 29, 7700, {}),
    "12": (1, 24, 30, 4200, {}),
    "13": (1, 18, 24, 3600, {}),
    "15": (2, 16, 18, 2300, {"cuisines": "American French"}),
    "16": (2, 14, 16, 4700, {"rule": "No parties"}),
    "18": (2, 15, 17, 2000, {"room": PRIVATE}),
    "19": (2, 8, 10, 1100, {"cuisines": "American Chinese"}),
    "21": (4, 15, 19, 12300, {"rule": "No smoking"}),
    "22": (7, 1, 5, 13900, {"cuisines": "Indian French"}),
    "24": (4, 1, 5, 13800, {"room": PRIVATE}),
    "25": (4, 25, 31, 5800, {"rule": "No children under 10"}),
    "27": (2, 17, 23, 9500, {"cuisines": "American Chinese"}),
    "28": (4, 8, 14, 19400, {"room": PRIVATE}),
    "30": (2, 20, 22, 1500, {"rule": "No children under 10", "barred": DRIVING,
                             "cuisines": "American Mediterranean French Chinese"}),
    "31": (3, 21, 23, 3100, {"rule": "No pets", "room": ENTIRE, "barred": DRIVING}),
    "33": (2, 24, 26, 1400, {"rule": "No pets", "room": PRIVATE, "cuisines": "Indian American French Italian"}),
    "34": (5, 7, 9, 3600, {"room": ENTIRE, "barred": DRIVING, "cuisines": "French Mediterranean Indian Chinese"}),
    "36": (7, 9, 13, 8500, {"rule": "No visitors", "room": ENTIRE,
                            "cuisines": "French American Mediterranean Italian"}),
    "37": (3, 22, 26, 3600, {"room": ENTIRE, "barred": FLIGHT, "cuisines": "American Mediterranean Italian French"}),
    "39": (5, 8, 12, 7100, {"rule": "No smoking", "barred": FLIGHT,
                            "cuisines": "American French Mediterranean Italian"}),
    "40": (5, 11, 17, 15100, {"rule": "No pets", "room": ENTIRE, "cuisines": "Mexican Italian Mediterranean Indian"}),
    "42": (2, 20, 26, 3800, {"room": ENTIRE, "barred": FLIGHT, "cuisines": "Chinese French American Indian"}),
    "43": (2, 19, 25, 5500, {"room": ENTIRE, "barred": FLIGHT, "cuisines": "American Chinese Mexican French"}),
}  # fmt: skip
QUERIES = {name: line["query"] for name, line in lines().items()}
TRIP = "Please plan a trip for 2 people from March 1st to March 5th, 2022, with a budget of $900."


def read_query(query: str) -> TripRequest:
    return read_request(query, Columns()).request


def test_the_training_set_has_thirty_checked_queries() -> None:
    assert QUERIES.keys() == READ.keys()


@all_rows("name", READ)
def test_a_query_is_read_as_a_person_reads_it(name: str) -> None:
    people, first, last, budget, rest = READ[name]
    request = read_query(QUERIES[name])
    assert (request.people, request.budget) == (people, budget)
    assert request.dates == tuple(date(2022, 3, day) for day in range(first, last + 1))
    assert request.house_rules == ((rest["rule"],) if "rule" in rest else ())
    assert (request.room, request.not_shared) == (rest.get("room"), False)
    assert set(request.cuisines) == set(rest.get("cuisines", "").split())
    assert request.barred == ((rest["barred"],) if "barred" in rest else ())
    assert (request.unwanted, request.unread) == ((), ())
