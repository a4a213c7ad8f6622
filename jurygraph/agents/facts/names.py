"""Compare names, and find the name that was nearly written. A near miss is reported and never counts as a match."""

import json
import math
import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Indel

MAX_COMPARED = 5000
"""The largest number of names compared when looking for a similar one."""

_MIN_SIMILARITY = 0.8
_LONGEST_NAME, _LONGEST_NUMBER = 10_000, 300
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
    """Normalise a short text. Cached, since the names of a task's tables recur often."""
    return " ".join(unicodedata.normalize("NFKC", " ".join(text.split())).split())


def to_text(value: Any) -> str:
    """Return a value as text: whole numbers without a fraction, lists and objects as JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value if isinstance(value, str) else "" if value is None else str(value)


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
    whole, rest = (match["whole"] or "0").replace(",", ""), match["rest"]
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
    claimed_number, table_number = parse_number(claimed), parse_number(value)
    if claimed_number is None or table_number is None:
        return not is_missing(value) and normalise(claimed) == normalise(value)
    return claimed_number == table_number or (
        within > 0 and abs(float(claimed_number) - float(table_number)) <= within * abs(float(table_number))
    )


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name of the first 5,000, by the alphabet among equals; None if none is similar enough."""
    known = sorted(set(names))[:MAX_COMPARED]
    match = process.extractOne(name, known, scorer=Indel.normalized_similarity, score_cutoff=_MIN_SIMILARITY)
    return None if match is None else str(match[0])
