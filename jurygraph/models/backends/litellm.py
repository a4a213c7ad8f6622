"""Reaches any provider that litellm knows, by its litellm id (`provider/model`)."""

import asyncio
import importlib
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import Any
from weakref import WeakSet

from pydantic_core import from_json

from jurygraph.models.asking import Form, Reply, Request, Token
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.backends.complaints import LARGEST_ERROR
from jurygraph.models.backends.http_guard import Exchange, guard_async_transport, guarded
from jurygraph.models.faults import BROKEN_OFF, BY_RESPONSE, OUT_OF_FUNDS, RETRIED, Fault, chain, kind_of_status
from jurygraph.models.prices import Price
from jurygraph.models.probability import spelled, telling
from jurygraph.models.retry_after import retry_after
from jurygraph.safety.known_secrets import found_in, process_redactor

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
"""What providers can do, by how an id begins; the longest beginning counts. litellm's own table is wrong for some."""

UNKNOWN = Capabilities("instructed")
"""What any provider can do: where some models of one can do more, this is taken for all of them."""

NO_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
LEFT_OUT = {
    "anthropic/": NO_LOGPROBS | {"seed", "n"},
    "bedrock/": NO_LOGPROBS | {"seed", "n"},
    "mistral/": NO_LOGPROBS,
    "gemini/": NO_LOGPROBS,
    "ollama/": NO_LOGPROBS,
    "ollama_chat/": NO_LOGPROBS,
}
"""Parameters that a provider does not take."""

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
"""Where litellm looks for the address of a provider's server, the first that is set; else in PROVIDER_API_BASE.

Regions, projects and versions of an API are left out: whose model it is does not depend on them.
"""

_WITH_USER = re.compile(r"(?:[\w+.-]+://)?[^/?#]*@")

SAMPLES_BY_ITSELF = re.compile(r"(?:^|[/.])(?:gpt-[5-9]|o[1-9](?:-|$)|claude-[a-z]+-(?:4-[7-9]|[5-9]|preview))")
"""Models, of whichever provider, that refuse a temperature and log probabilities."""

_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is fetched when litellm is imported
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else they are fetched at the first call
    "LITELLM_MODE": "PRODUCTION",  # else a .env file is read, and keys come from where nobody redacts them
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_LONGEST_MESSAGE = 300
_OLLAMA = ("ollama/", "ollama_chat/")
_MILLION = 1_000_000

_CODES = {"context_length_exceeded": "overflowed", "content_filter": "refused"}
"""What litellm tells by the words of a message alone, and may miss."""

_OF_LITELLM = ("server", "rejected")
"""What litellm says of its own accord, by 500 and 400, where it could not read a reply."""

LONGEST_TIMEOUT = 86_400.0
"""One for all, in seconds: litellm makes a client, with connections of its own, for each that it is given."""

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""What litellm stumbles with over a reply that is not as it should be."""


class LiteLLM(Backend):
    """One model of a provider, or of the server at `base_url`; the key is where litellm looks for it.

    `endpoint` is the address of the server, whether given or named by the environment, and None for the provider's own.
    Parameters that the model does not take are left out when they are sent, though they belong to the request:
    temperature and log probabilities where it samples by itself, `LEFT_OUT` by provider. Raises `ValueError` where the
    address holds a password.
    """

    provider = "litellm"

    def __init__(self, model: str, base_url: str | None = None, form: Form | None = None) -> None:
        self.model = model
        self.endpoint = _endpoint("base_url", base_url) if base_url else _endpoint(*_named_address(model))
        self._base_url = base_url
        self.secrets = tuple(found_in(os.environ))
        self._redactor = process_redactor(self.secrets)
        self._left_out = _of_longest_beginning(LEFT_OUT, model, frozenset())
        self._capabilities: Capabilities = _of_longest_beginning(FORMS, model, UNKNOWN)
        if SAMPLES_BY_ITSELF.search(model):
            self._left_out |= NO_LOGPROBS | {"temperature", "top_p"}
            self._capabilities = Capabilities(self._capabilities.form)
        if form is not None:
            self._capabilities = replace(self._capabilities, form=form)

    @property
    def capabilities(self) -> Capabilities:
        """As `FORMS` has them, in the form that was given."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """The reply to one HTTP request, within `timeout` seconds; the first call imports litellm. Raises `Fault`."""
        litellm = library()
        if self.model.startswith(_OLLAMA):  # what litellm does not know it asks the server, twice before each request
            litellm.model_cost.setdefault(self.model, {"litellm_provider": "ollama", "mode": "chat"})
        USING.add(self)
        with guarded(json=True) as exchange:
            try:
                async with asyncio.timeout(timeout):
                    answer = await litellm.acompletion(**self._arguments(request))
                exchange.require_reply()
                return _reply(self.model, answer, exchange.bodies[-1])
            except TimeoutError:
                raise Fault("timeout", f"{self.model}: no whole reply within {timeout:g} s") from None
            except Fault as fault:
                raise self._named(fault) from None
            except Exception as error:  # noqa: BLE001 - its many transformations raise whatever they like
                raise self._fault(error, exchange) from None

    async def close(self) -> None:
        """Let go of connections. litellm keeps them for all who use it: whoever of us is the last closes them."""
        if self in USING:
            USING.discard(self)
            if not USING:
                litellm = library()
                await litellm.close_litellm_async_clients()
                litellm.in_memory_llm_clients_cache.flush_cache()  # it would give the closed ones again

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            name: value for name, value in request.parameters.items() if name not in self._left_out
        }
        if request.form == "native" and request.answer is not None:
            schema = {"name": "verdict", "strict": True, "schema": request.answer}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        return arguments | {
            "model": self.model,
            "base_url": self._base_url,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "timeout": LONGEST_TIMEOUT,
            "max_retries": 0,
            "num_retries": 0,
            "caching": False,
            "drop_params": False,
            "no-log": True,
        }

    def _named(self, fault: Fault) -> Fault:
        return Fault(fault.kind, f"{self.model}: {self._redactor.text(str(fault))[:_LONGEST_MESSAGE]}")

    def _fault(self, error: Exception, exchange: Exchange) -> Fault:
        if exchange.fault is not None:
            return self._named(exchange.fault)
        kind = _kind(error)
        if kind not in BY_RESPONSE:
            kind = exchange.error_kind() or kind
        if kind in _OF_LITELLM and exchange.status is not None and exchange.status < 300:
            kind = "unreadable"
        headers = getattr(error, "litellm_response_headers", None) or {}
        wait = retry_after(headers, datetime.now(UTC), throttled=kind == "rate-limit")
        said = " ".join(self._redactor.text(f"{type(error).__name__}: {error}"[:LARGEST_ERROR]).split())
        return Fault(kind, f"{self.model}: {said[:_LONGEST_MESSAGE]}", wait if kind in RETRIED else None)


USING: WeakSet[LiteLLM] = WeakSet()
"""Who may hold connections: the last to close closes them for all."""


def price(model: str) -> Price | None:
    """What litellm's own table says that a model costs, under its whole name or that without the provider."""
    known = library().model_cost
    provider, _, name = model.partition("/")
    entry, plain = known.get(model), known.get(name, {})
    if entry is None and str(plain.get("litellm_provider")).startswith(provider):
        entry = plain
    if entry is None or None in (costs := (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))):
        return None
    return Price(input=costs[0] * _MILLION, output=costs[1] * _MILLION)


def _named_address(model: str) -> tuple[str, str | None]:
    """The environment variable in which litellm finds the address for a model, and the address, where there is one."""
    through = os.environ.get("USE_LITELLM_PROXY", "").strip().lower() == "true"
    provider = "litellm_proxy" if through else model.partition("/")[0]
    names = ADDRESSES.get(provider, (f"{provider.upper().replace('-', '_')}_API_BASE",))
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), (names[0], None))


def _endpoint(source: str, address: str | None) -> str | None:
    """The server that an address leads to, without a query, which may be secret."""
    if address is None:
        return None
    if _WITH_USER.match(address.strip()):
        raise ValueError(f"{source}: the URL holds a user or a password; leave it out, and give the key apart")
    return re.split(r"[?#]", address.strip(), maxsplit=1)[0].rstrip("/")


@cache
def library() -> Any:
    """litellm, set up to fetch nothing, remember nothing and tell nobody, and with its HTTP requests guarded."""
    os.environ.update(_SETTINGS)
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.DEFAULT_MAX_RETRIES = 0  # which its embeddings take where a call says 0
    transports: Any = importlib.import_module("litellm.llms.custom_httpx.aiohttp_transport")
    guard_async_transport(transports.LiteLLMAiohttpTransport)
    for name in _LOGGERS:  # they would print prompts and keys
        logging.getLogger(name).disabled = True
    return litellm


def _of_longest_beginning(table: dict[str, Any], model: str, otherwise: Any) -> Any:
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
    if not OUT_OF_FUNDS.isdisjoint(_words(error)):
        return "unauthorised"
    if not isinstance(status, int):
        return "unreadable"
    answered = getattr(error, "litellm_response_headers", None) is not None
    return kind_of_status(status) if answered or status < 500 else _kind_without_answer(error)


def _words(error: Exception) -> set[str]:
    """How the provider itself names what is wrong."""
    body = getattr(error, "body", None)
    stated = [body.get("code"), body.get("type")] if isinstance(body, dict) else []
    return {word for word in stated if isinstance(word, str)}


def _kind_without_answer(error: Exception) -> str:
    """litellm says 500 of its own accord where a connection broke, a key is missing or a reply could not be read."""
    import httpx
    import openai

    for cause in islice(chain(error), 1, None):  # litellm's own classes are made of openai's
        if isinstance(cause, httpx.TransportError | openai.APIConnectionError):
            return "connection"
        if type(cause) is openai.OpenAIError:  # its client cannot even be made without a key
            return "unauthorised"
        if isinstance(cause, UNREADABLE):
            return "unreadable"
    return "server"


def _reply(model: str, answer: Any, body: bytes) -> Reply:
    if not answer.choices:
        raise Fault("unreadable", f"{model}: the reply has no choices")
    choice = answer.choices[0]
    native = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason")
    if native in BROKEN_OFF:  # which litellm takes for a stop
        raise Fault("server", f"{model}: the server broke the reply off (finish_reason {native!r})")
    special = choice.message.provider_specific_fields or {}
    sent = from_json(body)
    text = _as_sent(choice.message.content or "", sent)
    return Reply(
        text=text,
        finish=_finish(model, sent) or choice.finish_reason,
        refusal=special.get("refusal"),
        served=answer.model,
        tokens_in=answer.usage.prompt_tokens or None,  # 0 where the provider did not tell
        tokens_out=answer.usage.completion_tokens or None,
        tokens=_tokens(getattr(getattr(choice, "logprobs", None), "content", None) or (), text),
    )


def _finish(model: str, sent: Any) -> str | None:
    """Return why Ollama ended a reply, which litellm takes for a stop. Raises `Fault` where it did not end."""
    if not model.startswith(_OLLAMA):
        return None
    if not isinstance(sent, dict) or sent.get("done") is not True:
        raise Fault("unreadable", f"{model}: the reply does not say that it is done")
    reason = sent.get("done_reason")
    return reason if isinstance(reason, str) else None


def _as_sent(text: str, sent: Any) -> str:
    """Return a text as the provider sent it: litellm cuts out of it what it takes for thoughts, or for a fence.

    A text that is nowhere in the body, such as one that was sent in parts, is left as it is.
    """
    if not text.strip():
        return text
    longer = ""
    for one in _strings(sent):
        if one == text:
            return text
        if text in one and not longer:
            longer = one
    return longer or text


def _strings(value: Any) -> Iterator[str]:
    """Return every text in a JSON value, in its order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))


def _tokens(given: Sequence[Any], text: str) -> tuple[Token, ...]:
    texts = spelled([(token.token, token.bytes) for token in given])
    places = telling(text, texts)
    return tuple(
        Token(text=texts[place], logprob=token.logprob, others=_others(token) if place in places else ())
        for place, token in enumerate(given)
    )


def _others(given: Any) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(((one.token, one.logprob) for one in given.top_logprobs), key=itemgetter(1), reverse=True))
