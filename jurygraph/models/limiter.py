"""Rate limiter: requests wait until the provider's limits allow them, and none is rejected."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf

from jurygraph.models.faults import deadline_at
from jurygraph.models.retries import MAX_WAIT

log = logging.getLogger(__name__)

BURST = 2.0  # seconds' worth of a rate limit that may be used at once; a single request always may
HOLD = 0.25  # seconds of pause after a provider throttles without a `Retry-After`
_LOG_THRESHOLD = 10.0  # seconds: log a hold that ends this much later than the last one logged, once per burst


@dataclass(slots=True, eq=False)
class LimiterTurn:
    """Permission to send one request. `number` is its position in the order of sending, `tokens` its charge."""

    number: int
    tokens: int


class Limiter:
    """Grant turns in the order of the requests, within the limits on concurrency and on rates per minute.

    At most `concurrency` turns run at once: half as many after the provider has throttled, then one more with each full
    round of successes. As in TCP, replies to requests sent before the last halving are ignored: one burst of refusals
    halves once. The rate limits refill steadily and allow bursts of two seconds' worth. May be created anywhere, but
    used in one event loop at a time.
    """

    def __init__(
        self, concurrency: int, requests_per_minute: float | None = None, tokens_per_minute: float | None = None
    ) -> None:
        self._window = concurrency
        self._max_window = concurrency
        self._first_counted = 0
        self._successes = 0
        self._requests = _RateLimit(requests_per_minute)
        self._tokens = _RateLimit(tokens_per_minute)
        self._held_until = -inf
        self._logged_until = -inf
        self._granted = 0
        self._enter(None)

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin in an event loop; turns of an earlier loop ended with it."""
        self._loop = loop
        self._running: set[LimiterTurn] = set()
        self._entrance = asyncio.Lock()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, tokens: int, until: float | None = None) -> AsyncIterator[LimiterTurn]:
        """Wait for a turn to send a request of about this many tokens, and hold it while the context is open.

        Raises `Fault` of kind `deadline` if there is none before `until`, a time of the running loop.
        """
        if self._loop is not asyncio.get_running_loop():
            self._enter(asyncio.get_running_loop())
        async with deadline_at(until), self._entrance:  # one waits, the others in order behind it: no request starves
            while (time := self._time_for(tokens)) - _now() > 1e-9:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(None if time == inf else time):
                        await self._changed.wait()
        turn = LimiterTurn(self._granted, tokens)  # nothing is awaited since the last look: nobody else took it
        self._granted += 1
        self._running.add(turn)
        self._requests.charge(1)
        self._tokens.charge(tokens)
        try:
            yield turn
        finally:
            self._running.discard(turn)
            self._changed.set()

    def _time_for(self, tokens: int) -> float:
        """Return the time from which a turn may start, infinity while as many run as may."""
        if len(self._running) >= self._window:
            return inf
        return max(self._held_until, self._requests.time_for(1), self._tokens.time_for(tokens))

    def charge_tokens(self, turn: LimiterTurn, tokens: int) -> None:
        """Charge a turn the tokens that its request used, in place of those reserved."""
        self._tokens.charge(tokens - turn.tokens)
        turn.tokens = tokens
        self._changed.set()

    def report_throttled(self, turn: LimiterTurn, retry_after: float | None = None) -> None:
        """Report a 429: grant no turn for `retry_after` seconds, and then fewer at once.

        If the provider asks for more than `MAX_WAIT`, there is no hold: each request gets the error and fails. Call it
        while the turn is open, else another request is sent before the hold.
        """
        seconds = 0.0
        if turn.number >= self._first_counted:
            self._window = max(1, self._window // 2)
            self._first_counted = self._granted
            self._successes = 0
            seconds = HOLD  # a burst of refusals is held once
        if retry_after is not None and retry_after <= MAX_WAIT:
            seconds = retry_after
        until = _now() + seconds
        self._held_until = max(self._held_until, until)
        if min(seconds, until - self._logged_until) > _LOG_THRESHOLD:
            self._logged_until = until
            log.warning("pausing for %.0f s: rate limited by the provider (429)", seconds)

    def report_success(self, turn: LimiterTurn) -> None:
        """Report a successful reply."""
        self._successes += turn.number >= self._first_counted
        if self._successes >= self._window < self._max_window:
            self._window += 1
            self._successes = 0
            self._changed.set()


class _RateLimit:
    """A rate limit per minute that refills steadily: a token bucket, stored as the time at which it is full again.

    A request waits until its amount is available, but for at most a full bucket: then it is sent, and later requests
    wait until its debt is paid. So a request of more tokens than a whole minute allows is sent too, instead of waiting
    forever.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_per_unit = 0.0 if per_minute is None else 60.0 / per_minute
        self._full_at = -inf

    def time_for(self, amount: int) -> float:
        """Return the time from which this amount may be charged."""
        return self._full_at - max(0.0, BURST - amount * self._seconds_per_unit)

    def charge(self, amount: int) -> None:
        """Charge an amount; a negative amount is a refund."""
        self._full_at = max(self._full_at, _now()) + amount * self._seconds_per_unit


def _now() -> float:
    return asyncio.get_running_loop().time()
