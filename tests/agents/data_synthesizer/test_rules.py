"""Contrasts by rule: each changes one thing that was right, and of real solutions nearly all change the truth."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_synthesizer import (
    EDIT_KINDS,
    CorrectAnswer,
    TextEdit,
    check_final_answer,
    make_rule_based_edits,
    missing_step_edits,
    replaced_answer_edits,
    sample_candidates,
    wrong_result_edits,
)
from jurygraph.schema import TaskView
from jurygraph.sources import read_tasks

QUERY = "Ann has 3 boxes of 4 eggs, and two more. She sells half. How many are left?"
RIGHT = (
    "There are 3*4=<<3*4=12>>12 eggs.\nWith two more there are 12+2=<<12+2=14>>14 eggs.\n"
    "So 14/2=<<14/2=7>>7 eggs are left.\nA: 7"
)


def correct_answer(text: str = RIGHT, reference: str = "A: 7") -> CorrectAnswer:
    found = check_final_answer(text, reference)
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
    ids=[
        "wrong",
        "rounded",
        "a whole number of a quotient",
        "no plain number",
        "no calculation",
        "prose",
        "empty",
    ],
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
    assert check_final_answer(RIGHT, "The answer is 8") is False
    assert check_final_answer("no answer", "A: 7") is False
    assert check_final_answer(RIGHT, None) is True
    assert check_final_answer(RIGHT, "An essay\nof two lines") is True
    assert check_final_answer(RIGHT, "x + 1") is False
    assert correct_answer().span.text == "7"


def test_the_answer_is_swapped_for_other_numbers_of_solution_and_task() -> None:
    swapped = apply_all(replaced_answer_edits(RIGHT, QUERY, correct_answer()))
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
    assert (
        apply_all(
            missing_step_edits(text, "There are three boxes.", correct_answer(text, "A: 12")), text
        )
        == []
    )


# Edits


@pytest.mark.parametrize("answer", ["-7", "1/2", "\\frac{1}{2}", "20%", "7 + 0"])
def test_only_an_answer_that_is_a_plain_number_is_swapped(answer: str) -> None:
    text = f"So 3 + 4 = 7\nA: {answer}"
    found = check_final_answer(text, f"A: {answer}")
    assert (
        found is False
        or list(replaced_answer_edits(text, "", correct_answer(text, f"A: {answer}"))) == []
    )


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
        replaced_answer_edits(text, "", found),
    ):
        assert len(list(edits)) <= len(text)


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5), st.text(max_size=5))
def test_the_choice_keeps_the_order_and_depends_on_the_seed_alone(
    found: list[int], most: int, seed: str
) -> None:
    picked = sample_candidates(list(enumerate(found)), most, seed)
    assert picked == sorted(picked)
    assert len(picked) == min(most, len(found))
    assert picked == sample_candidates(list(enumerate(found)), most, seed)


SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
CLAIM = re.compile(
    r"(?<![\d.])([0-9(][0-9+*/(). -]*[-+*/][0-9(). +*/-]*?) *= *\$?(?:<<[^<>]*>>)?(-?\d+(?:\.\d+)?)"
)
ANSWER = re.compile(r"^A: \$?(-?[\d,.]*\d)", re.MULTILINE)


class Contrasted(NamedTuple):
    """A correct solution and one contrast of it."""

    query: str
    name: str
    text: str
    edit: TextEdit

    @property
    def variant(self) -> str:
        return self.edit.apply(self.text)


@cache
def contrasts() -> list[Contrasted]:
    """Every contrast that can be made of a correct solution."""
    return list(_contrasts())


def _contrasts() -> Iterator[Contrasted]:
    for task, responses in read_tasks(SOLUTIONS):
        view = TaskView(id=task.id, audience="task", query=task.query, reference=task.reference)
        assert isinstance(task.query, str)
        for response in responses:
            if response.metadata["is_correct"]:
                text = response.text
                for edit in make_rule_based_edits(
                    text, view, check_final_answer(text, view.reference), EDIT_KINDS
                ):
                    yield Contrasted(task.query, response.id, text, edit)


@pytest.mark.landing
def test_there_are_many_of_each_kind() -> None:
    found = Counter(one.edit.kind for one in contrasts())
    assert found == {"answer": 3134, "number": 1711, "step": 925}
    assert len({one.name for one in contrasts()}) == 615


def test_none_equals_its_original() -> None:
    assert [one.name for one in contrasts() if one.variant == one.text] == []


def false_claims(text: str) -> int:
    """The equations of numbers whose sides differ, by Python's own grammar, in annotations and in plain text."""
    annotations = re.findall(r"<<([^<>]*)>>", text)
    plain = re.sub(r"<<[^<>]*>>", "", text)
    return sum(_is_false(*claim) for part in (*annotations, plain) for claim in CLAIM.findall(part))


def _is_false(left: str, right: str) -> bool:
    try:
        value = eval(
            compile(ast.parse(left.strip(), mode="eval"), "", "eval"), {"__builtins__": {}}
        )
    except (SyntaxError, TypeError, ZeroDivisionError):
        return False
    return abs(value - float(right)) > 0.5 * 10 ** -len(right.partition(".")[2]) + 1e-9


def numbers(text: str) -> list[Fraction]:
    return [Fraction(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def changes_truth(one: Contrasted) -> bool:
    if one.edit.kind == "number":
        return false_claims(one.variant) > false_claims(one.text)
    if one.edit.kind == "answer":
        before, after = (ANSWER.findall(text)[-1] for text in (one.text, one.variant))
        return numbers(before) != numbers(after)
    return _lacks_a_needed_result(one)


def _lacks_a_needed_result(one: Contrasted) -> bool:
    """Return true if a number of the line that is gone is in a later one, and in none before it."""
    lines = one.text.split("\n")
    place = next(
        at
        for at, line in enumerate(lines)
        if one.variant == "\n".join(lines[:at] + lines[at + 1 :])
    )
    before = {*numbers(one.query), *numbers("\n".join(lines[:place]))}
    return not before.issuperset(
        set(numbers(lines[place])) & set(numbers("\n".join(lines[place + 1 :])))
    )


def test_almost_all_contrasts_change_the_truth() -> None:
    """What is left are calculations that this judge does not read."""
    kept = Counter(one.edit.kind for one in contrasts() if not changes_truth(one))
    assert kept == {"number": 7, "step": 4}
