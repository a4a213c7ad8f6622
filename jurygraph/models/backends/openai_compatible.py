"""Backend for any server with OpenAI's chat completions (vLLM, SGLang, llama.cpp, OpenAI itself, …), on aiohttp.

`HttpClient`, by which it sends, also sends for litellm.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, TypeVar
from urllib.parse import urlsplit

import aiohttp
from pydantic import FailFast, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.judge_client import read_token_logprobs
from jurygraph.models.request import (
    ABORTED_FINISH_REASONS,
    MAX_ERROR_BODY_BYTES,
    Fault,
    Reply,
    Request,
    SchemaMode,
    ServerErrorDetails,
    encode_compact_json,
    fault_kind_of_error,
    fault_kind_of_status,
    find_non_content_field,
    parse_server_error,
    read_tool_calls,
)
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields

if TYPE_CHECKING:
    from yarl import URL


log = logging.getLogger(__name__)

MAX_HTTP_REPLY_BYTES = 8 << 20  # most bytes of a reply, compressed or not
_MAX_BODY_AS_BYTES = 1 << 20  # aiohttp warns if more bytes than this are sent at once
_CLOSE_TIMEOUT_SECONDS = 2.0  # for the connections that nobody closed, at the end of a process
_MAX_CONNECTION_IDLE_SECONDS = (
    4.0  # seconds: uvicorn, under vLLM and SGLang, closes an idle connection after 5
)


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
        weakref.finalize(self, _close_forgotten_sessions, self._sessions)

    async def send(
        self,
        method: str,
        address: "str | URL",
        body: bytes,
        headers: Mapping[str, str] | None = None,
        proxy_url: str | None = None,
    ) -> HttpReply:
        """Return the reply to one request, also if it is an error; of an error's body, the beginning.

        Raises `Fault` for a redirect, a reply that is too large or not HTTP, and a broken connection.
        """
        data = body if len(body) <= _MAX_BODY_AS_BYTES else BytesIO(body)
        content = bytearray()
        try:
            session = await self._session_of_running_loop()
            async with session.request(
                method, address, data=data, headers=headers, proxy=proxy_url, allow_redirects=False
            ) as response:
                max_bytes = MAX_HTTP_REPLY_BYTES if response.status < 300 else MAX_ERROR_BODY_BYTES
                while not response.content.at_eof() and len(content) <= max_bytes:
                    content += await response.content.readany()
                if len(content) > max_bytes:
                    response.close()
        except aiohttp.ClientResponseError as error:
            raise Fault("unreadable", f"the response is not HTTP: {error.message}") from None
        except (aiohttp.ClientError, OSError) as error:
            cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
            is_connection_refused = isinstance(cause, ConnectionRefusedError)
            problem = f"{error}" or type(error).__name__
            if is_connection_refused:
                problem = "connection refused; start the server, or check the port"
            raise Fault("connection", problem, is_unsent=cause is not None) from None
        if 300 <= response.status < 400:
            raise Fault(
                fault_kind_of_status(response.status),
                f"{response.status}, a redirect; give the URL that it leads to, if you trust that server",
            )
        if response.status < 300 and len(content) > MAX_HTTP_REPLY_BYTES:
            raise Fault("too-large", f"the reply has more than {MAX_HTTP_REPLY_BYTES >> 20} MiB")
        return HttpReply(response.status, response.headers, content)

    async def close(self) -> None:
        """Close the connections of the running loop, and of loops that have ended. It may be used again."""
        running_loop = asyncio.get_running_loop()
        for loop in [loop for loop in self._sessions if loop is running_loop or loop.is_closed()]:
            await self._sessions.pop(loop).close()

    async def _session_of_running_loop(self) -> aiohttp.ClientSession:
        """Return the session of the running loop: connections of one loop cannot be used in another."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            closed_event_loops = [other for other in self._sessions if other.is_closed()]
            ended_sessions = [self._sessions.pop(other) for other in closed_event_loops]
            connector = aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=_MAX_CONNECTION_IDLE_SECONDS
            )
            self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
            for session in ended_sessions:
                await session.close()
        return self._sessions[loop]


def _close_forgotten_sessions(
    unclosed_sessions: Mapping[asyncio.AbstractEventLoop, aiohttp.ClientSession],
) -> None:
    """Say that nobody closed these connections, and close them: aiohttp would write several lines about each."""
    if not unclosed_sessions:
        return
    log.warning(
        "a jury was not closed: use it as `with jg.Jury(…) as jury:`, or call jury.close() at the end"
    )
    running_loop = None
    with suppress(RuntimeError):  # none runs in this thread
        running_loop = asyncio.get_running_loop()
    for loop, session in unclosed_sessions.items():
        close_coroutine = session.close()
        with suppress(TimeoutError, RuntimeError):  # the loop ends meanwhile
            if loop.is_running() and loop is not running_loop:
                asyncio.run_coroutine_threadsafe(close_coroutine, loop).result(
                    _CLOSE_TIMEOUT_SECONDS
                )
            elif running_loop is None:
                asyncio.run(close_coroutine)
            else:
                running_loop.create_task(close_coroutine)  # noqa: RUF006 - it ends with the loop at the latest


T = TypeVar("T")
_TOKEN_COUNT_LIMIT = 1 << 31
_API_KEY_PATTERN = re.compile(r"[!-~]+")
_NO_ADDRESS_HINT = "the URL is not a web address; give one such as http://127.0.0.1:8000/v1"


class _CompletionMessage(TypedDict):
    content: NotRequired[str | list[JsonFields] | None]
    refusal: NotRequired[str | None]
    reasoning_content: NotRequired[Any]
    reasoning: NotRequired[Any]
    tool_calls: NotRequired[Any]
    function_call: NotRequired[Any]


class _CompletionChoice(TypedDict):
    message: _CompletionMessage
    finish_reason: NotRequired[str | None]
    logprobs: NotRequired[Any]


class _ChatCompletion(TypedDict):
    choices: Annotated[list[_CompletionChoice], Field(min_length=1), FailFast()]
    model: NotRequired[str | None]
    usage: NotRequired[Any]


_COMPLETION_ADAPTER = TypeAdapter(_ChatCompletion)


class OpenAICompatibleBackend(Backend):
    """One model of a server, by the URL that has `/chat/completions` below it.

    A request waits for one of `connections` connections within its own timeout. Raises `ValueError` if the URL is no
    web address or contains parts that may be secret, or if the key is not valid in a header.
    """

    provider = "openai-compatible"

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None = None,
        form: SchemaMode = "native",
        connections: int = 64,
        key_variable: str | None = None,
    ) -> None:
        if key is not None and not _API_KEY_PATTERN.fullmatch(key):
            raise ValueError(
                "the key is empty, or has a blank or a sign beyond ASCII in it; give it as it was issued"
            )
        self.endpoint: str = _normalize_endpoint_url(url)
        self.model = model
        self.key_variable = key_variable
        self.secrets = () if key is None else (key,)
        self.capabilities = EndpointCapabilities(form, logprobs=True, tools=True)
        headers = {"Content-Type": "application/json", "User-Agent": "jurygraph"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._client = HttpClient(headers, connections)

    @property
    def label(self) -> str:
        """The URL, which identifies the server too."""
        return self.endpoint

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply, within `timeout` seconds from now to its last byte. Raises `Fault`."""
        body = {**request.parameters, "model": request.model, **request.to_chat()}
        http_reply = await self.post("chat/completions", body, timeout)
        reply = read_chat_completion(
            self.parse_http_reply(http_reply, _COMPLETION_ADAPTER), request
        )
        if reply.finish in ABORTED_FINISH_REASONS:
            raise self.fault(
                "server", f"the server broke the reply off (finish_reason {reply.finish!r})"
            )
        return reply

    async def post(self, path: str, body: ReadOnlyFields, timeout: float) -> HttpReply:
        """Send a request to a path below the URL, and return the reply if it is no error. Raises `Fault`."""
        try:
            async with asyncio.timeout(timeout):
                http_reply = await self._client.send(
                    "POST", f"{self.endpoint}/{path}", encode_compact_json(body)
                )
        except PydanticSerializationError as error:
            raise Fault(
                "rejected",
                f"the request cannot be written as JSON in UTF-8: {error}",
                is_unsent=True,
            ) from None
        except TimeoutError:
            raise self.fault("timeout", f"no whole reply within {timeout:g} s") from None
        except Fault as fault:
            raise self.to_model_fault(fault) from None
        if http_reply.status >= 300:
            server_error = parse_server_error(http_reply.content)
            raise self._fault_from_error(http_reply.status, http_reply.headers, server_error)
        return http_reply

    def parse_http_reply(self, http_reply: HttpReply, reply_adapter: TypeAdapter[T]) -> T:
        """Return the content of a reply. Raises `Fault` if it is an error, or not what the adapter accepts."""
        try:
            return reply_adapter.validate_json(http_reply.content)
        except ValidationError as invalid:
            error = parse_server_error(http_reply.content)
            if error.status is not None:
                raise self._fault_from_error(error.status, http_reply.headers, error) from None
            first = invalid.errors(include_url=False, include_input=False)[0]
            location = ".".join(map(str, first["loc"])) or "the body"
            raise self.fault(
                "unreadable",
                f"the reply is not in the format: {location}: {first['msg']}; it begins with {error.message!r}",
            ) from None

    async def close(self) -> None:
        await self._client.close()

    def _fault_from_error(
        self, status: int, headers: Mapping[str, str], error: ServerErrorDetails
    ) -> Fault:
        kind = fault_kind_of_error(status, error)
        message = f"{status}: {error.message}"
        if kind == "unknown-model" and not urlsplit(self.endpoint).path:
            message += "; most servers want /v1 at the end of the URL"
        if status in (404, 405) and self.endpoint.endswith("/chat/completions"):
            message += "; drop /chat/completions from the URL, as it is added to it"
        code = f"{status} {error.code}" if error.code else None
        return self.fault(kind, message, headers, code=code)


def _normalize_endpoint_url(url: str) -> str:
    """Return a URL without its last slash. Errors do not repeat the URL."""
    try:
        parts = urlsplit(url.strip())
        is_web_address = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        raise ValueError(_NO_ADDRESS_HINT) from None
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise ValueError(
            "the URL contains a user, a password or a query, which may be secret; pass the key separately"
        )
    if not is_web_address:
        raise ValueError(_NO_ADDRESS_HINT)
    return url.strip().rstrip("/")


def read_chat_completion(chat_completion: _ChatCompletion, request: Request) -> Reply:
    """Return the reply in an envelope, from its first choice; with its calls of tools if the request offers some."""
    choice = chat_completion["choices"][0]
    message = choice["message"]
    usage = chat_completion.get("usage")
    content = message.get("content") or ""
    if isinstance(content, list):  # parts; those with thoughts are not the reply
        texts = (part.get("text") for part in content if part.get("type") == "text")
        content = "".join(text for text in texts if isinstance(text, str))
    input_tokens = _read_token_count(usage, "prompt_tokens")
    output_tokens = _read_token_count(usage, "completion_tokens")
    tool_calls = read_tool_calls(message, request)
    total = _read_token_count(usage, "total_tokens")
    if input_tokens is not None and output_tokens is not None and total is not None:
        output_tokens = max(
            output_tokens, total - input_tokens
        )  # hidden reasoning, if the total alone includes it
    return Reply(
        text=content,
        finish=choice.get("finish_reason"),
        refusal=message.get("refusal") or None,
        served=chat_completion.get("model"),
        tokens_in=input_tokens,
        tokens_out=output_tokens,
        tokens=read_token_logprobs(choice.get("logprobs"), content),
        other_field=None if content.strip() or tool_calls else find_non_content_field(message),
        tool_calls=tool_calls,
    )


def _read_token_count(usage: Any, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count < _TOKEN_COUNT_LIMIT else None
