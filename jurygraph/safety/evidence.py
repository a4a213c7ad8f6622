"""Whether a quotation stands in a response, and where: letter by letter, but for white space and Unicode's forms.

What leaves no mark, such as a joiner, is none of the letters.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from jurygraph.safety.folding import visible

_SPACE = re.compile(r"\s+")
_NUMBER_BEFORE, _NUMBER_AFTER = re.compile(r"\d[.,]$|[-\u2212+]$"), re.compile(r"[.,]\d")
_MOST_MARKS = 8
"""Marks on one letter; normalising a heap of them takes the square of their number."""
_UNFOLDED = re.compile(r"[^\S ]|  ")
_LETTERS_OF_SOME_WEIGHT = 8
_ALIKE = str.maketrans("‘’ʼ“”‐‑‒–—―", "'''\"\"------")
"""Quotation marks, apostrophes and dashes that whoever quotes sets as is usual there."""

_PLAIN = re.compile(
    r"[\x00-\u02ff\u0400-\u0482\u2010-\u2027\u2030-\u205e\u20ac\u3001-\u3029\u3031-\u3096\u3400-\u9fff\uac00-\ud7a3]*"
)
"""Letters of which none melts into the one before it."""

_DOTS = re.compile(r"^(?:\.{3}|…)\s*|\s*(?:\.{3}|…)$")


class Passage(NamedTuple):
    """A passage of a text: its characters from `start` up to `end`, and the words themselves."""

    start: int
    end: int
    text: str


class Text:
    """A text in which quotations are looked for; what it is folded to, and what bears a verdict, is worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded, self._starts = _folded(text)
        self._supporting: dict[str, Passage | None] = {}

    @cached_property
    def _lines(self) -> frozenset[str]:
        """The lines that hold a letter or digit, without the white space around them."""
        return frozenset(line.strip() for line in self.text.splitlines() if any(map(str.isalnum, line)))

    def find(self, quotation: str) -> Passage | None:
        """The first of the `passages`; None where there is none."""
        return next(self.passages(quotation), None)

    def passages(self, quotation: str) -> Iterator[Passage]:
        """The passages that the quotation is, by NFKC and with white space folded, in their order.

        A passage begins and ends where a letter with its accents does, and is never blank.
        """
        sought = _folded(quotation)[0].strip()
        place = self._folded.find(sought) if sought else -1
        while place >= 0:
            passage = self._passage(place, place + len(sought))
            if passage is not None:
                yield passage
            place = self._folded.find(sought, place + 1)

    def supports(self, quotation: str) -> Passage | None:
        """The first passage that can bear a verdict, since nobody hits upon it by chance.

        It is eight letters or digits or more (a Chinese or Japanese one counts as four), or a whole line of the text,
        and stands between words. Dots for what was left out before and behind it are no part of it.
        """
        if quotation not in self._supporting:
            self._supporting[quotation] = self._supports(quotation)
        return self._supporting[quotation]

    def _supports(self, quotation: str) -> Passage | None:
        bare = _DOTS.sub("", quotation.strip())
        found = chain(self.passages(quotation), self.passages(bare) if bare != quotation.strip() else ())
        return next((one for one in found if self._bears(one) and self.between_words(one)), None)

    def between_words(self, passage: Passage) -> bool:
        """Whether a passage begins and ends where words and numbers do."""
        before, after = self.text[max(0, passage.start - 2) : passage.start], self.text[passage.end : passage.end + 2]
        first, last = passage.text[0], passage.text[-1]
        if _joined(before[-1:], first) or _joined(last, after[:1]):
            return False
        of_a_number = first.isdigit() and _NUMBER_BEFORE.search(before), last.isdigit() and _NUMBER_AFTER.match(after)
        return not any(of_a_number)

    def _bears(self, passage: Passage) -> bool:
        return _weighs_enough(passage.text) or self._is_a_line(passage)

    def _is_a_line(self, passage: Passage) -> bool:
        return passage.text in self._lines

    def _passage(self, start: int, end: int) -> Passage | None:
        """The characters of the text that became those of the folded one; None where one of them is cut apart."""
        first, last = self._starts[start], self._starts[end - 1]
        whole = start == 0 or self._starts[start - 1] != first
        whole = whole and (end == len(self._starts) or self._starts[end] != last)
        stop = self._starts[end] if end < len(self._starts) else len(self.text)
        while stop > last + 1 and self.text[stop - 1].isspace():
            stop -= 1
        return Passage(first, stop, self.text[first:stop]) if whole else None


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """A text in NFKC with white space folded, and for each of its characters where in the text it comes from."""
    if not text.isascii():
        text = text.translate(_ALIKE)
    if visible(text) == text and _has_one_form(text):
        return _with_spaces_folded(text)
    letters: list[str] = []
    starts: list[int] = []
    for start, end in _clusters(text):
        for letter in unicodedata.normalize("NFKC", text[start:end]):
            if letter.isspace():
                if letters and letters[-1] == " ":
                    continue
                letter = " "
            elif not visible(letter):
                continue
            letters.append(letter)
            starts.append(start)
    return "".join(letters), starts


def _has_one_form(text: str) -> bool:
    return text.isascii() or bool(_PLAIN.fullmatch(text) and unicodedata.is_normalized("NFKC", text))


def _with_spaces_folded(text: str) -> tuple[str, Sequence[int]]:
    """The same for what has one form only."""
    if not _UNFOLDED.search(text):
        return text, range(len(text))
    folded = _SPACE.sub(" ", text)
    if len(folded) == len(text):
        return folded, range(len(text))
    starts: list[int] = []
    done = 0
    for space in _SPACE.finditer(text):
        starts.extend(range(done, space.start() + 1))
        done = space.end()
    starts.extend(range(done, len(text)))
    return folded, starts


def _clusters(text: str) -> Iterable[tuple[int, int]]:
    """Parts of the text that normalise by themselves: each a starter with the marks and jamo that join it."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or place - start > _MOST_MARKS or not _joins(text[place]):
            yield start, place
            start = place


def _joins(letter: str) -> bool:
    """Whether it may melt into the letter before it."""
    if letter.isascii():
        return False
    first = unicodedata.normalize("NFKC", letter)[:1]
    marks = unicodedata.combining(first) != 0 or unicodedata.category(first) in ("Mn", "Mc")
    return marks or "\u1160" <= first <= "\u11ff"


def _weighs_enough(text: str) -> bool:
    weight = 0
    for letter in filter(str.isalnum, text):
        weight += 4 if unicodedata.east_asian_width(letter) in "WF" else 1
        if weight >= _LETTERS_OF_SOME_WEIGHT:
            return True
    return False


def _joined(one: str, other: str) -> bool:
    """Whether two neighbouring characters belong to one word; languages without spaces have no such words."""
    if not (one.isalnum() and other.isalnum()):
        return False
    return not any(unicodedata.east_asian_width(each) in "WF" for each in (one, other))
