"""Whether a quotation stands in a response, and where: letter by letter, but for white space and Unicode's forms.

What leaves no mark, such as a joiner, is none of the letters. Superscripts, subscripts, fractions and circled digits
are letters of their own: `x2` is not `x²`. Finding a quotation takes time in proportion to response and quotation.
"""

import asyncio
import re
import unicodedata
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import NamedTuple, TypeVar

from jurygraph.safety.folding import folded, visible
from jurygraph.safety.openings import says_nothing
from jurygraph.safety.words import cuts_word

T = TypeVar("T")

LONG_TEXT = 20_000
"""Letters from which a text is folded in a thread, so that the event loop goes on."""

_MOST_REJECTED = 256
"""Places at which a quotation may be found cut within a word before the search ends: overlapping places of a long
quotation would cost the product of both lengths."""
_LONGEST_LINE, _LONGEST_SHORT_LINE = 400, 64
_FOLDED_AT_ONCE = 10_000
_LETTERS_OF_SOME_WEIGHT = 8
_MOST_MARKS = 8
"""Marks on one letter; normalising a heap of them takes the square of their number."""

_ALIKE = str.maketrans("‘’ʼ“”‐‑‒–—―", "'''\"\"------")
"""Quotation marks, apostrophes and dashes that whoever quotes sets as is usual there."""

_DOTS = re.compile(r"^(?:\.{3}|…)\s*|\s*(?:\.{3}|…)$")
_SPACE = re.compile(r"\s+")
_UNFOLDED_SPACE = re.compile(r"[^\S ]|  ")
_WIDE_SPACE = re.compile(r"\s\s+")
_UNCUT = "(?<![A-Za-z0-9](?=[A-Za-z0-9]))"
"""Where no letter or digit of ASCII stands both before and behind."""
_KEPT_APART = ("<super>", "<sub>", "<fraction>", "<circle>")
"""Compatibility forms that change what is said where they are folded: x² would be x2."""


_WITHOUT_MARKS = (
    *(range(0x21, 0x300), range(0x400, 0x483), range(0x2010, 0x2028), range(0x2030, 0x205F)),
    *(range(0x20AC, 0x20AD), range(0x3001, 0x302A), range(0x3031, 0x3097)),
)
"""Characters that never melt into the one before."""


def _is_steady(char: str) -> bool:
    """Whether no form of Unicode changes a character, which is to be seen."""
    return unicodedata.normalize("NFKC", char) == char == visible(char) and not char.isspace()


_STEADY_CHARACTERS = "".join(filter(_is_steady, map(chr, chain.from_iterable(_WITHOUT_MARKS))))
_STEADY = f"{re.escape(_STEADY_CHARACTERS)}\u3400-\u9fff\uac00-\ud7a3"
"""Those that melt into none and that no form changes, as a class of a pattern."""

_STEADY_TEXT = re.compile(rf"[{_STEADY}\s]*")
_ODD_RUN = re.compile(rf"[^{_STEADY}\s]{{1,256}}")
_STEADY_RUN = re.compile(rf"(?:[{_STEADY}]| (?!\s))+(?![^{_STEADY}\s])")
"""Without the last one before an odd character, which may be a mark on it."""


class Passage(NamedTuple):
    """A passage of a text: its characters from `start` up to `end`, and the words themselves."""

    start: int
    end: int
    text: str


class Text:
    """A text in which quotations are looked for; what it is folded to, and what bears a verdict, is worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded, self._starts = _fold_with_offsets(text)
        self._supporting: dict[str, Passage | None] = {}
        self.size = max(len(text), len(self._folded))
        """Letters, as written or folded, whichever are more: one sign may fold to many."""

    def prepared(self) -> "Text":
        """The text itself, with all worked out that takes time in proportion to its length."""
        _ = self._short_lines
        return self

    def find(self, quotation: str) -> Passage | None:
        """The first passage that the quotation is, in Unicode's compatible forms and with white space folded.

        A passage begins and ends where a letter with its accents does, and is never blank. None where there is none.
        """
        return next(self._passages(quotation), None)

    def between_words(self, quotation: str) -> Iterator[Passage]:
        """The passages that the quotation is and that begin and end where words and numbers do, in their order."""
        return self._passages(quotation, in_words=True)

    def supports(self, quotation: str) -> Passage | None:
        """The first passage that can bear a verdict, since nobody hits upon it by chance.

        It is eight letters or digits or more (a Chinese or Japanese one counts as four), or a whole line of the text,
        and stands between words. Dots for what was left out before and behind it are no part of it. What merely
        announces an answer, or fills a line, bears none, and neither does a part of such a line.
        """
        if quotation not in self._supporting:
            self._supporting[quotation] = self._find_support(quotation)
        return self._supporting[quotation]

    def has_nothing_but_filler(self, quotation: str) -> bool:
        """Whether the first passage that the quotation is says nothing, or stands in lines that say nothing."""
        passage = self.find(quotation)
        return passage is not None and self._says_nothing(passage)

    def _find_support(self, quotation: str) -> Passage | None:
        bare = _DOTS.sub("", quotation.strip())
        for one in dict.fromkeys((quotation, bare)):
            sought = _fold_with_offsets(one)[0].strip()
            if _weighs_enough(sought):
                found = next(self._passages(one, in_words=True, meaningful=True), None)
            else:
                found = self._find_line(sought)
            if found is not None:
                return found
        return None

    def _find_line(self, sought: str) -> Passage | None:
        """The first line that is these words, letter or digit among them."""
        if not any(map(str.isalnum, sought)):
            return None
        passage = self._short_lines.get(sought)
        return None if passage is None or self._says_nothing(passage) else passage

    @cached_property
    def _short_lines(self) -> dict[str, Passage]:
        """Lines that are too short to bear a verdict by their letters, folded; of equal ones the first."""
        found: dict[str, Passage] = {}
        start = 0
        for line in self.text.splitlines(keepends=True):
            if len(line) <= _LONGEST_SHORT_LINE:
                words = line.strip()
                first = start + len(line) - len(line.lstrip())
                found.setdefault(_fold_with_offsets(words)[0], Passage(first, first + len(words), words))
            start += len(line)
        return found

    def _passages(self, quotation: str, *, in_words: bool = False, meaningful: bool = False) -> Iterator[Passage]:
        """The passages that the quotation is; the search ends after some that are cut in a letter or word."""
        sought = _fold_with_offsets(quotation)[0].strip()
        rejected = 0
        for place in self._places(sought, in_words) if sought else ():
            end = place + len(sought)
            passage = None if in_words and self._cuts_words(place, end) else self._passage(place, end)
            if passage is not None and not (meaningful and self._says_nothing(passage)):
                yield passage
                continue
            rejected += 1
            if rejected == _MOST_REJECTED and len(sought) >= _LETTERS_OF_SOME_WEIGHT:
                return

    def _places(self, sought: str, in_words: bool) -> Iterator[int]:
        """Where the sought characters stand in the folded text; few letters within words are passed over."""
        if in_words and len(sought) < _LETTERS_OF_SOME_WEIGHT:
            pattern = f"{_UNCUT}(?={re.escape(sought)}{_UNCUT})"
            yield from (found.start() for found in re.finditer(pattern, self._folded))
            return
        place = self._folded.find(sought)
        while place >= 0:
            yield place
            place = self._folded.find(sought, place + 1)

    def _cuts_words(self, start: int, end: int) -> bool:
        return any(cuts_word(self._folded, place, self._written) for place in (start, end))

    def _written(self, place: int) -> str:
        """The character of the text that became the one at a place of the folded text."""
        return self.text[self._starts[place]]

    def _passage(self, start: int, end: int) -> Passage | None:
        """The characters of the text that became those of the folded one; None where one of them is cut apart."""
        first, last = self._starts[start], self._starts[end - 1]
        whole = start == 0 or self._starts[start - 1] != first
        whole = whole and (end == len(self._starts) or self._starts[end] != last)
        stop = self._starts[end] if end < len(self._starts) else len(self.text)
        return Passage(first, stop, self.text[first:stop]) if whole else None

    def _says_nothing(self, passage: Passage) -> bool:
        """Whether a passage, or the lines in which it stands, announce an answer and give none."""
        return _is_filler(passage.text) or _is_filler(self._lines_around(passage))

    def _lines_around(self, passage: Passage) -> str:
        """The whole lines in which a passage stands; of long ones no more than the search for filler looks at."""
        left = self.text[max(0, passage.start - _LONGEST_LINE) : passage.start].rpartition("\n")[2]
        right = self.text[passage.end : passage.end + _LONGEST_LINE].partition("\n")[0]
        return f"{left}{passage.text}{right}"


@lru_cache(maxsize=1024)
def _is_filler(words: str) -> bool:
    return len(words) <= _LONGEST_LINE and says_nothing(folded(words))


# Texts that are kept, since many verdicts rest on one response


class RecentTexts:
    """The texts of the last responses, up to so many letters in all."""

    def __init__(self, most_letters: int) -> None:
        self._most, self._letters = most_letters, 0
        self._texts: OrderedDict[str, Text] = OrderedDict()
        self._lock, self._folding = Lock(), Lock()

    def get(self, text: str) -> Text | None:
        with self._lock:
            known = self._texts.get(text)
            if known is not None:
                self._texts.move_to_end(text)
            return known

    def read(self, text: str) -> Text:
        """The text, folded now if it was not; a long one by one thread at a time, so that none is folded twice."""
        if len(text) < LONG_TEXT:
            return self.get(text) or self._keep(Text(text))
        with self._folding:
            return self.get(text) or self._keep(Text(text).prepared())

    def _keep(self, read: Text) -> Text:
        with self._lock:
            if read.text not in self._texts:
                self._texts[read.text] = read
                self._letters += read.size
            while self._letters > self._most and len(self._texts) > 1:
                self._letters -= self._texts.popitem(last=False)[1].size
            return read


_RECENT = RecentTexts(most_letters=4_000_000)


def read_text(text: str) -> Text:
    """A text as quotations are looked for in it. It is folded once, and kept for the other verdicts on it."""
    return _RECENT.read(text)


async def aread_text(text: str) -> Text:
    """The same; a long text is folded in a thread, so that the event loop goes on meanwhile."""
    known = _RECENT.get(text)
    if known is not None:
        return known
    return await search_off_loop(lambda: read_text(text), len(text))


async def search_off_loop(search: Callable[[], T], letters: int) -> T:
    """Call a function that searches texts of so many letters in all; in a thread where these are many."""
    return await asyncio.to_thread(search) if letters >= LONG_TEXT else search()


# Folding


def _fold_with_offsets(text: str) -> tuple[str, Sequence[int]]:
    """A text in compatible forms with white space folded, and for each of its characters where it comes from.

    A long text is folded piece by piece, since other threads wait while a function of C runs.
    """
    if len(text) <= _FOLDED_AT_ONCE:
        return _fold_piece(text)
    letters: list[str] = []
    starts = array("I")
    place = 0
    while place < len(text):
        end = place + _FOLDED_AT_ONCE
        while end < len(text) and (text[end].isspace() or _joins(text[end])):
            end += 1
        written, places = _fold_piece(text[place:end])
        letters.append(written)
        starts.extend(place + at for at in places)
        place = end
    return "".join(letters), starts


def _fold_piece(text: str) -> tuple[str, Sequence[int]]:
    if not text.isascii():
        text = text.translate(_ALIKE)
    if _STEADY_TEXT.fullmatch(text):
        return _with_spaces_folded(text)
    letters: list[str] = []
    starts = array("I")
    place = 0
    while place < len(text):
        run = _STEADY_RUN.match(text, place)
        if run is not None:
            _add(letters, starts, run[0], range(place, run.end()))
            place = run.end()
            continue
        odd = _ODD_RUN.match(text, place)
        if odd is not None and not any(map(_joins, text[place : odd.end() + 1])):
            _add_each(letters, starts, odd[0], place)
            place = odd.end()
            continue
        end = _cluster_end(text, place)
        written = _compatible_form(text[place:end])
        _add(letters, starts, written, [place] * len(written))
        place = end
    return "".join(letters), starts


def _add(letters: list[str], starts: "array[int]", written: str, places: Sequence[int]) -> None:
    """Add characters and where they come from; a space after a space is left out."""
    if written and written[0] == " " and letters and letters[-1][-1] == " ":
        written, places = written[1:], places[1:]
    if written:
        letters.append(written)
        starts.extend(places)


def _add_each(letters: list[str], starts: "array[int]", odd: str, place: int) -> None:
    """Add characters each of which normalises by itself."""
    for at, written in enumerate(map(_compatible_form, odd), place):
        _add(letters, starts, written, [at] * len(written))


def _with_spaces_folded(text: str) -> tuple[str, Sequence[int]]:
    """The same for a text in which white space alone is to be folded."""
    if not _UNFOLDED_SPACE.search(text):
        return text, range(len(text))
    folded_text = _SPACE.sub(" ", text)
    starts = array("I")
    done = 0
    for space in _WIDE_SPACE.finditer(text):
        starts.extend(range(done, space.start() + 1))
        done = space.end()
    starts.extend(range(done, len(text)))
    return folded_text, starts


def _cluster_end(text: str, start: int) -> int:
    """The end of a part of the text that normalises by itself: a starter with the marks and jamo that join it."""
    end = start + 1
    while end < len(text) and end - start <= _MOST_MARKS and _joins(text[end]):
        end += 1
    return end


@lru_cache(maxsize=1 << 14)
def _joins(letter: str) -> bool:
    """Whether it may melt into the letter before it."""
    if letter.isascii():
        return False
    first = unicodedata.normalize("NFKC", letter)[:1]
    marks = unicodedata.combining(first) != 0 or unicodedata.category(first) in ("Mn", "Mc")
    return marks or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=1 << 14)
def _compatible_form(cluster: str) -> str:
    """NFKC but for what is kept apart, with white space as one space and without what is invisible."""
    written = unicodedata.normalize("NFC", "".join(map(_decomposed, cluster)))
    return visible(_SPACE.sub(" ", written))


def _decomposed(letter: str) -> str:
    """The compatible characters of a letter; a superscript, fraction or circled digit is its own."""
    kind, *codes = unicodedata.decomposition(letter).split() or ("",)
    if not kind or kind in _KEPT_APART:
        return letter
    codes = codes if kind.startswith("<") else [kind, *codes]
    return "".join(_decomposed(chr(int(code, 16))) for code in codes)


def _weighs_enough(text: str) -> bool:
    weight = 0
    for letter in filter(str.isalnum, text):
        weight += 4 if unicodedata.east_asian_width(letter) == "W" else 1
        if weight >= _LETTERS_OF_SOME_WEIGHT:
            return True
    return False
