"""Who may ask a server of this package: the viewer and the reward server have the same rules.

A server that listens on loopback answers requests that name loopback in Host, so that no web page that a browser has
open can reach it by another name of this machine. A server that others can reach needs a token as well.
"""

import hmac
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web

from jurygraph.errors import InputError

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_LOOPBACK_HOSTS_IN_URL = ("127.0.0.1", "localhost", "[::1]")


def require_origin(
    request: web.BaseRequest, allowed_hosts: Collection[str], token: str | None, command: str
) -> None:
    """Refuse a request to another name of this machine, or from the page of another server: both with 403.

    With a token any name will do: pages of others do not have it, and 0.0.0.0 has as many names as its machine.
    """
    if token is None and request.host not in allowed_hosts:
        raise web.HTTPForbidden(text=f"This address is not the one that `{command}` printed.")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise web.HTTPForbidden(text="Requests from other pages are refused.")


def matches_token(candidate: str, token: str) -> bool:
    """Return whether a text is the token, in a time that does not depend on where the two differ."""
    return hmac.compare_digest(candidate.encode(errors="replace"), token.encode())


@asynccontextmanager
async def serve_app(
    app: web.Application,
    allowed_hosts: set[str],
    host: str,
    port: int,
    *,
    handler_cancellation: bool = False,
) -> AsyncIterator[int]:
    """Serve an application inside the block, and yield the port.

    `allowed_hosts` gets the names, with the port, under which it may be asked. With `handler_cancellation` a request
    ends where its client goes. Raises `InputError` where nothing can listen there.
    """
    runner = web.AppRunner(app, access_log=None, handler_cancellation=handler_cancellation)
    await runner.setup()
    try:
        await _listen(runner, host, port)
        bound_port = runner.addresses[0][1]
        allowed_hosts |= {f"{name}:{bound_port}" for name in (*_LOOPBACK_HOSTS_IN_URL, host)}
        yield bound_port
    finally:
        await runner.cleanup()


async def _listen(runner: web.BaseRunner, host: str, port: int) -> None:
    site = web.TCPSite(runner, host, port, backlog=1024)
    try:
        await site.start()
    except OSError as error:
        reason = error.strerror if error.errno is None else os.strerror(error.errno)
        problem = f"{host}:{port}: cannot be listened on ({reason})"
        raise InputError(f"{problem}; name another with --port, or 0 for a free one") from None
