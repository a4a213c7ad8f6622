from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jurygraph.agents.maths.arithmetic import MAX_EQUALS_SIGNS, steps
from tests.rows import all_rows

RIGHT = [
    *(
        "16 - 3 = 13",
        "5 × 3 = 15",
        "3 x 4 = 12",
        r"3 \times 4 = 12",
        "5 ÷ 2 = 2.5",
        "20 - 30 = -10",
    ),
    *(
        "1,000 + 200 = 1,200",
        "2*9 = $18",
        "£5 + €3 = 8",
        "20% * 50 = 10",
        "5/20 = 25%",
        "100 - 20 = 80%",
    ),
    *(
        "10/3 = 3.33",
        "10/3 = 3.34",
        "4.20+9.45+1.35=14.999999999999998",
        "500/6 = 83",
        "450/70 = 6",
    ),
    *("33.33 * 3 = 100", "(3 + 4) * 2 = 14", "3 + 4 = 6 + 1"),
]

WRONG = [
    "16 - 3 = 14",
    "(3+4)*2=15",
    "10/3 = 3.35",
    "1/3 = 0",
    "5/20 = 25",
    "2*3 = 7.0",
    "5/0 = 3",
    "1.5 * 3 = 5",
    "999999999 * 9 = 8999999992",
]

SKIPPED = [
    *(
        "2x+30=110",
        "3*x = 15",
        "X*.25=19.5",
        "12 apples * 3 = 37",
        "apples - 3 = 9",
        "2^3 + 1 = 10",
        "2**3 + 1 = 10",
    ),
    *(
        "3,5 + 1,5 = 5,1",
        "half of 4 + 2 = 4",
        "3 times 4 + 2 = 14",
        "1 1/2 + 1/2 = 2",
        "5+1 = 2(3)",
    ),
    *(
        "(5 apples) * 3 + 2 = 18",
        "10:30 + 2 = 12:30",
        "500 + 501 = 1 000",
        "999 + 1 = 1 thousand",
        "6*2 = 3 * y",
    ),
    *(
        "4! + 1 = 25",
        "200 + 10% = 220",
        "3 + 4 == 8",
        "3 + 4 >= 8",
        "x = 5",
        "25% = 50",
        "3 + 4\n= 8",
        "3 + ½ = 4",
    ),
]


@all_rows("text", RIGHT)
def test_right_equalities(text: str) -> None:
    (step,) = steps(f"So it is {text} eggs.")
    assert step.is_right


@all_rows("text", WRONG)
def test_wrong_equalities(text: str) -> None:
    (step,) = steps(f"So it is {text} eggs.")
    assert not step.is_right


@pytest.mark.parametrize("text", SKIPPED)
def test_texts_that_are_not_arithmetic_are_skipped(text: str) -> None:
    assert steps(text) == ()


def test_an_annotation_and_its_equation_are_one_step() -> None:
    assert [step.quote for step in steps("16 - 3 = <<16-3=13>>13 eggs, 2 * 9 = $<<2*9=18>>18")] == [
        "16-3=13",
        "2*9=18",
    ]
    assert [step.quote for step in steps("16 - 3 = 13 <<16-3=13>>")] == ["16-3=13"]
    assert [step.quote for step in steps("2*3 = <<2*3=6>>6 + 5 = 12")] == ["2*3=6", "6 + 5 = 12"]


@pytest.mark.parametrize(
    "text",
    [
        "- 3 + 4 = 7",
        "−3 + 5 = 2",
        "1. 3 + 4 = 7",
        "1) 3+4=7",
        "(3+4=7)",
        "**3 + 4 = 7**",
        r"\( 3+4=7 \)",
    ],
)
def test_surrounding_text_does_not_matter(text: str) -> None:
    (step,) = steps(text)
    assert step.is_right


def test_a_chain_gives_each_equality() -> None:
    assert [(s.value, s.is_right) for s in steps("2 + 3 = 5 + 4 = 9")] == [(5, True), (9, True)]
    assert [(s.value, s.is_right) for s in steps("2 + 3 = 1 + 4 = 5")] == [(5, True), (5, True)]
    assert [(s.value, s.is_right) for s in steps("2 + 3 = 6 + 4 = 10")] == [(5, False), (10, True)]


def test_too_long_equalities_are_skipped() -> None:
    assert steps("1+" * 100 + "1=102") == ()
    assert len(steps("1+1=2\n" * (MAX_EQUALS_SIGNS + 5))) == MAX_EQUALS_SIGNS


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction]:
    """An expression and its value."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 999))
        return draw(st.sampled_from([str(number), f"{number:,}", f"{number}.0"])), Fraction(number)
    (left, a), (right, b) = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    sign = draw(st.sampled_from("+-*/×÷"))
    blank = draw(st.sampled_from(["", " "]))
    if sign in "/÷":
        assume(b != 0)
        value = a / b
    else:
        value = {"+": a + b, "-": a - b}.get(sign, a * b)
    return f"({left}){blank}{sign}{blank}({right})", value


@given(expressions(), st.sampled_from(["", "So ", "Then we get $", "text\n"]), st.integers(1, 50))
def test_exact_results_are_right_and_others_wrong(
    made: tuple[str, Fraction], before: str, off: int
) -> None:
    expression, value = made
    assume("(" in expression and len(expression) <= 190)
    text = f"{before}{expression} = {_written(value)} eggs"
    (step,) = steps(text)
    assert step.is_right
    assert step.value == value
    assert text[step.start : step.end] == step.quote
    assert step.expression == expression
    (other,) = steps(f"{before}{expression} = {_written(value + off)}")
    assert not other.is_right


def _written(value: Fraction) -> str:
    return (
        str(value.numerator)
        if value.denominator == 1
        else f"{value.numerator} / {value.denominator}"
    )


HOSTILE = [
    "1+" * 500_000,
    "(" * 10**6,
    "=" * 10**6,
    "= " * 500_000,
    "1+1=" * 250_000,
    "<<" * 500_000,
]
HOSTILE += [
    "<<1+1=2>>" * 10**5,
    (")" * 199 + "=") * 5000,
    ("9/" * 99 + "7=") * 5000,
    ("1," * 100 + "=") * 5000,
]


@pytest.mark.landing
@pytest.mark.parametrize(
    "most", [200_000, pytest.param(10**7, marks=pytest.mark.exhaustive)], ids=["cut off", "whole"]
)
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:10])
def test_hostile_texts_give_steps_that_occur_in_them(text: str, most: int) -> None:
    text = text[:most]
    assert all(step.quote == text[step.start : step.end] for step in steps(text))
