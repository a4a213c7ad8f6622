"""Retries, in this layer alone: a backend makes one attempt per call, and the clients' own retries are off.

The time after which a provider asks to retry is parsed in every notation in use.
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from jurygraph.models.faults import RETRYABLE, Fault

T = TypeVar("T")

MAX_WAIT = 600.0  # most seconds to wait on a provider's request; a request that would wait longer fails instead
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LIMITED = ("requests", "tokens")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Most attempts, at least 1, and the waits between them.

    The first wait is drawn from 0 to `first` seconds; the range doubles with each attempt, up to `longest` seconds.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 60.0


async def call_with_retries(once: Callable[[], Awaitable[T]], policy: RetryPolicy, until: float | None = None) -> T:
    """Call `once` with retries, and return its result.

    A `Fault` is retried if a retry may succeed, no sooner than its `retry_after`, and not at all if that is more than
    `MAX_WAIT`: then its message includes this. `until` is a time of the running loop's clock: a wait that would last
    until then is not started. Raises the last exception of `once`, or `Fault` of kind `deadline`.
    """
    jitter = wait_random_exponential(multiplier=policy.first, max=policy.longest)

    def wait(state: RetryCallState) -> float:
        # Jitter is added to the provider's wait, so that a burst does not return as a burst.
        last = state.outcome.exception() if state.outcome else None
        return _requested_wait(last) + jitter(state)

    def check_time(state: RetryCallState) -> None:
        last = state.outcome and state.outcome.exception()
        ends = asyncio.get_running_loop().time() + (state.next_action.sleep if state.next_action else 0.0)
        if isinstance(last, Fault) and until is not None and ends >= until:
            raise Fault("deadline", f"no time is left to ask again after {last.kind}: {last}") from last

    async def attempt() -> T:  # tenacity only awaits an `async def`
        return await once()

    loop = AsyncRetrying(
        retry=retry_if_exception(_should_retry),
        wait=wait,
        stop=stop_after_attempt(policy.attempts),
        before_sleep=check_time,
        sleep=asyncio.sleep,
        reraise=True,
    )
    try:
        return await loop(attempt)
    except Fault as fault:
        requested = _requested_wait(fault)
        if fault.kind not in RETRYABLE or requested <= MAX_WAIT:
            raise
        problem = f"the provider asks for a wait of {requested:.0f} s, more than the limit of {MAX_WAIT:.0f} s"
        raise Fault(fault.kind, f"{problem}: {fault}", fault.retry_after) from fault.__cause__


def _should_retry(error: BaseException) -> bool:
    """Return True if another attempt may succeed, and may start soon enough."""
    return isinstance(error, Fault) and error.kind in RETRYABLE and _requested_wait(error) <= MAX_WAIT


def _requested_wait(error: BaseException | None) -> float:
    """Return the seconds of the provider's `Retry-After`, 0 without one."""
    return (isinstance(error, Fault) and error.retry_after) or 0.0


def retry_after(headers: Mapping[str, str], now: datetime, *, throttled: bool = True) -> float | None:
    """Return the seconds to wait, at least 0; None if the headers do not have them in a known form.

    In this order: `retry-after-ms`; `Retry-After` as seconds or as a date, which is 0 once it is past; and, if the
    request was `throttled`, the later of OpenAI's resets (`6m0s`) of the limits that are used up, requests or tokens.
    Other replies include those resets too, without meaning a wait. A negative number counts as none. `now` has a time
    zone.
    """
    values = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _parse_number(values.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = values.get("retry-after", "")
    wait = _parse_number(value)
    if wait is None:
        wait = _seconds_until(value, now)
    if wait is None and throttled:  # of limits that are used up, or whose remainder is not reported
        used_up = (kind for kind in _LIMITED if not _parse_number(values.get(f"x-ratelimit-remaining-{kind}", "")))
        resets = (values.get(f"x-ratelimit-reset-{kind}", "") for kind in used_up)
        parts = (_PART.findall(reset) for reset in resets if _DURATION.fullmatch(reset))
        waits = (math.fsum(float(number) * _SECONDS[unit] for number, unit in each) for each in parts)
        wait = max(waits, default=None)
    return wait


def _parse_number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _seconds_until(text: str, now: datetime) -> float | None:
    """Return the seconds to a date in any of the three formats of RFC 9110; a date without a zone is in UTC."""
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None
