"""Find the final answer, the tags and the steps of a response (MACRM, §3: R_acc, R_fmt, R_step).

A response is hostile input: every function here is linear in the length of the text. No pattern has a repeat that can
match the same text in two ways, and braces are matched in one pass with a stack.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from jurygraph.agents.maths.labels import (
    ANSWER_LABEL_PATTERN,
    ANSWER_LINE_PATTERN,
    ANSWER_SENTENCE_PATTERN,
    ORNAMENT_CHARACTERS,
    RESULT_LABEL_PATTERN,
    Span,
    find_labelled_sentence,
    trim_span,
)
from jurygraph.agents.maths.reading import fold_full_width
from jurygraph.safety.evidence import Passage

NO_ANSWER_REASON = "the response states no final answer"
ANSWER_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_THINK_OPEN_TAG, _THINK_CLOSE_TAG, _ANSWER_OPEN_TAG, _ANSWER_CLOSE_TAG = ANSWER_TAGS
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_STEP_MARKER_PATTERN = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:step[ \t]{0,3}(?P<step>[0-9]{1,4})(?![0-9.]*[0-9])"  # "Step 1:", "### Step 1"
    r"|\(?(?P<number>[0-9]{1,4})[.)](?=[ \t*_]|$)"  # "1. ", "1) ", "(1) "
    rf"|(?P<ordinal>{'|'.join(_ORDINAL_WORDS)})(?:ly)?\b)",  # "First, ", "Secondly "
    re.MULTILINE,
)
_BOX_OR_BRACE_PATTERN = re.compile(r"\\(?:boxed|fbox)[ \t]{0,4}\{|\\[{}]|[{}]")
_HASHES_ANSWER_PATTERN = re.compile(r"(?<!#)####(?!#)([^\n#]*)")
_WORD_PATTERN = re.compile(r"[^\W\d_]{2,}")
_MAX_ANSWER_LINE_CHARACTERS = 200  # characters of a text that is all answer
_MAX_CACHED_CHARACTERS = 10_000  # characters of the longest text whose answer is cached
_SENTENCE_END_MARKS = (".", "!", "。", "！", "\n")
_RUN_ON_QUESTION_PATTERN = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:question|problem|exercise|q|human|user)[*_ ]{0,4}[:0-9]", re.MULTILINE
)
"""Matches where a model, after its answer, goes on with a question of its own."""


class _AnswerSpans(NamedTuple):
    """The final answer of a text and, if that is a box, the answers of a sentence and of a line after it."""

    final: Span
    sentence: Span | None = None
    line: Span | None = None


def find_final_answer(text: str) -> Passage | None:
    r"""Find the last occurrence of the most explicit form of final answer in `text`.

    Forms, the most explicit first: `<answer>…</answer>` (a form found inside it narrows it), `\boxed{…}` with balanced
    braces, the text after `####`, a label `A: …`, `Answer: …` or `… answer is …` up to the first full stop after it,
    and a label of a result. `answer_labels.toml` has the labels in ten languages. An empty form does not count. A
    `####` with words ("#### Step 3") is a heading unless it is on the last line. A cut-off `<answer>` is none.
    Returns it without surrounding blanks and emphasis; None if the text has none of the forms.
    """
    found = _find_answers(text)
    return None if found is None else _to_passage(text, found.final)


def find_stated_answers(text: str) -> list[Passage]:
    """Return the passages that may be the answer of a response: the first that can be read as an answer is meant.

    They are a line `Answer: …` after the last box, the final answer, and a sentence `… the answer is …` after that box;
    or else all of a text of one line of at most 200 characters. Which of them is meant does not depend on which of them
    is right.
    """
    found = _find_answers(text)
    if found is not None:
        spans = (found.line, found.final, found.sentence)
        return [_to_passage(text, span) for span in spans if span is not None]
    span = trim_span(text, 0, len(text))
    if span is None or _ANSWER_OPEN_TAG in text or not _is_short_line(text[slice(*span)]):
        return []
    return [_to_passage(text, span)]


def _to_passage(text: str, span: Span) -> Passage:
    return Passage(*span, text[slice(*span)])


def _find_answers(text: str) -> _AnswerSpans | None:
    return (
        _find_answers_cached(text)
        if len(text) <= _MAX_CACHED_CHARACTERS
        else _find_answers_uncached(text)
    )


def _find_answers_uncached(text: str) -> _AnswerSpans | None:
    width_folded_text = fold_full_width(text)  # as long as the text
    close_tag_start = width_folded_text.rfind(_ANSWER_CLOSE_TAG)
    open_tag_start = width_folded_text.rfind(_ANSWER_OPEN_TAG, 0, max(close_tag_start, 0))
    tagged_answer_span = (
        None
        if open_tag_start < 0
        else trim_span(width_folded_text, open_tag_start + len(_ANSWER_OPEN_TAG), close_tag_start)
    )
    if tagged_answer_span is not None:
        start, end = tagged_answer_span
        found = _find_untagged_answers(width_folded_text[start:end])
        if found is None:
            return _AnswerSpans(tagged_answer_span)
        final, *others = [span and (span[0] + start, span[1] + start) for span in found]
        assert final is not None, "there is no answer without it"
        return _AnswerSpans(final, *others)
    last_open_tag_start = width_folded_text.rfind(_ANSWER_OPEN_TAG)
    if last_open_tag_start > close_tag_start:
        return _find_answer_in_unclosed_tag(width_folded_text, last_open_tag_start)
    return _find_untagged_answers(width_folded_text)


_find_answers_cached = lru_cache(maxsize=256)(_find_answers_uncached)
"""Cached, since several evaluators read the same response, and each response is read with the same reference."""


def _find_answer_in_unclosed_tag(text: str, start: int) -> _AnswerSpans | None:
    """Find an answer that is whole where the last `<answer>` has no end: a box, or a sentence with its stop."""
    if box_span := _find_boxed_answer(text):
        return _AnswerSpans(box_span)
    sentence = find_labelled_sentence(text, ANSWER_LABEL_PATTERN, start)
    is_whole_sentence = (
        sentence is not None and text[sentence[1] : sentence[1] + 1] in _SENTENCE_END_MARKS
    )
    return _AnswerSpans(sentence) if sentence is not None and is_whole_sentence else None


def _find_untagged_answers(text: str) -> _AnswerSpans | None:
    if box_span := _find_boxed_answer(text):
        run_on_match = _RUN_ON_QUESTION_PATTERN.search(text, box_span[1])
        solution = text[: run_on_match.start()] if run_on_match else text
        sentence = find_labelled_sentence(solution, ANSWER_SENTENCE_PATTERN, box_span[1])
        line = find_labelled_sentence(solution, ANSWER_LINE_PATTERN, box_span[1])
        return _AnswerSpans(box_span, sentence, line)
    span = (
        _find_answer_after_hashes(text)
        or find_labelled_sentence(text, ANSWER_LABEL_PATTERN)
        or find_labelled_sentence(text, RESULT_LABEL_PATTERN)
    )
    return None if span is None else _AnswerSpans(span)


def find_reference_answer(text: str) -> str | None:
    """Return the answer in a reference: its final answer, or all of it if it is one line of at most 200 characters.

    None if a longer reference has no final answer.
    """
    if answer := find_final_answer(text):
        return answer.text
    stripped_text = text.strip()
    return stripped_text if stripped_text and _is_short_line(stripped_text) else None


def _is_short_line(text: str) -> bool:
    return "\n" not in text and len(text) <= _MAX_ANSWER_LINE_CHARACTERS


def find_answer_line_start(text: str, answer: Passage) -> int:
    """Return the start of the line with `answer`, or of the label above it if the answer is alone on its line."""
    line_start = text.rfind("\n", 0, answer.start) + 1
    if text[line_start : answer.start].strip(ORNAMENT_CHARACTERS):
        return line_start
    text_above = text[:line_start].rstrip()
    label = ANSWER_LABEL_PATTERN.match(fold_full_width(text_above), text_above.rfind("\n") + 1)
    return (
        label.start()
        if label and not text_above[label.end() :].strip(ORNAMENT_CHARACTERS)
        else line_start
    )


def _find_boxed_answer(text: str) -> Span | None:
    open_brace_starts: list[int] = []  # the start of each open brace's content; negative: not a box
    box_spans = []
    for token in _BOX_OR_BRACE_PATTERN.finditer(text):
        mark = token.group()
        if mark == "}":
            content_start = open_brace_starts.pop() if open_brace_starts else -1
            if content_start >= 0:
                box_spans.append((content_start, token.start()))
        elif mark[-1] == "{" and len(mark) != 2:
            open_brace_starts.append(token.end() if len(mark) > 1 else -1)
    return next(filter(None, (trim_span(text, *box) for box in reversed(box_spans))), None)


def _find_answer_after_hashes(text: str) -> Span | None:
    answer = None
    trimmed_span = trim_span(text, 0, len(text))
    last_line_start = text.rfind("\n", 0, trimmed_span[1]) if trimmed_span else -1
    for line in _HASHES_ANSWER_PATTERN.finditer(text):
        content = trim_span(text, *line.span(1))
        if content and (not _WORD_PATTERN.match(text, *content) or line.start() > last_line_start):
            answer = content
    return answer


class StepMarker(NamedTuple):
    """A marker of a step: its start, its number, and `is_word` if it is a word ("Third")."""

    start: int
    number: int
    is_word: bool


def has_tags_in_order(text: str) -> bool:
    pattern = r"\s*<think>.*</think>\s*<answer>.*</answer>\s*"
    return (
        all(text.count(tag) == 1 for tag in ANSWER_TAGS)
        and re.fullmatch(pattern, text, re.DOTALL) is not None
    )


def count_ordered_steps(text: str) -> int:
    """Return the number of ordered steps of the reasoning: inside `<think>…</think>` if there is such a part.

    Markers are at the start of a line: "1.", "1)", "(1)", "Step 1", "First", "Secondly" (to "Tenth"). Two make a list,
    whose longest run 1, 2, 3, … counts; other markers between its members do not break it. With fewer (a lone "First"
    begins a sentence), the distinct lines with a letter or digit before the line of the final answer count: a GSM8K
    solution has one step per line.
    """
    start, end = find_reasoning_range(text)
    reasoning = text[start:end]
    step_markers = find_step_markers(reasoning)
    if len(step_markers) > 1:
        return measure_longest_run(step_markers)
    answer = find_final_answer(text) if reasoning == text else None
    before = text[: text.rfind("\n", 0, answer.start) + 1] if answer else reasoning
    lines = [line for line in before.split("\n") if re.search(r"\w", line)]
    return len({" ".join(line.split()).casefold() for line in lines})


def find_reasoning_range(text: str) -> Span:
    """Return the range of the reasoning, `text[start:end]`: inside `<think>…</think>` if that exists, else all."""
    start = text.find(_THINK_OPEN_TAG)
    end = text.find(_THINK_CLOSE_TAG, start) if start >= 0 else -1
    return (start + len(_THINK_OPEN_TAG), end) if end >= 0 else (0, len(text))


def find_step_markers(text: str) -> list[StepMarker]:
    step_markers = []
    for match in _STEP_MARKER_PATTERN.finditer(text):
        ordinal = match["ordinal"]
        number = int(match["step"] or match["number"] or 0)
        if ordinal:
            number = _ORDINAL_WORDS.index(ordinal.lower()) + 1
        step_markers.append(StepMarker(match.start(), number, is_word=bool(ordinal)))
    return step_markers


def measure_longest_run(step_markers: Iterable[StepMarker]) -> int:
    """Return the length of the longest run 1, 2, 3, …; other markers between its members do not break it."""
    run_length = longest_length = 0
    for step_marker in step_markers:
        if step_marker.number in (1, run_length + 1):
            run_length = step_marker.number
        longest_length = max(longest_length, run_length)
    return longest_length
