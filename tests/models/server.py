"""A server that speaks OpenAI's chat completions, with faults planted in it: it stands for any hosted provider.

    with run_server(lambda body, number: reply_with("yes") if number > 1 else status(503)) as server:
        ...  # server.url, server.requests, server.count

It runs in a thread of its own, so that tests with and without an event loop and other processes can use it.
"""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from tests.virtual_time import PATIENCE, pass_time

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Script = Callable[[dict[str, Any], int], Answer]
"""What a request is answered with, by its body and its number; the first is 1."""

TOKENS_IN, TOKENS_OUT = 2_000, 7
"""What every reply of `reply_with` says that it took: plausible for the prompts of judges, of which none was cut."""

_RESET = struct.pack("ii", 1, 0)
_BACKLOG = 1024
_TURNS_TO_ACCEPT = 5  # what asyncio has accepted takes three; it never closes what a closing server finds on that way
_PIECE = 16
_MEGABYTE = 1 << 20
_ports: set[int] = set()


class ReceivedRequest(NamedTuple):
    """A request: its parsed body, and its headers by their names in lower case."""

    body: dict[str, Any]
    headers: dict[str, str]


class Server:
    """A running server. `url` is what a client is given; it ends in `/v1`.

    With a `port` it comes back where a server was before that has stopped. No request is answered before `together` of
    them have come, or `release` is called.
    """

    def __init__(self, script: Script, port: int | None = None, together: float = 0) -> None:
        self._script = script
        self._together = together
        self._seen: list[ReceivedRequest] = []
        self._arrival = threading.Condition()
        self._released = asyncio.Event()
        # clients may come from here on
        self._socket = _at_a_fresh_port() if port is None else _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.broken: Exception | None = None

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every request so far, in order of arrival."""
        return list(self._seen)

    @property
    def count(self) -> int:
        """The number of requests so far."""
        return len(self._seen)

    async def wait_for(self, count: int) -> None:
        """Wait until so many requests have come."""
        await asyncio.to_thread(self._wait_for, count)

    def release(self) -> None:
        """Answer the requests that are held, and all later ones."""
        self._loop.call_soon_threadsafe(self._released.set)

    def start(self) -> None:
        """Answer from here on."""
        self._thread.start()

    def stop(self) -> None:
        """Cut off requests under way, and stop. May be called more than once."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = web.Server(self._answered, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await runner.setup()
        await web.SockSite(runner, self._socket, backlog=_BACKLOG).start()
        await self._stop.wait()
        self._loop.remove_reader(self._socket)
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        await runner.cleanup()

    def _wait_for(self, count: int) -> None:
        with self._arrival:
            self._arrival.wait_for(lambda: len(self._seen) >= count, PATIENCE)

    async def _read(self, request: web.BaseRequest) -> dict[str, Any] | None:
        """Return the body of a request, None if nothing is at its path."""
        if request.method != "POST" or request.path != "/v1/chat/completions":
            return None
        # read so, a body may be of any size
        body: dict[str, Any] = json.loads(await request.content.read())
        return body

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        if (body := await self._read(request)) is None:
            return web.Response(status=404)
        with self._arrival:
            self._seen.append(
                ReceivedRequest(
                    body, {name.lower(): value for name, value in request.headers.items()}
                )
            )
            self._arrival.notify_all()
        if len(self._seen) >= self._together:
            self._released.set()
        try:
            answer = self._script(body, len(self._seen))
        except Exception as error:  # noqa: BLE001 - `serving` raises it where the test sees it
            self.broken = error
            return web.Response(status=500)
        await self._released.wait()
        return await answer(request)


@contextmanager
def run_server(script: Script, port: int | None = None, together: float = 0) -> Iterator[Server]:
    """Run a server that answers by a script while the block lasts. Raise what the script raised."""
    server = Server(script, port, together)
    with running(server):
        yield server


@contextmanager
def running(server: Server) -> Iterator[None]:
    """Run a server while the block lasts. Raise what its script raised."""
    server.start()
    try:
        yield
    finally:
        server.stop()
    if server.broken is not None:
        raise server.broken


def reply_with(
    text: str | None,
    finish: str | None = "stop",
    logprobs: Sequence[tuple[str, float, Mapping[str, float]]] | None = None,
    usage: bool = True,
    refusal: str | None = None,
    served: str = "tiny-1",
) -> Answer:
    """Return a reply. `logprobs` are its tokens, each with its log probability and alternatives."""
    return raw_body(_envelope(text, finish, logprobs, usage, refusal, served))


def call_tool(name: str, arguments: Mapping[str, Any]) -> Answer:
    """Return a reply that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    body = json.loads(_envelope(None, "tool_calls"))
    body["choices"][0]["message"]["tool_calls"] = [
        {"id": "call-1", "type": "function", "function": function}
    ]
    return raw_body(json.dumps(body))


def raw_body(text: str) -> Answer:
    """Return a 200 with this body."""
    return status(200, body=text)


def status(
    code: int, headers: Mapping[str, str] = {}, body: str | bytes | Mapping[str, Any] | None = None
) -> Answer:
    """Return a status with a body: as it is, as JSON, or else an error as OpenAI words it."""
    if body is None:
        body = {
            "error": {"message": f"planted {code}", "type": "planted", "param": None, "code": None}
        }
    if isinstance(body, Mapping):
        body = json.dumps(body)
    content = body.encode() if isinstance(body, str) else body
    given = {"Content-Type": "application/json", **headers}

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=code, headers=given, body=content)

    return answer


def cut_off() -> Answer:
    """Close the connection in the middle of the body."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Content-Length": "1000"}
        )
        await response.prepare(request)
        await response.write(b'{"choices": [{"message": {"content": "ye')
        _transport(request).close()
        return response

    return answer


def reset() -> Answer:
    """Reset the connection before any answer."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        transport = _transport(request)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()
        return web.Response()

    return answer


def slow(seconds: float, then: Answer) -> Answer:
    """Return an answer that begins after a while."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await then(request)

    return answer


def held(event: threading.Event, then: Answer) -> Answer:
    """Return an answer that begins when an event is set."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.to_thread(event.wait, 60.0)
        return await then(request)

    return answer


def drip(text: str, seconds_each: float, ends: bool = False) -> Answer:
    """Return a reply in pieces; see `drip_body`."""
    return drip_body(_envelope(text).encode(), seconds_each, ends)


def drip_body(content: bytes, seconds_each: float, ends: bool = False) -> Answer:
    """Return a body in pieces of 16 bytes; the last byte comes only if it `ends`.

    With each piece, so much time passes on the clients' held clocks.
    """

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(content)
        await response.prepare(request)
        for start in range(0, len(content) - 1, _PIECE):
            pass_time(seconds_each)
            await response.write(content[start : min(start + _PIECE, len(content) - 1)])
        if not ends:
            await asyncio.Event().wait()
        await response.write(content[-1:])
        return response

    return answer


def huge(megabytes: int) -> Answer:
    """Return a reply whose text has so many MiB, without a Content-Length."""
    before, after = _envelope("|").encode().split(b"|")

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(before)
        for _ in range(megabytes):
            await response.write(b"a" * _MEGABYTE)
        await response.write(after)
        return response

    return answer


def hang(passing: float = 0.0) -> Answer:
    """Never answer; the connection stays open until the client or the server closes it.

    So many seconds pass on the clients' held clocks.
    """

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        pass_time(passing)
        await asyncio.Event().wait()
        return web.Response()

    return answer


@contextmanager
def nobody() -> Iterator[str]:
    """Return the URL of a port that refuses connections, since it is bound and nobody listens there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


def _listening(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)


def _at_a_fresh_port() -> socket.socket:
    """A listening socket at a port that no server had before, since replies are kept by the address of their model."""
    while True:
        listening = _listening(0)
        port = listening.getsockname()[1]
        if port not in _ports:
            _ports.add(port)
            return listening
        listening.close()


def _transport(request: web.BaseRequest) -> asyncio.Transport:
    assert request.transport is not None
    return request.transport  # type: ignore[return-value]


def _envelope(
    text: str | None,
    finish: str | None = "stop",
    logprobs: Sequence[tuple[str, float, Mapping[str, float]]] | None = None,
    usage: bool = True,
    refusal: str | None = None,
    served: str = "tiny-1",
) -> str:
    tokens = [
        {"token": token, "logprob": number, "top_logprobs": _top(top)}
        for token, number, top in logprobs or ()
    ]
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish,
        "logprobs": {"content": tokens},
    }
    if logprobs is None:
        choice["logprobs"] = None
    whole: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "model": served,
        "choices": [choice],
    }
    if usage:
        total = TOKENS_IN + TOKENS_OUT
        whole["usage"] = {
            "prompt_tokens": TOKENS_IN,
            "completion_tokens": TOKENS_OUT,
            "total_tokens": total,
        }
    return json.dumps(whole)


def _top(others: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": number} for token, number in others.items()]
