from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.maths.answer_parser import (
    Number,
    are_equal_numbers,
    claimed_expressions,
    compare_plainly,
    parse_answer,
)
from tests.rows import all_rows

NUMBERS = {
    "$18$": 18,
    "$-18$": -18,
    "-$18": -18,
    r"1\,000": 1000,
    r"\$70,000": 70000,
    "1 1/2": Fraction(3, 2),
    "1e5": 100000,
}
NUMBERS |= dict.fromkeys(
    ("18m", "18 cm^2", r"18\text{ cm}^2", r"18\text{ N}", r"18^\circ", "**18**.", r"\boxed{\boxed{18}}"), 18
)
NUMBERS |= dict.fromkeys(
    ("18 duck eggs", "$18 every day", "18 m/s^2", "18 sq. ft.", "18 US dollars", "18 s", r"\(18\)"), 18
)
NUMBERS |= {"2 dozen eggs": 24, "2 hundred thousand": 200000, "$2 million": 2000000, "12{,}345{,}678": 12345678}
NUMBERS |= {
    "0{,}500": Fraction("0.5"),
    r"1,\!000": 1000,
    "1234{,}567": Fraction("1234.567"),
    "–5": -5,
    "Negative 5": -5,
}
NUMBERS |= {"1½": Fraction(3, 2), "-¾": Fraction(-3, 4), "1\u2009000": 1000, "$1 000": 1000, "-1 000": -1000}


@all_rows(("text", "value"), NUMBERS.items())
def test_a_number_is_parsed_to_its_value(text: str, value: Fraction) -> None:
    reading = parse_answer(text)
    assert reading is not None
    assert reading.number is not None
    assert (reading.number.value, reading.number.percent) == (value, False)


REFUSED = [
    *("", " ", "$", "not even", "Monday", "yes", "17 1", "18 20", "$17$ $18$", r"18\quad 20", "18_20", "18 or more"),
    *("about 18", "18 (eighteen)", "18 isn't it", "18, not seventeen", "1.2.3", "18 half", "1" * 1001, "18; 19"),
    *(r"\(17\) and \(18\)", r"18 \text{ unless } 19", r"$\boxed{17}\boxed{18}$", "18\n19", '18"', "18?"),
    *(
        "17 100 19",
        "1 0000",
        "01 000",
        "1\n000",
        r"1\quad 000",
        "1   000",
        "1 000 or 2",
        "1{,}000{,}5",
        r"1\!8",
        "0 BC",
    ),
    *("minus", "minus -5", "18 slices of 3", "18% of 20", "18% million", r"2\frac{1}{2}^2"),
]


@all_rows("text", REFUSED)
def test_a_text_that_is_not_one_value_is_refused(text: str) -> None:
    assert parse_answer(text) is None


NEVER_18 = [
    *("18 dozen", "18 gross", "18 lakh", "18 crore", "18 bn", "18 mil", "$18 grand", "$18 Mn", "18 quadrillion"),
    *("18 hundreds", "18 thousands", "18 millions", "18 thousandths", "18 millionths", "18 twelfths", "18 sevenths"),
    *("18 halved", "18 doubled", "18 tripled", "18 negated", "18 inverse", "18 of", "18 years less", "18 fewer"),
    *("18 more", "18 in debt", "18 deficit", "18 BC", "18 XVII", "18 nope", "18 wrongly", "18 lol actually", "18-"),
    *("18/", "18 \\mod 20", "18 mod 20", "18a", "18^2", "18²", "18\\text{}^2", "18 dozen^2", "18%^2", "18/m"),
    *("18 per", "18 m per", "18 more apples", "18 apples of", "18 large red duck eggs", "18 pm", "18K", "18½", "–18"),
    *("minus 18", "--18", "17–18", "17 36/2"),
]


@all_rows("text", NEVER_18)
def test_a_doubtful_unit_gives_no_number(text: str) -> None:
    reading = parse_answer(text)
    assert reading is None or reading.latex != "18"
    assert reading is None or reading.number is None or not are_equal_numbers(reading.number, _number("18"))


@all_rows("text", ["3a", "3s", "2L", "2x", "10^3", "3³", r"\frac12^2", "-2^2", "1.5^2", "18^2"])
def test_glued_letters_and_powers_stay_an_expression(text: str) -> None:
    reading = parse_answer(text)
    assert reading is not None
    assert reading.number is None
    assert reading.latex == text.replace("³", "^{3}")


@pytest.mark.parametrize(
    ("text", "latex"), [("10⁻²", "10^{-2}"), ("√2", r"\sqrt{2}"), ("x=–5", "x=-5"), ("9+9 apples", "9+9")]
)
def test_unicode_signs_and_units_of_expressions_are_normalised(text: str, latex: str) -> None:
    reading = parse_answer(text)
    assert reading is not None
    assert reading.latex == latex


@pytest.mark.parametrize("text", ["9+9 halved", "x = 9 dozen", "9+9 of", "x = 18 more", "9+9 nope"])
def test_an_unknown_unit_after_an_expression_is_refused(text: str) -> None:
    assert parse_answer(text) is None


@pytest.mark.parametrize(("a", "b"), [("50%", "50"), ("50%", "0.5"), ("0.333333", "1/3"), ("12.50", "12.5")])
def test_equal_numbers(a: str, b: str) -> None:
    assert are_equal_numbers(_number(a), _number(b))
    assert are_equal_numbers(_number(b), _number(a))


@pytest.mark.parametrize(("a", "b"), [("0.33", "1/3"), ("0.0000001", "0"), ("18.001", "18"), ("50%", "5")])
def test_different_numbers(a: str, b: str) -> None:
    assert not are_equal_numbers(_number(a), _number(b))
    assert not are_equal_numbers(_number(b), _number(a))


CLAIMS = [
    *(("18", "18", ("18",)), ("x = 18", "18", (" 18",)), ("3+15=18", "18", ("3+15", "18"))),
    *(("x=17=18", "18", ("17", "18")), ("x=17=18", "x=18", ("x=17", "x=18")), ("x=17, x=18", "18", ("17,18",))),
    *(("x=1,2", "1,2", ("1,2",)), (r"\sum_{i=1}^{3} i", "6", (r"\sum_{i=1}^{3} i",))),
    *(("17=18, 18", "18", ("17", "18, 18")), ("17=18, x=18", "18", ()), ("=18", "18", ()), ("18:1", "18", ())),
]


@all_rows(("answer", "reference", "expected"), CLAIMS)
def test_equations_claim_expressions(answer: str, reference: str, expected: tuple[str, ...]) -> None:
    assert tuple(claimed_expressions(answer, reference)) == expected


HOSTILE = ["1" * 10**4, "1 " * 5000, "{" * 10**4, r"\text{" * 1600, "a " * 5000, "1" + " apple" * 1600, "1=" * 5000]
HOSTILE += [
    "1{,}" * 2500,
    r"1\,111" * 1600,
    "1 000 " * 1600,
    "²" * 10**4,
    "½" * 10**4,
    "–" * 10**4,
    "aaa " * 2500 + "1",
]
HOSTILE += ["1 m " * 2500, "1m" * 5000, "1 h and " * 1400, "5' " * 3000, "1'111" * 2000, "1.111" * 2000, "1,11" * 2500]
HOSTILE += ["1–" * 5000, "1 to " * 2000, "between " + "1 and " * 1600, "1 " + "of " * 3000, "1" + " square" * 1400]
HOSTILE += [
    "1" + "*10^9" * 2000,
    "1:" * 5000,
    "1 per day" * 1000,
    "¢" * 5000,
    "18 " + "k" * 9000,
    "C$" * 5000,
    "$18" + " k" * 4000,
]
HOSTILE += [r"\text{" * 1400 + "}" * 1400, "1," * 5000, "1," + "111," * 2400, "$" * 10**4, "1." * 5000]


@all_rows("text", HOSTILE)
def test_hostile_texts_do_not_claim_the_reference(text: str) -> None:
    reading = parse_answer(text)
    assert reading is None or reading.number is None or reading.number != parse_answer("18").number  # type: ignore[union-attr]
    assert "18" not in claimed_expressions(text, "18")


def _number(text: str) -> Number:
    reading = parse_answer(text)
    assert reading is not None
    assert reading.number is not None
    return reading.number


WORDS = [
    *("18", "1/2", ".5", "-", "$", "€", "k", "K", "cm", "m", "^2", "square", "per", "hours", "cents", "%", ":30"),
    *("pm",),
]
WORDS += [
    " to ",
    " and ",
    "–",
    "million",
    "red marbles",
    r"\text{",
    "}",
    r"\frac{1}{2}",
    " ",
    ",",
    "'",
    '"',
    "of",
    "e9",
    "x",
]


@given(
    st.lists(st.sampled_from(WORDS), max_size=8).map("".join), st.lists(st.sampled_from(WORDS), max_size=8).map("".join)
)
def test_any_two_texts_are_read_and_compared_the_same_in_both_orders(one: str, other: str) -> None:
    a, b = parse_answer(one), parse_answer(other)
    if a and b:
        assert compare_plainly(a, b) == compare_plainly(b, a)
