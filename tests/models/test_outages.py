"""Outages: requests wait for a server that is down, one at a time probes it, and limits are kept."""

import asyncio
import contextlib
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.models import limits
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend
from jurygraph.models.factory import open_gateway
from jurygraph.models.gateway import Gateway
from jurygraph.models.limits import (
    FIRST_PROBE_PAUSE_SECONDS,
    Budget,
    Price,
    RequestLimiter,
    RequestTurn,
    RetryPolicy,
)
from jurygraph.models.request import RETRYABLE_FAULT_KINDS, AnsweredCall, Fault, Reply, Request
from jurygraph.schema import CallsConfig, Message
from tests.examples import at_most
from tests.models.server import Answer, reply_with, run_server, status
from tests.rows import all_rows
from tests.virtual_time import now, run

LATENCY = 0.1
"""Virtual seconds that a server takes for a reply, or to fail."""


class Server(Backend):
    """A model server that is down for spans of virtual time. `sent` are the times at which requests reached it."""

    provider, endpoint, model = "openai-compatible", "http://127.0.0.1:1/v1", "tiny"
    capabilities = EndpointCapabilities("text")

    def __init__(
        self, *away: tuple[float, float], fault: Callable[[], Fault] | None = None
    ) -> None:
        self._away = away
        self._fault = fault or (lambda: Fault("connection", "refused"))
        self.sent: list[float] = []
        self.in_flight = 0

    def is_away(self) -> bool:
        return any(first <= now() < last for first, last in self._away)

    @property
    def sent_while_away(self) -> list[float]:
        return [
            time for time in self.sent if any(first <= time < last for first, last in self._away)
        ]

    async def complete(self, request: Request, timeout: float) -> Reply:
        self.sent.append(now())
        self.in_flight += 1
        try:
            await asyncio.sleep(min(LATENCY, timeout))
            if timeout < LATENCY:
                raise Fault("timeout", "no whole reply in time")
            if self.is_away():
                raise self._fault()
            return Reply(text="yes", tokens_in=1, tokens_out=1)
        finally:
            self.in_flight -= 1


def make_request(number: int) -> Request:
    return Request(
        provider="p", model="m", messages=(Message(role="user", content=f"Is {number} a prime?"),)
    )


def gateway_to(server: Server, concurrency: int = 32, **outage: Any) -> Gateway:
    return Gateway(server, RequestLimiter(concurrency, **outage), CallsConfig())


async def ask_all(
    gateway: Gateway, number: int, until: float | None = None
) -> list[AnsweredCall | Fault]:
    asking = (gateway.ask(make_request(each), until) for each in range(number))
    results: list[Any] = await asyncio.gather(*asking, return_exceptions=True)
    return results


def kinds(results: Sequence[AnsweredCall | Fault]) -> set[str]:
    """Return the kinds of the faults among results."""
    return {result.kind for result in results if isinstance(result, Fault)}


FOREVER = 1e9


async def send_by(
    limiter: RequestLimiter, send: Callable[[], Awaitable[str]], until: float | None = None
) -> str | None:
    """Send a request in a turn, and return its result; None if the server is away."""
    async with limiter.turn(0, until) as turn:
        try:
            result = await send()
        except Fault as fault:
            if limiter.report_fault(turn, fault):
                return None
            raise
        limiter.report_success(turn)
        return result


async def fail(limiter: RequestLimiter, kind: str = "connection", times: int = 1) -> None:
    """Send requests that end in a fault, each unless it waits for more than a second."""

    async def send() -> str:
        raise Fault(kind, "planted")

    for _ in range(times):
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(1.0):
                await send_by(limiter, send)


async def answer() -> str:
    return "yes"


async def repeat(
    limiter: RequestLimiter, send: Callable[[], Awaitable[str]], until: float | None = None
) -> str:
    """Send until the server answers."""
    result = None
    while result is None:
        result = await send_by(limiter, send, until)
    return result


class TestWaiting:
    @all_rows("seconds", [0.5, 4.8, 60.0, 290.0])
    @all_rows("concurrency", [1, 4, 32])
    def test_an_outage_shorter_than_the_limit_fails_no_request(
        self, seconds: float, concurrency: int
    ) -> None:
        server = Server((0.25, 0.25 + seconds))
        results = run(ask_all(gateway_to(server, concurrency), 240))
        assert kinds(results) == set()

    @all_rows("number", [1, 3, 7])
    def test_few_questions_wait_for_its_end_and_little_longer(self, number: int) -> None:
        """They use up their attempts before there are `calls.outage.after` failures."""

        async def ask_few() -> tuple[list[AnsweredCall | Fault], float]:
            gateway = open_gateway(Server((0.0, 20.0)), CallsConfig())
            return await ask_all(gateway, number), now()

        results, ended = run(ask_few())
        assert kinds(results) == set()
        assert 20.0 < ended < 20.0 * 1.25 + 4 * LATENCY

    def test_only_one_request_at_a_time_probes_a_server_that_is_down(self) -> None:
        server = Server((0.0, 60.0))
        run(ask_all(gateway_to(server, concurrency=4), 100))
        burst, probes = server.sent_while_away[:8], server.sent_while_away[8:]
        assert max(burst) < min(probes)
        pauses = [later - earlier - LATENCY for earlier, later in itertools.pairwise(probes)]
        assert pauses == pytest.approx([max(0.5, probe / 4) for probe in probes[:-1]])
        assert min(time for time in server.sent if time > 60.0) <= 60.0 * 1.25

    def test_attempts_during_an_outage_do_not_count_as_attempts_of_a_request(self) -> None:
        async def alone() -> AnsweredCall:
            gateway = gateway_to(Server((0.0, 100.0)), after=1)
            return await gateway.ask(make_request(1))

        assert run(alone()).call.attempts > 4

    def test_a_request_is_repeated_in_outages_as_often_as_it_may_be_tried(self) -> None:
        class Away(RequestLimiter):
            def report_fault(self, turn: RequestTurn, fault: Fault) -> bool:
                return True

        server = Server((0.0, FOREVER))
        run(ask_all(Gateway(server, Away(1), CallsConfig()), 1))
        assert len(server.sent) == 2 * CallsConfig().attempts

    def test_requests_to_a_server_that_answers_only_probes_end(self) -> None:
        class Overloaded(Server):
            """Answers who is alone, and nobody else."""

            async def complete(self, request: Request, timeout: float) -> Reply:
                is_alone = not self.in_flight
                reply = await super().complete(request, timeout)
                if is_alone:
                    return reply
                raise Fault("timeout", "no whole reply in time")

        server = Overloaded()
        results = run(ask_all(gateway_to(server, after=2), 200))
        assert len(results) == 200
        assert len(server.sent) <= 200 * (2 * CallsConfig().attempts + 1)

    def test_the_wait_is_announced_once_for_each_cause(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> Fault:
            return Fault("connection", "refused") if now() < 30 else Fault("server", "503")

        with caplog.at_level(logging.WARNING):
            run(ask_all(gateway_to(Server((0.0, 60.0), fault=fail)), 40))
        waiting = "requests wait for up to {} s more while one at a time tries again"
        assert [record.getMessage() for record in caplog.records] == [
            f"the model server has not answered for 1 s (refused): {waiting.format(299)}",
            f"the model server has not answered for 32 s (503): {waiting.format(268)}",
            "the model server answers again, after 63 s",
        ]


@pytest.mark.parametrize("kind", ["unauthorised", "unknown-model"])
class TestRefusal:
    """A server that refuses the key or the model."""

    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_after_a_refusal_no_further_request_is_sent(self, kind: str, concurrency: int) -> None:
        server = Server((0.0, FOREVER), fault=lambda: Fault(kind, "planted"))
        results = run(ask_all(gateway_to(server, concurrency), 100))
        assert [(one.kind, str(one)) for one in results if isinstance(one, Fault)] == [
            (kind, "planted")
        ] * 100
        assert len(server.sent) == concurrency

    def test_one_probe_in_ten_seconds_notices_that_the_server_accepts_again(
        self, kind: str
    ) -> None:
        async def later() -> list[set[str]]:
            gateway, found = gateway_to(server), []
            for seconds in (0.0, 5.0, 6.0, 11.0):
                await asyncio.sleep(seconds)
                found.append(kinds(await ask_all(gateway, 20)))
            return found

        server = Server((0.0, 15.0), fault=lambda: Fault(kind, "planted"))
        assert run(later()) == [{kind}, {kind}, {kind}, set()]
        spans = ((0, 5), (5, 11), (11, 22), (22, 30))
        sent = [sum(first <= time < last for time in server.sent) for first, last in spans]
        assert sent == [20, 0, 1, 20]


class TestOpening:
    def test_only_consecutive_failures_open_the_circuit(self) -> None:
        async def alternate() -> int:
            limiter = RequestLimiter(9, after=3)
            for _ in range(5):
                await fail(limiter, times=2)
                await send_by(limiter, answer)
            return limiter.outages

        assert run(alternate()) == 0

    @pytest.mark.parametrize("kind", sorted(RETRYABLE_FAULT_KINDS | {"rejected", "too-large"}))
    def test_only_faults_of_an_unreachable_server_open_the_circuit(self, kind: str) -> None:
        async def outages() -> int:
            limiter = RequestLimiter(9, after=3)
            await fail(limiter, kind, times=3)
            return limiter.outages

        assert run(outages()) == (kind in {"connection", "timeout", "server", "unreadable"})

    def test_a_timeout_at_the_deadline_is_no_evidence_of_an_outage(self) -> None:
        async def impatient() -> int:
            limiter = RequestLimiter(9, after=2)
            await ask_all(Gateway(Server(), limiter, CallsConfig()), 20, until=now() + LATENCY / 2)
            return limiter.outages

        assert run(impatient()) == 0

    def test_a_request_from_before_an_outage_is_no_evidence_of_another_one(self) -> None:
        async def late() -> int:
            limiter = RequestLimiter(9, after=1)
            sent_before = asyncio.create_task(send_by(limiter, fail_late))
            await asyncio.sleep(0)
            await fail(limiter)
            await repeat(limiter, answer)
            await sent_before
            return limiter.outages

        async def fail_late() -> str:
            await asyncio.sleep(10.0)
            raise Fault("connection", "planted")

        assert run(late()) == 1


class TestGivingUp:
    def test_after_the_limit_all_requests_fail_and_few_are_sent(self) -> None:
        server = Server((0.0, FOREVER))
        results = run(ask_all(gateway_to(server, wait=20.0), 1000))
        assert kinds(results) <= {"outage", "connection"}
        assert len(results) == sum(isinstance(result, Fault) for result in results)
        assert len(server.sent) <= 32 + 15
        assert max(server.sent) <= 20.0 + 4 * LATENCY

    def test_requests_after_the_server_is_back_are_answered(self) -> None:
        server = Server((0.0, 100.0))

        async def early_and_late() -> tuple[list[AnsweredCall | Fault], list[AnsweredCall | Fault]]:
            gateway = gateway_to(server, wait=5.0)
            early = await ask_all(gateway, 40)
            await asyncio.sleep(200.0)
            return early, await ask_all(gateway, 40)

        early, late = run(early_and_late())
        assert "outage" in kinds(early)
        assert kinds(late) == set()

    def test_a_server_that_was_never_there_fails_fast_and_one_that_answered_is_waited_for(
        self,
    ) -> None:
        def unconnected() -> Fault:
            fault = Fault("connection", "refused")
            fault.is_unsent = True
            return fault

        server = Server((0.0, FOREVER), fault=unconnected)
        results = run(ask_all(gateway_to(server), 40))
        hint = "is it started, and is its URL right? calls.outage.first sets the maximum wait"
        assert "outage" in kinds(results)
        assert max(server.sent) < 10.0
        assert any(isinstance(result, Fault) and hint in str(result) for result in results)

        async def answered_first() -> list[AnsweredCall | Fault]:
            gateway = gateway_to(Server((1.0, 100.0), fault=unconnected))
            await ask_all(gateway, 1)
            await asyncio.sleep(2.0)
            return await ask_all(gateway, 40)

        assert kinds(run(answered_first())) == set()

    def test_a_probe_respects_retry_after(self) -> None:
        server = Server((0.0, 50.0), fault=lambda: Fault("server", "503", 7.0))
        run(ask_all(gateway_to(server, concurrency=4), 40))
        probes = server.sent_while_away[8:]
        assert all(later - earlier >= 7.0 for earlier, later in itertools.pairwise(probes))

    @pytest.mark.parametrize(
        ("wait", "ends"),
        [(300.0, "answers again, after 63 s"), (20.0, "for 20 s (refused): requests fail")],
    )
    def test_an_outage_is_timed_from_its_own_first_failure(
        self, caplog: pytest.LogCaptureFixture, wait: float, ends: str
    ) -> None:
        async def late() -> list[AnsweredCall | Fault]:
            await asyncio.sleep(1000.0)
            return await ask_all(gateway_to(Server((1000.0, 1060.0)), wait=wait), 40)

        with caplog.at_level(logging.WARNING):
            faults = [
                result
                for result in run(late())
                if isinstance(result, Fault) and result.kind == "outage"
            ]
        assert any(ends in record.getMessage() for record in caplog.records)
        assert (
            caplog.records[0]
            .getMessage()
            .startswith("the model server has not answered for 1 s (refused)")
        )
        # a question whose own pause before its next attempt, which is drawn at random, ends later is told a later time
        assert all(
            re.match(r"the model server .* for 2\d s \(refused\);", str(fault)) for fault in faults
        )
        assert bool(faults) == (wait == 20.0)


class TestLimits:
    @pytest.mark.parametrize(
        "moment", [0.2, FIRST_PROBE_PAUSE_SECONDS, FIRST_PROBE_PAUSE_SECONDS + 1e-9, 0.7]
    )
    def test_a_request_that_leaves_passes_the_probe_on(self, moment: float) -> None:
        async def hang() -> str:
            await asyncio.sleep(FOREVER)
            return "never"

        async def leave() -> tuple[list[str], float]:
            limiter = RequestLimiter(9, after=1)
            await fail(limiter)
            probing = asyncio.create_task(repeat(limiter, hang))
            late = asyncio.create_task(repeat(limiter, answer, until=now() + moment))
            waiting = [asyncio.create_task(repeat(limiter, answer)) for _ in range(3)]
            await asyncio.sleep(moment)
            probing.cancel()
            await asyncio.wait([probing, late])
            return await asyncio.gather(*waiting), now()

        answers, ended = run(leave())
        assert answers == ["yes"] * 3
        assert ended < 3.0


class TestRequestsThatAlwaysFail:
    """A server that gives a 500 to some requests, and answers others."""

    @pytest.fixture(autouse=True)
    def _pause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "FIRST_PROBE_PAUSE_SECONDS", 0.0)

    @all_rows("number", [1, 8, 40])
    def test_they_fail_alone_after_their_retries_though_nothing_was_answered_before(
        self, number: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """As after a restart, where all other replies are stored, and at the end of a step."""
        with run_server(lambda body, _: status(500) if is_bad(body) else reply_with("yes")) as it:
            rest, then = asyncio.run(
                ask_in_turn(it.url, range(100, 100 + number), [4], wait=20.0, after=1)
            )
        assert kinds(then) == set()
        faults = [fault for fault in rest if isinstance(fault, Fault)]
        assert {fault.kind for fault in faults} == {"server"}
        words = "the server answers a probe, and this request gets only: "
        assert all(str(fault).startswith(words) and "500" in str(fault) for fault in faults)
        assert len(faults) == number
        assert caplog.records == [], "nobody is told of an outage"
        bodies = [request.body for request in it.requests]
        assert sum(map(is_bad, bodies)) <= number * 2 * CallsConfig().attempts

    def test_a_server_that_answers_nothing_any_more_is_away_and_the_next_request_asks_anew(
        self,
    ) -> None:
        def script(body: dict[str, Any], number: int) -> Answer:
            return reply_with("yes") if number == 1 or number > 4 else status(503)

        with run_server(script) as server:
            batches = asyncio.run(ask_in_turn(server.url, [3], [4], [6], [7], after=1, wait=1e-9))
        expected: list[set[str]] = [set(), {"outage"}, {"outage"}, set()]
        assert [kinds(results) for results in batches] == expected
        words = [request.body["messages"][0]["content"] for request in server.requests]
        assert [text.split()[1] for text in words] == ["3", "4", "with", "with", "with", "7"]
        assert len(set(words)) == len(words), "no cache can answer a probe"

    @all_rows(
        "parameters, probe_parameters",
        [
            ({"max_tokens": 900}, {"max_tokens": 16}),
            ({"max_completion_tokens": 900, "seed": 1}, {"max_completion_tokens": 16, "seed": 1}),
            (
                {"max_tokens": 8, "plugins": [{"max_tokens": 900, "id": "web"}]},
                {"max_tokens": 16, "plugins": [{"max_tokens": 16, "id": "web"}]},
            ),
            (
                {"extra_body": {"provider": {"only": ["x"]}, "reasoning": {"max_tokens": 900}}},
                {"extra_body": {"provider": {"only": ["x"]}, "reasoning": {"max_tokens": 16}}},
            ),
        ],
    )
    def test_a_probe_is_short_has_the_other_parameters_and_counts_in_the_budget_alone(
        self, parameters: dict[str, Any], probe_parameters: dict[str, Any]
    ) -> None:
        def script(body: dict[str, Any], number: int) -> Answer:
            return status(500) if number < 3 else reply_with("yes")

        async def ask(gateway: Gateway) -> AnsweredCall:
            try:
                return await gateway.ask(
                    make_request(1).model_copy(update={"parameters": parameters})
                )
            finally:
                await gateway.close()

        with run_server(script) as server:
            gateway = Gateway(
                OpenAICompatibleBackend(server.url, "tiny"),
                RequestLimiter(2, after=1),
                CallsConfig(),
                price=Price(input=0.0, output=1e6),
                budget=Budget(max_cost=9999.0),
            )
            call = asyncio.run(ask(gateway)).call
        _, *probes, _ = [request.body for request in server.requests]
        for probe in probes:
            del probe["model"], probe["messages"]
        assert probes == [probe_parameters] * 2
        assert (gateway.budget.calls, call.attempts) == (4, 4)
        assert call.cost is not None
        # the failed request and probe count as the most that they may cost
        assert gateway.budget.spent == 900 + 16 + 2 * call.cost

    def test_one_that_fails_after_the_outage_of_others_says_nothing_of_their_probe(self) -> None:
        """It waited while they were repeated, and has its retries afterwards."""

        class Selective(Server):
            async def complete(self, request: Request, timeout: float) -> Reply:
                text = request.messages[0].content
                if text.startswith("Is 99 ") and not self.is_away():
                    raise Fault("server", "planted")
                return await super().complete(request, timeout)

        async def fail_late() -> tuple[AnsweredCall | Fault, ...]:
            gateway = gateway_to(Selective((0.0, 3.0)))
            first = asyncio.create_task(ask_all(gateway, 8))
            await asyncio.sleep(2 * LATENCY)
            late: Any = await asyncio.gather(gateway.ask(make_request(99)), return_exceptions=True)
            return *await first, *late

        *answered, late = run(fail_late())
        assert kinds(answered) == set()
        assert isinstance(late, Fault)
        assert str(late) == "planted"

    def test_one_that_was_never_sent_is_repeated_itself(self) -> None:
        def unsent() -> Fault:
            fault = Fault("connection", "refused")
            fault.is_unsent = True
            return fault

        class Noting(Server):
            async def complete(self, request: Request, timeout: float) -> Reply:
                words.append(request.messages[0].content)
                return await super().complete(request, timeout)

        words: list[str] = []
        results = run(ask_all(gateway_to(Noting((0.0, 3.0), fault=unsent), after=1), 1))
        assert kinds(results) == set()
        assert set(words) == {"Is 0 a prime?"}


def is_bad(body: dict[str, Any]) -> bool:
    words = body["messages"][0]["content"].split()
    return words[0] == "Is" and int(words[1]) >= 100


async def ask_in_turn(
    url: str, *batches: Iterable[int], **outage: Any
) -> list[list[AnsweredCall | Fault]]:
    """Ask batches of requests one after another; a request is tried again without a pause."""
    limiter = RequestLimiter(32, **outage)
    backend = OpenAICompatibleBackend(url, "tiny")
    gateway = Gateway(backend, limiter, CallsConfig(), retry_policy=RetryPolicy(first=0.0))
    try:
        results: list[Any] = [
            await asyncio.gather(
                *(gateway.ask(make_request(each)) for each in batch), return_exceptions=True
            )
            for batch in batches
        ]
    finally:
        await gateway.close()
    return results


spans = st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(0.01, 50.0)), max_size=5)


def outages(lengths: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans in which a server is down, drawn as alternating times up and down."""
    found, time = [], 0.0
    for there, away in lengths:
        found.append((time + there, time + there + away))
        time += there + away
    return found


@given(spans, st.integers(1, 12), st.integers(1, 40), st.integers(1, 80))
@settings(max_examples=at_most(50), deadline=None)
def test_every_request_ends_and_nothing_leaks_over_repeated_outages(
    lengths: list[tuple[float, float]], after: int, concurrency: int, number: int
) -> None:
    server = Server(*outages(lengths))

    async def whole() -> tuple[list[AnsweredCall | Fault], list[AnsweredCall | Fault]]:
        gateway = gateway_to(server, concurrency, after=after)
        results = await ask_all(gateway, number)
        await asyncio.sleep(1000.0)
        # equal ones are asked again: nothing keeps them here
        return results, await ask_all(gateway, 100)

    results, later = run(whole())
    # who was unlucky at every attempt, while the circuit was closed
    assert kinds(results) <= {"connection"}
    assert kinds(later) == set()
    assert server.in_flight == 0
    if after == 1:  # no attempt fails while the circuit is closed
        assert kinds(results) == set()
