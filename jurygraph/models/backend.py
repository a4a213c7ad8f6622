"""The interface of a backend, by which the gateway reaches a model."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from jurygraph.messages import shorten
from jurygraph.models.limits import retry_after
from jurygraph.models.request import (
    ACCESS_FAULT_KINDS,
    MAX_ERROR_BODY_BYTES,
    RETRYABLE_FAULT_KINDS,
    Fault,
    PlannedLookup,
    Reply,
    Request,
    SchemaMode,
    StoredLookup,
)
from jurygraph.safety.gates import FENCE_MARK_LENGTH
from jurygraph.safety.redaction import make_process_redactor
from jurygraph.schema import Price
from jurygraph.schema.frozen_model import JsonFields

_MAX_MESSAGE_LENGTH = 300
_PATTERN_BY_SETTING = {
    "calls.parameters: {max_tokens: null, max_completion_tokens: 1024}": "max_completion_tokens",
    "calls.parameters: {temperature: null}": "temperature",
    "calls.parameters: {logprobs: false}": "logprobs",
    "calls.form: instructed": "json_schema|response_format",
    "calls.tools: instructed": r"(?i:\btools?\b|tool[_ -](?:choice|call|use)|function call)",
    "calls.system: joined": (
        r"(?i:system role|\bsystem (?:message|prompt)|does not support 'system'|got system\b"
        r"|role[: ]+['\"]?system\b|invalid value: 'system'|only user and assistant roles"
        "|developer instruction|roles must alternate)"  # Google of Gemma, old Mistral
    ),
}
"""What a server's message says that rejects a field or a role of the request, by the setting to change."""


@dataclass(frozen=True, slots=True)
class EndpointCapabilities:
    """The capabilities of an endpoint. `form` is the most reliable way in which it makes a reply match a schema;
    `instructed` if it has none, so that the judge client describes the schema in the prompt.

    `logprobs`: it returns log probabilities of the tokens of a reply, with up to `top_logprobs` alternatives each.
    `tools`: it takes tools, and calls them; else the judge client describes them in the prompt.
    """

    form: SchemaMode
    logprobs: bool = False
    top_logprobs: int = 20
    tools: bool = False


class Backend(ABC):
    """Reach one model, with one attempt per call: retries, rate limits and caching are left to the gateway.

    `provider` names the backend (`litellm`, `openai-compatible`, `gguf`), `endpoint` the server or a digest of what
    answers, `model` the model as the server names it; together they identify what answers a request. `secrets` are
    values that must never be written anywhere. `key_variable` is the environment variable with the key, if it is known.

    What is special about a backend is said here: it `costs_nothing`; its replies are not worth a cache, or no request
    contains all settings that they depend on (`is_cached` is false); it gives the replies of an earlier run
    (`is_recording`); `calls.form` cannot be set, because of `fixed_form_reason`; the marks of its fences have
    `mark_length` digits, which no request's digest depends on; no tool is called for it, only recorded calls count
    (`can_run_tools` is false), or those that promise the same result (`can_repeat_tools`).
    """

    costs_nothing: ClassVar[bool] = False
    is_cached: ClassVar[bool] = True
    is_recording: ClassVar[bool] = False
    can_run_tools: ClassVar[bool] = True
    can_repeat_tools: ClassVar[bool] = False
    fixed_form_reason: ClassVar[str] = ""
    mark_length: ClassVar[int] = FENCE_MARK_LENGTH

    provider: str
    endpoint: str | None = None
    model: str
    capabilities: EndpointCapabilities
    secrets: Sequence[str] = ()
    key_variable: str | None = None
    slots: int | None = None
    """The number of requests that an engine in this process works on at once; None for a server, which may be away."""

    notes: Sequence[str] = ()
    """What a user should know about it."""

    own_settings: JsonFields | None = None
    """What identifies an object of the user's besides its model name, in plain values; None if requests have it all."""

    own_parameters: JsonFields | None = None
    """Those parameters of requests that it was given and the config does not replace."""

    @abstractmethod
    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply, within `timeout` seconds. Raises `Fault`, and no other exception but cancellation."""

    def find_lookup(self, key: str) -> StoredLookup | None:
        """Return the recorded call of a tool of this id; None for a model that is no recording."""
        return None

    async def check_lookup(
        self, stored_lookup: StoredLookup, planned_lookup: PlannedLookup
    ) -> None:
        """Compare a stored call of a tool with `planned_lookup`, and with one made now, where a run is verified."""

    def find_repair(self, request: Request, repair: Request) -> Request:
        """Return `repair`, or what repaired the reply to `request` in other words in a run that is verified."""
        return repair

    async def close(self) -> None:
        """Release connections; may be called more than once, and the backend may be used again afterwards."""

    def find_list_price(self) -> Price | None:
        return None

    @property
    def label(self) -> str:
        """The name of the model in messages."""
        return self.model

    def fault(
        self,
        kind: str,
        problem: str,
        headers: Mapping[str, str] | None = None,
        *,
        is_unsent: bool = False,
        code: str | None = None,
    ) -> Fault:
        """Return a fault that names the model, on one line without secrets; `headers` may give the time of a retry."""
        redactor = make_process_redactor(self.secrets)
        whole_message = " ".join(redactor.redact_text(problem[:MAX_ERROR_BODY_BYTES]).split())
        message = whole_message[:_MAX_MESSAGE_LENGTH]
        settings = [
            setting
            for setting, pattern in _PATTERN_BY_SETTING.items()
            if re.search(pattern, message)
        ]
        if kind == "server" and message == whole_message and settings:
            # some servers fail at a field that they do not know; a long message may repeat the request
            kind = "rejected"
        wait = None
        if kind in RETRYABLE_FAULT_KINDS:
            wait = retry_after(headers or {}, datetime.now(UTC))
        if kind in ACCESS_FAULT_KINDS:
            # what is missing comes first, before a provider's words, which may be of another matter
            message = f"{self._access_advice(kind)}; {shorten(message, _MAX_MESSAGE_LENGTH // 2)}"
        if kind != "rejected":
            settings = []
        message += "".join(f"; try {setting} in the config" for setting in settings)
        return Fault(
            kind,
            f"{self.label}: {message}",
            wait,
            is_unsent=is_unsent,
            code=code,
            setting=next(iter(settings), None),
        )

    def to_model_fault(self, fault: Fault) -> Fault:
        """Return a fault of the HTTP client as one that names the model."""
        return self.fault(fault.kind, str(fault), is_unsent=fault.is_unsent)

    def _access_advice(self, kind: str) -> str:
        server = "the server" if self.endpoint == self.label else self.endpoint or "the provider"
        key = self.key_variable or "the key"
        if self.key_variable is not None and not os.environ.get(self.key_variable):
            key += ", which is not set"
        if kind == "unauthorised":
            return f"{server} does not accept the key for model {self.model!r}: check {key}"
        return f"{server} does not offer model {self.model!r} to this key: check the name and {key}"
