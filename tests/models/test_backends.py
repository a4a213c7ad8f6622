"""The contract of every backend over HTTP: the same replies, faults, waits and secrets, whichever client sends.

`test_fault_modes` tries the malformed replies, here and in process.
"""

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import pytest

from jurygraph.models.backend import Backend
from jurygraph.models.backends.chat_model import ChatModelBackend
from jurygraph.models.backends.litellm import LiteLLMBackend
from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend
from jurygraph.models.request import RETRYABLE_FAULT_KINDS, Fault, Reply, Request
from tests.models.fault_chat_model import KEY, OpenAIChat
from tests.models.fault_targets import each_of
from tests.models.server import (
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Server,
    cut_off,
    drip,
    hang,
    nobody,
    raw_body,
    reply_with,
    reset,
    run_server,
    status,
)
from tests.rows import all_rows
from tests.virtual_time import run_held

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"
)

BACKENDS: dict[str, Callable[[str], Backend]] = {
    "openai-compatible": lambda url: OpenAICompatibleBackend(url, "tiny", KEY),
    "litellm openai": lambda url: LiteLLMBackend("openai/tiny", url),
    "litellm hosted_vllm": lambda url: LiteLLMBackend("hosted_vllm/tiny", url),
    "chat_model": lambda url: ChatModelBackend(OpenAIChat(url=url, model_name="tiny")),
}
every_backend = each_of("name", BACKENDS)
every_reader = each_of("name", [name for name in BACKENDS if name != "chat_model"])
"""Backends that read the reply's JSON themselves: a chat model's owner decides what it tells."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}},
    "required": ["met"],
    "additionalProperties": False,
}
MESSAGES = [
    {"role": "system", "content": "You judge."},
    {"role": "user", "content": "Is it so? ünïcode 素数"},
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def request(backend: Backend, **fields: Any) -> Request:
    asked = {"provider": backend.provider, "model": backend.model, "messages": MESSAGES, **fields}
    return Request.model_validate(asked)


async def complete(backend: Backend, timeout: float, **fields: Any) -> Reply:
    try:
        return await backend.complete(request(backend, **fields), timeout)
    finally:
        await backend.close()


def ask(name: str, server: Server, timeout: float = 30.0, **fields: Any) -> Reply:
    return run_held(complete(BACKENDS[name](server.url), timeout, **fields))


def reply_to(name: str, answer: Answer) -> Reply:
    with run_server(lambda body, number: answer) as server:
        return ask(name, server)


def fault_of(name: str, answer: Answer, timeout: float = 30.0) -> Fault:
    """Return the fault of one request, which is sent once."""
    with run_server(lambda body, number: answer) as server:
        with pytest.raises(Fault) as caught:
            ask(name, server, timeout)
        assert server.count == 1
    return caught.value


def error(number: int, **fields: Any) -> Answer:
    return status(
        number,
        body={
            "error": {"message": "planted", "type": "invalid_request_error", "code": None} | fields
        },
    )


@every_backend
def test_a_reply_has_its_text_its_end_its_model_and_its_tokens(name: str) -> None:
    whole = reply_to(name, reply_with("yes", served="tiny-1"))
    assert whole == Reply(
        text="yes", finish="stop", served="tiny-1", tokens_in=TOKENS_IN, tokens_out=TOKENS_OUT
    )
    cut_short = reply_to(name, reply_with('{"met": tr', finish="length", usage=False))
    assert cut_short == Reply(text='{"met": tr', finish="length", served="tiny-1")
    assert (
        reply_to(name, reply_with("yes", refusal="I would rather not.")).refusal
        == "I would rather not."
    )


@every_reader
def test_the_tokens_of_a_reply_come_with_the_likeliest_others_first(name: str) -> None:
    reply = reply_to(
        name, reply_with("no!", logprobs=[("no", -2.5, {"no": -2.5, "yes": -0.25}), ("!", -1, {})])
    )
    assert [(token.text, token.logprob, token.others) for token in reply.tokens] == [
        ("no", -2.5, (("yes", -0.25), ("no", -2.5))),
        ("!", -1.0, ()),
    ]


@every_backend
def test_messages_and_parameters_are_sent_with_the_key_in_the_header_alone(name: str) -> None:
    parameters = {"temperature": 0.25, "max_tokens": 9}
    with run_server(lambda body, number: reply_with("yes")) as server:
        ask(name, server, parameters=parameters)
    [seen] = server.requests
    assert seen.body == {"model": "tiny", "messages": MESSAGES, **parameters}
    assert seen.headers["authorization"] == f"Bearer {KEY}"


@every_reader
def test_the_schema_is_sent_in_the_native_form_only(name: str) -> None:
    with run_server(lambda body, number: reply_with('{"met": true}')) as server:
        for form in ("native", "instructed", "text"):
            ask(name, server, answer=SCHEMA, form=form)
    native, *others = (seen.body.get("response_format") for seen in server.requests)
    assert native == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
    }
    assert others == [None, None]


STATUS_KINDS = ("rejected", "unauthorised", "unknown-model", "timeout", "server", "rate-limit")
FAULTS: Sequence[tuple[Answer, str]] = [
    *zip(map(status, (400, 401, 404, 504, 409, 429)), STATUS_KINDS, strict=True),
    *(
        (error(code, type="insufficient_quota", code="insufficient_quota"), "unauthorised")
        for code in (429, 400)
    ),
    (raw_body("<html>"), "unreadable"),
    (cut_off(), "connection"),
    (reset(), "connection"),
]
FAULTS_IN_THE_BODY: Sequence[tuple[Answer, str]] = [
    (error(400, code="model_not_found"), "unknown-model"),
    (error(400, code="context_length_exceeded"), "overflowed"),
    (error(400, code="content_policy_violation"), "refused"),
    (error(400, code="content_filter"), "refused"),
    (raw_body('{"choices": []}'), "unreadable"),
    (reply_with("ye", finish="abort"), "server"),
    (reply_with("ye", finish="error"), "server"),
]


@every_backend
@all_rows(("answer", "kind"), FAULTS)
def test_each_failure_is_a_fault_of_its_kind(name: str, answer: Answer, kind: str) -> None:
    fault = fault_of(name, answer)
    assert (fault.kind, fault.is_unsent, fault.retry_after) == (kind, False, None)
    assert fault.__cause__ is None  # which could reveal a key


@every_reader
@all_rows(("answer", "kind"), FAULTS_IN_THE_BODY)
def test_each_failure_in_the_body_is_a_fault_of_its_kind(
    name: str, answer: Answer, kind: str
) -> None:
    assert fault_of(name, answer).kind == kind


@every_backend
@all_rows(
    ("code", "headers", "seconds"),
    [
        (429, {"Retry-After": "7"}, 7.0),
        (503, {"Retry-After": "7"}, 7.0),
        (429, {"retry-after-ms": "1500"}, 1.5),
        (500, {}, None),
        (400, {"Retry-After": "7"}, None),
    ],
)
def test_the_wait_is_that_of_a_header_of_a_retryable_fault(
    name: str, code: int, headers: dict[str, str], seconds: float | None
) -> None:
    assert fault_of(name, status(code, headers)).retry_after == seconds


@every_backend
@all_rows("answer", [hang(passing=0.5), drip("x" * 200, 0.1)])
def test_an_incomplete_reply_at_the_timeout_is_a_fault(name: str, answer: Answer) -> None:
    assert fault_of(name, answer, timeout=0.5).kind == "timeout"


@every_backend
def test_an_unreachable_server_is_a_connection_fault(name: str) -> None:
    with nobody() as closed, pytest.raises(Fault) as caught:
        run_held(complete(BACKENDS[name](closed), 30.0))
    assert (caught.value.kind, caught.value.kind in RETRYABLE_FAULT_KINDS) == ("connection", True)
    assert caught.value.is_unsent == (name != "chat_model")


@every_backend
def test_cancellation_passes(name: str) -> None:
    async def cancelled(server: Server) -> None:
        asking = asyncio.create_task(complete(BACKENDS[name](server.url), 30.0))
        await server.wait_for(1)
        asking.cancel()
        await asking

    with run_server(lambda body, number: hang()) as server, pytest.raises(asyncio.CancelledError):
        run_held(cancelled(server))


FORMS = [
    KEY,
    quote(KEY, safe=""),
    base64.b64encode(KEY.encode()).decode(),
    base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
]


@every_backend
def test_an_echoed_key_of_several_lines_is_not_in_the_fault(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (KEY, KEY[::-1])
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    monkeypatch.setenv("SOME_PRIVATE_KEY", key)
    message = str(fault_of(name, error(401, message=f"bad key {key}!")))
    assert "[redacted]" in message
    assert not any(line in message for line in lines)


@every_backend
def test_an_echoed_key_is_not_in_the_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    for form in FORMS:
        message = str(fault_of(name, error(401, message=f"bad key {form}!")))
        assert "[redacted]" in message
        assert form[4:-4] not in message
    for before in range(180, 310, 7):
        message = str(fault_of(name, error(500, message="x" * before + KEY + "y" * 300)))
        assert KEY[:8] not in message
        assert len(message) < 400
