"""Values as numbers and as texts: when two are the same, and which is the greater."""

import re
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from jurygraph.agents.facts.names import normalised, number, shown

_SIGN = "[$€£¥₹]"
_CODE = "[A-Z]{3}"
_LONGEST = 320
"""Characters of the longest text that is looked at for a number."""

_MONEY = re.compile(
    rf"(?P<sign>{_SIGN})?\s*(?:(?P<code>{_CODE})\s)?(?P<number>[^\s$€£¥₹A-Z]+)\s*(?P<after>{_SIGN}|{_CODE})?"
)


class Amount(NamedTuple):
    """A number, and the currency that was written with it."""

    number: float
    currency: str


def amount(value: Any) -> Amount | None:
    """A value as a number: 12, "12", "1,200", "$1,200", "1,200 EUR"; None where it is none, or none that is finite."""
    if isinstance(value, str):
        return _written(value) if len(value) <= _LONGEST else None
    return _amount(value, None)


@lru_cache(maxsize=1 << 14)
def _written(text: str) -> Amount | None:
    return _amount(text, _MONEY.fullmatch(text.strip()))


def _amount(value: Any, found: re.Match[str] | None) -> Amount | None:
    try:
        size = number(value if found is None else found["number"])
        if size is None:
            return None
        return Amount(float(size), "" if found is None else found["sign"] or found["code"] or found["after"] or "")
    except OverflowError:  # a whole number that no float can hold
        return None


def moment(text: str) -> tuple[int | None, ...] | None:
    """A time (9:30, 21:05:10, 9:30 PM), a date (2022-3-1) or both, as something that can be compared; else None.

    What it has of year, month, day, hour, minute and second stands in its place, so that like is compared with like.
    """
    found = _MOMENT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None or not (found["day"] or found["hour"]):
        return None
    year, month, day, hour, minute, second = (
        None if found[part] is None else int(found[part])
        for part in ("year", "month", "day", "hour", "minute", "second")
    )
    if hour is not None:
        second = second or 0
        if found["half"]:
            hour = hour % 12 + 12 * (found["half"] in "pP")
    return year, month, day, hour, minute, second


_MOMENT = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2}))?(?:(?(day)[ T]|)"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?(?:\s?(?P<half>[aApP])\.?[mM]\.?)?)?",
    re.ASCII,
)


def key(value: Any) -> Hashable:
    """What values have in common that are the same to the currency: an amount, a time or date, or a normalised text."""
    return amount(value) or (moment(value) if isinstance(value, str) else None) or normalised(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same: numbers by value, anything else by normalised text."""
    if isinstance(one, str) and isinstance(other, str) and len(one) + len(other) <= _LONGEST:
        return _same_texts(one, other)
    return _same(one, other)


def is_one_of(value: Any, others: Iterable[Any]) -> bool:
    """Whether a value is the same as one of the others."""
    for other in others:  # noqa: SIM110 - `any` takes twice as long, and this is most of what checks do
        if same(value, other):
            return True
    return False


@lru_cache(maxsize=1 << 14)
def _same_texts(one: str, other: str) -> bool:
    """The values of a table's rows are asked about again and again."""
    return _same(one, other)


def _same(one: Any, other: Any) -> bool:
    return compared(one, other) == 0 or key(one) == key(other)


def compared(one: Any, other: Any) -> int | None:
    """-1, 0 or 1: numbers by value, times and dates by the clock and the calendar; None where they are not alike.

    A number without a currency compares with any; amounts in two currencies do not.
    """
    first, second = amount(one), amount(other)
    if first is not None and second is not None:
        mixed = first.currency and second.currency and first.currency != second.currency
        return None if mixed else (first.number > second.number) - (first.number < second.number)
    moments = [moment(text) for text in (one, other) if isinstance(text, str)]
    if len(moments) == 2 and moments[0] and moments[1] and _parts(moments[0]) == _parts(moments[1]):
        return (_told(moments[0]) > _told(moments[1])) - (_told(moments[0]) < _told(moments[1]))
    return None


def _parts(stated: Sequence[int | None]) -> list[bool]:
    return [part is not None for part in stated]


def _told(stated: Sequence[int | None]) -> list[int]:
    return [part for part in stated if part is not None]


def parts(value: Any, separator: str | None) -> Sequence[Any]:
    """The parts of a value that holds a list."""
    if isinstance(value, list | tuple):
        return value
    return [part.strip() for part in shown(value).split(separator)] if separator else [value]
