"""The steps of a response, where each stands in it. Linear in the length of the text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, starmap

from jurygraph.agents.maths.answer import announced, final_answer, sentence_ends
from jurygraph.agents.maths.structure import longest_run, markers, reasoning

MOST_STEPS = 1_000
"""Steps told apart in one response; the last of them holds whatever is left."""
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LINE_END = re.compile(r"\n")
_ENUMERATOR = re.compile(r"\W{0,8}[0-9]{1,3}")  # of "1. She eats"


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a response: `response[start:end] == text`, numbered from 1 in the order in which they stand."""

    number: int
    start: int
    end: int
    text: str


def segments(text: str) -> tuple[Segment, ...]:
    """The steps of the reasoning in `text`, in their order; none where nothing is written.

    The reasoning is what stands inside `<think>…</think>`, else before the final answer: before its line or, where that
    has several sentences, its sentence. With digits before the answer that is a step, too, and the last: "9 * 2 = 18,
    so the answer is 18". A step begins at each marker "1." or "Step 2:" where these count up to 2 at least, and else at
    each line (and so at "First, " there: behind it, lines are steps as anywhere); where all is one line, at each
    sentence. What stands before the first marker belongs to the first step. Every letter or digit of the reasoning
    belongs to one step, and every step has one.
    """
    start, end, one_line = _reasoning(text)
    edges = [start, *_begins(text, start, end, one_line), end]
    steps = [step for step in starmap(partial(_trimmed, text), pairwise(edges)) if step]
    if len(steps) > MOST_STEPS:
        steps[MOST_STEPS - 1 :] = [(steps[MOST_STEPS - 1][0], steps[-1][1])]
    return tuple(Segment(number, *step, text[slice(*step)]) for number, step in enumerate(steps, start=1))


def step_at(steps: Sequence[Segment], place: int) -> Segment | None:
    """The step in which a place of the text stands; None where it stands in none."""
    before = bisect_right(steps, place, key=lambda step: step.start)
    return steps[before - 1] if before and place < steps[before - 1].end else None


def _reasoning(text: str) -> tuple[int, int, bool]:
    """Where the reasoning begins and ends, and whether all, with the answer that stands with it, is one line."""
    start, end = reasoning(text)
    one_line = "\n" not in text[start:end].strip()
    answer = final_answer(text) if end - start == len(text) else None
    if answer is None:
        return start, end, one_line
    line = announced(text, answer)
    sentence = [line, *_sentences(text, line, answer.start)][-1]
    calculates = any(map(str.isdigit, text[sentence : answer.start]))
    return start, answer.end if calculates else sentence, one_line


def _begins(text: str, start: int, end: int, one_line: bool) -> Iterable[int]:
    """Where steps begin behind the first."""
    numbered = [marker for marker in markers(text[start:end]) if not marker.in_words]
    if longest_run(numbered) > 1:
        return (start + marker.start for marker in numbered[1:])
    if one_line:
        return _sentences(text, start, end)
    return (line.end() for line in _LINE_END.finditer(text, start, end))


def _sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Where sentences begin behind the first: never behind a bare number ("1. She") or letters ("5 p.m. today")."""
    for stop in sentence_ends(text, start, end):
        if not _ENUMERATOR.fullmatch(text, start, stop) and text[stop - 2 : stop - 1] != ".":
            start = stop + 1
            yield start


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The range without the white space around it; None where no letter or digit stands in it."""
    if not _LETTER_OR_DIGIT.search(text, start, end):
        return None
    passage = text[start:end]
    return start + len(passage) - len(passage.lstrip()), start + len(passage.rstrip())
