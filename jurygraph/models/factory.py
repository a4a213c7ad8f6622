"""Open a gateway for the config's `model`, and for each of its `models`: `BACKEND_KIND_BY_PREFIX` has the forms of
both.

A model may be a file in an installed package, which is found without running its code.
"""

import logging
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import did_you_mean, quote, suggest_known_name
from jurygraph.models.backend import Backend
from jurygraph.models.cache import Cache, default_cache_folder
from jurygraph.models.gateway import Gateway, Gateways
from jurygraph.models.limits import Budget, Price, RequestLimiter, find_user_price
from jurygraph.models.recording import CallRecorder, Replay
from jurygraph.safety.redaction import make_process_redactor
from jurygraph.schema import CallsConfig, Config, canonical_json
from jurygraph.sources.files import sha256_of_file

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


log = logging.getLogger(__name__)

_FREE_PRICE = Price(input=0.0, output=0.0)
_UNLIMITED_FAILURE_COUNT = sys.maxsize  # an engine in this process may be slow, and is never away
# most requests that a gguf model processes in parallel: each needs memory for its context
_MAX_GGUF_PARALLEL_REQUESTS = 4

_BARE_MODEL_NAME_PATTERN = re.compile(r"\w[\w.-]*")
PROVIDER_MODEL_PATTERN = re.compile(r"[\w-]+/\S+")


def open_gateway(
    model: "str | Backend | BaseChatModel", config: CallsConfig, budget: Budget | None = None
) -> Gateway:
    """Open the gateway to a model, without sending anything. Raises `ConfigError` if the config does not allow it.

    Replies of a model that is an object are not cached: its class decides what identifies it, and a run that compares
    too little of it can be begun again, where a cache would go on to answer for another model.
    """
    budget = budget or Budget()
    backend = open_backend(model, config)
    redactor = make_process_redactor(backend.secrets)
    if backend.endpoint is not None and redactor.has_secret_in(backend.endpoint):
        raise ConfigError(
            "model: the server's address contains a secret, which calls would store; pass it separately"
        )
    if config.form is not None and backend.fixed_form_reason:
        raise ConfigError(f"calls.form: {backend.fixed_form_reason}, so leave the form out")
    if config.tools is not None and not backend.is_recording:
        has_tools = config.tools == "native"
        if has_tools and backend.fixed_form_reason:
            raise ConfigError("calls.tools: this model takes no tools, so leave it out")
        backend.capabilities = replace(backend.capabilities, tools=has_tools)
    price: Price | None = _FREE_PRICE
    if not backend.costs_nothing:
        price = find_user_price(backend.model, config.prices) or backend.find_list_price()
    if budget.max_cost is not None and price is None:
        raise ConfigError(
            f"model: the price of {backend.model!r} is not known, so `max_cost` (--max-cost) cannot be kept; "
            f"state it in calls.prices, such as {{{backend.model}: {{input: 0.25, output: 2}}}}, or use `max_calls` "
            "(--max-calls)"
        )
    if price is None and config.prices:
        hint = suggest_known_name(backend.model, config.prices)
        log.warning("calls.prices: has no %s, which is a judge; %s", quote(backend.model), hint)
    outage_failure_count = config.outage.after
    if backend.slots or config.outage.wait == 0.0:
        outage_failure_count = _UNLIMITED_FAILURE_COUNT
    elif config.attempts > 1:
        # no question uses up its attempts before an outage has begun; one that has a single attempt fails at once
        outage_failure_count = min(outage_failure_count, config.attempts)
    limiter = RequestLimiter(
        backend.slots or config.concurrency,
        config.requests_per_minute,
        config.tokens_per_minute,
        after=outage_failure_count,
        wait=config.outage.wait,
        first=config.outage.first,
        server=f"the model server of {quote(backend.model)}",
    )
    is_cached = config.cache and isinstance(model, str) and backend.is_cached
    return Gateway(
        backend,
        limiter,
        config,
        price=price,
        budget=budget,
        cache=Cache(default_cache_folder()) if is_cached else None,
        recorder=CallRecorder(Path(config.record), redactor) if config.record else None,
        redactor=redactor,
    )


def open_gateways(
    config: Config,
    *,
    default: Gateway | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
) -> Gateways:
    """Open the gateways to all models that are asked, without sending anything; `default` replaces that to `model`.

    Raises `ConfigError` if the config does not allow it, also for two models whose requests could not be told apart.
    """
    budget = Budget(max_cost, max_calls) if default is None else default.budget
    gateways: dict[str | None, Gateway] = {}
    if default is not None:
        gateways[None] = default
    elif config.model != "none":
        model = config.model if config.target is None else config.target
        gateways[None] = open_gateway(model, config.calls, budget)
    for name in filter(None, config.judges):
        use = config.models[name]
        model = use.model if use.target is None else use.target
        try:
            gateways[name] = open_gateway(model, config.call_settings_of(name), budget)
        except ConfigError as error:
            raise ConfigError(f"models.{name}: {str(error).removeprefix('model: ')}") from error
    _refuse_equal_models(gateways)
    return Gateways(gateways)


def _refuse_equal_models(gateways: Mapping[str | None, Gateway]) -> None:
    """Refuse two judges that would send equal requests: one reply would count as two opinions."""
    judges: dict[Any, str] = {}
    for name, gateway in gateways.items():
        if name is None:  # also the model of a judge: it gives no second opinion
            continue
        parameters = canonical_json(gateway.settings.parameters)
        request_settings_key = gateway.identity, parameters, gateway.settings.max_tokens
        if request_settings_key in judges:
            raise ConfigError(
                f"models.{name}: is the same model as models.{judges[request_settings_key]}, with the same parameters; "
                "name another model or `calls.parameters`; a model given as an object needs a `model` name of its own"
            )
        judges[request_settings_key] = name


def open_backend(model: "str | Backend | BaseChatModel", config: CallsConfig) -> Backend:
    """Return the backend of a config's `model`. Raises `ConfigError`."""
    if isinstance(model, Backend):
        return model
    if isinstance(model, type):
        raise ConfigError(
            f"model: is the class {model.__name__}; give an instance, {model.__name__}(…)"
        )
    name = model if isinstance(model, str) else "langchain:"
    kind, _, rest = name.partition(":")
    try:
        if kind in BACKEND_KIND_BY_PREFIX:
            return BACKEND_KIND_BY_PREFIX[kind].open(
                rest if isinstance(model, str) else model, config
            )
        if PROVIDER_MODEL_PATTERN.fullmatch(name):
            return _LITELLM_BACKEND_KIND.open(name, config)
    except (ValueError, InputError, ConfigError) as error:
        raise ConfigError(f"model: {error}") from error
    prefix = name.partition("://")[0]  # the rest may contain a key
    suggestion = did_you_mean(kind, ("none", *BACKEND_KIND_BY_PREFIX)) if ":" in name else None
    hint = f"{suggestion} write" if suggestion else "write"
    if kind in ("http", "https"):
        hint += f" openai-compatible:{kind}://…/v1#NAME, or"
    elif _BARE_MODEL_NAME_PATTERN.fullmatch(name):
        hint += f" provider/name, as openai/{name} for one of OpenAI; or"
    raise ConfigError(f"model: {prefix!r} is not a model; {hint} {list_model_forms('or')}")


def list_model_forms(joining_word: str) -> str:
    """Return the forms of a config's `model` in a row, with a word before the last."""
    prefixed_forms_text = ", ".join(kind.form for kind in BACKEND_KIND_BY_PREFIX.values())
    return f"none, {prefixed_forms_text} {joining_word} {_LITELLM_BACKEND_KIND.form}"


def _open_server_backend(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend

    url, model = split_model_url(rest, "qwen")
    key = os.environ.get(config.key) or None
    form = config.form or "native"
    return OpenAICompatibleBackend(
        url, model, key, form, connections=config.concurrency, key_variable=config.key
    )


def _open_gguf_backend(rest: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.gguf import GgufBackend, available_cores

    file = (
        find_package_file(rest.removeprefix(PACKAGED_MODEL_PREFIX))
        if rest.startswith(PACKAGED_MODEL_PREFIX)
        else Path(rest)
    )
    return GgufBackend(
        file,
        slots=min(config.concurrency, _MAX_GGUF_PARALLEL_REQUESTS, available_cores()),
        context=config.context,
    )


def _open_replay_backend(rest: str, config: CallsConfig) -> Backend:
    path, _, model_name = rest.partition("#")
    return Replay(Path(path), model_name or None, config.max_tokens)


def _open_chat_model_backend(model: "str | BaseChatModel", config: CallsConfig) -> Backend:
    from jurygraph.models.backends.chat_model import ChatModelBackend

    return ChatModelBackend(model, config)


def _open_litellm_backend(name: str, config: CallsConfig) -> Backend:
    from jurygraph.models.backends.litellm import LiteLLMBackend, require_provider

    require_provider(name)
    return LiteLLMBackend(name, form=config.form)


class BackendKind(NamedTuple):
    """A kind of `model`: the form in which a config writes it, and what opens it, given what follows the kind."""

    form: str
    open: Callable[[Any, CallsConfig], Backend]


BACKEND_KIND_BY_PREFIX: Mapping[str, BackendKind] = {
    "openai-compatible": BackendKind("openai-compatible:URL#model", _open_server_backend),
    "gguf": BackendKind("gguf:PATH", _open_gguf_backend),
    "replay": BackendKind("replay:PATH", _open_replay_backend),
    "langchain": BackendKind("langchain:package.module.name", _open_chat_model_backend),
}
"""The kinds of models, by what is before the colon."""
_LITELLM_BACKEND_KIND = BackendKind("provider/model", _open_litellm_backend)


def split_model_url(rest: str, example: str) -> tuple[str, str]:
    """Split `URL#model`. Raises `ValueError`, with an example of a model, if one of them is missing."""
    url, _, model = rest.partition("#")
    if not url or not model:
        raise ValueError(
            f"openai-compatible: is followed by URL#model, such as http://127.0.0.1:8000/v1#{example}"
        )
    return url, model


PACKAGED_MODEL_PREFIX = "package:"


def find_package_file(package_file: str) -> Path:
    """Return the file of `NAME/FILE` in an installed package, whose code is not run. Raises `ConfigError`."""
    name, _, inner = package_file.partition("/")
    folder = _find_package_folder(name)
    path = folder / inner
    if not inner or not path.is_file():
        files = [file for file in folder.rglob("*") if file.is_file()]
        names = sorted(file.relative_to(folder).as_posix() for file in files)
        hint = did_you_mean(inner, names) or f"it has {', '.join(names[:10])}"
        raise ConfigError(f"package:{package_file}: package {name!r} has no such file; {hint}")
    return path


def find_model_folder(name: str) -> Path:
    """Return the folder of the model in a package: the package's own, or its zip file, unpacked to the cache once.

    Raises `ConfigError` where there is neither, or several zip files.
    """
    folder = _find_package_folder(name)
    if (folder / "modules.json").is_file():
        return folder
    zip_paths = sorted(folder.glob("*.zip"))
    if len(zip_paths) != 1:
        raise ConfigError(
            f"package:{name}: package {name!r} holds no model: it has no modules.json, and {len(zip_paths)} zip files; "
            "name a package with a sentence-transformers model"
        )
    digest = sha256_of_file(zip_paths[0])
    unpacked_folder = default_cache_folder().parent / "models" / f"{name}-{digest[:16]}"
    if not unpacked_folder.is_dir():
        _unpack_archive(zip_paths[0], unpacked_folder)
    return unpacked_folder


def _find_package_folder(name: str) -> Path:
    spec = find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"package:{name}: no package is imported as {name!r}; install it, and write its import name, with "
            "underscores"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _unpack_archive(archive: Path, folder: Path) -> None:
    """Unpack an archive to a folder, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="unpacking-", dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(partial)  # leaves out absolute paths and `..`
        if not folder.is_dir():
            partial.rename(folder)
    except (zipfile.BadZipFile, OSError) as error:
        raise ConfigError(
            f"{archive}: cannot be unpacked ({error}); install its package again"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
