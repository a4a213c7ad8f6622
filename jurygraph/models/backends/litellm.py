"""Backend for any provider of litellm, by the litellm id of a model (`provider/model`)."""

import asyncio
import importlib
import logging
import os
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from jurygraph.messages import did_you_mean, quote
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.budget import Price
from jurygraph.models.faults import ABORTED, Fault, exception_chain, kind_of_status
from jurygraph.models.probability import read_tokens
from jurygraph.models.request import Reply, Request, SchemaMode
from jurygraph.safety.redaction import find_secrets
from jurygraph.schema.frozen_model import iter_strings

if TYPE_CHECKING:
    from jurygraph.models.backends.litellm_client import Exchange

_PROVIDERS = tomllib.loads(files("jurygraph.models.backends").joinpath("litellm.toml").read_text("utf-8"))
CAPABILITIES = {prefix: Capabilities(**entry) for prefix, entry in _PROVIDERS["forms"].items()}
LEFT_OUT = {prefix: frozenset(names) for prefix, names in _PROVIDERS["left_out"].items()}
ADDRESSES: dict[str, Sequence[str]] = _PROVIDERS["addresses"]
KEYS: dict[str, Sequence[str]] = _PROVIDERS["keys"]

_COMMON_PROVIDERS = {
    *(prefix.partition("/")[0] for prefix in CAPABILITIES),
    *ADDRESSES,
    *KEYS,
    *_PROVIDERS["others"]["names"],
}

DEFAULT_CAPABILITIES = Capabilities("instructed")  # of other providers: the least that all their models share

_WITH_USER = re.compile(r"(?:[\w+.-]+://)?[^/?#]*@")

FIXED_SAMPLING = re.compile(r"(?:^|[/.])(?:gpt-[5-9]|o[1-9](?:-|$)|claude-[a-z]+-(?:4-[7-9]|[5-9]|preview))")
"""Models, of any provider, that reject a temperature and log probabilities."""

_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is fetched when litellm is imported
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else they are fetched at the first call
    "LITELLM_MODE": "PRODUCTION",  # else a .env file is read, and its keys are unknown to the redactor
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_OLLAMA = ("ollama/", "ollama_chat/")
_MILLION = 1_000_000

_KINDS = {"ContextWindowExceededError": "overflowed", "ContentPolicyViolationError": "refused"}
"""Classes of litellm's errors that say more than the reply: it knows the words of many providers."""

_BY_SESSION = ("azure", "azure_text", "openai")
"""Providers that litellm is known to ask by OpenAI's library; the others are found out at their first call."""

_FIXED_ARGUMENTS = {
    "timeout": 86_400.0,  # the same for all: litellm creates a client, with its own connections, for each timeout
    "max_retries": 0,
    "num_retries": 0,
    "caching": False,
    "no-log": True,
}
"""Arguments of every call: one attempt, which is limited, cached and recorded by the gateway alone."""


class LiteLLM(Backend):
    """One model of a provider, or of the server at `base_url`; the key is where litellm looks for it.

    `endpoint` is the address of the server, from `base_url` or from the environment, and None for the provider's own.
    Parameters that the model does not accept are left out when a request is sent, though they are part of the request:
    temperature and log probabilities if the model controls its own sampling, `LEFT_OUT` by provider. Raises
    `ValueError` if the address holds a password.
    """

    provider = "litellm"

    def __init__(self, model: str, base_url: str | None = None, form: SchemaMode | None = None) -> None:
        self.model = model
        address = ("base_url", base_url) if base_url else _find_variable(model, ADDRESSES, "BASE")
        self.endpoint = _endpoint(*address)
        self.key_variable, _ = _find_variable(model, KEYS, "KEY")
        self._base_url = base_url
        self._takes_handler = model.partition("/")[0] not in _BY_SESSION
        self.secrets = tuple(find_secrets(os.environ))
        self._dropped_parameters: frozenset[str] = _longest_prefix_entry(LEFT_OUT, model, frozenset())
        known: Capabilities = _longest_prefix_entry(CAPABILITIES, model, DEFAULT_CAPABILITIES)
        if FIXED_SAMPLING.search(model):
            self._dropped_parameters |= {"logprobs", "top_logprobs", "temperature", "top_p"}
            known = Capabilities(known.form)
        self.capabilities = known if form is None else replace(known, form=form)

    def list_price(self) -> Price | None:
        return price(self.model)

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply to one HTTP request, within `timeout` seconds; the first imports litellm.

        Raises `Fault`, also if the reply came by another HTTP client than ours.
        """
        arguments = {name: value for name, value in request.parameters.items() if name not in self._dropped_parameters}
        arguments |= {**request.to_chat(), "base_url": self._base_url, "drop_params": False}
        if self.model.startswith(_OLLAMA):  # else litellm asks the server for unknown models twice before each request
            library().model_cost.setdefault(self.model, {"litellm_provider": "ollama", "mode": "chat"})
        arguments |= {**_FIXED_ARGUMENTS, "model": self.model}
        call = library().acompletion  # imported before the timeout begins
        OPEN_BACKENDS.add(self)
        with _client().watch_call() as exchange:
            try:
                async with asyncio.timeout(timeout):
                    answer = await self._ask(call, arguments)
                exchange.require_reply()
                return _reply(self.model, answer, exchange.reply)
            except TimeoutError:
                raise self.fault("timeout", f"no whole reply within {timeout:g} s") from None
            except Fault as fault:
                raise self.restate(fault) from None
            except Exception as error:  # noqa: BLE001 - litellm's many transformations may raise anything
                raise self._fault(error, exchange) from None

    async def _ask(self, call: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any]) -> Any:
        """Call litellm with the kind of client that it takes for this provider."""
        if self._takes_handler:
            try:
                return await call(**arguments, client=_client().HANDLER)
            except Exception as error:
                if not _is_misuse(error, type(_client().HANDLER).__name__):
                    raise
            self._takes_handler = False
        _client().SESSION.lend()
        return await call(**arguments)

    async def close(self) -> None:
        """Release connections. They are shared by all of our backends: the last one closes them."""
        if self in OPEN_BACKENDS:
            OPEN_BACKENDS.discard(self)
            if not OPEN_BACKENDS:
                _client().SESSION.take_back()
                await _client().HTTP.close()

    def _fault(self, error: Exception, exchange: "Exchange") -> Fault:
        if exchange.fault is not None:
            return self.restate(exchange.fault)
        headers = None if exchange.response is None else exchange.response.headers
        return self.fault(_kind(error, exchange), f"{type(error).__name__}: {error}", headers)


OPEN_BACKENDS: WeakSet[LiteLLM] = WeakSet()
"""Backends that may hold connections: the last one to close closes them for all."""


def _client() -> Any:
    """Return the module with the HTTP client for litellm, which imports litellm."""
    return importlib.import_module("jurygraph.models.backends.litellm_client")


def _is_misuse(error: Exception, name: str) -> bool:
    """Return True if litellm used an object of this class for OpenAI's client, which has other methods."""
    causes = exception_chain(error)
    return any(isinstance(cause, AttributeError | TypeError) and name in str(cause) for cause in causes)


def price(model: str) -> Price | None:
    """Return the price of a model in litellm's own table, under its whole name or under that without the provider."""
    table = library().model_cost
    provider, _, name = model.partition("/")
    entry = table.get(model)
    fallback = table.get(name, {})
    if entry is None and str(fallback.get("litellm_provider")).startswith(provider):
        entry = fallback
    if entry is None or None in (costs := (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))):
        return None
    return Price(input=costs[0] * _MILLION, output=costs[1] * _MILLION)


def _find_variable(model: str, table: Mapping[str, Sequence[str]], suffix: str) -> tuple[str, str | None]:
    """Return the environment variable in which litellm finds a model's address or key, and its value if it is set."""
    is_proxied = os.environ.get("USE_LITELLM_PROXY", "").strip().lower() == "true"
    provider = "litellm_proxy" if is_proxied else model.partition("/")[0]
    names = table.get(provider, (f"{provider.upper().replace('-', '_')}_API_{suffix}",))
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), (names[0], None))


def _endpoint(source: str, address: str | None) -> str | None:
    """Return the server's address without its query, which may be secret."""
    if address is None:
        return None
    if _WITH_USER.match(address.strip()):
        raise ValueError(f"{source}: the URL contains a user or a password; leave it out, and pass the key separately")
    return re.split(r"[?#]", address.strip(), maxsplit=1)[0].rstrip("/")


@cache
def require_provider(model: str) -> None:
    """Raise `ValueError` for a model whose provider litellm does not know, with the nearest known one.

    litellm is imported only for providers that are not in `litellm.toml`.
    """
    provider = model.partition("/")[0]
    if provider in _COMMON_PROVIDERS:
        return
    litellm = library()
    custom = [entry["provider"] for entry in litellm.custom_provider_map]
    if provider in custom:
        return
    try:
        litellm.get_llm_provider(model)
    except litellm.exceptions.BadRequestError:
        known = [*sorted(_COMMON_PROVIDERS), *custom, *(getattr(one, "value", one) for one in litellm.provider_list)]
        hint = did_you_mean(provider, known) or "write provider/model, such as openai/gpt-5-mini"
        raise ValueError(f"{quote(provider)} is not a provider that litellm knows; {hint}") from None


def library() -> Any:
    """Return litellm, set up to fetch nothing, cache nothing and send no telemetry."""
    os.environ.update(_SETTINGS)
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    for name in _LOGGERS:  # they would print prompts and keys
        logging.getLogger(name).disabled = True
    return litellm


def _longest_prefix_entry(table: dict[str, Any], model: str, otherwise: Any) -> Any:
    return table.get(max((start for start in table if model.startswith(start)), key=len, default=""), otherwise)


def _kind(error: Exception, exchange: "Exchange") -> str:
    for base in type(error).__mro__:
        if base.__name__ in _KINDS:
            return _KINDS[base.__name__]
    if exchange.response is not None:
        return exchange.error_kind or "unreadable"
    if any(type(cause).__name__ == "OpenAIError" for cause in exception_chain(error)):
        return "unauthorised"  # OpenAI's client cannot be created without a key
    status = getattr(error, "status_code", None)
    return kind_of_status(status) if isinstance(status, int) else "unreadable"


def _reply(model: str, answer: Any, sent: Any) -> Reply:
    if not answer.choices:
        raise Fault("unreadable", "the reply has no choices")
    choice = answer.choices[0]
    sent_finish = _sent_finish(sent)
    if sent_finish in ABORTED:  # litellm reports these as "stop"
        raise Fault("server", f"the server broke the reply off (finish_reason {sent_finish!r})")
    special = choice.message.provider_specific_fields or {}
    finish = choice.finish_reason
    if model.startswith(_OLLAMA):  # litellm reports "stop" for each of its reasons, and for a reply that did not end
        if not isinstance(sent, dict) or sent.get("done") is not True:
            raise Fault("unreadable", "the reply does not say that it is done")
        reason = sent.get("done_reason")
        finish = (isinstance(reason, str) and reason) or finish
    text = _restore_text(choice.message.content or "", sent)
    logprobs = getattr(choice, "logprobs", None)
    return Reply(
        text=text,
        finish=finish,
        refusal=special.get("refusal") or getattr(choice.message, "refusal", None),  # the latter from 1.108 on
        served=answer.model,
        tokens_in=answer.usage.prompt_tokens or None,  # 0 if the provider did not report it
        tokens_out=answer.usage.completion_tokens or None,
        tokens=read_tokens(logprobs.model_dump() if logprobs else None, text),
    )


def _sent_finish(sent: Any) -> Any:
    """Return the finish reason in OpenAI's format, None in others."""
    try:
        return sent["choices"][0]["finish_reason"]
    except (LookupError, TypeError):
        return None


def _restore_text(text: str, sent: Any) -> str:
    """Return a text as the body has it, if it does: litellm removes what it considers thoughts, or a fence."""
    containing = [string for string in iter_strings(sent) if text in string] if text.strip() else []
    return text if text in containing or not containing else containing[0]
