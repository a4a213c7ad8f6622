"""Asks a langchain-core chat model of one's own: an instance, or the name of one (`package.module.name`)."""

import asyncio
import pkgutil
from collections.abc import Mapping
from contextvars import Context
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from jurygraph.errors import ConfigError
from jurygraph.models.asking import Reply, Request
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.backends.http_guard import guarded
from jurygraph.models.faults import RETRIED, Fault, chain, kind_of_status
from jurygraph.models.retry_after import retry_after
from jurygraph.safety.known_secrets import process_redactor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

_FINISHES = ("finish_reason", "stop_reason", "done_reason")
"""Under which names the integrations tell why a reply ended."""

_FINISH = {
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "refusal": "content_filter",
    "safety": "content_filter",
}
"""What that is in the words of most."""

_STATUSES = range(400, 600)
_LONGEST_MESSAGE = 300


class ChatModel(Backend):
    """Any langchain-core `BaseChatModel`, set up by its owner, with its own retries switched off (`max_retries=0`).

    Of a request's parameters it gets those that it has fields for, such as `temperature` and `max_tokens`. Its cache is
    not used, neither it nor langchain's, and nothing is told to LangSmith. Raises `ConfigError` where a name leads to
    no chat model, or the model would retry by itself.
    """

    def __init__(self, model: "BaseChatModel | str") -> None:
        given = _named(model) if isinstance(model, str) else model
        kind = type(given).__name__
        retries = getattr(given, "max_retries", 0)
        if retries != 0:  # None is its client's own number
            wrong = f"it has max_retries={retries!r}, and would retry beside the retries here (calls.attempts)"
            raise ConfigError(f"model 'langchain:{kind}': {wrong}; make it with max_retries=0")
        self.provider = f"langchain:{kind}"
        self.model = _known_as(given) or kind
        self.secrets = tuple(value.get_secret_value() for _, value in given if isinstance(value, SecretStr))
        self._redactor = process_redactor(self.secrets)
        self._chat = given.model_copy(update={"cache": False})

    @property
    def capabilities(self) -> Capabilities:
        """What any chat model can do; the classes do not say whether they can do more."""
        return Capabilities("instructed")

    async def complete(self, request: Request, timeout: float) -> Reply:
        """The reply, within `timeout` seconds. Raises `Fault`."""
        try:
            async with asyncio.timeout(timeout):
                return _reply(await asyncio.create_task(self._told(request), context=Context()))
        except TimeoutError:
            raise Fault("timeout", f"{self.model}: no whole reply within {timeout:g} s") from None
        except Fault as fault:
            raise Fault(fault.kind, f"{self.model}: {self._redactor.text(str(fault))[:_LONGEST_MESSAGE]}") from None
        except Exception as error:  # noqa: BLE001 - the user's class, and whatever client it is made of
            raise self._fault(error) from None

    async def _told(self, request: Request) -> "AIMessage":
        """In a context of its own it inherits the callbacks of no graph that asks."""
        from langsmith import tracing_context

        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        with tracing_context(enabled=False), guarded() as exchange:
            try:
                answer = await self._with(request.parameters).ainvoke(messages, config={"callbacks": []})
            except Exception:
                exchange.require_no_fault()
                if exchange.error_kind() == "unauthorised":  # no funds, which a client may take for a rate limit
                    raise Fault("unauthorised", "the provider refuses the key, or has no money for it") from None
                raise
            exchange.require_no_fault()
            return answer

    def _fault(self, error: Exception) -> Fault:
        kind = _kind(error)
        wait = retry_after(_headers(error), datetime.now(UTC), throttled=kind == "rate-limit")
        said = " ".join(self._redactor.text(f"{type(error).__name__}: {error}").split())
        return Fault(kind, f"{self.model}: {said[:_LONGEST_MESSAGE]}", wait if kind in RETRIED else None)

    def _with(self, parameters: Mapping[str, Any]) -> "BaseChatModel":
        fields = type(self._chat).model_fields
        by_name = {field.alias: name for name, field in fields.items() if field.alias} | {name: name for name in fields}
        known = {by_name[name]: value for name, value in parameters.items() if name in by_name}
        return self._chat.model_copy(update=known) if known else self._chat


def _named(path: str) -> "BaseChatModel":
    from langchain_core.language_models import BaseChatModel

    try:
        found = pkgutil.resolve_name(path)
    except Exception as error:  # the user's module, which may want a key or whatever else
        wrong = process_redactor().text(f"{type(error).__name__}: {error}")
        raise ConfigError(
            f"model 'langchain:{path}' cannot be had: {wrong}; name one as package.module.name"
        ) from error
    if not isinstance(found, BaseChatModel):
        wrong = f"is a {type(found).__name__}, and no langchain-core chat model"
        raise ConfigError(f"model 'langchain:{path}' {wrong}; name one that is set up, such as judge = ChatOpenAI(…)")
    return found


def _known_as(model: Any) -> str | None:
    names = (getattr(model, name, None) for name in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), None)


def _reply(message: "AIMessage") -> Reply:
    told, usage = message.response_metadata, message.usage_metadata
    finish = _first_text(told, *_FINISHES)
    return Reply(
        text=str(message.text),
        finish=None if finish is None else _FINISH.get(finish.lower(), finish.lower()),
        refusal=_first_text(message.additional_kwargs, "refusal"),
        served=_first_text(told, "model_name", "model"),
        tokens_in=usage["input_tokens"] if usage else None,
        tokens_out=usage["output_tokens"] if usage else None,
    )


def _first_text(values: Mapping[str, Any], *names: str) -> str | None:
    return next((values[name] for name in names if isinstance(values.get(name), str) and values[name]), None)


def _kind(error: Exception) -> str:
    """By what the error says, or else one that led to it."""
    return next((kind for one in chain(error) if (kind := _own_kind(one)) is not None), "unreadable")


def _own_kind(error: BaseException) -> str | None:
    """By what the error says of itself: the clients of the providers have classes of their own, whose names tell."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if any("Timeout" in name for name in names):
        return "timeout"
    if any("Connect" in name or name == "TransportError" for name in names):
        return "connection"
    status = _status(error)
    return None if status is None else kind_of_status(status)


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    said = (getattr(error, "status_code", None), getattr(response, "status_code", None), getattr(error, "code", None))
    return next((int(status) for status in said if isinstance(status, int) and status in _STATUSES), None)


def _headers(error: Exception) -> dict[str, str]:
    """Those of the reply that the error is about: openai, anthropic and httpx keep it in `response`."""
    kept = (getattr(getattr(one, "response", None), "headers", None) for one in chain(error))
    headers = next((headers for headers in kept if isinstance(headers, Mapping)), {})
    return {str(name): str(value) for name, value in headers.items()}
