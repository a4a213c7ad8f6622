"""Find the final answer, the tags and the steps of a response (MACRM, §3: R_acc, R_fmt, R_step).

A response is hostile input: every function here is linear in the length of the text. No pattern has a repeat that can
match the same text in two ways, and braces are matched in one pass with a stack.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from jurygraph.agents.maths.reading import fold_width
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
_LABEL_WORDS = tomllib.loads(Path(__file__).with_name("answer_labels.toml").read_text("utf-8"))
_LINE_START = r"^[ \t>*_#-]{0,8}"
_SENTENCE_START = rf"(?:{_LINE_START}|(?<=[.!?;] )|(?<=[。！？；]))"


def _any_of(words: str) -> str:
    return "|".join(words.split())


def _label_patterns(kind: str) -> tuple[str, str]:
    """Return the pattern of a label with a colon, and that of one with a verb, for the words of a kind."""
    spaced = _LABEL_WORDS["spaced"]
    joined = _LABEL_WORDS["joined"]
    adjective = f"(?:{_any_of(spaced['adjectives'])})"
    phrase = f"(?:{adjective} ){{0,3}}(?:{_any_of(spaced[kind])})(?: {adjective})?"
    before_colon = _any_of(f"{joined[kind]} {joined['before_colon']}")
    with_colon = (
        rf"(?:{_SENTENCE_START}(?i:{phrase})|{before_colon})[*_ \t]{{0,4}}(?:[:=]|[—–](?= ))"  # "**Final answer:** 18"
    )
    heading = rf"^(?:#{{1,6}}[ \t]{{0,4}}|\*\*)(?i:{phrase})[*_ \t]{{0,4}}$"  # above the answer
    verb = rf"\b(?i:(?:{_any_of(spaced[kind])})(?: {adjective})? (?:{_any_of(spaced['links'])}))\b"
    joined_verb = f"(?:{_any_of(joined[kind])})(?:{_any_of(joined['links'])})"
    return f"{with_colon}|{heading}", rf"(?:{verb}|{joined_verb})[ \t]{{0,4}}:?"  # "So the final answer is 18."


_ANSWER_LINE, _ANSWER_SENTENCE = _label_patterns("answers")
_LINE_LABEL = re.compile(rf"{_LINE_START}A[*_ ]{{0,4}}:|{_ANSWER_LINE}", re.MULTILINE)
_LABEL = re.compile(f"{_LINE_LABEL.pattern}|{_ANSWER_SENTENCE}", re.MULTILINE)
_RESULT_LABEL = re.compile("|".join(_label_patterns("results")), re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=[ \t\r]|$)|[。！？]")
_ABBREVIATION = re.compile(r"\b(?:[Aa]pprox|[Cc]a|Nos?|vs|e\.g|i\.e|cf|viz|resp|Mrs?|Ms|Dr|Prof|Rs)$")
_BLANK_RUN = re.compile(r"[ \t\r\n*_`]*")
_ORNAMENT = " \t\r\n*_`"
_LINE_LIMIT = 200  # characters of a text that is all answer
_MAX_CACHED = 10_000  # characters of the longest text whose answer is cached
_Span: TypeAlias = tuple[int, int]


def final_answer(text: str) -> Passage | None:
    r"""Find the last occurrence of the most explicit form of final answer in `text`.

    Forms, the most explicit first: `<answer>…</answer>` (a form found inside it narrows it), `\boxed{…}` with balanced
    braces, the text after `####`, a label `A: …`, `Answer: …` or `… answer is …` up to the first full stop after it,
    and a label of a result. `answer_labels.toml` has the labels in ten languages. An empty form does not count. A
    `####` with words ("#### Step 3") is a heading unless it is on the last line. A cut-off `<answer>` is none.
    Returns it without surrounding blanks and emphasis; None if the text has none of the forms.
    """
    passages = _find_answers(text)
    return passages[0] if passages else None


def stated_answers(text: str) -> tuple[Passage, ...]:
    """Return the passages that may be the answer of a response: the first that can be read as an answer is meant.

    They are a line `Answer: …` after the last box, and the final answer; or else all of a text of one line of at most
    200 characters. Which of them is read must not depend on which is right.
    """
    passages = _find_answers(text)
    if passages or _ANSWER_OPEN in text:
        return tuple(reversed(passages))
    whole = _trim(text, 0, len(text))
    return () if whole is None or not _is_one_line(text[slice(*whole)]) else (Passage(*whole, text[slice(*whole)]),)


def _find_answers(text: str) -> tuple[Passage, ...]:
    return _find_answers_cached(text) if len(text) <= _MAX_CACHED else _find_answers_anew(text)


def _find_answers_anew(text: str) -> tuple[Passage, ...]:
    """Return the final answer and, if that is a box, the answer of a line after it."""
    folded = fold_width(text)  # as long as the text
    spans = _find_spans(folded)
    return tuple(Passage(start, end, text[start:end]) for start, end in spans)


_find_answers_cached = lru_cache(maxsize=256)(_find_answers_anew)
"""Cached, since several evaluators read the same response, and each response is read with the same reference."""


def _find_spans(text: str) -> list[_Span]:
    close = text.rfind(_ANSWER_CLOSE)
    opened = text.rfind(_ANSWER_OPEN, 0, max(close, 0))
    tagged = None if opened < 0 else _trim(text, opened + len(_ANSWER_OPEN), close)
    if tagged is not None:
        offset = tagged[0]
        inner = _find_untagged_spans(text[slice(*tagged)])
        return [(start + offset, end + offset) for start, end in inner] or [tagged]
    if text.rfind(_ANSWER_OPEN) > close:  # cut off: a box is whole, but a line may go on
        box = _find_boxed(text)
        return [box] if box else []
    return _find_untagged_spans(text)


def _find_untagged_spans(text: str) -> list[_Span]:
    box = _find_boxed(text)
    if box:
        later = _find_labelled(text, _LINE_LABEL, box[1])
        return [box, later] if later else [box]
    span = _find_after_hashes(text) or _find_labelled(text, _LABEL) or _find_labelled(text, _RESULT_LABEL)
    return [span] if span else []


def reference_answer(text: str) -> str | None:
    """Return the answer in a reference: its final answer, or all of it if it is one line of at most 200 characters.

    None if a longer reference has no final answer.
    """
    if answer := final_answer(text):
        return answer.text
    stripped = text.strip()
    return stripped if stripped and _is_one_line(stripped) else None


def _is_one_line(text: str) -> bool:
    return "\n" not in text and len(text) <= _LINE_LIMIT


def answer_line_start(text: str, answer: Passage) -> int:
    """Return the start of the line with `answer`, or of the label above it if the answer is alone on its line."""
    line = text.rfind("\n", 0, answer.start) + 1
    if text[line : answer.start].strip(_ORNAMENT):
        return line
    above = text[:line].rstrip()
    label = _LABEL.match(fold_width(above), above.rfind("\n") + 1)
    return label.start() if label and not above[label.end() :].strip(_ORNAMENT) else line


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions of marks that end a sentence in a range; the points of "3.5" and "e.g." end none."""
    for stop in _SENTENCE_END.finditer(text, start, end):
        place = stop.start()
        if text[place] != "." or not _ABBREVIATION.search(text[max(start, place - 8) : place]):
            yield place


def _trim(text: str, start: int, end: int) -> _Span | None:
    """Narrow a range by blanks, emphasis and a last full stop; return None if nothing is left."""
    passage = text[start:end].rstrip(_ORNAMENT)
    passage = passage.removesuffix(".").removesuffix("。").rstrip(_ORNAMENT)
    trimmed = passage.lstrip(_ORNAMENT)
    start += len(passage) - len(trimmed)
    return (start, start + len(trimmed)) if trimmed else None


def _find_boxed(text: str) -> _Span | None:
    stack: list[int] = []  # the start of each open brace's content; negative: not a box
    boxes: list[_Span] = []
    for token in _BRACES.finditer(text):
        mark = token.group()
        if mark == "}":
            content_start = stack.pop() if stack else -1
            if content_start >= 0:
                boxes.append((content_start, token.start()))
        elif mark[-1] == "{" and len(mark) != 2:
            stack.append(token.end() if len(mark) > 1 else -1)
    return next(filter(None, (_trim(text, *box) for box in reversed(boxes))), None)


def _find_after_hashes(text: str) -> _Span | None:
    answer = None
    trimmed = _trim(text, 0, len(text))
    last_line = text.rfind("\n", 0, trimmed[1]) if trimmed else -1
    for line in _HASHES.finditer(text):
        content = _trim(text, *line.span(1))
        if content and (not _WORD.match(text, *content) or line.start() > last_line):
            answer = content
    return answer


def _find_labelled(text: str, labels: re.Pattern[str], search_from: int = 0) -> _Span | None:
    """Find the sentence after the last label that has one, on its line or on the next line that is not blank.

    A label's passage ends at the next label, so none is read twice.
    """
    end = len(text)
    for label_start, label_end in reversed([label.span() for label in labels.finditer(text, search_from)]):
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
