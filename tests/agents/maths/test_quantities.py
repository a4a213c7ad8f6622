"""Answers as one value each: what the pairs judged by hand (`test_pairs.py`) do not show."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.maths.comparison import (
    are_equal_numbers,
    compare_answer_values,
    list_claimed_expressions,
)
from jurygraph.agents.maths.reading import (
    AnswerValue,
    find_measure_unit,
    find_required_unit,
    parse_answer,
)
from tests.rows import all_rows

NEVER_18 = [
    *(
        "18 dozen",
        "18 gross",
        "18 lakh",
        "18 bn",
        "$18 grand",
        "$18 Mn",
        "18 quadrillion",
        "18 hundreds",
        "18K",
    ),
    *(
        "18 thousandths",
        "18 twelfths",
        "18 halved",
        "18 doubled",
        "18 years less",
        "18 fewer",
        "18 more",
        "18 BC",
    ),
    *(
        "18 in debt",
        "18 deficit",
        "18 XVII",
        "18 nope",
        "18 wrongly",
        "18 lol actually",
        "18-",
        "18/",
        "18 per",
    ),
    *(
        "18 mod 20",
        r"18 \mod 20",
        "18a",
        "18^2",
        "18²",
        "18⁻²",
        r"18\text{}^2",
        "18%^2",
        "18/m",
        "18½",
        "–18",
    ),
    *(
        "18 apples of",
        "18 large red duck eggs",
        "18 pm",
        "minus 18",
        "--18",
        "17–18",
        "17 36/2",
        "$18 cm",
        "17 1",
    ),
    *(
        "about 18",
        "18 (eighteen)",
        "18 isn't it",
        "18, not 17",
        "18; 19",
        "18\n19",
        r"18\quad 20",
        "18 slices of 3",
    ),
    *(
        "",
        "$",
        "Monday",
        "$17$ $18$",
        "18_20",
        "1.2.3",
        "1" * 1001,
        r"\(17\) and \(18\)",
        "18% of 20",
        "18 cm cm",
    ),
]


@all_rows("text", NEVER_18)
def test_what_is_not_18_alone_is_not_read_as_18(text: str) -> None:
    reading = parse_answer(text)
    assert reading is None or (reading.latex != "18" and reading.value != 18)


@all_rows(
    "text",
    ["3a", "3s", "2L", "2x", "10^3", r"\frac12^2", "-2^2", "1.5^2", "9+9", r"\sqrt{2}", "(1,2)"],
)
def test_glued_letters_and_powers_stay_an_expression(text: str) -> None:
    assert parse_answer(text) == AnswerValue(text)


EQUAL = {
    ("50%", "50"): True,
    ("50%", "0.5"): True,
    ("0.333333", "1/3"): True,
    ("12.50", "12.5"): True,
}
EQUAL |= {
    ("0.33", "1/3"): False,
    ("0.0000001", "0"): False,
    ("18.001", "18"): False,
    ("50%", "5"): False,
}


@all_rows(("pair", "equal"), EQUAL.items())
def test_numbers_are_equal_in_both_orders(pair: tuple[str, str], equal: bool) -> None:
    one, other = map(parse_answer, pair)
    assert one is not None
    assert other is not None
    assert are_equal_numbers(one, other) is are_equal_numbers(other, one) is equal


CLAIMS = [
    *(
        ("18", "18", ["18"]),
        ("x = 18", "18", [" 18"]),
        ("3+15=18", "18", ["3+15", "18"]),
        ("x=17=18", "x=18", []),
    ),
    *(
        ("x=1,2", "1,2", ["1,2"]),
        (r"\sum_{i=1}^{3} i", "6", [r"\sum_{i=1}^{3} i"]),
        ("x=18", "y=18", ["x=18"]),
    ),
    *(("17=18, 18", "18", ["17", "18, 18"]), ("=18", "18", []), ("18:1", "18", [])),
]


@all_rows(("answer", "reference", "expected"), CLAIMS)
def test_equations_claim_expressions(answer: str, reference: str, expected: list[str]) -> None:
    assert list_claimed_expressions(answer, reference) == expected


LENGTHS = ("mm", "cm", "dm", "meters", "km", "inches", "feet", "yards", "miles")


@given(
    st.fractions(0, 10**6, max_denominator=100), st.sampled_from(LENGTHS), st.sampled_from(LENGTHS)
)
def test_a_length_equals_itself_in_every_other_unit(value: Fraction, one: str, other: str) -> None:
    unit, other_unit = find_measure_unit(one), find_measure_unit(other)
    assert unit is not None
    assert other_unit is not None
    here = parse_answer(f"{value} {one}")
    there = parse_answer(f"{value * unit.size / other_unit.size} {other}")
    assert here is not None
    assert there is not None
    assert compare_answer_values(here, there) is compare_answer_values(there, here) is True


WORDS = [
    *(
        "18",
        "1/2",
        ".5",
        "-",
        "$",
        "€",
        "k",
        "K",
        "cm",
        "m",
        "^2",
        "square",
        "per",
        "hours",
        "cents",
        "%",
        ":30",
        "pm",
    ),
    *(
        " to ",
        "–",
        "million",
        "red marbles",
        r"\text{",
        "}",
        r"\frac{1}{2}",
        " ",
        ",",
        "'",
        "of",
        "e9",
        "x",
        "²",
        "½",
    ),
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map("".join)


@given(TEXTS, TEXTS)
def test_any_two_texts_are_compared_the_same_in_both_orders(one: str, other: str) -> None:
    a = parse_answer(one)
    b = parse_answer(other)
    if a and b:
        assert compare_answer_values(a, b) == compare_answer_values(b, a)


HOSTILE = [
    "1",
    "1 ",
    "{",
    r"\text{",
    "a ",
    "apple ",
    "1=",
    "1{,}",
    r"1\,111",
    "1 000 ",
    "²",
    "½",
    "–",
    "1 m ",
    "1m",
]
HOSTILE += [
    "1.111",
    "1,11",
    "1–",
    "1 to ",
    "of ",
    " square",
    "*10^9",
    "1:",
    "1 per day",
    "¢",
    "k",
    "C$",
    " k",
    "1,",
]


@all_rows("piece", HOSTILE)
def test_long_hostile_texts_do_not_claim_the_reference(piece: str) -> None:
    for text in (piece * (10_000 // len(piece)), "18 " + piece * (9_000 // len(piece))):
        reading = parse_answer(text)
        assert reading is None or reading.value != 18
        assert "18" not in list_claimed_expressions(text, "18")


ASKED = {
    "She sells eggs for $2. How much in dollars does she make every day?": "dollars",
    "He ran in hours of rain. How many minutes did it take?": "minutes",
    "How many more miles must he walk in 30 minutes?": "miles",
    "How many eggs are left?": "",
    "How many hours or how many minutes?": "",
    "Tell me how many minutes.": "",
}


@all_rows(("question", "unit"), ASKED.items())
def test_the_unit_that_a_question_asks_for(question: str, unit: str) -> None:
    assert find_required_unit(question) == unit
