"""A circuit breaker: during an outage of the model server requests pause, and one at a time probes it.

closed     requests pass; `after` consecutive faults that suggest an outage open the circuit
open       requests wait; one at a time is sent as a probe, after 0.5, 1, 2, … and at most 30 seconds
given up   `wait` seconds after the circuit opened, or once the server refused the key or the model: requests fail at
           once, except for an occasional probe

Any other answer of the server closes the circuit. Libraries for circuit breakers reject requests while the
circuit is open instead of holding them, so none fits.
"""

import asyncio
import logging
from collections import deque
from functools import partial
from typing import Self

from jurygraph.models.faults import ACCESS_KINDS, Fault, wait_for_turn

log = logging.getLogger(__name__)

OUTAGE_KINDS = frozenset({"connection", "timeout", "server", "unreadable"})
"""Faults that suggest that the server is down; a proxy may answer in its place, with an unreadable page."""

_LOCAL_KINDS = frozenset({"deadline", "budget"})  # faults of this process, which are no evidence about the server
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds before the first probe, and between two at most; they double with each probe."""
_REFUSED_PAUSE = 10.0
"""Seconds between probes while the server refuses the key or the model; a run has usually ended by then."""


class CircuitBreaker:
    """Admits requests while the server answers, and holds them while it does not.

        with await breaker.admit(until) as attempt:
            return await send()
        # the server is away: request admission again

    An attempt that fails because of an outage leaves its `with` block without an error, to be repeated once the server
    answers: it does not count as one of a request's attempts. Every other error is raised. May be created anywhere, but
    used in one event loop at a time; in a new loop the circuit is closed.
    """

    def __init__(self, after: int = 8, wait: float = 300.0) -> None:
        self._after = after
        self._wait = wait
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.outages = 0
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._since = 0.0
        self._problem = ""
        self._refusal: Fault | None = None
        self._open = self._given_up = self._probing = self._announced = False
        self._pause = FIRST_PAUSE
        self._probe_at = self._limit = 0.0

    async def admit(self, until: float | None = None, may_repeat: bool = True) -> "Attempt":
        """Return permission to send one request, at once or when the server answers again, or as a probe.

        The request that has waited longest probes next. Without `may_repeat` the error of an outage is raised, except
        for a probe. Raises `Fault` of kind `deadline` if `until`, a time of the running loop, comes first, and of kind
        `outage` once the wait was given up, or of the kind of the server's refusal.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the state and the waiting requests of an earlier loop ended with it
            self._loop = loop
            self._timer = None
            self._waiting.clear()
            self._reset()
        if not self._open:
            return Attempt(self, until, may_repeat)
        if self._given_up and not self._probing and _now() < self._probe_at:
            raise self._outage_fault()
        turn = loop.create_future()
        self._waiting.append(turn)
        self._schedule_probe()
        is_probe = await wait_for_turn(turn, until, partial(self._withdraw, turn))
        return Attempt(self, until, may_repeat, is_probe)

    def _withdraw(self, turn: "asyncio.Future[bool]") -> None:
        """Pass on a probe that was granted to a request at the moment of its cancellation."""
        if turn.done() and not turn.cancelled() and turn.exception() is None and turn.result():
            self._probing = False
            self._schedule_probe()

    def _schedule_probe(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open and self._waiting and not self._probing:
            self._timer = asyncio.get_running_loop().call_at(self._probe_at, self._give_probe)

    def _give_probe(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._probing = True
                turn.set_result(True)
                return

    def record_end(self, attempt: "Attempt", error: BaseException | None) -> bool:
        """Record how an attempt ended; return whether it is to be repeated because of an outage."""
        if attempt.is_probe and attempt.outage == self.outages:
            self._probing = False
        if error is not None and not _is_evidence(error, attempt.until):
            self._schedule_probe()
            return False
        if isinstance(error, Fault) and error.kind in ACCESS_KINDS:
            self._refuse(error)
            return False
        if self._refusal is not None and not attempt.is_probe:
            return False  # it was sent before the refusal
        if not isinstance(error, Fault) or error.kind not in OUTAGE_KINDS:
            self._close()
            return False
        if self._open:
            if attempt.is_probe and attempt.outage == self.outages:
                self._continue_outage(error)
            return not self._given_up and attempt.may_repeat
        if attempt.outage != self.outages:
            return attempt.may_repeat  # sent before an outage that has ended
        return self._count_failure(error) and attempt.may_repeat

    def _count_failure(self, fault: Fault) -> bool:
        """Count a consecutive failure; return whether it opens the circuit."""
        now = _now()
        self._since = self._since if self._failures else now
        self._failures += 1
        if self._failures < self._after:
            return False
        self._open = True
        self._limit = now + self._wait
        self.outages += 1
        self._plan_probe(fault)
        return not self._given_up

    def _continue_outage(self, fault: Fault) -> None:
        """Plan the next probe after a failed one, or give up if there is no time for another."""
        if self._given_up:
            self._end_waits(fail=True)
        elif _now() >= self._limit:
            self._give_up()
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._plan_probe(fault)
        if not self._announced and not self._given_up:
            self._announced = True
            log.warning(
                "%s: requests wait for up to %.0f s more while one at a time tries again; Ctrl-C stops, and the same "
                "command goes on",
                *(self._describe_outage(), self._limit - _now()),
            )

    def _plan_probe(self, fault: Fault) -> None:
        """Set the time of the next probe: the last one at the limit, and none before the server's own Retry-After."""
        self._problem = str(fault)
        next_time = _now() + self._pause
        if not self._given_up:
            next_time = min(next_time, self._limit)
        self._probe_at = max(next_time, _now() + (fault.retry_after or 0.0))
        if not self._given_up and self._probe_at > self._limit:
            self._give_up()
        self._schedule_probe()

    def _give_up(self) -> None:
        """Fail all waiting requests, and later ones until the server answers."""
        self._given_up = True
        log.warning("%s: requests fail until it answers", self._describe_outage())
        self._end_waits(fail=True)

    def _refuse(self, fault: Fault) -> None:
        """Fail all waiting requests, and later ones until the server accepts a probe."""
        self._open = self._given_up = True
        self._refusal = fault
        self._probe_at = _now() + _REFUSED_PAUSE
        self._end_waits(fail=True)

    def _close(self) -> None:
        if self._announced:
            log.warning("the model server answers again, after %.0f s", _now() - self._since)
        self._end_waits(fail=False)
        self._reset()
        self._schedule_probe()

    def _end_waits(self, fail: bool) -> None:
        waiting = self._waiting
        self._waiting = deque()
        for turn in waiting:
            if not turn.done():
                turn.set_exception(self._outage_fault()) if fail else turn.set_result(False)

    def _outage_fault(self) -> Fault:
        if self._refusal is not None:
            return Fault(self._refusal.kind, str(self._refusal))
        advice = "check the server; calls.outage.wait sets the maximum wait"
        return Fault("outage", f"{self._describe_outage()}; {advice}")

    def _describe_outage(self) -> str:
        return f"the model server has not answered for {_now() - self._since:.0f} s ({self._problem})"


class Attempt:
    """Permission to send one request, used as a context manager around the sending."""

    def __init__(self, breaker: CircuitBreaker, until: float | None, may_repeat: bool, is_probe: bool = False) -> None:
        self.outage = breaker.outages
        self.until = until
        self.may_repeat = may_repeat or is_probe
        self.is_probe = is_probe
        self._breaker = breaker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return self._breaker.record_end(self, error)


def _is_evidence(error: BaseException, until: float | None) -> bool:
    """Return whether an error shows that the server is up or down; a timeout at a group's deadline does not."""
    if not isinstance(error, Fault) or error.kind in _LOCAL_KINDS:
        return False
    return error.kind != "timeout" or until is None or _now() < until


def _now() -> float:
    return asyncio.get_running_loop().time()
