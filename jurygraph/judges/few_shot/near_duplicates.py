"""Detect texts that are nearly the same, so that one of them shown as an example would give the other away.

Case, accents, white space, punctuation and Unicode compatibility forms are ignored, and Cyrillic and Greek letters that
look like Latin ones count as those.
"""

import re
from functools import cached_property, lru_cache
from itertools import chain

import re2
from rapidfuzz import fuzz

from jurygraph.safety.text_folding import fold_text

MIN_SIMILARITY = 85.0
"""Least similarity of two near texts: percentage of letters that are the same, in the same order."""

MIN_SHARED_NGRAMS = 0.6
"""Least share of the shorter text's n-grams that occur in the other text, for the two to be near."""

_WORDS_PER_NGRAM, _LETTERS_PER_NGRAM = 3, 5
"""Lengths of n-grams: in words, and in letters for scripts without spaces between words."""

_MIN_WORDS, _LETTERS_PER_WORD = 8, 2
"""A shorter text has too few n-grams for their share to be meaningful."""

_MIN_LETTERS = 12
"""A shorter text may occur in another by chance."""

_LIKE_LATIN = str.maketrans(
    "авеһіјкмнорсѕтухԁαβεζηικμνορτυχ",
    "abehijkmhopcstyxdabezhikmnoptyx",
)
"""Small letters that look like Latin ones, or whose capitals do: Cyrillic, then Greek."""

_MARKS = re2.compile(r"\p{M}+")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Thai and Lao, Burmese, Khmer, Japanese and Chinese."""


class NormalizedText:
    """A text in normalized form for comparison, with cached n-grams."""

    def __init__(self, text: str) -> None:
        folded_text = fold_text(text)
        self._normalized = (
            folded_text if folded_text.isascii() else str(_MARKS.sub("", folded_text)).translate(_LIKE_LATIN)
        )
        self.letters = "".join(_WORD.findall(self._normalized))
        """Letters and digits of the text, in lower case."""

    @cached_property
    def ngrams(self) -> frozenset[str]:
        """The n-grams: three words in a row, or five letters of a script without spaces.

        There are none for a text under eight words.
        """
        words = _WORD.findall(_UNSPACED.sub(" ", self._normalized))
        letters = "".join(_UNSPACED.findall(self.letters))
        if len(words) + len(letters) / _LETTERS_PER_WORD < _MIN_WORDS:
            return frozenset()
        word_ngrams = (
            " ".join(words[start : start + _WORDS_PER_NGRAM]) for start in range(len(words) - _WORDS_PER_NGRAM + 1)
        )
        letter_ngrams = (
            letters[start : start + _LETTERS_PER_NGRAM] for start in range(len(letters) - _LETTERS_PER_NGRAM + 1)
        )
        return frozenset(chain(word_ngrams, letter_ngrams))

    def is_near(self, other: "NormalizedText") -> bool:
        """Return True if the texts are the same but for a little, or one mostly occurs in the other."""
        if self.letters == other.letters or self._is_within(other) or other._is_within(self):
            return True
        shorter = min(len(self.ngrams), len(other.ngrams))
        if shorter and len(self.ngrams & other.ngrams) >= MIN_SHARED_NGRAMS * shorter:
            return True
        return fuzz.ratio(self.letters, other.letters, score_cutoff=MIN_SIMILARITY) > 0

    def _is_within(self, other: "NormalizedText") -> bool:
        return len(self.letters) >= _MIN_LETTERS and self.letters in other.letters


def is_near_duplicate(first: str, second: str) -> bool:
    """Return True if two texts are nearly the same; the function is symmetric."""
    return first == second or _normalize(first).is_near(_normalize(second))


@lru_cache(maxsize=512)
def _normalize(text: str) -> NormalizedText:
    """Return a cached `NormalizedText`: a text is compared with many examples, and an example with many texts."""
    return NormalizedText(text)
