"""Chat models of langchain-core: the user's own as a backend, and a judge client for graphs that are evaluators."""

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from math import isfinite
from operator import attrgetter
from traceback import extract_tb
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_core import to_jsonable_python

from jurygraph.errors import ConfigError
from jurygraph.messages import locate_user_code
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import (
    CODE_FAULT_KIND,
    OUT_OF_FUNDS_CODES,
    Reply,
    Request,
    ServerErrorDetails,
    fault_kind_of_error,
    find_non_content_field,
    iterate_exception_chain,
)
from jurygraph.safety.redaction import describe_exception
from jurygraph.schema import CallsConfig, Message
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields, digest_of
from jurygraph.sources.user_modules import import_module

_ROLE_BY_MESSAGE_TYPE = {"human": "user", "ai": "assistant", "system": "system"}
_FINISH_REASON_BY_FOREIGN_REASON = {
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "refusal": "content_filter",
    "safety": "content_filter",
}
"""Finish reasons of the integrations, mapped to the words of most providers."""
_UNCOMPARED_SETTING_PATTERN = re.compile(
    r"(?i)(?:key|token|secret|passw\w*|credentials?|authorization)$|timeout|retries|stream|verbose|cache|^name$"
)
"""Names of settings that are secret or change no reply."""
_CLIENT_PATH_PATTERN = re.compile(r"site-packages[\\/](?!jurygraph|langchain_core|pydantic)")
"""A path of installed code that may be a provider's client."""

_DEFAULT_CALLS = CallsConfig()


class ChatModelBackend(Backend):
    """Any langchain-core `BaseChatModel`, configured by its owner, with its own retries switched off (`max_retries=0`).

    It receives those parameters of a request that it has fields for; a `temperature` or `max_tokens` that it was given
    itself is in the requests. Caches are not used, neither its own nor langchain's, and nothing is sent to LangSmith.
    Raises `ConfigError` if a name leads to no chat model, or if the model would retry by itself.
    """

    capabilities = EndpointCapabilities("instructed")  # the classes do not report more
    is_cached = False
    fixed_form_reason = "your own chat model gets the schema as instructions"

    def __init__(self, model: BaseChatModel | str, config: CallsConfig = _DEFAULT_CALLS) -> None:
        chat = _load_chat_model(model) if isinstance(model, str) else model
        kind = type(chat).__name__
        path = model if isinstance(model, str) else kind
        if not isinstance(chat, BaseChatModel):
            raise ConfigError(
                f"'langchain:{path}' is a {kind}, and no langchain-core chat model; name one that is set up, such as "
                "judge = ChatOpenAI(…)"
            )
        max_retries = getattr(chat, "max_retries", 0)
        if max_retries != 0:  # None means the default of its client
            raise ConfigError(
                f"'langchain:{kind}': it has max_retries={max_retries!r}, and would retry in addition to "
                "calls.attempts; make it with max_retries=0"
            )
        self.provider = f"langchain:{kind}"
        names = {name: getattr(chat, name, None) for name in ("model_name", "model")}
        self.model = _first_nonempty_text(names, *names) or kind
        self.secrets = tuple(
            value.get_secret_value() for _, value in chat if isinstance(value, SecretStr)
        )
        fields = type(chat).model_fields
        by_alias = {field.alias: name for name, field in fields.items() if field.alias}
        # a field's own name goes before an alias
        self._field_by_parameter = by_alias | {name: name for name in fields}
        self._read_own_settings(chat, config)
        # a copy, also for each request: classes that read their fields would not heed bound arguments
        self._chat = chat.model_copy(update={"cache": False})

    def _read_own_settings(self, chat: BaseChatModel, config: CallsConfig) -> None:
        """Read what identifies a model: the plain fields that the user gave it, and langchain's identifying parameters.

        What differs from one reading to the next, such as a time, identifies nothing.
        """
        # the defaults of a class are nobody's choice for a judge, and a list may be the user's log
        given_fields: JsonFields = {
            name: value
            for name, value in chat
            if name in chat.model_fields_set and isinstance(value, str | int | float)
        }
        config_names = {*config.parameters, *config.model_dump(exclude_defaults=True)}
        with suppress(Exception):  # langchain reads them, too: the first call names the mistake
            self.own_parameters = {
                name: given_fields[field]
                for name, field in self._field_by_parameter.items()
                if name in {"temperature", "max_tokens"} - config_names
                and given_fields.get(field, 0) > 0
            } or None
            first, second = (
                _to_plain_settings({**given_fields, **chat._identifying_params}) for _ in range(2)
            )
            self.own_settings = dict(sorted(first.items() & second.items()))

    async def complete(self, request: Request, timeout: float) -> Reply:
        try:
            async with asyncio.timeout(timeout):
                return _to_reply(
                    await asyncio.create_task(self._invoke(request), context=Context())
                )
        except TimeoutError:
            raise self.fault("timeout", f"no whole reply within {timeout:g} s") from None
        except Exception as error:  # noqa: BLE001 - the user's class and its client may raise anything
            kind = _fault_kind(error)
            location = locate_user_code(error) if kind == CODE_FAULT_KIND else ""
            message = f"{type(error).__name__}{location}: {error}"
            raise self.fault(kind, message, _reply_headers(error)) from None

    async def _invoke(self, request: Request) -> AIMessage:
        """Invoke the model in a context of its own, so that it inherits no callbacks of a surrounding graph."""
        from langsmith import tracing_context

        by_name = self._field_by_parameter
        settings = {
            by_name[name]: value for name, value in request.parameters.items() if name in by_name
        }
        model = self._chat.model_copy(update=settings) if settings else self._chat
        messages = request.to_chat()["messages"]
        with tracing_context(enabled=False):
            return await model.ainvoke(messages, config={"callbacks": []})


def _load_chat_model(path: str) -> Any:
    try:
        module, _, name = path.rpartition(":" if ":" in path else ".")
        return attrgetter(name)(import_module(module))
    except Exception as error:  # the user's module may raise anything, such as for a missing key
        raise ConfigError(
            f"'langchain:{path}' cannot be loaded: {describe_exception(error)}; name one as package.module.name"
        ) from error


def _to_plain_settings(settings: ReadOnlyFields) -> JsonFields:
    """Return numbers as they are, and digests of all other values; without secrets and limits."""
    plain_settings: JsonFields = {}
    for name, value in settings.items():
        if not _UNCOMPARED_SETTING_PATTERN.search(name):
            text = json.dumps(value, default=_to_plain_value, sort_keys=True)
            is_number = isinstance(value, int | float) and isfinite(value)
            plain_settings[name] = value if is_number else f"sha256:{digest_of(text)[:16]}"
    return plain_settings


def _to_plain_value(value: Any) -> Any:
    """Return what `json` does not know; a set, which each process orders otherwise, as a sorted list."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return to_jsonable_python(value, fallback=lambda item: type(item).__name__, bytes_mode="base64")


def _to_reply(message: AIMessage) -> Reply:
    metadata = message.response_metadata
    usage = message.usage_metadata
    finish = _first_nonempty_text(
        metadata, "finish_reason", "stop_reason", "done_reason"
    )  # by integration
    if finish is not None:
        finish = _FINISH_REASON_BY_FOREIGN_REASON.get(finish.lower(), finish.lower())
    text = str(message.text)
    other_fields = {**message.additional_kwargs, "tool_calls": message.tool_calls}
    return Reply(
        text=text,
        finish=finish,
        refusal=_first_nonempty_text(message.additional_kwargs, "refusal"),
        served=_first_nonempty_text(metadata, "model_name", "model"),
        tokens_in=usage["input_tokens"] if usage else None,
        tokens_out=usage["output_tokens"] if usage else None,
        other_field=None if text.strip() else find_non_content_field(other_fields),
    )


def _first_nonempty_text(values: ReadOnlyFields, *names: str) -> str | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _fault_kind(error: Exception) -> str:
    """Return the kind of fault of an error, by the error itself or else by its causes.

    One of Python's own, or of a value that pydantic refuses, as for a message, is a mistake in the code of the model's
    class. A client raises such errors, too, about a reply that it cannot read: then its code is on the way.
    """
    kinds = map(_fault_kind_by_class, iterate_exception_chain(error))
    kind = next(filter(None, kinds), "unreadable")
    is_of_python = type(error).__module__ in ("builtins", ValidationError.__module__)
    is_of_system = isinstance(error, OSError) and error.filename is None
    if kind != "unreadable" or is_of_system or not is_of_python:
        return kind
    for frame in extract_tb(error.__traceback__):
        if _CLIENT_PATH_PATTERN.search(frame.filename):
            return kind
    return CODE_FAULT_KIND


def _fault_kind_by_class(error: BaseException) -> str | None:
    """Return the kind by the error itself: the providers' clients have their own classes, with telling names."""
    code = getattr(error, "code", None)
    if code in OUT_OF_FUNDS_CODES:  # with a 429, like a rate limit
        return "unauthorised"
    names = [kind.__name__ for kind in type(error).__mro__]
    if any("Timeout" in name for name in names):
        return "timeout"
    if any("Connect" in name or name == "TransportError" for name in names):
        return "connection"
    response = getattr(error, "response", None)
    for status_source, name in ((error, "status_code"), (response, "status_code"), (error, "code")):
        status = getattr(status_source, name, None)
        if isinstance(status, int) and 400 <= status < 600:
            # openai and its kin keep the codes of the body in fields of the exception
            values = (code, getattr(error, "type", None))
            codes = frozenset(value.lower() for value in values if isinstance(value, str))
            return fault_kind_of_error(status, ServerErrorDetails(codes, str(error)))
    return None


def _reply_headers(error: Exception) -> dict[str, str]:
    """Return the headers of the reply that caused the error: openai, anthropic and httpx keep it in `response`."""
    for cause in iterate_exception_chain(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            return {str(name): str(value) for name, value in headers.items()}
    return {}


class JudgeChatModel(BaseChatModel):
    """Chat through a `JudgeClient`: cached, within the budget, retried, recorded, and listed with the verdict.

    Bound arguments, as in `model.bind(temperature=0.7)`, are parameters of the request, besides `sample`, which
    distinguishes equal requests, and `purpose`, by default the graph's node. Synchronous nodes can use `invoke`. Raises
    `Fault` for a missing, cut-off or refused reply, ValueError for messages that are not text.
    """

    client: Any = Field(exclude=True, repr=False)
    cache: bool | None = False  # langchain's own

    @property
    def _llm_type(self) -> str:
        return "jurygraph"

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any
    ) -> ChatResult:
        if stop:
            settings["stop"] = stop
        purpose = settings.pop("purpose", None) or _langgraph_node_name(
            run_manager and run_manager.metadata
        )
        request = self.client.chat_request(_to_messages(messages), **settings)
        reply, call = await self.client.ask(request, purpose=purpose)
        metadata = {
            "model_name": reply.served or call.model,
            "finish_reason": reply.finish,
            "call": call.id,
        }
        message = AIMessage(reply.text, response_metadata=metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any
    ) -> Any:
        return self._run_in_client_loop(self._agenerate(messages, stop, run_manager, **settings))

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **settings: Any
    ) -> Runnable[Any, Any]:
        """Return a Runnable that gives the reply as this pydantic model; a malformed reply is repaired once."""
        if include_raw or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
            raise ValueError(
                "a structured reply is a pydantic model: give its class, and no include_raw"
            )
        purpose = settings.pop("purpose", None)

        async def judge(prompt: Any, config: RunnableConfig) -> Any:
            messages = _to_messages(self._convert_input(prompt).to_messages())
            request = self.client.chat_request(messages, schema, **settings)
            node = _langgraph_node_name(config.get("metadata"))
            parsed = await self.client.judge(request, schema, purpose=purpose or node)
            return parsed.value

        return RunnableLambda(
            lambda prompt, config: self._run_in_client_loop(judge(prompt, config)),
            judge,
            name="judge",
        )

    def _run_in_client_loop(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """Return a result of the client's event loop in another thread."""
        if asyncio._get_running_loop() is self.client.loop:
            answer.close()
            raise RuntimeError(
                "`invoke` would block the event loop that sends the request: await `ainvoke` instead"
            )
        return asyncio.run_coroutine_threadsafe(answer, self.client.loop).result()


def _langgraph_node_name(metadata: Any) -> str | None:
    return (metadata or {}).get("langgraph_node", "")[:64] or None


def _to_messages(messages: Sequence[BaseMessage]) -> list[Message]:
    for message in messages:
        if message.type not in _ROLE_BY_MESSAGE_TYPE or not isinstance(message.content, str):
            raise ValueError(
                f"the config's model reads texts of system, user and assistant, not {message!r:.200}"
            )
    return [
        Message.model_validate({"role": _ROLE_BY_MESSAGE_TYPE[m.type], "content": m.content})
        for m in messages
    ]
