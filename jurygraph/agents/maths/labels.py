"""Find the sentence after a label that announces a final answer, such as "Answer:" or "die Antwort ist".

The words of ten languages are in `answer_labels.toml`. A denied label ("the wrong answer is") announces nothing. No
pattern has a repeat that can match the same text in two ways, so that finding takes linear time.
"""

import re
from collections.abc import Iterator

from jurygraph.agents.maths.reading import read_word_table

Span = tuple[int, int]

ORNAMENT_CHARACTERS = " \t\r\n*_`"
_LABEL_WORDS = read_word_table("answer_labels.toml")
_SPACED = {kind: "|".join(words.split()) for kind, words in _LABEL_WORDS["spaced"].items()}
_UNSPACED = {kind: "|".join(words.split()) for kind, words in _LABEL_WORDS["joined"].items()}
"""The words of a kind as alternatives of a pattern, of languages with and without spaces between words."""
_LINE_START_PATTERN = r"^[ \t>*_#-]{0,8}"
_SENTENCE_START_PATTERN = rf"(?:{_LINE_START_PATTERN}|(?<=[.!?;] )|(?<=[。！？；]))"
_MAX_DENIAL_LENGTH = 40  # characters
_SENTENCE_END_PATTERN = re.compile(r"(?<!\.)[.!?](?=[ \t\r]|$)|[。！？]")  # "..." ends none
_INITIAL_OF_NAME_PATTERN = re.compile(r"\b[A-Za-z]\. [a-z]")
_ABBREVIATION_PATTERN = re.compile(
    r"\b(?:[Aa]pprox|[Cc]a|Nos?|vs|e\.g|i\.e|cf|viz|resp|Mrs?|Ms|Dr|Prof|Rs)$"
)
_BLANK_RUN_PATTERN = re.compile(r"[ \t\r\n*_`]*")
_DISPLAY_MATH_DELIMITERS = {r"\[": r"\]", "$$": "$$"}


def _build_line_pattern(kind: str) -> str:
    """Return the pattern of a label with a colon ("**Final answer:** 18"), or of a heading, for the words of a kind."""
    adjective_pattern = f"(?:{_SPACED['adjectives']})"
    phrase_pattern = (
        f"(?i:(?:{adjective_pattern} ){{0,3}}(?:{_SPACED[kind]})(?: {adjective_pattern})?)"
    )
    unspaced_languages_pattern = f"{_UNSPACED[kind]}|{_UNSPACED['before_colon']}"
    label_pattern = f"(?:{_SENTENCE_START_PATTERN}{phrase_pattern}|{unspaced_languages_pattern})"
    colon_pattern = rf"{label_pattern}[*_ \t]{{0,4}}(?::|[—–](?= ))"
    return rf"{colon_pattern}|^(?:#{{1,6}}[ \t]{{0,4}}|\*\*){phrase_pattern}[*_ \t]{{0,4}}$"


def _build_sentence_pattern(kind: str) -> str:
    """Return the pattern of a label with a verb ("so the final answer is 18"), for the words of a kind."""
    link_words_pattern = rf"(?:{_SPACED['links']}|(?:would|must|should) be)"
    spaced_languages_pattern = (
        rf"\b(?i:(?:{_SPACED[kind]})(?: (?:{_SPACED['adjectives']}))? {link_words_pattern})\b"
    )
    unspaced_languages_pattern = f"(?:{_UNSPACED[kind]})(?:{_UNSPACED['links']})"
    return rf"(?:{spaced_languages_pattern}|{unspaced_languages_pattern})[ \t]{{0,4}}:?"


def _build_denial_pattern() -> str:
    articles_pattern = rf"(?: (?:{_SPACED['articles']})(?= |\Z)){{0,2}}"
    spaced_languages_pattern = rf"\b(?i:{_SPACED['denials']}){articles_pattern} ?\Z"
    return rf"{spaced_languages_pattern}|(?:{_UNSPACED['denials']}) ?\Z"


_BARE_LABEL_PATTERN = rf"{_LINE_START_PATTERN}A[*_ ]{{0,4}}:"
_EQUALS_LABEL_PATTERN = (
    rf"{_LINE_START_PATTERN}(?i:(?:the |final ){{0,2}}answer) ?=(?!=)"  # program code has it, too
)
ANSWER_LINE_PATTERN = re.compile(_build_line_pattern("answers"), re.MULTILINE)
ANSWER_SENTENCE_PATTERN = re.compile(_build_sentence_pattern("answers"), re.MULTILINE)
ANSWER_LABEL_PATTERN = re.compile(
    f"{_BARE_LABEL_PATTERN}|{ANSWER_LINE_PATTERN.pattern}|{ANSWER_SENTENCE_PATTERN.pattern}",
    re.MULTILINE,
)
RESULT_LABEL_PATTERN = re.compile(
    f"{_build_line_pattern('results')}|{_build_sentence_pattern('results')}|{_EQUALS_LABEL_PATTERN}",
    re.MULTILINE,
)
"""Labels that announce an answer only where no label of an answer is: steps on the way have them, too."""

_DENIAL_PATTERN = re.compile(_build_denial_pattern())


def find_labelled_sentence(
    text: str, label_pattern: re.Pattern[str], search_start: int = 0
) -> Span | None:
    """Find the sentence after the last label that has one, on its line or on the next line that is not blank.

    Mathematics in display goes to its end. A label's passage ends at the next label, so none is read twice.
    """
    end = len(text)
    spans = [label.span() for label in label_pattern.finditer(text, search_start)]
    for label_start, label_end in reversed(spans):
        words_before = text[max(0, label_start - _MAX_DENIAL_LENGTH) : label_start]
        if _DENIAL_PATTERN.search(words_before):
            continue
        start = _BLANK_RUN_PATTERN.match(text, label_end, end).end()  # type: ignore[union-attr]  # it matches anywhere
        sentence = trim_span(text, start, _find_passage_end(text, start, end))
        if sentence is not None:
            return sentence
        end = label_start
    return None


def _find_passage_end(text: str, start: int, end: int) -> int:
    closing_delimiter = _DISPLAY_MATH_DELIMITERS.get(text[start : start + 2])
    closing_index = text.find(closing_delimiter, start + 2, end) if closing_delimiter else -1
    if closing_index >= 0:
        return closing_index + 2
    newline_index = text.find("\n", start, end)
    line_end = end if newline_index < 0 else newline_index
    stop = next(iter_sentence_ends(text, start, line_end), line_end)
    return stop + 1 if text[stop : stop + 1] in ("?", "？") else stop  # a question is no answer


def iter_sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions of marks that end a sentence in a range; the points of "3.5", "e.g." or "E. coli" do not."""
    for stop in _SENTENCE_END_PATTERN.finditer(text, start, end):
        position = stop.start()
        is_name_initial = position > start and _INITIAL_OF_NAME_PATTERN.match(text, position - 1)
        word_before = text[max(start, position - 8) : position]
        is_abbreviation = is_name_initial or _ABBREVIATION_PATTERN.search(word_before)
        if text[position] != "." or not is_abbreviation:
            yield position


def trim_span(text: str, start: int, end: int) -> Span | None:
    """Narrow a range by blanks, emphasis and a last full stop; return None if nothing is left."""
    passage = text[start:end].rstrip(ORNAMENT_CHARACTERS)
    passage = passage.removesuffix(".").removesuffix("。").rstrip(ORNAMENT_CHARACTERS)
    trimmed_text = passage.lstrip(ORNAMENT_CHARACTERS)
    start += len(passage) - len(trimmed_text)
    return (start, start + len(trimmed_text)) if trimmed_text else None
