"""Word and number boundaries, so that no quotation cuts a word or number: `day trip` is not part of `3-day trip`."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache

_HYPHENS = "-\u2010\u2011\ufe63\uff0d"
_IN_NUMBERS = ".,:/_'"
_IN_WORDS = "-_'"
_SIGNS = "-+\u2212\ufe63\uff0d"
_FIXED_SPACES = "\u00a0\u2009\u202f"
"""Spaces that group digits, as in 1 250; an ordinary space may separate two numbers."""
_DIGITS_IN_GROUP = 3
_MAX_ENDING_LENGTH = 2
"""Maximum length of an ending after an apostrophe, as in isn't and they're; a word is longer, as in l'hôtel."""

_UNSPACED = (
    *((0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF)),
    *((0x1B00, 0x1B7F), (0xA980, 0xA9FF), (0xAA60, 0xAA7F), (0xFF61, 0xFFDC)),
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
    return not any(first <= ord(char) <= last for first, last in _UNSPACED)


def is_within_word(text: str, place: int, original_at: Callable[[int], str]) -> bool:
    """Return whether a word or number continues across a place of a folded text.

    Letters and digits are one word, also with a hyphen, an underscore or an apostrophe between them, unless a word of
    three letters or more follows the apostrophe (`l'hôtel`). Digits are one number with a point, comma, colon, slash,
    underscore, apostrophe or fixed space between them, and with the sign before it; a range, such as 7-9, is two.
    `original_at` returns the original character at a place of the folded text, since dashes are folded to hyphens.
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if is_word_letter(before) and is_word_letter(after):
        return True
    if after.isdigit() and (before.isdigit() or _is_sign(text, place - 1, original_at)):
        return True
    return _is_joiner(text, place, original_at) or (
        _is_joiner(text, place - 1, original_at) and not _has_elision(text, place)
    )


def _is_sign(text: str, place: int, written: Callable[[int], str]) -> bool:
    """Return whether the character at a place, before a digit, is a sign or the point of a decimal."""
    starts_decimal = text[place] == "." and (place == 0 or text[place - 1].isspace())
    return starts_decimal or written(place) in _SIGNS


def _is_joiner(text: str, place: int, written: Callable[[int], str]) -> bool:
    """Return whether the character at a place joins its neighbours to one word or number."""
    if not 0 < place < len(text) - 1:
        return False
    mark, left, right = text[place], text[place - 1], text[place + 1]
    if left.isdigit() and right.isdigit():
        group = text[place + 1 : place + 1 + _DIGITS_IN_GROUP]
        is_group = len(group) == _DIGITS_IN_GROUP and group.isdigit()
        return mark in _IN_NUMBERS or (is_group and written(place) in _FIXED_SPACES)
    if mark not in _IN_WORDS or not (is_word_letter(left) and is_word_letter(right)):
        return False
    return mark != "-" or written(place) in _HYPHENS


def _has_elision(text: str, place: int) -> bool:
    """Return whether a word begins here after an apostrophe, as in l'hôtel; endings such as in isn't do not count."""
    beginning = text[place : place + _MAX_ENDING_LENGTH + 1]
    is_word = not beginning[:1].isdigit() and all(map(is_word_letter, beginning))
    return text[place - 1] == "'" and len(beginning) > _MAX_ENDING_LENGTH and is_word
