"""The steps of a response with their positions, and the first false calculation in them, by code alone.

Each step's equalities are checked by `jurygraph.agents.maths.arithmetic`, in three readings of the text: unchanged,
without its annotations ("16 - 3 = <<16-3=13>>14" claims 16 - 3 = 14), and with the text after an annotation in place of
the annotation's own result ("9 eggs * $2 = <<9*2=18>>19" claims 9 * 2 = 19). A result that only lacks its sign after an
annotation ("5 - 8 = <<5-8=-3>>3 fewer") is not wrong, since the annotation has it.

Never called wrong are a number from an unknown source (right solutions bring in such numbers too), and an answer that
is not the last result (it is not a step, and may be in another unit). Splitting takes time linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise, starmap
from typing import NamedTuple

from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import (
    answer_line_start,
    final_answer,
    longest_run,
    reasoning_range,
    sentence_ends,
    step_markers,
)
from jurygraph.messages import shorten
from jurygraph.schema import Evidence

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


def _reasoning(text: str) -> tuple[int, int, bool]:
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
    if not _LETTER_OR_DIGIT.search(text, start, end):
        return None
    passage = text[start:end]
    return start + len(passage) - len(passage.lstrip()), start + len(passage.rstrip())


_ANNOTATED = re.compile(r"<<([^<>\n]{0,400})=([^<>=\n]{0,400})>>(?=[$£€]?(\.?[0-9][0-9.,]{0,99}))")
_NOISE = Fraction(1, 10**9)


class UnsoundStep(NamedTuple):
    """A fault of the step of this number: the reason, the evidence, and, without any evidence, what is `lacking`."""

    step: int
    reason: str
    evidence: tuple[Evidence, ...]
    lacking: str = ""


def find_false_calculations(query: str, text: str, steps: Sequence[Segment]) -> list[UnsoundStep]:
    """Return the false calculations in a response, in the order of the text; one of several that overlap.

    One outside all steps counts to the last step before it, or to the first: nothing can be hidden behind the answer or
    outside the tags. Text that also occurs in the query is not the response's ("Why is 2 + 2 = 5 wrong?").
    """
    errors: list[UnsoundStep] = []
    last_end = 0
    for equality in sorted(_false_equalities(text), key=lambda step: (step.start, -step.end)):
        start = equality.start
        end = equality.end
        quote = text[start:end]
        if quote not in query and start >= last_end:
            number = max(1, bisect_right(steps, start, key=lambda step: step.start))
            truth = "it is not defined" if equality.value is None else f"it is {float(equality.value):.10g}"
            evidence = Evidence(quote=quote, start=start, end=end, verified=True)
            errors.append(UnsoundStep(number, f"{shorten(quote, 100)!r}, but {truth}", (evidence,)))
            last_end = end
    return errors


def _false_equalities(text: str) -> Iterator[arithmetic.CalculationStep]:
    yield from (equality for equality in arithmetic.steps(text) if not equality.is_right)
    without_annotations = _ANNOTATED.sub(lambda match: " " * len(match[0]), text)  # keeps all other offsets
    for reading in (without_annotations, _with_continuations(text)):
        for step in arithmetic.steps(reading) if reading != text else ():
            differs_by_sign = step.value is not None and abs(step.value + step.claimed) <= _NOISE * abs(step.claimed)
            if not step.is_right and not differs_by_sign:
                yield step


def _with_continuations(text: str) -> str:
    """Blank out the result of each annotation that another number follows, and put a boundary before it."""
    return _ANNOTATED.sub(
        lambda match: match[0] if match[2] == match[3] else f" ;{match[1]}={' ' * (len(match[2]) + 2)}", text
    )
