"""Limit what the HTTP clients of other libraries accept: no redirect, and no reply beyond a fixed size.

litellm, and a user's own chat model, bring HTTP clients that follow redirects and read a reply of any size, compressed
or not. All of them call `send` of an httpx client, whatever transport it has. The guard wraps this method once, and
acts only on requests that are sent within `guard_requests()`: other uses of httpx in this process keep their behaviour.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from jurygraph.models.faults import MAX_ERROR_BYTES, Fault, error_kind, kind_of_status, parse_error

if TYPE_CHECKING:
    import httpx

MAX_REPLY_BYTES = 8 << 20  # most bytes of a reply
MOST_VALUES = 1_000_000
"""Most JSON values in a reply: the log probabilities of the longest replies have about as many."""

MOST_OBJECTS = 4_096
"""Most JSON objects in a reply, without those of its log probabilities: clients take up to a millisecond for each."""

_ENCODING = "gzip"  # the only compression that is requested, since the standard library has a bounded decoder for it
_MAX_SHOWN = 100
_DESCRIBE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_IDENTITY = ("", "identity")
_GZIP = zlib.MAX_WBITS | 16
_UNREAD = {"stream": True, "follow_redirects": False}
"""Options of `send` under which the guard reads the body, and no request follows a redirect."""


class Exchange:
    """The HTTP requests of one call: their replies as decoded bytes, and the status or the fault of the last.

    `is_unsent` is True if there was no connection, and no earlier request.
    """

    def __init__(self, json: bool) -> None:
        self._json = json
        self.bodies: list[bytes] = []
        self.status: int | None = None
        self.fault: Fault | None = None
        self.is_unsent = False
        self._failed: set[tuple[str, str]] = set()

    @contextmanager
    def attempt(self, request: "httpx.Request") -> Iterator[None]:
        """Prepare a request, and record why it failed; the same request is not sent again: a call is one attempt.

        A rejection by the guard is raised as an error that every httpx client expects.
        """
        import httpx

        key = request.method, str(request.url)
        if key in self._failed:
            raise httpx.TransportError("the request failed, and is not sent a second time", request=request)
        self.fault = self.status = None
        request.headers["Accept-Encoding"] = _ENCODING
        try:
            yield
        except Fault as fault:
            self._failed.add(key)
            self.fault = fault
            raise httpx.TransportError(str(fault), request=request) from fault
        except httpx.RequestError as error:
            import aiohttp

            self._failed.add(key)
            cause = error.__cause__
            first = cause if isinstance(cause, aiohttp.ClientError) else error
            has_no_connection = isinstance(first, aiohttp.ClientConnectorError | httpx.ConnectError)
            self.is_unsent = has_no_connection and len(self._failed) == 1 and not self.bodies
            if isinstance(cause, aiohttp.ClientResponseError):  # the clients would report less
                self.fault = Fault("unreadable", f"the response is not HTTP: {cause.message}")
            raise

    def finish(self, request: "httpx.Request", response: "httpx.Response", body: "_Body") -> "httpx.Response":
        """Return the reply with its body read and decoded. Raises `Fault` if the body is not acceptable."""
        import httpx

        content = body.finish()
        if response.status_code < 300:
            check_value_count(content)
            if self._json:
                try:
                    from_json(content, allow_inf_nan=True)
                except ValueError as error:
                    begins = content[:_MAX_SHOWN].decode(errors="replace")
                    problem = f"the reply is not JSON: {error}; it begins with {begins!r}"
                    raise Fault("unreadable", problem) from None
        self.bodies.append(content)
        self.status = response.status_code
        headers = [
            (name, value) for name, value in response.headers.multi_items() if name.lower() not in _DESCRIBE_BODY
        ]
        return httpx.Response(response.status_code, headers=headers, content=content, request=request)

    def error_kind(self) -> str | None:
        """Return the kind of fault by the status and the body of the last reply; None if it was no error."""
        if self.status is None or self.status < 400:
            return None
        return error_kind(self.status, parse_error(bytearray(self.bodies[-1])))

    def require_no_fault(self) -> None:
        """Raise `Fault` if the last reply was rejected, whatever the client made of that."""
        if self.fault is not None:
            raise self.fault

    def require_reply(self) -> None:
        """Raise `Fault` unless a reply came through the guard, and the last one was accepted."""
        self.require_no_fault()
        if not self.bodies:
            problem = "its reply came by a client that jurygraph cannot limit"
            raise Fault(
                "rejected", f"{problem}; reach the model by openai-compatible:URL#model or langchain:NAME instead"
            )


class _Body:
    """The body of one reply, decoded as it arrives. Raises `Fault` if it is not acceptable."""

    def __init__(self, response: "httpx.Response") -> None:
        status = response.status_code
        if 300 <= status < 400:
            problem = f"{status}, a redirect; give the address that it leads to, if you trust that server"
            raise Fault(kind_of_status(status), problem)
        self._is_error = status >= 400
        self._encoding = response.headers.get("content-encoding", "").strip().lower()
        if self._encoding not in (*_IDENTITY, _ENCODING) and not self._is_error:
            problem = f"the reply is compressed as {self._encoding[:40]!r}; only {_ENCODING} was requested"
            raise Fault("unreadable", problem)
        self._max_size = MAX_ERROR_BYTES if self._is_error else MAX_REPLY_BYTES
        self._decoder = None if self._encoding in _IDENTITY else zlib.decompressobj(_GZIP)
        self._content = bytearray()
        self._received = 0

    def add(self, chunk: bytes) -> bool:
        """Add a chunk. Return True if more is wanted; the rest of an error that cannot be read is ignored."""
        self._received += len(chunk)
        try:
            self._content += self._decode(chunk)
        except zlib.error as error:
            if not self._is_error:
                raise Fault("unreadable", f"the reply is not valid {_ENCODING}: {error}") from None
            return False
        if max(self._received, len(self._content)) <= self._max_size:
            return True
        if not self._is_error:
            raise Fault("too-large", f"the reply has more than {MAX_REPLY_BYTES >> 20} MiB")
        return False

    def finish(self) -> bytes:
        """Return the whole body."""
        if self._decoder is not None and not self._decoder.eof and not self._is_error:
            raise Fault("unreadable", f"the reply is not valid {_ENCODING}: it ends too early")
        return bytes(self._content[: self._max_size])

    def _decode(self, chunk: bytes) -> bytes:
        if self._decoder is None:
            return chunk
        if self._encoding != _ENCODING:
            raise zlib.error("it has another encoding")
        if self._decoder.eof:
            raise zlib.error("bytes follow its end")
        decoded = self._decoder.decompress(chunk, self._max_size + 1 - len(self._content))
        if self._decoder.unused_data:
            raise zlib.error("bytes follow its end")
        return decoded


def check_value_count(content: bytes | bytearray) -> None:
    """Raise `Fault` for a reply of so many values that parsing it would block everything else."""
    if content.count(b",") + content.count(b"{") + content.count(b"[") > MOST_VALUES:
        raise Fault("too-large", f"the reply has more than {MOST_VALUES:,} values")
    if content.count(b"{") <= MOST_OBJECTS:
        return
    try:
        pending = [from_json(content)]
    except ValueError:
        return  # invalid JSON is left to the reply's readers
    count = 0
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            count += 1
            pending.extend(value for name, value in item.items() if name != "logprobs")
        elif isinstance(item, list):
            pending.extend(item)
    if count > MOST_OBJECTS:
        raise Fault("too-large", f"the reply has more than {MOST_OBJECTS:,} objects")


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("jurygraph_exchange", default=None)


@contextmanager
def guard_requests(json: bool = False) -> Iterator[Exchange]:
    """Guard every httpx request in this context, and collect the results.

    With `json`, a reply that is not one valid JSON value is rejected, before its readers repeat it in their errors.
    """
    _guard_httpx()
    exchange = Exchange(json)
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(token)


@cache
def _guard_httpx() -> None:
    import httpx

    send_async, send_sync = httpx.AsyncClient.send, httpx.Client.send

    @wraps(send_async)
    async def send_guarded(client: "httpx.AsyncClient", request: "httpx.Request", **options: Any) -> "httpx.Response":
        exchange = _EXCHANGE.get()
        if exchange is None:
            return await send_async(client, request, **options)
        with exchange.attempt(request):
            response = await send_async(client, request, **{**options, **_UNREAD})
            try:
                body = _Body(response)
                async for chunk in response.aiter_raw():
                    if not body.add(chunk):
                        break
            finally:
                await response.aclose()
            return exchange.finish(request, response, body)

    @wraps(send_sync)  # some providers and chat models have no other
    def send_guarded_sync(client: "httpx.Client", request: "httpx.Request", **options: Any) -> "httpx.Response":
        exchange = _EXCHANGE.get()
        if exchange is None:
            return send_sync(client, request, **options)
        with exchange.attempt(request):
            response = send_sync(client, request, **{**options, **_UNREAD})
            try:
                body = _Body(response)
                for chunk in response.iter_raw():
                    if not body.add(chunk):
                        break
            finally:
                response.close()
            return exchange.finish(request, response, body)

    httpx.AsyncClient.send = send_guarded  # type: ignore[assignment, method-assign]
    httpx.Client.send = send_guarded_sync  # type: ignore[assignment, method-assign]
