"""Contrasts of the correct GSM8K solutions change their truth, as judged by code that shares nothing with ours."""

import ast
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from jurygraph.agents.data_synthesizer.edits import Edit, matching_answer
from jurygraph.agents.data_synthesizer.synthesizer import KINDS, edits_by_rule
from jurygraph.schema import TaskView

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
CLAIM = re.compile(r"(?<![\d.])([0-9(][0-9+*/(). -]*[-+*/][0-9(). +*/-]*?) *= *\$?(?:<<[^<>]*>>)?(-?\d+(?:\.\d+)?)")
ANSWER = re.compile(r"^A: \$?(-?[\d,.]*\d)", re.MULTILINE)


class Contrasted(NamedTuple):
    """A correct solution and one contrast of it."""

    query: str
    name: str
    text: str
    edit: Edit

    @property
    def variant(self) -> str:
        return self.edit.apply(self.text)


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
                        yield Contrasted(task["query"], response["id"], text, edit)


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
        value = eval(compile(ast.parse(left.strip(), mode="eval"), "", "eval"), {"__builtins__": {}})
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
    place = next(at for at, line in enumerate(lines) if one.variant == "\n".join(lines[:at] + lines[at + 1 :]))
    before = {*numbers(one.query), *numbers("\n".join(lines[:place]))}
    return not before.issuperset(set(numbers(lines[place])) & set(numbers("\n".join(lines[place + 1 :]))))


def test_almost_all_contrasts_change_the_truth() -> None:
    """What is left are calculations that this judge does not read."""
    kept = Counter(one.edit.kind for one in contrasts() if not changes_truth(one))
    assert kept == {"number": 7, "step": 4}
