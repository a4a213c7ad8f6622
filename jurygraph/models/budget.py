"""Costs of requests, and limits of a run on cost and calls.

Costs are in US dollars; an unknown cost is None, never 0. Limits are reserved before a request is sent, so that those
in flight cannot exceed them.
"""

import asyncio
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Self

from pydantic import JsonValue

from jurygraph.errors import ConfigError
from jurygraph.models.faults import Fault, deadline_at
from jurygraph.schema import Price as Price

TEMPLATE_TOKENS = 16  # most tokens that a chat template adds to a message: its role and the markers around it
_MILLION = 1_000_000
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"})
_COPIES = frozenset({"n", "best_of"})  # parameters by which a server generates several replies, and bills all of them


def price_of(model: str, user_prices: Mapping[str, Price]) -> Price | None:
    """Return the user's price of a model, by its name or that without the provider (`openai/…`)."""
    return user_prices.get(model) or user_prices.get(model.partition("/")[2])


def cost(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the cost of a reply; None if its price or a number of tokens is unknown. What is free costs 0 anyway."""
    if price is not None and price.input == price.output == 0.0:
        return 0.0
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (price.input * tokens_in + price.output * tokens_out) / _MILLION


def highest_cost(price: Price | None, prompt_bytes: int, messages: int, max_tokens: int) -> float | None:
    """Return the most that a request may cost, before it is sent; None if the price is unknown.

    A token has at least one byte of UTF-8, and a message at most `TEMPLATE_TOKENS` more than its text. `prompt_bytes`
    counts everything that the model reads: the texts of the messages, and a schema if the provider puts it before them.
    """
    return cost(price, prompt_bytes + TEMPLATE_TOKENS * messages, max_tokens)


def reply_limit(parameters: Mapping[str, JsonValue], usual: int) -> int:
    """Return the most tokens that a request with these parameters may be billed for its reply.

    The largest limit counts wherever it is set (in `extra_body` too), times the number of replies. `usual` is the
    default if none is set.
    """
    numbers: list[tuple[str, int]] = []
    pending: list[JsonValue] = [dict(parameters)]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            numbers += [(name, inner) for name, inner in value.items() if isinstance(inner, int)]
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    limit = max((number for name, number in numbers if name in _LIMITS), default=usual)
    return limit * math.prod(max(1, number) for name, number in numbers if name in _COPIES)


class Budget:
    """Limits of a run, in US dollars and calls, and the amounts spent. None means no limit.

    Reserve the maximum cost before every attempt, retries included; then settle its actual cost, or release it if it
    was not sent. Sums are exact.

        with await budget.reserve_when_free(most) as reservation:
            reply = await send()
            reservation.settle(cost)

    As long as no bill exceeds its reservation, `spent` never exceeds `max_cost`. The first bill that does stops all
    sending, since no later reservation could be trusted. So `spent` exceeds `max_cost` by at most the amount by which
    the bills of that request and of those in flight exceed their reservations.

    `calls` counts the requests sent. Of them, `unpriced` are not in `spent`, because neither their cost nor a bound of
    it was known. `exhausted` is True once a reservation was refused. For use in one event loop.
    """

    def __init__(self, max_cost: float | None = None, max_calls: int | None = None) -> None:
        """Set the limits. Raises `ConfigError` for one that is negative or not a finite number."""
        for name, limit in (("--max-cost", max_cost), ("--max-calls", max_calls)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ConfigError(f"{name}: {limit} is not a valid limit; give a number that is not negative")
        self.calls = 0
        self.unpriced = 0
        self.exhausted = False
        self._max_cost = None if max_cost is None else _to_fraction(max_cost)
        self._max_calls = max_calls
        self._spent = Fraction()
        self._reserved = Fraction()
        self._in_flight = 0
        self._overrun: str | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def spent(self) -> float:
        """Total in US dollars; an attempt of unknown cost counts as its reservation."""
        return float(self._spent)

    def stop(self) -> None:
        """Refuse all further calls; those in flight may end."""
        self._max_calls = 0

    def reserve(self, cost: float | None) -> "Reservation":
        """Reserve a call and its maximum cost, if known. Raises `Fault` of kind `budget` if a limit may be exceeded."""
        most = None if cost is None else _to_fraction(cost)
        refusal = self._refusal_reason(most)
        if refusal is not None:
            self.exhausted = True
            raise Fault("budget", refusal)
        self._in_flight += 1
        self._reserved += most or 0
        return Reservation(self, most)

    async def reserve_when_free(self, cost: float | None, until: float | None = None) -> "Reservation":
        """Reserve as `reserve` does, but wait while requests in flight may free enough: most cost less than that.

        Raises `Fault` of kind `deadline` if it still waits at `until`, a time of the running loop.
        """
        while self._can_fit_later(cost):
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            async with deadline_at(until):
                await freed
        return self.reserve(cost)

    def _can_fit_later(self, cost: float | None) -> bool:
        """Return True if only the reservations in flight leave too little."""
        if self._max_cost is None or cost is None or self._overrun is not None or self._has_no_call_left():
            return False
        return self._spent + _to_fraction(cost) <= self._max_cost < self._spent + self._reserved + _to_fraction(cost)

    def _has_no_call_left(self) -> bool:
        return self._max_calls is not None and self.calls + self._in_flight >= self._max_calls

    def _refusal_reason(self, most: Fraction | None) -> str | None:
        """Return the reason why a request may not be sent, None if it may."""
        if self._has_no_call_left():
            usage = f"{self.calls} sent, {self._in_flight} in flight"
            limit = "1 call" if self._max_calls == 1 else f"{self._max_calls} calls"
            return f"the limit of {limit} is reached ({usage}); raise --max-calls to go on"
        if self._max_cost is None:
            return None
        limit = f"the limit of {_format_dollars(self._max_cost)}"
        spent = f"{_format_dollars(self._spent)} spent"
        if self._overrun is not None:
            hint = "raise calls.max_tokens to all that a reply may take, hidden reasoning too, or check calls.prices"
            return f"{limit} cannot be held: {self._overrun} ({spent}); {hint}"
        if most is None:
            hint = "state it under `calls.prices` in the config, or leave --max-cost out"
            return f"{limit} cannot be held, as the price of the model is unknown; {hint}"
        if self._spent + self._reserved + most <= self._max_cost:
            return None
        usage = f"{spent}, {_format_dollars(self._reserved)} reserved for requests in flight"
        excess = f"{usage}, and this one may cost {_format_dollars(most)}"
        return f"{limit} might be passed: {excess}; raise --max-cost to go on"

    def _end(self, most: Fraction | None, is_sent: bool, cost: Fraction | None = None) -> None:
        """End a reservation; all sending stops if the bill of a request that was sent exceeds it."""
        self._in_flight -= 1
        self._reserved -= most or 0
        if is_sent:
            self.calls += 1
            self.unpriced += cost is None
            self._spent += cost or 0
            if cost is not None and most is not None and cost > most:
                bill = f"a request was billed {_format_dollars(cost)}"
                self._overrun = f"{bill}, and at most {_format_dollars(most)} was reserved for it"
        waiting = self._waiting
        self._waiting = []
        for freed in waiting:
            if not freed.done():
                freed.set_result(None)


class Reservation:
    """The amount reserved for one attempt, until it is settled or released, once.

    As a context manager, it charges an attempt that ends with neither as if it was sent, since it may have been.
    """

    def __init__(self, budget: Budget, most: Fraction | None) -> None:
        self._budget = budget
        self._most = most
        self._ended = False

    def settle(self, cost: float | None) -> None:
        """Charge the cost of an attempt that was sent, or the reservation if the cost is unknown, and free the rest.

        A failed attempt may have a cost too; pass 0 only where no provider bills it (429, no connection).
        """
        self._end(is_sent=True, cost=self._most if cost is None else _to_fraction(cost))

    def settle_unbounded(self) -> None:
        """Charge the reservation of an attempt whose bill may exceed it by any amount, and stop all sending."""
        if self._most:  # else the attempt was free, or there is no limit to hold
            bound = f"the {_format_dollars(self._most)} reserved for it"
            self._budget._overrun = f"a reply was too large to read, so its bill may exceed {bound}"
        self.settle(None)

    def release(self) -> None:
        """Free the whole reservation of an attempt that was not sent."""
        self._end(is_sent=False)

    def _end(self, *, is_sent: bool, cost: Fraction | None = None) -> None:
        if self._ended:
            raise RuntimeError("a reservation is settled or released once")
        self._ended = True
        self._budget._end(self._most, is_sent, cost)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            self.settle(None)


def _to_fraction(dollars: float) -> Fraction:
    """Return the decimal number as it is written, so that three times 0.1 is 0.3."""
    if not 0 <= dollars < math.inf:
        raise ValueError(f"a cost is a finite number that is not negative, not {dollars}")
    return Fraction(Decimal(str(dollars)))  # several times as fast as `Fraction` on the text


def _format_dollars(amount: Fraction) -> str:
    return f"${float(amount):.6g}"
