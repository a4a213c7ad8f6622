"""Names and values as texts, numbers and moments."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.tables import (
    are_equal,
    claimed_value_matches,
    compare_values,
    is_missing,
    normalise_text,
    parse_number,
    split_list,
    value_sort_key,
    value_to_text,
)
from tests.rows import all_rows

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
SPELLED = st.sampled_from(
    ["3", "$3", "3.0", "2022-03-05", "2022-3-5", "9:30", "09:30", "9:30 AM", "a"]
)


@all_rows("other", ["  Coco \t Café\n", "Coco\u00a0Café", "Coco Cafe\u0301", "Ｃｏｃｏ Café"])
def test_a_name_is_the_same_in_every_compatibility_form_and_white_space(other: str) -> None:
    assert normalise_text(other) == "Coco Café"


@all_rows("other", ["coco Café", "Coco Cafe", "CocoCafé", "Соco Café"])
def test_a_name_is_another_by_one_letter(other: str) -> None:
    assert normalise_text(other) != "Coco Café"


def test_very_many_combining_marks_take_no_time() -> None:
    """The time of NFKC grows with the square of their number: ten minutes for these."""
    text = "e" + "\u0301\u0323" * 500_000
    assert normalise_text(f"{text}  x") == f"{text} x"


TEXTS = [
    (25.0, "25"),
    (25.5, "25.5"),
    (-0.0, "0"),
    ("7.0", "7.0"),
    (None, ""),
    ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
]


@all_rows(("value", "text"), TEXTS)
def test_a_value_as_text(value: Any, text: str) -> None:
    assert value_to_text(value) == text


@all_rows("value", [None, "", float("nan")])
def test_none_empty_text_and_nan_are_missing(value: Any) -> None:
    assert is_missing(value)


NUMBERS = [
    (3, 3),
    (2.5, 2.5),
    (" 12.50 ", 12.5),
    ("1,200", 1200),
    ("$1,234,567.5", 1234567.5),
    ("$ 12", 12),
]
NUMBERS += [
    ("-$5", -5),
    ("+5", 5),
    (".5", 0.5),
    ("1e-05", 1e-05),
    ("0", 0),
    ("9007199254740993", 9007199254740993),
]


@all_rows(("value", "number"), NUMBERS)
def test_a_number_is_read(value: Any, number: float) -> None:
    assert parse_number(value) == number


NO_NUMBERS = [
    True,
    None,
    "",
    "x",
    "-",
    "$",
    "007",
    "1,20",
    "12,00",
    "1_000",
    "1 000",
    "٣",
    "1e5",
    "e+5",
    "12 EUR",
    [5],
]
NO_NUMBERS += [
    "nan",
    "inf",
    float("nan"),
    float("inf"),
    10**400,
    "9" * 400,
    "1e+999",
    "5 or 6",
    "12 km",
    "10:30",
    {},
]


@all_rows("value", NO_NUMBERS)
def test_anything_else_is_no_number(value: Any) -> None:
    assert parse_number(value) is None


def test_numbers_rank_before_words_and_words_before_nothing() -> None:
    values = [None, "b", 10, "9", "a", 2.5, "", [1]]
    assert sorted(values, key=value_sort_key) == [2.5, "9", 10, "a", "b", None, "", [1]]


AGREE = [
    ("$1,200", 1200),
    ("25", "25.0"),
    ("25", 25.0),
    ("Entire home", "Entire  home"),
    ("007", "007"),
]
DISAGREE = [
    ("25.01", 25),
    ("9007199254740993", 9007199254740992),
    ("7", "007"),
    ("120", "1,20"),
    ("", None),
    ("", ""),
]
DISAGREE += [
    ("entire home", "Entire home"),
    ("nan", float("nan")),
    ("1", True),
    ("", 0),
    ("about 25", 25),
]


@all_rows(
    ("pair", "agrees"), [*((pair, True) for pair in AGREE), *((pair, False) for pair in DISAGREE)]
)
def test_a_claim_agrees_by_value_or_text(pair: tuple[str, Any], agrees: bool) -> None:
    assert claimed_value_matches(*pair) is agrees


@given(st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-3), st.floats(0.01, 1.0))
def test_a_number_may_be_off_by_a_share_of_the_tables(value: float, within: float) -> None:
    inside = repr(value * (1 + 0.99 * within))
    assert claimed_value_matches(inside, value, within)
    assert not claimed_value_matches(repr(value * (1 + 1.01 * within)), value, within)
    assert not claimed_value_matches(inside, value)


EQUAL: list[tuple[Any, Any]] = [
    (3, 3.0),
    ("3", 3),
    ("1,200", 1200),
    ("$12", 12),
    (True, True),
    ("a  b", "a b"),
]
EQUAL += [
    ("ﬁne", "fine"),
    ([1], [1]),
    ("9:30 PM", "21:30"),
    ({"a": 1, "b": [{"c": 2}]}, {"b": [{"c": 2}], "a": 1}),
]
UNEQUAL = [
    (3, 4),
    ("$12", "12 EUR"),
    (True, 1),
    ("a", "A"),
    ("007", "7"),
    ("10:30", "10:31"),
    ([1], [2]),
]


@all_rows(
    ("pair", "equal"), [*((pair, True) for pair in EQUAL), *((pair, False) for pair in UNEQUAL)]
)
def test_values_are_equal_by_value_or_normalised_text(pair: tuple[Any, Any], equal: bool) -> None:
    assert are_equal(*pair) is equal


ORDERS: list[tuple[Any, Any, int | None]] = [
    *(
        (1, 2, -1),
        ("10", 9, 1),
        ("$12", 12, 0),
        ("09:00", "10:30", -1),
        ("2022-03-16", "2022-03-15", 1),
    ),
    *(
        ("9:30", "10:00", -1),
        ("09:30", "9:30:00", 0),
        ("9:30 PM", "21:29", 1),
        ("2022-3-5", "2022-03-10", -1),
    ),
    *(
        ("2022-03-05", "9:30", None),
        ("2022-03-05", "2022-03-05 9:00", None),
        ("Oslo", "Rome", None),
        (True, 1, None),
    ),
    *(
        ("cheap", 3, None),
        ("25:00", "1:00", None),
        ("5 EUR", 3, None),
        (None, None, None),
        ([1], [2], None),
    ),
]


@all_rows(("one", "other", "order"), ORDERS)
def test_values_are_ordered(one: Any, other: Any, order: int | None) -> None:
    assert compare_values(one, other) == order


@given(JSON | SPELLED, JSON | SPELLED)
def test_comparison_is_antisymmetric(one: Any, other: Any) -> None:
    order, turned = compare_values(one, other), compare_values(other, one)
    assert order == (None if turned is None else -turned)
    assert are_equal(one, other) == are_equal(other, one)
    assert order is None or (order == 0) == are_equal(one, other)


LISTS: list[tuple[Any, str | None, list[Any]]] = [
    *(
        ("Tea, Pizza", ",", ["Tea", "Pizza"]),
        ("Tea", ",", ["Tea"]),
        ("Tea, Pizza", None, ["Tea, Pizza"]),
    ),
    *((["Tea", 5], ",", ["Tea", 5]), (7, ",", ["7"]), (7, None, [7])),
]


@pytest.mark.parametrize(("value", "separator", "parts"), LISTS)
def test_the_parts_of_a_list(value: Any, separator: str | None, parts: list[Any]) -> None:
    assert list(split_list(value, separator)) == parts
