"""Stored replies of the gateway, redaction of what it stores, and its shutdown."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jurygraph.errors import UnusableRepliesError
from jurygraph.models.backend import EndpointCapabilities
from jurygraph.models.cache import Cache
from jurygraph.models.gateway import (
    MAX_UNUSABLE_FIRST_REPLIES,
    FirstRepliesCheck,
    Gateway,
    Gateways,
)
from jurygraph.models.limits import Price, RequestLimiter
from jurygraph.models.request import AnsweredCall, Fault, Reply, Request
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Call, CallsConfig, Message
from tests.models.test_gateway import Kept
from tests.models.test_token_limit import Bills, make_request
from tests.virtual_time import run

T = TypeVar("T")
SECRET = "sk-0123456789abcdef"
ONCE = CallsConfig(attempts=1)


def with_gateway(
    do: Callable[[Gateway], Awaitable[T]], backend: Bills | None = None, **parts: Any
) -> T:
    async def whole() -> T:
        gateway = Gateway(backend or Bills(11, 7), RequestLimiter(4), ONCE, **parts)  # type: ignore[arg-type]
        try:
            return await do(gateway)
        finally:
            await gateway.close()

    return run(whole())


async def sources_before_and_after(
    gateway: Gateway, sink: Kept | None = None
) -> tuple[str | None, ...]:
    before = gateway.find_reply_source(make_request(), sink)
    await gateway.ask(make_request(), sink=sink)
    await asyncio.sleep(0)  # what came is put into the cache on the next turn of the loop
    return (
        before,
        gateway.find_reply_source(make_request(), sink),
        gateway.find_reply_source(make_request("another"), sink),
    )


def test_a_cached_reply_is_used_until_deleted(tmp_path: Path) -> None:
    assert with_gateway(sources_before_and_after, cache=Cache(tmp_path)) == (None, "cache", None)

    async def forgotten(gateway: Gateway) -> tuple[str | None, ...]:
        before = gateway.find_reply_source(make_request())
        gateway.drop_from_cache(make_request().digest)
        return before, gateway.find_reply_source(make_request())

    assert with_gateway(forgotten, cache=Cache(tmp_path)) == ("cache", None)


def test_an_entry_deleted_at_once_never_enters_the_cache(tmp_path: Path) -> None:
    async def forgotten(gateway: Gateway) -> bool:
        await gateway.ask(make_request())
        gateway.drop_from_cache(make_request().digest)
        await asyncio.sleep(0)
        return gateway.find_reply_source(make_request()) is not None

    assert not with_gateway(forgotten, cache=Cache(tmp_path))
    with_gateway(lambda gateway: gateway.ask(make_request("closed at once")), cache=Cache(tmp_path))
    assert with_gateway(sources_before_and_after, cache=Cache(tmp_path))[0] is None
    kept = with_gateway(lambda gateway: _known(gateway, "closed at once"), cache=Cache(tmp_path))
    assert kept, "what came last is put away when the gateway is closed"


def test_a_reply_that_the_sink_has_is_not_asked_for_again() -> None:
    sink = Kept()
    backend = Bills(11, 7)
    answered = with_gateway(lambda gateway: gateway.ask(make_request(), sink=sink), backend)
    backend.reply = backend.reply.model_copy(update={"text": "another"})
    assert with_gateway(lambda gateway: gateway.ask(make_request(), sink=sink), backend) == answered
    assert sink.times == 1


@pytest.mark.parametrize("field", ["text", "finish", "refusal", "served"])
def test_a_secret_is_redacted_wherever_a_server_echoes_it(field: str) -> None:
    class Echoes(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            return Reply.model_validate({"text": "yes", field: f"it is {SECRET}"})

    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Echoes(1, 1))
    assert answered.reply == Reply.model_validate({"text": "yes", field: "it is [redacted]"})


def test_a_redactor_that_is_given_decides_what_is_redacted() -> None:
    backend = Bills(1, 1)
    backend.reply = Reply(text=f"it is {SECRET}")
    answered = with_gateway(
        lambda gateway: gateway.ask(make_request()), backend, redactor=Redactor((SECRET,))
    )
    assert answered.reply.text == "it is [redacted]"


def test_a_secret_in_a_fault_is_redacted_and_the_errors_behind_it_are_left_out() -> None:
    class Refuses(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            raise Fault("unauthorised", f"the key {SECRET} is not known") from ValueError(SECRET)

    with pytest.raises(Fault, match=r"^the key \[redacted\] is not known$") as caught:
        with_gateway(lambda gateway: gateway.ask(make_request()), backend=Refuses(1, 1))
    assert (caught.value.kind, caught.value.attempts, caught.value.__cause__) == (
        "unauthorised",
        1,
        None,
    )


def test_a_request_with_a_secret_is_sent_unchanged_and_stored_redacted(tmp_path: Path) -> None:
    sent: list[Request] = []
    kept: list[Request] = []

    class Listens(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            sent.append(request)
            return await super().complete(request, timeout)

    class Store(Kept):
        async def store(self, request: Request, answered: AnsweredCall) -> None:
            kept.append(request)

    messages = (
        Message(role="system", content="Grade."),
        Message(role="user", content=f"Is {SECRET} a prime?"),
    )
    clean = (messages[0], Message(role="user", content="Is [redacted] a prime?"))
    request = make_request(messages=messages)
    for _ in range(2):  # the second time it comes from the cache
        with_gateway(
            lambda gateway: gateway.ask(request, sink=Store()), Listens(1, 1), cache=Cache(tmp_path)
        )
    assert sent == [request]
    assert [(one.messages, one.model) for one in kept] == [(clean, request.model)] * 2


def test_wait_for_pending_waits_for_failing_requests_too() -> None:
    class Fails(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            await asyncio.sleep(0.02 if "first" in request.messages[0].content else 0.04)
            ended.append(request)
            raise Fault("rejected", "no")

    async def leave(gateway: Gateway) -> int:
        asking = [
            asyncio.create_task(gateway.ask(make_request(text))) for text in ("first", "second")
        ]
        await asyncio.sleep(0)
        for one in asking:
            one.cancel()
        await gateway.wait_for_pending()
        return len(ended)

    ended: list[Request] = []
    assert with_gateway(leave, backend=Fails(1, 1)) == 2


def test_the_backend_is_closed_after_all_requests_have_ended() -> None:
    events: list[str] = []

    class Lingers(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            try:
                await asyncio.sleep(60.0)
            finally:
                await asyncio.sleep(0.02)
                events.append("ended")
            return self.reply

        async def close(self) -> None:
            events.append("closed")

    async def leave(gateway: Gateway) -> None:
        asking = asyncio.create_task(gateway.ask(make_request()))
        await asyncio.sleep(0.01)
        await gateway.close()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with_gateway(leave, backend=Lingers(1, 1))
    assert events == ["ended", "closed", "closed"]


async def _known(gateway: Gateway, text: str) -> bool:
    return gateway.find_reply_source(make_request(text)) is not None


def test_a_call_records_its_request_its_model_and_its_cost() -> None:
    request = make_request(
        prompt="primes", prompt_version="2", endpoint="http://e", parameters={"seed": 1}
    )
    answered = with_gateway(
        lambda gateway: gateway.ask(request), price=Price(input=1.0, output=10.0)
    )
    call = answered.call.model_dump()
    assert call.pop("latency") >= 0.0
    assert call == {
        "id": request.digest,
        "provider": "p",
        "model": "m",
        "served": None,
        "endpoint": "http://e",
        "parameters": {"seed": 1},
        "prompt": "primes",
        "prompt_version": "2",
        "tokens_in": 11,
        "tokens_out": 7,
        "cost": (11 * 1.0 + 7 * 10.0) / 1_000_000,
        "cache_hit": False,
        "attempts": 1,
        "fault": None,
    }


# A run whose first replies are all unusable stops

PROSE = Fault("malformed", "the reply is not valid JSON")


def answered(number: int) -> AnsweredCall:
    return AnsweredCall(
        Reply(text=f"It is fine, no. {number}."), Call(id=f"c{number}", provider="p", model="m")
    )


def read(first: FirstRepliesCheck, *faults: Fault | None) -> None:
    """Let a reply with each of these faults arrive and be read."""
    for number, fault in enumerate(faults):
        first.note_arrived_reply(f"c{number}")
        first.note(answered(number), fault)


def test_twenty_unusable_replies_end_the_run_with_one_of_them_and_what_to_change() -> None:
    first = FirstRepliesCheck()
    read(first, *[PROSE] * (MAX_UNUSABLE_FIRST_REPLIES - 1))
    first.note_arrived_reply("c19")
    with pytest.raises(UnusableRepliesError) as stopped:
        first.note(answered(19), PROSE)
    assert str(stopped.value) == (
        "none of the first 20 replies can be used: the reply is not valid JSON; such as 'It is fine, no. 19.'; set "
        "calls.form (native or instructed), raise calls.max_tokens, or name another model"
    )


def test_a_reply_that_names_a_setting_is_the_example() -> None:
    """The reply to a second request, which quotes the first reply, names none."""
    first = FirstRepliesCheck()
    readable = Fault("malformed", "the reply is not valid JSON")
    readable.setting = "calls.reply: one-object"
    read(first, PROSE, readable, PROSE)
    assert first.problem is not None
    assert "no. 1.'; write `calls: {reply: one-object}` in the config, or set" in first.problem


def test_replies_that_are_unusable_for_several_reasons_end_the_run_as_well() -> None:
    first = FirstRepliesCheck()
    with pytest.raises(UnusableRepliesError):
        read(first, *[PROSE, Fault("truncated", "cut off")] * MAX_UNUSABLE_FIRST_REPLIES)


def test_a_server_that_cuts_every_prompt_ends_the_run() -> None:
    with pytest.raises(UnusableRepliesError, match="raise the context length of its server, or"):
        read(FirstRepliesCheck(), *[Fault("overflowed", "cut")] * MAX_UNUSABLE_FIRST_REPLIES)


@pytest.mark.parametrize("other", [None, Fault("server", "503")])
def test_one_other_reply_lets_the_run_go_on(other: Fault | None) -> None:
    for place in (0, 7, MAX_UNUSABLE_FIRST_REPLIES - 1):
        first = FirstRepliesCheck()
        faults: list[Fault | None] = [PROSE] * 40
        faults[place] = other
        read(first, *faults)
        assert first.problem is None


def test_only_the_first_to_arrive_are_looked_at_and_stored_ones_never() -> None:
    first = FirstRepliesCheck()
    for number in range(100, 150):
        first.note(answered(number), PROSE)
    assert first.problem is None
    for number in range(MAX_UNUSABLE_FIRST_REPLIES):
        first.note_arrived_reply(f"c{number}")
    first.note_arrived_reply("c99")
    first.note(answered(99), None)
    for number in range(MAX_UNUSABLE_FIRST_REPLIES - 1):
        first.note(answered(number), PROSE)
    with pytest.raises(UnusableRepliesError):
        first.note(answered(MAX_UNUSABLE_FIRST_REPLIES - 1), PROSE)


def test_rejections_end_the_run_until_one_request_is_accepted() -> None:
    def rejection(is_unsent: bool = False) -> Fault:
        fault = Fault("rejected", "400: no such field")
        fault.is_unsent = is_unsent
        return fault

    def send(fault: Fault) -> Fault | None:
        return first.note_fault(fault, first.note_sent_request())

    first = FirstRepliesCheck()
    unsent = [send(rejection(is_unsent=True)) for _ in range(2 * MAX_UNUSABLE_FIRST_REPLIES)]
    late = [send(Fault("timeout", "no reply")) for _ in range(2 * MAX_UNUSABLE_FIRST_REPLIES)]
    ends = [send(rejection()) for _ in range(MAX_UNUSABLE_FIRST_REPLIES + 1)]
    assert unsent == late == [None] * 2 * MAX_UNUSABLE_FIRST_REPLIES
    assert [end is not None for end in ends] == [False] * (MAX_UNUSABLE_FIRST_REPLIES - 1) + [
        True,
        True,
    ]
    first.is_accepted = True
    assert send(rejection()) is None


def test_all_backends_are_closed_though_one_cannot_be() -> None:
    closed: list[str] = []

    class Closes(Bills):
        def __init__(self, name: str) -> None:
            super().__init__(1, 1)
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)
            if self.name == "first":
                raise OSError("it is gone")

    gateways = Gateways(
        {name: Gateway(Closes(name), RequestLimiter(1), ONCE) for name in ("first", "second")}
    )
    with pytest.raises(OSError, match="it is gone"):
        run(gateways.close())
    assert closed == ["first", "second"]


class Named(Bills):
    """A backend that has the provider of `make_request`, and this model."""

    provider = "p"
    endpoint = None
    capabilities = EndpointCapabilities("text")
    own_parameters = None

    def __init__(self, model: str) -> None:
        super().__init__(1, 1)
        self.model = model


def gateway_of(model: str, **parameters: Any) -> Gateway:
    return Gateway(
        Named(model), RequestLimiter(1), ONCE.model_copy(update={"parameters": parameters})
    )  # type: ignore[arg-type]


def test_a_call_is_billed_to_the_model_that_it_names_and_of_two_to_the_one_with_its_parameters() -> (
    None
):
    gateways = Gateways(
        {None: gateway_of("m"), "seeded": gateway_of("m", seed=1), "other": gateway_of("n")}
    )
    requests = [
        make_request(),
        make_request(parameters={"seed": 1}),
        make_request(model="n"),
        make_request(model="?"),
    ]
    assert [gateways.model_name_of(request) for request in requests] == [
        None,
        "seeded",
        "other",
        None,
    ]
    assert Gateways({"only": gateway_of("n")}).model_name_of(make_request(model="?")) == "only"


def test_an_earlier_process_shows_of_each_model_by_itself_that_its_server_answers() -> None:
    limiters = {name: RequestLimiter(1) for name in ("m", "n", "o")}
    gateways = Gateways(
        {name: Gateway(Named(name), limiter, ONCE) for name, limiter in limiters.items()}  # type: ignore[arg-type]
    )
    gateways.note_earlier_answers(gateways[name].identity for name in ("n", "n"))
    answered = {name: limiter.has_answered for name, limiter in limiters.items()}
    assert answered == {"m": False, "n": True, "o": False}


def test_a_dry_run_of_all_models_has_the_replies_that_the_run_stored() -> None:
    kept = Kept()

    async def note() -> None:
        gateways = Gateways({name: gateway_of(name) for name in ("m", "n")})
        await gateways["m"].ask(make_request(), sink=kept)
        backends, dry = gateways.make_dry_run_gateways(4, kept)
        assert (await dry["m"].ask(make_request())).reply.text == "yes"
        with pytest.raises(Fault, match="noted and not sent"):
            await dry["n"].ask(make_request(model="n"))
        assert [(backend.model, backend.lacks_reply) for backend in backends] == [
            ("m", False),
            ("n", True),
        ]

    run(note())
