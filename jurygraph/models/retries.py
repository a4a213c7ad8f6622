"""Trying again, in this one layer alone: a backend makes one attempt a call, and the clients' own retries are off."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exception,
    wait_random_exponential,
)

from jurygraph.errors import ConfigError
from jurygraph.models.faults import Fault
from jurygraph.models.retry_after import LONGEST

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is sent, and how long is waited between.

    `attempts` is the whole number of requests at most, from 1 on. The wait before the second one is drawn from 0 to
    `first` seconds; the range doubles with each attempt, up to `longest` seconds. Raises `ConfigError` where a number
    is out of its range.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigError(f"retries: attempts is {self.attempts}; it counts all requests, so it is at least 1")
        if not 0 <= self.first <= self.longest:
            raise ConfigError(f"retries: 0 <= first <= longest must hold; they are {self.first} and {self.longest} s")


async def attempted(once: Callable[[], Awaitable[T]], policy: RetryPolicy, until: float | None = None) -> tuple[T, int]:
    """What `once` gives in the end, and how often it was called.

    A `Fault` that may do better is tried again, never sooner than its `retry_after`, and not at all where that is more
    than `LONGEST`: then it says so. `until` is a time of the running loop's clock: a wait that would last until then is
    not begun. Raises what `once` raised last, or `Fault` of kind `deadline`; a `Fault` tells in `attempts` how often
    `once` was called.
    """
    try:
        return await once(), 1  # most go well at once, and need nobody who retries
    except Fault as fault:
        if not _again(fault) or policy.attempts == 1:
            raise _last(fault, 1) from fault.__cause__
        first: Fault | None = fault
    made = 1

    async def attempt() -> T:  # tenacity awaits nothing but an `async def`
        nonlocal made, first
        if first is not None:
            fault, first = first, None
            raise fault
        made += 1
        return await once()

    try:
        result: T = await _retrying(policy, math.inf if until is None else until)(attempt)
    except Fault as fault:
        raise _last(fault, made) from fault.__cause__
    return result, made


def _retrying(policy: RetryPolicy, until: float) -> AsyncRetrying:
    """Tenacity's loop for one question; it has state, so no two questions share one."""
    return AsyncRetrying(
        retry=retry_if_exception(_again),
        # Jitter comes on top of what the provider asked for, so that a burst does not come back as a burst.
        wait=wait_exception(_asked) + wait_random_exponential(multiplier=policy.first, max=policy.longest),
        stop=stop_after_attempt(policy.attempts),
        before_sleep=lambda state: _require_time(state, until),
        sleep=asyncio.sleep,
        reraise=True,
    )


def _again(error: BaseException) -> bool:
    """Whether another attempt may do better, and comes soon enough."""
    return isinstance(error, Fault) and error.again and _asked(error) <= LONGEST


def _last(fault: Fault, attempts: int) -> Fault:
    """What a question ends with, and where nobody waits as long as the provider asks, that it does."""
    if fault.again and _asked(fault) > LONGEST:
        asked = f"the provider asks to be left alone for {_asked(fault):.0f} s, and {LONGEST:.0f} s are waited at most"
        fault = Fault(fault.kind, f"{asked}: {fault}", fault.retry_after)
    fault.attempts = attempts
    return fault


def _asked(error: BaseException) -> float:
    """The seconds that the provider asked to be left alone."""
    return (isinstance(error, Fault) and error.retry_after) or 0.0


def _require_time(state: RetryCallState, until: float) -> None:
    """Raise `Fault` of kind `deadline` where the wait that comes now would last too long."""
    last = state.outcome and state.outcome.exception()
    if isinstance(last, Fault) and asyncio.get_running_loop().time() + state.upcoming_sleep >= until:
        raise Fault("deadline", f"no time is left to ask again after {last.kind}: {last}") from last
