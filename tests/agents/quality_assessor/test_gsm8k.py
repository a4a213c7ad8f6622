"""On real solutions: no right step of a right one is called wrong, and false calculations of wrong ones are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph.agents.quality_assessor import UnsoundStep, split_steps
from jurygraph.schema import Response, Task
from jurygraph.sources import read_tasks
from tests.agents.quality_assessor.test_arithmetic import first_false_calculation

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"

FALSE_IN_RIGHT_SOLUTIONS = {
    # seven times one less than one is minus six
    "gsm8k-test-0184/6b_verification": (1, "1 - 1 - 1 - 1 - 1 - 1 - 1 - 1 = 0.01", "it is -6"),
    # the discount is .5, as the problem says; what is written for it comes to .1
    "gsm8k-test-0308/175b_finetuning": (3, "0.5 - $0.4 = $<<0.5-0.4=0.09999999999999998>>0.5", "it is 0.1"),
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


def test_no_right_step_of_a_right_solution_is_called_wrong(problems: list[tuple[Task, tuple[Response, ...]]]) -> None:
    found = dict(first_false_calculations(problems, correct=True))
    assert len(found) == 615
    wrong = {
        name: (slip.step, slip.evidence[0].quote, slip.reason.rpartition("but ")[2])
        for name, slip in found.items()
        if slip is not None
    }
    assert wrong == FALSE_IN_RIGHT_SOLUTIONS


def test_false_calculations_of_wrong_solutions_are_found(problems: list[tuple[Task, tuple[Response, ...]]]) -> None:
    """Most solutions are wrong for what no code sees: they calculate the wrong thing rightly."""
    found = dict(first_false_calculations(problems, correct=False))
    assert (len(found), sum(slip is not None for slip in found.values())) == (985, 30)


def test_every_line_before_the_answers_is_a_step(problems: list[tuple[Task, tuple[Response, ...]]]) -> None:
    texts = [text for task, responses in problems for text in (task.reference or "", *(r.text for r in responses))]
    with_answer = [text for text in texts if text.split("\n")[-1].startswith("A: ")]
    assert len(with_answer) == 1995
    for text in with_answer:
        lines = [line.strip() for line in text.split("\n")[:-1] if any(map(str.isalnum, line))]
        assert [step.text for step in split_steps(text)] == lines
