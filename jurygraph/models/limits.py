"""Limits on requests: how many at once, how often again, how long to wait for a server that is down, and at what cost.

Each class may be created outside of an event loop, and used in several.
"""

import asyncio
import logging
import math
import re
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

from pydantic import JsonValue
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from jurygraph.errors import ConfigError
from jurygraph.messages import format_count
from jurygraph.models.request import (
    PROBE_ONLY_FAULT_KINDS,
    RETRYABLE_FAULT_KINDS,
    Fault,
    fault_at_deadline,
)
from jurygraph.schema import Price as Price
from jurygraph.schema.frozen_model import iter_json_values

T = TypeVar("T")
log = logging.getLogger(__name__)

# most seconds to wait on a provider's request; a request that would wait longer fails instead
MAX_RETRY_AFTER_SECONDS = 600.0

# seconds' worth of a rate limit that may be used at once; a single request always may
BURST_SECONDS = 2.0
_DUE_TOLERANCE_SECONDS = 1e-9  # seconds: a turn that is due within them is due now
THROTTLE_PAUSE_SECONDS = 0.25  # seconds of pause after a provider throttles without a `Retry-After`
# seconds: log a hold that ends this much later than the last one logged, once per burst
_HOLD_LOG_THRESHOLD_SECONDS = 10.0

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")

OUTAGE_FAULT_KINDS = frozenset({"connection", "timeout", "server", "unreadable"})
"""Faults that suggest that the server is down; a proxy may answer in its place, with an unreadable page."""

FIRST_PROBE_PAUSE_SECONDS = 0.5
MAX_PROBE_PAUSE_SECONDS = 30.0
"""Seconds before the first probe, and before a later one at most."""
_PROBE_PAUSE_SHARE = 0.25
"""Pause before a probe, as a share of the outage so far: requests wait little longer than it lasts."""
_REFUSED_PROBE_PAUSE_SECONDS = 10.0
"""Seconds between probes while the server refuses the key or the model; a run has usually ended by then."""

# most tokens that a chat template adds to a message: its role and the markers around it
MAX_TEMPLATE_TOKENS_PER_MESSAGE = 16
_MILLION = 1_000_000
TOKEN_LIMIT_PARAMETERS = frozenset(
    {"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"}
)
# parameters by which a server generates several replies, and bills all of them
_REPLY_COUNT_PARAMETERS = frozenset({"n", "best_of"})


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True, eq=False)
class RequestTurn:
    """Permission to send one request. `number` is its position in the order of sending, `tokens` its charge.

    Its outcome is reported to `limiter`. `outages` had begun when it was granted; `is_probe` is True if the server was
    away.
    """

    limiter: "RequestLimiter"
    number: int
    tokens: int
    outages: int
    is_probe: bool


class RequestLimiter:
    """Grant turns in the order of the requests: within limits on concurrency and on rates, while the server answers.

    At most `concurrency` turns run at once: half as many after the provider has throttled, then one more with each full
    round of successes. As in TCP, replies to requests sent before the last halving are ignored: one burst of refusals
    halves once. The rate limits refill steadily and allow bursts of two seconds' worth.

    `after` consecutive faults that suggest an outage begin one. Then one turn at a time is granted as a probe, after
    a quarter of the time so far and 0.5 to 30 seconds, and the other requests wait. Any answer of the server ends the
    outage, and so does a new event loop. `wait` seconds after its begin all requests that wait fail; the next that
    comes is a probe. Once the server refused the key, the model or all first requests, requests fail at once, except
    for an occasional probe. If it never answered, and there is no connection, `first` replaces `wait`: a server that
    was not started, or a wrong URL, is no outage that ends by itself. Messages call it `server`.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        after: int = 8,
        wait: float = 300.0,
        first: float = 5.0,
        server: str = "the model server",
    ) -> None:
        self._window = concurrency
        self._max_window = concurrency
        self._first_counted = 0
        self._successes = 0
        self._requests = _TokenBucket(requests_per_minute)
        self._tokens = _TokenBucket(tokens_per_minute)
        self._held_until = -inf
        self._logged_until = -inf
        self._granted = 0
        self._failures_of_outage = after
        self._longest_outage = wait
        self._longest_first_outage = min(first, wait)
        self._server = server
        self.has_answered = False
        self.outages = 0
        self._twins: WeakKeyDictionary[asyncio.AbstractEventLoop, RequestLimiter] = (
            WeakKeyDictionary()
        )
        self._choice = threading.Lock()
        self._bind_to_event_loop(None)

    def _limiter_of_running_loop(self) -> "RequestLimiter":
        """Return this limiter or, while the loop that uses it runs in another thread, a twin with the same rates.

        A turn that is granted in one loop cannot wake a request that waits in another.
        """
        loop = asyncio.get_running_loop()
        with self._choice:
            if self._loop is None or not self._loop.is_running():
                self._bind_to_event_loop(loop)
            if self._loop is loop:
                return self
            if loop not in self._twins:
                twin = self._twins[loop] = copy(self)
                twin._bind_to_event_loop(loop)
            return self._twins[loop]

    def divide_rate_limits(self, number: int) -> None:
        """Keep the rates for one of so many limiters that send to the same server; before any request."""
        self._requests.divide_rate(number)
        self._tokens.divide_rate(number)

    def _bind_to_event_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin in an event loop; turns of an earlier loop ended with it."""
        self._loop = loop
        self._running: set[RequestTurn] = set()
        self._storing: set[RequestTurn] = set()
        """Turns whose replies are not durable yet; while they are as many as may run, no other one is granted."""
        self._line = deque[
            tuple[int, asyncio.Future[RequestTurn]]
        ]()  # the tokens and turns of requests that wait
        self._timer: asyncio.TimerHandle | None = None
        self._grants_soon = False
        self._end_outage()

    def _end_outage(self) -> None:
        self._is_away = False
        self.may_be_up = False
        """Whether the server is away, but read the last request, which may be one that it never answers."""
        self._was_never_there = False
        self._failures = 0
        self._since = 0.0
        self._problem = ""
        self._refusal: Fault | None = None
        self._announced_kind: str | None = None
        self._probe_at = -inf
        self._earliest_probe = -inf
        self._gives_up_at = inf
        self._schedule_grants()

    @property
    def outage(self) -> str | None:
        """The outage that requests wait for; None without one that is looked at: nobody would see its end."""
        if self._is_away and (self._line or self._running):
            return self._describe_outage()
        return None

    @property
    def _has_given_up(self) -> bool:
        """True once the next probe is due after the limit: requests fail at once until then."""
        return self._probe_at > self._gives_up_at

    @asynccontextmanager
    async def turn(self, tokens: int, until: float | None = None) -> AsyncIterator[RequestTurn]:
        """Wait for a turn to send a request of about this many tokens, and hold it while the context is open.

        Raises `Fault` of kind `deadline` if there is none before `until`, a time of the running loop; of kind `outage`
        once the wait for the server was given up, or of the kind of the server's refusal.
        """
        limiter = self._limiter_of_running_loop()
        if limiter._has_given_up and limiter._refusal is None:
            # whoever comes after those that failed asks anew
            limiter._probe_at = max(_loop_time(), limiter._earliest_probe)
        turn = await limiter._wait_for_turn(tokens, until)
        try:
            yield turn
        finally:
            limiter._running.discard(turn)
            limiter._storing.discard(turn)
            limiter._schedule_grants()

    def release_turn(self, turn: RequestTurn) -> None:
        """Leave a turn to another request: its reply is there, and is being stored until the turn ends."""
        self._running.discard(turn)
        self._storing.add(turn)
        self._schedule_grants()

    def _start_turn(self, tokens: int) -> RequestTurn:
        turn = RequestTurn(self, self._granted, tokens, self.outages, self._is_away)
        self._granted += 1
        self._running.add(turn)
        self._requests.charge_amount(1)
        self._tokens.charge_amount(tokens)
        return turn

    async def _wait_for_turn(self, tokens: int, until: float | None) -> RequestTurn:
        """Wait until every earlier request has its turn, or has failed, and one of so many tokens is due."""
        turn_future: asyncio.Future[RequestTurn] = asyncio.get_running_loop().create_future()
        self._line.append((tokens, turn_future))
        self._schedule_grants()
        try:
            async with fault_at_deadline(until):
                return await turn_future
        except (Fault, asyncio.CancelledError):
            # granted, and not to be used
            if (
                turn_future.done()
                and not turn_future.cancelled()
                and turn_future.exception() is None
            ):
                self._running.discard(turn_future.result())
            self._schedule_grants()
            raise

    def _schedule_grants(self) -> None:
        """Have turns granted once all is noted that happens now: several replies may end or begin an outage."""
        if self._line and not self._grants_soon:
            self._grants_soon = True
            asyncio.get_running_loop().call_soon(self._grant_turns)

    def _grant_turns(self) -> None:
        """Start all turns that are due, and look again when the next one is; while all run, the end of one does so."""
        self._grants_soon = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._line:
            tokens, turn_future = self._line[0]
            if not turn_future.done():  # else its request was cancelled
                due_time = self._earliest_start(tokens)
                if due_time - _loop_time() <= _DUE_TOLERANCE_SECONDS:
                    turn_future.set_result(self._start_turn(tokens))
                elif self._has_given_up and self._probe_at - _loop_time() > _DUE_TOLERANCE_SECONDS:
                    turn_future.set_exception(self._outage_fault())
                else:
                    if due_time < inf:
                        self._timer = asyncio.get_running_loop().call_at(
                            due_time, self._grant_turns
                        )
                    return
            self._line.popleft()

    def _earliest_start(self, tokens: int) -> float:
        """Return the time from which a turn may start, infinity while as many run as may."""
        has_free_turn = len(self._running) < self._window and len(self._storing) < self._max_window
        if not has_free_turn or (self._is_away and any(turn.is_probe for turn in self._running)):
            return inf
        return max(
            self._held_until,
            self._probe_at,
            self._requests.next_charge_time(1),
            self._tokens.next_charge_time(tokens),
        )

    def charge_tokens(self, turn: RequestTurn, tokens: int) -> None:
        """Charge a turn the tokens that its request used, in place of those reserved."""
        self._tokens.charge_amount(tokens - turn.tokens)
        turn.tokens = tokens
        self._schedule_grants()

    def report_success(self, turn: RequestTurn) -> None:
        self._note_answer(turn)
        self._successes += turn.number >= self._first_counted
        if self._successes >= self._window < self._max_window:
            self._window += 1
            self._successes = 0
            self._schedule_grants()

    def report_fault(self, turn: RequestTurn, fault: Fault) -> bool:
        """Report a failed request; return True if the server is away, so that it should be sent again later.

        Call it while the turn is open, else another request is sent before the pause. Raises `Fault` of kind `outage`
        for the last probe, with which the wait is given up.
        """
        if fault.kind in PROBE_ONLY_FAULT_KINDS:
            self._refuse_requests(fault)
            return False
        if fault.kind not in OUTAGE_FAULT_KINDS:
            self._note_answer(turn)
            if fault.kind == "rate-limit":
                self._throttle(turn, fault.retry_after)
            return False
        if turn.is_probe:
            self._continue_outage(fault)
            if self._has_given_up:
                raise self._outage_fault() from fault
        elif not self._is_away and turn.outages == self.outages:
            self._count_failure(fault)
            return self._is_away and not self._has_given_up
        # else it was sent before the outage began, or is no probe: it says nothing new
        return not self._has_given_up

    def _throttle(self, turn: RequestTurn, retry_after: float | None) -> None:
        """Grant no turn for `retry_after` seconds, and then fewer at once.

        If the provider asks for more than `MAX_RETRY_AFTER_SECONDS`, there is no hold: each request gets the error and
        fails.
        """
        seconds = 0.0
        if turn.number >= self._first_counted:
            self._window = max(1, self._window // 2)
            self._first_counted = self._granted
            self._successes = 0
            seconds = THROTTLE_PAUSE_SECONDS  # a burst of refusals is held once
        if retry_after is not None and retry_after <= MAX_RETRY_AFTER_SECONDS:
            seconds = retry_after
        until = _loop_time() + seconds
        self._held_until = max(self._held_until, until)
        if min(seconds, until - self._logged_until) > _HOLD_LOG_THRESHOLD_SECONDS:
            self._logged_until = until
            log.warning("pausing for %.0f s: rate limited by %s (429)", seconds, self._server)

    def _note_answer(self, turn: RequestTurn) -> None:
        """End an outage, except by an answer to a request that was sent before the server's refusal.

        A turn that was a probe is none any more: what it sends next counts as that of any other.
        """
        self.has_answered = True
        if self._refusal is not None and not turn.is_probe:
            return
        turn.is_probe = False
        if self._announced_kind is not None:
            log.warning("%s answers again, after %.0f s", self._server, _loop_time() - self._since)
        if self._failures or self._is_away:
            self._end_outage()

    def _count_failure(self, fault: Fault) -> None:
        """Count a consecutive failure, which may begin an outage."""
        self._since = self._since if self._failures else _loop_time()
        self._failures += 1
        if self._failures >= self._failures_of_outage:
            self._is_away = True
            self._was_never_there = fault.is_unsent and not self.has_answered
            longest = self._longest_first_outage if self._was_never_there else self._longest_outage
            self._gives_up_at = _loop_time() + longest
            self.outages += 1
            self._plan_probe(fault)

    def _continue_outage(self, fault: Fault) -> None:
        had_given_up = self._has_given_up
        self._plan_probe(fault)
        if had_given_up:
            return  # that was said
        if self._has_given_up:
            log.warning("%s: requests fail until it answers", self._describe_outage())
        elif fault.kind != self._announced_kind:  # again where the cause has changed
            self._announced_kind = fault.kind
            log.warning(
                "%s: requests wait for up to %.0f s more while one at a time tries again",
                *(self._describe_outage(), self._gives_up_at - _loop_time()),
                extra={"command_hint": "; Ctrl-C stops, and the same command goes on"},
            )

    def _plan_probe(self, fault: Fault) -> None:
        """Set the time of the next probe: the last one at the limit, and none before the server's own Retry-After."""
        self._problem = str(fault)
        self.may_be_up = not fault.is_unsent
        now = _loop_time()
        pause = max(FIRST_PROBE_PAUSE_SECONDS, _PROBE_PAUSE_SHARE * (now - self._since))
        next_probe_time = now + min(pause, MAX_PROBE_PAUSE_SECONDS)
        if now < self._gives_up_at:
            next_probe_time = min(next_probe_time, self._gives_up_at)
        self._earliest_probe = now + (fault.retry_after or 0.0)
        self._probe_at = max(next_probe_time, self._earliest_probe)

    def _refuse_requests(self, fault: Fault) -> None:
        """Fail all waiting requests, and later ones until the server accepts a probe."""
        self._is_away = True
        self.may_be_up = False
        self._gives_up_at = -inf
        self._refusal = fault
        self._probe_at = _loop_time() + _REFUSED_PROBE_PAUSE_SECONDS
        self._schedule_grants()

    def _outage_fault(self) -> Fault:
        if self._refusal is not None:
            return Fault(self._refusal.kind, str(self._refusal))
        hint = "check the server; calls.outage.wait sets the maximum wait"
        if self._was_never_there:
            hint = "is it started, and is its URL right? calls.outage.first sets the maximum wait"
        return Fault("outage", f"{self._describe_outage()}; {hint}")

    def _describe_outage(self) -> str:
        return f"{self._server} has not answered for {_loop_time() - self._since:.0f} s ({self._problem})"


class _TokenBucket:
    """A token bucket, stored as the time at which it is full again.

    A request waits until its amount is available, but for at most a full bucket: then it is sent, and later requests
    wait until its debt is paid. So a request of more tokens than a whole minute allows is sent, too.
    """

    def __init__(self, amount_per_minute: float | None) -> None:
        self._seconds_per_unit = 0.0 if amount_per_minute is None else 60.0 / amount_per_minute
        self._full_at = -inf

    def divide_rate(self, number: int) -> None:
        self._seconds_per_unit *= number

    def next_charge_time(self, amount: int) -> float:
        """Return the time from which this amount may be charged."""
        return self._full_at - max(0.0, BURST_SECONDS - amount * self._seconds_per_unit)

    def charge_amount(self, amount: int) -> None:
        """Charge an amount; a negative amount is a refund."""
        if self._seconds_per_unit:  # without a limit it is always full
            self._full_at = max(self._full_at, _loop_time()) + amount * self._seconds_per_unit


class RetryPolicy(NamedTuple):
    """Most attempts, at least 1, and the waits between them.

    The first wait is drawn from 0 to `first` seconds; the range doubles with each attempt, up to `longest` seconds.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 60.0


async def call_with_retries(
    once: Callable[[], Awaitable[T]], policy: RetryPolicy, until: float | None = None
) -> T:
    """Call `once` with retries, and return its result. Nothing else retries: a backend makes one attempt per call.

    A `Fault` is retried if a retry may succeed, no sooner than its `retry_after`, and not at all if that is more than
    `MAX_RETRY_AFTER_SECONDS`: then its message includes this. `until` is a time of the running loop's clock: a wait
    that would last until then is not started. Raises the last exception of `once`, or `Fault` of kind `deadline`.
    """
    random_wait_strategy = wait_random_exponential(multiplier=policy.first, max=policy.longest)

    def wait(state: RetryCallState) -> float:
        # Jitter is added to the provider's wait, so that a burst does not return as a burst.
        return _requested_wait(_last_error(state)) + random_wait_strategy(state)

    def check_time_left(state: RetryCallState) -> None:
        last = _last_error(state)
        ends = _loop_time() + (state.next_action.sleep if state.next_action else 0.0)
        if isinstance(last, Fault) and until is not None and ends >= until:
            raise Fault(
                "deadline", f"no time is left to ask again after {last.kind}: {last}"
            ) from last

    loop = AsyncRetrying(
        retry=retry_if_exception(_should_retry),
        wait=wait,
        stop=stop_after_attempt(policy.attempts),
        before_sleep=check_time_left,
        sleep=asyncio.sleep,
        reraise=True,
    )
    try:
        return await loop(once)
    except Fault as fault:
        requested = _requested_wait(fault)
        if fault.kind not in RETRYABLE_FAULT_KINDS or requested <= MAX_RETRY_AFTER_SECONDS:
            raise
        raise Fault(
            fault.kind,
            f"the provider asks for a wait of {requested:.0f} s, more than the limit of "
            f"{MAX_RETRY_AFTER_SECONDS:.0f} s: {fault}",
            fault.retry_after,
        ) from fault.__cause__


def _last_error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _should_retry(error: BaseException) -> bool:
    """Return True if another attempt may succeed, and may start soon enough."""
    return (
        isinstance(error, Fault)
        and error.kind in RETRYABLE_FAULT_KINDS
        and _requested_wait(error) <= MAX_RETRY_AFTER_SECONDS
    )


def _requested_wait(error: BaseException | None) -> float:
    """Return the seconds of the provider's `Retry-After`, 0 without one."""
    return (isinstance(error, Fault) and error.retry_after) or 0.0


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait, at least 0; None if the headers do not have them in a known form.

    In this order: `retry-after-ms`, and `Retry-After` as seconds or as a date, which is 0 once it is past. A negative
    number counts as none. `now` has a time zone.
    """
    values = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = values.get("retry-after-ms", "")
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    value = values.get("retry-after", "")
    if _NUMBER.fullmatch(value):
        return float(value)
    try:  # any of the three formats of RFC 9110; a date without a zone is in UTC
        date = parsedate_to_datetime(value)
        return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


def find_user_price(model: str, user_prices: Mapping[str, Price]) -> Price | None:
    """Return the user's price of a model, by its name or that without the provider (`openai/…`)."""
    return user_prices.get(model) or user_prices.get(model.partition("/")[2])


def cost(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the cost in US dollars; None, never 0, if it is not known. What is free costs 0 anyway."""
    if price is not None and price.input == price.output == 0.0:
        return 0.0
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (price.input * tokens_in + price.output * tokens_out) / _MILLION


def highest_request_cost(
    price: Price | None, prompt_bytes: int, messages: int, max_tokens: int
) -> float | None:
    """Return the most that a request may cost, before it is sent; None if the price is unknown.

    A token has at least one byte of UTF-8, and a message at most `MAX_TEMPLATE_TOKENS_PER_MESSAGE` more than its text.
    `prompt_bytes` counts everything that the model reads: the texts of the messages, and a schema if the provider puts
    it before them.
    """
    return cost(price, prompt_bytes + MAX_TEMPLATE_TOKENS_PER_MESSAGE * messages, max_tokens)


def max_reply_tokens_of(parameters: Mapping[str, JsonValue], default_max_reply_tokens: int) -> int:
    """Return the most tokens that a request with these parameters may be billed for its reply.

    The largest limit counts wherever it is set (in `extra_body` too), times the number of replies.
    `default_max_reply_tokens` is the default if none is set.
    """
    values = iter_json_values(dict(parameters))
    numbers = [(path[-1], number) for path, number in values if isinstance(number, int)]
    limit = max(
        (number for name, number in numbers if name in TOKEN_LIMIT_PARAMETERS),
        default=default_max_reply_tokens,
    )
    return limit * math.prod(
        max(1, number) for name, number in numbers if name in _REPLY_COUNT_PARAMETERS
    )


def replace_token_limits(parameters: Any, max_reply_tokens: int) -> Any:
    """Return parameters with another number wherever a limit on the reply's tokens stands (in `extra_body` too).

    What has the name of a limit and is no number stays, such as a property of a JSON schema.
    """
    if isinstance(parameters, list):
        return [replace_token_limits(inner, max_reply_tokens) for inner in parameters]
    if not isinstance(parameters, dict):
        return parameters
    return {
        name: max_reply_tokens
        if name in TOKEN_LIMIT_PARAMETERS and isinstance(value, int)
        else replace_token_limits(value, max_reply_tokens)
        for name, value in parameters.items()
    }


class Budget:
    """Limits of a run, in US dollars and calls, and the amounts spent. None means no limit.

    Reserve the maximum cost before every attempt, retries included; then settle its actual cost. Sums are exact.

        with await budget.reserve_when_free(most) as reservation:
            reply = await send()
            reservation.settle_cost(cost)

    As long as no bill exceeds its reservation, `spent` never exceeds `max_cost`. The first bill that does stops all
    sending, since no later reservation could be trusted. So `spent` exceeds `max_cost` by at most the amount by which
    the bills of that request and of those in flight exceed their reservations.

    `calls` counts the requests sent. Of them, `unpriced` are not in `spent`, because neither their cost nor a bound of
    it was known, and `faults` counts those that failed, by the kind of fault.
    """

    def __init__(self, max_cost: float | None = None, max_calls: int | None = None) -> None:
        """Set the limits. Raises `ConfigError` for one that is negative or not a finite number."""
        for name, limit in (
            ("max_cost (--max-cost)", max_cost),
            ("max_calls (--max-calls)", max_calls),
        ):
            if limit is not None and not 0 <= limit < inf:
                raise ConfigError(
                    f"{name}: {limit} is not a valid limit; give a number that is not negative"
                )
        self.calls = 0
        self.unpriced = 0
        self.faults: Counter[str] = Counter()
        self.max_cost = _to_fraction(max_cost)
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

    def reserve(self, cost: float | None) -> "BudgetReservation":
        """Reserve a call and its maximum cost, if known. Raises `Fault` of kind `budget` if a limit may be exceeded."""
        most = _to_fraction(cost)
        refusal = self._refusal_reason(most, self._reserved)
        if refusal is not None:
            raise Fault("budget", refusal)
        self._in_flight += 1
        if most:
            self._reserved += most
        return BudgetReservation(self, most)

    async def reserve_when_free(
        self, cost: float | None, until: float | None = None
    ) -> "BudgetReservation":
        """Reserve as `reserve` does, but wait while requests in flight may free enough: most cost less than that.

        Raises `Fault` of kind `deadline` if it still waits at `until`, a time of the running loop.
        """
        most = _to_fraction(cost)
        # it waits as long as only the reservations in flight leave too little
        while self._refusal_reason(most, self._reserved) and not self._refusal_reason(most):
            freed_future = asyncio.get_running_loop().create_future()
            self._waiting.append(freed_future)
            async with fault_at_deadline(until):
                await freed_future
        return self.reserve(cost)

    def _refusal_reason(self, most: Fraction | None, reserved: Fraction = Fraction()) -> str | None:
        """Return why no request of this maximum cost may be sent while so much is reserved; None if one may."""
        if self._max_calls is not None and self.calls + self._in_flight >= self._max_calls:
            limit = format_count(self._max_calls, "call")
            return (
                f"the limit of {limit} is reached ({self.calls} ended, {self._in_flight} in flight); raise "
                "`max_calls` (--max-calls) to go on"
            )
        if self.max_cost is None:
            return None
        limit = f"the limit of {_format_dollars(self.max_cost)}"
        spent_amount_text = f"{_format_dollars(self._spent)} spent"
        if self._overrun is not None:
            return (
                f"{limit} cannot be held: {self._overrun} ({spent_amount_text}); raise calls.max_tokens to all that a "
                "reply may take, hidden reasoning too, or check calls.prices"
            )
        if most is None:
            return (
                f"{limit} cannot be held, as the price of the model is unknown; state it under `calls.prices` in the "
                "config, or leave `max_cost` (--max-cost) out"
            )
        if self._spent + reserved + most <= self.max_cost:
            return None
        return (
            f"{limit} might be passed: {spent_amount_text}, {_format_dollars(reserved)} reserved for requests in "
            f"flight, and this one may cost {_format_dollars(most)}; raise `max_cost` (--max-cost) to go on"
        )

    def _settle_request(self, most: Fraction | None, bill: Fraction | None) -> None:
        """Charge the bill of a request in place of its reservation; all sending stops if it is more."""
        self._in_flight -= 1
        self.calls += 1
        self.unpriced += bill is None
        if most:
            self._reserved -= most
        if bill:
            self._spent += bill
        if bill is not None and most is not None and bill > most:
            self._overrun = (
                f"a request was billed {_format_dollars(bill)}, and at most {_format_dollars(most)} was reserved for "
                "it"
            )
        waiting_futures = self._waiting
        self._waiting = []
        for freed_future in waiting_futures:
            with suppress(RuntimeError):  # a closed loop has no one who waits
                freed_future.get_loop().call_soon_threadsafe(_release_waiter, freed_future)


def _release_waiter(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class BudgetReservation:
    """The amount reserved for one attempt, until it is settled, once.

    As a context manager, it charges an attempt that ends without a bill as if it was sent, since it may have been.
    """

    def __init__(self, budget: Budget, most: Fraction | None) -> None:
        self._budget = budget
        self._most = most
        self._is_settled = False

    def settle_cost(self, cost: float | None) -> None:
        """Charge the cost of an attempt, or the reservation if the cost is unknown, and free the rest.

        A failed attempt may have a cost too; pass 0 only where no provider bills it (429, no connection).
        """
        if self._is_settled:
            raise RuntimeError("a reservation is settled once")
        self._is_settled = True
        self._budget._settle_request(self._most, self._most if cost is None else _to_fraction(cost))

    def settle_unbounded_bill(self) -> None:
        """Charge the reservation of an attempt whose bill may exceed it by any amount, and stop all sending."""
        if self._most:  # else the attempt was free, or there is no limit to hold
            self._budget._overrun = (
                "a reply was too large to read, so its bill may exceed the "
                f"{_format_dollars(self._most)} reserved for it"
            )
        self.settle_cost(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_settled:
            self.settle_cost(None)


def _to_fraction(dollars: float | None) -> Fraction | None:
    """Return the decimal number as it is written, so that three times 0.1 is 0.3."""
    if dollars is None:
        return None
    if not 0 <= dollars < inf:
        raise ValueError(f"a cost is a finite number that is not negative, not {dollars}")
    return Fraction(str(dollars))


def _format_dollars(amount: Fraction) -> str:
    return f"${float(amount):.6g}"
