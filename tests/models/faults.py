"""The fault modes of the conformance suite: what a provider may answer instead of a right reply.

Every mode gets the reply that would count, as bytes, and plants something around or into it. `kinds` are the names that
the fault may have; where there are two, the transports see the same fault at different layers.
"""

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import zstandard
from aiohttp import web

from tests.models.server import Answer, cut_off, drip_body, hang, reset, status

RIGHT = '{"met": true, "probability": 0.9}'
"""A text that counts where nothing is wrong with its reply."""

TIMEOUT = 2.0
"""Seconds that a target has for a reply that never ends."""
ENDLESS = ("hang", "drip")
"""The modes whose reply never ends: in all others it may be as late as the machine is slow."""

_MEGABYTE = 1 << 20
_BOMB = 300
_ENDLESS = 700

Chat = Callable[..., bytes]
"""The body of a reply with this text: `chat(text, finish="stop", refusal=None)`."""


class Planted(NamedTuple):
    """The body of a valid reply, and the address of a server that must not be reached."""

    body: bytes
    other: str


class HttpMode(NamedTuple):
    """A fault of HTTP or of the reply's JSON, which any client over HTTP may meet."""

    kinds: frozenset[str]
    answer: Callable[[Planted], Answer]


class ReplyMode(NamedTuple):
    """A fault of a chat reply whose envelope is right."""

    kinds: frozenset[str]
    reply: Callable[[Chat], bytes]


def _kinds(*kinds: str) -> frozenset[str]:
    return frozenset(kinds)


def json_body(content: bytes, code: int = 200, headers: Mapping[str, str] = {}) -> Answer:
    return status(code, headers, content)


def streamed(
    pieces: Callable[[], Iterator[bytes]], code: int = 200, headers: Mapping[str, str] = {}
) -> Answer:
    """Return a body of unknown length, sent piece by piece until the client leaves."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(
            status=code, headers={"Content-Type": "application/json", **headers}
        )
        await response.prepare(request)
        try:
            for piece in pieces():
                await response.write(piece)
            await response.write_eof()
        except ConnectionError:
            """The client has heard enough."""
        return response

    return answer


def wire(content: bytes) -> Answer:
    """Return these bytes in place of an HTTP reply; then the connection closes."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        transport.write(content)  # type: ignore[attr-defined]
        transport.close()
        return web.Response()

    return answer


def head(*lines: str) -> bytes:
    return "\r\n".join(
        ("HTTP/1.1 200 OK", "Content-Type: application/json", *lines, "", "")
    ).encode()


def redirect(code: int) -> Callable[[Planted], Answer]:
    return lambda planted: json_body(planted.body, code, {"Location": planted.other})


def packed(compress: Callable[[bytes], bytes], encoding: str) -> Callable[[Planted], Answer]:
    return lambda planted: json_body(compress(planted.body), headers={"Content-Encoding": encoding})


def padded(content: bytes, megabytes: int) -> Iterator[bytes]:
    """Return a body with so many MiB of a text before its own fields."""
    yield b'{"padding": "'
    for _ in range(megabytes):
        yield b"a" * _MEGABYTE
    yield b'", ' + content.removeprefix(b"{")


@cache
def _packed_padding(window: int) -> Any:
    """Return a compressor that has compressed the padding already, since that takes seconds."""
    packer = zlib.compressobj(1, wbits=window)
    *padding, _ = padded(b"{}", _BOMB)
    return packer, b"".join(packer.compress(piece) for piece in padding)


def _zlib_bomb(content: bytes, window: int) -> bytes:
    packer, packed = _packed_padding(window)
    ending = packer.copy()
    *_, end = padded(content, 0)
    return bytes(packed + ending.compress(end) + ending.flush())


def gzip_bomb(content: bytes) -> bytes:
    return _zlib_bomb(content, zlib.MAX_WBITS | 16)


def deflate_bomb(content: bytes) -> bytes:
    return _zlib_bomb(content, zlib.MAX_WBITS)


@cache
def zstd_bomb(content: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join(packer.compress(piece) for piece in padded(content, _BOMB)) + packer.flush()


def make_bombs(content: bytes) -> None:
    """Create all of them before a server has to answer in time."""
    for make in (gzip_bomb, deflate_bomb, zstd_bomb, gzip_twice):
        make(content)


@cache
def gzip_twice(content: bytes) -> bytes:
    return gzip.compress(gzip_bomb(content))


def errors(code: int, kind: str) -> HttpMode:
    """Return an error whose body would be valid if its status were ignored."""
    return HttpMode(_kinds(kind), lambda planted: json_body(planted.body, code))


CONNECTION, UNREADABLE, TOO_LARGE = _kinds("connection"), _kinds("unreadable"), _kinds("too-large")
CUT = CONNECTION | UNREADABLE

HTTP: Mapping[str, HttpMode] = {
    **{f"status-{code}": errors(code, "rejected") for code in (400, 413, 422)},
    **{f"status-{code}": errors(code, "unauthorised") for code in (401, 402, 403)},
    **{f"status-{code}": errors(code, "server") for code in (409, 425, 500, 502, 503, 529)},
    **{f"status-{code}": errors(code, "timeout") for code in (408, 504)},
    "status-404": errors(404, "unknown-model"),
    "status-429": errors(429, "rate-limit"),
    "status-429-with-a-time": HttpMode(
        _kinds("rate-limit"), lambda planted: json_body(planted.body, 429, {"Retry-After": "7"})
    ),
    "status-429-without-funds": HttpMode(
        _kinds("unauthorised"),
        lambda planted: json_body(
            b'{"error": {"message": "no money", "type": "insufficient_quota", "code": "insufficient_quota"}}',
            429,
        ),
    ),
    **{
        f"redirect-{code}": HttpMode(_kinds("rejected"), redirect(code))
        for code in (301, 302, 303, 307, 308)
    },
    "reset": HttpMode(CONNECTION, lambda planted: reset()),
    "cut": HttpMode(CONNECTION, lambda planted: cut_off()),
    "closed-after-headers": HttpMode(CONNECTION, lambda planted: wire(head("Content-Length: 40"))),
    "length-too-long": HttpMode(
        CONNECTION,
        lambda planted: wire(head(f"Content-Length: {len(planted.body) + 9}") + planted.body),
    ),
    "length-too-short": HttpMode(
        CUT, lambda planted: wire(head(f"Content-Length: {len(planted.body) - 9}") + planted.body)
    ),
    "length-no-number": HttpMode(
        CUT, lambda planted: wire(head("Content-Length: many") + planted.body)
    ),
    "chunk-broken": HttpMode(
        CUT, lambda planted: wire(head("Transfer-Encoding: chunked") + b"zz\r\n" + planted.body)
    ),
    "no-http": HttpMode(CUT, lambda planted: wire(b"220 mail.example ESMTP\r\n")),
    "header-huge": HttpMode(
        CUT,
        lambda planted: wire(
            head(f"X-Long: {'a' * 300_000}", f"Content-Length: {len(planted.body)}") + planted.body
        ),
    ),
    "headers-many": HttpMode(
        CUT,
        lambda planted: wire(
            head(
                *(f"X-{place}: a" for place in range(200_000)),
                f"Content-Length: {len(planted.body)}",
            )
            + planted.body
        ),
    ),
    "hang": HttpMode(_kinds("timeout"), lambda planted: hang(passing=TIMEOUT)),
    "drip": HttpMode(_kinds("timeout"), lambda planted: drip_body(planted.body, TIMEOUT / 4)),
    "huge": HttpMode(TOO_LARGE, lambda planted: streamed(lambda: padded(planted.body, 9))),
    "endless": HttpMode(
        TOO_LARGE, lambda planted: streamed(lambda: padded(planted.body, _ENDLESS))
    ),
    "endless-error": HttpMode(
        _kinds("server"), lambda planted: streamed(lambda: padded(planted.body, _ENDLESS), code=500)
    ),
    "gzip-bomb": HttpMode(TOO_LARGE, packed(gzip_bomb, "gzip")),
    "gzip-bomb-error": HttpMode(
        _kinds("server"),
        lambda planted: json_body(gzip_bomb(planted.body), 500, {"Content-Encoding": "gzip"}),
    ),
    "gzip-twice": HttpMode(CUT | TOO_LARGE, packed(gzip_twice, "gzip, gzip")),
    "deflate-bomb": HttpMode(UNREADABLE | TOO_LARGE, packed(deflate_bomb, "deflate")),
    "zstd-bomb": HttpMode(CUT | TOO_LARGE, packed(zstd_bomb, "zstd")),
    "br-unreadable": HttpMode(CUT, packed(lambda body: bytes(range(256)), "br")),
    "gzip-not-packed": HttpMode(CUT, packed(lambda body: body, "gzip")),
    "gzip-cut": HttpMode(CUT, packed(lambda body: gzip.compress(body)[:-12], "gzip")),
    "html": HttpMode(
        UNREADABLE,
        lambda planted: status(
            200, {"Content-Type": "text/html"}, b"<html>" + planted.body + b"</html>"
        ),
    ),
    "empty": HttpMode(UNREADABLE, lambda planted: json_body(b"")),
    "null": HttpMode(UNREADABLE, lambda planted: json_body(b"null")),
    "list": HttpMode(UNREADABLE, lambda planted: json_body(b"[" + planted.body + b"]")),
    "number": HttpMode(UNREADABLE, lambda planted: json_body(b"7")),
    "text": HttpMode(
        UNREADABLE, lambda planted: json_body(json.dumps(planted.body.decode()).encode())
    ),
    "object-empty": HttpMode(UNREADABLE, lambda planted: json_body(b"{}")),
    "half": HttpMode(UNREADABLE, lambda planted: json_body(planted.body[:-2])),
    "twice": HttpMode(UNREADABLE, lambda planted: json_body(planted.body * 2)),
    "not-utf-8": HttpMode(
        UNREADABLE, lambda planted: json_body(planted.body[:-1] + b', "x": "\xff\xfe"}')
    ),
    "nested": HttpMode(UNREADABLE | TOO_LARGE, lambda planted: json_body(b"[" * (4 * _MEGABYTE))),
    "nested-objects": HttpMode(UNREADABLE, lambda planted: json_body(b'{"choices":' * 500_000)),
    "many-values": HttpMode(
        UNREADABLE | TOO_LARGE,
        lambda planted: json_body(b'{"choices": [' + b"{}," * 2_500_000 + b"{}]}"),
    ),
    "number-huge": HttpMode(
        UNREADABLE, lambda planted: json_body(b'{"choices": ' + b"9" * (7 * _MEGABYTE) + b"}")
    ),
}

QUICK = (
    *(
        "status-500",
        "status-404",
        "status-429-without-funds",
        "redirect-302",
        "redirect-307",
        "reset",
        "huge",
        "html",
    ),
    *(
        "hang",
        "drip",
        "gzip-bomb",
        "gzip-cut",
        "gzip-not-packed",
        "half",
        "no-http",
        "not-utf-8",
        "endless-error",
    ),
    *("reply-truncated", "reply-think", "reply-fenced"),
)
"""A few modes, which are tried on every target in each run of the tests."""

VECTORS: Mapping[str, Any] = {
    "vector-nan": [[math.nan, 1.0]],
    "vector-infinite": [[math.inf, 1.0]],
    "vector-flat": [0.6, 0.8],
    "vector-empty": [[]],
    "vectors-too-few": [],
    "vectors-too-many": [[0.6, 0.8], [0.6, 0.8]],
}
"""What an embedder in this process may give for one text; each is `unreadable`."""


def answers(text: str, kind: str = "malformed") -> ReplyMode:
    return ReplyMode(_kinds(kind), lambda chat: chat(text))


def extended(text: str) -> str:
    """Return the valid text with another field."""
    return RIGHT.replace("0.9", text)


REPLY: Mapping[str, ReplyMode] = {
    "reply-truncated": ReplyMode(_kinds("truncated"), lambda chat: chat(RIGHT, "length")),
    "reply-filtered": ReplyMode(_kinds("refused"), lambda chat: chat(RIGHT, "content_filter")),
    "reply-empty": answers("", "empty"),
    "reply-blank": answers(" \n", "empty"),
    "reply-half": answers(RIGHT[:-2]),
    "reply-twice": answers(RIGHT * 2),
    "reply-quoted": answers(f"The response says {RIGHT}"),
    "reply-fenced": answers(f"```json\n{RIGHT}\n``` as asked"),
    "reply-fenced-plain": answers(f"```\n{RIGHT}\n"),
    "reply-think": answers(f"<think>So it is.{RIGHT}"),
    "reply-think-lines": answers(f"<think>\nSo it is.\n</think>\n\nYes: {RIGHT}"),
    "reply-thinking": answers(f"<thinking>{RIGHT}</thinking>{RIGHT} indeed"),
    "reply-budget-thinking": answers(f"<budget:thinking>So it is.</budget:thinking>{RIGHT}"),
    "reply-think-empty": answers(f"<think></think>{RIGHT}{RIGHT}"),
    "reply-schema": answers(RIGHT.replace("met", "so")),
    "reply-extra": answers(RIGHT.replace("}", ', "more": 1}')),
    "reply-types": answers(RIGHT.replace("true", '"true"')),
    "reply-nan": answers(extended("NaN")),
    "reply-infinite": answers(extended("1e999")),
    "reply-beyond-one": answers(extended("7")),
    "reply-duplicate": answers(RIGHT.replace("}", ', "met": true}')),
    "reply-nested": answers("[" * 100_000),
    "reply-digits": answers(extended("9" * _MEGABYTE)),
    "reply-fraction": answers(extended("0." + "9" * _MEGABYTE + "e9")),
}


def openai_chat(text: str, finish: str = "stop", refusal: str | None = None) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    whole = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(whole).encode()


def anthropic_chat(text: str, finish: str = "stop") -> bytes:
    reason = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[finish]
    whole: dict[str, Any] = {"id": "1", "type": "message", "role": "assistant", "model": "tiny"}
    whole |= {
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "stop_sequence": None,
    }
    return json.dumps(whole | {"usage": {"input_tokens": 11, "output_tokens": 7}}).encode()


def ollama_chat(text: str, finish: str = "stop") -> bytes:
    return _ollama({"message": {"role": "assistant", "content": text}}, finish)


def ollama_generate(text: str, finish: str = "stop") -> bytes:
    return _ollama({"response": text}, finish)


def _ollama(said: Mapping[str, Any], finish: str) -> bytes:
    whole = {
        "model": "tiny",
        "created_at": "2026-01-01T00:00:00Z",
        **said,
        "done": True,
        "done_reason": finish,
    }
    return json.dumps(whole | {"prompt_eval_count": 11, "eval_count": 7}).encode()


def embeddings() -> bytes:
    vector = {"object": "embedding", "index": 0, "embedding": [0.6, 0.8]}
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return json.dumps(
        {"object": "list", "model": "tiny", "data": [vector], "usage": usage}
    ).encode()


def ranking() -> bytes:
    result = {"index": 0, "relevance_score": 0.9}
    return json.dumps(
        {"id": "1", "model": "tiny", "results": [result], "usage": {"total_tokens": 3}}
    ).encode()
