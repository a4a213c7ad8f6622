"""The config of model calls: parameters, limits and prices. It holds no secret."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, field_validator

from jurygraph.schema.frozen_model import Flag, FrozenModel, Id, Positive, PositiveInt
from jurygraph.schema.task import NonNegative

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_SECRET = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|secret|password|credentials?|authorization|jwt|headers|api[_-]?base|base[_-]?url"
    r"|access[_-]?key(?:[_-]?id)?|(?:session|access|bearer|security|ad|auth|refresh)[_-]?token)",
    re.IGNORECASE,
)
_REMEDY = "set the environment variable that the provider's client reads"
_RESERVED = frozenset(
    ("model", "messages", "response_format", "stream", "stream_options", "n", "tools", "tool_choice", "functions")
)
_LIMITS = ("max_tokens", "max_completion_tokens")


def _check_variable_name(name: str) -> str:
    if not _VARIABLE.fullmatch(name):  # the message leaves the value out: it may be the key itself
        raise ValueError("is not a name of an environment variable (in capitals); name the one that holds the key")
    return name


class Price(FrozenModel):
    """Prices of a model's tokens, in US dollars per million."""

    input: NonNegative
    output: NonNegative


class OutageConfig(FrozenModel):
    """When requests wait for a model server that does not answer, and for how long.

    `after` is the number of failures in a row (no connection, no answer in time, 5xx) that count as an outage, `wait`
    the seconds for which requests wait in one outage before they fail.
    """

    after: PositiveInt = 8
    wait: Positive = 300.0


class CallsConfig(FrozenModel):
    """Settings of the calls to a model: parameters, limits and prices; times are in seconds.

    `parameters` go to the provider unchanged (temperature is 0 unless given). `form` sets how replies are held to their
    schema where the endpoint differs from the usual. `timeout` applies to each of at most `attempts`, `deadline` to
    everything that a group of responses needs. `outage` sets how long requests wait for a server that does not answer.
    `context` is the number of tokens that a gguf model reads and writes for one request. `key` names the environment
    variable with the key of an OpenAI-compatible server. `cache` keeps replies for other runs; `record` is a file for
    `replay:`.
    """

    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    max_tokens: PositiveInt = 1024
    form: Literal["native", "instructed"] | None = None
    timeout: Positive = 60.0
    deadline: Positive | None = None
    attempts: PositiveInt = 4
    outage: OutageConfig = OutageConfig()
    concurrency: PositiveInt = 32
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    context: PositiveInt = 4096
    key: Annotated[str, AfterValidator(_check_variable_name)] = "JURYGRAPH_API_KEY"
    cache: Flag = True
    record: Id | None = None
    prices: dict[Id, Price] = Field(default_factory=dict)

    @field_validator("parameters")
    @classmethod
    def _refuse_secret_and_reserved_names(cls, parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for name in _names(parameters):
            if _SECRET.fullmatch(name):
                raise ValueError(f"`{name}` is a secret or an address, and a config holds none; {_REMEDY}")
        extra = parameters.get("extra_body")
        for name in (*parameters, *(extra if isinstance(extra, dict) else ())):
            if name in _RESERVED:
                raise ValueError(f"`{name}` is for the calls themselves to set; leave it out")
        _check_limits({name: parameters[name] for name in _LIMITS if name in parameters})
        return parameters


def _names(value: JsonValue) -> Iterator[str]:
    """Yield the names of all fields, including nested ones."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def _check_limits(limits: Mapping[str, JsonValue]) -> None:
    """Check the token limits, from which the highest possible cost of a reply is computed."""
    for name, limit in limits.items():
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ValueError(f"`{name}` is not a whole number of tokens from 1 on; write one")
    if limits.get("max_tokens", 1) is None and limits.get("max_completion_tokens") is None:
        raise ValueError("`max_tokens` is null, and nothing else limits a reply; write `max_completion_tokens` too")
