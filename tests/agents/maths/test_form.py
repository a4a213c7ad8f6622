from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.maths.structure import (
    cosine_factor,
    format_parts,
    ordered_steps,
    repetition,
)

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


@pytest.mark.parametrize(("text", "score"), FORMATS.items())
def test_format(text: str, score: float) -> None:
    parts = format_parts(text)
    assert sum(parts.values()) / len(parts) == score
    assert len(parts) == 5


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
    "1.5 is a number\n2.5 too\nA: 4": 2,
    "<think>1. a\n2. b</think><answer>3. c</answer>": 2,
    "<think>a\nb\nc\nd</think><answer>3</answer>": 4,
}


@pytest.mark.parametrize(("text", "count"), STEPS.items())
def test_ordered_steps(text: str, count: int) -> None:
    assert ordered_steps(text) == count


@given(st.text(alphabet="12.)(stepSTEP \n<think>/", max_size=200))
def test_there_are_no_more_ordered_steps_than_lines(text: str) -> None:
    assert 0 <= ordered_steps(text) <= text.count("\n") + 1


def test_repetition() -> None:
    assert repetition("a b") == 0
    assert repetition("a b c") == 0
    assert repetition("A b c a B c") == 0.25
    assert isclose(repetition("no " * 100), 1 - 1 / 98)
    assert repetition("a a", n=1) == 0.5
    with pytest.raises(ValueError, match="at least 1"):
        repetition("a", n=0)


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 6))
def test_repetition_is_below_one(text: str, n: int) -> None:
    assert 0 <= repetition(text, n) < 1


def test_cosine_factor() -> None:
    assert cosine_factor(0, 100) == 1
    assert isclose(cosine_factor(50, 100), 0.75)
    assert isclose(cosine_factor(100, 100), 0.5)
    assert cosine_factor(101, 100) == cosine_factor(100, 100)
    for length, limit in ((-1, 10), (1, 0), (1, -1), (float("nan"), 1)):
        with pytest.raises(ValueError, match="are needed"):
            cosine_factor(length, limit)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1e-3, 1e6))
def test_cosine_factor_falls_from_1_to_a_half(a: float, b: float, limit: float) -> None:
    shorter, longer = cosine_factor(min(a, b), limit), cosine_factor(max(a, b), limit)
    assert 0.5 <= longer <= shorter <= 1
