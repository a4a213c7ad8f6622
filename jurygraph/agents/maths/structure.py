"""The format, steps, length and repetition of a response (MACRM, §3: R_fmt, R_step, R_cs, R_rep), in linear time."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import cos, pi
from typing import NamedTuple

from jurygraph.agents.maths.answer import final_answer

_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_IN_ORDER = "in order with nothing outside"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MARKER = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:step[ \t]{0,3}(?P<step>[0-9]{1,4})(?![0-9.]*[0-9])"  # "Step 1:", "### Step 1"
    r"|\(?(?P<number>[0-9]{1,4})[.)](?=[ \t*_]|$)"  # "1. ", "1) ", "(1) "
    rf"|(?P<ordinal>{'|'.join(_ORDINALS)})(?:ly)?\b)",  # "First, ", "Secondly "
    re.MULTILINE,
)
_WRITTEN = re.compile(r"\w")
_ENOUGH_STEPS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One of the five parts of the format; `is_present` if the response has it."""

    name: str
    is_present: bool


class Marker(NamedTuple):
    """A marker of a step: its start, its number, and `in_words` if it is a word ("Third")."""

    start: int
    number: int
    in_words: bool


def format_parts(text: str) -> tuple[Part, ...]:
    """Return the five parts: each of the four tags, and all four once, in order, with only blanks outside them."""
    tags = tuple(Part(tag, tag in text) for tag in _TAGS)
    return (*tags, Part(_IN_ORDER, _is_in_order(text)))


def ordered_steps(text: str) -> int:
    """Return the number of ordered steps of the reasoning: inside `<think>…</think>` if there is such a part.

    Markers are at the start of a line: "1.", "1)", "(1)", "Step 1", "First", "Secondly" (to "Tenth"). The length of the
    longest run 1, 2, 3, … counts; other markers between its members do not break it. If no line has a marker, the
    distinct lines with a letter or digit before the line of the final answer count: a GSM8K solution has one step per
    line.
    """
    start, end = reasoning_range(text)
    found_markers = step_markers(text[start:end])
    is_whole_text = end - start == len(text)
    return longest_run(found_markers) if found_markers else _lines_before_answer(text[start:end], is_whole_text)


def step_score(text: str) -> float:
    """Return R_step, 0 to 1: ordered steps / 3, at most 1."""
    return min(1.0, ordered_steps(text) / _ENOUGH_STEPS)


def reasoning_range(text: str) -> tuple[int, int]:
    """Return the range of the reasoning, `text[start:end]`: inside `<think>…</think>` if that exists, else all."""
    start = text.find(_TAGS[0])
    end = text.find(_TAGS[1], start) if start >= 0 else -1
    return (start + len(_TAGS[0]), end) if end >= 0 else (0, len(text))


def step_markers(text: str) -> list[Marker]:
    """Return the markers of steps in a text, in order."""
    return [
        Marker(match.start(), _marker_number(match), match["ordinal"] is not None) for match in _MARKER.finditer(text)
    ]


def longest_run(step_markers: Iterable[Marker]) -> int:
    """Return the length of the longest run 1, 2, 3, …; other markers between its members do not break it."""
    run = longest = 0
    for marker in step_markers:
        if marker.number in (1, run + 1):
            run = marker.number
        longest = max(longest, run)
    return longest


def _marker_number(match: re.Match[str]) -> int:
    if match["ordinal"]:
        return _ORDINALS.index(match["ordinal"].lower()) + 1
    return int(match["step"] or match["number"])


def _is_in_order(text: str) -> bool:
    if any(text.count(tag) != 1 for tag in _TAGS):
        return False
    places = [text.index(tag) for tag in _TAGS]
    outside = (text[: places[0]], text[places[1] + len(_TAGS[1]) : places[2]], text[places[3] + len(_TAGS[3]) :])
    return places == sorted(places) and not any(passage.strip() for passage in outside)


def _lines_before_answer(text: str, is_whole_text: bool) -> int:
    answer = final_answer(text) if is_whole_text else None
    before = text[: text.rfind("\n", 0, answer.start) + 1] if answer else text
    return len({" ".join(line.split()).casefold() for line in before.split("\n") if _WRITTEN.search(line)})


def cosine_factor(length: float, limit: float) -> float:
    """Return 0.75 + 0.25·cos(π·min(1, length / limit)): 1 at length 0, falling to 0.5 at `limit` and beyond.

    Raises:
        ValueError: `length` is negative, or `limit` is not above 0.
    """
    if not (length >= 0 and limit > 0):
        raise ValueError(f"length >= 0 and limit > 0 are needed, not {length} and {limit}")
    return 0.75 + 0.25 * cos(pi * min(1.0, length / limit))


_WORD = re.compile(r"\w+")


def repetition(text: str, n: int = 3) -> float:
    """Return 1 − distinct / total n-grams over the lower-cased words of `text`: 0 if none repeats, always below 1.

    A text of fewer than `n` words has no n-gram and scores 0.

    Raises:
        ValueError: `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    words = _WORD.findall(text.lower())
    grams = list(zip(*(words[i:] for i in range(n)), strict=False))
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
