"""What counts as a word, and sequences of words."""

import re
from collections.abc import Sequence
from typing import TypeVar

from jurygraph.safety.folding import visible

T = TypeVar("T")

LONGEST = 15
"""Signs that a word has at most."""

_PIECE = 5
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_BLANK = re.compile("[_\u115f\u1160\u2800\u3164\uffa0]")
"""What looks like a blank and is none: the underscore, the blank of Braille, and the fillers of Hangul."""

_RUN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]+")


def words(text: str) -> list[str]:
    """The words of a text, case folded: runs of letters and figures, runs of other signs, and each sign of a script
    that is written without blanks. An underscore, and what else looks like a blank, parts words as a blank does;
    what leaves no mark is not there.

    A run of more than 15 signs is cut in pieces of 5, so that nothing becomes short by being written in one.
    """
    return [word for run in _RUN.findall(_folded(text)) for word in _cut(run)]


def _folded(text: str) -> str:
    return visible(_BLANK.sub(" ", text)).casefold()


def _cut(run: str) -> list[str]:
    return [run] if len(run) <= LONGEST else [run[start : start + _PIECE] for start in range(0, len(run), _PIECE)]


def says(word: str) -> bool:
    """Whether there is a letter or a figure in it."""
    return any(map(str.isalnum, word))


def is_silent(text: str) -> bool:
    """Whether no word of a text says anything."""
    return not says(_folded(text))


def grams(sequence: Sequence[T], n: int) -> list[tuple[T, ...]]:
    """All n that stand beside one another, in their order: len(sequence) - n + 1 of them, or none."""
    return list(zip(*(sequence[start:] for start in range(n)), strict=False))
