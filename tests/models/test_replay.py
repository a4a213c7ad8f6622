"""Recorded calls answer as the model did, and nothing else is answered."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import ConfigError
from jurygraph.models.recording import Recorder, Replay
from jurygraph.models.request import RETRYABLE, Fault, Reply, Request
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Message

SYSTEM = Message(role="system", content="You judge.")


def request(text: str = "Is the sky blue?", **others: Any) -> Request:
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
    with closing(Recorder(path, Redactor([]))) as recorder:
        for number, one in enumerate(requests):
            recorder.add(one, Reply(text=f"reply {number}"), None)
    return path


def reply_of(backend: Replay, asked: Request) -> Reply:
    return asyncio.run(backend.complete(asked, 1.0))


def refusal(backend: Replay, asked: Request) -> str:
    with pytest.raises(Fault) as fault:
        reply_of(backend, asked)
    assert fault.value.kind == "unrecorded"
    assert fault.value.kind not in RETRYABLE
    return str(fault.value)


def test_a_recorded_request_gets_its_reply_again_and_again(tmp_path: Path) -> None:
    first, second = request("a"), request("a", sample=1)
    backend = Replay(recording(tmp_path, first, second))
    assert [reply_of(backend, one).text for one in (second, first, first)] == ["reply 1", "reply 0", "reply 0"]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"model": "other"}, "it differs in model;"),
        ({"endpoint": None}, "it differs in endpoint;"),
        ({"parameters": {"temperature": 0.7, "max_tokens": 512}}, "it differs in temperature;"),
        ({"parameters": {"temperature": 0, "max_tokens": 512}}, "it differs in temperature;"),
        ({"parameters": {"temperature": 0.0}}, "it differs in max_tokens;"),
        ({"parameters": {"temperature": 0.0, "max_tokens": 512, "top_p": None}}, "it differs in top_p;"),
        ({"answer": {"type": "array"}, "sample": 3}, "it differs in answer, sample;"),
        ({"messages": (Message(role="user", content="Is the sky blue?"),)}, "it differs in messages;"),
        ({"messages": (Message(role="user", content="Is it?"),)}, "the question is not in it;"),
    ],
)
def test_a_request_that_was_not_recorded_fails_and_what_differs_is_named(
    tmp_path: Path, others: dict[str, Any], told: str
) -> None:
    assert f"calls.jsonl holds no reply to this request: {told}" in refusal(
        Replay(recording(tmp_path, request())), request(**others)
    )


def test_a_recording_of_several_models_needs_a_model_name(tmp_path: Path) -> None:
    path = recording(tmp_path, request(), request(provider="litellm", endpoint=None, model="openai/tiny"))
    with pytest.raises(
        ConfigError, match=r"several models.*litellm#openai/tiny, openai-compatible:http://judge:8000/v1#qwen"
    ):
        Replay(path)
    backend = Replay(path, "litellm#openai/tiny")
    assert (backend.provider, backend.endpoint, backend.model) == ("litellm", None, "openai/tiny")


def test_form_and_logprobs_are_those_of_the_request(tmp_path: Path) -> None:
    logprobs = {"logprobs": True, "top_logprobs": 5}
    backend = Replay(
        recording(tmp_path, request(form="instructed", parameters=logprobs), request(answer=None, form="text"))
    )
    able = backend.capabilities
    assert (able.form, able.logprobs, able.top_logprobs) == ("instructed", True, 5)
