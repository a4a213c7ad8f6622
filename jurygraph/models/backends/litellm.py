"""Backend for any provider of litellm, by the litellm id of a model (`provider/model`)."""

import asyncio
import importlib
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any
from weakref import WeakSet

from pydantic_core import from_json

from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.backends.http_guard import Exchange, guard_requests
from jurygraph.models.budget import Price
from jurygraph.models.faults import (
    ABORTED,
    MAX_ERROR_BYTES,
    OUT_OF_FUNDS,
    RESPONSE_KINDS,
    RETRYABLE,
    Fault,
    exception_chain,
    kind_of_status,
)
from jurygraph.models.probability import read_tokens
from jurygraph.models.request import Form, Reply, Request
from jurygraph.models.retries import retry_after
from jurygraph.safety.known_secrets import find_secrets, process_redactor

FORMS = {
    "openai/": Capabilities("native", logprobs=True),
    "azure/": Capabilities("native", logprobs=True),
    "gemini/": Capabilities("native"),
    "vertex_ai/gemini": Capabilities("native"),
    "mistral/": Capabilities("native"),
    "groq/": Capabilities("instructed"),
    "groq/openai/gpt-oss": Capabilities("native"),
    "fireworks_ai/": Capabilities("native", logprobs=True, top_logprobs=5),
    "together_ai/": Capabilities("instructed"),
    "hosted_vllm/": Capabilities("native", logprobs=True),
    "anthropic/": Capabilities("native"),
    "bedrock/": Capabilities("instructed"),
    "ollama/": Capabilities("native"),
    "ollama_chat/": Capabilities("native"),
    "deepseek/": Capabilities("instructed"),
}
"""Capabilities of providers, by the prefix of an id; the longest prefix counts.

litellm's own table is wrong for some.
"""

UNKNOWN = Capabilities("instructed")
"""Capabilities of other providers: the least that all their models share."""

NO_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
LEFT_OUT = {
    "anthropic/": NO_LOGPROBS | {"seed", "n"},
    "bedrock/": NO_LOGPROBS | {"seed", "n"},
    "mistral/": NO_LOGPROBS,
    "gemini/": NO_LOGPROBS,
    "ollama/": NO_LOGPROBS,
    "ollama_chat/": NO_LOGPROBS,
}
"""Parameters that a provider does not accept."""

_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_ANTHROPIC = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
_WATSONX = ("WATSONX_API_BASE", "WATSONX_URL", "WX_URL", "WML_URL")
ADDRESSES = {
    "ai21": _OPENAI,
    "aiohttp_openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "anthropic_text": _ANTHROPIC,
    "azure": ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"),
    "azure_text": ("AZURE_API_BASE",),
    "bedrock": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
    "cohere_chat": ("COHERE_API_BASE",),
    "custom_openai": _OPENAI,
    "datarobot": ("DATAROBOT_ENDPOINT",),
    "featherless_ai": ("FEATHERLESS_AI_API_BASE", "FEATHERLESS_API_BASE"),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "friendliai": ("FRIENDLI_API_BASE",),
    "gradient_ai": ("GRADIENT_AI_AGENT_ENDPOINT",),
    "huggingface": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "lambda_ai": ("LAMBDA_API_BASE",),
    "litellm_proxy": ("LITELLM_PROXY_API_BASE", *_OPENAI),
    "lm_studio": ("LM_STUDIO_API_BASE", *_OPENAI),
    "meta_llama": ("LLAMA_API_BASE",),
    "mistral": ("MISTRAL_AZURE_API_BASE",),
    "ollama_chat": ("OLLAMA_API_BASE",),
    "openai": _OPENAI,
    "scx-ai": ("SCX_API_BASE",),
    "tensormesh": ("TENSORMESH_SERVERLESS_BASE_URL",),
    "text-completion-inception": ("INCEPTION_API_BASE",),
    "text-completion-openai": _OPENAI,
    "vertex_ai": ("VERTEXAI_API_BASE",),
    "watsonx": _WATSONX,
    "watsonx_text": _WATSONX,
    "xinference": _OPENAI,
}
"""Environment variables with the address of a provider's server, as litellm looks for it: the first that is set.

Other providers use PROVIDER_API_BASE. Regions, projects and versions of an API are left out: the owner of a model does
not depend on them.
"""

_WITH_USER = re.compile(r"(?:[\w+.-]+://)?[^/?#]*@")

FIXED_SAMPLING = re.compile(r"(?:^|[/.])(?:gpt-[5-9]|o[1-9](?:-|$)|claude-[a-z]+-(?:4-[7-9]|[5-9]|preview))")
"""Models, of any provider, that reject a temperature and log probabilities."""

_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is fetched when litellm is imported
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else they are fetched at the first call
    "LITELLM_MODE": "PRODUCTION",  # else a .env file is read, and its keys are unknown to the redactor
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_MAX_MESSAGE = 300
_OLLAMA = ("ollama/", "ollama_chat/")
_MILLION = 1_000_000

_CODES = {"context_length_exceeded": "overflowed", "content_filter": "refused"}
"""Error codes that litellm recognizes by the words of a message alone, and so may miss."""

_OWN_KINDS = ("server", "rejected")
"""Kinds of the statuses 500 and 400, which litellm raises itself if it cannot read a reply."""

FIXED_ARGUMENTS = {
    "timeout": 86_400.0,  # the same for all: litellm creates a client, with its own connections, for each timeout
    "max_retries": 0,
    "num_retries": 0,
    "caching": False,
    "no-log": True,
}
"""Arguments of every call: one attempt, which is limited, cached and recorded by the gateway alone."""

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""Exceptions that litellm raises for a malformed reply."""


class LiteLLM(Backend):
    """One model of a provider, or of the server at `base_url`; the key is where litellm looks for it.

    `endpoint` is the address of the server, from `base_url` or from the environment, and None for the provider's own.
    Parameters that the model does not accept are left out when a request is sent, though they are part of the request:
    temperature and log probabilities if the model controls its own sampling, `LEFT_OUT` by provider. Raises
    `ValueError` if the address holds a password.
    """

    provider = "litellm"

    def __init__(self, model: str, base_url: str | None = None, form: Form | None = None) -> None:
        self.model = model
        self.endpoint = _endpoint("base_url", base_url) if base_url else _endpoint(*_find_address(model))
        self._base_url = base_url
        self.secrets = tuple(find_secrets(os.environ))
        self._redactor = process_redactor(self.secrets)
        self._dropped_parameters = _longest_prefix_entry(LEFT_OUT, model, frozenset())
        self._capabilities: Capabilities = _longest_prefix_entry(FORMS, model, UNKNOWN)
        if FIXED_SAMPLING.search(model):
            self._dropped_parameters |= NO_LOGPROBS | {"temperature", "top_p"}
            self._capabilities = Capabilities(self._capabilities.form)
        if form is not None:
            self._capabilities = replace(self._capabilities, form=form)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities in `FORMS`, with the form given to the constructor."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply to one HTTP request, within `timeout` seconds. Raises `Fault`.

        The first call imports litellm.
        """
        litellm = library()
        if self.model.startswith(_OLLAMA):  # else litellm asks the server for unknown models twice before each request
            litellm.model_cost.setdefault(self.model, {"litellm_provider": "ollama", "mode": "chat"})
        USING.add(self)
        with guard_requests(json=True) as exchange:
            try:
                async with asyncio.timeout(timeout):
                    answer = await litellm.acompletion(**self._arguments(request))
                exchange.require_reply()
                return _reply(self.model, answer, exchange.bodies[-1])
            except TimeoutError:
                raise Fault("timeout", f"{self.model}: no whole reply within {timeout:g} s") from None
            except Fault as fault:
                raise self._prefix_model(fault) from None
            except Exception as error:  # noqa: BLE001 - litellm's many transformations may raise anything
                raise self._fault(error, exchange) from None

    async def close(self) -> None:
        """Release connections. litellm shares them among all users: the last of our backends closes them."""
        if self in USING:
            USING.discard(self)
            if not USING:
                litellm = library()
                await litellm.close_litellm_async_clients()
                litellm.in_memory_llm_clients_cache.flush_cache()  # else it would return the closed clients again

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            name: value for name, value in request.parameters.items() if name not in self._dropped_parameters
        }
        if request.form == "native" and request.answer is not None:
            schema = {"name": "verdict", "strict": True, "schema": request.answer}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        return arguments | {
            "model": self.model,
            "base_url": self._base_url,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "drop_params": False,
            **FIXED_ARGUMENTS,
        }

    def _prefix_model(self, fault: Fault) -> Fault:
        return Fault(fault.kind, f"{self.model}: {self._redactor.redact_text(str(fault))[:_MAX_MESSAGE]}")

    def _fault(self, error: Exception, exchange: Exchange) -> Fault:
        if exchange.fault is not None:
            return self._prefix_model(exchange.fault)
        kind = _kind(error)
        if kind not in RESPONSE_KINDS:
            kind = exchange.error_kind() or kind
        if kind in _OWN_KINDS and exchange.status is not None and exchange.status < 300:
            kind = "unreadable"
        headers = getattr(error, "litellm_response_headers", None) or {}
        wait = retry_after(headers, datetime.now(UTC), throttled=kind == "rate-limit")
        message = " ".join(self._redactor.redact_text(f"{type(error).__name__}: {error}"[:MAX_ERROR_BYTES]).split())
        return Fault(kind, f"{self.model}: {message[:_MAX_MESSAGE]}", wait if kind in RETRYABLE else None)


USING: WeakSet[LiteLLM] = WeakSet()
"""Backends that may hold connections: the last one to close closes them for all."""


def price(model: str) -> Price | None:
    """Return the price of a model in litellm's own table, under its whole name or under that without the provider."""
    table = library().model_cost
    provider, _, name = model.partition("/")
    entry, fallback = table.get(model), table.get(name, {})
    if entry is None and str(fallback.get("litellm_provider")).startswith(provider):
        entry = fallback
    if entry is None or None in (costs := (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))):
        return None
    return Price(input=costs[0] * _MILLION, output=costs[1] * _MILLION)


def _find_address(model: str) -> tuple[str, str | None]:
    """Return the environment variable in which litellm finds the address for a model, and the address if it is set."""
    is_proxied = os.environ.get("USE_LITELLM_PROXY", "").strip().lower() == "true"
    provider = "litellm_proxy" if is_proxied else model.partition("/")[0]
    names = ADDRESSES.get(provider, (f"{provider.upper().replace('-', '_')}_API_BASE",))
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), (names[0], None))


def _endpoint(source: str, address: str | None) -> str | None:
    """Return the server's address without its query, which may be secret."""
    if address is None:
        return None
    if _WITH_USER.match(address.strip()):
        raise ValueError(f"{source}: the URL contains a user or a password; leave it out, and pass the key separately")
    return re.split(r"[?#]", address.strip(), maxsplit=1)[0].rstrip("/")


@cache
def library() -> Any:
    """Return litellm, set up to fetch nothing, cache nothing and send no telemetry."""
    os.environ.update(_SETTINGS)
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.DEFAULT_MAX_RETRIES = 0  # its embeddings use this default if a call sets 0
    for name in _LOGGERS:  # they would print prompts and keys
        logging.getLogger(name).disabled = True
    return litellm


def _longest_prefix_entry(table: dict[str, Any], model: str, otherwise: Any) -> Any:
    return table.get(max((start for start in table if model.startswith(start)), key=len, default=""), otherwise)


def _kind(error: Exception) -> str:
    from litellm import exceptions

    if isinstance(error, exceptions.Timeout):
        return "timeout"
    if isinstance(error, exceptions.ContextWindowExceededError):
        return "overflowed"
    if isinstance(error, exceptions.ContentPolicyViolationError):
        return "refused"
    code, status = getattr(error, "code", None), getattr(error, "status_code", None)
    if code in _CODES:
        return _CODES[code]
    if not OUT_OF_FUNDS.isdisjoint(_error_codes(error)):
        return "unauthorised"
    if not isinstance(status, int):
        return "unreadable"
    has_reply = getattr(error, "litellm_response_headers", None) is not None
    return kind_of_status(status) if has_reply or status < 500 else _kind_without_answer(error)


def _error_codes(error: Exception) -> set[str]:
    """Return the provider's own error codes."""
    body = getattr(error, "body", None)
    codes = [body.get("code"), body.get("type")] if isinstance(body, dict) else []
    return {word for word in codes if isinstance(word, str)}


def _kind_without_answer(error: Exception) -> str:
    """Return the kind of a 500 that litellm raises itself: broken connection, missing key or unreadable reply."""
    import httpx
    import openai

    for cause in islice(exception_chain(error), 1, None):  # skip litellm's own classes, which derive from openai's
        if isinstance(cause, httpx.TransportError | openai.APIConnectionError):
            return "connection"
        if type(cause) is openai.OpenAIError:  # its client cannot be created without a key
            return "unauthorised"
        if isinstance(cause, UNREADABLE):
            return "unreadable"
    return "server"


def _reply(model: str, answer: Any, body: bytes) -> Reply:
    if not answer.choices:
        raise Fault("unreadable", f"{model}: the reply has no choices")
    choice = answer.choices[0]
    native = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason")
    if native in ABORTED:  # litellm reports these as "stop"
        raise Fault("server", f"{model}: the server broke the reply off (finish_reason {native!r})")
    special = choice.message.provider_specific_fields or {}
    sent = from_json(body)
    text = _restore_text(choice.message.content or "", sent)
    logprobs = getattr(choice, "logprobs", None)
    return Reply(
        text=text,
        finish=_finish(model, sent) or choice.finish_reason,
        refusal=special.get("refusal"),
        served=answer.model,
        tokens_in=answer.usage.prompt_tokens or None,  # 0 if the provider did not report it
        tokens_out=answer.usage.completion_tokens or None,
        tokens=read_tokens(logprobs.model_dump() if logprobs else None, text),
    )


def _finish(model: str, sent: Any) -> str | None:
    """Return Ollama's reason for the end of a reply, which litellm reports as "stop".

    Raises `Fault` if the reply did not end.
    """
    if not model.startswith(_OLLAMA):
        return None
    if not isinstance(sent, dict) or sent.get("done") is not True:
        raise Fault("unreadable", f"{model}: the reply does not say that it is done")
    reason = sent.get("done_reason")
    return reason if isinstance(reason, str) else None


def _restore_text(text: str, sent: Any) -> str:
    """Return a text as the provider sent it: litellm removes from it what it considers thoughts, or a fence.

    A text that is nowhere in the body, such as one that was sent in parts, is returned unchanged.
    """
    if not text.strip():
        return text
    original = ""
    for string in _strings(sent):
        if string == text:
            return text
        if text in string and not original:
            original = string
    return original or text


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, in order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))
