"""Send HTTP requests, each once: no redirect is followed, and no reply is read beyond a fixed size."""

import asyncio
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

from jurygraph.models.faults import MAX_ERROR_BYTES, Fault, kind_of_status

if TYPE_CHECKING:
    from yarl import URL

MAX_REPLY_BYTES = 8 << 20  # most bytes of a reply, compressed or not
_LARGEST_AS_BYTES = 1 << 20  # aiohttp warns if more bytes than this are sent at once
_IDLE = 4.0  # seconds: uvicorn, under vLLM and SGLang, closes an idle connection after 5


class HttpReply(NamedTuple):
    """An HTTP reply, decompressed, with no more of its content than is read of any reply."""

    status: int
    headers: Mapping[str, str]
    content: bytearray


class HttpClient:
    """Requests on aiohttp, with `headers` in each. A request waits for one of `connections`; 0 sets no limit.

    It has no time limit of its own: use `asyncio.timeout`. It keeps no cookies, and reads no `.netrc`.
    """

    def __init__(self, headers: Mapping[str, str] = {}, connections: int = 0) -> None:
        self._headers = headers
        self._connections = connections
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def send(
        self,
        method: str,
        address: "str | URL",
        body: bytes,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
    ) -> HttpReply:
        """Return the reply to one request, also if it is an error; of an error's body, the beginning.

        Raises `Fault` for a redirect, a reply that is too large or not HTTP, and a broken connection.
        """
        data = body if len(body) <= _LARGEST_AS_BYTES else BytesIO(body)
        content = bytearray()
        try:
            session = await self._session()
            async with session.request(
                method, address, data=data, headers=headers, proxy=proxy, allow_redirects=False
            ) as response:
                most = MAX_REPLY_BYTES if response.status < 300 else MAX_ERROR_BYTES
                while not response.content.at_eof() and len(content) <= most:
                    content += await response.content.readany()
                if len(content) > most:
                    response.close()
        except aiohttp.ClientResponseError as error:
            raise Fault("unreadable", f"the response is not HTTP: {error.message}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _connection_fault(error) from None
        if 300 <= response.status < 400:
            problem = f"{response.status}, a redirect; give the URL that it leads to, if you trust that server"
            raise Fault(kind_of_status(response.status), problem)
        if response.status < 300 and len(content) > MAX_REPLY_BYTES:
            raise Fault("too-large", f"the reply has more than {MAX_REPLY_BYTES >> 20} MiB")
        return HttpReply(response.status, response.headers, content)

    async def close(self) -> None:
        """Close the connections of the running loop, and of loops that have ended. It may be used again."""
        running = asyncio.get_running_loop()
        for loop in [loop for loop in self._sessions if loop is running or loop.is_closed()]:
            await self._sessions.pop(loop).close()

    async def _session(self) -> aiohttp.ClientSession:
        """Return the session of the running loop: connections of one loop cannot be used in another."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            ended = [self._sessions.pop(other) for other in list(self._sessions) if other.is_closed()]
            self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_IDLE),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
            for session in ended:
                await session.close()
        return self._sessions[loop]


def _connection_fault(error: Exception) -> Fault:
    problem = f"{error}" or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        problem = "connection refused"
    fault = Fault("connection", problem)
    fault.is_unsent = isinstance(error, aiohttp.ClientConnectorError)
    return fault
