"""Parsed queries of TravelPlanner equal what a person reads in them."""

from datetime import date
from typing import Any

import pytest

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


@all_rows(
    ("words", "people"),
    [
        ("a group of 8", 8),
        ("a party of three", 3),
        ("six travelers", 6),
        ("a trip for two, for three days", 2),
        ("a solo trip for three days", 1),
        ("a solo trip for two full days", 1),
        ("I travel alone to visit two cities", 1),
        ("a pair of us: 2 people", 2),
        ("a trip for a pair", 2),
        ("a trip for seven", 7),
    ],
)
def test_people_are_numbers_or_words_and_days_are_not_people(words: str, people: int) -> None:
    assert read_query(TRIP.replace("a trip for 2 people", words)).people == people


@all_rows("people", range(1, 9))
def test_small_numbers_may_be_written_as_words(people: int) -> None:
    word = "one two three four five six seven eight".split()[people - 1]
    assert read_query(TRIP.replace("2 people", f"a group of {word}")).people == people


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("from the 2nd of April to the 3rd of April, 2022", (4, 2), (4, 3)),
        ("from the 30th to the 31st of May, 2022", (5, 30), (5, 31)),
        ("from March 30th to April 2nd, 2022", (3, 30), (4, 2)),
        ("between March 9th and 13th, 2022", (3, 9), (3, 13)),
        ("from March 9th to March 9th, 2022", (3, 9), (3, 9)),
    ],
)
def test_dates_may_be_written_in_several_ways(words: str, first: tuple[int, int], last: tuple[int, int]) -> None:
    dates = read_query(TRIP.replace("from March 1st to March 5th, 2022", words)).dates
    assert (dates[0], dates[-1]) == (date(2022, *first), date(2022, *last))
    assert len(dates) == (dates[-1] - dates[0]).days + 1


def test_a_budget_may_have_cents_and_is_no_year() -> None:
    assert read_query(TRIP.replace("$900", "$ 1,234.50")).budget == 1234.5
    assert read_query(TRIP.replace("$900", "$2.5k")).budget == 2500
    for words in ("$900 per person", "$900/person", "$900 for each person", "$900 per adult", "$900 pp", "$900 apiece"):
        assert read_query(TRIP.replace("$900", words)).budget == 1800
    assert read_query(TRIP.replace("a budget of $900", "a per-person budget of $900")).budget == 1800
    assert read_query(TRIP.replace("$900", "$2 thousand")).budget == 2000
    assert read_query(TRIP.replace("$900", "$900, which is $900 in all")).budget == 900
    request = read_query("For 2 people and $2010, from March 1st to March 2nd, 2022.")
    assert (request.budget, request.dates[0].year) == (2010, 2022)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("We want shared rooms.", "room", "Shared room"),
        ("We want rooms, not shared rooms.", "room", None),
        ("We want non-shared rooms.", "not_shared", True),
        (
            "Parties must be permitted: parties permitted, visitors allowed.",
            "house_rules",
            ("No parties", "No visitors"),
        ),
        ("We do not want shared rooms.", "not_shared", True),
        ("They should not be shared rooms.", "not_shared", True),
        ("We require entire homes.", "room", "Entire home/apt"),
        ("We want no private rooms.", "unread", ("Private room",)),
        ("We want a non-smoking room.", "house_rules", ()),
        ("We want no smoking in our rooms.", "house_rules", ()),
        ("We want no smoking in our rooms.", "unread", ("smoking",)),
        ("We are not bringing any pets.", "house_rules", ()),
        ("We need to host parties and have visitors.", "house_rules", ("No parties", "No visitors")),
        ("Parties and smoking are to be allowed.", "house_rules", ("No smoking", "No parties")),
        ("We are a party of two.", "house_rules", ()),
        ("We like French food, but please no Chinese cuisine.", "cuisines", ("French",)),
        ("We like French food, but please no Chinese cuisine.", "unwanted", ("Chinese",)),
        ("We love Indian food. We see an American museum and the French Quarter.", "cuisines", ("Indian",)),
        ("We do not mind flights, and self-driving is fine.", "barred", ()),
        ("We hate French food, and we are allergic to Chinese dishes.", "unwanted", ("Chinese", "French")),
        ("Anything except Mexican food.", "unwanted", ("Mexican",)),
        ("We don't like Mexican food and want Chinese cuisine.", "cuisines", ("Chinese",)),
        ("We want food that is not only Chinese but also Mexican.", "cuisines", ("Chinese", "Mexican")),
        ("We cannot live without Italian food.", "cuisines", ("Italian",)),
        ("Smoking is not allowed for us.", "house_rules", ()),
        ("Smoking is not allowed for us.", "unread", ("smoking",)),
        ("We want smoke-free rooms.", "house_rules", ()),
        ("Visitors should not be allowed.", "house_rules", ()),
        ("Pets are not coming with us.", "house_rules", ()),
        ("Please don't skip flights.", "barred", ()),
        ("Please don't skip flights.", "unread", ("Flight",)),
        ("We refuse to fly.", "barred", ("Flight",)),
        ("No air travel.", "barred", ("Flight",)),
        ("Self-driving is not an option.", "barred", ("Self-driving",)),
        ("Rooms should not be shared.", "not_shared", True),
        ("We would avoid self-driving.", "barred", ("Self-driving",)),
        ("We want no flights or self-driving.", "barred", ("Flight", "Self-driving")),
        ("We have no specific preference for private rooms.", "room", None),
        ("Please note that we love flights and self-driving.", "barred", ()),
        ("Please avoid flights, and no, we do not plan to drive ourselves.", "barred", ("Flight", "Self-driving")),
        ("We start in Indianapolis and go to Frenchtown.", "cuisines", ()),
    ],
)
def test_only_the_requested_columns_are_read(words: str, field: str, value: Any) -> None:
    assert getattr(read_query(f"{TRIP} {words}"), field) == value


@all_rows(
    ("missing", "instead", "words"),
    [
        ("a budget of $900", "€900 to spend", "has no budget such as $1,700"),
        ("$900", "$900 per day", "has a budget per day; write one for the whole trip"),
        ("$900", "$900 and a food budget of $1,000", "has several budgets ($900, $1,000); keep the one that counts"),
        ("$900", "$, or so", "has no budget such as $1,700"),
        ("2 people", "0 people", "states 0 people; write how many travel, such as a group of 4"),
        ("to March 5th", "on", "does not state its first and last day, such as from March 1st to March 5th, 2022"),
        (", 2022", "", "does not state the year of its dates, such as from March 1st to March 5th, 2022"),
        ("March 5th", "March 32nd", "has an invalid date (day is out of range for month)"),
        ("March 1st", "March 7th", "has a last day, 2022-03-05, before its first, 2022-03-07"),
    ],
)
def test_a_missing_field_is_named(missing: str, instead: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"has|state") as caught:
        read_query(TRIP.replace(missing, instead))
    assert str(caught.value) == words
