"""The native backend, against a real server with planted faults."""

import asyncio
import gc
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jurygraph.models.backend import EndpointCapabilities
from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend
from jurygraph.models.request import RETRYABLE_FAULT_KINDS, Fault, Reply, Request
from jurygraph.schema import Message
from tests.models.server import (
    Answer,
    raw_body,
    reply_with,
    run_server,
    status,
)
from tests.rows import all_rows
from tests.virtual_time import run_held

KEY = "sk-canary+/7d1f=mlut"
CLOSED = "http://closed.example/v1"


def request(**fields: Any) -> Request:
    message = Message(role="user", content="Is 7 a prime? ünïcode 素数")
    whole = {"provider": "openai-compatible", "model": "tiny", "messages": (message,), **fields}
    return Request(**whole)


def with_backend(
    backend: OpenAICompatibleBackend, do: Callable[[OpenAICompatibleBackend], Awaitable[Any]]
) -> Any:
    async def whole() -> Any:
        try:
            return await do(backend)
        finally:
            await backend.close()

    return run_held(whole())


def reply_to(
    answer: Answer, asked: Request | None = None, timeout: float = 5.0, key: str | None = KEY
) -> Reply:
    with run_server(lambda body, number: answer) as server:
        backend = OpenAICompatibleBackend(server.url, "tiny", key)
        reply: Reply = with_backend(backend, lambda one: one.complete(asked or request(), timeout))
        return reply


def fault_of(answer: Answer, timeout: float = 5.0) -> Fault:
    with pytest.raises(Fault) as caught:
        reply_to(answer, timeout=timeout)
    return caught.value


def envelope(**fields: Any) -> str:
    return json.dumps(
        {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], **fields}
    )


# What is sent


def sent_body_and_headers(
    backend_fields: dict[str, Any], asked: Request
) -> tuple[dict[str, Any], dict[str, str]]:
    with run_server(lambda body, number: reply_with("yes")) as server:
        with_backend(
            OpenAICompatibleBackend(server.url, "tiny", **backend_fields),
            lambda one: one.complete(asked, 5.0),
        )
        [seen] = server.requests
        return seen.body, seen.headers


def test_a_parameter_cannot_take_the_place_of_the_messages() -> None:
    body, _ = sent_body_and_headers({}, request(parameters={"messages": [], "model": "another"}))
    assert body["model"] == "tiny"
    assert len(body["messages"]) == 1


def test_a_request_of_more_than_a_megabyte_is_sent_whole() -> None:
    text = "ü" * 700_000
    body, _ = sent_body_and_headers({}, request(messages=(Message(role="user", content=text),)))
    assert body["messages"][0]["content"] == text


def test_text_that_is_not_unicode_is_rejected_before_sending() -> None:
    with run_server(lambda body, number: reply_with("yes")) as server:
        asked = request(messages=(Message(role="user", content="half a \ud800 pair"),))
        with pytest.raises(Fault) as caught:
            with_backend(
                OpenAICompatibleBackend(server.url, "tiny"), lambda one: one.complete(asked, 5.0)
            )
        assert (caught.value.kind, server.count) == ("rejected", 0)


def test_cookies_proxies_and_netrc_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def twice(one: OpenAICompatibleBackend) -> None:
        await one.complete(request(), 5.0)
        await one.complete(request(), 5.0)

    with run_server(
        lambda body, number: status(200, {"Set-Cookie": "who=1"}, envelope())
    ) as server:
        with_backend(OpenAICompatibleBackend(server.url, "tiny"), twice)
        assert server.count == 2
        assert not any(
            {"cookie", "authorization"} & seen.headers.keys() for seen in server.requests
        )


# What comes back


def test_parts_of_text_are_joined_and_thoughts_left_out() -> None:
    parts = [
        {"type": "thinking", "text": "let me see"},
        {"type": "text", "text": '{"met":'},
        {"type": "text", "text": " true}"},
    ]
    message = {"content": parts, "reasoning_content": "let me see"}
    assert (
        reply_to(raw_body(json.dumps({"choices": [{"message": message}]}))).text == '{"met": true}'
    )


def test_a_minimal_reply_is_read() -> None:
    assert reply_to(raw_body('{"choices": [{"message": {}}]}')) == Reply(text="")
    assert reply_to(reply_with("yes", finish=None, usage=False)).tokens_in is None


@pytest.mark.parametrize("count", [-1, 1.5, "7", True, None, 10**30, [7]])
def test_an_invalid_token_count_is_ignored(count: Any) -> None:
    reply = reply_to(raw_body(envelope(usage={"prompt_tokens": count, "completion_tokens": 3})))
    assert (reply.tokens_in, reply.tokens_out) == (None, 3)


def test_hidden_reasoning_that_only_the_total_counts_is_part_of_the_reply() -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 1000}
    assert reply_to(raw_body(envelope(usage=usage))).tokens_out == 998


# What goes wrong


@pytest.mark.parametrize(
    ("message", "setting"),
    [
        (
            "Use 'max_completion_tokens' instead",
            "calls.parameters: {max_tokens: null, max_completion_tokens: 1024}",
        ),
        ("Unsupported value: 'temperature'", "calls.parameters: {temperature: null}"),
        ("logprobs are not supported", "calls.parameters: {logprobs: false}"),
        ("response_format of type json_schema is unknown", "calls.form: instructed"),
    ],
)
def test_a_rejected_field_of_the_request_comes_with_the_setting_to_change(
    message: str, setting: str
) -> None:
    """Some servers say 500 of a field that they do not know: they would fail again."""
    for code in (400, 500):
        fault = fault_of(status(code, body={"error": {"message": message}}))
        assert (fault.kind, str(fault).partition("; try ")[2]) == (
            "rejected",
            f"{setting} in the config",
        )
    assert (
        fault_of(status(500, body={"error": {"message": f"{'x' * 400} {message}"}})).kind
        == "server"
    )


@all_rows(
    "error",
    [
        {"code": "context_length_exceeded", "message": "too much"},
        {
            "type": "exceed_context_size_error",
            "code": 400,
            "message": "too much",
            "n_prompt_tokens": 9,
            "n_ctx": 8,
        },
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."
        },
        {
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again."
        },
        {
            "message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."
        },
        {
            "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."
        },
        {"message": "Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens)."},
        {
            "message": "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"
        },
        {"message": "Requested tokens (9000) exceed context window of 8192"},
    ],
)
def test_a_request_beyond_the_context_is_a_fault_of_the_response(error: dict[str, Any]) -> None:
    for body in ({"error": error}, {"object": "error", **error}):
        fault = fault_of(status(400, body=body))
        assert (fault.kind, fault.cause) == ("overflowed", "response")


def test_a_url_with_the_path_of_the_requests_says_what_to_drop() -> None:
    with run_server(lambda body, number: status(404)) as server:
        backend = OpenAICompatibleBackend(f"{server.url}/chat/completions", "tiny")
        with pytest.raises(
            Fault, match="; drop /chat/completions from the URL, as it is added to it"
        ):
            with_backend(backend, lambda one: one.complete(request(), 5.0))


def test_an_error_with_status_200_is_an_error() -> None:
    error = {"code": 400, "type": "exceed_context_size_error", "message": "too much"}
    assert fault_of(raw_body(json.dumps({"error": error}))).kind == "overflowed"
    limited = status(200, {"Retry-After": "3"}, {"error": {"code": 429, "message": "slowly"}})
    assert (fault_of(limited).kind, fault_of(limited).retry_after) == ("rate-limit", 3.0)
    unknown = fault_of(raw_body('{"error": {"code": "overloaded", "message": "come again"}}'))
    assert (unknown.kind, "come again" in str(unknown)) == ("unreadable", True)


@all_rows(
    "body",
    [
        '{"choices": []}',
        '{"choices": [{}]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": 7}}]}',
        '{"choices": [{"message": {"content": ["yes"]}}]}',
        '{"choices": [{"message": {"content": "yes"}, "finish_reason": 7}]}',
        '{"choices": [{"message": {"content": "yes"}}], "model": []}',
        '{"choices": [{"message": {"content": "\\ud800"}}]}',
        'data: {"choices": [{"delta": {"content": "yes"}}]}\n\ndata: [DONE]\n\n',
    ],
)
def test_a_reply_that_is_not_a_chat_completion_is_unreadable(body: str) -> None:
    fault = fault_of(raw_body(body))
    assert (fault.kind, fault.kind in RETRYABLE_FAULT_KINDS) == ("unreadable", True)


# Secrets


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8000/v1", "ftp://host/v1", "http:///v1", "http://h:99999/v1", "http://[1/v1"],
)
def test_an_invalid_web_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not a web address"):
        OpenAICompatibleBackend(url, "tiny")


@pytest.mark.parametrize("key", ["", "sk-1234\n", "sk 1234", "sk-é123456"])
def test_a_key_invalid_in_a_header_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ValueError, match="the key") as caught:
        OpenAICompatibleBackend(CLOSED, "tiny", key)
    assert "1234" not in str(caught.value)


# What it is


def test_the_user_agent_is_jurygraph() -> None:
    backend = OpenAICompatibleBackend(" http://127.0.0.1:8000/v1/ ", "tiny", KEY, form="instructed")
    assert (backend.provider, backend.endpoint, backend.model) == (
        "openai-compatible",
        "http://127.0.0.1:8000/v1",
        "tiny",
    )
    assert tuple(backend.secrets) == (KEY,)
    assert backend.capabilities == EndpointCapabilities("instructed", True, tools=True)
    assert OpenAICompatibleBackend(CLOSED, "tiny").capabilities == EndpointCapabilities(
        "native", True, tools=True
    )
    assert tuple(OpenAICompatibleBackend(CLOSED, "tiny").secrets) == ()
    assert KEY not in repr(backend)


# Connections


def test_it_can_be_closed_twice_and_used_again() -> None:
    async def closed(one: OpenAICompatibleBackend) -> str:
        await one.close()
        await one.complete(request(), 5.0)
        await one.close()
        await one.close()
        return (await one.complete(request(), 5.0)).text

    with run_server(lambda body, number: reply_with("yes")) as server:
        assert with_backend(OpenAICompatibleBackend(server.url, "tiny"), closed) == "yes"


def test_sessions_of_an_ended_loop_are_closed() -> None:
    with (
        run_server(lambda body, number: reply_with("yes")) as server,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        backend = OpenAICompatibleBackend(server.url, "tiny")
        for _ in range(3):
            asyncio.run(backend.complete(request(), 5.0))
        assert len(backend._client._sessions) == 1
        reply: Reply = with_backend(backend, lambda one: one.complete(request(), 5.0))
        assert not backend._client._sessions
        del backend
        gc.collect()
    assert reply.text == "yes"
    assert not [str(one.message) for one in caught if "client session" in str(one.message).lower()]


# The server itself


FORGETFUL = """
import asyncio, sys
import jurygraph as jg
jury = jg.Jury(model=sys.argv[1], evaluators=[jg.criteria(["It is kind."])], calls={"cache": False})
task = jg.Task(id="t", query="?")
traces = asyncio.run(jury.ascore(task, ["Four."])) if sys.argv[2] == "async" else jury.score(task, ["Four."])
print(traces[0].reward.value)
"""


@pytest.mark.landing
@pytest.mark.parametrize("how", ["async", pytest.param("sync", marks=pytest.mark.exhaustive)])
def test_a_jury_that_nobody_closed_says_so_in_one_line(how: str) -> None:
    reply = {"criterion_1": {"reason": "ok", "quotes": ["Four."], "met": True, "probability": 0.9}}
    with run_server(lambda body, number: reply_with(json.dumps(reply))) as server:
        command = [sys.executable, "-c", FORGETFUL, f"openai-compatible:{server.url}#tiny", how]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "0.9\n"
    assert re.fullmatch("a jury was not closed: .*jury.close.*\n", done.stderr)
