"""A group before its model: structured verdicts, one repair, failures by kind, and no secret in any record."""

import asyncio
import base64
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jurygraph import Jury
from jurygraph.models.limits import RetryPolicy
from jurygraph.schema import Call, Task, Trace
from tests.models.judge_scripts import (
    Script,
    config,
    judge_reply,
    jury,
    requested_items,
    responses,
    rubric,
)
from tests.models.server import (
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Server,
    hang,
    raw_body,
    reply_with,
    run_server,
    status,
)
from tests.rows import all_rows
from tests.virtual_time import HeldLoop, pass_time, run_held

PRICES = {"tiny": {"input": 1.0, "output": 10.0}}
COST = (TOKENS_IN * 1.0 + TOKENS_OUT * 10.0) / 1_000_000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "replies"
    monkeypatch.setenv("JURYGRAPH_CACHE", str(folder))
    return folder


def scored(url: str, *texts: str, task: Task | None = None, **calls: Any) -> list[Trace]:
    """Return the traces of a new jury."""
    with jury(url, **calls) as made:
        return made.score(task or rubric("clear"), responses(*texts))


def score_one_response(script: Script, **calls: Any) -> tuple[Trace, int]:
    """Return the trace of one response under one criterion, and the number of requests."""
    with run_server(script) as server:
        (trace,) = scored(server.url, "Dear all, the office is closed.", **calls)
    return trace, server.count


def right_reply(body: Mapping[str, Any], number: int) -> Answer:
    return judge_reply(body)


class TestAWarmCache:
    def test_another_jury_sends_nothing_and_every_call_has_the_cost_it_had(self) -> None:
        task = rubric("clear", "short", "kind", "true", "signed")
        with run_server(right_reply) as server:
            cold = scored(server.url, "one", "two", task=task, prices=PRICES)
            sent = server.count
            with Jury.from_config(
                config(server.url, prices=PRICES), max_calls=0, max_cost=0.0
            ) as made:
                warm = made.score(task, responses("one", "two"))
                assert made.gateway is not None
                billed = made.gateway.budget.spent
        assert (sent, server.count, billed) == (4, 4, 0.0)
        assert [(call.cache_hit, call.cost) for trace in cold for call in trace.calls] == [
            (False, COST)
        ] * 4
        assert [(call.cache_hit, call.cost) for trace in warm for call in trace.calls] == [
            (True, COST)
        ] * 4
        assert [trace.verdicts for trace in warm] == [trace.verdicts for trace in cold]
        assert [trace.reward for trace in warm] == [trace.reward for trace in cold]

    @pytest.mark.parametrize("unwanted", [False, None])
    def test_an_endpoint_that_takes_no_log_probabilities_is_told_nothing_of_them(
        self, unwanted: bool | None
    ) -> None:
        with run_server(lambda body, number: judge_reply(body)) as server:
            scored(server.url, "Dear all", parameters={"logprobs": unwanted, "top_logprobs": 5})
            scored(server.url, "Dear all")
        without, usual = (seen.body for seen in server.requests)
        assert {"logprobs", "top_logprobs"} & without.keys() == set()
        assert (usual["logprobs"], usual["top_logprobs"]) == (True, 20)


def criterion_verdict(probability: float) -> dict[str, Any]:
    return {
        "reason": "so it is",
        "quotes": ["Dear all"],
        "met": probability >= 0.5,
        "probability": probability,
    }


CREDIT = json.dumps({"criterion_1": criterion_verdict(1.0)})
MALFORMED = {
    "no JSON": "It is clear.",
    "fenced, with words": f"Here it is:\n```json\n{CREDIT}\n```",
    "thought without end": f"<think>It may be {CREDIT}",
    "another schema": json.dumps({"score": 1.0}),
    "a field too many": json.dumps(
        {"criterion_1": criterion_verdict(1.0), "criterion_2": criterion_verdict(1.0)}
    ),
    "out of range": json.dumps({"criterion_1": criterion_verdict(1.5)}),
    "at odds with itself": json.dumps(
        {"criterion_1": {**criterion_verdict(1.0), "probability": None}}
    ),
}


WRAPPED = {
    "fenced": f"```json\n{CREDIT}\n```",
    "fenced on one line": f" ``` {CREDIT}```\n",
    "after a thought": f"<think>\nThe reply could be {{}}.\n</think>\n\n{CREDIT}",
    "after a thought, fenced": f"<thinking>```so```</thinking>\n```JSON\n{CREDIT}\n```",
}


@all_rows("text", WRAPPED.values())
def test_a_reply_in_a_fence_or_after_a_thought_is_read_as_without_them(text: str) -> None:
    def verdict_on(text: str) -> tuple[Any, int]:
        with run_server(lambda body, number: reply_with(text)) as server:
            (trace,) = scored(server.url, "Dear all")
        (verdict,) = trace.verdicts
        return verdict.model_dump(exclude={"calls", "call", "digest"}), server.count

    assert verdict_on(text) == verdict_on(CREDIT)
    assert verdict_on(text)[1] == 1


class TestARepair:
    @all_rows("text", MALFORMED.values())
    def test_a_malformed_reply_is_shown_once_with_its_error_and_the_second_counts(
        self, text: str
    ) -> None:
        with run_server(
            lambda body, number: reply_with(text) if number == 1 else judge_reply(body)
        ) as server:
            (trace,) = scored(server.url, "Dear all")
        assert server.count == 2
        first, second = (seen.body["messages"] for seen in server.requests)
        assert second[: len(first)] == first
        shown, told = second[len(first) :]
        assert shown == {"role": "assistant", "content": text}
        assert told["role"] == "user"
        assert told["content"].startswith("That cannot be used: ")
        (verdict,) = trace.verdicts
        assert (verdict.score, verdict.status) == (0.9, "ok")
        repair, repaired = repair_and_repaired(trace)
        assert (verdict.call, {repair.id, repaired.id}) == (
            repair.id,
            {call.id for call in trace.calls},
        )

    @all_rows("text", MALFORMED.values())
    def test_a_second_malformed_reply_is_a_failure_that_names_its_call(self, text: str) -> None:
        trace, count = score_one_response(
            lambda body, number: reply_with(text, served=f"version {number}")
        )
        (verdict,) = trace.verdicts
        assert count == 2
        assert kind_of(trace) == ("failed", "malformed", "response")
        repair, _ = repair_and_repaired(trace)
        assert (verdict.call, repair.served) == (repair.id, "version 2")
        assert trace.reward.coverage == 0.0

    def test_a_fault_in_the_repair_keeps_its_own_kind(self) -> None:
        trace, count = score_one_response(
            lambda body, number: (
                reply_with("It is clear.") if number == 1 else reply_with(CREDIT, finish="length")
            )
        )
        assert count == 2
        assert kind_of(trace) == ("failed", "truncated", "response")
        trace, count = score_one_response(
            lambda body, number: reply_with("It is clear.") if number == 1 else status(400)
        )
        assert count == 2
        assert kind_of(trace) == ("failed", "rejected", "infrastructure")
        first, repair = (
            next(call for call in trace.calls if call.id == use.id)
            for use in trace.verdicts[0].calls
        )
        assert (trace.verdicts[0].call, first.served) == (first.id, "tiny-1")  # it was paid for
        assert (first.fault, repair.fault, repair.served) == (None, "rejected", None)

    @all_rows(
        ("answer", "kind"),
        [
            (reply_with(CREDIT, finish="length"), "truncated"),
            (reply_with(CREDIT[:-9], finish="length"), "truncated"),
            (reply_with(CREDIT, refusal="I will not judge that."), "refused"),
            (reply_with(None, refusal="I will not judge that."), "refused"),
            (reply_with(CREDIT, finish="content_filter"), "refused"),
            (reply_with(""), "empty"),
            (reply_with(None), "empty"),
            (reply_with(" \n"), "empty"),
        ],
    )
    def test_truncated_refused_or_empty_replies_are_not_repaired(
        self, answer: Answer, kind: str
    ) -> None:
        trace, count = score_one_response(lambda body, number: answer)
        (verdict,) = trace.verdicts
        assert count == 1
        assert kind_of(trace) == ("failed", kind, "response")
        assert [call.id for call in trace.calls] == [verdict.call]

    @pytest.mark.parametrize(
        "bad",
        [
            (reply_with(CREDIT, finish="length"),),
            (reply_with(""),),
            (reply_with(CREDIT, refusal="No."),),
            (reply_with("It is clear."), reply_with("It is.")),
            (reply_with("It is clear."), reply_with("", finish="length")),
            (reply_with("It is clear."), status(400)),
        ],
    )
    def test_a_useless_reply_is_not_cached_for_the_next_run(self, bad: tuple[Answer, ...]) -> None:
        with run_server(
            lambda body, number: bad[number - 1] if number <= len(bad) else judge_reply(body)
        ) as server:
            (failed,) = scored(server.url, "Dear all")
            (better,) = scored(server.url, "Dear all")
            scored(server.url, "Dear all")
        assert (failed.verdicts[0].status, better.verdicts[0].status) == ("failed", "ok")
        assert server.count == len(bad) + 1


def repair_and_repaired(trace: Trace) -> tuple[Call, Call]:
    """Return the two calls of a trace: the repair, and the call that it repaired."""
    (verdict,) = trace.verdicts
    assert [use.purpose for use in verdict.calls] == ["judge", "repair"]
    calls = {call.id: call for call in trace.calls}
    repaired, repair = (calls[use.id] for use in verdict.calls)
    return repair, repaired


def kind_of(trace: Trace) -> tuple[str, str | None, str | None]:
    """Return status, kind and cause of the only verdict of a trace."""
    (verdict,) = trace.verdicts
    if verdict.failure is None:
        return verdict.status, None, None
    return verdict.status, verdict.failure.kind, verdict.failure.cause


@pytest.fixture
def held_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass but what a test says, and retry at once."""
    monkeypatch.setattr("jurygraph.concurrency.new_event_loop", HeldLoop)
    monkeypatch.setattr(
        "jurygraph.models.gateway.RetryPolicy", lambda attempts: RetryPolicy(attempts, 0.0, 0.0)
    )


@pytest.mark.usefixtures("held_clock")
class TestWhatIsNoReply:
    def test_a_group_has_one_deadline_for_what_is_in_flight_and_what_is_queued(self) -> None:
        with run_server(lambda body, number: hang(passing=0.5)) as server:
            traces = scored(server.url, "one", "two", "three", concurrency=1, deadline=0.5)
        assert server.count == 1
        assert [kind_of(trace) for trace in traces] == [
            ("failed", "deadline", "infrastructure")
        ] * 3

    def test_a_cancelled_group_leaves_the_jury_usable(self) -> None:
        async def given_up(server: Server) -> Trace:
            made = jury(server.url, concurrency=1, timeout=0.5, attempts=1)
            try:
                scoring = asyncio.create_task(made.ascore(rubric("clear"), responses("one", "two")))
                await server.wait_for(1)
                scoring.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await scoring
                pass_time(0.5)
                (trace,) = await made.ascore(rubric("clear"), responses("three"))
                return trace
            finally:
                await made.aclose()

        with run_server(
            lambda body, number: hang() if number == 1 else judge_reply(body)
        ) as server:
            trace = run_held(given_up(server))
        assert trace.verdicts[0].score == 0.9


CANARY = "sk-canary/7+x&y=z%41~mlut"
SENT_BACK: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "URL-encoded": lambda key: quote(key, safe=""),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of the header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(f"key: {key}!".encode()).decode(),
}
PLACES: Mapping[str, Callable[[str, Mapping[str, Any]], Answer]] = {
    "error 429": lambda key, body: status(429, body={"error": {"message": f"wrong key {key}"}}),
    "error 400": lambda key, body: status(400, body=f"<h1>{key}</h1>"),
    "error 500": lambda key, body: status(500, body={"detail": f"you sent {key}"}),
    "no chat completion": lambda key, body: raw_body(f"{key} is what you sent"),
    "reason": lambda key, body: judge_reply(body, reason=f"your key is {key}"),
    "malformed": lambda key, body: reply_with(f"your key is {key}"),
    "wrong field": lambda key, body: reply_with(json.dumps({key: 1})),
    "wrong value": lambda key, body: reply_with(json.dumps({"criterion_1": key})),
    "refusal": lambda key, body: reply_with(None, refusal=f"not with {key}"),
    "finish": lambda key, body: reply_with(CREDIT, finish=key),
    "model": lambda key, body: reply_of_model(body, key),
    "thought": lambda key, body: reply_with(CREDIT, logprobs=[(key, -0.1, {}), (CREDIT, -0.1, {})]),
}


def reply_of_model(body: Mapping[str, Any], served: str) -> Answer:
    return reply_with(
        json.dumps({name: criterion_verdict(0.9) for name in requested_items(body)}), served=served
    )


class TestSecrets:
    @pytest.mark.landing
    @pytest.mark.parametrize(
        ("place", "form"),
        [
            pytest.param(
                place, form, marks=() if (row + column) % 3 == 0 else pytest.mark.exhaustive
            )
            for row, place in enumerate(PLACES)
            for column, form in enumerate(SENT_BACK)
        ],
    )
    def test_an_echoed_key_is_in_no_record(
        self,
        place: str,
        form: str,
        cache: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setenv("JURYGRAPH_API_KEY", CANARY)
        key = SENT_BACK[form](CANARY)
        record = str(tmp_path / "record.jsonl")
        with (
            caplog.at_level(logging.DEBUG),
            run_server(lambda body, number: PLACES[place](key, body)) as server,
        ):
            (trace,) = scored(server.url, "Dear all", attempts=1, record=record)
        assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        records = [
            trace.model_dump_json(),
            repr(trace),
            caplog.text,
            *(each.decode("latin-1") for each in files),
        ]
        assert [record for record in records if contains_canary(record)] == []


def contains_canary(record: str) -> bool:
    """Return True if a record contains the canary in any of its possible forms."""
    forms: Sequence[str] = [
        CANARY,
        quote(CANARY, safe=""),
        *(base64.b64encode(b"." * n + CANARY.encode())[n + 2 : -4].decode() for n in range(3)),
    ]
    forms = [*forms, *(form.replace("+", "-").replace("/", "_") for form in forms)]
    plain = re.sub(r"\\+u00([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), record)
    return any(form in record or form in plain for form in forms)
