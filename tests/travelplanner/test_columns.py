"""The published columns: they count, and a query that says something else is reported."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from examples.group_trip.travelplanner.columns import Columns, read_request
from tests.rows import all_rows

QUERY = (
    "Please plan a 3-day trip for two people from Erie to Tampa from March 1st to March 3rd, 2022, with a budget of "
    "$900. We want French food, smoking must be allowed in our private rooms, and no flights."
)
CONSTRAINT = {
    "house rule": "smoking", "cuisine": ["French"], "room type": "private room", "transportation": "no flight",
}  # fmt: skip
NONE = dict.fromkeys(CONSTRAINT)
DATES = ["2022-03-01", "2022-03-02", "2022-03-03"]
WHOLE = {
    "people_number": 2,
    "days": 3,
    "date": DATES,
    "budget": 900,
    "local_constraint": CONSTRAINT,
}


def test_columns_and_query_that_agree_make_one_request() -> None:
    request, differs = read_request(QUERY, Columns.model_validate(WHOLE))
    assert (request, differs) == (read_request(QUERY, Columns())[0], ())
    assert request.dates == tuple(date(2022, 3, day) for day in (1, 2, 3))
    assert (request.people, request.budget, request.is_assumed) == (2, 900, False)


def test_lists_and_numbers_may_be_text_as_python_writes_them() -> None:
    texts = {name: str(value) for name, value in WHOLE.items()}
    assert read_request("Plan it.", Columns.model_validate(texts)) == read_request(
        "Plan it.", Columns(**WHOLE)
    )  # type: ignore[arg-type]


@all_rows(("column", "field", "value", "differs"), [
        ({"people_number": 3}, "people", 3, "people: 3 in the column, 2 in the query"),
        ({"budget": "1,000"}, "budget", 1000, "budget: 1000 in the column, 900 in the query"),
        (
            {"date": ["2022-03-02", "2022-03-03", "2022-03-04"]},
            "dates",
            (date(2022, 3, 2), date(2022, 3, 3), date(2022, 3, 4)),
            "dates: 2022-03-02 to 2022-03-04 in the column, 2022-03-01 to 2022-03-03 in the query",
        ),
        ({"days": 1}, "dates", (date(2022, 3, 1),), "days: 1 in the column, 3 in the query"),
        ({"local_constraint": {"house rule": None}}, "house_rules", (),
         "house rule: none in the column, smoking in the query"),
        ({"local_constraint": {"cuisine": ["Indian", "French"]}}, "cuisines", ("Indian", "French"),
         "cuisine: Indian, French in the column, French in the query"),
        ({"local_constraint": {"room_type": "not shared room"}}, "not_shared", True,
         "room type: not shared room in the column, private room in the query"),
        ({"local_constraint": {"transportation": "no self-driving"}}, "barred", ("Self-driving",),
         "transportation: no self-driving in the column, no flight in the query"),
    ])  # fmt: skip
def test_a_column_counts_where_the_query_differs(
    column: dict[str, Any], field: str, value: Any, differs: str
) -> None:
    reading = read_request(QUERY, Columns.model_validate(column))
    assert getattr(reading.request, field) == value
    assert reading.differs == (differs,)


def test_a_whole_local_constraint_leaves_nothing_unread() -> None:
    query = f"{QUERY} We hate pets."
    assert read_request(query, Columns()).request.unread == ("pets",)
    assert (
        read_request(query, Columns.model_validate({"local_constraint": NONE})).request.unread == ()
    )


def test_dates_that_are_not_as_many_as_the_days_are_refused() -> None:
    with pytest.raises(ValueError, match="has 3 dates, and `days` is 5; make them agree"):
        read_request(QUERY, Columns.model_validate({**WHOLE, "days": 5}))


@all_rows(
    ("column", "words"),
    [
        ({"date": "__import__('os').getcwd()"}, "is not a list or record as Python writes them"),
        ({"date": ["2022-03-01", "2022-03-03"]}, "has 2022-03-03 after 2022-03-01; list every day"),
        ({"date": []}, "is empty; write a list of days such as 2022-03-16"),
        ({"date": [5]}, "is a list; write a list of days such as 2022-03-16"),
        (
            {"local_constraint": "{'house rules': None}"},
            "has 'house rules'; did you mean house rule",
        ),
        ({"local_constraint": {"house rule": "smokin"}}, "did you mean smoking"),
        (
            {"local_constraint": ["smoking"]},
            "write an object with house rule, cuisine, room type, transportation",
        ),
        ({"people_number": 0}, "greater than or equal to 1"),
        ({"budget": "much"}, "valid number"),
    ],
)
def test_an_invalid_column_is_named(column: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Columns.model_validate(column)
