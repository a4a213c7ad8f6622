"""Tools that a judge may call while it judges, and the record of each call of one."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    FrozenModel,
    Id,
    JsonObject,
    Number,
    StrictBool,
)

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
"""A name that every provider accepts for a function."""
LookupOutcome = Literal[
    "ok",
    "cut",
    "withheld",
    "repeated",
    "unknown-tool",
    "invalid-arguments",
    "refused",
    "error",
    "time-limit",
    "not-called",
]
"""What became of a call of a tool: its result, whole or `cut` at its limit, or why there is none.

A result that addresses whoever judges is `withheld`, as the gate of that name stops a response. A call that was made
before in the same conversation is `repeated`, and not made again. There is none for a tool
that is not there (`unknown-tool`), arguments that are not those of its schema
(`invalid-arguments`), a call that the tool `refused` with a message, one that raised an exception (`error`), one that
ran past its `time-limit`, and one that was `not-called`, as too many earlier ones, in the whole run, still hang.
"""

TOOL_SOURCE_PREFIX = "tool:"
"""What the source of evidence begins with that quotes a result: `tool:3` is the third of a verdict's lookups."""


class ToolSpec(FrozenModel):
    """A tool as a plan records it: `parameters` is the JSON schema of its arguments."""

    name: ToolName
    version: str
    description: str
    parameters: JsonObject = EMPTY_OBJECT
    deterministic: StrictBool = True


class Lookup(FrozenModel):
    """A call of a tool, made for a verdict or material. Its arguments and its result are stored as texts.

    `id` is the digest of the request whose reply led to it, its index among the calls of that reply, and the tool.
    `call` is that call of the model. A `tool` that is not there has no name. `result` is the SHA-256 of the result's
    text, as it was shown, and `length` the number of its characters before it was cut. `duration` is in seconds, and in
    no digest.
    """

    id: Id
    call: Id
    tool: str
    version: str = ""
    deterministic: StrictBool = True
    outcome: LookupOutcome = "ok"
    result: str
    length: Count
    duration: Number | None = None

    @property
    def can_be_repeated(self) -> bool:
        """True if a verification makes the call again: it was made, and the tool promises the same result."""
        return self.deterministic and self.outcome in ("ok", "cut", "withheld", "refused")
