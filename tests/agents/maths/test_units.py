"""Units of measurement: conversions by the table, and the unit that a question asks for."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.maths.answer_parser import compare_plainly, parse_answer
from jurygraph.agents.maths.units import measure_of, read_unit, required_unit
from tests.rows import all_rows

LENGTHS = ("mm", "cm", "dm", "meters", "km", "inches", "feet", "yards", "miles")


def size(word: str) -> Fraction:
    return measure_of(word)[0].size


@given(st.fractions(0, 10**6, max_denominator=100), st.sampled_from(LENGTHS), st.sampled_from(LENGTHS))
def test_a_length_equals_itself_in_every_other_unit(value: Fraction, one: str, other: str) -> None:
    converted = value * size(one) / size(other)
    here, there = parse_answer(f"{value} {one}"), parse_answer(f"{converted} {other}")
    assert here is not None
    assert there is not None
    assert compare_plainly(here, there) is True
    assert compare_plainly(there, here) is True


@all_rows(
    "text", [" cm cm", " cm^4", " eggs^2", " square", " per", " halved", " dozen dozen dozen", " kcm", " 5 cm", " cm 5"]
)
def test_other_words_are_no_unit(text: str) -> None:
    assert read_unit(text) is None


ASKED = {
    "She sells eggs for $2. How much in dollars does she make every day?": "dollars",
    "He ran in hours of rain. How many minutes did it take?": "minutes",
    "How many more miles must he walk in 30 minutes?": "miles",
    "How many eggs are left?": "",
    "How many hours or how many minutes?": "",
    "Tell me how many minutes.": "",
    "": "",
}


@pytest.mark.parametrize(("question", "unit"), ASKED.items())
def test_the_unit_that_a_question_asks_for(question: str, unit: str) -> None:
    assert required_unit(question) == unit
