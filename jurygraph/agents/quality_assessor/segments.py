"""The steps of a response with their positions. Linear in the length of the text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, starmap

from jurygraph.agents.maths.answer import answer_line_start, final_answer, sentence_ends
from jurygraph.agents.maths.structure import longest_run, reasoning_range, step_markers

MAX_STEPS = 1_000  # the largest number of steps of one response; the last of them contains the rest
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LINE_END = re.compile(r"\n")
_ENUMERATOR = re.compile(r"\W{0,8}[0-9]{1,3}")  # of "1. She eats"


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a response: `response[start:end] == text`, numbered from 1 in text order."""

    number: int
    start: int
    end: int
    text: str


def split_steps(text: str) -> tuple[Segment, ...]:
    """Return the steps of the reasoning in `text`, in their order; none if it has none.

    The reasoning is the text inside `<think>…</think>`, else the text before the final answer: before its line or, if
    that has several sentences, its sentence. With digits before the answer that sentence is the last step too: "9 * 2 =
    18, so the answer is 18". A step begins at each marker "1." or "Step 2:" if these count up to 2 at least, and else
    at each line (and so at "First, " there: after it, lines are steps as anywhere); in a single line, at each sentence.
    Text before the first marker belongs to the first step. Every letter or digit of the reasoning belongs to one step,
    and every step has at least one.
    """
    start, end, one_line = _reasoning(text)
    edges = [start, *_step_starts(text, start, end, one_line), end]
    steps = [step for step in starmap(partial(_trim, text), pairwise(edges)) if step]
    if len(steps) > MAX_STEPS:
        steps[MAX_STEPS - 1 :] = [(steps[MAX_STEPS - 1][0], steps[-1][1])]
    return tuple(Segment(number, *step, text[slice(*step)]) for number, step in enumerate(steps, start=1))


def step_at(steps: Sequence[Segment], place: int) -> Segment | None:
    """Return the step that contains a position of the text; None if no step does."""
    count = bisect_right(steps, place, key=lambda step: step.start)
    return steps[count - 1] if count and place < steps[count - 1].end else None


def _reasoning(text: str) -> tuple[int, int, bool]:
    """Return the start and end of the reasoning, and true if it is one line together with the answer."""
    start, end = reasoning_range(text)
    one_line = "\n" not in text[start:end].strip()
    answer = final_answer(text) if end - start == len(text) else None
    if answer is None:
        return start, end, one_line
    line = answer_line_start(text, answer)
    sentence = [line, *_sentences(text, line, answer.start)][-1]
    calculates = any(map(str.isdigit, text[sentence : answer.start]))
    return start, answer.end if calculates else sentence, one_line


def _step_starts(text: str, start: int, end: int, one_line: bool) -> Iterable[int]:
    """Return the starts of the steps after the first."""
    numeric_markers = [marker for marker in step_markers(text[start:end]) if not marker.in_words]
    if longest_run(numeric_markers) > 1:
        return (start + marker.start for marker in numeric_markers[1:])
    if one_line:
        return _sentences(text, start, end)
    return (line.end() for line in _LINE_END.finditer(text, start, end))


def _sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the starts of sentences after the first: not after a bare number ("1. She") or letters ("5 p.m. today")."""
    for stop in sentence_ends(text, start, end):
        if not _ENUMERATOR.fullmatch(text, start, stop) and text[stop - 2 : stop - 1] != ".":
            start = stop + 1
            yield start


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the range without surrounding white space; None if it has no letter or digit."""
    if not _LETTER_OR_DIGIT.search(text, start, end):
        return None
    passage = text[start:end]
    return start + len(passage) - len(passage.lstrip()), start + len(passage.rstrip())
