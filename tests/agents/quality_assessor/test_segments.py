"""The steps of a response are in order and cover the reasoning."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.quality_assessor import MAX_REASONING_STEPS, split_steps
from tests.rows import all_rows


def texts(text: str) -> list[str]:
    return [step.text for step in split_steps(text)]


# Lines


def test_each_line_before_the_answers_line_is_a_step() -> None:
    solution = "Janet sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\n\nShe makes 9 * 2 = $<<9*2=18>>18. That is all.\nA: 18"
    assert texts(solution) == [
        "Janet sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.",
        "She makes 9 * 2 = $<<9*2=18>>18. That is all.",
    ]


@pytest.mark.parametrize(
    "answer", ["#### 18", r"\boxed{18}", "**Answer:** 18", "<answer>18</answer>"]
)
def test_the_line_of_the_answer_is_no_step(answer: str) -> None:
    assert texts(f"9 eggs\n{answer}") == ["9 eggs"]


def test_a_label_above_the_answer_is_no_step() -> None:
    assert texts("9 eggs\n**Final answer:**\n\n18") == ["9 eggs"]


def test_a_line_that_calculates_the_answer_is_a_step() -> None:
    assert texts("9 eggs\nShe makes 9 * 2 = \\boxed{18} dollars") == [
        "9 eggs",
        "She makes 9 * 2 = \\boxed{18",
    ]
    assert texts("9 eggs\n9 * 2 = 18, so the answer is 18.") == [
        "9 eggs",
        "9 * 2 = 18, so the answer is 18",
    ]


# Markers


@pytest.mark.parametrize("mark", ["{}.", "{})", "({})", "Step {}:", "### Step {}", "**{}.**"])
def test_each_numbered_marker_begins_a_step_and_lines_behind_it_belong_to_it(mark: str) -> None:
    one, two = mark.format(1), mark.format(2)
    text = f"{one} Count the eggs\n- 16 - 7 = 9\n\n{two} Sell them\nfor 18\nA: 18"
    assert texts(text) == [f"{one} Count the eggs\n- 16 - 7 = 9", f"{two} Sell them\nfor 18"]


def test_words_that_number_something_else_swallow_no_lines() -> None:
    assert texts("First bag: 300\nSecond bag: 312\nTotal: 612\nA: 612") == [
        "First bag: 300",
        "Second bag: 312",
        "Total: 612",
    ]


# Sentences


def test_each_sentence_of_one_paragraph_is_a_step() -> None:
    text = (
        "Each costs $2.50, e.g. 3.5 of them $8.75 at 5 p.m. on Sunday. "
        "She has 9! So it is 22.50. The answer is 22.5."
    )
    assert texts(text) == [
        "Each costs $2.50, e.g. 3.5 of them $8.75 at 5 p.m. on Sunday.",
        "She has 9!",
        "So it is 22.50.",
    ]
    assert texts(". Ann eats. Bob sleeps.\n") == ["Ann eats.", "Bob sleeps."], (
        "the end of a text is not before it"
    )


# Where the reasoning stands


def test_only_the_thoughts_are_steps_where_they_are_marked() -> None:
    assert texts("Hello.\n<think>9 eggs.\n18 dollars.</think>\n<answer>18</answer>") == [
        "9 eggs.",
        "18 dollars.",
    ]
    assert texts("<think>9 eggs. 18 dollars.</think>\n<answer>18</answer>") == [
        "9 eggs.",
        "18 dollars.",
    ]


@pytest.mark.parametrize(
    "text", ["", " \n\t", "***", "A: 18", "The answer is 18.", "<think></think><answer>1</answer>"]
)
def test_a_response_without_reasoning_has_no_step(text: str) -> None:
    assert split_steps(text) == ()


# Any text

PIECES = [
    "1. ",
    "2. ",
    "Step 1: ",
    "Step 2: ",
    "First, ",
    "\n",
    " ",
    ". ",
    "! ",
    "3.5",
    "e.g. ",
    "p.m. ",
    "A: 18",
]
PIECES += [
    *"<think> </think> <answer> </answer> \\boxed{ } #### é 解 ² _".split(),
    "The answer is ",
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=40).map("".join)
FREE_OF_ANSWERS = st.text("ab3\u00b2é解 .!?_-\n\t\u2028", max_size=80)


@given(TEXTS)
def test_steps_are_in_order_and_do_not_overlap(text: str) -> None:
    behind = 0
    for number, step in enumerate(split_steps(text), start=1):
        assert step.number == number
        assert step.start >= behind
        assert step.text == text[step.start : step.end] == step.text.strip()
        assert any(map(str.isalnum, step.text))
        behind = step.end


@given(FREE_OF_ANSWERS)
def test_every_letter_and_digit_of_the_reasoning_belongs_to_a_step(text: str) -> None:
    for whole, offset in (
        (text, 0),
        (f"<think>{text}</think>Z", len("<think>")),
        (f"{text}\nA: 18", 0),
    ):
        steps = split_steps(whole)
        for place, letter in enumerate(text, start=offset):
            assert not letter.isalnum() or any(step.start <= place < step.end for step in steps)


def test_the_number_of_steps_is_limited_and_the_last_holds_the_rest() -> None:
    steps = split_steps("\n".join(f"line {number}" for number in range(1, MAX_REASONING_STEPS + 6)))
    assert len(steps) == MAX_REASONING_STEPS
    assert steps[-2].text == f"line {MAX_REASONING_STEPS - 1}"
    assert re.findall("[0-9]+", steps[-1].text) == [
        str(MAX_REASONING_STEPS + more) for more in range(6)
    ]


HOSTILE = "a. |1. \n2. \n|\n|(|1. |A: |a.b. |. . |\n\\boxed{}|****1|<think>|e.g. ".split("|")


@pytest.mark.landing
@all_rows("piece", HOSTILE)
def test_a_long_hostile_text_is_split_in_linear_time(piece: str) -> None:
    assert len(split_steps(piece * 50_000)) <= MAX_REASONING_STEPS
