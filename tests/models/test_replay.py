"""Recorded calls answer as the model did, and nothing else is answered."""

import asyncio
import logging
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import ConfigError, InputError
from jurygraph.models.faults import RETRYABLE, Fault
from jurygraph.models.recording import _FIELDS, Recorder, Replay
from jurygraph.models.request import Reply, Request
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
        ({"model": "other"}, 'model: model is "other" here and "qwen" there'),
        ({"provider": "litellm", "endpoint": None}, 'model: provider is "litellm" here and "openai-compatible" there'),
        ({"endpoint": None}, 'model: endpoint is null here and "http://judge:8000/v1" there'),
        ({"parameters": {"temperature": 0.7, "max_tokens": 512}}, "parameters: temperature is 0.7 here and 0.0 there"),
        ({"parameters": {"temperature": 0, "max_tokens": 512}}, "parameters: temperature is 0 here and 0.0 there"),
        ({"parameters": {"temperature": 0.0}}, "parameters: max_tokens is not given here and 512 there"),
        ({"prompt_version": "2"}, 'prompt version: prompt_version is "2" here and "1" there'),
        ({"answer": {"type": "array"}}, "answer schema;"),
        ({"form": "instructed"}, 'answer schema: form is "instructed" here and "native" there'),
        ({"messages": (Message(role="user", content="Is the sky blue?"),)}, "messages;"),
        ({"sample": 3}, "sample: sample is 3 here and 0 there"),
        (
            {"parameters": {}, "messages": (Message(role="user", content="Is it?"),), "sample": 1},
            "parameters: max_tokens",
        ),
    ],
)
def test_a_request_that_was_not_recorded_fails_and_what_differs_first_is_named(
    tmp_path: Path, others: dict[str, Any], told: str
) -> None:
    said = refusal(Replay(recording(tmp_path, request())), request(**others))
    assert f"differs in its {told}" in said
    assert len(said) < 300


def test_every_field_but_the_marks_can_differ() -> None:
    assert set(_FIELDS) == set(Request.model_fields) - {"marks"}


def test_the_nearest_request_has_the_most_similar_question(tmp_path: Path) -> None:
    near = request("Is the response polite to the reader, and does it say why?")
    far = [request(f"Does the plan number {number} keep to its budget of {number} euros?") for number in range(40)]
    said = refusal(
        Replay(recording(tmp_path, *far, near)), request("Is the response polite to a reader, and does it say how?")
    )
    assert near.digest[:12] in said


def test_among_equal_questions_the_nearest_differs_in_fewest_fields(tmp_path: Path) -> None:
    path = recording(tmp_path, request(parameters={}, prompt_version="0"), request(parameters={"temperature": 1.0}))
    assert "temperature is 0.5 here and 1.0 there" in refusal(Replay(path), request(parameters={"temperature": 0.5}))


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


def test_capabilities_of_another_model_do_not_count(tmp_path: Path) -> None:
    path = recording(tmp_path, request(model="a", form="instructed"), request("1", model="b"), request("2", model="b"))
    assert Replay(path, "openai-compatible:http://judge:8000/v1#a").capabilities.form == "instructed"


def test_a_torn_last_line_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = recording(tmp_path, request("a"), request("b"))
    path.write_bytes(path.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        backend = Replay(path)
    assert "torn and left out" in caplog.text
    assert reply_of(backend, request("a")).text == "reply 0"
    refusal(backend, request("b"))


def test_a_file_without_calls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no call"):
        Replay(recording(tmp_path))
