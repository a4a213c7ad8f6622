"""Whether two texts are nearly the same, so that one of them shown as an example would give the other away.

Case, accents, white space, punctuation and Unicode's compatibility forms count for nothing, nor does it if letters are
Cyrillic or Greek ones that look like Latin ones.
"""

import re
from functools import cached_property, lru_cache
from itertools import chain

import re2
from rapidfuzz import fuzz

from jurygraph.safety.folding import folded

ALIKE = 85.0
"""Percentage of two texts' letters that are the same, in the same order, from which on the texts are near."""

SHARED = 0.6
"""Share of the shorter text's runs that stand in the other one, from which on the texts are near."""

_WORDS_A_RUN, _LETTERS_A_RUN = 3, 5
"""The latter in scripts that set no space between words."""

_FEWEST_WORDS, _LETTERS_A_WORD = 8, 2
"""A shorter text has too few runs for their share to say something."""

_FEWEST_LETTERS = 12
"""A text of fewer may stand in another by chance."""

_LIKE_LATIN = str.maketrans(
    "авеһіјкмнорсѕтухԁαβεζηικμνορτυχ",
    "abehijkmhopcstyxdabezhikmnoptyx",
)
"""Small letters, of which either these or their capitals look like Latin ones: Cyrillic, then Greek."""

_MARKS = re2.compile(r"\p{M}+")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Thai and Lao, Burmese, Khmer, Japanese and Chinese."""


class Folded:
    """A text as it is compared; what that takes is worked out once."""

    def __init__(self, text: str) -> None:
        read = folded(text)
        self._read = read if read.isascii() else str(_MARKS.sub("", read)).translate(_LIKE_LATIN)
        self.letters = "".join(_WORD.findall(self._read))
        """Its letters and digits, in small letters."""

    @cached_property
    def runs(self) -> frozenset[str]:
        """Three words in a row, or five letters of a script without spaces; none of a text under eight words."""
        words = _WORD.findall(_UNSPACED.sub(" ", self._read))
        letters = "".join(_UNSPACED.findall(self.letters))
        if len(words) + len(letters) / _LETTERS_A_WORD < _FEWEST_WORDS:
            return frozenset()
        of_words = (" ".join(words[at : at + _WORDS_A_RUN]) for at in range(len(words) - _WORDS_A_RUN + 1))
        of_letters = (letters[at : at + _LETTERS_A_RUN] for at in range(len(letters) - _LETTERS_A_RUN + 1))
        return frozenset(chain(of_words, of_letters))

    def near(self, other: "Folded") -> bool:
        """Whether they are the same but for a little, or one stands in the other for the most part."""
        if self.letters == other.letters or self._within(other) or other._within(self):
            return True
        shorter = min(len(self.runs), len(other.runs))
        if shorter and len(self.runs & other.runs) >= SHARED * shorter:
            return True
        return fuzz.ratio(self.letters, other.letters, score_cutoff=ALIKE) > 0

    def _within(self, other: "Folded") -> bool:
        return len(self.letters) >= _FEWEST_LETTERS and self.letters in other.letters


def near_duplicate(one: str, other: str) -> bool:
    """Whether two texts are nearly the same; the order of the two changes nothing."""
    return one == other or _folded(one).near(_folded(other))


@lru_cache(maxsize=512)
def _folded(text: str) -> Folded:
    """One judged text is compared with many others, and those with many judged ones."""
    return Folded(text)
