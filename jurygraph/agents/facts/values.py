"""Names and values of claims, tables and checks as texts, numbers and moments: equality and order."""

import json
import math
import re
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

_LONGEST_NAME = 10_000
_LONGEST_NUMBER = 300
_LONGEST_MOMENT = 30
_NUMERAL = re.compile(
    r"(?P<sign>[-+]?)\$?\s?(?P<whole>\d{1,3}(?:,\d{3})+|0|[1-9]\d*)?(?P<rest>(?:\.\d+)?(?:e[-+]\d+)?)", re.ASCII
)
_MOMENTS = {"time": ("%H:%M", "%H:%M:%S", "%I:%M %p"), "date": ("%Y-%m-%d",), "both": ("%Y-%m-%d %H:%M",)}


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


@lru_cache(maxsize=1 << 14)
def parse_moment(text: str) -> tuple[str, datetime] | None:
    """Return a time (9:30, 21:05:10, 9:30 PM), a date (2022-03-01) or both, and which; None if it is none."""
    for kind, forms in _MOMENTS.items():
        for form in forms if len(text) <= _LONGEST_MOMENT else ():
            try:
                return kind, datetime.strptime(text.strip(), form)
            except ValueError:
                continue
    return None


def equality_key(value: Any) -> Hashable:
    """Return a key that is equal for values that are equal: number, moment or normalised text."""
    if isinstance(value, str):
        return _key_of_text(value) if len(value) <= _LONGEST_NUMBER else normalise(value)
    number = parse_number(value)
    return normalise(value) if number is None else number


@lru_cache(maxsize=1 << 14)
def _key_of_text(text: str) -> Hashable:
    """Return the key of a text. Cached, since the values of a table's rows recur often."""
    number = parse_number(text)
    return number if number is not None else parse_moment(text) or normalise(text)


def are_equal(first: Any, second: Any) -> bool:
    """Return true if two values are equal: numbers and moments by value, anything else by normalised text."""
    return equality_key(first) == equality_key(second)


def is_one_of(value: Any, others: Iterable[Any]) -> bool:
    return any(are_equal(value, other) for other in others)


def compare(value: Any, other: Any) -> int | None:
    """Return -1, 0 or 1: numbers compare by value, moments of one kind by time; None if the two do not compare."""
    first = parse_number(value)
    second = parse_number(other)
    if first is not None and second is not None:
        return (first > second) - (first < second)
    moments = [parse_moment(each) for each in (value, other) if isinstance(each, str)]
    if len(moments) < 2 or moments[0] is None or moments[1] is None or moments[0][0] != moments[1][0]:
        return None
    return (moments[0] > moments[1]) - (moments[0] < moments[1])


def split_list(value: Any, separator: str | None) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    return [part.strip() for part in to_text(value).split(separator)] if separator else [value]
