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
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import TypeVar

from jurygraph.models.faults import ACCESS_KINDS, Fault, deadline_at

T = TypeVar("T")
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
    """Sends requests while the server answers, and holds them while it does not.

    May be created anywhere, but used in one event loop at a time; in a new loop the circuit is closed.
    """

    def __init__(self, after: int = 8, wait: float = 300.0) -> None:
        self._after = after
        self._wait = wait
        self.outages = 0
        self._enter(None)

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin in an event loop: the state and the waiting requests of an earlier one ended with it."""
        self._loop = loop
        self._probing = asyncio.Lock()  # in order: the request that has waited longest probes next
        self._changed = asyncio.Event()
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._since = 0.0
        self._problem = ""
        self._refusal: Fault | None = None
        self._is_open = False
        self._is_announced = False
        self._pause = FIRST_PAUSE
        self._probe_at = 0.0
        self._limit = inf

    @property
    def _has_given_up(self) -> bool:
        """True once the next probe is due after the limit: requests fail at once until then."""
        return self._probe_at > self._limit

    async def call(
        self, send: Callable[[], Awaitable[T]], until: float | None = None, *, may_repeat: bool = True
    ) -> T | None:
        """Return what `send` returns, called once the server answers, or as a probe.

        None if it failed because of an outage: then call again, which waits behind the others. Without `may_repeat` the
        error is raised instead, except for a probe. Every other error is raised. Raises `Fault` of kind `deadline` if
        `until`, a time of the running loop, comes while it waits, and of kind `outage` once the wait was given up, or
        of the kind of the server's refusal.
        """
        if self._loop is not asyncio.get_running_loop():
            self._enter(asyncio.get_running_loop())
        is_probe = self._is_open and await self._wait_for_probe(until)
        outage = self.outages
        try:
            result = await send()
            self._record_answer(is_probe)
            return result
        except Fault as fault:
            is_outage = self._record_fault(fault, outage, until, is_probe)
            if is_outage and (is_probe or may_repeat):
                return None
            raise
        finally:
            if is_probe:
                self._probing.release()

    async def _wait_for_probe(self, until: float | None) -> bool:
        """Wait until a probe is due, and hold `_probing` then; return False once the circuit is closed."""
        async with deadline_at(until):
            await self._probing.acquire()
        try:
            while self._is_open and self._probe_at - _now() > 1e-9:
                if self._has_given_up:
                    raise self._outage_fault()
                self._changed.clear()
                async with deadline_at(until):
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(self._probe_at):
                            await self._changed.wait()
        except BaseException:
            self._probing.release()
            raise
        if not self._is_open:
            self._probing.release()
        return self._is_open

    def _record_answer(self, is_probe: bool) -> None:
        """Close the circuit, except for an answer to a request that was sent before the server's refusal."""
        if self._refusal is not None and not is_probe:
            return
        if self._is_announced:
            log.warning("the model server answers again, after %.0f s", _now() - self._since)
        self._reset()
        self._changed.set()

    def _record_fault(self, fault: Fault, outage: int, until: float | None, is_probe: bool) -> bool:
        """Record how a request sent during `outage` failed; return whether to repeat it because of an outage."""
        is_late = fault.kind == "timeout" and until is not None and _now() >= until
        if fault.kind in _LOCAL_KINDS or is_late:
            return False
        if fault.kind in ACCESS_KINDS:
            self._refuse(fault)
            return False
        if fault.kind not in OUTAGE_KINDS:
            self._record_answer(is_probe)
            return False
        if is_probe:
            self._continue_outage(fault)
        elif not self._is_open and outage == self.outages:
            self._count_failure(fault)
            return self._is_open and not self._has_given_up
        return not self._has_given_up

    def _count_failure(self, fault: Fault) -> None:
        """Count a consecutive failure, which may open the circuit."""
        self._since = self._since if self._failures else _now()
        self._failures += 1
        if self._failures >= self._after:
            self._is_open = True
            self._limit = _now() + self._wait
            self.outages += 1
            self._plan_probe(fault)

    def _continue_outage(self, fault: Fault) -> None:
        """Plan the next probe after a failed one."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._plan_probe(fault)
        if self._has_given_up:
            log.warning("%s: requests fail until it answers", self._describe_outage())
        elif not self._is_announced:
            self._is_announced = True
            log.warning(
                "%s: requests wait for up to %.0f s more while one at a time tries again; Ctrl-C stops, and the same "
                "command goes on",
                *(self._describe_outage(), self._limit - _now()),
            )

    def _plan_probe(self, fault: Fault) -> None:
        """Set the time of the next probe: the last one at the limit, and none before the server's own Retry-After."""
        self._problem = str(fault)
        now = _now()
        next_time = now + self._pause
        if now < self._limit:
            next_time = min(next_time, self._limit)
        self._probe_at = max(next_time, now + (fault.retry_after or 0.0))

    def _refuse(self, fault: Fault) -> None:
        """Fail all waiting requests, and later ones until the server accepts a probe."""
        self._is_open = True
        self._limit = -inf
        self._refusal = fault
        self._probe_at = _now() + _REFUSED_PAUSE
        self._changed.set()

    def _outage_fault(self) -> Fault:
        if self._refusal is not None:
            return Fault(self._refusal.kind, str(self._refusal))
        return Fault("outage", f"{self._describe_outage()}; check the server; calls.outage.wait sets the maximum wait")

    def _describe_outage(self) -> str:
        return f"the model server has not answered for {_now() - self._since:.0f} s ({self._problem})"


def _now() -> float:
    return asyncio.get_running_loop().time()
