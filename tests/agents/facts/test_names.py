"""When two names are the same, and which one was nearly written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.values import (
    MAX_COMPARED,
    is_missing,
    nearest_name,
    normalise,
    parse_number,
    to_text,
    value_sort_key,
    values_agree,
)
from tests.rows import all_rows


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Coco Bambu", "  Coco \t Bambu\n"),
        ("Coco Bambu", "Coco\u00a0Bambu"),
        ("Coco Bambu", "Coco\u2003Bambu"),
        ("Café", "Cafe\u0301"),
        ("Hotel 25", "Ｈｏｔｅｌ ２５"),
        ("office", "oﬃce"),
        ("25", 25.0),
    ],
)
def test_a_name_is_the_same_in_every_compatibility_form_and_white_space(one: str, other: Any) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Coco Bambu", "coco bambu"), ("Café", "Cafe"), ("CocoBambu", "Coco Bambu"), ("Faaso's", "Faaso’s"), ("A", "А")],
    ids=["case", "accent", "no space", "apostrophe", "Cyrillic"],
)
def test_a_name_is_another_by_one_letter(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_very_many_combining_marks_take_no_time() -> None:
    """The time of NFKC grows with the square of their number: ten minutes for these."""
    text = "e" + "\u0301\u0323" * 500_000
    assert normalise(f"{text}  x") == f"{text} x"


@all_rows(
    ("value", "text"),
    [
        (25.0, "25"),
        (25.5, "25.5"),
        (-0.0, "0"),
        (7, "7"),
        ("7.0", "7.0"),
        (None, ""),
        ([1, "é"], '[1, "é"]'),
        ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
    ],
)
def test_a_value_as_text(value: Any, text: str) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize("value", [None, "", float("nan")])
def test_none_empty_text_and_nan_are_missing(value: Any) -> None:
    assert is_missing(value)


@all_rows(
    ("value", "expected"),
    [
        (3, 3),
        (2.5, 2.5),
        ("12", 12),
        (" 12.50 ", 12.5),
        ("1,200", 1200),
        ("$1,234,567.5", 1234567.5),
        ("$ 12", 12),
        ("-$5", -5),
        ("+5", 5),
        (".5", 0.5),
        ("1e-05", 1e-05),
        ("0", 0),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_numbers(value: Any, expected: float) -> None:
    assert parse_number(value) == expected


@all_rows(
    "value",
    [
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
        "nan",
        "inf",
    ],
)
def test_a_text_that_is_not_a_number(value: Any) -> None:
    assert parse_number(value) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "9" * 400, "1e+999"])
def test_a_number_is_finite(value: Any) -> None:
    assert parse_number(value) is None


def test_numbers_rank_before_words_and_words_before_nothing() -> None:
    values = [None, "b", 10, "9", "a", 2.5, "", [1]]
    assert sorted(values, key=value_sort_key) == [2.5, "9", 10, "a", "b", None, "", [1]]


@pytest.mark.parametrize(
    ("claimed", "value"),
    [("$1,200", 1200), ("25.0", 25), ("25", "25.0"), ("25", 25.0), ("Entire home", "Entire  home"), ("007", "007")],
)
def test_a_claim_agrees_by_value_or_text(claimed: str, value: Any) -> None:
    assert values_agree(claimed, value)


@all_rows(
    ("claimed", "value"),
    [
        ("25.01", 25),
        ("9007199254740993", 9007199254740992),
        ("7", "007"),
        ("120", "1,20"),
        ("entire home", "Entire home"),
        ("", None),
        ("", ""),
        ("nan", float("nan")),
        ("1", True),
        ("", 0),
        ("about 25", 25),
    ],
)
def test_a_differing_claim_disagrees(claimed: str, value: Any) -> None:
    assert not values_agree(claimed, value)


@given(st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-3), st.floats(0.01, 1.0))
def test_a_number_may_be_off_by_a_share_of_the_tables(value: float, within: float) -> None:
    inside, outside = value * (1 + 0.99 * within), value * (1 + 1.01 * within)
    assert values_agree(repr(inside), value, within)
    assert not values_agree(repr(outside), value, within)
    assert not values_agree(repr(inside), value)


@pytest.mark.parametrize("name", ["Coco Bambo", "coco Bambu", "Coco Bambu 2", "oco Bambu"])
def test_the_name_that_was_nearly_written(name: str) -> None:
    assert nearest_name(name, ["Subway", "Coco Bambu", "Flying Mango"]) == "Coco Bambu"


@pytest.mark.parametrize("name", ["", "Burger King", "B" * 10**6])
def test_no_name_is_near(name: str) -> None:
    assert nearest_name(name, ["Subway", "Coco Bambu", "Flying Mango"]) is None


@given(st.permutations(["Hotel 1", "Hotel 2", "Hotel 3", "Hotel 4"]))
def test_of_equally_near_names_the_alphabetically_first_is_suggested(names: list[str]) -> None:
    assert nearest_name("Hotel 5", names) == "Hotel 1"


def test_the_number_of_compared_names_is_bounded() -> None:
    assert nearest_name("zz Inn", [*(f"{i:06}" for i in range(MAX_COMPARED - 1)), "zz Inm"]) == "zz Inm"
    assert nearest_name("zz Inn", [*(f"{i:06}" for i in range(MAX_COMPARED)), "zz Inm"]) is None
