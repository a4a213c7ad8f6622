"""What a model is asked and what it gives back: the same nouns for every backend."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, JsonValue

from jurygraph.schema import Message, Noun
from jurygraph.schema.noun import Count, Id, Number, digest_of

Form = Literal["native", "grammar", "instructed", "text"]
"""How a reply is held to its schema: by the endpoint itself, by a grammar in the engine, by words in the messages; or
`text`, where there is no schema and the reply may be anything."""


class Request(Noun):
    """One request to a model. Its `digest` is its identity: the one key of cache, resume, trace and replay.

    `parameters` are all that the provider is told beside the messages (temperature, max_tokens, logprobs, seed, …).
    `answer` is the full JSON schema of the reply, or None for free text. `sample` tells repeats apart. `marks` are
    those of the fences in the messages: they hang on the project's key, and the identity of a request does not.
    """

    provider: Id
    endpoint: str | None = None
    model: Id
    messages: tuple[Message, ...] = Field(min_length=1)
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    answer: dict[str, JsonValue] | None = None
    form: Form = "text"
    prompt: str | None = None
    prompt_version: str | None = None
    sample: Count = 0
    marks: tuple[Id, ...] = Field(default=(), exclude_if=lambda marks: not marks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of what it says."""
        return digest_of(self.said())

    def said(self) -> dict[str, Any]:
        """As `plain` gives it, but for the marks of fences: numbers stand in their places, whatever the key was."""
        plain = self.plain()
        if self.marks:
            del plain["marks"]
            for message in plain["messages"]:
                message["content"] = _in_pieces(message["content"], self.marks)
        return plain

    def plain(self) -> dict[str, Any]:
        """As `model_dump(mode="json")` gives it, which visits each part of the schema in Python."""
        fields = {name: getattr(self, name) for name in Request.model_fields}
        fields["messages"] = [{"role": one.role, "content": one.content} for one in self.messages]
        fields["marks"] = list(self.marks)
        if not self.marks:
            del fields["marks"]
        return fields


def _in_pieces(text: str, marks: Sequence[str]) -> list[str | int]:
    """A text with the numbers of its marks between its pieces, so that no other text reads as this one does."""
    pieces: list[str | int] = [text]
    for number, mark in enumerate(marks):
        if mark in text:
            pieces = [part for piece in pieces for part in _parted(piece, mark, number)]
    return pieces


def _parted(piece: str | int, mark: str, number: int) -> Sequence[str | int]:
    if isinstance(piece, int) or mark not in piece:
        return (piece,)
    first, *rest = piece.split(mark)
    return [first, *(part for text in rest for part in (number, text))]


class Token(Noun):
    """A token of a reply, its log probability, and those that might have stood there, the likeliest first.

    The others are there where they tell something: where a value of a JSON text begins, and all over any other text.
    """

    text: str
    logprob: Number
    others: tuple[tuple[str, Number], ...] = ()


class Reply(Noun):
    """What a model gave. `finish` is the provider's word for why it ended: `stop`, `length`, `content_filter`, …

    `refusal` is what it said where it refused. `served` is the model version that answered. `tokens` are there where
    log probabilities were asked for and given. Token counts are None where the provider does not tell.
    """

    text: str
    finish: str | None = None
    refusal: str | None = None
    served: str | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    tokens: tuple[Token, ...] = ()
