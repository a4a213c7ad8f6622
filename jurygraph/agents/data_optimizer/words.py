"""Tokenisation into words, and sequences of words."""

import re
from collections.abc import Sequence
from typing import TypeVar

from jurygraph.safety.text_folding import remove_invisible

T = TypeVar("T")

MAX_WORD_LENGTH = 15
"""The largest number of characters in a word."""

_PIECE_LENGTH = 5
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_BLANK = re.compile("[_\u115f\u1160\u2800\u3164\uffa0]")
"""Characters that look blank but are no white space: the underscore, the blank of Braille, and fillers of Hangul."""

_RUN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]+")


def words(text: str) -> list[str]:
    """Return the words of a text, case-folded: runs of letters and digits, runs of other signs, and each character of a
    script written without spaces. An underscore, and other characters that look blank, separate words; invisible
    characters are dropped.

    A run of more than 15 characters is cut into pieces of 5, so that joining words does not make a text short.
    """
    return [word for run in _RUN.findall(_fold(text)) for word in _cut(run)]


def _fold(text: str) -> str:
    return remove_invisible(_BLANK.sub(" ", text)).casefold()


def _cut(run: str) -> list[str]:
    return (
        [run]
        if len(run) <= MAX_WORD_LENGTH
        else [run[start : start + _PIECE_LENGTH] for start in range(0, len(run), _PIECE_LENGTH)]
    )


def has_content(word: str) -> bool:
    """Return true if the word contains a letter or a digit."""
    return any(map(str.isalnum, word))


def is_silent(text: str) -> bool:
    """Return true if no word of a text contains a letter or a digit."""
    return not has_content(_fold(text))


def grams(sequence: Sequence[T], n: int) -> list[tuple[T, ...]]:
    """Return all n-grams in their order: len(sequence) - n + 1 of them, or none."""
    return list(zip(*(sequence[start:] for start in range(n)), strict=False))
