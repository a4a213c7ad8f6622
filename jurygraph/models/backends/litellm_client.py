"""The HTTP clients that litellm is given: they send by `HttpClient`, and note what came of each call.

litellm takes a client in two ways. Most providers take an `AsyncHTTPHandler`, with the call; those that it asks by
OpenAI's library take `litellm.aclient_session`, an httpx client for all calls. A few take none.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from pydantic_core import from_json
from yarl import URL

from jurygraph.models.faults import Fault
from jurygraph.models.http_client import HttpClient

MOST_VALUES = 1_000_000
"""Most JSON values in a reply: the log probabilities of the longest replies have about as many."""

MOST_OBJECTS = 4_096
"""Most JSON objects in a reply, without those of its log probabilities: litellm takes up to a millisecond for each."""

_MAX_SHOWN = 100
_OURS = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})
"""Headers of a request that aiohttp writes itself."""

_OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers of a reply that describe its body as it was sent, not as it was read."""


class Exchange:
    """The last HTTP reply of one call: its status, headers and content, and its JSON value if it is no error.

    `fault` is set if there was no acceptable reply. After a failure no further request is sent: a call is one attempt.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.content = b""
        self.reply: Any = None
        self.fault: Fault | None = None
        self._count = 0

    async def send(self, client: HttpClient, request: httpx.Request) -> httpx.Response:
        """Send a request, if none of the call has failed. Raises `Fault`."""
        if self.fault is not None:
            raise self.fault
        if self.status is not None and self.status >= 400:
            raise Fault("rejected", "the request failed, and is not sent a second time")
        self._count += 1
        try:
            response = await _send(client, request)
            self.status, self.headers, self.content = response.status_code, response.headers, response.content
            if response.is_success:
                self.reply = parse_reply(response.content)
        except Fault as fault:
            fault.is_unsent = fault.is_unsent and self._count == 1
            self.fault = fault
            raise
        return response


class _Transport(httpx.AsyncBaseTransport):
    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _EXCHANGE.get()
        if exchange is None:  # a call of somebody else's, while litellm has this client
            return await _send(self._client, request)
        return await exchange.send(self._client, request)


class _Session(httpx.AsyncClient):
    async def aclose(self) -> None:
        """Stay open: litellm may close the clients that it knows, but could not send by a closed one again."""


class Clients:
    """The clients for litellm: `handler` for a call, `session` for `litellm.aclient_session`; both use `http`.

    `displaced` is what `litellm.aclient_session` was before.
    """

    def __init__(self) -> None:
        self.displaced: Any = None
        self.http = HttpClient()
        self.session = _Session(transport=_Transport(self.http))
        self.handler = AsyncHTTPHandler()
        self.handler.client = self.session


@contextmanager
def watch_call() -> Iterator[Exchange]:
    """Note the HTTP requests of one call of litellm."""
    exchange = Exchange()
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(token)


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("jurygraph_exchange", default=None)


def parse_reply(content: bytes) -> Any:
    """Return the JSON value of a reply. Raises `Fault` if it is none, or one that litellm would take too long for."""
    if content.count(b",") + content.count(b"{") + content.count(b"[") > MOST_VALUES:
        raise Fault("too-large", f"the reply has more than {MOST_VALUES:,} values")
    try:
        reply = from_json(content)
    except ValueError as error:
        begins = content[:_MAX_SHOWN].decode(errors="replace")
        raise Fault("unreadable", f"the reply is not JSON: {error}; it begins with {begins!r}") from None
    if content.count(b"{") > MOST_OBJECTS and _count_objects(reply) > MOST_OBJECTS:
        raise Fault("too-large", f"the reply has more than {MOST_OBJECTS:,} objects")
    return reply


async def _send(client: HttpClient, request: httpx.Request) -> httpx.Response:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
    address = URL(str(request.url), encoded=True)  # as it was signed, for a provider that checks signatures
    reply = await client.send(request.method, address, await request.aread(), headers, _proxy(request.url))
    kept = [(name, value) for name, value in reply.headers.items() if name.lower() not in _OF_THE_BODY]
    return httpx.Response(reply.status, headers=kept, content=bytes(reply.content), request=request)


def _proxy(address: httpx.URL) -> str | None:
    """Return the proxy for an address by the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""
    if proxy_bypass(address.host):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")


def _count_objects(value: Any) -> int:
    count = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            count += 1
            pending.extend(inner for name, inner in item.items() if name != "logprobs")
        elif isinstance(item, list):
            pending.extend(item)
    return count
