"""When two names are the same, and which name was nearly written. A near miss is told, and never is a hit."""

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

COMPARED = 5000
"""Names that are looked at for a near one."""

_NEAR = 0.8
_LONGEST_NAME, _LONGEST_NUMBER = 10_000, 300
_NUMERAL = re.compile(
    r"(?P<sign>[-+]?)\$?\s?(?P<whole>\d{1,3}(?:,\d{3})+|0|[1-9]\d*)?(?P<rest>(?:\.\d+)?(?:e[-+]\d+)?)", re.ASCII
)


def normalised(value: Any) -> str:
    """A name or value with Unicode's compatibility forms (NFKC) and white space folded. Case counts.

    Of more than 10,000 characters, which no name has, only white space is folded: what NFKC takes can grow with the
    square of a text.
    """
    text = shown(value)
    return _short(text) if len(text) <= _LONGEST_NAME else " ".join(text.split())


@lru_cache(maxsize=1 << 14)
def _short(text: str) -> str:
    """The names of a task's tables are asked for again and again."""
    return " ".join(unicodedata.normalize("NFKC", " ".join(text.split())).split())


def shown(value: Any) -> str:
    """A value as text: whole numbers without a fraction, lists and objects as JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value if isinstance(value, str) else "" if value is None else str(value)


def missing(value: Any) -> bool:
    """Whether a table says nothing here."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> int | float | None:
    """The number that a value is, or that a text such as 12, 1,200 or $12.50 writes; None where it is none.

    What begins with a needless zero, such as 007, is a code and no number.
    """
    if isinstance(value, int | float):
        return value if not isinstance(value, bool) and abs(value) <= sys.float_info.max else None
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    found = _NUMERAL.fullmatch(value.strip())
    if found is None or not (found["whole"] or found["rest"].startswith(".")):
        return None
    whole, rest = (found["whole"] or "0").replace(",", ""), found["rest"]
    size = float(whole + rest) if rest else int(whole)
    return None if size == math.inf else -size if found["sign"] == "-" else size


def valued(value: Any) -> Any:
    """The number that a value is or writes, else the value itself."""
    found = number(value)
    return value if found is None else found


def rank(value: Any) -> tuple[int, float, str]:
    """The place of a value among others: numbers before words before nothing."""
    found = number(value)
    if found is not None:
        return 0, found, ""
    return (1, 0, value) if isinstance(value, str) and value else (2, 0, "")


def agree(claimed: str, value: Any, within: float = 0.0) -> bool:
    """Whether what is claimed is what a table says: numbers by value, anything else by normalised text.

    A number may be off by the share `within` of the table's.
    """
    said, stated = number(claimed), number(value)
    if said is None or stated is None:
        return not missing(value) and normalised(claimed) == normalised(value)
    return said == stated or (within > 0 and abs(float(said) - float(stated)) <= within * abs(float(stated)))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was nearly written, of the first 5,000 and first by the alphabet among equals; None if none is."""
    known = sorted(set(names))[:COMPARED]
    found = process.extractOne(name, known, scorer=Indel.normalized_similarity, score_cutoff=_NEAR)
    return None if found is None else str(found[0])
