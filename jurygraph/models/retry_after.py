"""When a provider says to come again, in every notation that is in use."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 600.0
"""Seconds that are waited at most because a provider asks for it; a question that would wait longer fails instead."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LIMITED = ("requests", "tokens")


def retry_after(headers: Mapping[str, str], now: datetime, *, throttled: bool = True) -> float | None:
    """The seconds to wait, from 0 on; None where the headers do not say it in a way that can be read.

    In this order: `retry-after-ms`; `Retry-After` as seconds or as a date, which is 0 once it is past; and, where the
    request was `throttled`, the later of OpenAI's resets (`6m0s`) of what is used up, requests or tokens. Other replies
    tell those resets too, and mean nothing by it. A negative number is none. `now` has a time zone.
    """
    given = {name.lower(): value.strip() for name, value in headers.items()}
    wait = _milliseconds(given.get("retry-after-ms", ""))
    if wait is None:
        wait = _seconds_or_date(given.get("retry-after", ""), now)
    if wait is None and throttled:
        wait = _reset(given)
    return wait


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _milliseconds(text: str) -> float | None:
    number = _number(text)
    return None if number is None else number / 1000


def _seconds_or_date(text: str, now: datetime) -> float | None:
    number = _number(text)
    return _until(text, now) if number is None else number


def _until(text: str, now: datetime) -> float | None:
    """The seconds to a date in any of the three formats of RFC 9110; one without a zone is in UTC."""
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


def _reset(given: Mapping[str, str]) -> float | None:
    """The seconds until there is some again of all that is used up, or of which nobody says how much is left."""
    used_up = (kind for kind in _LIMITED if not _number(given.get(f"x-ratelimit-remaining-{kind}", "")))
    resets = (_duration(given.get(f"x-ratelimit-reset-{kind}", "")) for kind in used_up)
    return max((reset for reset in resets if reset is not None), default=None)


def _duration(text: str) -> float | None:
    if not _DURATION.fullmatch(text):
        return None
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
