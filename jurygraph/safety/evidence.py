"""Find quotations in a response: letter by letter, except for white space and Unicode's compatible forms.

Invisible characters, such as joiners, are ignored. Superscripts, subscripts, fractions and circled digits are letters
of their own: `x2` is not `x²`. A judge that quotes LaTeX in JSON often writes one backslash, and JSON reads `\\frac` as
a form feed before "rac": such a quotation counts as the words of the response from which it comes. Finding a quotation
takes time proportional to the lengths of response and quotation.
"""

import asyncio
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from io import StringIO
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from jurygraph.safety.gates import fold_text, is_empty_talk, remove_invisible
from jurygraph.schema.conversation import RenderedText

_HYPHEN_CHARACTERS = "-\u2010\u2011\ufe63\uff0d"
_NUMBER_JOINING_CHARACTERS = ".,:/_'"
_WORD_JOINING_CHARACTERS = "-_'"
_NUMBER_SIGNS = "-+\u2212\ufe63\uff0d"
_DIGIT_GROUP_SPACES = "\u00a0\u2009\u202f"
"""Spaces that group digits, as in 1 250; an ordinary space may separate two numbers."""
_THOUSANDS_GROUP_DIGITS = 3
_MAX_CONTRACTION_ENDING_LENGTH = 2
"""Maximum length of an ending after an apostrophe, as in isn't and they're; a word is longer, as in l'hôtel."""

_UNSPACED_SCRIPTS_PATTERN = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaa7f\uff61-\uffdc]"
)
"""Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, Tai, Balinese, Javanese; half-width kana.
Wide letters (Chinese, Japanese, Korean) are recognised by their width."""


@lru_cache(maxsize=1 << 14)
def is_word_letter(char: str) -> bool:
    """Return whether a character belongs to words of letters, digits and marks that are separated by spaces."""
    if not (char.isalnum() or unicodedata.category(char)[0] == "M"):
        return False
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return False
    return _UNSPACED_SCRIPTS_PATTERN.match(char) is None


def _begins_after_elision(text: str, index: int) -> bool:
    """Return whether a word begins here after an apostrophe, as in l'hôtel; endings such as in isn't do not count."""
    word_prefix = text[index : index + _MAX_CONTRACTION_ENDING_LENGTH + 1]
    is_word = not word_prefix[:1].isdigit() and all(map(is_word_letter, word_prefix))
    return text[index - 1] == "'" and len(word_prefix) > _MAX_CONTRACTION_ENDING_LENGTH and is_word


T = TypeVar("T")

LONG_TEXT_LENGTH = 20_000
"""Length in characters from which a text is folded in a thread, so that the event loop is not blocked."""

_MAX_REJECTED_MATCHES = 256
"""Maximum number of places at which a quotation may be cut within a word before the search ends: overlapping places of
a long quotation would cost the product of both lengths."""
_MAX_FILLER_LENGTH = 400
_MAX_SHORT_LINE_LENGTH = 64
_MIN_QUOTATION_WEIGHT = 8
_MAX_MARKS_PER_LETTER = 8
"""Maximum number of marks on one letter; normalising them takes the square of their number."""

_PLAIN_PUNCTUATION_TABLE = str.maketrans(
    "‘’ʼ“”‐‑‒–—―\t\n\v\f\r\x1c\x1d\x1e\x1f", "'''\"\"------         "
)
"""Quotation marks, apostrophes and dashes, for which quotations often contain other forms, and ASCII's white space."""

_PLAIN_ASCII_PATTERN = re.compile(r"[ -~\t-\r\x1c-\x1f]{1,65536}(?=[\x00-\x7f]|\Z)")
"""Printable ASCII and white space; without the last character before one that is no ASCII, which may join it."""
_BLANK_AND_DOT_CHARACTERS = " .\u2026"
_OUTER_ELLIPSIS_PATTERN = re.compile(r"^(?:\.{3}|…)\s*|\s*(?:\.{3}|…)$")
_WHITE_SPACE_PATTERN = re.compile(r"\s+")
_REPEATED_BLANKS_PATTERN = re.compile("  +")
_ESCAPE_BY_CONTROL_CHARACTER = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""The control characters that JSON makes of \\beta, \\frac, \\nu, \\rho and \\text, with what was meant by them."""
_LATEX_COMMAND_PATTERN = re.compile(r"\\[bfnrt](?=[A-Za-z])")
_SWALLOWED_COMMAND_PATTERN = re.compile(r"[\b\f\n\r\t](?=[A-Za-z])")
_ESCAPE_REPLACEMENT = "  "  # as long as the two characters that it replaces, so that offsets stay
_UNFOLDED_DECOMPOSITION_TAGS = ("<super>", "<sub>", "<fraction>", "<circle>")
"""Compatibility forms that are not folded, since that would change the meaning: x² would become x2."""


class Passage(NamedTuple):
    """A passage of a text: `original[start:end] == text`, with offsets in characters."""

    start: int
    end: int
    text: str


class SearchableText:
    """A text in which quotations are searched; it is folded once, and each search for support is cached.

    In a conversation a passage is part of one turn: nobody wrote the words of two messages, nor their headers.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded, self._starts = _fold_with_offsets(text)
        self._support_cache: dict[str, Passage | None] = {}

    def find(self, quotation: str) -> Passage | None:
        """Return the first passage that equals the quotation in folded form; None if there is none.

        A passage begins and ends at whole letters with their accents, and is never blank.
        """
        folded_quotation = _fold_quotation(self._restore_backslashes(quotation) or quotation)
        return next(self._find_quoted_passages(folded_quotation), None)

    def find_whole_word_matches(self, quotation: str) -> Iterator[Passage]:
        """Yield, in order, the passages that equal the quotation and begin and end where words and numbers do."""
        return self._find_quoted_passages(_fold_quotation(quotation), in_words=True)

    def find_support(self, quotation: str) -> Passage | None:
        """Return the first passage that can support a verdict, because it is too long to occur by chance; else None.

        It has at least eight letters or digits (a Chinese or Japanese one counts as four) or is a whole line of the
        text, and begins and ends between words. Dots before and after the quotation, for omitted text, are ignored.
        Announcements of an answer, filler lines and parts of such lines support nothing.
        """
        if quotation not in self._support_cache:
            inner = _OUTER_ELLIPSIS_PATTERN.sub("", quotation.strip())
            quotation_with_backslashes = self._restore_backslashes(
                quotation
            ) or self._restore_backslashes(quotation.strip(_BLANK_AND_DOT_CHARACTERS))
            attempts = dict.fromkeys((quotation, inner, quotation_with_backslashes or ""))
            passages = filter(None, map(self._find_candidate_passage, attempts))
            self._support_cache[quotation] = next(passages, None)
        return self._support_cache[quotation]

    def _restore_backslashes(self, quotation: str) -> str | None:
        """Return the words of the text from which JSON made a quotation with control characters; None without any.

        Each of these may also be a real line break or tab, so that commands and control characters are both searched as
        white space; the text has the right ones.
        """
        if not (self._has_latex_commands and _SWALLOWED_COMMAND_PATTERN.search(quotation)):
            return None
        first = _ESCAPE_BY_CONTROL_CHARACTER.get(quotation.lstrip(" ")[:1], "")
        folded_quotation = _fold_quotation(quotation.replace("\b", " "))
        for passage in self._without_latex_commands._find_quoted_passages(folded_quotation):
            start = passage.start - len(first)
            if start >= 0 and self.text.startswith(first, start):
                return self.text[start : passage.end]
        return None

    @cached_property
    def _has_latex_commands(self) -> bool:
        return _LATEX_COMMAND_PATTERN.search(self.text) is not None

    @cached_property
    def _without_latex_commands(self) -> "SearchableText":
        return SearchableText(_LATEX_COMMAND_PATTERN.sub(_ESCAPE_REPLACEMENT, self.text))

    def _find_candidate_passage(self, quotation: str) -> Passage | None:
        folded_quotation = _fold_quotation(quotation)
        weight = 0
        for letter in filter(str.isalnum, folded_quotation):
            weight += 4 if unicodedata.east_asian_width(letter) == "W" else 1
            if weight >= _MIN_QUOTATION_WEIGHT:
                return next(
                    self._find_quoted_passages(folded_quotation, in_words=True, meaningful=True),
                    None,
                )
        if weight == 0:  # a line of signs alone
            return None
        line = self._short_line_by_text.get(folded_quotation)
        return None if line is None or self.is_filler(line) else line

    @cached_property
    def _short_line_by_text(self) -> dict[str, Passage]:
        """Return lines too short to support a verdict by their letters, by folded text; the first of equal ones."""
        lines: dict[str, Passage] = {}
        turn_ranges = [(0, len(self.text))]
        if isinstance(self.text, RenderedText):
            turn_ranges = [(turn.start, turn.end) for turn in self.text.turns]
        for start, end in turn_ranges:
            for line in self.text[start:end].splitlines(keepends=True):
                if len(line) <= _MAX_SHORT_LINE_LENGTH:
                    words = line.strip()
                    folded_words, _ = _fold_with_offsets(words)
                    first = start + len(line) - len(line.lstrip())
                    lines.setdefault(folded_words, Passage(first, first + len(words), words))
                start += len(line)
        return lines

    def _find_quoted_passages(
        self, folded_quotation: str, *, in_words: bool = False, meaningful: bool = False
    ) -> Iterator[Passage]:
        """Yield the passages that equal the quotation; the search ends after many that cut a letter or word."""
        if not folded_quotation:
            return
        rejected_match_count = 0
        start = -1
        while (start := self._folded.find(folded_quotation, start + 1)) >= 0:
            end = start + len(folded_quotation)
            passage = self._passage(start, end)
            if in_words and (self._is_index_within_word(start) or self._is_index_within_word(end)):
                passage = None
            if passage is not None and not (meaningful and self.is_filler(passage)):
                yield passage
                continue
            rejected_match_count += 1
            if (
                rejected_match_count == _MAX_REJECTED_MATCHES
                and len(folded_quotation) >= _MIN_QUOTATION_WEIGHT
            ):
                return

    def _is_index_within_word(self, index: int) -> bool:
        """Return whether a word or number continues across an index of the folded text.

        Letters and digits are one word, also with a hyphen, an underscore or an apostrophe between them, unless a word
        of three letters or more follows the apostrophe (`l'hôtel`). Digits are one number with a point, comma, colon,
        slash, underscore, apostrophe or fixed space between them, and with the sign before it; a range, such as 7-9, is
        two. Dashes are folded to hyphens, so that the original character tells them apart.
        """
        text = self._folded
        if not 0 < index < len(text):
            return False
        before = text[index - 1]
        after = text[index]
        if is_word_letter(before) and is_word_letter(after):
            return True
        if after.isdigit():
            begins_decimal_fraction = before == "." and (index == 1 or text[index - 2].isspace())
            if (
                before.isdigit()
                or begins_decimal_fraction
                or self._original_character_at(index - 1) in _NUMBER_SIGNS
            ):
                return True
        return self._is_joining_character(index) or (
            self._is_joining_character(index - 1) and not _begins_after_elision(text, index)
        )

    def _is_joining_character(self, index: int) -> bool:
        text = self._folded
        if not 0 < index < len(text) - 1:
            return False
        mark = text[index]
        left_character = text[index - 1]
        right_character = text[index + 1]
        if left_character.isdigit() and right_character.isdigit():
            if mark in _NUMBER_JOINING_CHARACTERS:
                return True
            group = text[index + 1 : index + 1 + _THOUSANDS_GROUP_DIGITS]
            is_digit_group = len(group) == _THOUSANDS_GROUP_DIGITS and group.isdigit()
            return is_digit_group and self._original_character_at(index) in _DIGIT_GROUP_SPACES
        are_word_letters = is_word_letter(left_character) and is_word_letter(right_character)
        if mark not in _WORD_JOINING_CHARACTERS or not are_word_letters:
            return False
        return mark != "-" or self._original_character_at(index) in _HYPHEN_CHARACTERS

    def _original_character_at(self, index: int) -> str:
        return self.text[self._starts[index]]

    def _passage(self, start: int, end: int) -> Passage | None:
        """Return the original characters of a part of the folded text.

        None if one of them is only partly included, or if they are not of one turn.
        """
        first = self._starts[start]
        if start > 0 and self._starts[start - 1] == first:
            return None
        stop = len(self.text)
        if end < len(self._starts):
            stop = self._starts[end]
            if stop == self._starts[end - 1]:
                return None
        if (
            isinstance(self.text, RenderedText)
            and self.text.find_enclosing_turn(first, stop) is None
        ):
            return None
        return Passage(first, stop, self.text[first:stop])

    def is_filler(self, passage: Passage) -> bool:
        """Return whether a passage, or the lines that contain it as far as they matter, announce an answer alone."""
        if _is_filler(passage.text):
            return True
        text_before = self.text[max(0, passage.start - _MAX_FILLER_LENGTH) : passage.start]
        text_after = self.text[passage.end : passage.end + _MAX_FILLER_LENGTH]
        _, _, line_start = text_before.rpartition("\n")
        line_end, _, _ = text_after.partition("\n")
        return _is_filler(f"{line_start}{passage.text}{line_end}")


@lru_cache(maxsize=1024)
def _is_filler(words: str) -> bool:
    return len(words) <= _MAX_FILLER_LENGTH and is_empty_talk(fold_text(words))


# Verdicts on one response fold it once. Few long texts are kept, and one thread at a time folds one.
_cached_short_text = lru_cache(maxsize=1024)(SearchableText)
_cached_long_text = lru_cache(maxsize=16)(SearchableText)
_folding_lock = Lock()


def to_searchable_text(text: str) -> SearchableText:
    """Return a text in which quotations can be searched; it is folded once and kept for other verdicts on it."""
    if len(text) < LONG_TEXT_LENGTH:
        return _cached_short_text(text)
    with _folding_lock:
        return _cached_long_text(text)


async def to_searchable_text_async(text: str) -> SearchableText:
    """Return the same as `to_searchable_text`; a long text is folded in a thread, so that the event loop is not
    blocked."""
    return await search_off_loop(lambda: to_searchable_text(text), len(text))


async def search_off_loop(search: Callable[[], T], letters: int) -> T:
    """Call a function that searches texts of `letters` characters in total; in a thread if there are many."""
    return await asyncio.to_thread(search) if letters >= LONG_TEXT_LENGTH else search()


def _fold_quotation(quotation: str) -> str:
    return _fold_with_offsets(quotation)[0].strip()


def _fold_with_offsets(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in compatible forms with folded white space, and the original index of each of its characters."""
    if text.isascii():
        line = text.translate(_PLAIN_PUNCTUATION_TABLE)
        if line.isprintable() and "  " not in line:  # faster than patterns
            return line, range(len(line))
    text_builder = _FoldedTextBuilder()
    next_unfolded_index = 0
    for run in _PLAIN_ASCII_PATTERN.finditer(text):
        _fold_clusters(text, next_unfolded_index, run.start(), text_builder)
        _fold_plain_run(run[0].translate(_PLAIN_PUNCTUATION_TABLE), run.start(), text_builder)
        next_unfolded_index = run.end()
    _fold_clusters(text, next_unfolded_index, len(text), text_builder)
    return text_builder.join(), text_builder.offsets


class _OriginalOffsets(Sequence[int]):
    """The original place of each character of a folded text, stored only where it is not one after that before it.

    One number a character would take four times the memory of an English text.
    """

    def __init__(self) -> None:
        self.length = 0
        self._run_starts = array("I")
        self._origins = array("I")
        self._shift: int | None = None

    def append_run(self, count: int, origin: int) -> None:
        """Add characters whose original places are consecutive, from `origin` on."""
        if origin - self.length != self._shift:
            self._shift = origin - self.length
            self._run_starts.append(self.length)
            self._origins.append(origin)
        self.length += count

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < self.length:
            raise IndexError(index)
        run = bisect_right(self._run_starts, index) - 1
        return self._origins[run] + index - self._run_starts[run]


class _FoldedTextBuilder:
    """A folded text in the making, with its offsets."""

    def __init__(self) -> None:
        self.offsets = _OriginalOffsets()
        # A list of letters would take eight bytes for each of them.
        self._text = StringIO(newline="")
        self._ends_with_space = False

    def add(self, piece: str, origin: int, *, has_consecutive_offsets: bool = True) -> None:
        """Add characters; those of a cluster are all at one original place, so that none can be quoted alone."""
        if self._ends_with_space and piece[:1] == " ":
            piece = piece[1:]
            origin += has_consecutive_offsets
        if not piece:
            return
        self._text.write(piece)
        self._ends_with_space = piece[-1] == " "
        if has_consecutive_offsets:
            self.offsets.append_run(len(piece), origin)
        else:
            for _ in piece:
                self.offsets.append_run(1, origin)

    def join(self) -> str:
        return self._text.getvalue()


def _fold_plain_run(text: str, origin: int, text_builder: _FoldedTextBuilder) -> None:
    """Add a run of printable ASCII, in which several spaces become one."""
    next_unfolded_index = 0
    for blanks_match in _REPEATED_BLANKS_PATTERN.finditer(text):
        text_builder.add(
            text[next_unfolded_index : blanks_match.start() + 1], origin + next_unfolded_index
        )
        next_unfolded_index = blanks_match.end()
    text_builder.add(text[next_unfolded_index:], origin + next_unfolded_index)


def _fold_clusters(text: str, start: int, end: int, text_builder: _FoldedTextBuilder) -> None:
    """Add the compatible forms of the parts that normalise by themselves: a character with what joins it."""
    while start < end:
        stop = start + 1
        while (
            stop < end
            and stop - start <= _MAX_MARKS_PER_LETTER
            and _is_combining_letter(text[stop])
        ):
            stop += 1  # marks and jamo
        text_builder.add(
            _to_compatible_form(text[start:stop]), start, has_consecutive_offsets=False
        )
        start = stop


@lru_cache(maxsize=1 << 14)
def _is_combining_letter(letter: str) -> bool:
    if letter.isascii():
        return False
    first = unicodedata.normalize("NFKC", letter)[:1]
    marks = unicodedata.combining(first) != 0 or unicodedata.category(first) in ("Mn", "Mc")
    return marks or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=1 << 14)
def _to_compatible_form(cluster: str) -> str:
    """Return the NFKC form except for `_UNFOLDED_DECOMPOSITION_TAGS`, with white space as one space, no invisible
    characters."""
    plain_punctuation_text = cluster.translate(_PLAIN_PUNCTUATION_TABLE)
    normalized_text = unicodedata.normalize(
        "NFC", "".join(map(_decompose_letter, plain_punctuation_text))
    )
    return remove_invisible(_WHITE_SPACE_PATTERN.sub(" ", normalized_text))


def _decompose_letter(letter: str) -> str:
    """Return the compatible characters of a letter; a superscript, fraction or circled digit is kept."""
    codes = unicodedata.decomposition(letter).split()
    if not codes or codes[0] in _UNFOLDED_DECOMPOSITION_TAGS:
        return letter
    if codes[0].startswith("<"):  # the kind of the form
        codes = codes[1:]
    return "".join(_decompose_letter(chr(int(code, 16))) for code in codes)
