"""A limiter under which requests wait until the provider's limits allow them; none is ever turned away."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from jurygraph.errors import ConfigError
from jurygraph.models.faults import wait_for_turn
from jurygraph.models.retry_after import LONGEST

log = logging.getLogger(__name__)

BURST = 2.0
"""Seconds' worth of a budget that may go at once; one request always may."""
HOLD = 0.25
"""Seconds for which a provider is left alone that throttles without saying for how long."""

_TOLD = 10.0  # seconds: a hold that is longer by so much than the user knows is told


@dataclass(slots=True, eq=False)
class Turn:
    """Leave to send one request. `number` is its place in the order of sending, `tokens` what it is charged."""

    number: int
    tokens: int
    given: "asyncio.Future[None]"


class Limiter:
    """Gives turns in the order in which they are asked for, as many at once and a minute as the limits allow.

    At most `concurrency` turns run at once: fewer after the provider has throttled, then one more with each full
    round of successes. The budgets fill steadily and hold two seconds' worth. Made anywhere, used in one event loop
    at a time. Raises `ConfigError` where a limit allows nothing.
    """

    def __init__(
        self, concurrency: int, requests_per_minute: float | None = None, tokens_per_minute: float | None = None
    ) -> None:
        self._window = _Window(concurrency)
        self._requests = _Budget("requests_per_minute", requests_per_minute)
        self._tokens = _Budget("tokens_per_minute", tokens_per_minute)
        self._held_until = self._told_until = -math.inf
        self._given = 0
        self._running: set[Turn] = set()
        self._waiting: deque[Turn] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def turn(self, tokens: int, until: float | None = None) -> AsyncIterator[Turn]:
        """Wait for a turn to send a request of about so many tokens, and have it while the context is open.

        Raises `Fault` of kind `deadline` where there is none until then, a time of the running loop.
        """
        turn = Turn(0, tokens, self._home().create_future())
        self._waiting.append(turn)
        self._give()
        await wait_for_turn(turn.given, until, partial(self._withdraw, turn))  # goes straight on where it was given
        try:
            yield turn
        finally:
            self._running.discard(turn)
            self._give()

    def used(self, turn: Turn, tokens: int) -> None:
        """Charge a turn the tokens that its request really used, in place of those that were reserved."""
        self._tokens.charge(_now(), tokens - turn.tokens)
        turn.tokens = tokens
        self._give()

    def throttled(self, turn: Turn, retry_after: float | None = None) -> None:
        """The provider sent 429: give no turn for `retry_after` seconds, and then fewer at once.

        Where it asks for more than `LONGEST` nobody is held for it: each question finds out for itself, and fails. To
        be told while the turn is still open, else another request goes out before the hold.
        """
        halved = self._window.throttled(turn.number, self._given)
        if retry_after is None or retry_after > LONGEST:
            self._hold(HOLD if halved else 0.0)  # the hold for the burst is in force already
        else:
            self._hold(retry_after)

    def served(self, turn: Turn) -> None:
        """The provider answered."""
        self._window.served(turn.number)
        self._give()

    def _hold(self, seconds: float) -> None:
        """Give no turn for so long. A long hold is told once, however many requests of a burst ask for it."""
        until = _now() + seconds
        self._held_until = max(self._held_until, until)
        if min(seconds, until - self._told_until) > _TOLD:
            self._told_until = until
            log.warning("no request is sent for %.0f s: the provider refused one (429) and asks for it", seconds)

    def _home(self) -> asyncio.AbstractEventLoop:
        """The running loop. Whoever still waits or runs in a loop before this one is gone with it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._timer = loop, None
            self._running.clear()
            self._waiting.clear()
        return loop

    def _give(self) -> None:
        """Give turns to those whose time has come; nobody overtakes the first, so a large request never starves."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and len(self._running) < self._window.size:
            first = self._waiting[0]
            if not first.given.cancelled():
                time = max(self._held_until, self._requests.time_for(1), self._tokens.time_for(first.tokens))
                if time > _now():
                    self._timer = asyncio.get_running_loop().call_at(time, self._give)
                    return
                self._begin(first)
            self._waiting.popleft()

    def _begin(self, turn: Turn) -> None:
        self._charge(1, turn.tokens)
        turn.number = self._given
        self._given += 1
        self._running.add(turn)
        turn.given.set_result(None)

    def _withdraw(self, turn: Turn) -> None:
        """Whoever asked for the turn was cancelled, before it was given or just after: nothing was sent."""
        if turn in self._running:
            self._running.remove(turn)
            self._charge(-1, -turn.tokens)
        self._give()

    def _charge(self, requests: int, tokens: int) -> None:
        now = _now()
        self._requests.charge(now, requests)
        self._tokens.charge(now, tokens)


class _Budget:
    """So much a minute, filling steadily: a token bucket, kept as the time at which it is full again.

    What is asked for must be there, but of more than a bucket holds only a full bucket: it goes, and those after it
    wait until it is paid for. So a request of more tokens than a whole minute allows goes too, where it would
    otherwise wait for ever.
    """

    def __init__(self, name: str, per_minute: float | None) -> None:
        if per_minute is not None and not per_minute > 0:
            raise ConfigError(f"{name} is {per_minute}, under which nothing could ever be sent; it is more than 0")
        self._seconds_each = 0.0 if per_minute is None else 60.0 / per_minute
        self._full_at = -math.inf

    def time_for(self, amount: int) -> float:
        """From when on so much may be charged."""
        return self._full_at - max(0.0, BURST - amount * self._seconds_each)

    def charge(self, now: float, amount: int) -> None:
        """Take so much; give it back where the amount is negative."""
        self._full_at = max(self._full_at, now) + amount * self._seconds_each


class _Window:
    """How many turns may run at once: halved when the provider throttles, one more after each full round of successes.

    As in TCP, what was sent before the last halving counts for nothing: one burst of refusals halves once.
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ConfigError(f"concurrency is {most}, under which nothing could ever be sent; it is at least 1")
        self.size = self._most = most
        self._first = 0
        self._served = 0

    def throttled(self, number: int, following: int) -> bool:
        """Whether this halves: the turn is no older than the last halving. `following` is the next turn's number."""
        if number < self._first:
            return False
        self.size, self._first, self._served = max(1, self.size // 2), following, 0
        return True

    def served(self, number: int) -> None:
        """A turn's request was answered."""
        if number >= self._first:
            self._served += 1
        if self._served >= self.size and self.size < self._most:
            self.size, self._served = self.size + 1, 0


def _now() -> float:
    return asyncio.get_running_loop().time()
