"""The form of a response (MACRM, §3: R_fmt and R_step). Linear in the length of the text."""

import re
from dataclasses import dataclass

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
    """One of the five parts of the format and whether the response has it."""

    name: str
    present: bool


def format_parts(text: str) -> tuple[Part, ...]:
    """The five parts: each of the four tags present, and all four once, in order, with only blanks outside them."""
    tags = tuple(Part(tag, tag in text) for tag in _TAGS)
    return (*tags, Part(_IN_ORDER, _in_order(text)))


def format_score(text: str) -> float:
    """R_fmt, 0 to 1: the share of the five parts that are present."""
    parts = format_parts(text)
    return sum(part.present for part in parts) / len(parts)


def ordered_steps(text: str) -> int:
    """How many ordered steps the reasoning has, 0 or more: inside `<think>…</think>` if there is such a part.

    Markers stand at the start of a line: "1.", "1)", "(1)", "Step 1", "First", "Secondly" (to "Tenth"). Counted is the
    longest run 1, 2, 3, …; other markers between its members do not break it. Where no line has a marker, the distinct
    lines with a letter or digit before the line of the final answer count: a GSM8K solution has one step a line.
    """
    reasoning, whole = _reasoning(text)
    markers = [_marked(marker) for marker in _MARKER.finditer(reasoning)]
    return _longest_run(markers) if markers else _lines_before_answer(reasoning, whole)


def step_score(text: str) -> float:
    """R_step, 0 to 1: ordered steps / 3, at most 1."""
    return min(1.0, ordered_steps(text) / _ENOUGH_STEPS)


def _in_order(text: str) -> bool:
    if any(text.count(tag) != 1 for tag in _TAGS):
        return False
    places = [text.index(tag) for tag in _TAGS]
    outside = (text[: places[0]], text[places[1] + len(_TAGS[1]) : places[2]], text[places[3] + len(_TAGS[3]) :])
    return places == sorted(places) and not any(passage.strip() for passage in outside)


def _reasoning(text: str) -> tuple[str, bool]:
    """The reasoning, and whether it is the whole text."""
    start = text.find(_TAGS[0])
    end = text.find(_TAGS[1], start) if start >= 0 else -1
    return (text[start + len(_TAGS[0]) : end], False) if end >= 0 else (text, True)


def _marked(marker: re.Match[str]) -> int:
    if marker["ordinal"]:
        return _ORDINALS.index(marker["ordinal"].lower()) + 1
    return int(marker["step"] or marker["number"])


def _longest_run(numbers: list[int]) -> int:
    run = longest = 0
    for number in numbers:
        if number in (1, run + 1):
            run = number
        longest = max(longest, run)
    return longest


def _lines_before_answer(reasoning: str, whole: bool) -> int:
    answer = final_answer(reasoning) if whole else None
    before = reasoning[: reasoning.rfind("\n", 0, answer.start) + 1] if answer else reasoning
    return len({" ".join(line.split()).casefold() for line in before.split("\n") if _WRITTEN.search(line)})
