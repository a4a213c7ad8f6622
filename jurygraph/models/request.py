"""Requests to a model, its replies, and the permanent storage for both, in the same types for every backend."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import orjson
from pydantic import Field, JsonValue
from pydantic_core import to_json

from jurygraph.display import format_line
from jurygraph.schema import Call, CallUse, FrozenModel, Material, Message, RecordedVerdict, Step
from jurygraph.schema.frozen_model import Count, Id, Number, digest_of

R = TypeVar("R", RecordedVerdict, Material)
# purposes of calls to which their author gives none
JUDGE = "judge"
DERIVE = "derive"
REPAIR = "repair"

SchemaMode = Literal["native", "grammar", "instructed", "text"]
"""Method that makes a reply match its schema: by the endpoint (`native`), a grammar in the engine, or instructions in
the messages; `text` is without a schema.
"""


class Request(FrozenModel):
    """One request to a model. Its `digest` is its identity: the key of cache, resume, trace and replay.

    `parameters` are all settings for the provider besides the messages (temperature, max_tokens, logprobs, seed, …).
    `answer` is the full JSON schema of the reply, or None for free text. `sample` distinguishes repetitions. `marks`
    are those of the fences in the messages; they depend on the project's key, while the identity of a request does not.
    """

    provider: Id
    endpoint: str | None = None
    model: Id
    messages: tuple[Message, ...] = Field(min_length=1)
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    answer: dict[str, JsonValue] | None = None
    form: SchemaMode = "text"
    prompt: str | None = None
    prompt_version: str | None = None
    sample: Count = 0
    marks: tuple[Id, ...] = Field(default=(), exclude_if=lambda marks: not marks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of `to_identity()`."""
        return digest_of(self.to_identity())

    def to_chat(self) -> dict[str, Any]:
        """Return the messages, and the schema if the endpoint enforces it, as in OpenAI's chat completions."""
        chat: dict[str, Any] = {"messages": [{"role": each.role, "content": each.content} for each in self.messages]}
        if self.form == "native" and self.answer is not None:
            schema = {"name": "verdict", "strict": True, "schema": self.answer}
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        return chat

    def to_identity(self) -> dict[str, Any]:
        """Return the fields as `to_dict` does, with each fence mark replaced by its number: the key has no effect."""
        plain = self.to_dict()
        if self.marks:
            del plain["marks"]
            for message in plain["messages"]:
                message["content"] = _replace_marks(message["content"], self.marks)
        return plain

    def to_dict(self) -> dict[str, Any]:
        """Return the same as `model_dump(mode="json")`, without its visit to each part of the schema in Python."""
        fields = {name: getattr(self, name) for name in Request.model_fields}
        fields["messages"] = self.to_chat()["messages"]
        if self.marks:
            fields["marks"] = list(self.marks)
        else:
            del fields["marks"]
        return fields


def encode_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raises `PydanticSerializationError` for what that cannot express."""
    try:
        return orjson.dumps(value)
    except TypeError:  # such as integers of more than 64 bits, which `to_json` writes in five times the time
        return to_json(value)


def _replace_marks(text: str, marks: Sequence[str]) -> list[str | int]:
    """Split a text at its marks and insert their numbers, so that no two different texts give the same list."""
    pieces: list[Any] = [text]
    for number, mark in enumerate(marks):
        for index in range(len(pieces) - 1, -1, -2) if mark in text else ():  # every other piece is a number
            parts = pieces[index].split(mark)
            if len(parts) > 1:
                numbered: list[Any] = [number] * (2 * len(parts) - 1)
                numbered[::2] = parts
                pieces[index : index + 1] = numbered
    return pieces


class Token(FrozenModel):
    """A token of a reply, its log probability, and the alternatives at its position, the most likely first.

    Alternatives are kept where they are informative: where a value of a JSON text begins, and everywhere in other
    texts.
    """

    text: str
    logprob: Number
    others: tuple[tuple[str, Number], ...] = ()


class Reply(FrozenModel):
    """A model's reply. `finish` is the provider's word for why it ended: `stop`, `length`, `content_filter`, …

    `refusal` is the text of a refusal. `served` is the model version that answered. `tokens` are present if log
    probabilities were requested and returned. Token counts are None if the provider does not report them.
    """

    text: str
    finish: str | None = None
    refusal: str | None = None
    served: str | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    tokens: tuple[Token, ...] = ()


class AnsweredCall(NamedTuple):
    """A reply, and its call."""

    reply: Reply
    call: Call

    def __repr__(self) -> str:
        return format_line("AnsweredCall", self._asdict().items())


@dataclass(slots=True)
class CallLog:
    """The calls made for one verdict or one piece of material, until its answer is final: then the log `is_closed`.

    `uses` are its requests, each once, in the order in which they were made, but a repair after what it repairs.
    `accepted` are the calls with valid replies, by the first call of each: the call itself, or its repair. `waiting`
    are the requests without a reply so far, by id.
    """

    uses: list[CallUse] = field(default_factory=list)
    accepted: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Request] = field(default_factory=dict)
    is_closed: bool = False

    def add(self, use: CallUse, repaired: str | None = None) -> None:
        """Add a request, unless it is there already; `repaired` is the id of the call that it repairs."""
        ids = [known.id for known in self.uses]
        if use.id not in ids:
            self.uses.insert(len(ids) if repaired is None else ids.index(repaired) + 1, use)

    def add_to(self, result: R, known: Container[str], steps: Sequence[Step] = ()) -> R:
        """Return a result with its steps and its `calls`: those `known` to be sent, and the one that it names.

        That may be one for another input of its batch. A result that names none was made from the only accepted one.
        """
        named = next(iter(self.accepted.values())) if result.call is None and len(self.accepted) == 1 else result.call
        calls = [use for use in self.uses if use.id in known]
        if named is not None and named in known and all(use.id != named for use in calls):
            calls.append(CallUse(id=named, purpose=JUDGE))
        fields: dict[str, Any] = {"call": named, "calls": tuple(calls)} if calls else {}
        fields |= {"steps": tuple(steps)} if steps else {}
        return result.model_copy(update=fields) if fields else result


class CallSink(Protocol):
    """Find and store calls, so that a resumed run repeats no request."""

    def find(self, key: str) -> AnsweredCall | None:
        """Return the stored call whose request has this digest, if there is one."""

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable when this returns."""

    def store_unanswered(self, request: Request, call: Call) -> None:
        """Store a call without a reply, unless the request is stored already."""
