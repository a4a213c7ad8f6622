"""The first wrong steps that a reader marked in forty real wrong solutions, and those found by code."""

from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from jurygraph import Jury, Response, Task
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parents[3]
MARKED = ROOT / "examples" / "maths" / "marked.jsonl"
SOLUTIONS = ROOT / "tests" / "data" / "gsm8k_solutions.jsonl.gz"

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
