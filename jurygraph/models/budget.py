"""The limits of a run on cost and calls: held before a request is sent, so that none in flight can pass them."""

import asyncio
import math
from fractions import Fraction
from types import TracebackType
from typing import Self

from jurygraph.errors import ConfigError
from jurygraph.models.faults import Fault


class Budget:
    """What a run may spend, in US dollars and calls, and what it has spent. None is no limit.

    Reserve before every attempt, a retry too, the most that it may cost; then settle what it did cost, or release it
    when it was not sent. Sums are exact.

        with await budget.reserve_when_free(most) as reservation:
            reply = await send()
            reservation.settle(cost)

    As long as no bill exceeds its reservation, `spent` never exceeds `max_cost`. The first bill that does ends the
    sending, since no later reservation could be trusted. So `spent` exceeds `max_cost` by at most what that request
    and those in flight beside it were billed above their reservations.

    `calls` were sent. Of them `unpriced` are not in `spent`, as neither their cost nor a bound of it was known.
    `exhausted` says that something was refused. For one event loop.
    """

    def __init__(self, max_cost: float | None = None, max_calls: int | None = None) -> None:
        """Raises `ConfigError` at a limit that is negative or no finite number."""
        for name, limit in (("--max-cost", max_cost), ("--max-calls", max_calls)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ConfigError(f"{name}: {limit} is no limit; give a number that is not negative")
        self.calls = 0
        self.unpriced = 0
        self.exhausted = False
        self._max_cost = None if max_cost is None else _exact(max_cost)
        self._max_calls = max_calls
        self._spent = Fraction()
        self._reserved = Fraction()
        self._in_flight = 0
        self._overrun: str | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def spent(self) -> float:
        """In US dollars; an attempt whose cost is unknown counts as what was reserved for it."""
        return float(self._spent)

    def reserve(self, cost: float | None) -> "Reservation":
        """Set one call and its cost aside, given the most that it may be; None where the price is unknown.

        Raises a `Fault` of kind `budget` where a limit might be passed.
        """
        most = None if cost is None else _exact(cost)
        refusal = self._refusal(most)
        if refusal is not None:
            self.exhausted = True
            raise Fault("budget", refusal)
        self._in_flight += 1
        self._reserved += most or 0
        return Reservation(self, most)

    async def reserve_when_free(self, cost: float | None) -> "Reservation":
        """As `reserve`, once requests in flight leave enough: most cost less than what is set aside for them."""
        most = None if cost is None else _exact(cost)
        while self._may_fit_later(most):
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            await freed
        return self.reserve(cost)

    def _may_fit_later(self, most: Fraction | None) -> bool:
        """Whether nothing but what is in flight stands in the way."""
        if self._max_cost is None or most is None or self._overrun is not None:
            return False
        if self._max_calls is not None and self.calls + self._in_flight >= self._max_calls:
            return False
        return self._spent + most <= self._max_cost < self._spent + self._reserved + most

    def _refusal(self, most: Fraction | None) -> str | None:
        """Why a request may not be sent."""
        if self._max_calls is not None and self.calls + self._in_flight >= self._max_calls:
            state = f"{self.calls} sent, {self._in_flight} in flight"
            return f"the limit of {self._max_calls} calls is reached ({state}); raise --max-calls to go on"
        if self._max_cost is None:
            return None
        limit = f"the limit of {_dollars(self._max_cost)}"
        if self._overrun is not None:
            how = "raise calls.max_tokens to all that a reply may take, hidden reasoning too, or check calls.prices"
            return f"{limit} cannot be held: {self._overrun} ({_dollars(self._spent)} spent); {how}"
        if most is None:
            how = "state it under `calls.prices` in the config, or leave --max-cost out"
            return f"{limit} cannot be held, as the price of the model is unknown; {how}"
        if self._spent + self._reserved + most <= self._max_cost:
            return None
        state = f"{_dollars(self._spent)} spent, {_dollars(self._reserved)} reserved for requests in flight"
        return f"{limit} might be passed: {state}, and this one may cost {_dollars(most)}; raise --max-cost to go on"

    def _free(self, most: Fraction | None) -> None:
        self._in_flight -= 1
        self._reserved -= most or 0
        waiting, self._waiting = self._waiting, []
        for freed in waiting:
            if not freed.done():
                freed.set_result(None)

    def _compare(self, bill: Fraction | None, most: Fraction | None) -> None:
        """End the sending where a bill exceeds what was reserved for it."""
        if bill is not None and most is not None and bill > most:
            self._overrun = f"a request was billed {_dollars(bill)}, and at most {_dollars(most)} was reserved for it"

    def _note_unbounded(self, most: Fraction | None) -> None:
        """End the sending after a request that cost anything and whose bill nothing bounds."""
        if most:
            self._overrun = (
                f"a reply was too large to read, so its bill may exceed the {_dollars(most)} reserved for it"
            )

    def _charge(self, cost: Fraction | None) -> None:
        self.calls += 1
        self.unpriced += cost is None
        self._spent += cost or 0


class Reservation:
    """What is set aside for one attempt, until it is settled or released, once.

    As a context manager it charges an attempt that ends without a word as if it was sent: it may well have been.
    """

    def __init__(self, budget: Budget, most: Fraction | None) -> None:
        self._budget = budget
        self._most = most
        self._ended = False

    def settle(self, cost: float | None) -> None:
        """The attempt was sent: charge what it cost, or where that is unknown what was reserved, and free the rest.

        An attempt that failed may have cost something too; give 0 only where nobody bills it (429, no connection).
        """
        charged = self._most if cost is None else _exact(cost)
        self._budget._compare(charged, self._most)
        self.release()
        self._budget._charge(charged)

    def settle_unbounded(self) -> None:
        """The attempt was sent and its bill may exceed the reservation by any amount: charge that, and send no more."""
        self._budget._note_unbounded(self._most)
        self.settle(None)

    def release(self) -> None:
        """Nothing was sent: free all of it."""
        if self._ended:
            raise RuntimeError("a reservation is settled or released once")
        self._ended = True
        self._budget._free(self._most)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._ended:
            self.settle(None)


def _exact(dollars: float) -> Fraction:
    """The decimal number as it is written: three times 0.1 is 0.3."""
    if not 0 <= dollars < math.inf:
        raise ValueError(f"a cost is a finite number that is not negative, not {dollars}")
    return Fraction(str(dollars))


def _dollars(amount: Fraction) -> str:
    return f"${float(amount):.6g}"
