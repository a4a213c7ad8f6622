"""The gateway before a real server: stored replies are reused, equal requests are sent once, within every limit."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend
from jurygraph.models.cache import Cache
from jurygraph.models.gateway import (
    MAX_UNUSABLE_FIRST_REPLIES,
    Gateway,
    make_call_record,
)
from jurygraph.models.limits import (
    MAX_TEMPLATE_TOKENS_PER_MESSAGE,
    Budget,
    Price,
    RequestLimiter,
    RetryPolicy,
)
from jurygraph.models.request import AnsweredCall, Fault, Reply, Request
from jurygraph.schema import Call, CallsConfig, Message
from jurygraph.testing import ScriptedJudge
from tests.models.server import (
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    cut_off,
    hang,
    huge,
    nobody,
    raw_body,
    reply_with,
    reset,
    run_server,
    status,
)
from tests.models.test_token_limit import Bills
from tests.virtual_time import now, pass_time_later, run, run_held

T = TypeVar("T")
PRICE = Price(input=1.0, output=10.0)
COST = (TOKENS_IN * PRICE.input + TOKENS_OUT * PRICE.output) / 1_000_000
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}},
    "required": ["met"],
}
LONG = 20.0
"""Seconds of a held clock: what ends earlier does so because a test let time pass."""


def make_request(text: str = "Is 7 a prime?", **fields: Any) -> Request:
    """Return a request; equal arguments give an equal one."""
    stated: dict[str, Any] = {
        "provider": "openai-compatible",
        "model": "tiny",
        "messages": (Message(role="user", content=text),),
        "parameters": {"temperature": 0.0},
        "answer": SCHEMA,
        "form": "native",
        "prompt": "primes",
        "prompt_version": "1",
    }
    return Request(**{**stated, **fields})


@asynccontextmanager
async def request_from_gateway(
    url: str,
    *,
    attempts: int = 3,
    concurrency: int = 64,
    timeout: float = LONG,
    **parts: Any,
) -> AsyncIterator[Gateway]:
    """Return a gateway whose retries follow at once, except after a Retry-After."""
    gateway = Gateway(
        OpenAICompatibleBackend(url, "tiny"),
        RequestLimiter(concurrency),
        CallsConfig(timeout=timeout, max_tokens=16),
        retry_policy=RetryPolicy(attempts, 0.0, 0.0),
        **parts,
    )
    try:
        yield gateway
    finally:
        await gateway.close()


def with_gateway(url: str, do: Callable[[Gateway], Awaitable[T]], **parts: Any) -> T:
    """Return the result of a function of a new gateway."""

    async def whole() -> T:
        async with request_from_gateway(url, **parts) as gateway:
            return await do(gateway)

    return run_held(whole())


async def fault_of(asking: Awaitable[object]) -> Fault:
    with pytest.raises(Fault) as caught:
        await asking
    return caught.value


class Kept:
    """A run store in memory; `stored` is set once it has a reply."""

    def __init__(self) -> None:
        self.calls: dict[str, AnsweredCall] = {}
        self.times = 0
        self.stored = asyncio.Event()

    def find(self, key: str) -> AnsweredCall | None:
        return self.calls.get(key)

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        self.times += 1
        self.calls[request.digest] = answered
        self.stored.set()


def yes(body: Mapping[str, Any], number: int) -> Answer:
    return reply_with("yes")


class TestAskedOnce:
    def test_twenty_identical_requests_in_flight_are_one_call(self) -> None:
        kept = Kept()
        with run_server(lambda body, number: reply_with(f"reply {number}")) as server:
            answers = with_gateway(
                server.url,
                lambda gateway: asyncio.gather(
                    *(gateway.ask(make_request(), sink=kept) for _ in range(20))
                ),
            )
        assert server.count == 1
        assert {answered.reply.text for answered in answers} == {"reply 1"}
        assert {answered.call.id for answered in answers} == {make_request().digest}
        assert kept.times == 1

    def test_no_request_waits_until_the_reply_to_another_is_durable(self) -> None:
        class SteadyJudge(ScriptedJudge):
            async def complete(self, request: Request, timeout: float) -> Reply:
                await asyncio.sleep(1.2 if "1" in request.messages[0].content else 1.0)
                return await super().complete(request, timeout)

        class Slow(Kept):
            async def store(self, request: Request, answered: AnsweredCall) -> None:
                await asyncio.sleep(0.1)
                await super().store(request, answered)

        async def ask_all() -> float:
            gateway = Gateway(SteadyJudge({"": True}), RequestLimiter(2), CallsConfig(timeout=LONG))
            requests = [make_request(f"Is {number} a prime?") for number in range(4)]
            kept = Slow()
            await asyncio.gather(*(gateway.ask(request, sink=kept) for request in requests))
            assert set(kept.calls) == {request.digest for request in requests}
            return now()

        assert run(ask_all()) == pytest.approx(2.3)

    def test_every_sink_stores_the_reply_before_its_caller_has_it(self) -> None:
        sinks = [Kept(), Kept()]
        with run_server(lambda body, number: reply_with(f"reply {number}")) as server:
            answers = with_gateway(
                server.url,
                lambda gateway: asyncio.gather(
                    *(gateway.ask(make_request(), sink=sink) for sink in sinks * 2)
                ),
            )
        assert [sink.calls[make_request().digest] for sink in sinks * 2] == answers
        assert [sink.times for sink in sinks] == [1, 1]

    def test_equal_requests_one_after_another_come_from_the_cache_and_bill_nothing(
        self, tmp_path: Path
    ) -> None:
        budget = Budget()

        async def thrice(gateway: Gateway) -> list[AnsweredCall]:
            return [await gateway.ask(make_request()) for _ in range(3)]

        with run_server(yes) as server:
            first, *others = with_gateway(
                server.url, thrice, cache=Cache(tmp_path), price=PRICE, budget=budget
            )
        assert server.count == 1
        assert (first.call.cache_hit, first.call.attempts, first.call.cost) == (False, 1, COST)
        assert [
            (one.reply, one.call.cache_hit, one.call.attempts, one.call.cost) for one in others
        ] == [(first.reply, True, 0, COST)] * 2
        assert (budget.calls, budget.spent) == (1, COST)

    def test_a_fault_is_not_remembered(self, tmp_path: Path) -> None:
        async def twice(gateway: Gateway) -> tuple[Fault, AnsweredCall]:
            return await fault_of(gateway.ask(make_request(), sink=kept)), await gateway.ask(
                make_request(), sink=kept
            )

        kept = Kept()
        with run_server(
            lambda body, number: status(400) if number == 1 else reply_with("yes")
        ) as server:
            fault, answered = with_gateway(server.url, twice, cache=Cache(tmp_path))
        assert server.count == 2
        assert (fault.kind, answered.reply.text, kept.times) == ("rejected", "yes", 1)


class TestTryingAgain:
    def test_a_permanent_429_with_three_attempts_is_exactly_three_requests(self) -> None:
        with run_server(lambda body, number: status(429, {"retry-after-ms": "0"})) as server:
            fault = with_gateway(
                server.url, lambda gateway: fault_of(gateway.ask(make_request())), attempts=3
            )
        assert server.count == 3
        assert (fault.kind, fault.cause, fault.attempts) == ("rate-limit", "infrastructure", 3)

    @pytest.mark.parametrize(
        "fault",
        [
            status(500),
            status(503),
            status(429, {"retry-after-ms": "0"}),
            cut_off(),
            reset(),
            raw_body("no JSON"),
            reply_with("half", finish="abort"),
        ],
        ids=["500", "503", "429", "cut", "reset", "unreadable", "aborted"],
    )
    def test_a_retryable_fault_is_sent_again_and_the_call_counts_attempts(
        self, fault: Answer
    ) -> None:
        with run_server(lambda body, number: fault if number == 1 else reply_with("yes")) as server:
            budget = Budget()
            answered = with_gateway(
                server.url, lambda gateway: gateway.ask(make_request()), budget=budget
            )
        assert server.count == budget.calls == 2
        assert budget.faults.total() == 1
        assert (answered.reply.text, answered.call.attempts, answered.call.cache_hit) == (
            "yes",
            2,
            False,
        )

    def test_a_wait_holds_no_slot(self) -> None:
        backend = Throttled(Fault("server", "later", 200.0))
        run(ask_backend(backend, make_request("first"), make_request("second"), concurrency=1))
        assert backend.sent == [(0.0, "first"), (0.0, "second"), (200.0, "first")]

    def test_a_429_holds_all_requests(self) -> None:
        backend = Throttled(Fault("rate-limit", "later", 200.0))
        run(ask_backend(backend, make_request("first"), make_request("second"), concurrency=1))
        assert [time for time, _ in backend.sent] == [0.0, 200.0, 200.0]


class Throttled(Bills):
    """A backend that fails once; `sent` are the times and texts of the requests."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(1, 1)
        self.faults = [fault]
        self.sent: list[tuple[float, str]] = []

    async def complete(self, request: Request, timeout: float) -> Reply:
        self.sent.append((now(), request.messages[0].content))
        if self.faults:
            raise self.faults.pop()
        return self.reply


async def ask_backend(backend: Throttled, *requests: Request, concurrency: int = 64) -> None:
    """Send requests at once; retries follow at once, except after a `retry_after`."""
    gateway = Gateway(
        backend,  # type: ignore[arg-type]
        RequestLimiter(concurrency),
        CallsConfig(timeout=LONG),
        retry_policy=RetryPolicy(3, 0.0, 0.0),
    )
    await asyncio.gather(*(gateway.ask(request) for request in requests))
    await gateway.close()


class TestTime:
    def test_the_deadline_ends_a_request_that_hangs(self) -> None:
        with run_server(lambda body, number: hang(passing=0.5)) as server:
            fault = with_gateway(
                server.url, lambda gateway: fault_of(gateway.ask(make_request(), deadline_in(0.5)))
            )
        assert server.count == 1
        assert (fault.kind, fault.cause) == ("deadline", "infrastructure")

    def test_the_deadline_ends_the_wait_for_a_turn(self) -> None:
        async def both(gateway: Gateway) -> Fault:
            first = asyncio.create_task(gateway.ask(make_request("first")))
            await server.wait_for(1)
            second = fault_of(gateway.ask(make_request("second"), deadline_in(0.1)))
            fault, _ = await asyncio.gather(second, pass_time_later(0.1))
            first.cancel()
            return fault

        with run_server(lambda body, number: hang()) as server:
            fault = with_gateway(server.url, both, concurrency=1)
        assert (fault.kind, fault.cause) == ("deadline", "infrastructure")
        assert [seen.body["messages"][0]["content"] for seen in server.requests] == ["first"]

    @pytest.mark.parametrize("left", [-1.0, 0.0])
    def test_after_the_deadline_nothing_is_sent(self, left: float) -> None:
        with run_server(yes) as server:
            fault = with_gateway(
                server.url, lambda gateway: fault_of(gateway.ask(make_request(), deadline_in(left)))
            )
        assert server.count == 0
        assert fault.kind == "deadline"

    def test_a_caller_is_not_ended_by_the_earlier_deadline_of_another(self) -> None:
        async def both(gateway: Gateway) -> tuple[Fault, AnsweredCall]:
            hurried = asyncio.create_task(fault_of(gateway.ask(make_request(), deadline_in(0.1))))
            return await hurried, await gateway.ask(make_request(), deadline_in(LONG))

        async def together(gateway: Gateway) -> tuple[Fault, AnsweredCall]:
            hurried = fault_of(gateway.ask(make_request(), deadline_in(0.1)))
            return await asyncio.gather(hurried, gateway.ask(make_request(), deadline_in(LONG)))

        for way in (both, together):
            with run_server(
                lambda body, number: hang(passing=0.1) if number == 1 else reply_with("yes")
            ) as server:
                fault, answered = with_gateway(server.url, way)
            assert (fault.kind, answered.reply.text, server.count) == ("deadline", "yes", 2)


def deadline_in(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


class TestWhoeverLeaves:
    @pytest.mark.parametrize("leaver", [0, 1])
    def test_the_other_waiting_caller_still_gets_the_reply(self, leaver: int) -> None:
        async def both(gateway: Gateway) -> AnsweredCall:
            waiting = [asyncio.create_task(gateway.ask(make_request())) for _ in range(2)]
            await server.wait_for(1)
            waiting[leaver].cancel()
            server.release()
            answered = await waiting[1 - leaver]
            assert waiting[leaver].cancelled()
            return answered

        with run_server(yes, together=math.inf) as server:
            answered = with_gateway(server.url, both)
        assert (answered.reply.text, server.count) == ("yes", 1)

    def test_a_reply_that_was_paid_for_is_kept_when_all_have_left(self, tmp_path: Path) -> None:
        async def leave(gateway: Gateway) -> AnsweredCall:
            alone = asyncio.create_task(gateway.ask(make_request(), sink=kept))
            await server.wait_for(1)
            alone.cancel()
            server.release()
            await kept.stored.wait()
            return await gateway.ask(make_request(), sink=kept)

        kept = Kept()
        with run_server(yes, together=math.inf) as server:
            answered = with_gateway(server.url, leave)
        assert (answered.reply.text, server.count) == ("yes", 1)

    def test_closing_cancels_hanging_requests_and_their_callers(self) -> None:
        budget = Budget()

        async def close(gateway: Gateway) -> list[BaseException | AnsweredCall]:
            before = asyncio.all_tasks()
            waiting = [asyncio.create_task(gateway.ask(make_request(str(n)))) for n in range(3)]
            await server.wait_for(2)  # the third waits for its turn
            await gateway.close()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert asyncio.all_tasks() == before
            return ended

        with run_server(lambda body, number: hang()) as server:
            ended = with_gateway(server.url, close, concurrency=2, budget=budget)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * 3
        assert budget.calls == 2


class TestTwoLoops:
    def test_each_has_its_own_line_and_its_own_end_while_both_run(self) -> None:
        async def ask(gateway: Gateway, *texts: str) -> list[str]:
            answered = await asyncio.gather(*(gateway.ask(make_request(text)) for text in texts))
            await gateway.close()
            return [each.reply.text or "" for each in answered]

        async def use_twice(gateway: Gateway) -> list[list[str]]:
            first = asyncio.create_task(ask(gateway, "one", "two", "three"))
            await server.wait_for(1)
            second = asyncio.create_task(
                asyncio.to_thread(asyncio.run, ask(gateway, "one", "four"))
            )
            await server.wait_for(2)
            server.release()
            return [await first, await second]

        unbilled = reply_with("yes", usage=False)
        with run_server(lambda body, number: unbilled, together=math.inf) as server:
            replies = with_gateway(
                server.url, use_twice, concurrency=1, budget=Budget(max_cost=1.0), price=PRICE
            )
        assert (replies, server.count) == ([["yes"] * 3, ["yes"] * 2], 5)

    def test_requests_of_an_abandoned_loop_are_forgotten(self) -> None:
        async def leave(gateway: Gateway) -> "asyncio.Task[AnsweredCall]":
            left = asyncio.create_task(gateway.ask(make_request()))
            await asyncio.sleep(0)
            return left

        gateway = Gateway(Bills(1, 1), RequestLimiter(1), CallsConfig(timeout=LONG))  # type: ignore[arg-type]
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda _, context: None)  # it tells of the task that never ends
        left = loop.run_until_complete(leave(gateway))
        loop.close()
        assert not left.done()
        assert asyncio.run(gateway.ask(make_request())).reply.text == "yes"


def envelope(tokens_out: int) -> str:
    """Return a reply to two tokens whose usage reports this number."""
    usage = {"prompt_tokens": 2, "completion_tokens": tokens_out, "total_tokens": 2 + tokens_out}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "yes"},
        "finish_reason": "stop",
    }
    return json.dumps({"model": "tiny-1", "choices": [choice], "usage": usage})


def most_expensive_reply(body: Mapping[str, Any], number: int) -> Answer:
    """Return a reply that uses as many tokens as the request allows."""
    texts = sum(
        len(message["content"].encode()) + MAX_TEMPLATE_TOKENS_PER_MESSAGE
        for message in body["messages"]
    )
    usage = {"prompt_tokens": texts, "completion_tokens": body.get("max_tokens", 16)}
    message = {"role": "assistant", "content": "yes"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return raw_body(json.dumps({"model": "tiny-1", "choices": [choice], "usage": usage}))


async def request_64(gateway: Gateway) -> list[AnsweredCall | Fault]:
    """Send 64 different requests, all in flight at once."""
    asking = (
        gateway.ask(make_request(f"{number:02}", answer=None, form="text")) for number in range(64)
    )
    return await asyncio.gather(*asking, return_exceptions=True)  # type: ignore[return-value]


class TestBudget:
    def test_no_more_is_spent_than_allowed_with_64_in_flight(self) -> None:
        one = ((2 + MAX_TEMPLATE_TOKENS_PER_MESSAGE) * PRICE.input + 16 * PRICE.output) / 1_000_000
        budget = Budget(max_cost=10.5 * one)
        with run_server(most_expensive_reply, together=10) as server:
            results = with_gateway(server.url, request_64, budget=budget, price=PRICE)
        billed = sum(
            answered.call.cost or 0.0 for answered in results if isinstance(answered, AnsweredCall)
        )
        assert server.count == 10
        assert billed == pytest.approx(10 * one)
        assert budget.spent == pytest.approx(billed)
        assert {fault.kind for fault in results if isinstance(fault, Fault)} == {"budget"}

    def test_after_a_bill_above_max_tokens_no_request_is_sent(self) -> None:
        one = ((2 + MAX_TEMPLATE_TOKENS_PER_MESSAGE) * PRICE.input + 16 * PRICE.output) / 1_000_000
        budget, concurrency = Budget(max_cost=1000 * one), 4
        with run_server(lambda body, number: raw_body(envelope(tokens_out=160))) as server:
            results = with_gateway(
                server.url, request_64, budget=budget, price=PRICE, concurrency=concurrency
            )
        faults = [fault for fault in results if isinstance(fault, Fault)]
        assert server.count <= concurrency
        assert len(faults) >= 64 - concurrency
        assert {fault.kind for fault in faults} == {"budget"}
        assert "billed $0.0016" in str(faults[0])

    def test_a_reply_too_large_to_read_stops_all_sending(self) -> None:
        budget = Budget(max_cost=1.0)
        with run_server(lambda body, number: huge(9)) as server:
            results = with_gateway(
                server.url, request_64, budget=budget, price=PRICE, concurrency=1
            )
        kinds = [fault.kind for fault in results if isinstance(fault, Fault)]
        assert (server.count, kinds.count("too-large"), kinds.count("budget")) == (1, 1, 63)

    @pytest.mark.parametrize(
        ("answer", "billed"),
        [(cut_off(), 3.0), (status(429, {"retry-after-ms": "0"}), 0.0)],
        ids=["cut", "429"],
    )
    def test_a_broken_reply_is_charged_and_a_429_is_not(
        self, answer: Answer, billed: float
    ) -> None:
        most = ((2 + MAX_TEMPLATE_TOKENS_PER_MESSAGE) * PRICE.input + 16 * PRICE.output) / 1_000_000
        budget, asked = Budget(), make_request("07", answer=None, form="text")
        with run_server(lambda body, number: answer) as server:
            with_gateway(
                server.url, lambda gateway: fault_of(gateway.ask(asked)), budget=budget, price=PRICE
            )
        assert budget.calls == server.count == 3
        assert budget.spent == pytest.approx(billed * most)

    def test_a_refused_connection_costs_nothing(self) -> None:
        budget = Budget()
        ask = lambda gateway: fault_of(gateway.ask(make_request()))  # noqa: E731
        with nobody() as closed:
            fault = with_gateway(closed, ask, budget=budget, price=PRICE)
        assert (fault.kind, budget.calls, budget.spent) == ("connection", 3, 0.0)


class TestFullDisk:
    def test_what_one_sink_cannot_store_stops_no_other(self) -> None:
        class Full(Kept):
            async def store(self, request: Request, answered: AnsweredCall) -> None:
                raise OSError("no space left")

        async def ask(gateway: Gateway) -> None:
            full = Full()
            for text in ("first", "second"):
                with pytest.raises(OSError, match="no space left"):
                    await gateway.ask(make_request(text), sink=full)
            await gateway.ask(make_request("third"), sink=Kept())

        with run_server(yes) as server:
            with_gateway(server.url, ask)
        assert server.count == 2, "the second request was not sent"


def test_a_request_without_a_reply_is_stored_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-0123456789")
    stored: list[str] = []

    class Failed(Kept):
        def store_unanswered(self, request: Request, call: Call) -> None:
            stored.append(request.messages[0].content)

    async def store(gateway: Gateway) -> None:
        request = make_request("my key is sk-canary-0123456789")
        gateway.store_unanswered(request, make_call_record(request, served=None), Failed())
        gateway.store_unanswered(request, make_call_record(request, served=None), None)

    with run_server(yes) as server:
        with_gateway(server.url, store)
    assert stored == ["my key is [redacted]"]


class TestDryRun:
    def test_what_would_be_sent_is_noted_and_what_is_stored_is_used(self, tmp_path: Path) -> None:
        kept = Kept()

        async def note(gateway: Gateway) -> None:
            await gateway.ask(make_request("kept"), sink=kept)
            gateway.drop_from_cache(make_request("kept").digest)
            await gateway.ask(make_request("cached"))
            gateway.settings = CallsConfig(deadline=1.0)
            backend, dry = gateway.make_dry_run_gateway(4, kept)
            assert (dry.settings, dry.cache) == (CallsConfig(), None)
            stored = [await dry.ask(make_request(text)) for text in ("kept", "cached")]
            assert [answered.reply.text for answered in stored] == ["reply 1", "reply 2"]
            assert not backend.lacks_reply
            fault = await fault_of(dry.ask(make_request("new")))
            assert (fault.kind, str(fault)) == ("unrecorded", "the request was noted and not sent")
            assert backend.lacks_reply
            expected = [make_request(text) for text in ("kept", "cached", "new")]
            assert backend.requests == {request.digest: request for request in expected}

        with run_server(lambda body, number: reply_with(f"reply {number}")) as server:
            with_gateway(server.url, note, cache=Cache(tmp_path))
        assert server.count == 2

    def test_stored_replies_that_cannot_be_used_do_not_end_it(self) -> None:
        kept = Kept()
        requests = [make_request(f"no. {number}") for number in range(MAX_UNUSABLE_FIRST_REPLIES)]

        async def read_again(gateway: Gateway) -> None:
            for request in requests:
                await gateway.ask(request, sink=kept)
            _, dry = gateway.make_dry_run_gateway(4, kept)
            for request in requests:
                dry.first_replies.note(
                    await dry.ask(request), Fault("malformed", "the reply is not valid JSON")
                )
            assert dry.first_replies.problem is None

        with run_server(lambda body, number: reply_with("It is fine.")) as server:
            with_gateway(server.url, read_again)
