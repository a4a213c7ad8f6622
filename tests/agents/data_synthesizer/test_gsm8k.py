"""Contrasts of the correct GSM8K solutions change their truth, as judged by code that shares nothing with ours."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from jurygraph.agents.data_synthesizer.edits import Edit, matching_answer
from jurygraph.agents.data_synthesizer.synthesizer import KINDS, edits_by_rule
from jurygraph.schema import TaskView
from tests.agents.data_synthesizer.truth import changes_truth

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"


class Contrasted(NamedTuple):
    """A correct solution and one contrast of it."""

    query: str
    reference: str
    name: str
    text: str
    edit: Edit


@cache
def contrasts() -> list[Contrasted]:
    """Every contrast that can be made of a correct solution."""
    return list(_contrasts())


def _contrasts() -> Iterator[Contrasted]:
    with gzip.open(SOLUTIONS, "rt", encoding="utf-8") as lines:
        for task in map(json.loads, lines):
            view = TaskView(id=task["id"], audience="task", query=task["query"], reference=task["reference"])
            for response in task["responses"]:
                if response["metadata"]["is_correct"]:
                    text = response["text"]
                    for edit in edits_by_rule(text, view, matching_answer(text, view.reference), KINDS):
                        yield Contrasted(task["query"], task["reference"], response["id"], text, edit)


@pytest.mark.landing
def test_there_are_many_of_each_kind() -> None:
    found = Counter(one.edit.kind for one in contrasts())
    assert found == {"answer": 3134, "number": 1711, "step": 925, "negation": 396, "unit": 323}
    assert len({one.name for one in contrasts()}) == 615


def test_none_equals_its_original() -> None:
    assert [one.name for one in contrasts() if one.edit.apply(one.text) == one.text] == []


@pytest.mark.exhaustive
def test_at_least_99_percent_of_contrasts_change_the_truth() -> None:
    """Of every kind, and not of all together alone. What is left: a calculation in brackets that the judge does not
    read, a step whose result the problem's "half" states to it, and a calculation that was about another quantity."""
    kept = [one for one in contrasts() if not _is_effective(one)]
    assert Counter(one.edit.kind for one in kept) == {"step": 4, "number": 2, "negation": 1}
    assert len(kept) <= 0.01 * len(contrasts())


def _is_effective(one: Contrasted) -> bool:
    return changes_truth(one.query, one.reference, one.text, one.edit.apply(one.text), one.edit.kind)
