"""Who may ask a server of this package: the viewer and the reward server have the same rules.

A server that listens on loopback answers requests that name loopback in Host, so that no web page that a browser has
open can reach it by another name of this machine. A server that others can reach needs a token as well.
"""

import hmac
import os
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web

from jurygraph.errors import InputError

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


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


async def listen(runner: web.BaseRunner, host: str, port: int) -> int:
    """Begin to listen, and return the port. Raises `InputError` where nothing can listen there."""
    site = web.TCPSite(runner, host, port, backlog=1024)
    try:
        await site.start()
    except OSError as error:
        reason = error.strerror if error.errno is None else os.strerror(error.errno)
        problem = f"{host}:{port}: cannot be listened on ({reason})"
        raise InputError(f"{problem}; name another with --port, or 0 for a free one") from None
    bound_port: int = runner.addresses[0][1]
    return bound_port


def host_names_with_port(host: str, port: int) -> set[str]:
    """Return the names, with the port, under which a server on this host may be asked."""
    names = (LOOPBACK_HOSTS[0], LOOPBACK_HOSTS[1], f"[{LOOPBACK_HOSTS[2]}]", host)
    return {f"{name}:{port}" for name in names}
