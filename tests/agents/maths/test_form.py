from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Response, Verdict
from jurygraph.agents.maths.evaluators import Format, Length, Repetition
from jurygraph.agents.maths.structure import ordered_steps
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.schema import TaskView
from tests.rows import all_rows


def score_of(evaluator: Evaluator, text: str) -> float:
    view = TaskView(id="sum", query="What is 17 + 25?")
    (question,) = evaluator.questions(view)
    verdict = evaluator.answer(EvaluatorInput(question, view, (Response(id="r", text=text),), ({},)))
    assert isinstance(verdict, Verdict)
    assert verdict.score is not None
    return verdict.score


def repetition(text: str, n: int = 3) -> float:
    return score_of(Repetition(n=n), text)


FULL = "<think>because</think>\n<answer>18</answer>\n"

FORMATS = {
    FULL: 1.0,
    "": 0.0,
    "18": 0.0,
    "<answer>18</answer>": 0.4,
    f"so {FULL}": 0.8,
    "<think>a</think> b <answer>18</answer>": 0.8,
    "<answer>18</answer><think>a</think>": 0.8,
    f"{FULL}<answer>19</answer>": 0.8,
    "<think>a<answer>18</answer>": 0.6,
}


@all_rows(("text", "score"), FORMATS.items())
def test_format(text: str, score: float) -> None:
    assert score_of(Format(), text) == score


STEPS = {
    "": 0,
    "one line only": 1,
    "one\ntwo\n\ntwo\nA: 18": 2,
    "A: 18": 0,
    "1. a\n2. b\n3. c": 3,
    "1) a\n2) b": 2,
    "(1) a\n(2) b": 2,
    "Step 1: a\n### Step 2\n**Step 3:** c": 3,
    "First, a\nSecondly, b\nThird c": 3,
    "1. a\n3. b\n2. c\n3. d": 3,
    "2. a\n3. b": 0,
    "1. a\n1. b\n2. c": 2,
    "First he eats 3.\nThen 4.\nSo 9 are left.\nA: 9": 3,
    "1. a\nA: 4": 1,
    "Step 2\nA: 4": 1,
    "First a\nFirst b\nc": 1,
    "1.5 is a number\n2.5 too\nA: 4": 2,
    "<think>1. a\n2. b</think><answer>3. c</answer>": 2,
    "<think>a\nb\nc\nd</think><answer>3</answer>": 4,
}


@all_rows(("text", "count"), STEPS.items())
def test_ordered_steps(text: str, count: int) -> None:
    assert ordered_steps(text) == count


def test_repetition() -> None:
    assert repetition("a b") == 0
    assert repetition("a b c") == 0
    assert repetition("A b c a B c") == 0.25
    assert isclose(repetition("no " * 100), 1 - 1 / 98)
    assert repetition("a a", n=1) == 0.5


def length_factor(length: int, limit: int) -> float:
    return score_of(Length(limit=limit), "x" * length)


def test_length() -> None:
    assert length_factor(0, 100) == 1
    assert isclose(length_factor(50, 100), 0.75)
    assert isclose(length_factor(100, 100), 0.5)
    assert length_factor(101, 100) == length_factor(100, 100)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 1000))
def test_the_factor_of_length_falls_from_1_to_a_half(a: int, b: int, limit: int) -> None:
    shorter, longer = length_factor(min(a, b), limit), length_factor(max(a, b), limit)
    assert 0.5 <= longer <= shorter <= 1
