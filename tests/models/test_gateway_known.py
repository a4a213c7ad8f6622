"""Stored replies of the gateway, redaction of what it stores, and its shutdown."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from jurygraph.models.budget import Budget, Price
from jurygraph.models.cache import Cache
from jurygraph.models.faults import Fault
from jurygraph.models.gateway import Gateway, RequestLimits
from jurygraph.models.limiter import Limiter, LimiterTurn
from jurygraph.models.request import AnsweredCall, Reply, Request, Token
from jurygraph.models.retries import RetryPolicy
from jurygraph.schema import Message
from tests.models.test_gateway import Kept
from tests.models.test_token_limit import Bills, make_request
from tests.virtual_time import run

T = TypeVar("T")
SECRET = "sk-0123456789abcdef"
ONCE = RequestLimits(retries=RetryPolicy(1, 0.0, 0.0))


def with_gateway(do: Callable[[Gateway], Awaitable[T]], backend: Bills | None = None, **parts: Any) -> T:
    async def whole() -> T:
        gateway = Gateway(backend or Bills(11, 7), Limiter(4), ONCE, **parts)  # type: ignore[arg-type]
        try:
            return await do(gateway)
        finally:
            await gateway.close()

    return run(whole())


async def sources_before_and_after(gateway: Gateway, sink: Kept | None = None) -> tuple[str | None, ...]:
    before = gateway.reply_source(make_request(), sink)
    await gateway.ask(make_request(), sink=sink)
    await asyncio.sleep(0)  # what came is put into the cache on the next turn of the loop
    return before, gateway.reply_source(make_request(), sink), gateway.reply_source(make_request("another"), sink)


def test_a_cached_reply_is_used_until_deleted(tmp_path: Path) -> None:
    assert with_gateway(sources_before_and_after, cache=Cache(tmp_path)) == (None, "cache", None)

    async def forgotten(gateway: Gateway) -> tuple[str | None, ...]:
        before = gateway.reply_source(make_request())
        gateway.drop_from_cache(make_request().digest)
        return before, gateway.reply_source(make_request())

    assert with_gateway(forgotten, cache=Cache(tmp_path)) == ("cache", None)


def test_a_call_that_the_cache_answered_took_no_time_and_no_attempt(tmp_path: Path) -> None:
    for _ in range(2):
        answered = with_gateway(lambda gateway: gateway.ask(make_request()), cache=Cache(tmp_path))
    assert (answered.call.cache_hit, answered.call.attempts, answered.call.latency) == (True, 0, 0.0)


def test_an_entry_deleted_at_once_never_enters_the_cache(tmp_path: Path) -> None:
    async def forgotten(gateway: Gateway) -> bool:
        await gateway.ask(make_request())
        gateway.drop_from_cache(make_request().digest)
        await asyncio.sleep(0)
        return gateway.reply_source(make_request()) is not None

    assert not with_gateway(forgotten, cache=Cache(tmp_path))
    with_gateway(lambda gateway: gateway.ask(make_request("closed at once")), cache=Cache(tmp_path))
    assert with_gateway(sources_before_and_after, cache=Cache(tmp_path))[0] is None
    kept = with_gateway(lambda gateway: _known(gateway, "closed at once"), cache=Cache(tmp_path))
    assert kept, "what came last is put away when the gateway is closed"


def test_a_cached_reply_is_recorded_like_a_new_one(tmp_path: Path) -> None:
    recorded: list[tuple[Request, Reply, float | None]] = []
    recorder = SimpleNamespace(add=lambda *given: recorded.append(given), close=lambda: recorded.append(("closed",)))  # type: ignore[arg-type]

    async def twice(gateway: Gateway) -> list[AnsweredCall]:
        return [await gateway.ask(make_request(), sink=kept) for _ in range(2)]

    kept = Kept()
    price = Price(input=1.0, output=10.0)
    first, again = with_gateway(twice, recorder=recorder, price=price)
    expected = (make_request(), first.reply, first.call.cost)
    assert recorded == [expected, expected, ("closed",)]
    assert again == first


def test_the_latency_is_the_time_from_the_question_to_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            clock.append(13.0)
            return await super().complete(request, timeout)

    clock = [10.0]
    monkeypatch.setattr("jurygraph.models.gateway.monotonic", lambda: clock[-1])
    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Slow(1, 1))
    assert answered.call.latency == 3.0


@pytest.mark.parametrize("secret_in", ["text", "tokens"])
def test_an_echoed_secret_is_stored_nowhere_and_tokens_are_dropped(secret_in: str) -> None:
    class Echoes(Bills):
        secrets = ("sk-0123456789abcdef",)

        async def complete(self, request: Request, timeout: float) -> Reply:
            text = "sk-0123456789abcdef"
            tokens = tuple(Token(text=part, logprob=-0.1) for part in (text[:5], text[5:], " yes"))
            return Reply(text=text if secret_in == "text" else "yes", tokens=tokens, served="tiny")

    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Echoes(1, 1))
    assert answered.reply.tokens == ()
    assert answered.reply.served == "tiny"
    assert "0123456789abcdef" not in answered.reply.model_dump_json()


def test_tokens_without_a_secret_are_kept() -> None:
    tokens = (Token(text="yes", logprob=-0.1, others=(("no", -2.5),)),)

    class Spells(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            return Reply(text="yes", tokens=tokens)

    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Spells(1, 1))
    assert answered.reply == Reply(text="yes", tokens=tokens)


def test_a_secret_among_alternative_tokens_is_not_stored() -> None:
    class Considers(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            considered = (SECRET, -2.5), ("no", -3.5)
            return Reply(text="yes", tokens=(Token(text="yes", logprob=-0.1, others=considered),))

    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Considers(1, 1))
    assert answered.reply == Reply(text="yes")


@pytest.mark.parametrize("field", ["text", "finish", "refusal", "served"])
def test_a_secret_is_redacted_wherever_a_server_echoes_it(field: str) -> None:
    class Echoes(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            return Reply.model_validate({"text": "yes", field: f"it is {SECRET}"})

    answered = with_gateway(lambda gateway: gateway.ask(make_request()), backend=Echoes(1, 1))
    assert answered.reply == Reply.model_validate({"text": "yes", field: "it is [redacted]"})


def test_a_secret_in_a_fault_is_redacted_and_the_errors_behind_it_are_left_out() -> None:
    class Refuses(Bills):
        secrets = (SECRET,)

        async def complete(self, request: Request, timeout: float) -> Reply:
            raise Fault("unauthorised", f"the key {SECRET} is not known") from ValueError(SECRET)

    with pytest.raises(Fault, match=r"^the key \[redacted\] is not known$") as caught:
        with_gateway(lambda gateway: gateway.ask(make_request()), backend=Refuses(1, 1))
    assert (caught.value.kind, caught.value.attempts, caught.value.__cause__) == ("unauthorised", 1, None)


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

    messages = (Message(role="system", content="Grade."), Message(role="user", content=f"Is {SECRET} a prime?"))
    clean = (messages[0], Message(role="user", content="Is [redacted] a prime?"))
    request = make_request(messages=messages)
    for _ in range(2):  # the second time it comes from the cache
        with_gateway(lambda gateway: gateway.ask(request, sink=Store()), Listens(1, 1), cache=Cache(tmp_path))
    assert sent == [request]
    assert [(one.messages, one.model) for one in kept] == [(clean, request.model)] * 2


def test_wait_for_pending_waits_for_failing_requests_too() -> None:
    class Fails(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            await asyncio.sleep(0.02 if "first" in request.messages[0].content else 0.04)
            ended.append(request)
            raise Fault("rejected", "no")

    async def leave(gateway: Gateway) -> int:
        asking = [asyncio.create_task(gateway.ask(make_request(text))) for text in ("first", "second")]
        await asyncio.sleep(0)
        for one in asking:
            one.cancel()
        await gateway.wait_for_pending()
        return len(ended)

    ended: list[Request] = []
    assert with_gateway(leave, backend=Fails(1, 1)) == 2


@pytest.mark.parametrize("how", ["left alone", "closed"])
def test_an_abandoned_call_ends_silently(how: str) -> None:
    class Fails(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            await asyncio.sleep(0.01)
            raise Fault("rejected", "no")

    async def leave(gateway: Gateway) -> list[Any]:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        asking = asyncio.create_task(gateway.ask(make_request()))
        await asyncio.sleep(0)
        asking.cancel()
        await (gateway.close() if how == "closed" else asyncio.sleep(0.05))
        await asyncio.sleep(0)
        gc.collect()  # a task whose error nobody has read complains once it is gone
        return complaints

    assert with_gateway(leave, backend=Fails(1, 1)) == []


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


def test_wait_for_pending_waits_for_requests_under_way() -> None:
    kept = Kept()

    class Slow(Bills):
        async def complete(self, request: Request, timeout: float) -> Reply:
            await asyncio.sleep(0.02)
            return await super().complete(request, timeout)

    async def leave(gateway: Gateway) -> int:
        asking = asyncio.create_task(gateway.ask(make_request(), sink=kept))
        await asyncio.sleep(0)
        asking.cancel()
        await gateway.wait_for_pending()
        return kept.times

    assert with_gateway(leave, backend=Slow(1, 1)) == 1


def test_a_turn_that_comes_too_late_reserves_nothing() -> None:
    class Late(Limiter):
        @asynccontextmanager
        async def turn(self, tokens: int, until: float | None = None) -> AsyncIterator[LimiterTurn]:
            assert until is not None
            async with super().turn(tokens) as turn:
                await asyncio.sleep(until - asyncio.get_running_loop().time() + 0.01)
                yield turn

    async def ask(budget: Budget) -> None:
        gateway = Gateway(Bills(1, 1), Late(1), ONCE, budget=budget)  # type: ignore[arg-type]
        with pytest.raises(Fault) as caught:
            await gateway.ask(make_request(), asyncio.get_running_loop().time() + 0.01)
        assert caught.value.kind == "deadline"
        await gateway.close()

    budget = Budget()
    run(ask(budget))
    assert budget.calls == 0


async def _known(gateway: Gateway, text: str) -> bool:
    return gateway.reply_source(make_request(text)) is not None


def test_a_call_records_its_request_its_model_and_its_cost() -> None:
    request = make_request(prompt="primes", prompt_version="2", endpoint="http://e", parameters={"seed": 1})
    answered = with_gateway(lambda gateway: gateway.ask(request), price=Price(input=1.0, output=10.0))
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
    }
