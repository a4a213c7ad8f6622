"""Find the sentence after a label that announces a final answer, such as "Answer:" or "die Antwort ist".

The words of ten languages are in `answer_labels.toml`. A denied label ("the wrong answer is") announces nothing. No
pattern has a repeat that can match the same text in two ways, so that finding takes linear time.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]

ORNAMENT_CHARACTERS = " \t\r\n*_`"
_LABEL_WORDS = tomllib.loads(Path(__file__).with_name("answer_labels.toml").read_text("utf-8"))
_SPACED_WORDS = _LABEL_WORDS["spaced"]
_UNSPACED_WORDS = _LABEL_WORDS["joined"]
_LINE_START = r"^[ \t>*_#-]{0,8}"
_SENTENCE_START = rf"(?:{_LINE_START}|(?<=[.!?;] )|(?<=[。！？；]))"
_MAX_DENIAL_LENGTH = 40  # characters
_SENTENCE_END = re.compile(r"(?<!\.)[.!?](?=[ \t\r]|$)|[。！？]")  # "..." ends none
_INITIAL_OF_NAME = re.compile(r"\b[A-Za-z]\. [a-z]")
_ABBREVIATION = re.compile(
    r"\b(?:[Aa]pprox|[Cc]a|Nos?|vs|e\.g|i\.e|cf|viz|resp|Mrs?|Ms|Dr|Prof|Rs)$"
)
_BLANK_RUN = re.compile(r"[ \t\r\n*_`]*")
_DISPLAY_DELIMITERS = {r"\[": r"\]", "$$": "$$"}


def _one_of_words(words: str) -> str:
    return "|".join(words.split())


def _line_pattern(kind: str) -> str:
    """Return the pattern of a label with a colon ("**Final answer:** 18"), or of a heading, for the words of a kind."""
    adjective = f"(?:{_one_of_words(_SPACED_WORDS['adjectives'])})"
    noun = f"(?:{_one_of_words(_SPACED_WORDS[kind])})"
    phrase = f"(?i:(?:{adjective} ){{0,3}}{noun}(?: {adjective})?)"
    unspaced_pattern = _one_of_words(f"{_UNSPACED_WORDS[kind]} {_UNSPACED_WORDS['before_colon']}")
    with_colon = rf"(?:{_SENTENCE_START}{phrase}|{unspaced_pattern})[*_ \t]{{0,4}}(?::|[—–](?= ))"
    return rf"{with_colon}|^(?:#{{1,6}}[ \t]{{0,4}}|\*\*){phrase}[*_ \t]{{0,4}}$"


def _sentence_pattern(kind: str) -> str:
    """Return the pattern of a label with a verb ("so the final answer is 18"), for the words of a kind."""
    link = rf"(?:{_one_of_words(_SPACED_WORDS['links'])}|(?:would|must|should) be)"
    adjectives = _one_of_words(_SPACED_WORDS["adjectives"])
    spaced_pattern = (
        rf"\b(?i:(?:{_one_of_words(_SPACED_WORDS[kind])})(?: (?:{adjectives}))? {link})\b"
    )
    unspaced_links = _one_of_words(_UNSPACED_WORDS["links"])
    unspaced_pattern = f"(?:{_one_of_words(_UNSPACED_WORDS[kind])})(?:{unspaced_links})"
    return rf"(?:{spaced_pattern}|{unspaced_pattern})[ \t]{{0,4}}:?"


def _denial_pattern() -> str:
    articles = rf"(?: (?:{_one_of_words(_SPACED_WORDS['articles'])})(?= |\Z)){{0,2}}"
    spaced_pattern = rf"\b(?i:{_one_of_words(_SPACED_WORDS['denials'])}){articles} ?\Z"
    unspaced_pattern = rf"(?:{_one_of_words(_UNSPACED_WORDS['denials'])}) ?\Z"
    return f"{spaced_pattern}|{unspaced_pattern}"


_BARE_LABEL = rf"{_LINE_START}A[*_ ]{{0,4}}:"
_EQUALS_LABEL = (
    rf"{_LINE_START}(?i:(?:the |final ){{0,2}}answer) ?=(?!=)"  # program code has it, too
)
ANSWER_LINE = re.compile(_line_pattern("answers"), re.MULTILINE)
ANSWER_SENTENCE = re.compile(_sentence_pattern("answers"), re.MULTILINE)
ANSWER_PATTERN = re.compile(
    f"{_BARE_LABEL}|{ANSWER_LINE.pattern}|{ANSWER_SENTENCE.pattern}", re.MULTILINE
)
RESULT_PATTERN = re.compile(
    f"{_line_pattern('results')}|{_sentence_pattern('results')}|{_EQUALS_LABEL}", re.MULTILINE
)
"""Labels that announce an answer only where no label of an answer is: steps on the way have them, too."""

_DENIAL_PATTERN = re.compile(_denial_pattern())


def find_labelled(text: str, labels: re.Pattern[str], search_from: int = 0) -> Span | None:
    """Find the sentence after the last label that has one, on its line or on the next line that is not blank.

    Mathematics in display goes to its end. A label's passage ends at the next label, so none is read twice.
    """
    end = len(text)
    spans = [label.span() for label in labels.finditer(text, search_from)]
    for label_start, label_end in reversed(spans):
        words_before = text[max(0, label_start - _MAX_DENIAL_LENGTH) : label_start]
        if _DENIAL_PATTERN.search(words_before):
            continue
        start = _BLANK_RUN.match(text, label_end, end).end()  # type: ignore[union-attr]  # it matches anywhere
        sentence = trim(text, start, _end_of_passage(text, start, end))
        if sentence is not None:
            return sentence
        end = label_start
    return None


def _end_of_passage(text: str, start: int, end: int) -> int:
    closing_delimiter = _DISPLAY_DELIMITERS.get(text[start : start + 2])
    closing_index = text.find(closing_delimiter, start + 2, end) if closing_delimiter else -1
    if closing_index >= 0:
        return closing_index + 2
    newline = text.find("\n", start, end)
    line_end = end if newline < 0 else newline
    stop = next(sentence_ends(text, start, line_end), line_end)
    return stop + 1 if text[stop : stop + 1] in ("?", "？") else stop  # a question is no answer


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions of marks that end a sentence in a range; the points of "3.5", "e.g." or "E. coli" do not."""
    for stop in _SENTENCE_END.finditer(text, start, end):
        position = stop.start()
        is_initial = position > start and _INITIAL_OF_NAME.match(text, position - 1)
        word_before = text[max(start, position - 8) : position]
        is_abbreviation = is_initial or _ABBREVIATION.search(word_before)
        if text[position] != "." or not is_abbreviation:
            yield position


def trim(text: str, start: int, end: int) -> Span | None:
    """Narrow a range by blanks, emphasis and a last full stop; return None if nothing is left."""
    passage = text[start:end].rstrip(ORNAMENT_CHARACTERS)
    passage = passage.removesuffix(".").removesuffix("。").rstrip(ORNAMENT_CHARACTERS)
    trimmed_text = passage.lstrip(ORNAMENT_CHARACTERS)
    start += len(passage) - len(trimmed_text)
    return (start, start + len(trimmed_text)) if trimmed_text else None
