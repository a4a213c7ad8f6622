"""Real engines from end to end: a jury judges rubrics by llama.cpp, in this process and over HTTP, into a run.

The model is tiny and its words are noise, so what holds here holds for any model: a verdict is what its whole reply
says, with P(met) from the engine's own log probabilities, or a failure by its right name.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph import RecordedVerdict, Response, Task, Trace
from jurygraph.models.request import Reply
from jurygraph.runs.calls import CallStore
from jurygraph.runs.run import Run
from tests.models.engine import engine_over_http
from tests.models.judge_scripts import responses, rubric
from tests.models.tiny_gguf import write_tiny
from tests.runs.sample_runs import score, write_tasks

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"),
]

AT_ONCE = 50
BRIEF = {str(ord(sign)): 10.0 for sign in '"}'}
"""Ends texts and numbers early; a byte's token has its number."""

LIKELY_ONE = {**BRIEF, str(ord("1")): 6.0}
SEVEN = {**BRIEF, str(ord("7")): 8.0}


class JudgedReply(NamedTuple):
    """A verdict, the reply that its call kept in the run, and the name of its criterion in it."""

    verdict: RecordedVerdict
    reply: Reply | None
    name: str


class Outcome(NamedTuple):
    """The content of a run's file: `calls` is the number of calls, repaired ones included."""

    traces: list[Trace]
    verdicts: list[JudgedReply]
    calls: int


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def served(tiny: Path) -> Iterator[str]:
    """Serve the engine over HTTP, with its key where both backends look for it."""
    with engine_over_http(tiny) as (url, key), pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_API_KEY", key)
        patch.setenv("HOSTED_VLLM_API_BASE", url)
        patch.setenv("HOSTED_VLLM_API_KEY", key)
        yield url


def config(model: str, bias: dict[str, float] = LIKELY_ONE, tokens: int = 400, **parameters: Any) -> dict[str, Any]:
    """Return a config that needs no quotations: noise quotes nothing of a response."""
    calls = {"max_tokens": tokens, "concurrency": AT_ONCE, "parameters": {"logit_bias": bias, **parameters}}
    return {"model": model, "evaluators": ["criteria"], "calls": calls, "safety": {"evidence": "off"}}


def judge_group(folder: Path, config: dict[str, Any], task: Task, group: list[Response]) -> Outcome:
    """Score a group into a run, and read the result from its file."""
    line = {**task.model_dump(mode="json"), "responses": [one.model_dump(mode="json") for one in group]}
    score(folder / "run", write_tasks(folder, [line]), config)
    with closing(Run.open(folder / "run")) as run:
        traces, kept = list(run.traces()), CallStore(run.ledger)
        verdicts = [one for trace in traces for one in _with_replies(trace, kept)]
        return Outcome(traces, verdicts, run.ledger.count_records("call"))


def _with_replies(trace: Trace, kept: CallStore) -> Iterator[JudgedReply]:
    for place, verdict in enumerate(trace.verdicts):
        found = None if verdict.call is None else kept.find(verdict.call)
        yield JudgedReply(verdict, found and found.reply, f"criterion_{place % 4 + 1}")


def criteria(number: int) -> Task:
    return rubric(*(f"kind-{place}" for place in range(number)))


def texts(number: int) -> list[Response]:
    return responses(*(f"Dear friend, this is letter {place}." for place in range(number)))


def check(one: JudgedReply) -> None:
    """Assert that a verdict is what its whole reply says, or a failure that its reply justifies."""
    verdict, reply = one.verdict, one.reply
    assert reply is not None
    if verdict.status == "ok":
        said = json.loads(reply.text)[one.name]
        assert reply.finish == "stop"
        assert is_valid_reply(reply.text)
        assert verdict.score is not None
        assert 0.0 <= verdict.score <= 1.0
        assert (verdict.met, verdict.reason) == (said["met"], said["reason"])
    else:
        assert (verdict.status, verdict.score, verdict.met) == ("failed", None, None)
        assert verdict.failure is not None
        wrong = "truncated" if reply.finish == "length" else "malformed"
        assert (verdict.failure.kind, verdict.failure.cause) == (wrong, "response")
        assert wrong == "truncated" or not is_valid_reply(reply.text)


def is_valid_reply(text: str) -> bool:
    """Return True if a reply has the requested form and is consistent."""
    said = json.loads(text)
    return list(said) == [f"criterion_{place + 1}" for place in range(len(said))] and all(
        list(part) == ["reason", "quotes", "met", "probability"]
        and isinstance(part["reason"], str)
        and all(isinstance(quote, str) for quote in part["quotes"])
        and isinstance(part["met"], bool)
        and 0.0 <= part["probability"] <= 1.0
        and part["met"] == (part["probability"] >= 0.5)
        for part in said.values()
    )


# In this process


@pytest.fixture(scope="module")
def in_process(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Six criteria, requested in a call of four and one of two."""
    return judge_group(tmp_path_factory.mktemp("gguf"), config(f"gguf:{tiny}"), criteria(6), texts(4))


def test_an_engine_in_process_judges_a_whole_rubric(in_process: Outcome) -> None:
    traces, verdicts, calls = in_process
    for one in verdicts:
        check(one)
    assert [len(trace.calls) for trace in traces] == [2, 2, 2, 2]
    assert 8 <= calls <= 16
    assert [one.verdict.subject for one in verdicts[:6]] == [f"kind-{place}" for place in range(6)]
    assert sum(one.verdict.status == "ok" for one in verdicts) >= len(verdicts) / 2
    assert all(trace.reward.value is not None for trace in traces if all(v.status == "ok" for v in trace.verdicts))


def test_an_endless_reply_in_process_is_truncated(tiny: Path, tmp_path: Path) -> None:
    _, verdicts, _ = judge_group(tmp_path, config(f"gguf:{tiny}", tokens=30), criteria(5), texts(2))
    for one in verdicts:
        check(one)
    assert {one.verdict.failure.kind for one in verdicts if one.verdict.failure} == {"truncated"}
    assert len(verdicts) == 10


# Over HTTP


def test_a_probability_above_one_gives_no_credit(served: str, tmp_path: Path) -> None:
    """The engine's own schemas, unlike its grammars, heed no bounds of numbers."""
    model = f"openai-compatible:{served}#tiny"
    traces, verdicts, calls = judge_group(tmp_path, config(model, SEVEN), criteria(1), texts(4))
    for one in verdicts:
        check(one)
        assert one.reply is not None
        assert json.loads(one.reply.text)["criterion_1"]["probability"] >= 7.0
    assert calls == 8  # each was repaired, or was to be
    assert {trace.reward.value for trace in traces} == {None}
