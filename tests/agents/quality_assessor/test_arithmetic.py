"""Steps and the first false calculation of a solution, made up and real, and what is not called false."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Response, Task, Verdict
from jurygraph.agents.quality_assessor import UnsoundStep, find_false_calculations, split_steps
from jurygraph.conformance import check_evaluator
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parents[3]
MARKED = ROOT / "examples" / "maths" / "marked.jsonl"
SOLUTIONS = ROOT / "tests" / "data" / "gsm8k_solutions.jsonl.gz"


@pytest.fixture(scope="module")
def solutions() -> dict[str, tuple[Task, Response]]:
    return {
        response.id: (task, response)
        for task, responses in read_tasks(SOLUTIONS)
        for response in responses
    }


def test_steps_found_unsound_by_code_alone(solutions: dict[str, tuple[Task, Response]]) -> None:
    table: Counter[tuple[str, str]] = Counter()
    with Jury.from_config({"evaluators": ["quality.arithmetic"]}) as jury:
        for mark in map(json.loads, MARKED.read_text(encoding="utf-8").splitlines()):
            task, response = solutions[mark["response"]]
            named = jury.score(task, [response])[0].verdicts[0].native
            assert named is None or named > mark["step"], (
                "code never names a step before the marked one"
            )
            table[mark["kind"], "nothing" if named is None else "later"] += 1
    assert table == {
        ("transcription", "nothing"): 1,
        ("relation", "later"): 1,
        ("relation", "nothing"): 21,
        ("misread", "nothing"): 8,
        ("omission", "nothing"): 3,
        ("unit", "nothing"): 4,
        ("invented", "nothing"): 2,
    }


QUERY = "Janet sells 9 eggs for $2 each. What does she make?"
SOLUTION = "She has 16 - 7 = <<16-7=9>>9 eggs.\nShe sells 9 eggs * $2 = $<<9*2=18>>18.\nThat is 18 - 1 = 17.\nA: 17"


def first_false_calculation(query: str, text: str) -> UnsoundStep | None:
    return next(iter(find_false_calculations(query, text, split_steps(text))), None)


def find_first(text: str, query: str = QUERY) -> tuple[int, str] | None:
    slip = first_false_calculation(query, text)
    return None if slip is None else (slip.step, slip.evidence[0].quote)


# What is false


@pytest.mark.parametrize(
    ("right", "false", "at"),
    [
        ("16 - 7 = <<16-7=9>>9", "16 - 7 = <<16-7=8>>8", (1, "16 - 7 = <<16-7=8>>8")),
        ("16 - 7 = <<16-7=9>>9", "16 - 7 = <<16-7=9>>8", (1, "16 - 7 = <<16-7=9>>8")),
        ("16 - 7 = <<16-7=9>>9", "17 - 7 = <<16-7=9>>9", (1, "17 - 7 = <<16-7=9>>9")),
        ("<<9*2=18>>18", "<<9*2=18>>180", (2, "9*2=18>>180")),
        ("<<9*2=18>>18", "<<9*2=19>> dollars", (2, "9*2=19")),
        ("18 - 1 = 17", "18 - 1 = 16", (3, "18 - 1 = 16")),
    ],
)
def test_a_false_calculation_is_found_with_its_step(
    right: str, false: str, at: tuple[int, str]
) -> None:
    assert find_first(SOLUTION.replace(right, false)) == at


# What is not


@pytest.mark.parametrize(
    "text",
    [
        "He has 450 / 70 = <<450/70=6.428571428571429>>6 hours.\nA: 6",
        "It is 4.2 + 9.45 + 1.35 = $<<4.20+9.45+1.35=14.999999999999998>>15.00\nA: 15",
        "He is 5 - 8 = <<5-8=-3>>3 eggs short.\nA: 3",
        "It is 350 000 x 5/100 = $<<350000*5/100=17500.0>>17 500.\nA: 17500",
        "It is 16 - 7 = 9 <<16-7=9>> 2 times.\nA: 18",
        "Half of 4 + 2 = 4\nA: 4",
    ],
)
def test_a_calculation_right_in_some_reading_is_not_false(text: str) -> None:
    assert find_first(text) is None


def test_text_of_the_query_is_not_the_responses_own() -> None:
    text = "It is said that 2 + 2 = 5, and 2 + 2 = 4.\nA: no"
    assert find_first(text) == (1, "2 + 2 = 5")
    assert find_first(text, "Why is 2 + 2 = 5 wrong?") is None


def test_text_outside_steps_belongs_to_the_step_before() -> None:
    """Nothing is hidden behind the answer, or outside the tags."""
    assert find_first("She makes 18.\nA: 9 * 2 = 19") == (1, "9 * 2 = 19")
    assert find_first("1 + 1 = 3 <think>1 + 1 = 2</think> 1 + 1 = 4") == (1, "1 + 1 = 3")
    assert find_first("<think>Easy.\nSo it is.</think>\n3*4=13\n<answer>12</answer>") == (
        2,
        "3*4=13",
    )


@given(
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.sampled_from(["{0} + 1 = {1}", "{0} + 1 = <<{0}+1={1}>>{1}"]),
)
def test_the_first_false_line_is_the_one_found(right: list[bool], form: str) -> None:
    lines = [form.format(7 + place, 8 + place + (not one)) for place, one in enumerate(right)]
    slip = first_false_calculation(QUERY, "\n".join([*lines, "A: 7"]))
    assert (slip and slip.step) == (None if all(right) else right.index(False) + 1)


@given(st.text("0123456789+-*/=().,$ x<>\n", max_size=120))
def test_every_quotation_is_in_its_step_in_any_text(text: str) -> None:
    slip = first_false_calculation("", text)
    if slip is not None:
        (passage,) = slip.evidence
        assert passage.start is not None
        assert passage.quote == text[passage.start : passage.end]
        assert split_steps(text)[slip.step - 1].start <= passage.start


HOSTILE = ["<<", "<<1+1=2>>3 ", "<<1=", ">>1", "1+1=3 ", "<<1+1=2>>3\n", "1+1=3\n"]


@pytest.mark.landing
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_is_read_in_linear_time(piece: str) -> None:
    slip = first_false_calculation("", piece * 20_000)
    assert slip is None or slip.step >= 1


# The evaluator


def verdict(text: str) -> Verdict:
    with Jury.from_config({"evaluators": ["quality.arithmetic"]}) as jury:
        (trace,) = jury.score(Task(id="eggs", query=QUERY), [Response(id="r", text=text)])
    assert trace.reward.components["arithmetic"] == trace.verdicts[0].score
    return trace.verdicts[0]


def test_the_reward_is_the_share_of_the_steps_before_the_first_false_one() -> None:
    one = verdict(SOLUTION.replace("18 - 1 = 17", "18 - 1 = 16"))
    assert (one.score, one.met, one.native) == (2 / 3, False, 3)
    assert one.reason == "step 3 of 3 is wrong: '18 - 1 = 16', but it is 17"
    assert [evidence.quote for evidence in one.evidence] == ["18 - 1 = 16"]


@pytest.mark.parametrize("text", ["", "A: 18", "<think></think>18"])
def test_a_response_without_steps_scores_0(text: str) -> None:
    one = verdict(text)
    assert (one.score, one.met, one.reason) == (0.0, False, "no step of reasoning is written")


def test_it_passes_the_conformance_suite() -> None:
    responses = [Response(id="a", text=SOLUTION), Response(id="b", text="1 + 1 = 3\nA: 3")]
    assert check_evaluator("quality.arithmetic", [(Task(id="eggs", query=QUERY), responses)]) == 10


FALSE_IN_RIGHT_SOLUTIONS = {
    # seven times one less than one is minus six
    "gsm8k-test-0184/6b_verification": (1, "1 - 1 - 1 - 1 - 1 - 1 - 1 - 1 = 0.01", "it is -6"),
    # the discount is .5, as the problem says; what is written for it comes to .1
    "gsm8k-test-0308/175b_finetuning": (
        3,
        "0.5 - $0.4 = $<<0.5-0.4=0.09999999999999998>>0.5",
        "it is 0.1",
    ),
    # the cheese tasting takes half an hour, as the problem says; what is written for it is half of three hours
    "gsm8k-test-0350/175b_finetuning": (3, "3/2 = <<1/2=0.5>>0.5", "it is 1.5"),
}
"""All false calculations, each the first of its solution, in solutions whose answers are right: where, and what they
come to."""


@pytest.fixture(scope="module")
def problems() -> list[tuple[Task, tuple[Response, ...]]]:
    return [(task, tuple(responses)) for task, responses in read_tasks(SOLUTIONS)]


def first_false_calculations(
    problems: list[tuple[Task, tuple[Response, ...]]], correct: bool
) -> Iterator[tuple[str, UnsoundStep | None]]:
    for task, responses in problems:
        assert isinstance(task.query, str)
        for response in responses:
            if response.metadata["is_correct"] is correct:
                yield response.id, first_false_calculation(task.query, response.text)


def test_no_right_step_of_a_right_solution_is_called_wrong(
    problems: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    found = dict(first_false_calculations(problems, correct=True))
    assert len(found) == 615
    wrong = {
        name: (slip.step, slip.evidence[0].quote, slip.reason.rpartition("but ")[2])
        for name, slip in found.items()
        if slip is not None
    }
    assert wrong == FALSE_IN_RIGHT_SOLUTIONS


def test_false_calculations_of_wrong_solutions_are_found(
    problems: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    """Most solutions are wrong for what no code sees: they calculate the wrong thing rightly."""
    found = dict(first_false_calculations(problems, correct=False))
    assert (len(found), sum(slip is not None for slip in found.values())) == (985, 30)


def test_every_line_before_the_answers_is_a_step(
    problems: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    texts = [
        text
        for task, responses in problems
        for text in (task.reference or "", *(r.text for r in responses))
    ]
    with_answer = [text for text in texts if text.split("\n")[-1].startswith("A: ")]
    assert len(with_answer) == 1995
    for text in with_answer:
        lines = [line.strip() for line in text.split("\n")[:-1] if any(map(str.isalnum, line))]
        assert [step.text for step in split_steps(text)] == lines
