"""Values as numbers and as texts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.values import Amount, are_equal, compare, equality_key, parse_amount, split_list
from tests.rows import all_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
MONEY = st.builds(
    lambda number, form: form.format(number),
    st.integers(0, 3),
    st.sampled_from(["{}", "${}", "€{}", "{} EUR", "EUR {}", "{}.0", "a{}"]),
)


@all_rows(
    ("value", "number", "currency"),
    [
        (12, 12, ""),
        (0.5, 0.5, ""),
        ("12", 12, ""),
        (" 12 ", 12, ""),
        ("-3.5", -3.5, ""),
        ("1,200", 1200, ""),
        ("1,234,567.89", 1234567.89, ""),
        ("$1,200", 1200, "$"),
        ("$ 5", 5, "$"),
        ("5€", 5, "€"),
        ("1,200 EUR", 1200, "EUR"),
        ("EUR 5", 5, "EUR"),
    ],
)
def test_a_number_is_read_with_its_currency(value: Any, number: float, currency: str) -> None:
    assert parse_amount(value) == Amount(number, currency)


NO_NUMBERS = [
    None,
    True,
    False,
    "",
    "cheap",
    "5 or 6",
    "1,5",
    "1,2,3",
    "12 km",
    "10:30",
    "007",
    10**400,
    1e999,
    [5],
    {},
]


@all_rows("value", [*NO_NUMBERS, "9" * 400])
def test_anything_else_is_no_number(value: Any) -> None:
    assert parse_amount(value) is None


@all_rows(
    ("one", "other"),
    [(3, 3.0), ("3", 3), ("1,200", 1200), ("$12", 12), (True, True), ("a  b", "a b"), ("ﬁne", "fine"), ([1], [1])],
)
def test_numbers_are_the_same_by_value_and_texts_once_normalised(one: Any, other: Any) -> None:
    assert are_equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [(3, 4), ("$12", "12 EUR"), (True, 1), ("a", "A"), ("007", "7"), ("10:30", "10:31"), ([1], [2])]
)
def test_different_values_are_not_equal(one: Any, other: Any) -> None:
    assert not are_equal(one, other)


def test_the_order_of_an_objects_keys_does_not_matter() -> None:
    assert are_equal({"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"d": 3, "c": 2}], "a": 1})


@all_rows(
    ("one", "other", "order"),
    [
        (1, 2, -1),
        ("10", 9, 1),
        ("$12", 12, 0),
        ("09:00", "10:30", -1),
        ("2022-03-16", "2022-03-15", 1),
        ("$12", "9 EUR", None),
        ("9:30", "10:00", -1),
        ("09:30", "9:30:00", 0),
        ("9:30 PM", "21:29", 1),
        ("12:05 am", "0:05", 0),
        ("2022-3-5", "2022-03-10", -1),
        ("2022-03-05 9:00", "2022-03-05T10:00", -1),
        ("2022-03-05", "9:30", None),
        ("2022-03-05", "2022-03-05 9:00", None),
        ("Oslo", "Rome", None),
        ("cheap", 3, None),
        ("cheap", "3", None),
        (True, 1, None),
        (None, None, None),
        ([1], [2], None),
    ],
)
def test_values_are_ordered(one: Any, other: Any, order: int | None) -> None:
    assert compare(one, other) == order


@given(JSON | MONEY, JSON | MONEY)
def test_comparison_is_antisymmetric(one: Any, other: Any) -> None:
    order, turned = compare(one, other), compare(other, one)
    assert order == (None if turned is None else -turned)
    assert are_equal(one, other) == are_equal(other, one)
    assert are_equal(one, one)


@given(MONEY, MONEY, MONEY)
def test_rows_with_equal_keys_are_the_same(one: str, other: str, third: str) -> None:
    """A key parts all values into groups, which `same` does not: $5 and 5 are the same, and 5 and €5."""
    assert are_equal(one, other) or equality_key(one) != equality_key(other)
    assert (
        equality_key(one) != equality_key(other)
        or equality_key(other) != equality_key(third)
        or equality_key(one) == equality_key(third)
    )


@pytest.mark.parametrize(
    ("value", "separator", "found"),
    [
        ("Tea, Pizza", ",", ["Tea", "Pizza"]),
        ("No pets & No parties", "&", ["No pets", "No parties"]),
        ("Tea", ",", ["Tea"]),
        ("Tea, Pizza", None, ["Tea, Pizza"]),
        (["Tea", 5], ",", ["Tea", 5]),
        (7, ",", ["7"]),
        (7, None, [7]),
    ],
)
def test_the_parts_of_a_list(value: Any, separator: str | None, found: list[Any]) -> None:
    assert list(split_list(value, separator)) == found
