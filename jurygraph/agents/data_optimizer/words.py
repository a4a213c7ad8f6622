"""What counts as a word, and sequences of words."""

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]{{1,20}}|[^\w\s]{{1,20}}")


def words(text: str) -> list[str]:
    """The words of a text, case folded: runs of letters and figures, runs of other signs, and each sign of a script
    that is written without blanks.

    A run counts once for every 20 signs of it, so that nothing becomes short by being written in one.
    """
    return _WORD.findall(text.casefold())


def says(word: str) -> bool:
    """Whether there is a letter or a figure in it."""
    return any(map(str.isalnum, word))


def grams(sequence: Sequence[T], n: int) -> list[tuple[T, ...]]:
    """All n that stand beside one another, in their order: len(sequence) - n + 1 of them, or none."""
    return list(zip(*(sequence[start:] for start in range(n)), strict=False))
