"""Find the final answer, the tags and the steps of a response (MACRM, §3: R_acc, R_fmt, R_step).

A response is hostile input: every function here is linear in the length of the text. No pattern has a repeat that can
match the same text in two ways, and braces are matched in one pass with a stack.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from jurygraph.agents.maths.labels import (
    ANSWER_LINE,
    ANSWER_PATTERN,
    ANSWER_SENTENCE,
    ORNAMENT_CHARACTERS,
    RESULT_PATTERN,
    Span,
    find_labelled,
    trim,
)
from jurygraph.agents.maths.reading import fold_width
from jurygraph.safety.evidence import Passage

ANSWER_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_THINK_OPEN, _THINK_CLOSE, _ANSWER_OPEN, _ANSWER_CLOSE = ANSWER_TAGS
_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)
_ANSWER_MARKER = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:step[ \t]{0,3}(?P<step>[0-9]{1,4})(?![0-9.]*[0-9])"  # "Step 1:", "### Step 1"
    r"|\(?(?P<number>[0-9]{1,4})[.)](?=[ \t*_]|$)"  # "1. ", "1) ", "(1) "
    rf"|(?P<ordinal>{'|'.join(_ORDINALS)})(?:ly)?\b)",  # "First, ", "Secondly "
    re.MULTILINE,
)
_BOX_OR_BRACE = re.compile(r"\\(?:boxed|fbox)[ \t]{0,4}\{|\\[{}]|[{}]")
_HASHES_ANSWER = re.compile(r"(?<!#)####(?!#)([^\n#]*)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LINE_LIMIT = 200  # characters of a text that is all answer
_MAX_CACHED = 10_000  # characters of the longest text whose answer is cached
_SENTENCE_STOPS = (".", "!", "。", "！", "\n")
_RUN_ON_QUESTION = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:question|problem|exercise|q|human|user)[*_ ]{0,4}[:0-9]", re.MULTILINE
)
"""Matches where a model, after its answer, goes on with a question of its own."""


class _Answers(NamedTuple):
    """The final answer of a text and, if that is a box, the answers of a sentence and of a line after it."""

    final: Span
    sentence: Span | None = None
    line: Span | None = None


def final_answer(text: str) -> Passage | None:
    r"""Find the last occurrence of the most explicit form of final answer in `text`.

    Forms, the most explicit first: `<answer>…</answer>` (a form found inside it narrows it), `\boxed{…}` with balanced
    braces, the text after `####`, a label `A: …`, `Answer: …` or `… answer is …` up to the first full stop after it,
    and a label of a result. `answer_labels.toml` has the labels in ten languages. An empty form does not count. A
    `####` with words ("#### Step 3") is a heading unless it is on the last line. A cut-off `<answer>` is none.
    Returns it without surrounding blanks and emphasis; None if the text has none of the forms.
    """
    found = _find_answers(text)
    return None if found is None else _passage(text, found.final)


def stated_answers(text: str) -> list[Passage]:
    """Return the passages that may be the answer of a response: the first that can be read as an answer is meant.

    They are a line `Answer: …` after the last box, the final answer, and a sentence `… the answer is …` after that box;
    or else all of a text of one line of at most 200 characters. Which of them is meant does not depend on which of them
    is right.
    """
    found = _find_answers(text)
    if found is not None:
        spans = (found.line, found.final, found.sentence)
        return [_passage(text, span) for span in spans if span is not None]
    span = trim(text, 0, len(text))
    if span is None or _ANSWER_OPEN in text or not _is_one_line(text[slice(*span)]):
        return []
    return [_passage(text, span)]


def _passage(text: str, span: Span) -> Passage:
    return Passage(*span, text[slice(*span)])


def _find_answers(text: str) -> _Answers | None:
    return _find_answers_cached(text) if len(text) <= _MAX_CACHED else _find_answers_uncached(text)


def _find_answers_uncached(text: str) -> _Answers | None:
    folded_text = fold_width(text)  # as long as the text
    close_tag_start = folded_text.rfind(_ANSWER_CLOSE)
    open_tag_start = folded_text.rfind(_ANSWER_OPEN, 0, max(close_tag_start, 0))
    tagged_answer = (
        None
        if open_tag_start < 0
        else trim(folded_text, open_tag_start + len(_ANSWER_OPEN), close_tag_start)
    )
    if tagged_answer is not None:
        return _find_in_tag(folded_text, *tagged_answer)
    last_opening = folded_text.rfind(_ANSWER_OPEN)
    if last_opening > close_tag_start:
        return _find_in_cut_off(folded_text, last_opening)
    return _find_untagged(folded_text)


_find_answers_cached = lru_cache(maxsize=256)(_find_answers_uncached)
"""Cached, since several evaluators read the same response, and each response is read with the same reference."""


def _find_in_tag(text: str, start: int, end: int) -> _Answers:
    found = _find_untagged(text[start:end])
    if found is None:
        return _Answers((start, end))
    final_span, *other_spans = [span and (span[0] + start, span[1] + start) for span in found]
    assert final_span is not None, "there is no answer without it"
    return _Answers(final_span, *other_spans)


def _find_in_cut_off(text: str, start: int) -> _Answers | None:
    """Find an answer that is whole where the last `<answer>` has no end: a box, or a sentence with its stop."""
    if box := _find_boxed(text):
        return _Answers(box)
    sentence = find_labelled(text, ANSWER_PATTERN, start)
    is_whole = sentence is not None and text[sentence[1] : sentence[1] + 1] in _SENTENCE_STOPS
    return _Answers(sentence) if sentence is not None and is_whole else None


def _find_untagged(text: str) -> _Answers | None:
    if box := _find_boxed(text):
        run_on = _RUN_ON_QUESTION.search(text, box[1])
        solution = text[: run_on.start()] if run_on else text
        sentence = find_labelled(solution, ANSWER_SENTENCE, box[1])
        line = find_labelled(solution, ANSWER_LINE, box[1])
        return _Answers(box, sentence, line)
    span = (
        _find_after_hashes(text)
        or find_labelled(text, ANSWER_PATTERN)
        or find_labelled(text, RESULT_PATTERN)
    )
    return None if span is None else _Answers(span)


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
    if text[line : answer.start].strip(ORNAMENT_CHARACTERS):
        return line
    text_above = text[:line].rstrip()
    label = ANSWER_PATTERN.match(fold_width(text_above), text_above.rfind("\n") + 1)
    return (
        label.start()
        if label and not text_above[label.end() :].strip(ORNAMENT_CHARACTERS)
        else line
    )


def _find_boxed(text: str) -> Span | None:
    stack: list[int] = []  # the start of each open brace's content; negative: not a box
    boxes: list[Span] = []
    for token in _BOX_OR_BRACE.finditer(text):
        mark = token.group()
        if mark == "}":
            content_start = stack.pop() if stack else -1
            if content_start >= 0:
                boxes.append((content_start, token.start()))
        elif mark[-1] == "{" and len(mark) != 2:
            stack.append(token.end() if len(mark) > 1 else -1)
    return next(filter(None, (trim(text, *box) for box in reversed(boxes))), None)


def _find_after_hashes(text: str) -> Span | None:
    answer = None
    trimmed_span = trim(text, 0, len(text))
    last_line = text.rfind("\n", 0, trimmed_span[1]) if trimmed_span else -1
    for line in _HASHES_ANSWER.finditer(text):
        content = trim(text, *line.span(1))
        if content and (not _WORD.match(text, *content) or line.start() > last_line):
            answer = content
    return answer


class Marker(NamedTuple):
    """A marker of a step: its start, its number, and `in_words` if it is a word ("Third")."""

    start: int
    number: int
    in_words: bool


def is_in_order(text: str) -> bool:
    pattern = r"\s*<think>.*</think>\s*<answer>.*</answer>\s*"
    return (
        all(text.count(tag) == 1 for tag in ANSWER_TAGS)
        and re.fullmatch(pattern, text, re.DOTALL) is not None
    )


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
    lines = [line for line in before.split("\n") if re.search(r"\w", line)]
    return len({" ".join(line.split()).casefold() for line in lines})


def reasoning_range(text: str) -> tuple[int, int]:
    """Return the range of the reasoning, `text[start:end]`: inside `<think>…</think>` if that exists, else all."""
    start = text.find(_THINK_OPEN)
    end = text.find(_THINK_CLOSE, start) if start >= 0 else -1
    return (start + len(_THINK_OPEN), end) if end >= 0 else (0, len(text))


def step_markers(text: str) -> list[Marker]:
    markers = []
    for match in _ANSWER_MARKER.finditer(text):
        ordinal = match["ordinal"]
        if ordinal:
            number = _ORDINALS.index(ordinal.lower()) + 1
            markers.append(Marker(match.start(), number, in_words=True))
        else:
            number = int(match["step"] or match["number"])
            markers.append(Marker(match.start(), number, in_words=False))
    return markers


def longest_run(step_markers: Iterable[Marker]) -> int:
    """Return the length of the longest run 1, 2, 3, …; other markers between its members do not break it."""
    run = longest = 0
    for marker in step_markers:
        if marker.number in (1, run + 1):
            run = marker.number
        longest = max(longest, run)
    return longest
