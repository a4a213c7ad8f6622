"""Where a response states its final answer (MACRM, §3: R_acc compares final answers).

A response is hostile input: every function here is linear in the length of the text. No pattern has a repeat that can
match the same text in two ways, and braces are matched in one pass with a stack.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_ANSWER_OPEN, _ANSWER_CLOSE = "<answer>", "</answer>"
_BRACES = re.compile(r"\\(?:boxed|fbox)[ \t]{0,4}\{|\\[{}]|[{}]")
_HASHES = re.compile(r"(?<!#)####(?!#)([^\n#]*)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = re.compile(
    r"^[ \t>*_#-]{0,8}(?:A|(?i:(?:the )?(?:final )?answer))[*_ ]{0,4}:"  # "A: 18", "**Final answer:** 18"
    r"|^#{1,6}[ \t]{0,4}(?i:(?:final )?answer)[*_ \t]{0,4}$"  # a heading above the answer
    r"|\b(?i:answer is)\b[ \t]{0,4}:?",  # "So the final answer is 18."
    re.MULTILINE,
)
_SENTENCE_END = re.compile(r"[.!?](?=[ \t\r]|$)")
_ABBREVIATION = re.compile(r"\b(?:[Aa]pprox|[Cc]a|Nos?|vs|e\.g|i\.e|cf|viz|resp|Mrs?|Ms|Dr|Prof|Rs)$")
_BLANKS = re.compile(r"[ \t\r\n*_`]*")
_ORNAMENT = " \t\r\n*_`"
_REFERENCE_LIMIT = 200
_REMEMBERED = 10_000  # characters of a text whose answer is remembered


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of a text: `original[start:end] == text`, offsets in characters, `0 <= start <= end`."""

    text: str
    start: int
    end: int


def final_answer(text: str) -> Span | None:
    r"""Finds the last occurrence of the most explicit form of final answer in `text`.

    Forms, the most explicit first: `<answer>…</answer>` (a form found inside it narrows it), `\boxed{…}` with balanced
    braces, what follows `####`, and a line `A: …`, `Answer: …` or `… answer is …` up to its first full stop. An empty
    form does not count. A worded `####` ("#### Step 3") is a heading unless it is on the last line.

    Returns:
        The answer without surrounding blanks and emphasis, or None if the text has none of the forms.
    """
    return _remembered(text) if len(text) <= _REMEMBERED else _found(text)


def _found(text: str) -> Span | None:
    tagged = _tagged(text)
    if tagged is None:
        return _narrowed(text)
    start, end = tagged
    inside = _narrowed(text[start:end])
    return Span(inside.text, start + inside.start, start + inside.end) if inside else Span(text[start:end], start, end)


_remembered = lru_cache(maxsize=256)(_found)
"""The same response is read by several evaluators, and a reference with each response."""


def reference_answer(text: str) -> str | None:
    """The answer in a reference: its final answer, or all of it if it is one line of at most 200 characters.

    Returns:
        The answer, or None where a longer reference states none.
    """
    if found := final_answer(text):
        return found.text
    whole = text.strip()
    return whole if whole and "\n" not in whole and len(whole) <= _REFERENCE_LIMIT else None


def announced(text: str, answer: Span) -> int:
    """Where the line begins that states `answer`, or the label above it where it stands alone on its line."""
    line = text.rfind("\n", 0, answer.start) + 1
    if text[line : answer.start].strip(_ORNAMENT):
        return line
    above = text[:line].rstrip()
    label = _LABEL.match(above, above.rfind("\n") + 1)
    return label.start() if label and not above[label.end() :].strip(_ORNAMENT) else line


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Where the marks stand that end a sentence in a range; the points of "3.5" and "e.g." end none."""
    stops = (stop.start() for stop in _SENTENCE_END.finditer(text, start, end))
    return (stop for stop in stops if not _abbreviated(text, start, stop))


def _narrowed(text: str) -> Span | None:
    for form in (_boxed, _after_hashes, _labelled):
        if found := form(text):
            return Span(text[found[0] : found[1]], *found)
    return None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Narrows a range by blanks, emphasis and a last full stop; None when nothing is left."""
    while end > start and text[end - 1] in _ORNAMENT:
        end -= 1
    if end > start and text[end - 1] == ".":
        end -= 1
    while end > start and text[end - 1] in _ORNAMENT:
        end -= 1
    while start < end and text[start] in _ORNAMENT:
        start += 1
    return (start, end) if start < end else None


def _tagged(text: str) -> tuple[int, int] | None:
    close = text.rfind(_ANSWER_CLOSE)
    start = text.rfind(_ANSWER_OPEN, 0, max(close, 0))
    return None if start < 0 else _trimmed(text, start + len(_ANSWER_OPEN), close)


def _boxed(text: str) -> tuple[int, int] | None:
    stack: list[int] = []  # where each open brace's content starts; negative: not a box
    found = None
    for token in _BRACES.finditer(text):
        mark = token.group()
        if mark == "}":
            opened = stack.pop() if stack else -1
            if opened >= 0:
                found = _trimmed(text, opened, token.start()) or found
        elif mark[-1] == "{" and len(mark) != 2:
            stack.append(token.end() if len(mark) > 1 else -1)
    return found


def _after_hashes(text: str) -> tuple[int, int] | None:
    found = None
    written = _trimmed(text, 0, len(text))
    last_line = text.rfind("\n", 0, written[1]) if written else -1
    for line in _HASHES.finditer(text):
        content = _trimmed(text, *line.span(1))
        if content and (not _WORD.match(text, *content) or line.start() > last_line):
            found = content
    return found


def _labelled(text: str) -> tuple[int, int] | None:
    """The last label with something behind it. A label's passage ends at the next label, so none is read twice."""
    end = len(text)
    for label_start, label_end in reversed([label.span() for label in _LABEL.finditer(text)]):
        if found := _stated(text, label_end, end):
            return found
        end = label_start
    return None


def _stated(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The sentence behind a label, on its line or on the next that is not blank."""
    start = _BLANKS.match(text, start, end).end()  # type: ignore[union-attr]  # it matches anywhere
    line_end = text.find("\n", start, end)
    line_end = end if line_end < 0 else line_end
    return _trimmed(text, start, next(sentence_ends(text, start, line_end), line_end))


def _abbreviated(text: str, start: int, stop: int) -> bool:
    """Whether the mark at `stop` is the full stop of an abbreviation."""
    return text[stop] == "." and bool(_ABBREVIATION.search(text[max(start, stop - 8) : stop]))
