"""What a server says is wrong, in the body of an error, and the kind of fault that it is."""

import re
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.models.faults import OUT_OF_FUNDS, kind_of_status

LARGEST_ERROR = 64 << 10
"""Bytes of an error's body that are read; what follows is left."""

_LARGEST_COMPLAINT = 1 << 20
_OVERFLOWED = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOWED_WORDS = re.compile(
    r"(?:maximum|model's|available) (?:context|model|prompt|input|allowed|allowed input) (?:length|size)"
    r"|exceeds?(?: the)? context window",
    re.IGNORECASE,
)
"""How OpenAI, vLLM, SGLang, llama.cpp and llama-cpp-python say that a request is longer than the context."""

_REFUSED = {"content_filter", "content_policy_violation", "data_inspection_failed"}


class Complaint(NamedTuple):
    """What a server says is wrong: in a word or two of its own, in a sentence, and by a status where the body has one.

    llama.cpp and OpenRouter may put an error with its status into a body of status 200.
    """

    words: frozenset[str]
    message: str
    status: int | None = None


def complaint_in(content: bytearray) -> Complaint:
    """What is wrong, from the body of a reply; one that is no JSON, or larger than an error, is the sentence itself."""
    if len(content) > _LARGEST_COMPLAINT:
        return Complaint(frozenset(), _line(content[:LARGEST_ERROR].decode(errors="replace")))
    try:
        body = from_json(content)
    except ValueError:
        return Complaint(frozenset(), _line(content.decode(errors="replace")))
    error = body.get("error") or body if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Complaint(frozenset(), _line(str(error)))
    code = error.get("code")
    words = frozenset(word.lower() for word in (code, error.get("type")) if isinstance(word, str))
    status = code if type(code) is int and 400 <= code < 600 else None
    return Complaint(words, _line(str(error.get("message") or error.get("detail") or error)), status)


def _line(text: str) -> str:
    return " ".join(text.split())


def kind_of_complaint(status: int, complaint: Complaint) -> str:
    """The kind of fault that a status and a complaint are."""
    if complaint.words & OUT_OF_FUNDS:
        return "unauthorised"
    kind = kind_of_status(status)
    if kind != "rejected":
        return kind
    if complaint.words & _REFUSED:
        return "refused"
    if complaint.words & _OVERFLOWED or _OVERFLOWED_WORDS.search(complaint.message):
        return "overflowed"
    return "rejected"
