"""Rate limiter: requests wait until the provider's limits allow them, and none is rejected."""

import asyncio
import logging
import math
from collections import deque
from contextlib import AbstractAsyncContextManager
from typing import Self

from jurygraph.models.faults import wait_for_turn
from jurygraph.models.retries import MAX_WAIT

log = logging.getLogger(__name__)

BURST = 2.0  # seconds' worth of a rate limit that may be used at once; a single request always may
HOLD = 0.25  # seconds of pause after a provider throttles without a `Retry-After`
_LOG_THRESHOLD = 10.0  # seconds: log a hold that ends this much later than the last one logged, once per burst


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
        self._window = self._max_window = concurrency
        self._first_counted = self._successes = 0
        self._requests = _RateLimit(requests_per_minute)
        self._tokens = _RateLimit(tokens_per_minute)
        self._held_until = self._logged_until = -math.inf
        self._granted = 0
        self._running: set[LimiterTurn] = set()
        self._waiting: deque[tuple[LimiterTurn, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def turn(self, tokens: int, until: float | None = None) -> "AbstractAsyncContextManager[LimiterTurn]":
        """Wait for a turn to send a request of about this many tokens, and hold it while the context is open.

        Raises `Fault` of kind `deadline` if there is none before `until`, a time of the running loop.
        """
        return LimiterTurn(self, tokens, until)

    def _request(self, turn: "LimiterTurn") -> "asyncio.Future[None]":
        """Enqueue a turn; return a future that is done once it is granted, which may be at once."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # turns of an earlier loop ended with it
            self._loop = loop
            self._timer = None
            self._running.clear()
            self._waiting.clear()
        granted = loop.create_future()
        self._waiting.append((turn, granted))
        self._grant_turns()
        return granted

    def _end(self, turn: "LimiterTurn") -> None:
        """End a turn that was granted."""
        self._running.discard(turn)
        self._grant_turns()

    def charge_tokens(self, turn: "LimiterTurn", tokens: int) -> None:
        """Charge a turn the tokens that its request used, in place of those reserved."""
        self._tokens.charge(_now(), tokens - turn.tokens)
        turn.tokens = tokens
        self._grant_turns()

    def report_throttled(self, turn: "LimiterTurn", retry_after: float | None = None) -> None:
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

    def report_success(self, turn: "LimiterTurn") -> None:
        """Report a successful reply."""
        self._successes += turn.number >= self._first_counted
        if self._successes >= self._window < self._max_window:
            self._window = self._window + 1
            self._successes = 0
        self._grant_turns()

    def _grant_turns(self) -> None:
        """Grant turns that are due, strictly in order, so that a large request never starves."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and len(self._running) < self._window:
            first, granted = self._waiting[0]
            if not granted.cancelled():
                time = max(self._held_until, self._requests.time_for(1), self._tokens.time_for(first.tokens))
                if time > _now():
                    self._timer = asyncio.get_running_loop().call_at(time, self._grant_turns)
                    return
                self._charge(1, first.tokens)
                first.number = self._granted
                self._granted += 1
                self._running.add(first)
                granted.set_result(None)
            self._waiting.popleft()

    def _withdraw(self, turn: "LimiterTurn") -> None:
        """Withdraw a turn that was cancelled before or just after it was granted; nothing was sent."""
        if turn in self._running:
            self._running.remove(turn)
            self._charge(-1, -turn.tokens)
        self._grant_turns()

    def _charge(self, requests: int, tokens: int) -> None:
        now = _now()
        self._requests.charge(now, requests)
        self._tokens.charge(now, tokens)


class LimiterTurn:
    """Permission to send one request. `number` is its position in the order of sending, `tokens` its charge."""

    __slots__ = ("_limiter", "_until", "number", "tokens")

    def __init__(self, limiter: Limiter, tokens: int, until: float | None) -> None:
        self._limiter = limiter
        self._until = until
        self.number = 0
        self.tokens = tokens

    async def __aenter__(self) -> Self:
        granted = self._limiter._request(self)
        if not granted.done():
            await wait_for_turn(granted, self._until, lambda: self._limiter._withdraw(self))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._limiter._end(self)


class _RateLimit:
    """A rate limit per minute that refills steadily: a token bucket, stored as the time at which it is full again.

    A request waits until its amount is available, but for at most a full bucket: then it is sent, and later requests
    wait until its debt is paid. So a request of more tokens than a whole minute allows is sent too, instead of waiting
    forever.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_per_unit = 0.0 if per_minute is None else 60.0 / per_minute
        self._full_at = -math.inf

    def time_for(self, amount: int) -> float:
        """Return the time from which this amount may be charged."""
        return self._full_at - max(0.0, BURST - amount * self._seconds_per_unit)

    def charge(self, now: float, amount: int) -> None:
        """Charge an amount; a negative amount is a refund."""
        self._full_at = max(self._full_at, now) + amount * self._seconds_per_unit


def _now() -> float:
    return asyncio.get_running_loop().time()
