"""The first wrong steps that a reader marked in forty real wrong solutions, and those found by code."""

import random
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from jurygraph import Jury, Response, Task
from jurygraph.agents.quality_assessor.steps import split_steps
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parents[3]
MARKED = ROOT / "examples" / "maths" / "marked.jsonl"
SOLUTIONS = ROOT / "tests" / "data" / "gsm8k_solutions.jsonl.gz"
PER_AGENT = 10
SEED = 9

Kind = Literal["arithmetic", "transcription", "relation", "misread", "omission", "unit", "invented", "answer"]
Found = Literal["agreed", "later", "earlier", "nothing"]


class Mark(BaseModel):
    """One line of the file: the step where a reader saw a solution go wrong first, and why."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    response: str
    step: int = Field(ge=1)
    """From 1; one more than the steps where only the answer's line is wrong."""
    quote: str = Field(min_length=1)
    kind: Kind
    reason: str = Field(min_length=1)
    also: int | None = Field(default=None, ge=1)
    """The other step that could be argued for."""


@pytest.fixture(scope="module")
def marks() -> list[Mark]:
    return [Mark.model_validate_json(line) for line in MARKED.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def solutions() -> dict[str, tuple[Task, Response]]:
    return {response.id: (task, response) for task, responses in read_tasks(SOLUTIONS) for response in responses}


def lines(response: Response) -> list[str]:
    return [line.strip() for line in response.text.splitlines() if line.strip()]


def draw_ten_per_agent(responses: list[Response]) -> list[str]:
    """Draw ten wrong solutions of each agent with one generator, in the order of agents and ids."""
    wrong = sorted((str(r.agent), r.id) for r in responses if r.metadata["is_correct"] is False)
    chance = random.Random(SEED)
    groups = [[name for _, name in group] for _, group in groupby(wrong, key=lambda pair: pair[0])]
    return sorted(name for group in groups for name in chance.sample(group, PER_AGENT))


class TestTheFile:
    def test_holds_the_solutions_that_the_rule_draws_ten_of_each_agent(
        self, marks: list[Mark], solutions: dict[str, tuple[Task, Response]]
    ) -> None:
        assert [mark.response for mark in marks] == draw_ten_per_agent([response for _, response in solutions.values()])
        marked = [solutions[mark.response][1] for mark in marks]
        assert set(Counter(response.agent for response in marked).values()) == {PER_AGENT}
        assert len(marked) == 40
        assert not any(response.metadata["is_correct"] for response in marked)

    def test_numbers_the_steps_as_the_segments_do(
        self, marks: list[Mark], solutions: dict[str, tuple[Task, Response]]
    ) -> None:
        for mark in marks:
            *steps, answer = lines(solutions[mark.response][1])
            assert [segment.text for segment in split_steps(solutions[mark.response][1].text)] == steps
            assert answer.startswith("A: ")


def compare_with_mark(mark: Mark, named: float | None) -> Found:
    """Compare the first step that code finds with the marked one."""
    if named is None:
        return "nothing"
    if named == mark.step:
        return "agreed"
    return "later" if named > mark.step else "earlier"


def test_steps_found_unsound_by_code_alone(marks: list[Mark], solutions: dict[str, tuple[Task, Response]]) -> None:
    table: Counter[tuple[Kind, Found]] = Counter()
    with Jury.from_config({"evaluators": ["quality.arithmetic"]}) as jury:
        for mark in marks:
            task, response = solutions[mark.response]
            named = jury.score(task, [response])[0].verdicts[0].native
            assert named is None or isinstance(named, float)
            table[mark.kind, compare_with_mark(mark, named)] += 1
    assert table == {
        ("transcription", "nothing"): 1,
        ("relation", "later"): 1,
        ("relation", "nothing"): 21,
        ("misread", "nothing"): 8,
        ("omission", "nothing"): 3,
        ("unit", "nothing"): 4,
        ("invented", "nothing"): 2,
    }
