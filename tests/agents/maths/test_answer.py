import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.maths.answer import find_final_answer, find_reference_answer
from tests.rows import all_rows

FORMS = {
    "A: 18": "18",
    "so 3 + 4 = 7\nA: 1,000.50\n": "1,000.50",
    "#### 18 apples": "18 apples",
    "She has 5 + 13 = 18. #### 18": "18",
    "#### 8\nCorrection: #### 9": "9",
    r"so \boxed{\frac{1}{2}} it is": r"\frac{1}{2}",
    r"\boxed{17}, no, \boxed{18}": "18",
    r"\boxed{\{1, 2\}}": r"\{1, 2\}",
    r"\fbox{3}": "3",
    "**Answer:** **18**": "18",
    "Therefore, the final answer is: $18$. I hope it is right.": "$18$",
    "The answer is 3.5 apples.": "3.5 apples",
    "The answer is 17, no, the answer is 18": "18",
    "Final answer:\n\n  18": "18",
    "## Final Answer\n18": "18",
    "**Final Answer**\n\n18": "18",
    "<answer> 18 </answer>": "18",
    "<answer>A: 18</answer>": "18",
    r"<answer>It is \boxed{18}</answer> and \boxed{19}": "18",
    "<answer>17</answer> <answer>18</answer>": "18",
    "<answer></answer>\n#### 18": "18",
    "#### Step 3\nmore\n#### 18\n#### Remarks\nnone": "18",
    "#### Step 3\nAnswer: 4.": "4",
    "#### Yes": "Yes",
    "So the answer is approx. 18. Good.": "approx. 18",
    "The answer is No. 5. Good.": "No. 5",
    "The answer is ca. 18 vs. 19, i.e. more, e.g. 20. Good.": "ca. 18 vs. 19, i.e. more, e.g. 20",
    "The answer is Mr. Brown, not Dr. Green. Good.": "Mr. Brown, not Dr. Green",
    "The answer is no. 5 apples remain.": "no",
    "The answer is Rs. 500.": "Rs. 500",
    "The answer is 18 approx.": "18 approx",
}


@all_rows(("text", "answer"), FORMS.items())
def test_every_form_of_answer_is_found(text: str, answer: str) -> None:
    found = find_final_answer(text)
    assert found is not None
    assert found.text == answer == text[found.start : found.end]


@all_rows(
    "text", ["", " ", "18", "no answer", r"\boxed{1", r"\boxed{}", "</answer>18<answer>", "A:"]
)
def test_a_text_without_an_answer_has_none(text: str) -> None:
    assert find_final_answer(text) is None


def test_the_most_explicit_form_wins_over_a_later_one() -> None:
    found = find_final_answer("<answer>1</answer>\n\\boxed{2}\n#### 3\nA: 4")
    assert found is not None
    assert found.text == "1"


@given(st.text(alphabet="A:<answer>/\\boxed{}#. \n18", max_size=200))
def test_spans_quote_the_text(text: str) -> None:
    found = find_final_answer(text)
    if found:
        assert found.text == text[found.start : found.end] != ""


HOSTILE = [
    "1" * 10**6,
    "(" * 10**5,
    r"\boxed{" * 10**5,
    "answer is " * 10**5,
    "answer is ." * 10**5,
    "A:\n" * 10**5,
]
HOSTILE += ["answer is " + "approx. " * 10**5, "answer is No. " * 10**5]
HOSTILE += [
    "<answer>" * 10**5,
    "####\n" * 10**5,
    "*" * 10**6,
    "#### Step\n" * 10**5,
    r"\boxed{" * 10**5 + "}" * 10**5,
]


@pytest.mark.landing
@pytest.mark.parametrize(
    "most", [200_000, pytest.param(10**7, marks=pytest.mark.exhaustive)], ids=["cut off", "whole"]
)
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:10])
def test_hostile_texts_give_an_answer_from_the_text_or_none(text: str, most: int) -> None:
    text = text[:most]
    found = find_final_answer(text)
    assert found is None or text[found.start : found.end] == found.text


def test_reference_answer() -> None:
    assert find_reference_answer("Because.\nA: 18") == "18"
    assert find_reference_answer(" 18 \n") == "18"
    assert find_reference_answer("one line\nand another") is None
    assert find_reference_answer("1" * 201) is None
    assert find_reference_answer(" ") is None
