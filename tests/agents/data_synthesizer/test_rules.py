"""Contrasts by rule: each changes one thing, and what it changes was right before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_synthesizer.edits import (
    CorrectAnswer,
    choose_some,
    matching_answer,
    missing_step_edits,
    other_answer_edits,
    wrong_result_edits,
)

QUERY = "Ann has 3 boxes of 4 eggs, and two more. She sells half. How many are left?"
RIGHT = (
    "There are 3*4=<<3*4=12>>12 eggs.\nWith two more there are 12+2=<<12+2=14>>14 eggs.\n"
    "So 14/2=<<14/2=7>>7 eggs are left.\nA: 7"
)


def correct_answer(text: str = RIGHT, reference: str = "A: 7") -> CorrectAnswer:
    found = matching_answer(text, reference)
    assert isinstance(found, CorrectAnswer)
    return found


def apply_all(edits: object, text: str = RIGHT) -> list[str]:
    return [edit.apply(text) for edit in edits]  # type: ignore[attr-defined]


# Results


def test_a_result_is_changed_in_and_after_its_annotation() -> None:
    first, *_ = apply_all(wrong_result_edits(RIGHT))
    assert first == RIGHT.replace("<<3*4=12>>12", "<<3*4=13>>13")


@pytest.mark.parametrize(
    "text",
    ["2 + 2 = 5", "10 / 3 = 3.33", "450 / 70 = 6", "2 + 3 = 1 + 4", "x = 4", "no numbers", ""],
    ids=["wrong", "rounded", "a whole number of a quotient", "no plain number", "no calculation", "prose", "empty"],
)
def test_inexact_numbers_are_left_unchanged(text: str) -> None:
    assert apply_all(wrong_result_edits(text), text) == []


def test_a_number_keeps_its_form() -> None:
    text = "1,000 * 2 = 2,000\n1.5 * 3 = $4.50"
    assert apply_all(wrong_result_edits(text), text) == [
        "1,000 * 2 = 2,001\n1.5 * 3 = $4.50",
        "1,000 * 2 = 2,000\n1.5 * 3 = $6.50",
    ]


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from("+-*"))
def test_the_changed_result_is_false(left: int, right: int, sign: str) -> None:
    true = {"+": left + right, "-": left - right, "*": left * right}[sign]
    text = f"{left} {sign} {right} = {true}"
    for changed in apply_all(wrong_result_edits(text), text):
        assert int(changed.rpartition("=")[2]) != true


# The answer


def test_only_a_solution_with_the_answer_of_the_reference_is_known_to_be_right() -> None:
    assert matching_answer(RIGHT, "The answer is 8") is False
    assert matching_answer("no answer", "A: 7") is False
    assert matching_answer(RIGHT, None) is True
    assert matching_answer(RIGHT, "An essay\nof two lines") is True
    assert matching_answer(RIGHT, "x + 1") is False
    assert correct_answer().span.text == "7"


def test_the_answer_is_swapped_for_other_numbers_of_solution_and_task() -> None:
    swapped = apply_all(other_answer_edits(RIGHT, QUERY, correct_answer()))
    assert [text.rpartition("A: ")[2] for text in swapped] == ["3", "4", "12", "2", "14"]
    assert {text.rpartition("A: ")[0] for text in swapped} == {RIGHT.rpartition("A: ")[0]}


# Steps


def test_a_step_with_a_result_needed_later_is_removed() -> None:
    first, second = RIGHT.splitlines()[:2]
    assert apply_all(missing_step_edits(RIGHT, QUERY, correct_answer())) == [
        RIGHT.replace(f"{first}\n", ""),
        RIGHT.replace(f"{second}\n", ""),
    ]


def test_a_step_with_a_result_from_the_task_or_only_for_the_answer_is_kept() -> None:
    text = "First 1+2=3 boxes.\nThen 3*4=12 eggs.\nBy the way 5+5=10.\nA: 12"
    assert apply_all(missing_step_edits(text, "There are three boxes.", correct_answer(text, "A: 12")), text) == []


# Edits


@pytest.mark.parametrize("answer", ["-7", "1/2", "\\frac{1}{2}", "20%", "7 + 0"])
def test_only_an_answer_that_is_a_plain_number_is_swapped(answer: str) -> None:
    text = f"So 3 + 4 = 7\nA: {answer}"
    found = matching_answer(text, f"A: {answer}")
    assert found is False or list(other_answer_edits(text, "", correct_answer(text, f"A: {answer}"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{i}+1={i + 1}\n" for i in range(10, 1700)) + "A: 7",
        "2+2=4 hours " * 1500 + "\nA: 7",
        "9" * 5000 + " + 1 = 2\nA: 7",
    ],
    ids=["many lines", "one line", "a long number"],
)
def test_long_texts_take_linear_time(text: str) -> None:
    """These texts once took minutes: the time limit of the suite is the test."""
    found = correct_answer(text)
    for edits in (
        wrong_result_edits(text),
        missing_step_edits(text, "", found),
        other_answer_edits(text, "", found),
    ):
        assert len(list(edits)) <= len(text)


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5), st.text(max_size=5))
def test_the_choice_keeps_the_order_and_depends_on_the_seed_alone(found: list[int], most: int, seed: str) -> None:
    picked = choose_some(list(enumerate(found)), most, seed)
    assert picked == sorted(picked)
    assert len(picked) == min(most, len(found))
    assert picked == choose_some(list(enumerate(found)), most, seed)
