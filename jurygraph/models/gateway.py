"""The path of every model request: stored replies are reused, equal requests are merged, and replies are kept.

sink → cache → limiter → budget → backend, retried as a whole → sink → cache

`Gateways` are those to all models of a config; in a dry run a `DryRunBackend` notes what would be sent.
"""

import asyncio
import re
from collections.abc import Iterable
from itertools import chain
from math import inf
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from jurygraph.errors import UnusableRepliesError
from jurygraph.messages import shorten
from jurygraph.models.backend import Backend
from jurygraph.models.limits import (
    OUTAGE_FAULT_KINDS,
    Budget,
    BudgetReservation,
    Price,
    RequestLimiter,
    RequestTurn,
    RetryPolicy,
    call_with_retries,
    cost,
    highest_request_cost,
    max_reply_tokens_of,
    replace_token_limits,
)
from jurygraph.models.request import (
    ALL_REJECTED_FAULT_KIND,
    CODE_FAULT_KIND,
    REJECTION_FAULT_KINDS,
    AnsweredCall,
    CachedReply,
    CallSink,
    Fault,
    PlannedLookup,
    Reply,
    Request,
    StoredLookup,
    fault_at_deadline,
    make_deadline_fault,
)
from jurygraph.safety.redaction import Redactor, make_process_redactor
from jurygraph.schema import Call, CallsConfig, Message, canonical_json
from jurygraph.schema.frozen_model import split_into_pieces

if TYPE_CHECKING:
    from jurygraph.models.cache import Cache
    from jurygraph.models.recording import CallRecorder


UNBILLED_FAULT_KINDS = frozenset(
    {"rate-limit", "rejected", "unauthorised", "unknown-model", "unrecorded"}
)
"""Kinds of faults after which the provider charges nothing."""

ModelAddress = tuple[str, str | None, str]
"""Provider, endpoint and model."""
_PendingKey = tuple[asyncio.AbstractEventLoop, str, int]
"""A loop, the digest of a request or a lookup, and the identity of the sink."""
_BYTES_PER_TOKEN = 4
"""Approximate for most texts: used for the limit on tokens per minute until the reply has the exact count."""

_MAX_PROBE_TOKENS = 16  # the least that some providers take

MAX_UNUSABLE_FIRST_REPLIES = 20  # first replies of which one has to be usable
_NUMBER_OR_ID_PATTERN = re.compile(r"[\w-]*\d[\w-]*")
_MAX_EXAMPLE_CHARACTERS = 200  # characters of a reply that are shown
_ADVICE_BY_FAULT_KIND = {
    "malformed": "set calls.form (native or instructed), raise calls.max_tokens, or name another model",
    "truncated": "raise calls.max_tokens, or name another model",
    "empty": "raise calls.max_tokens, as a model may think before it writes, or name another model",
    "refused": "name another model",
    "overflowed": "raise the context length of its server, or name another model",
}
"""What to change in the config if all first replies are unusable, by the kind of fault."""


class Gateway:
    """Sends requests to one model. Created anywhere, used in one event loop at a time; `close` it there.

    Requests contain the `parameters` of its settings unless their caller gives others.
    """

    def __init__(
        self,
        backend: Backend,
        limiter: RequestLimiter,
        settings: CallsConfig,
        *,
        retry_policy: RetryPolicy | None = None,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: "Cache | None" = None,
        recorder: "CallRecorder | None" = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.backend = backend
        self.settings = settings
        self._retry_policy = retry_policy or RetryPolicy(settings.attempts)
        self.budget = budget or Budget(None, None)
        self._limiter = limiter
        self.price = price
        self.cache = cache
        self._recorder = recorder
        self.redactor = make_process_redactor(backend.secrets) if redactor is None else redactor
        self.first_replies = FirstRepliesCheck()
        self._answered_probe_count = 0
        self._pending: dict[_PendingKey, asyncio.Task[AnsweredCall]] = {}
        self._uncached: dict[str, CachedReply] = {}
        self._unproven: set[str] | None = set()
        """The calls of this session whose replies may all be unusable; None once one of them could be used."""
        self._pending_lookups: dict[_PendingKey, asyncio.Task[StoredLookup]] = {}
        self._store_errors: WeakKeyDictionary[CallSink, Exception] = WeakKeyDictionary()

    @property
    def identity(self) -> ModelAddress:
        """Return what requests name the model by."""
        return self.backend.provider, self.backend.endpoint, self.backend.model

    async def ask(
        self, request: Request, until: float | None = None, sink: CallSink | None = None
    ) -> AnsweredCall:
        """Return the reply to a request, from the sink, the cache or the model. Raises `Fault`.

        A reply is kept in `sink` before it is returned. Equal concurrent requests of a loop, with the same sink, are
        sent once.
        Once a sink could not keep a reply, as on a full disk, nothing more is sent for it, and that error is raised.
        `until` is a time of the running loop. The deadline of one caller does not end the equal request of another.
        """
        key = asyncio.get_running_loop(), request.digest, id(sink)
        while (pending_asyncio_task := self._pending.get(key)) is not None:
            # outside of the `try`: the deadline of this caller does end it
            async with fault_at_deadline(until):
                try:
                    return await asyncio.shield(pending_asyncio_task)
                except Fault as fault:
                    if fault.kind != "deadline":
                        raise

        def forget(finished_asyncio_task: "asyncio.Task[AnsweredCall]") -> None:
            del self._pending[key]
            if not finished_asyncio_task.cancelled():
                finished_asyncio_task.exception()  # mark the error as retrieved: the callers may have been cancelled

        task = self._pending[key] = asyncio.create_task(
            self._find_or_request_reply(request, until, sink)
        )
        task.add_done_callback(forget)
        return await asyncio.shield(task)

    async def look_up(
        self, planned_lookup: PlannedLookup, sink: CallSink | None = None
    ) -> StoredLookup:
        """Return the planned call of a tool as the sink or a recording has it, else as it is made now.

        It is kept in `sink` before it is returned. Equal concurrent ones are made once: a tool may give another result
        each time, and all later requests rest on this one.
        """
        identity = asyncio.get_running_loop(), planned_lookup.lookup.id, id(sink)
        pending_asyncio_task = self._pending_lookups.get(identity)
        if pending_asyncio_task is None:
            pending_asyncio_task = asyncio.create_task(self._make_lookup(planned_lookup, sink))
            self._pending_lookups[identity] = pending_asyncio_task
            pending_asyncio_task.add_done_callback(lambda _: self._pending_lookups.pop(identity))
        return await asyncio.shield(pending_asyncio_task)

    async def _make_lookup(
        self, planned_lookup: PlannedLookup, sink: CallSink | None
    ) -> StoredLookup:
        key = planned_lookup.lookup.id
        stored_lookup = None if sink is None else sink.find_lookup(key)
        if stored_lookup is not None:
            await self.backend.check_lookup(stored_lookup, planned_lookup)
        else:
            stored_lookup = self.backend.find_lookup(key)
            can_run = self.backend.can_run_tools or (
                self.backend.can_repeat_tools and planned_lookup.lookup.deterministic
            )
            if stored_lookup is None and not can_run:
                raise Fault(
                    "unrecorded", "no result of this tool is recorded, and it is not called"
                )
            stored_lookup = stored_lookup or await planned_lookup.make(True)
            if sink is not None:
                await sink.store_lookup(stored_lookup)
        if self._recorder is not None:
            self._recorder.add_lookup(stored_lookup)
        return stored_lookup

    def find_reply_source(
        self, request: Request, sink: CallSink | None = None
    ) -> Literal["sink", "cache"] | None:
        """Return where the reply is stored, so that nothing is sent; None if the request would be sent."""
        stored = self.find_stored(request, sink)
        if stored is None:
            return None
        return "sink" if isinstance(stored, AnsweredCall) else "cache"

    def find_stored(
        self, request: Request, sink: CallSink | None
    ) -> AnsweredCall | CachedReply | None:
        """Return the call that `sink` has, or else the reply that the cache has; nothing is recorded."""
        answered_call = None if sink is None else sink.find(request.digest)
        if answered_call is not None or self.cache is None:
            return answered_call
        cached = self.cache.get(request.digest)
        # the run that cached it may have known fewer secrets
        if cached is None:
            return None
        return cached._replace(reply=self._redact_reply(cached.reply))

    def drop_from_cache(self, key: str) -> None:
        """Drop a useless reply from the cache, so that other runs request it again; this run keeps it.

        A recording has it until the request is sent again.
        """
        if self._recorder is not None:
            self._recorder.useless_digests.add(key)
        self._uncached.pop(key, None)
        if self.cache is not None:
            self.cache.drop(key)

    def note_read_reply(self, answered_call: AnsweredCall, fault: Fault | None) -> None:
        """Note a reply that was read, with its fault if it cannot be used.

        Raises UnusableRepliesError if none of the first can be used; the cache then keeps no reply of this session, so
        that all are requested again once what is wrong was changed.
        """
        if fault is None and self._unproven and answered_call.call.id in self._unproven:
            self._unproven = None
        try:
            self.first_replies.note(answered_call, fault)
        except UnusableRepliesError:
            self._drop_unproven_replies()
            raise

    def _drop_unproven_replies(self) -> None:
        for key in self._unproven or ():
            self.drop_from_cache(key)

    def make_dry_run_gateway(
        self, concurrency: int, sink: CallSink | None = None
    ) -> "tuple[DryRunBackend, Gateway]":
        """Return a dry-run backend and a gateway to it, with the same limits, that has no cache and no sink."""
        backend = DryRunBackend(self, sink)
        return backend, Gateway(
            backend,
            RequestLimiter(concurrency),
            self.settings.model_copy(update={"deadline": None}),
            redactor=self.redactor,
        )

    async def wait_for_pending(self) -> None:
        """Wait for requests under way in this loop: they are paid for, and their replies are kept."""
        while pending_tasks := self._pending_tasks_in_loop():
            await asyncio.gather(*pending_tasks, return_exceptions=True)

    def _pending_tasks_in_loop(self) -> list["asyncio.Task[AnsweredCall]"]:
        running_loop = asyncio.get_running_loop()
        return [task for (loop, *_), task in self._pending.items() if loop is running_loop]

    async def close(self) -> None:
        """Cancel requests under way in this loop, and close the backend. May be called more than once."""
        pending_tasks = self._pending_tasks_in_loop()
        for task in pending_tasks:
            task.cancel()
        await asyncio.gather(*pending_tasks, return_exceptions=True)
        await self.backend.close()
        if self.cache is not None:
            self._cache_replies()
            if self.first_replies.has_ended_run:
                self._drop_unproven_replies()
            self.cache.close()
        if self._recorder is not None:
            self._recorder.close()

    async def _find_or_request_reply(
        self, request: Request, until: float | None, sink: CallSink | None
    ) -> AnsweredCall:
        """Return the stored reply, else the model's; recorded in both cases, so that a replay has it."""
        stored = self.find_stored(request, sink)
        if stored is None:
            answered_call = await self._request_model(request, until, sink)
        elif isinstance(stored, AnsweredCall):
            answered_call = stored
        else:
            reply, billed_cost = stored
            answered_call = await self._store_call(
                request, reply, sink, cost=billed_cost, cache_hit=True, attempts=0, latency=0.0
            )
        if self._recorder is not None:
            reply, call = answered_call
            self._recorder.add(request, reply, call.cost, is_sent=stored is None)
        return answered_call

    async def _store_call(
        self, request: Request, reply: Reply, sink: CallSink | None, **call_fields: Any
    ) -> AnsweredCall:
        """Return a call with the `call_fields`, and store it: it is durable when this returns.

        The request was sent with its secrets, and its digest includes them, but it is stored without them.
        """
        call = make_call_record(
            request,
            served=reply.served,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            **call_fields,
        )
        answered_call = AnsweredCall(reply, call)
        if sink is not None:
            try:
                await sink.store(self._redact_request(request), answered_call)
            except Exception as error:
                self._store_errors[sink] = error
                raise
        return answered_call

    def store_unanswered(self, request: Request, call: Call, sink: CallSink | None) -> None:
        """Store a call without a reply, so that its request can be shown."""
        if sink is not None:
            sink.store_unanswered(self._redact_request(request), call)

    def _redact_request(self, request: Request) -> Request:
        """Return a request as it is stored, without secrets in its messages."""
        contents = [message.content for message in request.messages]
        if not self.redactor.has_secret_in("\n".join(contents)):
            return request
        redacted_messages = [
            message.model_copy(update={"content": self.redactor.redact_text(message.content)})
            for message in request.messages
        ]
        return request.model_copy(update={"messages": tuple(redacted_messages)})

    async def _request_model(
        self, request: Request, until: float | None, sink: CallSink | None
    ) -> AnsweredCall:
        start = monotonic()
        sent_count = 0
        repeats = 0
        earlier_probe_count: float = inf  # of those before it first failed in an outage
        tokens, max_cost = self._bound_usage(request)

        async def attempt() -> AnsweredCall:
            nonlocal sent_count, repeats, earlier_probe_count
            while True:  # attempts that end in an outage of the server do not count
                async with self._limiter.turn(tokens, until) as turn:
                    # replies would be paid for and lost
                    if sink is not None and sink in self._store_errors:
                        raise self._store_errors[sink]
                    if turn.is_probe and turn.limiter.may_be_up:
                        sent_count += 1
                        await self._probe_server(request, turn, until)
                        continue
                    _time_left(self.settings.timeout, until)
                    with await self.budget.reserve_when_free(max_cost, until) as cost_reservation:
                        sent_count += 1
                        # Not for ever: a server that answers nothing but probes is overloaded.
                        may_repeat = turn.is_probe or repeats < self._retry_policy.attempts
                        reply = await self._send_request(
                            request,
                            cost_reservation,
                            turn,
                            until,
                            may_repeat=may_repeat,
                            first_replies=self.first_replies,
                        )
                    if reply is not None:
                        turn.limiter.release_turn(turn)
                        return await self._store_call(
                            request,
                            self._redact_reply(reply),
                            sink,
                            cost=self._reply_cost(reply),
                            cache_hit=False,
                            attempts=sent_count,
                            latency=monotonic() - start,
                        )
                repeats += 1
                earlier_probe_count = min(earlier_probe_count, self._answered_probe_count)

        try:
            answered_call = await call_with_retries(attempt, self._retry_policy, until)
        except Fault as fault:
            message = self.redactor.redact_text(str(fault))
            has_answered_probe = self._answered_probe_count > earlier_probe_count
            if fault.kind in OUTAGE_FAULT_KINDS and has_answered_probe:
                message = f"the server answers a probe, and this request gets only: {message}"
            # without secrets that a server may have echoed, and the errors that caused it
            raise Fault(
                fault.kind, message, fault.retry_after, attempts=sent_count, setting=fault.setting
            ) from None
        if not self.backend.is_recording:
            self.first_replies.note_arrived_reply(answered_call.call.id)
        self._keep_for_cache(answered_call)
        return answered_call

    def _keep_for_cache(self, answered_call: AnsweredCall) -> None:
        if not self._uncached:
            asyncio.get_running_loop().call_soon(self._cache_replies)
        reply, call = answered_call
        self._uncached[call.id] = CachedReply(reply, call.cost)
        if self._unproven is not None:
            self._unproven.add(call.id)

    def _bound_usage(self, request: Request) -> tuple[int, float | None]:
        """Return the tokens that a request may take, estimated, and the most that it may cost."""
        size = request_byte_count(request)
        max_reply_tokens = max_reply_tokens_of(request.parameters, self.settings.max_tokens)
        max_cost = highest_request_cost(self.price, size, len(request.messages), max_reply_tokens)
        return size // _BYTES_PER_TOKEN + max_reply_tokens, max_cost

    def _redact_reply(self, reply: Reply) -> Reply:
        """Return a reply without secrets that a server may have echoed; one that had any loses its tokens."""
        redactor = self.redactor
        if not redactor.has_secrets or not redactor.has_secret_in(reply.model_dump_json()):
            return reply
        # A secret may be cut into several tokens, none of which has it.
        content = reply.model_dump(mode="json", exclude={"tokens"})
        return Reply.model_validate(redactor.redact_json(content))

    async def _probe_server(
        self, waiting_request: Request, turn: RequestTurn, until: float | None
    ) -> None:
        """Send a short request, which ends the outage if the server answers anything.

        The waiting request may be one that it never answers: its failures in a row would be no outage. Its parameters
        are sent, as they may decide which server behind the endpoint answers. Raises `Fault` as `_send_request` does
        where the server gave no answer to go on with.
        """
        # a number, so that no cache on the way to the server has the reply
        question = Message(role="user", content=f"Reply with ok. (Request {time_ns()})")
        request = Request(
            provider=waiting_request.provider,
            endpoint=waiting_request.endpoint,
            model=waiting_request.model,
            messages=(question,),
            parameters=replace_token_limits(waiting_request.parameters, _MAX_PROBE_TOKENS),
        )
        _, max_cost = self._bound_usage(request)
        # a check of its own: a probe says nothing about the settings of the run's requests
        first_replies = FirstRepliesCheck()
        with await self.budget.reserve_when_free(max_cost, until) as cost_reservation:
            try:
                await self._send_request(
                    request,
                    cost_reservation,
                    turn,
                    until,
                    may_repeat=True,
                    first_replies=first_replies,
                )
            except Fault:
                if turn.is_probe:
                    raise
        self._answered_probe_count += not turn.is_probe

    async def _send_request(
        self,
        request: Request,
        cost_reservation: BudgetReservation,
        turn: RequestTurn,
        until: float | None,
        *,
        may_repeat: bool,
        first_replies: "FirstRepliesCheck",
    ) -> Reply | None:
        """Make one attempt within the limits; return None if it `may_repeat`, and failed because the server is away."""
        timeout = _time_left(self.settings.timeout, until)
        is_first_request = first_replies.note_sent_request()
        try:
            reply = await self.backend.complete(request, timeout)
        except Fault as fault:
            self.budget.faults[fault.kind] += 1
            if fault.kind in UNBILLED_FAULT_KINDS or fault.is_unsent:
                cost_reservation.settle_cost(0.0)
            if fault.kind == "too-large":
                cost_reservation.settle_unbounded_bill()
            run_ending_fault = first_replies.note_fault(fault, is_first_request)
            if run_ending_fault is not None:
                turn.limiter.report_fault(turn, run_ending_fault)
                raise run_ending_fault from None
            is_past_deadline = (
                fault.kind == "timeout"
                and until is not None
                and asyncio.get_running_loop().time() >= until
            )
            if not is_past_deadline and turn.limiter.report_fault(turn, fault) and may_repeat:
                return None
            raise
        first_replies.is_accepted = True
        cost_reservation.settle_cost(self._reply_cost(reply))
        if reply.tokens_in is not None and reply.tokens_out is not None:
            turn.limiter.charge_tokens(turn, reply.tokens_in + reply.tokens_out)
        turn.limiter.report_success(turn)
        return reply

    def _reply_cost(self, reply: Reply) -> float | None:
        return cost(self.price, reply.tokens_in, reply.tokens_out)

    def _cache_replies(self) -> None:
        """Store the replies since the last turn of the loop in the cache, in one transaction."""
        unstored_replies = self._uncached
        self._uncached = {}
        if self.cache is not None and unstored_replies:
            self.cache.put(unstored_replies)


class FirstRepliesCheck:
    """The first replies of a session, by their arrival: whether all are unusable, or rejections for one reason.

    Stored and cached replies are left out: they say nothing about the settings of today. So are faults that are no
    answer to the request, such as a timeout. Rejections arrive before replies; they end a run only if all of the first
    requests sent were rejected, and none that was sent later is accepted before.
    """

    def __init__(self) -> None:
        self._left = MAX_UNUSABLE_FIRST_REPLIES
        self._unread: set[str] = set()
        self._reasons: list[str | None] = []
        """None for a reply that is usable or says nothing of the settings."""
        self._example: tuple[Fault | None, str] = (None, "")
        """The last fault, with its reply. One that names a setting goes before others: those of a second request, which
        quotes the first reply, name none."""
        self._usable_stored = 0
        self._unsent = MAX_UNUSABLE_FIRST_REPLIES
        self._rejections: list[str] = []  # the reasons of the first requests sent
        self.is_accepted = False  # whether the model replied to a request

    def note_sent_request(self) -> bool:
        """Note that a request is sent; return whether it is one of the first."""
        is_first_request = self._unsent > 0
        self._unsent -= is_first_request
        return is_first_request

    def note_arrived_reply(self, call: str) -> None:
        """Note that the reply of a call has arrived."""
        if self._left:
            self._left -= 1
            self._unread.add(call)

    def note_fault(self, fault: Fault, is_first_request: bool) -> Fault | None:
        """Note a request without a reply; return the fault that ends the run if the first ones failed alike.

        Later ones end it, too, as long as none is accepted: a jury in Python may go on after the error. One that was
        never sent, since its text cannot be encoded, says nothing of the server.
        """
        if fault.kind not in REJECTION_FAULT_KINDS or fault.is_unsent:
            self._unsent += is_first_request  # another takes its place
            return None
        reason = fault.code or _NUMBER_OR_ID_PATTERN.sub(
            "0", str(fault)
        )  # of a request, or of its tokens
        if self._left:
            self._left -= 1
            self._reasons.append(reason)
            self._example = fault, ""
        if is_first_request:
            self._rejections.append(reason)
        are_enough_replies_rejected = len(self._rejections) >= MAX_UNUSABLE_FIRST_REPLIES
        if self.is_accepted or not are_enough_replies_rejected or {*self._rejections} != {reason}:
            return None
        return Fault(
            ALL_REJECTED_FAULT_KIND,
            f"all of the first {MAX_UNUSABLE_FIRST_REPLIES} requests failed alike: {self.problem or fault}",
        )

    def note(self, answered_call: AnsweredCall, fault: Fault | None) -> None:
        """Note a reply that was read, with its fault if it cannot be used.

        Raises UnusableRepliesError with the last of the first `MAX_UNUSABLE_FIRST_REPLIES`, if none can be used.
        """
        if answered_call.call.id not in self._unread:
            self._usable_stored += fault is None
            return
        self._unread.remove(answered_call.call.id)
        self._reasons.append(
            None if fault is None or fault.kind not in _ADVICE_BY_FAULT_KIND else fault.kind
        )
        earlier, _ = self._example
        if fault is not None and (fault.setting or earlier is None or not earlier.setting):
            self._example = fault, answered_call.reply.text
        if self.has_ended_run:
            raise UnusableRepliesError(
                f"none of the first {MAX_UNUSABLE_FIRST_REPLIES} replies can be used: {self.problem}"
            )

    @property
    def has_ended_run(self) -> bool:
        """Return whether none of the first replies could be used."""
        return len(self._reasons) >= MAX_UNUSABLE_FIRST_REPLIES and self.problem is not None

    @property
    def problem(self) -> str | None:
        """The fault of a reply so far, with that and what to change, if none could be used; else None."""
        fault, text = self._example
        reasons = set(self._reasons)
        are_all_alike = len(reasons) == 1 or reasons <= _ADVICE_BY_FAULT_KIND.keys()
        if fault is None or None in reasons or not are_all_alike:
            return None
        changes = []
        if fault.setting is not None:
            changes.append(f"write `{setting_as_config_line(fault.setting)}` in the config")
        if self.are_all_requests_rejected:
            advice = "change what the message names, or name another model"
            if fault.kind == CODE_FAULT_KIND:
                advice = "mend the model's code"
            return f"{fault}; {changes[0] if changes else advice}"
        changes.append(_ADVICE_BY_FAULT_KIND[fault.kind])
        example = f"{fault}; such as {shorten(text, _MAX_EXAMPLE_CHARACTERS)!r}"
        # settings with which other replies could be used are not wrong
        return example if self._usable_stored else f"{example}; {', or '.join(changes)}"

    def describe_problem(self, model: str) -> str:
        """Return a sentence on the replies of a model that has a problem, up to the command that comes next."""
        if self.are_all_requests_rejected:
            return f"every request to {model} failed alike: {self.problem}; then"
        if not self._usable_stored:
            return f"no reply of {model} could be used: {self.problem}; then"
        unusable_reply_count = len(self._reasons)
        return (
            f"{unusable_reply_count} of {unusable_reply_count + self._usable_stored} replies of {model} could not be "
            f"used: {self.problem}; to ask for these again"
        )

    @property
    def are_all_requests_rejected(self) -> bool:
        """True if all requests so far were rejected for one reason."""
        reasons = set(self._reasons)
        return len(reasons) == 1 and reasons.isdisjoint((None, *_ADVICE_BY_FAULT_KIND))


class DryRunBackend(Backend):
    """Take the place of a gateway's backend under its names, so that the requests are those which it would get.

    `requests` are all requests so far, by digest; none is sent. Those in the sink or in the gateway's cache have a
    reply; `lacks_reply` is True once one has none.
    """

    is_recording = True  # all that it gives are stored replies
    can_run_tools = False
    can_repeat_tools = True

    def __init__(self, gateway: Gateway, sink: CallSink | None) -> None:
        self.provider, self.endpoint, self.model = gateway.identity
        self.capabilities = gateway.backend.capabilities
        self.own_parameters = gateway.backend.own_parameters
        self.requests: dict[str, Request] = {}
        self.lacks_reply = False
        self._gateway = gateway
        self._sink = sink

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Record the request; return its stored reply, or raise `Fault` of kind `unrecorded` if there is none."""
        self.requests[request.digest] = request
        if (stored := self._gateway.find_stored(request, self._sink)) is not None:
            return stored.reply
        self.lacks_reply = True
        raise Fault("unrecorded", "the request was noted and not sent")

    def find_lookup(self, key: str) -> StoredLookup | None:
        return None if self._sink is None else self._sink.find_lookup(key)


def make_call_record(request: Request, **fields: Any) -> Call:
    return Call(
        id=request.digest,
        provider=request.provider,
        model=request.model,
        endpoint=request.endpoint,
        parameters=request.parameters,
        prompt=request.prompt,
        prompt_version=request.prompt_version,
        **fields,
    )


def setting_as_config_line(setting: str) -> str:
    """Return a setting, such as `calls.form: instructed`, as one line of YAML: `calls: {form: instructed}`."""
    section, _, rest = setting.partition(".")
    return f"{section}: {{{rest}}}"


def request_byte_count(request: Request) -> int:
    """Return the bytes of all that the model reads: its messages, and a schema that a provider may add to them."""
    size = message_byte_count(request)
    if request.form == "native" and request.answer is not None:
        size += len(canonical_json(request.answer))
    if request.investigation is not None:
        size += len(canonical_json(request.investigation.to_chat()))
    return size


def message_byte_count(request: Request) -> int:
    """Return the bytes of the messages alone."""
    return sum(
        len(piece.encode("utf-8", "replace"))
        for message in request.messages
        for piece in split_into_pieces(message.content)
    )


def _time_left(timeout: float, until: float | None) -> float:
    if until is None:
        return timeout
    seconds_left = until - asyncio.get_running_loop().time()
    if seconds_left <= 0:
        raise make_deadline_fault()
    return min(timeout, seconds_left)


class Gateways(dict[str | None, Gateway]):
    """The gateway to the config's `model` under None, if it has one, and those to its `models` by their names.

    Each has limits, a cache, a price and a record of its own; they share one budget. Empty without any model.
    """

    @property
    def budget(self) -> Budget:
        """Return the budget of all. Raises StopIteration without any model."""
        return next(iter(self.values())).budget

    def divide_rate_limits(self, number: int) -> None:
        """Keep 1 / `number` of all rates; so many processes send to the same servers."""
        for gateway in self.values():
            gateway._limiter.divide_rate_limits(number)

    def note_earlier_answers(self, replied: Iterable[ModelAddress]) -> None:
        """Note the models of an earlier process that replied to calls, so that even their first outage is waited for.

        No more are read than show all.
        """
        identities = {gateway.identity for gateway in self.values()}
        answered_identities = set()
        for identity in replied:
            answered_identities.add(identity)
            if identities <= answered_identities:
                break
        for gateway in self.values():
            if gateway.identity in answered_identities:
                gateway._limiter.has_answered = True

    @property
    def outage(self) -> str | None:
        """The outage that requests wait for (see `RequestLimiter.outage`)."""
        return next(filter(None, (gateway._limiter.outage for gateway in self.values())), None)

    @property
    def is_recording(self) -> bool:
        """True if there are models and every one is a recording, so that nothing is sent."""
        return bool(self) and all(gateway.backend.is_recording for gateway in self.values())

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(gateway.backend.secrets for gateway in self.values()))

    @property
    def problems(self) -> dict[str, bool]:
        """Return a sentence on each model of which no reply to a request could be used, or all requests were rejected.

        Its value is True where there are replies, which a run that is branched from this one would reuse.
        """
        sentences = {}
        for name, gateway in self.items():
            first = gateway.first_replies
            if first.problem is None:
                continue
            model = "the model" if name is None else f"judge {name}"
            sentences[first.describe_problem(model)] = not first.are_all_requests_rejected
        return sentences

    def model_name_of(self, request: Request | Call) -> str | None:
        """Return the name of the model that a request is for; of two with one model, that whose parameters it has.

        A request to none of these models, such as one of another run, is taken for one to the config's `model`.
        """
        if len(self) == 1:
            return next(iter(self))
        identity = request.provider, request.endpoint, request.model
        matching_counts = {
            name: sum(
                request.parameters.get(key) == set_value
                for key, set_value in gateway.settings.parameters.items()
            )
            for name, gateway in self.items()
            if gateway.identity == identity
        }
        return max(matching_counts, key=matching_counts.__getitem__, default=None)

    def make_dry_run_gateways(
        self, concurrency: int, sink: CallSink | None = None
    ) -> "tuple[list[DryRunBackend], Gateways]":
        backends = []
        gateways = Gateways()
        for name, gateway in self.items():
            backend, gateways[name] = gateway.make_dry_run_gateway(concurrency, sink)
            backends.append(backend)
        return backends, gateways

    def stop(self) -> None:
        for gateway in self.values():
            gateway.budget.stop()

    async def wait_for_pending(self) -> None:
        for gateway in self.values():
            await gateway.wait_for_pending()

    async def close(self) -> None:
        """Cancel requests under way, and close all backends; then raise the first error of one."""
        errors = []
        for gateway in self.values():
            try:
                await gateway.close()
            except Exception as error:  # noqa: BLE001 - the other backends are closed as well
                errors.append(error)
        if errors:
            raise errors[0]


NO_GATEWAYS = Gateways({})
