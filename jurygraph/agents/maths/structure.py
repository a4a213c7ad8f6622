"""The tags and steps of a response (MACRM, §3: R_fmt, R_step), read in linear time."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from jurygraph.agents.maths.answer import final_answer

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MARKER = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:step[ \t]{0,3}(?P<step>[0-9]{1,4})(?![0-9.]*[0-9])"  # "Step 1:", "### Step 1"
    r"|\(?(?P<number>[0-9]{1,4})[.)](?=[ \t*_]|$)"  # "1. ", "1) ", "(1) "
    rf"|(?P<ordinal>{'|'.join(_ORDINALS)})(?:ly)?\b)",  # "First, ", "Secondly "
    re.MULTILINE,
)


class Marker(NamedTuple):
    """A marker of a step: its start, its number, and `in_words` if it is a word ("Third")."""

    start: int
    number: int
    in_words: bool


def is_in_order(text: str) -> bool:
    """Return true if there is one of each tag, in order, with only blanks outside."""
    pattern = r"\s*<think>.*</think>\s*<answer>.*</answer>\s*"
    return all(text.count(tag) == 1 for tag in TAGS) and re.fullmatch(pattern, text, re.DOTALL) is not None


def ordered_steps(text: str) -> int:
    """Return the number of ordered steps of the reasoning: inside `<think>…</think>` if there is such a part.

    Markers are at the start of a line: "1.", "1)", "(1)", "Step 1", "First", "Secondly" (to "Tenth"). Two make a list,
    whose longest run 1, 2, 3, … counts; other markers between its members do not break it. With fewer (a lone "First"
    begins a sentence), the distinct lines with a letter or digit before the line of the final answer count: a GSM8K
    solution has one step per line.
    """
    start, end = reasoning_range(text)
    reasoning = text[start:end]
    markers = step_markers(reasoning)
    if len(markers) > 1:
        return longest_run(markers)
    answer = final_answer(text) if reasoning == text else None
    before = text[: text.rfind("\n", 0, answer.start) + 1] if answer else reasoning
    return len({" ".join(line.split()).casefold() for line in before.split("\n") if re.search(r"\w", line)})


def reasoning_range(text: str) -> tuple[int, int]:
    """Return the range of the reasoning, `text[start:end]`: inside `<think>…</think>` if that exists, else all."""
    start = text.find(TAGS[0])
    end = text.find(TAGS[1], start) if start >= 0 else -1
    return (start + len(TAGS[0]), end) if end >= 0 else (0, len(text))


def step_markers(text: str) -> list[Marker]:
    markers = []
    for match in _MARKER.finditer(text):
        ordinal = match["ordinal"]
        number = _ORDINALS.index(ordinal.lower()) + 1 if ordinal else int(match["step"] or match["number"])
        markers.append(Marker(match.start(), number, in_words=bool(ordinal)))
    return markers


def longest_run(step_markers: Iterable[Marker]) -> int:
    """Return the length of the longest run 1, 2, 3, …; other markers between its members do not break it."""
    run = longest = 0
    for marker in step_markers:
        if marker.number in (1, run + 1):
            run = marker.number
        longest = max(longest, run)
    return longest
