"""The budget of a trip, as people write it."""

import pytest

from examples.group_trip.travelplanner.budgets import parse_budget
from tests.rows import all_rows

NINETEEN_HUNDRED = (
    "a budget of $1,900|a budget of 1,900 dollars|a budget of USD 1,900|a budget of US$1,900|1900 USD|$1.9k|"
    "nineteen hundred dollars|one thousand nine hundred dollars|a budget of 1900|our budget is set at 1,900|"
    "we can spend up to $1,900|$950 per person|$950 each|$950 a head|a per-person budget of $950|a $1,900 budget|"
    "a budget between $1,500 and $1,900|a budget of $1,500-$1,900|a budget raised from $1,500 to $1,900|"
    "our budget was $1,500, now $1,900|no more than $1900.00|1.9 thousand dollars|$1,900, which is $1,900 in all|"
    "a total budget of $1,900, with at most $100 per night for hotels|a budget of $1,900, and a voucher of $50"
)


@all_rows("words", NINETEEN_HUNDRED.split("|"))
def test_a_budget_is_in_dollars_for_all(words: str) -> None:
    assert (
        parse_budget(
            f"A trip for 2 people from March 1st to March 5th, 2022, with {words}.", people=2
        )
        == 1900
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("no limit", "has no budget such as"),
        ("a budget of €1,900", "has no budget such as"),
        ("$100 per day", "has a budget per day; write one for the whole trip"),
        (
            "a budget of $900 and a food budget of $1,000, or so",
            r"has several budgets \(\$900, \$1,000\)",
        ),
    ],
)
def test_no_budget_for_the_whole_trip_or_several_are_named(words: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_budget(
            f"A trip for 2 people from March 1st to March 5th, 2022, with {words}.", people=2
        )
