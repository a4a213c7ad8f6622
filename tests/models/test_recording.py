"""Calls are recorded once, whole, and without secrets."""

import asyncio
import gzip
import json
import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import ConfigError, InputError
from jurygraph.models.recording import CallRecorder, Replay, read_recording
from jurygraph.models.request import RETRYABLE_FAULT_KINDS, Fault, Reply, Request, Token
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Message

SECRET = "sk-canary-0123456789"
REPLY = Reply(
    text='{"met": true}',
    finish="stop",
    tokens_in=11,
    tokens_out=7,
    tokens=(Token(text="yes", logprob=-0.1),),
)


def request(text: str = "Is it so?", **others: object) -> Request:
    message = Message(role="user", content=text)
    return Request.model_validate(
        {"provider": "litellm", "model": "openai/tiny", "messages": [message], **others}
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def record(path: Path, *requests: Request, secrets: tuple[str, ...] = ()) -> None:
    with closing(CallRecorder(path, Redactor(secrets))) as recorder:
        for one in requests:
            recorder.add(one, REPLY, 0.25)


def test_a_recorded_call_is_read_back(path: Path) -> None:
    asked = request(
        parameters={"temperature": 0.0, "top": [1, None, "é"]},
        answer={"type": "object"},
        form="native",
    )
    record(path, asked)
    (call,) = read_recording(path).calls.values()
    assert (call.key, call.request, call.reply, call.cost) == (asked.digest, asked, REPLY, 0.25)


def test_a_call_is_in_the_file_as_soon_as_it_is_added(path: Path) -> None:
    with closing(CallRecorder(path, Redactor([]))) as recorder:
        recorder.add(request(), REPLY, None)
        assert len(read_recording(path).calls) == 1


def test_a_call_is_recorded_once_even_by_two_recorders(path: Path) -> None:
    record(path, request("a"), request("a"), request("b"))
    record(path, request("b"), request("c"))
    assert [
        json.loads(line)["request"]["messages"][0]["content"]
        for line in path.read_text().splitlines()
    ] == [*"abc"]


def test_no_secret_reaches_the_file(path: Path) -> None:
    asked = request(
        f"key {SECRET}",
        parameters={"user": SECRET},
        answer={SECRET: {}},
        endpoint=f"http://{SECRET}/v1",
    )
    reply = Reply(
        text=f"it is {SECRET}",
        refusal=SECRET,
        tokens=(Token(text=SECRET, logprob=-1.0, others=((SECRET, -1.0),)),),
    )
    with closing(CallRecorder(path, Redactor([SECRET]))) as recorder:
        recorder.add(asked, reply, None)
        recorder.add(asked, reply, None)
    assert SECRET not in path.read_text()
    (call,) = read_recording(path).calls.values()
    assert call.reply.text == "it is [redacted]"
    assert call.key != asked.digest


@given(cut=st.integers(1, 10_000))
def test_a_torn_last_line_is_left_out_and_then_cut_off(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "calls.jsonl"
    record(path, request("first"))
    whole = path.read_bytes()
    record(path, request("secönd"))
    last = path.read_bytes()[len(whole) : -2]
    path.write_bytes(whole + last[: 1 + cut % len(last)])
    held = read_recording(path)
    assert (len(held.calls), held.size, held.has_incomplete_last_line) == (1, len(whole), True)
    lost = "calls.jsonl holds no reply to this request: its last line is cut off, and may have been"
    assert lost in refusal(Replay(path), request("secönd"))
    record(path, request("third"))
    assert path.read_bytes().startswith(whole)
    assert [call.request.messages[0].content for call in read_recording(path).calls.values()] == [
        "first",
        "third",
    ]


def test_a_last_line_without_a_newline_is_complete(path: Path) -> None:
    record(path, request("a"))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    held = read_recording(path)
    assert (len(held.calls), held.has_incomplete_last_line) == (1, False)
    record(path, request("b"))
    assert len(read_recording(path).calls) == 2


def broken(line: str) -> Iterator[tuple[str, str]]:
    value = json.loads(line)
    yield line.replace("Is it so", "Is it not so"), "field key: is not the digest"
    yield line.replace('"stop"', "5"), "field reply.finish"
    yield json.dumps({**value, "cost": -1}), "field cost"
    yield json.dumps({**value, "more": 1}), "field more: unknown"
    yield line[:-9], "not valid JSON"
    yield "[]", "is a list"


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("end", ["\n", "\n\n", "\n{}"])
def test_a_line_that_is_no_call_is_refused_with_its_number(
    path: Path, place: int, end: str
) -> None:
    record(path, request("before"), request())
    first, second = path.read_text().splitlines()
    wrong, told = list(broken(second))[place]
    path.write_text(f"{first}\n{wrong}{end}")
    with pytest.raises(InputError, match=r"calls\.jsonl, line 2.*") as refused:
        read_recording(path)
    assert told in str(refused.value)
    with pytest.raises(InputError):
        CallRecorder(path, Redactor([]))


def test_a_file_that_is_no_recording_is_not_truncated(path: Path) -> None:
    path.write_text("one line of mine")
    with pytest.raises(InputError):
        CallRecorder(path, Redactor([]))
    assert path.read_text() == "one line of mine"


def test_a_gzipped_recording_is_read_but_not_written(path: Path) -> None:
    record(path, request())
    path.write_bytes(gzip.compress(path.read_bytes()))
    before = path.read_bytes()
    assert len(read_recording(path).calls) == 1
    with pytest.raises(InputError, match="unpack it"):
        CallRecorder(path, Redactor([]))
    assert path.read_bytes() == before


def test_a_full_disk_is_reported_and_keeps_earlier_records(path: Path) -> None:
    record(path, request())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = CallRecorder(path, Redactor([]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, limit[1]))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            recorder.add(request("more"), REPLY, None)
        recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    held = read_recording(path)
    assert (len(held.calls), held.has_incomplete_last_line) == (1, True)


# What is replayed

SYSTEM = Message(role="system", content="You judge.")


def judged(text: str = "Is the sky blue?", **others: Any) -> Request:
    asked = {
        "provider": "openai-compatible",
        "endpoint": "http://judge:8000/v1",
        "model": "qwen",
        "messages": (SYSTEM, Message(role="user", content=text)),
        "parameters": {"temperature": 0.0, "max_tokens": 512},
        "answer": {"type": "object"},
        "form": "native",
        "prompt": "criteria",
        "prompt_version": "1",
    }
    return Request.model_validate(asked | others)


def recording(folder: Path, *requests: Request) -> Path:
    path = folder / "calls.jsonl"
    with closing(CallRecorder(path, Redactor([]))) as recorder:
        for number, one in enumerate(requests):
            recorder.add(one, Reply(text=f"reply {number}"), None)
    return path


def reply_of(backend: Replay, asked: Request) -> Reply:
    return asyncio.run(backend.complete(asked, 1.0))


def refusal(backend: Replay, asked: Request) -> str:
    with pytest.raises(Fault) as fault:
        reply_of(backend, asked)
    assert fault.value.kind == "unrecorded"
    assert fault.value.kind not in RETRYABLE_FAULT_KINDS
    return str(fault.value)


def test_a_recorded_request_gets_its_reply_again_and_again(tmp_path: Path) -> None:
    first, second = judged("a"), judged("a", sample=1)
    backend = Replay(recording(tmp_path, first, second))
    assert [reply_of(backend, one).text for one in (second, first, first)] == [
        "reply 1",
        "reply 0",
        "reply 0",
    ]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"model": "other"}, "it differs in model;"),
        ({"endpoint": None}, "it differs in endpoint;"),
        ({"parameters": {"temperature": 0.7, "max_tokens": 512}}, "it differs in temperature;"),
        ({"parameters": {"temperature": 0, "max_tokens": 512}}, "it differs in temperature;"),
        ({"parameters": {"temperature": 0.0}}, "it differs in max_tokens;"),
        (
            {"parameters": {"temperature": 0.0, "max_tokens": 512, "top_p": None}},
            "it differs in top_p;",
        ),
        ({"answer": {"type": "array"}, "sample": 3}, "it differs in answer, sample;"),
        (
            {"messages": (Message(role="user", content="Is the sky blue?"),)},
            "it differs in messages;",
        ),
        ({"messages": (Message(role="user", content="Is it?"),)}, "the question is not in it;"),
    ],
)
def test_a_request_that_was_not_recorded_fails_and_what_differs_is_named(
    tmp_path: Path, others: dict[str, Any], told: str
) -> None:
    assert f"calls.jsonl holds no reply to this request: {told}" in refusal(
        Replay(recording(tmp_path, judged())), judged(**others)
    )


def test_a_recording_of_several_models_needs_a_model_name(tmp_path: Path) -> None:
    path = recording(
        tmp_path, judged(), judged(provider="litellm", endpoint=None, model="openai/tiny")
    )
    with pytest.raises(
        ConfigError,
        match=r"several models.*litellm#openai/tiny, openai-compatible:http://judge:8000/v1#qwen",
    ):
        Replay(path)
    backend = Replay(path, "litellm#openai/tiny")
    assert (backend.provider, backend.endpoint, backend.model) == ("litellm", None, "openai/tiny")


def test_form_and_logprobs_are_those_of_the_request(tmp_path: Path) -> None:
    logprobs = {"logprobs": True, "top_logprobs": 5}
    backend = Replay(
        recording(
            tmp_path,
            judged(form="instructed", parameters=logprobs),
            judged(answer=None, form="text"),
        )
    )
    able = backend.capabilities
    assert (able.form, able.logprobs, able.top_logprobs) == ("instructed", True, 5)
