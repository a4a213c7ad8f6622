"""Backend for any provider of litellm, by the litellm id of a model (`provider/model`).

litellm takes a client of ours in two ways. Most providers take `_litellm_http_handler()`, with the call; those that it
asks by OpenAI's library take `_HTTPX_CLIENT`, as `litellm.aclient_session`, for all calls. A few take none.
"""

import asyncio
import importlib
import logging
import os
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import httpx
from pydantic_core import from_json
from yarl import URL

from jurygraph.messages import did_you_mean, quote
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.backends.openai_compatible import HttpClient
from jurygraph.models.judge_client import read_token_logprobs
from jurygraph.models.limits import Price
from jurygraph.models.request import (
    ABORTED_FINISH_REASONS,
    Fault,
    Reply,
    Request,
    SchemaMode,
    fault_kind_of_error,
    fault_kind_of_status,
    find_non_content_field,
    iterate_exception_chain,
    parse_server_error,
    read_tool_calls,
)
from jurygraph.safety.redaction import find_secrets
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields, iter_strings

_PROVIDER_FACTS = tomllib.loads(
    files("jurygraph.models.backends").joinpath("litellm.toml").read_text("utf-8")
)
CAPABILITIES_BY_MODEL_PREFIX = {
    prefix: EndpointCapabilities(**entry) for prefix, entry in _PROVIDER_FACTS["forms"].items()
}
OMITTED_PARAMETERS_BY_MODEL_PREFIX = {
    prefix: frozenset(names) for prefix, names in _PROVIDER_FACTS["left_out"].items()
}
ADDRESS_VARIABLES_BY_PROVIDER: dict[str, Sequence[str]] = _PROVIDER_FACTS["addresses"]
KEY_VARIABLES_BY_PROVIDER: dict[str, Sequence[str]] = _PROVIDER_FACTS["keys"]

_COMMON_PROVIDERS = {
    *(prefix.partition("/")[0] for prefix in CAPABILITIES_BY_MODEL_PREFIX),
    *ADDRESS_VARIABLES_BY_PROVIDER,
    *KEY_VARIABLES_BY_PROVIDER,
    *_PROVIDER_FACTS["others"]["names"],
}

# of other providers: the least that all their models share
DEFAULT_PROVIDER_CAPABILITIES = EndpointCapabilities("instructed")

_USER_IN_ADDRESS_PATTERN = re.compile(r"(?:[\w+.-]+://)?[^/?#]*@")

FIXED_SAMPLING_MODEL_PATTERN = re.compile(
    r"(?:^|[/.])(?:gpt-[5-9]|o[1-9](?:-|$)|claude-[a-z]+-(?:4-[7-9]|[5-9]|preview))"
)
"""Models, of any provider, that reject a temperature and log probabilities."""

_LITELLM_ENVIRONMENT_VARIABLES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is fetched when litellm is imported
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else they are fetched at the first call
    "LITELLM_MODE": "PRODUCTION",  # else a .env file is read, and its keys are unknown to the redactor
}
_LITELLM_LOGGER_NAMES = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_OLLAMA_PREFIXES = ("ollama/", "ollama_chat/")
_MILLION = 1_000_000

_FAULT_KIND_BY_ERROR_NAME = {
    "ContextWindowExceededError": "overflowed",
    "ContentPolicyViolationError": "refused",
}
"""Classes of litellm's errors that say more than the reply: it knows the words of many providers."""

_OPENAI_SDK_PROVIDERS = ("azure", "azure_text", "openai")
"""Providers that litellm is known to ask by OpenAI's library; the others are found out at their first call."""

_FIXED_LITELLM_ARGUMENTS = {
    "timeout": 86_400.0,  # the same for all: litellm creates a client, with its own connections, for each timeout
    "max_retries": 0,
    "num_retries": 0,
    "caching": False,
    "no-log": True,
}
"""Arguments of every call: one attempt, which is limited, cached and recorded by the gateway alone."""


MAX_REPLY_JSON_VALUES = 1_000_000
"""Most JSON values in a reply: the log probabilities of the longest replies have about as many.

The bytes alone are no bound: of 8 MB of empty choices litellm makes objects for a minute, in which nothing else runs.
"""

_MAX_SHOWN_REPLY_BYTES = 100
_CONNECTION_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
"""Headers of a request that aiohttp writes itself."""

_UNSTORED_HEADERS = frozenset(
    {"content-encoding", "content-length", "set-cookie", "transfer-encoding"}
)
"""Headers of a reply that httpx must not see: its body is decompressed, and cookies would be sent to others."""


@dataclass
class _HttpExchange:
    """The outcome of the HTTP requests of one call: the last response, its JSON value if it is no error, or a fault.

    After a failure no further request is sent: a call is one attempt.
    """

    response: httpx.Response | None = None
    reply: Any = None
    fault: Fault | None = None

    @property
    def fault_kind(self) -> str | None:
        """The kind of fault that the last response states; None if it states none."""
        if self.response is None or not self.response.is_error:
            return None
        return fault_kind_of_error(
            self.response.status_code, parse_server_error(self.response.content)
        )

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises `Fault` if there is no acceptable reply, or another request of the call has failed."""
        if self.fault is not None or self.fault_kind is not None:
            raise Fault("rejected", "the request failed, and is not sent a second time")
        try:
            response = await _send_http_request(request)
            if response.is_success:
                self.reply = _decode_reply_json(response.content)
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
            raise Fault(
                "rejected",
                "litellm takes no HTTP client for this provider, so its reply could not be limited; reach the model "
                "by openai-compatible:URL#model instead",
            )
        if self.fault_kind is not None:
            raise Fault(self.fault_kind, f"the provider answered {self.response.status_code}")


_CURRENT_HTTP_EXCHANGE: ContextVar[_HttpExchange | None] = ContextVar(
    "jurygraph_exchange", default=None
)
"""The call of litellm under way, in whose context its HTTP requests are sent."""


class _HttpxTransport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        http_exchange = _CURRENT_HTTP_EXCHANGE.get()
        if http_exchange is None:  # a call of somebody else's, while litellm has this client
            return await _send_http_request(request)
        return await http_exchange.send(request)


class _HttpxClient(httpx.AsyncClient):
    """The client for `litellm.aclient_session`: the only one there between `replace_session` and `restore_session`."""

    def __init__(self) -> None:
        super().__init__(transport=_HttpxTransport())
        self._displaced: Any = None

    def replace_session(self) -> None:
        litellm = import_litellm()
        if litellm.aclient_session is not self:
            self._displaced = litellm.aclient_session
            litellm.aclient_session = self

    def restore_session(self) -> None:
        litellm = import_litellm()
        if litellm.aclient_session is self:
            litellm.aclient_session = self._displaced
            litellm.in_memory_llm_clients_cache.flush_cache()  # its clients of OpenAI hold the session

    async def aclose(self) -> None:
        """Stay open: litellm may close the clients that it knows, but could not send by a closed one again."""


_HTTP_CLIENT = HttpClient()
_HTTPX_CLIENT = _HttpxClient()


@cache
def _litellm_http_handler() -> Any:
    """Return litellm's own client, which sends by ours."""
    http_handler = importlib.import_module(
        "litellm.llms.custom_httpx.http_handler"
    ).AsyncHTTPHandler()
    http_handler.client = _HTTPX_CLIENT
    return http_handler


async def _send_http_request(request: httpx.Request) -> httpx.Response:
    headers = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in _CONNECTION_HEADERS
    }
    # as it was signed, for a provider that checks signatures
    address = URL(str(request.url), encoded=True)
    body = await request.aread()
    reply = await _HTTP_CLIENT.send(
        request.method, address, body, headers, _proxy_of_address(request.url)
    )
    kept = [
        (name, value)
        for name, value in reply.headers.items()
        if name.lower() not in _UNSTORED_HEADERS
    ]
    content = bytes(reply.content)
    return httpx.Response(reply.status, headers=kept, content=content, request=request)


def _decode_reply_json(content: bytes) -> Any:
    """Return the JSON value of a reply. Raises `Fault` if it is none, or one that litellm would take too long for."""
    if content.count(b",") + content.count(b"{") + content.count(b"[") > MAX_REPLY_JSON_VALUES:
        raise Fault("too-large", f"the reply has more than {MAX_REPLY_JSON_VALUES:,} values")
    try:
        return from_json(content)
    except ValueError as error:
        content_start = content[:_MAX_SHOWN_REPLY_BYTES].decode(errors="replace")
        raise Fault(
            "unreadable", f"the reply is not JSON: {error}; it begins with {content_start!r}"
        ) from None


def _proxy_of_address(address: httpx.URL) -> str | None:
    """Return the proxy for an address by the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""
    proxy_by_scheme = {} if proxy_bypass(address.host) else getproxies()
    return proxy_by_scheme.get(address.scheme) or proxy_by_scheme.get("all")


class LiteLLMBackend(Backend):
    """One model of a provider, or of the server at `base_url`; the key is where litellm looks for it.

    `endpoint` is the address of the server, from `base_url` or from the environment, and None for the provider's own.
    Parameters that the model does not accept are left out when a request is sent, though they are part of the request:
    temperature and log probabilities if the model controls its own sampling, `OMITTED_PARAMETERS_BY_MODEL_PREFIX` by
    provider. Raises `ValueError` if the address holds a password.
    """

    provider = "litellm"

    def __init__(
        self, model: str, base_url: str | None = None, form: SchemaMode | None = None
    ) -> None:
        self.model = model
        address = (
            ("base_url", base_url)
            if base_url
            else _find_environment_variable(model, ADDRESS_VARIABLES_BY_PROVIDER, "BASE")
        )
        self.endpoint = _address_without_query(*address)
        self.key_variable, _ = _find_environment_variable(model, KEY_VARIABLES_BY_PROVIDER, "KEY")
        self._base_url = base_url
        self._takes_handler = model.partition("/")[0] not in _OPENAI_SDK_PROVIDERS
        self.secrets = tuple(find_secrets(os.environ))
        self._dropped_parameters: frozenset[str] = _longest_prefix_entry(
            OMITTED_PARAMETERS_BY_MODEL_PREFIX, model, frozenset()
        )
        capabilities: EndpointCapabilities = _longest_prefix_entry(
            CAPABILITIES_BY_MODEL_PREFIX, model, DEFAULT_PROVIDER_CAPABILITIES
        )
        if FIXED_SAMPLING_MODEL_PATTERN.search(model):
            self._dropped_parameters |= {"logprobs", "top_logprobs", "temperature", "top_p"}
            capabilities = replace(capabilities, logprobs=False)
        self.capabilities = capabilities if form is None else replace(capabilities, form=form)

    def find_list_price(self) -> Price | None:
        """Return the price in litellm's own table, under the whole name or under that without the provider."""
        table = import_litellm().model_cost
        provider, _, name = self.model.partition("/")
        entry = table.get(self.model)
        unprefixed_entry = table.get(name, {})
        if entry is None and str(unprefixed_entry.get("litellm_provider")).startswith(provider):
            entry = unprefixed_entry
        if entry is None:
            return None
        input_cost = entry.get("input_cost_per_token")
        output_cost = entry.get("output_cost_per_token")
        if input_cost is None or output_cost is None:
            return None
        return Price(input=input_cost * _MILLION, output=output_cost * _MILLION)

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply to one HTTP request, within `timeout` seconds; the first imports litellm.

        Raises `Fault`, also if the reply came by another HTTP client than ours.
        """
        arguments = {
            name: value
            for name, value in request.parameters.items()
            if name not in self._dropped_parameters
        }
        arguments |= {**request.to_chat(), "base_url": self._base_url, "drop_params": False}
        if self.model.startswith(_OLLAMA_PREFIXES):
            # else litellm asks the server for unknown models twice before each request
            entry = {"litellm_provider": "ollama", "mode": "chat"}
            import_litellm().model_cost.setdefault(self.model, entry)
        arguments |= {**_FIXED_LITELLM_ARGUMENTS, "model": self.model}
        call = import_litellm().acompletion  # imported before the timeout begins
        _OPEN_BACKENDS.add(self)
        http_exchange = _HttpExchange()
        token = _CURRENT_HTTP_EXCHANGE.set(http_exchange)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._call_litellm(call, arguments)
            http_exchange.require_reply()
            return _to_reply(request, answer, http_exchange.reply)
        except TimeoutError:
            raise self.fault("timeout", f"no whole reply within {timeout:g} s") from None
        except Fault as fault:
            raise self.to_model_fault(fault) from None
        except Exception as error:  # noqa: BLE001 - litellm's many transformations may raise anything
            raise self._to_fault(error, http_exchange) from None
        finally:
            _CURRENT_HTTP_EXCHANGE.reset(token)

    async def _call_litellm(
        self, call: Callable[..., Awaitable[Any]], arguments: ReadOnlyFields
    ) -> Any:
        """Call litellm with the kind of client that it takes for this provider."""
        if self._takes_handler:
            try:
                return await call(**arguments, client=_litellm_http_handler())
            except Exception as error:
                if not _is_handler_mismatch_error(error):
                    raise
            self._takes_handler = False
        _HTTPX_CLIENT.replace_session()
        return await call(**arguments)

    async def close(self) -> None:
        """Release connections. They are shared by all of our backends: the last one closes them."""
        if self in _OPEN_BACKENDS:
            _OPEN_BACKENDS.discard(self)
            if not _OPEN_BACKENDS:
                _HTTPX_CLIENT.restore_session()
                await _HTTP_CLIENT.close()

    def _to_fault(self, error: Exception, http_exchange: _HttpExchange) -> Fault:
        if http_exchange.fault is not None:
            return self.to_model_fault(http_exchange.fault)
        headers = None if http_exchange.response is None else http_exchange.response.headers
        return self.fault(
            _fault_kind(error, http_exchange), f"{type(error).__name__}: {error}", headers
        )


def _is_handler_mismatch_error(error: Exception) -> bool:
    """Return whether litellm took our handler for OpenAI's client, which has other methods."""
    handler_class_name = type(_litellm_http_handler()).__name__
    return any(
        isinstance(cause, AttributeError | TypeError) and handler_class_name in str(cause)
        for cause in iterate_exception_chain(error)
    )


_OPEN_BACKENDS: WeakSet[LiteLLMBackend] = WeakSet()
"""Backends that may hold connections: the last one to close closes them for all."""


def _find_environment_variable(
    model: str, table: Mapping[str, Sequence[str]], suffix: str
) -> tuple[str, str | None]:
    """Return the environment variable in which litellm finds a model's address or key, and its value if it is set."""
    is_proxied = os.environ.get("USE_LITELLM_PROXY", "").strip().lower() == "true"
    provider = "litellm_proxy" if is_proxied else model.partition("/")[0]
    default = f"{provider.upper().replace('-', '_')}_API_{suffix}"
    names = table.get(provider, (default,))
    for name in names:
        value = os.environ.get(name)
        if value:
            return name, value
    return names[0], None


def _address_without_query(source: str, address: str | None) -> str | None:
    """Return the server's address without its query, which may be secret."""
    if address is None:
        return None
    if _USER_IN_ADDRESS_PATTERN.match(address.strip()):
        raise ValueError(
            f"{source}: the URL contains a user or a password; leave it out, and pass the key separately"
        )
    return re.split(r"[?#]", address.strip(), maxsplit=1)[0].rstrip("/")


@cache
def require_provider(model: str) -> None:
    """Raise `ValueError` for a model whose provider litellm does not know, with the nearest known one.

    litellm is imported only for providers that are not in `litellm.toml`.
    """
    provider = model.partition("/")[0]
    if provider in _COMMON_PROVIDERS:
        return
    litellm = import_litellm()
    custom_providers = [entry["provider"] for entry in litellm.custom_provider_map]
    if provider in custom_providers:
        return
    try:
        litellm.get_llm_provider(model)
    except litellm.exceptions.BadRequestError:
        litellm_providers = [getattr(entry, "value", entry) for entry in litellm.provider_list]
        names = [*sorted(_COMMON_PROVIDERS), *custom_providers, *litellm_providers]
        hint = did_you_mean(provider, names) or "write provider/model, such as openai/gpt-5-mini"
        raise ValueError(
            f"{quote(provider)} is not a provider that litellm knows; {hint}"
        ) from None


def import_litellm() -> Any:
    """Return litellm, set up to fetch nothing, cache nothing and send no telemetry."""
    os.environ.update(_LITELLM_ENVIRONMENT_VARIABLES)
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    for name in _LITELLM_LOGGER_NAMES:  # they would print prompts and keys
        logging.getLogger(name).disabled = True
    return litellm


def _longest_prefix_entry(table: JsonFields, model: str, default: Any) -> Any:
    starts = [start for start in table if model.startswith(start)]
    return table.get(max(starts, key=len, default=""), default)


def _fault_kind(error: Exception, http_exchange: _HttpExchange) -> str:
    for base in type(error).__mro__:
        if base.__name__ in _FAULT_KIND_BY_ERROR_NAME:
            return _FAULT_KIND_BY_ERROR_NAME[base.__name__]
    if http_exchange.response is not None:
        return http_exchange.fault_kind or "unreadable"
    if any(type(cause).__name__ == "OpenAIError" for cause in iterate_exception_chain(error)):
        return "unauthorised"  # OpenAI's client cannot be created without a key
    status = getattr(error, "status_code", None)
    return fault_kind_of_status(status) if isinstance(status, int) else "unreadable"


def _to_reply(request: Request, answer: Any, received_json: Any) -> Reply:
    if not answer.choices:
        raise Fault("unreadable", "the reply has no choices")
    choice = answer.choices[0]
    received_finish_reason = _received_finish_reason(received_json)
    if received_finish_reason in ABORTED_FINISH_REASONS:  # litellm reports these as "stop"
        raise Fault(
            "server", f"the server broke the reply off (finish_reason {received_finish_reason!r})"
        )
    provider_specific_fields = choice.message.provider_specific_fields or {}
    finish = choice.finish_reason
    if request.model.startswith(_OLLAMA_PREFIXES):
        # litellm reports "stop" for each of its reasons, and for a reply that did not end
        if not isinstance(received_json, dict) or received_json.get("done") is not True:
            raise Fault("unreadable", "the reply does not say that it is done")
        reason = received_json.get("done_reason")
        finish = (isinstance(reason, str) and reason) or finish
    text = _restore_received_text(choice.message.content or "", received_json)
    logprobs = getattr(choice, "logprobs", None)
    tokens = read_token_logprobs(logprobs.model_dump() if logprobs else None, text)
    # the latter from litellm 1.108 on
    refusal = provider_specific_fields.get("refusal") or getattr(choice.message, "refusal", None)
    message = choice.message.model_dump()
    tool_calls = read_tool_calls(message, request)
    other_field = None if text.strip() or tool_calls else find_non_content_field(message)
    return Reply(
        text=text,
        finish=finish,
        refusal=refusal,
        served=answer.model,
        tokens_in=answer.usage.prompt_tokens or None,  # 0 if the provider did not report it
        tokens_out=answer.usage.completion_tokens or None,
        tokens=tokens,
        other_field=other_field,
        tool_calls=tool_calls,
    )


def _received_finish_reason(received_json: Any) -> Any:
    """Return the finish reason in OpenAI's format, None in others."""
    try:
        return received_json["choices"][0]["finish_reason"]
    except (LookupError, TypeError):
        return None


def _restore_received_text(text: str, received_json: Any) -> str:
    """Return a text as the body has it, if it does: litellm removes what it considers thoughts, or a fence."""
    strings_with_text = (
        [string for string in iter_strings(received_json) if text in string] if text.strip() else []
    )
    return text if text in strings_with_text or not strings_with_text else strings_with_text[0]
