"""The one way to a model: what is known is not asked, what is asked is asked once, within its limits, and kept.

run store → cache → limiter → circuit breaker → budget → backend, retried as a whole → run store → cache
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NamedTuple

from jurygraph.models.asking import Reply, Request, Token
from jurygraph.models.backend import Backend
from jurygraph.models.budget import Budget, Reservation
from jurygraph.models.cache import Cache, Stored
from jurygraph.models.circuit_breaker import Attempt, CircuitBreaker
from jurygraph.models.faults import Fault, too_late
from jurygraph.models.limiter import Limiter, Turn
from jurygraph.models.prices import Price, cost, most, reply_limit
from jurygraph.models.recording import Recorder
from jurygraph.models.retries import RetryPolicy, attempted
from jurygraph.models.sink import Answered, CallSink, Nowhere
from jurygraph.safety.known_secrets import process_redactor
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Call, canonical

_UNBILLED = frozenset({"rate-limit", "rejected", "unauthorised", "unknown-model", "unrecorded"})
"""Kinds of faults after which nobody sends a bill."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a model may be asked: times in seconds, for one attempt and for a whole group of responses."""

    timeout: float = 60.0
    deadline: float | None = None
    max_tokens: int = 1024
    retries: RetryPolicy = field(default_factory=RetryPolicy)


class Gateway:
    """Asks one model. Made anywhere, used in one event loop at a time; `close` it there.

    What is asked is kept in `sink` before it is used.
    """

    def __init__(
        self,
        backend: Backend,
        limiter: Limiter,
        limits: Limits,
        *,
        price: Price | None = None,
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
        cache: Cache | None = None,
        sink: CallSink | None = None,
        recorder: Recorder | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.backend = backend
        self.limits = limits
        self.budget = budget or Budget(None, None)
        self._limiter = limiter
        self._breaker = breaker or CircuitBreaker()
        self.price = price
        self._cache = cache
        self.sink: CallSink = sink or Nowhere()
        self._recorder = recorder
        self.redactor = process_redactor(backend.secrets) if redactor is None else redactor
        self._flying: dict[str, asyncio.Task[Answered]] = {}
        self._unstored: dict[str, Stored] = {}

    async def ask(self, request: Request, until: float | None = None) -> Answered:
        """The reply to a request, from wherever it is known; equal requests at the same time are one. Raises `Fault`.

        `until` is a time of the running loop. Nobody is ended by the deadline of another who asks the same.
        """
        key = request.digest
        while (flying := self._flying.get(key)) is not None:
            try:
                async with asyncio.timeout_at(until):
                    return await asyncio.shield(flying)
            except TimeoutError:
                raise too_late() from None
            except Fault as fault:
                if fault.kind != "deadline":
                    raise
        own = self._flying[key] = asyncio.create_task(self._answered(request, until))
        own.add_done_callback(partial(self._landed, key))
        return await asyncio.shield(own)

    @property
    def has_cache(self) -> bool:
        """Whether replies are kept for other runs too."""
        return self._cache is not None

    def known(self, request: Request) -> bool:
        """Whether the reply is kept already: then nothing is sent."""
        key = request.digest
        return self.sink.find(key) is not None or (self._cache is not None and self._cache.get(key) is not None)

    def forget(self, key: str) -> None:
        """Keep a reply that was of no use from other runs, which may have more luck; this one has it for good."""
        self._unstored.pop(key, None)
        if self._cache is not None:
            self._cache.drop(key)

    async def settle(self) -> None:
        """Wait for what is under way: it is paid for, and kept once it is there."""
        while self._flying:
            await asyncio.gather(*self._flying.values(), return_exceptions=True)

    async def close(self) -> None:
        """Give up what is under way, and let go of the backend. May be called more than once."""
        flying = list(self._flying.values())
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)
        await self.backend.close()
        if self._cache is not None:
            self._put_away()
            self._cache.close()
        if self._recorder is not None:
            self._recorder.close()

    def _landed(self, key: str, done: "asyncio.Task[Answered]") -> None:
        del self._flying[key]
        if not done.cancelled():
            done.exception()  # whoever asked may have left

    async def _answered(self, request: Request, until: float | None) -> Answered:
        """The reply from where it is known, else from the model; recorded either way, so that a replay has it."""
        answered = await self._known(request) or await self._asked(request, until)
        if self._recorder is not None:
            self._recorder.add(request, answered.reply, answered.call.cost)
        return answered

    async def _known(self, request: Request) -> Answered | None:
        key = request.digest
        known = self.sink.find(key)
        if known is not None:
            return known
        stored = self._cache.get(key) if self._cache else None
        if stored is None:
            return None
        reply = self._clean(stored.reply)  # whoever stored it may have known fewer secrets
        answered = Answered(reply, _call(request, reply, stored.cost, cache_hit=True, attempts=0))
        await self.sink.keep(self._clean_request(request), answered)
        return answered

    async def _asked(self, request: Request, until: float | None) -> Answered:
        start, sent, repeats = monotonic(), 0, 0
        load = _Load(size_of(request), reply_limit(request.parameters, self.limits.max_tokens))

        async def once() -> Answered:
            nonlocal sent, repeats
            while True:  # until an attempt ends otherwise than by an outage of the server
                async with self._limiter.turn(load.tokens, until) as turn:
                    may_repeat = repeats < self.limits.retries.attempts  # else an overloaded server is asked for ever
                    with await self._admitted(turn, until, may_repeat) as attempt:
                        sent += 1
                        reply = self._clean(await self._sent(request, load, turn, until))
                        bill = cost(self.price, reply.tokens_in, reply.tokens_out)
                        call = _call(request, reply, bill, attempts=sent, latency=monotonic() - start)
                        answered = Answered(reply, call)
                        # Within the turn: no more calls than there are turns wait to be durable.
                        await self.sink.keep(self._clean_request(request), answered)
                        return answered
                    repeats += not attempt.is_probe

        try:
            answered, _ = await attempted(once, self.limits.retries, until)
        except Fault as fault:
            raise self._redacted(fault) from None
        if not self._unstored:
            asyncio.get_running_loop().call_soon(self._put_away)
        self._unstored[request.digest] = Stored(answered.reply, answered.call.cost)
        return answered

    def _redacted(self, fault: Fault) -> Fault:
        """A fault without secrets that a server may have sent back, and without the errors that led to it."""
        clean = Fault(fault.kind, self.redactor.text(str(fault)), fault.retry_after)
        clean.attempts = fault.attempts
        return clean

    def _clean_request(self, request: Request) -> Request:
        """A request as it is kept: without secrets. It was sent, and has its digest, as its prompt says."""
        if not any(self.redactor.finds(message.content) for message in request.messages):
            return request
        messages = [
            message.model_copy(update={"content": self.redactor.text(message.content)}) for message in request.messages
        ]
        return request.model_copy(update={"messages": tuple(messages)})

    def _clean(self, reply: Reply) -> Reply:
        """A reply without secrets that a server may have sent back, in tokens neither."""
        given = {name: getattr(reply, name) or "" for name in ("text", "finish", "refusal", "served")}
        changed = {name: clean for name, text in given.items() if (clean := self.redactor.text(text)) != text}
        if not changed and not self._finds_in_tokens(reply.tokens):
            return reply
        return reply.model_copy(update={**changed, "tokens": ()})

    def _finds_in_tokens(self, tokens: Sequence[Token]) -> bool:
        spelled, others = (token.text for token in tokens), (other for token in tokens for other, _ in token.others)
        return bool(tokens) and (self.redactor.finds("".join(spelled)) or self.redactor.finds("\n".join(others)))

    async def _admitted(self, turn: Turn, until: float | None, may_repeat: bool) -> Attempt:
        """Leave to send, once the server is not known to be away. Who waits for that keeps the turn: so do the probes.

        No deadlock can come of it: the next to probe is always one who has a turn.
        """
        try:
            return await self._breaker.admit(until, may_repeat)
        except Fault:
            self._limiter.used(turn, 0)  # nothing is sent
            raise

    async def _sent(self, request: Request, load: "_Load", turn: Turn, until: float | None) -> Reply:
        """One attempt, within the limits: what it may cost is reserved before it is sent."""
        with await self._reserved(request, load, turn, until) as reserved:
            try:
                reply = await self.backend.complete(request, _time_left(self.limits.timeout, until))
            except Fault as fault:
                if fault.kind in _UNBILLED:
                    reserved.settle(0.0)
                if fault.kind == "too-large":
                    reserved.settle_unbounded()
                if fault.kind == "rate-limit":
                    self._limiter.throttled(turn, fault.retry_after)
                raise
            reserved.settle(cost(self.price, reply.tokens_in, reply.tokens_out))
        if reply.tokens_in is not None and reply.tokens_out is not None:
            self._limiter.used(turn, reply.tokens_in + reply.tokens_out)
        self._limiter.served(turn)
        return reply

    async def _reserved(self, request: Request, load: "_Load", turn: Turn, until: float | None) -> Reservation:
        """What an attempt may cost, set aside while there is time to make it."""
        try:
            _time_left(self.limits.timeout, until)
            async with asyncio.timeout_at(until):
                return await self.budget.reserve_when_free(
                    most(self.price, load.size, len(request.messages), load.longest)
                )
        except (Fault, TimeoutError) as error:
            self._limiter.used(turn, 0)  # nothing is sent
            raise too_late() if isinstance(error, TimeoutError) else error from None

    def _put_away(self) -> None:
        """What has come since the last turn of the loop goes into the cache, in one transaction."""
        unstored, self._unstored = self._unstored, {}
        if self._cache is not None and unstored:
            self._cache.put(unstored)


_BYTES_A_TOKEN = 4
"""About so many in most texts: what a limit of tokens a minute is reckoned with before the reply says it."""


class _Load(NamedTuple):
    """What a request weighs: bytes that the model reads, and the most tokens that it writes."""

    size: int
    longest: int

    @property
    def tokens(self) -> int:
        """About so many in all."""
        return self.size // _BYTES_A_TOKEN + self.longest


def size_of(request: Request) -> int:
    """Bytes of all that the model reads: its messages, and a schema that a provider may put before them."""
    schema = request.answer if request.form == "native" else None
    return size_of_messages(request) + (0 if schema is None else len(canonical(schema)))


def size_of_messages(request: Request) -> int:
    """Bytes of the messages alone."""
    return sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)


def _time_left(timeout: float, until: float | None) -> float:
    if until is None:
        return timeout
    left = until - asyncio.get_running_loop().time()
    if left <= 0:
        raise too_late()
    return min(timeout, left)


def _call(
    request: Request, reply: Reply, bill: float | None, *, cache_hit: bool = False, attempts: int, latency: float = 0.0
) -> Call:
    return Call(
        id=request.digest,
        provider=request.provider,
        model=request.model,
        served=reply.served,
        endpoint=request.endpoint,
        parameters=request.parameters,
        prompt=request.prompt,
        prompt_version=request.prompt_version,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost=bill,
        latency=latency,
        cache_hit=cache_hit,
        attempts=attempts,
    )
