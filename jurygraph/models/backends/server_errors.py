"""Parse a server's error body, and find its kind of fault."""

import re
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.models.faults import OUT_OF_FUNDS, kind_of_status

MAX_ERROR_BYTES = 64 << 10
"""Most bytes of an error's body that are read; the rest is ignored."""

_MAX_PARSED = 1 << 20
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_MESSAGES = re.compile(
    r"(?:maximum|model's|available) (?:context|model|prompt|input|allowed|allowed input) (?:length|size)"
    r"|exceeds?(?: the)? context window",
    re.IGNORECASE,
)
"""Messages of OpenAI, vLLM, SGLang, llama.cpp and llama-cpp-python about a request longer than the context."""

_REFUSAL_CODES = {"content_filter", "content_policy_violation", "data_inspection_failed"}


class ServerError(NamedTuple):
    """A server's error: its codes, its message, and a status if the body has one.

    llama.cpp and OpenRouter may put an error with its status into a body of status 200.
    """

    words: frozenset[str]
    message: str
    status: int | None = None


def parse_error(content: bytearray) -> ServerError:
    """Parse the error in the body of a reply.

    A body that is not JSON, or too large for an error, is itself the message.
    """
    if len(content) > _MAX_PARSED:
        return ServerError(frozenset(), _to_one_line(content[:MAX_ERROR_BYTES].decode(errors="replace")))
    try:
        body = from_json(content)
    except ValueError:
        return ServerError(frozenset(), _to_one_line(content.decode(errors="replace")))
    error = body.get("error") or body if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return ServerError(frozenset(), _to_one_line(str(error)))
    code = error.get("code")
    words = frozenset(word.lower() for word in (code, error.get("type")) if isinstance(word, str))
    status = code if type(code) is int and 400 <= code < 600 else None
    return ServerError(words, _to_one_line(str(error.get("message") or error.get("detail") or error)), status)


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def error_kind(status: int, complaint: ServerError) -> str:
    """Return the kind of fault for a status and an error."""
    if complaint.words & OUT_OF_FUNDS:
        return "unauthorised"
    kind = kind_of_status(status)
    if kind != "rejected":
        return kind
    if complaint.words & _REFUSAL_CODES:
        return "refused"
    if complaint.words & _OVERFLOW_CODES or _OVERFLOW_MESSAGES.search(complaint.message):
        return "overflowed"
    return "rejected"
