"""The guard of httpx acts within jurygraph's own calls alone."""

import asyncio
import gzip
import json

import httpx
import pytest

from jurygraph.models.backends.http_guard import (
    MAX_ERROR_BYTES,
    MAX_REPLY_BYTES,
    MOST_OBJECTS,
    MOST_VALUES,
    guard_requests,
)
from jurygraph.models.faults import Fault
from tests.models.embedding.server import run_embedding_server
from tests.models.server import Answer, raw_body, reset, status


def post(answer: Answer, of_json: bool = False) -> httpx.Response:
    """Return what a client that follows redirects receives within the guard."""

    async def asked(url: str) -> httpx.Response:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            return await client.post(url, json={})

    with run_embedding_server(lambda body, number: answer) as server, guard_requests(of_json) as exchange:
        try:
            return asyncio.run(asked(server.url))
        finally:
            exchange.require_no_fault()


def kind_of(answer: Answer, of_json: bool = False) -> str:
    with pytest.raises(Fault) as caught:
        post(answer, of_json)
    return caught.value.kind


def gzip_answer(content: bytes) -> Answer:
    return status(200, {"Content-Encoding": "gzip"}, content)


def test_a_reply_comes_as_it_was_sent_compressed_or_not() -> None:
    for answer in (raw_body('{"a": 1}'), gzip_answer(gzip.compress(b'{"a": 1}'))):
        assert post(answer, of_json=True).json() == {"a": 1}


def test_a_reply_may_have_as_many_bytes_as_the_limit_and_not_one_more() -> None:
    assert len(post(status(200, body=b" " * MAX_REPLY_BYTES)).content) == MAX_REPLY_BYTES
    assert len(post(gzip_answer(gzip.compress(b" " * MAX_REPLY_BYTES))).content) == MAX_REPLY_BYTES
    assert kind_of(status(200, body=b" " * (MAX_REPLY_BYTES + 1))) == "too-large"
    assert kind_of(gzip_answer(gzip.compress(b" " * (MAX_REPLY_BYTES + 1)))) == "too-large"


def test_an_error_keeps_its_status_and_the_beginning_of_its_body() -> None:
    reply = post(status(503, body=b"x" * (4 * MAX_ERROR_BYTES)))
    assert (reply.status_code, len(reply.content)) == (503, MAX_ERROR_BYTES)


def test_a_reply_of_very_many_values_is_too_large_and_log_probabilities_are_not() -> None:
    objects = json.dumps({"choices": [{}] * MOST_OBJECTS})
    assert kind_of(raw_body(objects)) == "too-large"
    assert post(raw_body(objects.replace("choices", "logprobs"))).status_code == 200
    assert kind_of(raw_body(json.dumps([1] * (MOST_VALUES + 1)))) == "too-large"


@pytest.mark.parametrize(
    "ending",
    [gzip.compress(b"{}")[:-1], gzip.compress(b"{}") + b"x", gzip.compress(b"{}") * 2],
    ids=["cut", "followed", "twice"],
)
def test_a_compressed_reply_is_whole_and_ends_where_it_ends(ending: bytes) -> None:
    assert kind_of(gzip_answer(ending)) == "unreadable"


def test_a_reply_that_is_not_json_is_unreadable() -> None:
    assert kind_of(raw_body("data: {}"), of_json=True) == "unreadable"
    assert post(raw_body("data: {}")).text == "data: {}"


def test_outside_the_guard_a_client_follows_redirects_as_ever() -> None:
    with run_embedding_server(lambda body, number: raw_body("{}")) as other:
        away = status(307, {"Location": other.url})
        assert kind_of(away) == "rejected"
        assert other.count == 0
        with run_embedding_server(lambda body, number: away) as server:
            reply = httpx.post(server.url, json={}, follow_redirects=True)
        assert (reply.status_code, other.count) == (200, 1)


def test_a_sync_client_is_guarded_too() -> None:
    with run_embedding_server(lambda body, number: raw_body("{}")) as other:
        away = status(307, {"Location": other.url})
        with run_embedding_server(lambda body, number: away) as server, guard_requests() as exchange:
            with pytest.raises(httpx.TransportError, match="307, a redirect"):
                httpx.post(server.url, json={}, follow_redirects=True)
            assert exchange.fault is not None
        assert other.count == 0


def test_a_request_that_failed_is_not_sent_again() -> None:
    with run_embedding_server(lambda body, number: reset()) as server, guard_requests():
        for _ in range(3):
            with pytest.raises(httpx.TransportError):
                httpx.post(server.url, json={})
        assert server.count == 1


def test_a_reply_that_came_another_way_is_refused() -> None:
    with guard_requests() as exchange, pytest.raises(Fault, match="a client that jurygraph cannot limit"):
        exchange.require_reply()
