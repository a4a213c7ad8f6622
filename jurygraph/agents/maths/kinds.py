"""Read a reference as one of seven kinds, and an answer as the kind of its reference.

An answer is compared as what the reference is: to the reference "C", the answer "C) Paris" is a letter; to "even",
"even" is a word and no product of four variables. A number, an interval, a tuple and any other expression are one class
here (`AnswerValue`), since math-verify tells them apart.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from jurygraph.agents.maths.reading import (
    AnswerValue,
    fold_full_width,
    parse_answer,
    strip_formatting,
    strip_wrappers,
)


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """A letter of a multiple choice, A to J."""

    letter: str


@dataclass(frozen=True, slots=True)
class NumberInBase:
    """The digits of a number in another base, without leading zeros: "2516_8"."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class MatrixAnswer:
    """The rows of a matrix; with the delimiter "|" it is a determinant, and with "‖" a norm."""

    rows: tuple[tuple[AnswerValue, ...], ...]
    delimiter: str

    @property
    def shape(self) -> tuple[int, int, str]:
        return len(self.rows), len(self.rows[0]), self.delimiter


@dataclass(frozen=True, slots=True)
class WordAnswer:
    """Letters alone, in lower case."""

    text: str


TypedAnswer = ChoiceAnswer | NumberInBase | MatrixAnswer | AnswerValue | WordAnswer

# Choices
_EMPHASIS_COMMAND_PATTERN = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox|bf) ?\{([^{}]*)\}|[*`$_]|\\[()]"
)
_SPACING_COMMAND_PATTERN = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
_CHOICE_PATTERN = re.compile(
    r"(?i:(?:(?:the )?(?:correct |right |best )?(?:option|choice|answer)(?: is)? ?:? ?)?)"
    r"(?:\((?P<round>[A-J])\)|\[(?P<square>[A-J])\]|<(?P<angle>[A-J])>|(?P<plain>[A-J])(?P<mark>[).:]?))"
    r"[.:]?(?: (?P<rest>.*))?",
    re.DOTALL,
)
_LONE_LETTER_PATTERN = re.compile(r"[(\[<]?([a-j])[)\]>.]?")
_REASON_PHRASE_PATTERN = re.compile(
    r"(?:because|since) .+|is (?:the )?(?:correct|right|true|best)(?: (?:answer|option|choice|one))?"
)
_BRACKETED_TEXT_PATTERN = re.compile(
    r"\((?!(?:or|not|and|but|maybe|possibly|wrong|incorrect)\b)[^()]+\)"
)
# What begins so says something of the letter, and is no text of an option.
_REMARK_PHRASE_PATTERN = re.compile(
    r"(?i)(?:is|are|was|were|cannot|can|could|would|might|may|seems?|looks|not|wrong|incorrect|invalid|if|unless|but)\b"
)
_WORDS_BEFORE_CHOICE_PATTERN = (
    "and|n?or|not|but|than|versus|vs|else|otherwise|though|although|option|choice|leaving|then"
)
_BEFORE_CHOICE_PATTERN = rf"(?:^|[|+/&,;-] ?|\b(?:{_WORDS_BEFORE_CHOICE_PATTERN})\.? )"
_OTHER_LETTER_PATTERN = re.compile(
    rf"(?<![0-9}}] )(?<![\w'’\\])[B-HJ](?= ?(?:[).,;:!?|]|$))|\([A-J]\)|(?<!\w)[a-j]\)"
    rf"|(?i:{_BEFORE_CHOICE_PATTERN})\(?(?:[B-J]|A(?! [a-z]))(?![\w'’])"
)

_BASED_NUMBER_PATTERN = re.compile(
    r"(?P<sign>-?)\(?0*(?P<digits>[0-9A-Za-z]*[0-9][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)?)\)?"
    r"(?: ?_ ?\{? ?(?:base )?\(?(?P<subscript>[0-9]{1,2})\)? ?\}?| \(?(?:in )?base (?P<word>[0-9]{1,2})\)?)"
)
_MATRIX_PATTERN = re.compile(
    r"(?:[A-Za-z] ?= ?)?(?:\\left ?)?(?P<outer>[(\[|]?) ?"
    r"\\begin ?\{(?P<name>[pbBvV]?(?:small)?matrix|array)\}(?: ?\{[clr| ]*\})?"
    r"(?P<body>[^\\]*(?:\\(?!end ?\{)[^\\]*)*)"
    r"\\end ?\{(?P=name)\} ?(?:\\right ?)?[)\]|]?"
)
_ROW_END_PATTERN = re.compile(r"\\\\(?: ?\[[^\]]{0,20}\])?|\\cr(?![A-Za-z])")
_LETTERS_ONLY_PATTERN = re.compile(r"[^\W\d_]+(?:[ '’-]{1,2}[^\W\d_]+)*")


@lru_cache(maxsize=1024)
def read_reference(text: str) -> TypedAnswer | None:
    """Read a reference as what it is: the first of these that fits, or None if none does.

    A letter A to J; a number with a base; a matrix; an interval, tuple, number or other expression; words.
    """
    bare_text = strip_formatting(text)
    letter = bare_text.strip("()")
    if len(letter) == 1 and letter in "ABCDEFGHIJ":
        return ChoiceAnswer(letter)
    return (
        _read_based_number(bare_text)
        or _read_matrix(text)
        or parse_answer(text)
        or _read_word_answer(bare_text)
    )


@lru_cache(maxsize=1024)
def read_answer(text: str, reference: TypedAnswer) -> TypedAnswer | None:
    """Read an answer as its reference's kind; None if it cannot be read so."""
    match reference:
        case ChoiceAnswer():
            return _read_choice(text)
        case NumberInBase():
            return _read_based_number(strip_formatting(text))
        case MatrixAnswer():
            return _read_matrix(text)
        case WordAnswer():
            return _read_word_answer(strip_formatting(text))
        case AnswerValue():
            return parse_answer(text)


def _read_choice(text: str) -> ChoiceAnswer | None:
    r"""Read "C", "c", "(C)", "option C", "C) Paris", "\text{C: Paris}" or "C because it fits"; not "C or D"."""
    bare_text = _EMPHASIS_COMMAND_PATTERN.sub(
        lambda match: match[1] or "", strip_wrappers(fold_full_width(text))
    )
    bare_text = " ".join(_SPACING_COMMAND_PATTERN.sub(" ", bare_text).split())
    if lone_letter_match := _LONE_LETTER_PATTERN.fullmatch(bare_text):
        return ChoiceAnswer(lone_letter_match[1].upper())
    match = _CHOICE_PATTERN.fullmatch(bare_text)
    if match is None:
        return None
    letter = match["round"] or match["square"] or match["angle"] or match["plain"]
    rest = match["rest"] or ""
    is_letter_marked = not match["plain"] or match["mark"]
    if is_letter_marked:
        is_sentence = match["mark"] == "." and rest[:1].islower()  # "C. elegans" is no option
        is_choice_option = not _REMARK_PHRASE_PATTERN.match(rest) and not is_sentence
    else:
        is_choice_option = not rest or any(
            pattern.fullmatch(rest) for pattern in (_REASON_PHRASE_PATTERN, _BRACKETED_TEXT_PATTERN)
        )
    return (
        ChoiceAnswer(letter)
        if is_choice_option and not _OTHER_LETTER_PATTERN.search(rest)
        else None
    )


def _read_based_number(text: str) -> NumberInBase | None:
    match = _BASED_NUMBER_PATTERN.fullmatch(text)
    if match is None:
        return None
    base = int(match["subscript"] or match["word"])
    digits = match["digits"].upper()
    if not 2 <= base <= 36 or any(int(digit, 36) >= base for digit in digits.replace(".", "")):
        return None
    return NumberInBase(match["sign"] + digits, base)


def _read_matrix(text: str) -> MatrixAnswer | None:
    match = _MATRIX_PATTERN.fullmatch(
        strip_wrappers(text)
    )  # not without LaTeX's spacing: "\\ " ends a row
    if match is None:
        return None
    rows = []
    for row in _ROW_END_PATTERN.split(match["body"]):
        cells = [parse_answer(cell) for cell in row.split("&")]
        parsed_cells = [cell for cell in cells if cell is not None]
        if len(parsed_cells) == len(cells):
            rows.append(tuple(parsed_cells))
        elif row.strip():
            return None
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    first = match["name"][0]
    delimiter = "‖" if first == "V" else ""
    if match["outer"] == "|" or first == "v":
        delimiter = "|"
    return MatrixAnswer(tuple(rows), delimiter)


def _read_word_answer(text: str) -> WordAnswer | None:
    if not _LETTERS_ONLY_PATTERN.fullmatch(text):
        return None
    return WordAnswer(" ".join(text.casefold().split()))
