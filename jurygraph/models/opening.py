"""From the config's `model` to a gateway.

none                                    nobody: questions for a model are not asked
openai-compatible:URL#model             any server that speaks OpenAI's protocol (vLLM, SGLang, llama.cpp, …)
gguf:PATH                               a GGUF file, run in process by llama.cpp (extra `local`)
replay:PATH                             calls that were recorded
langchain:package.module.name           a langchain-core chat model of one's own
provider/model                          any provider that litellm knows
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from jurygraph.errors import ConfigError, InputError
from jurygraph.models.backend import Backend
from jurygraph.models.budget import Budget
from jurygraph.models.cache import Cache, default_folder
from jurygraph.models.circuit_breaker import CircuitBreaker
from jurygraph.models.gateway import Gateway, Limits
from jurygraph.models.limiter import Limiter
from jurygraph.models.prices import Price, Prices
from jurygraph.models.recording import Recorder
from jurygraph.models.retries import RetryPolicy
from jurygraph.models.sink import CallSink
from jurygraph.safety.known_secrets import process_redactor
from jurygraph.schema import CallsConfig

FREE = Price(input=0.0, output=0.0)
_FREE_OF_CHARGE = ("gguf", "replay")
_UNCACHED = ("gguf", "replay", "langchain")
"""Those that cost nothing; and a model of one's own, whose settings no request knows."""

_SLOTS = 4
"""Requests that a gguf model works on side by side, at most: each takes memory for its context."""

_FORMLESS = {"gguf": "a gguf model is held to a grammar", "langchain": "a chat model of one's own to words alone"}
_OF_A_PROVIDER = re.compile(r"[\w-]+/\S+")


def open_gateway(
    model: str,
    config: CallsConfig,
    *,
    sink: CallSink | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
) -> Gateway:
    """The gateway to a model. Nothing is sent yet. Raises `ConfigError` where it cannot be what the config says."""
    backend = open_backend(model, config)
    redactor = process_redactor(backend.secrets)
    if backend.endpoint is not None and redactor.finds(backend.endpoint):
        raise ConfigError("model: the address of its server holds a secret, which every call would keep; give it apart")
    kind = model.partition(":")[0]
    price = FREE if kind in _FREE_OF_CHARGE else Prices(config.prices, _TABLES.get(backend.provider)).of(backend.model)
    if max_cost is not None and price is None:
        hint = f"state it in calls.prices, such as {{{backend.model}: {{input: 0.25, output: 2}}}}, or use --max-calls"
        raise ConfigError(f"model: the price of {backend.model!r} is not known, so --max-cost cannot be kept; {hint}")
    return Gateway(
        backend,
        Limiter(config.concurrency, config.requests_per_minute, config.tokens_per_minute),
        Limits(config.timeout, config.deadline, config.max_tokens, RetryPolicy(config.attempts)),
        price=price,
        breaker=CircuitBreaker(config.outage.after, config.outage.wait),
        budget=Budget(max_cost, max_calls),
        cache=Cache(default_folder()) if config.cache and kind not in _UNCACHED else None,
        sink=sink,
        recorder=None if config.record is None else Recorder(Path(config.record), redactor),
        redactor=redactor,
    )


def open_backend(model: str, config: CallsConfig) -> Backend:
    """The backend that a config's `model` names. Raises `ConfigError`."""
    kind, _, rest = model.partition(":")
    try:
        if config.form is not None and kind in _FORMLESS:
            raise ConfigError(f"calls.form: {_FORMLESS[kind]}, so leave the form out")
        if kind in _BACKENDS:
            return _BACKENDS[kind](rest, config)
        if _OF_A_PROVIDER.fullmatch(model):
            from jurygraph.models.backends.litellm import LiteLLM

            return LiteLLM(model, form=config.form)
    except (ValueError, InputError) as error:
        raise ConfigError(f"model: {error}") from error
    shown = model.partition("://")[0]  # a key may stand in what follows
    known = "none, openai-compatible:URL#model, gguf:PATH, replay:PATH, langchain:package.module.name or provider/model"
    raise ConfigError(f"model: {shown!r} names nobody; write {known}")


def _openai_compatible(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.openai_compatible import OpenAICompatible

    url, _, model = rest.partition("#")
    if not url or not model:
        raise ValueError("openai-compatible: is followed by URL#model, such as http://127.0.0.1:8000/v1#qwen")
    key = os.environ.get(config.key) or None
    return OpenAICompatible(url, model, key, form=config.form or "native", connections=config.concurrency)


def _gguf(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.gguf import Gguf

    return Gguf(Path(rest), slots=min(config.concurrency, _SLOTS), context=config.context)


def _replay(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.replay import Replay

    path, _, which = rest.partition("#")
    return Replay(Path(path), which or None)


def _langchain(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.chat_model import ChatModel

    return ChatModel(rest)


_BACKENDS: Mapping[str, Callable[[str, CallsConfig], Backend]] = {
    "openai-compatible": _openai_compatible,
    "gguf": _gguf,
    "replay": _replay,
    "langchain": _langchain,
}


def _litellm_price(model: str) -> Price | None:
    from jurygraph.models.backends.litellm import price

    return price(model)


_TABLES: Mapping[str, Callable[[str], Price | None]] = {"litellm": _litellm_price}
"""What is known of prices that the config does not state, by provider."""
