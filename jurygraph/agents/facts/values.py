"""Names and values of claims, tables and checks as texts, numbers and moments: equality, order, similarity.

A near miss of a name is reported and never counts as a match.
"""

import json
import math
import re
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import Indel

MAX_COMPARED = 5000
"""The largest number of names compared when looking for a similar one."""

_MIN_SIMILARITY = 0.8
_LONGEST_NAME = 10_000
_LONGEST_NUMBER = 300
_SIGN = "[$€£¥₹]"
_CODE = "[A-Z]{3}"
_MAX_CHARACTERS = 320
"""The longest text, in characters, that is searched for a number or moment."""

_MONEY = re.compile(
    rf"(?P<sign>{_SIGN})?\s*(?:(?P<code>{_CODE})\s)?(?P<number>[^\s$€£¥₹A-Z]+)\s*(?P<after>{_SIGN}|{_CODE})?"
)
_NUMERAL = re.compile(
    r"(?P<sign>[-+]?)\$?\s?(?P<whole>\d{1,3}(?:,\d{3})+|0|[1-9]\d*)?(?P<rest>(?:\.\d+)?(?:e[-+]\d+)?)", re.ASCII
)


def normalise(value: Any) -> str:
    """Return a name or value with Unicode's compatibility forms (NFKC) and white space folded; case-sensitive.

    Beyond 10,000 characters, which no name has, only white space is folded: NFKC can take time quadratic in the length.
    """
    text = to_text(value)
    return _normalise_short(text) if len(text) <= _LONGEST_NAME else " ".join(text.split())


@lru_cache(maxsize=1 << 14)
def _normalise_short(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", " ".join(text.split())).split())


def to_text(value: Any) -> str:
    """Return a value as text: whole numbers without a fraction, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "" if value is None else str(value)


def is_missing(value: Any) -> bool:
    """Return true if a table has no value here: None, an empty text or NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def parse_number(value: Any) -> int | float | None:
    """Return a number, or the number that a text such as 12, 1,200 or $12.50 spells; None if it is none.

    A text with a needless leading zero, such as 007, is a code and no number.
    """
    if isinstance(value, int | float):
        return value if not isinstance(value, bool) and abs(value) <= sys.float_info.max else None
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    match = _NUMERAL.fullmatch(value.strip())
    if match is None or not (match["whole"] or match["rest"].startswith(".")):
        return None
    whole = (match["whole"] or "0").replace(",", "")
    rest = match["rest"]
    size = float(whole + rest) if rest else int(whole)
    return None if size == math.inf else -size if match["sign"] == "-" else size


def number_or_value(value: Any) -> Any:
    """Return the number that a value is or spells, else the value itself."""
    parsed = parse_number(value)
    return value if parsed is None else parsed


def value_sort_key(value: Any) -> tuple[int, float, str]:
    """Return a sort key of a value: numbers before words before empty values."""
    parsed = parse_number(value)
    if parsed is not None:
        return 0, parsed, ""
    return (1, 0, value) if isinstance(value, str) and value else (2, 0, "")


def values_agree(claimed: str, value: Any, within: float = 0.0) -> bool:
    """Return true if a claimed value equals a table's: numbers by value, anything else by normalised text.

    A number may differ by the share `within` of the table's number.
    """
    number = parse_number(claimed)
    expected = parse_number(value)
    if number is None or expected is None:
        return not is_missing(value) and normalise(claimed) == normalise(value)
    return number == expected or (within > 0 and abs(float(number) - float(expected)) <= within * abs(float(expected)))


class Amount(NamedTuple):
    """A number, and the currency written with it; empty without one."""

    number: float
    currency: str


def parse_amount(value: Any) -> Amount | None:
    """Return a value as a finite number: 12, "12", "1,200", "$1,200", "1,200 EUR"; None if it is none."""
    if isinstance(value, str):
        return _parse_amount(value) if len(value) <= _MAX_CHARACTERS else None
    return _build_amount(value, "")


@lru_cache(maxsize=1 << 14)
def _parse_amount(text: str) -> Amount | None:
    match = _MONEY.fullmatch(text.strip())
    if match is None:
        return _build_amount(text, "")
    return _build_amount(match["number"], match["sign"] or match["code"] or match["after"] or "")


def _build_amount(value: Any, currency: str) -> Amount | None:
    number = parse_number(value)
    try:
        return None if number is None else Amount(float(number), currency)
    except OverflowError:  # a whole number that no float can hold
        return None


def parse_moment(text: str) -> tuple[int | None, ...] | None:
    """Return a time (9:30, 21:05:10, 9:30 PM), a date (2022-3-1) or both in comparable form; None if it is none.

    The result has year, month, day, hour, minute and second, each None if absent, so that only like moments compare.
    """
    match = _MOMENT.fullmatch(text.strip()) if len(text) <= _MAX_CHARACTERS else None
    if match is None or not (match["day"] or match["hour"]):
        return None
    parts = (match[part] for part in ("year", "month", "day", "hour", "minute", "second"))
    year, month, day, hour, minute, second = (None if part is None else int(part) for part in parts)
    if hour is not None:
        second = second or 0
        if match["half"]:
            hour = hour % 12 + 12 * (match["half"] in "pP")
    return year, month, day, hour, minute, second


_MOMENT = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2}))?(?:(?(day)[ T]|)"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?(?:\s?(?P<half>[aApP])\.?[mM]\.?)?)?",
    re.ASCII,
)


def equality_key(value: Any) -> Hashable:
    """Return a key that is equal for values that are equal, currency included: amount, moment or normalised text."""
    return parse_amount(value) or (parse_moment(value) if isinstance(value, str) else None) or normalise(value)


def are_equal(first: Any, second: Any) -> bool:
    """Return true if two values are equal: numbers by value, anything else by normalised text."""
    if isinstance(first, str) and isinstance(second, str) and len(first) + len(second) <= _MAX_CHARACTERS:
        return _same_texts(first, second)
    return _is_same(first, second)


def is_one_of(value: Any, others: Iterable[Any]) -> bool:
    return any(are_equal(value, other) for other in others)


def _is_same(first: Any, second: Any) -> bool:
    return compare(first, second) == 0 or equality_key(first) == equality_key(second)


_same_texts = lru_cache(maxsize=1 << 14)(_is_same)
"""Cached, since the values of a table's rows recur often."""


def compare(value: Any, other: Any) -> int | None:
    """Return -1, 0 or 1: numbers compare by value, moments by time; None if the two are not comparable.

    A number without a currency compares with any; amounts in two currencies do not.
    """
    first = parse_amount(value)
    second = parse_amount(other)
    if first is not None and second is not None:
        currencies_differ = first.currency and second.currency and first.currency != second.currency
        return None if currencies_differ else (first.number > second.number) - (first.number < second.number)
    if not isinstance(value, str) or not isinstance(other, str):
        return None
    moment = parse_moment(value)
    other_moment = parse_moment(other)
    if moment is None or other_moment is None:
        return None
    pairs = [*zip(moment, other_moment, strict=True)]
    if any((part is None) != (other_part is None) for part, other_part in pairs):
        return None
    return next(((a > b) - (a < b) for a, b in pairs if a is not None and b is not None and a != b), 0)


def split_list(value: Any, separator: str | None) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    return [part.strip() for part in to_text(value).split(separator)] if separator else [value]


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name of the first 5,000, by the alphabet among equals; None if none is similar enough."""
    known = sorted(set(names))[:MAX_COMPARED]
    match = process.extractOne(name, known, scorer=Indel.normalized_similarity, score_cutoff=_MIN_SIMILARITY)
    return None if match is None else str(match[0])
