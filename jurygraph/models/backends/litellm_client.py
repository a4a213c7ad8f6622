"""The HTTP client that litellm is given: it sends by `HttpClient`, and notes what came of each call.

litellm takes a client in two ways. Most providers take `HANDLER`, with the call; those that it asks by OpenAI's library
take `SESSION`, as `litellm.aclient_session`, for all calls. A few take none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx
import litellm
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from pydantic_core import from_json
from yarl import URL

from jurygraph.models.faults import Fault, error_kind, parse_error
from jurygraph.models.http_client import HttpClient

MOST_VALUES = 1_000_000
"""Most JSON values in a reply: the log probabilities of the longest replies have about as many."""

_MAX_SHOWN = 100
_OF_THE_CONNECTION = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})
"""Headers of a request that aiohttp writes itself."""

_KEPT_BACK = frozenset({"content-encoding", "content-length", "set-cookie", "transfer-encoding"})
"""Headers of a reply that httpx must not see: its body is decompressed, and cookies would be sent to others."""


class Exchange:
    """The outcome of the HTTP requests of one call: the last response, its JSON value if it is no error, or a fault.

    After a failure no further request is sent: a call is one attempt.
    """

    def __init__(self) -> None:
        self.response: httpx.Response | None = None
        self.reply: Any = None
        self.fault: Fault | None = None

    @property
    def error_kind(self) -> str | None:
        """The kind of fault that the last response states; None if it states none."""
        if self.response is None or not self.response.is_error:
            return None
        return error_kind(self.response.status_code, parse_error(self.response.content))

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises `Fault` if there is no acceptable reply, or another request of the call has failed."""
        if self.fault is not None or self.error_kind is not None:
            raise Fault("rejected", "the request failed, and is not sent a second time")
        try:
            response = await _send(request)
            if response.is_success:
                self.reply = _parse_reply(response.content)
        except Fault as fault:
            fault.is_unsent = fault.is_unsent and self.response is None
            self.fault = fault
            raise
        self.response = response
        return response

    def require_reply(self) -> None:
        """Raise `Fault` unless a reply came by our client, and the last is no error, whatever litellm made of it."""
        if self.fault is not None:
            raise self.fault
        if self.response is None:
            problem = "litellm takes no HTTP client for this provider, so its reply could not be limited"
            raise Fault("rejected", f"{problem}; reach the model by openai-compatible:URL#model instead")
        if self.error_kind is not None:
            raise Fault(self.error_kind, f"the provider answered {self.response.status_code}")


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("jurygraph_exchange", default=None)


@contextmanager
def watch_call() -> Iterator[Exchange]:
    """Note the HTTP requests of one call of litellm."""
    exchange = Exchange()
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(token)


class _Transport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _EXCHANGE.get()
        if exchange is None:  # a call of somebody else's, while litellm has this client
            return await _send(request)
        return await exchange.send(request)


class Session(httpx.AsyncClient):
    """The client for `litellm.aclient_session`; after `lend` until `take_back`, litellm uses no other there."""

    def __init__(self) -> None:
        super().__init__(transport=_Transport())
        self._displaced: Any = None

    def lend(self) -> None:
        """Give it to litellm."""
        if litellm.aclient_session is not self:
            self._displaced = litellm.aclient_session
            litellm.aclient_session = self

    def take_back(self) -> None:
        """Let litellm have the client that it had before."""
        if litellm.aclient_session is self:
            litellm.aclient_session = self._displaced
            kept: Any = litellm.in_memory_llm_clients_cache
            kept.flush_cache()  # it has clients of OpenAI's library that hold the session

    async def aclose(self) -> None:
        """Stay open: litellm may close the clients that it knows, but could not send by a closed one again."""


HTTP = HttpClient()
SESSION = Session()
HANDLER = AsyncHTTPHandler()
HANDLER.client = SESSION


async def _send(request: httpx.Request) -> httpx.Response:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_CONNECTION}
    address = URL(str(request.url), encoded=True)  # as it was signed, for a provider that checks signatures
    reply = await HTTP.send(request.method, address, await request.aread(), headers, _proxy(request.url))
    kept = [(name, value) for name, value in reply.headers.items() if name.lower() not in _KEPT_BACK]
    return httpx.Response(reply.status, headers=kept, content=bytes(reply.content), request=request)


def _parse_reply(content: bytes) -> Any:
    """Return the JSON value of a reply. Raises `Fault` if it is none, or one that litellm would take too long for."""
    if content.count(b",") + content.count(b"{") + content.count(b"[") > MOST_VALUES:
        raise Fault("too-large", f"the reply has more than {MOST_VALUES:,} values")
    try:
        return from_json(content)
    except ValueError as error:
        begins = content[:_MAX_SHOWN].decode(errors="replace")
        raise Fault("unreadable", f"the reply is not JSON: {error}; it begins with {begins!r}") from None


def _proxy(address: httpx.URL) -> str | None:
    """Return the proxy for an address by the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""
    proxies = {} if proxy_bypass(address.host) else getproxies()
    return proxies.get(address.scheme) or proxies.get("all")
