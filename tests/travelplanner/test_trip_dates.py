"""Dates of a trip, as people write them."""

from datetime import date

import pytest

from examples.group_trip.travelplanner.trip_dates import parse_dates
from tests.rows import all_rows

FIRST_TO_FIFTH = (
    "from March 1st to March 5th, 2022|from March 1 to March 5, 2022|March 1-5, 2022|March 1st–5th, 2022|"
    "from 1 March to 5 March 2022|between the 1st and 5th of March, 2022|2022-03-01 to 2022-03-05|"
    "03/01/2022 - 03/05/2022|from 3/1 to 3/5/2022|Mar 1 to Mar 5, 2022|from Mar. 1st until Mar. 5th, 2022|"
    "5 days starting on March 1st, 2022|for five days, beginning March 1, 2022|for 4 nights from March 1st, 2022|"
    "March 1st, 2022 through March 5th, 2022|in 2022 from March 1st through the 5th|1st-5th March 2022|"
    "departing March 1st, 2022 and returning March 5th|from the 1st to the 5th of March 2022|"
    "from Tuesday, March 1st to Saturday, March 5th, 2022|march 1st to march 5th, 2022|March 1st to 5th 2022|"
    "from March 1st to March 5th, 2022, with March 3rd in Dallas|from March the 1st to March the 5th, 2022|"
    "from the first of March to the fifth of March, 2022|March first to March fifth, 2022|"
    "from the first to the fifth of March 2022|on March 1st, 2nd, 3rd, 4th and 5th, 2022"
)


@all_rows("words", FIRST_TO_FIFTH.split("|"))
def test_a_trip_has_every_day_from_the_first_to_the_last(words: str) -> None:
    dates = parse_dates(f"A trip for 2 people to 3 cities {words}, with a budget of $1,900.")
    assert dates == tuple(date(2022, 3, day) for day in range(1, 6))


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("a week from March 1st, 2022", date(2022, 3, 1), date(2022, 3, 7)),
        ("from March 30th to April 2nd, 2022", date(2022, 3, 30), date(2022, 4, 2)),
        (
            "from May 3rd to May 7th, 2022, with 24/7 service and 1/2 board",
            date(2022, 5, 3),
            date(2022, 5, 7),
        ),
        ("from December 30th to January 2nd, 2023", date(2022, 12, 30), date(2023, 1, 2)),
        ("from December 30th, 2022 to January 2nd", date(2022, 12, 30), date(2023, 1, 2)),
        ("on March 9th, 2022, for one day", date(2022, 3, 9), date(2022, 3, 9)),
    ],
)
def test_a_trip_may_turn_the_month_or_the_year_or_have_one_date_and_a_length(
    words: str, first: date, last: date
) -> None:
    dates = parse_dates(words)
    assert (dates[0], dates[-1], len(dates)) == (first, last, (last - first).days + 1)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("in March 2022", "does not state its first and last day"),
        ("from March 5th, 2022", "does not state its first and last day"),
        ("from March 1st to March 5th", "does not state the year of its dates"),
        ("from March 1st, 2020 to March 5th, 2022", "has a trip of 735 days"),
    ],
)
def test_missing_or_impossible_dates_are_named(words: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_dates(words)
