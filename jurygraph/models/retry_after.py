"""Parse the time after which a provider asks to retry, in every notation in use."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_WAIT = 600.0
"""Most seconds to wait on a provider's request; a request that would wait longer fails instead."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LIMITED = ("requests", "tokens")


def retry_after(headers: Mapping[str, str], now: datetime, *, throttled: bool = True) -> float | None:
    """Return the seconds to wait, at least 0; None if the headers do not have them in a known form.

    In this order: `retry-after-ms`; `Retry-After` as seconds or as a date, which is 0 once it is past; and, if the
    request was `throttled`, the later of OpenAI's resets (`6m0s`) of the limits that are used up, requests or tokens.
    Other replies include those resets too, without meaning a wait. A negative number counts as none. `now` has a time
    zone.
    """
    values = {name.lower(): value.strip() for name, value in headers.items()}
    wait = _parse_milliseconds(values.get("retry-after-ms", ""))
    if wait is None:
        wait = _parse_seconds_or_date(values.get("retry-after", ""), now)
    if wait is None and throttled:
        wait = _seconds_to_reset(values)
    return wait


def _parse_number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _parse_milliseconds(text: str) -> float | None:
    number = _parse_number(text)
    return None if number is None else number / 1000


def _parse_seconds_or_date(text: str, now: datetime) -> float | None:
    number = _parse_number(text)
    return _seconds_until(text, now) if number is None else number


def _seconds_until(text: str, now: datetime) -> float | None:
    """Return the seconds to a date in any of the three formats of RFC 9110; a date without a zone is in UTC."""
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


def _seconds_to_reset(values: Mapping[str, str]) -> float | None:
    """Return the seconds until all limits are available again that are used up, or whose remainder is not reported."""
    used_up = (kind for kind in _LIMITED if not _parse_number(values.get(f"x-ratelimit-remaining-{kind}", "")))
    resets = (_parse_duration(values.get(f"x-ratelimit-reset-{kind}", "")) for kind in used_up)
    return max((reset for reset in resets if reset is not None), default=None)


def _parse_duration(text: str) -> float | None:
    if not _DURATION.fullmatch(text):
        return None
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
