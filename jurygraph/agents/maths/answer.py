"""Find the final answer, the tags and the steps of a response (MACRM, §3: R_acc, R_fmt, R_step).

A response is hostile input: every function here is linear in the length of the text. No pattern has a repeat that can
match the same text in two ways, and braces are matched in one pass with a stack.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from jurygraph.safety.evidence import Passage

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_THINK_OPEN, _THINK_CLOSE, _ANSWER_OPEN, _ANSWER_CLOSE = TAGS
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MARKER = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:step[ \t]{0,3}(?P<step>[0-9]{1,4})(?![0-9.]*[0-9])"  # "Step 1:", "### Step 1"
    r"|\(?(?P<number>[0-9]{1,4})[.)](?=[ \t*_]|$)"  # "1. ", "1) ", "(1) "
    rf"|(?P<ordinal>{'|'.join(_ORDINALS)})(?:ly)?\b)",  # "First, ", "Secondly "
    re.MULTILINE,
)
_BRACES = re.compile(r"\\(?:boxed|fbox)[ \t]{0,4}\{|\\[{}]|[{}]")
_HASHES = re.compile(r"(?<!#)####(?!#)([^\n#]*)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = re.compile(
    r"^[ \t>*_#-]{0,8}(?:A|(?i:(?:the )?(?:final )?answer))[*_ ]{0,4}:"  # "A: 18", "**Final answer:** 18"
    r"|^(?:#{1,6}[ \t]{0,4}|\*\*)(?i:(?:final )?answer)[*_ \t]{0,4}$"  # a heading above the answer
    r"|\b(?i:answer is)\b[ \t]{0,4}:?",  # "So the final answer is 18."
    re.MULTILINE,
)
_SENTENCE_END = re.compile(r"[.!?](?=[ \t\r]|$)")
_ABBREVIATION = re.compile(r"\b(?:[Aa]pprox|[Cc]a|Nos?|vs|e\.g|i\.e|cf|viz|resp|Mrs?|Ms|Dr|Prof|Rs)$")
_BLANK_RUN = re.compile(r"[ \t\r\n*_`]*")
_ORNAMENT = " \t\r\n*_`"
_REFERENCE_LIMIT = 200
_MAX_CACHED = 10_000  # characters of the longest text whose answer is cached


def final_answer(text: str) -> Passage | None:
    r"""Find the last occurrence of the most explicit form of final answer in `text`.

    Forms, the most explicit first: `<answer>…</answer>` (a form found inside it narrows it), `\boxed{…}` with balanced
    braces, the text after `####`, and a line `A: …`, `Answer: …` or `… answer is …` up to its first full stop. An empty
    form does not count. A `####` with words ("#### Step 3") is a heading unless it is on the last line.
    Returns it without surrounding blanks and emphasis; None if the text has none of the forms.
    """
    return _find_answer_cached(text) if len(text) <= _MAX_CACHED else _find_answer(text)


def _find_answer(text: str) -> Passage | None:
    close = text.rfind(_ANSWER_CLOSE)
    opened = text.rfind(_ANSWER_OPEN, 0, max(close, 0))
    tagged = None if opened < 0 else _trim(text, opened + len(_ANSWER_OPEN), close)
    if tagged is None:
        return _find_untagged(text)
    start, end = tagged
    answer = _find_untagged(text[start:end]) or Passage(0, end - start, text[start:end])
    return Passage(start + answer.start, start + answer.end, answer.text)


_find_answer_cached = lru_cache(maxsize=256)(_find_answer)
"""Cached, since several evaluators read the same response, and each response is read with the same reference."""


def reference_answer(text: str) -> str | None:
    """Return the answer in a reference: its final answer, or all of it if it is one line of at most 200 characters.

    None if a longer reference has no final answer.
    """
    if answer := final_answer(text):
        return answer.text
    stripped = text.strip()
    return stripped if stripped and "\n" not in stripped and len(stripped) <= _REFERENCE_LIMIT else None


def answer_line_start(text: str, answer: Passage) -> int:
    """Return the start of the line with `answer`, or of the label above it if the answer is alone on its line."""
    line = text.rfind("\n", 0, answer.start) + 1
    if text[line : answer.start].strip(_ORNAMENT):
        return line
    above = text[:line].rstrip()
    label = _LABEL.match(above, above.rfind("\n") + 1)
    return label.start() if label and not above[label.end() :].strip(_ORNAMENT) else line


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions of marks that end a sentence in a range; the points of "3.5" and "e.g." end none."""
    for stop in _SENTENCE_END.finditer(text, start, end):
        place = stop.start()
        if text[place] != "." or not _ABBREVIATION.search(text[max(start, place - 8) : place]):
            yield place


def _find_untagged(text: str) -> Passage | None:
    span = _find_boxed(text) or _find_after_hashes(text) or _find_labelled(text)
    return Passage(*span, text[span[0] : span[1]]) if span else None


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Narrow a range by blanks, emphasis and a last full stop; return None if nothing is left."""
    passage = text[start:end].rstrip(_ORNAMENT).removesuffix(".").rstrip(_ORNAMENT)
    trimmed = passage.lstrip(_ORNAMENT)
    start += len(passage) - len(trimmed)
    return (start, start + len(trimmed)) if trimmed else None


def _find_boxed(text: str) -> tuple[int, int] | None:
    stack: list[int] = []  # the start of each open brace's content; negative: not a box
    boxes: list[tuple[int, int]] = []
    for token in _BRACES.finditer(text):
        mark = token.group()
        if mark == "}":
            content_start = stack.pop() if stack else -1
            if content_start >= 0:
                boxes.append((content_start, token.start()))
        elif mark[-1] == "{" and len(mark) != 2:
            stack.append(token.end() if len(mark) > 1 else -1)
    return next(filter(None, (_trim(text, *box) for box in reversed(boxes))), None)


def _find_after_hashes(text: str) -> tuple[int, int] | None:
    answer = None
    trimmed = _trim(text, 0, len(text))
    last_line = text.rfind("\n", 0, trimmed[1]) if trimmed else -1
    for line in _HASHES.finditer(text):
        content = _trim(text, *line.span(1))
        if content and (not _WORD.match(text, *content) or line.start() > last_line):
            answer = content
    return answer


def _find_labelled(text: str) -> tuple[int, int] | None:
    """Find the sentence after the last label that has one, on its line or on the next line that is not blank.

    A label's passage ends at the next label, so none is read twice.
    """
    end = len(text)
    for label_start, label_end in reversed([label.span() for label in _LABEL.finditer(text)]):
        start = _BLANK_RUN.match(text, label_end, end).end()  # type: ignore[union-attr]  # it matches anywhere
        newline = text.find("\n", start, end)
        line_end = end if newline < 0 else newline
        if sentence := _trim(text, start, next(sentence_ends(text, start, line_end), line_end)):
            return sentence
        end = label_start
    return None


class Marker(NamedTuple):
    """A marker of a step: its start, its number, and `in_words` if it is a word ("Third")."""

    start: int
    number: int
    in_words: bool


def is_in_order(text: str) -> bool:
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
    start = text.find(_THINK_OPEN)
    end = text.find(_THINK_CLOSE, start) if start >= 0 else -1
    return (start + len(_THINK_OPEN), end) if end >= 0 else (0, len(text))


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
