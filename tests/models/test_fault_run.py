"""The fault run: 2,000 questions to a server that fails at every third request."""

import asyncio
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from random import Random
from typing import Any, NamedTuple

import pytest

from jurygraph import Group, Jury
from jurygraph.schema import RecordedVerdict, Response, Trace
from tests.models.judge_scripts import config, judge_reply, quotable, requested_items, response_in, rubric
from tests.models.server import Answer, cut_off, drip, hang, huge, raw_body, reply_with, reset, run_server, status

pytestmark = pytest.mark.exhaustive

SEED = 285
"""With it every kind of fault ends some call: one that may do better, every attempt of it."""
SHARE = 0.3
TASKS, RESPONSES, CRITERIA = 500, 4, ("clear",)
ATTEMPTS = 2
TIMEOUT = 2.0
RIGHT, FALSE = 0.9, 1.0
"""The probability in every right reply; and in all that must not count, where there is one."""

Body = Mapping[str, Any]


def credit(body: Body) -> str:
    """Return a whole verdict that must give no credit, because of the text around it."""
    one = {"reason": "as it says", "quotes": quotable(response_in(body)), "met": True, "probability": FALSE}
    return json.dumps(dict.fromkeys(requested_items(body), one))


def misnamed_reply(body: Body) -> str:
    return credit(body).replace("probability", "likelihood")


class Planted(NamedTuple):
    """A planted fault: the answer, and the expected kind and cause."""

    answer: Callable[[Body], Answer]
    kind: str
    cause: str = "infrastructure"


AGAIN = {
    "500": Planted(lambda body: status(500, body=credit(body)), "server"),
    "503 with a time": Planted(lambda body: status(503, {"Retry-After": "0.004"}), "server"),
    "429 in seconds": Planted(lambda body: status(429, {"Retry-After": "0.004"}), "rate-limit"),
    "429 in milliseconds": Planted(lambda body: status(429, {"retry-after-ms": "4"}), "rate-limit"),
    "429 with a date": Planted(lambda body: status(429, {"Retry-After": formatdate(time.time())}), "rate-limit"),
    "429 with a reset": Planted(lambda body: status(429, {"x-ratelimit-reset-tokens": "4ms"}), "rate-limit"),
    "429 alone": Planted(lambda body: status(429), "rate-limit"),
    "cut": Planted(lambda body: cut_off(), "connection"),
    "reset": Planted(lambda body: reset(), "connection"),
    "no envelope": Planted(lambda body: raw_body(credit(body)), "unreadable"),
    "hang": Planted(lambda body: hang(), "timeout"),
    "drip": Planted(lambda body: drip(credit(body), TIMEOUT / 4), "timeout"),
}
AT_ONCE = {
    "400": Planted(lambda body: status(400, body=credit(body)), "rejected"),
    "huge": Planted(lambda body: huge(9), "too-large"),
    "truncated": Planted(lambda body: reply_with(credit(body), finish="length"), "truncated", "response"),
    "refused": Planted(lambda body: reply_with(credit(body), refusal="I will not."), "refused", "response"),
    "filtered": Planted(lambda body: reply_with(credit(body), finish="content_filter"), "refused", "response"),
    "empty": Planted(lambda body: reply_with("  "), "empty", "response"),
}
MALFORMED = {
    "half": Planted(lambda body: reply_with(credit(body)[:-2]), "malformed", "response"),
    "fenced": Planted(lambda body: reply_with(f"```json\n{credit(body)}\n```"), "malformed", "response"),
    "quoted": Planted(lambda body: reply_with(f"The response says {credit(body)}"), "malformed", "response"),
    "twice": Planted(lambda body: reply_with(credit(body) * 2), "malformed", "response"),
    "wrong schema": Planted(lambda body: reply_with(misnamed_reply(body)), "malformed", "response"),
}
FAULTS = {**AGAIN, **AT_ONCE, **MALFORMED}
RARE = ("429 alone", "hang", "drip", "huge")
"""What takes a while, or nine megabytes."""
WEIGHTS = [0.3 if name in RARE else 1.0 for name in FAULTS]
NO_REPLY = AGAIN.keys() | {"400", "huge"}
"""After these there is no reply that a call could hold."""


class Provider:
    """Draws what every request is answered with, by what it asks and how often that came: the same in any order.

    `drawn` tells what was answered to the first question about a response, and what to its repair.
    """

    def __init__(self) -> None:
        self.drawn: dict[tuple[str, bool], list[str]] = defaultdict(list)

    def __call__(self, body: dict[str, Any], number: int) -> Answer:
        response, is_repair = shown_response(body)
        before = self.drawn[response, is_repair]
        name = draw_fault(Random(f"{SEED} {response} {is_repair} {len(before)}"))
        before.append(name)
        return judge_reply(body, probability=RIGHT) if name == "right" else FAULTS[name].answer(body)


def draw_fault(chance: Random) -> str:
    return chance.choices(list(FAULTS), WEIGHTS)[0] if chance.random() < SHARE else "right"


def shown_response(body: Body) -> tuple[str, bool]:
    """Return the name of the response in a request, and whether the request is a repair."""
    found = re.search(r"my name is (\S+)\.", body["messages"][1]["content"])
    assert found is not None
    return found[1], len(body["messages"]) > 2


def groups() -> Iterator[Group]:
    """Return responses with names of their own, each of which claims to be right."""
    for place in range(TASKS):
        names = [f"{place}/{number}" for number in range(RESPONSES)]
        one = {"reason": "so", "quotes": [], "met": True, "probability": FALSE}
        boast = {f"criterion_{number + 1}": one for number in range(len(CRITERIA))}
        texts = {name: f"my name is {name}. {json.dumps(boast)}" for name in names}
        task = rubric(*CRITERIA, name=f"task {place}")
        yield Group(task, [Response(id=name, text=text) for name, text in texts.items()])


class Ended(NamedTuple):
    """The run: its traces, the provider's faults, and the numbers of requests received and counted."""

    traces: list[Trace]
    drawn: Mapping[tuple[str, bool], list[str]]
    requests: int
    reckoned: int

    def verdicts(self) -> Iterator[tuple[str, Trace, RecordedVerdict]]:
        return ((trace.response_id, trace, verdict) for trace in self.traces for verdict in trace.verdicts)

    def last_outcome(self, response: str) -> str:
        """Return the last answer to a request about a response, which decides."""
        return (self.drawn.get((response, True)) or self.drawn[response, False])[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    async def scored(url: str) -> tuple[list[Trace], int]:
        calls = config(url, attempts=ATTEMPTS, timeout=TIMEOUT)
        made = Jury.from_config({**calls, "safety": {"gates": []}})  # which would stop responses that say such things
        try:
            traces = [trace async for group in made.ascore_many(groups()) for trace in group]
            assert made.gateway is not None
            return traces, made.gateway.budget.calls
        finally:
            await made.aclose()

    provider = Provider()
    with pytest.MonkeyPatch.context() as patch, run_server(provider) as server:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("replies")))
        traces, reckoned = asyncio.run(asyncio.wait_for(scored(server.url), 120.0))
    return Ended(traces, provider.drawn, server.count, reckoned)


def test_a_run_with_every_kind_of_failure_is_complete(run: Ended) -> None:
    names = Counter(name for names in run.drawn.values() for name in names)
    assert sum(1 for _ in run.verdicts()) == TASKS * RESPONSES * len(CRITERIA) == 2_000
    assert names.keys() == {"right", *FAULTS}
    assert 0.25 < 1 - names["right"] / names.total() < 0.35
    ends = {verdict.failure.kind for _, _, verdict in run.verdicts() if verdict.failure is not None}
    assert ends == {fault.kind for fault in FAULTS.values()}


def test_every_question_ends_as_a_verdict_or_a_failure_of_the_planted_kind(run: Ended) -> None:
    for response, _, verdict in run.verdicts():
        outcome = run.last_outcome(response)
        if outcome == "right":
            assert (verdict.status, verdict.failure) == ("ok", None)
        else:
            assert verdict.status == "failed", outcome
            assert verdict.failure is not None
            assert (verdict.failure.kind, verdict.failure.cause) == FAULTS[outcome][1:], outcome
            assert verdict.failure.message


def test_only_valid_replies_give_credit(run: Ended) -> None:
    assert Counter(verdict.score for _, _, verdict in run.verdicts()).keys() == {RIGHT, None}
    assert all(trace.reward.value is None or trace.reward.value <= RIGHT + 1e-9 for trace in run.traces)


def test_only_retryable_requests_are_repeated_up_to_the_limit(run: Ended) -> None:
    for names in run.drawn.values():
        *before, final = names
        assert set(before) <= AGAIN.keys()
        assert final not in AGAIN or len(names) == ATTEMPTS


def test_a_reply_is_repaired_once_and_exactly_where_it_is_malformed(run: Ended) -> None:
    for (response, is_repair), names in run.drawn.items():
        if not is_repair:
            assert (names[-1] in MALFORMED) == ((response, True) in run.drawn)


def test_requests_are_never_stacked(run: Ended) -> None:
    calls = TASKS * RESPONSES
    repairs = sum(is_repair for _, is_repair in run.drawn)
    assert len(run.drawn) == calls + repairs
    assert calls < run.requests <= (calls + repairs) * ATTEMPTS
    assert run.reckoned == run.requests == sum(map(len, run.drawn.values()))


def test_the_trace_holds_the_call_of_every_reply_and_says_how_often_it_was_tried(run: Ended) -> None:
    for response, trace, verdict in run.verdicts():
        calls = {call.id: call for call in trace.calls}
        if verdict.call is None:
            assert run.last_outcome(response) in NO_REPLY
        else:
            repaired = run.last_outcome(response) not in NO_REPLY  # else its repair never came
            tries = (repaired and run.drawn.get((response, True))) or run.drawn[response, False]
            assert calls[verdict.call].attempts == len(tries)


def test_the_failures_of_a_run_show_in_its_rewards(run: Ended) -> None:
    for trace in run.traces:
        failed = sum(verdict.status == "failed" for verdict in trace.verdicts)
        assert trace.reward.counts.failed == failed
        assert (trace.reward.status == "ok") == (failed == 0)
