"""Faults between a request and its reply, with the same names for every backend.

kind          cause           retry   meaning
timeout       infrastructure  yes     no whole reply in time
connection    infrastructure  yes     refused, reset, cut off, or no such host
rate-limit    infrastructure  yes     429, or the provider's equivalent; with `retry_after` if the provider sent it
server        infrastructure  yes     5xx
unreadable    infrastructure  yes     the provider's envelope is malformed
too-large     infrastructure  no      more bytes than any reply has
rejected      infrastructure  no      any other 4xx: the request is wrong, and a retry cannot succeed
unauthorised  infrastructure  no      401, 402, 403: the key is missing or wrong, or its account has no funds
unknown-model infrastructure  no      404: no such model or path
unrecorded    infrastructure  no      the recording does not contain this request
outage        infrastructure  no      the server did not answer for as long as `calls.outage.wait` allows
deadline      infrastructure  no      the group's deadline has passed
budget        infrastructure  no      the run's limit of cost or calls is reached
overflowed    response        no      the request has more tokens than the model's context
refused       response        no      the provider's filter, or the model itself, refused to answer
truncated     response        no      the reply ended at its token limit
empty         response        no      the reply has no text
malformed     response        no      the reply does not match the requested format, even after repair

A fault concerns one question, which has no verdict then, except for those of kind unauthorised, unknown-model, outage
and budget: they end a run, and whoever asks for a judgement gets an error of `errors.RUN_ENDING` in their place.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.errors import BudgetExceeded, JurygraphError, ModelAccessError, ModelError, ModelOutageError
from jurygraph.schema import Cause, Failure

RETRYABLE = frozenset({"timeout", "connection", "rate-limit", "server", "unreadable"})
RESPONSE_KINDS = frozenset({"overflowed", "refused", "truncated", "empty", "malformed"})
"""Kinds that the judged response may have provoked."""

ACCESS_KINDS = frozenset({"unauthorised", "unknown-model"})
"""Kinds with which a server refuses every other request, too."""

_RUN_ENDING: dict[str, type[JurygraphError]] = {
    **dict.fromkeys(ACCESS_KINDS, ModelAccessError),
    "outage": ModelOutageError,
    "budget": BudgetExceeded,
}

OUT_OF_FUNDS = frozenset({"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached"})
"""Providers' error codes, with a 429 or another 4xx, for which a retry cannot help."""

ABORTED = ("abort", "error")
"""Finish reasons of SGLang, vLLM and OpenRouter for a reply that the server, not the model, ended."""

_BY_STATUS = dict.fromkeys((401, 402, 403), "unauthorised") | dict.fromkeys((408, 504), "timeout")
_BY_STATUS |= {404: "unknown-model", 409: "server", 425: "server", 429: "rate-limit"}
_MAX_MESSAGE = 500

MAX_ERROR_BYTES = 64 << 10  # most bytes of an error's body that are read; the rest is ignored
_MAX_PARSED = 1 << 20
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_MESSAGES = re.compile(
    r"(?:maximum|model's|available) (?:context|model|prompt|input|allowed|allowed input) (?:length|size)"
    r"|exceeds?(?: the)? context window",
    re.IGNORECASE,
)
"""Messages of OpenAI, vLLM, SGLang, llama.cpp and llama-cpp-python about a request longer than the context."""

_UNKNOWN_MODEL_CODES = {"model_not_found"}
_FILTERED = re.compile(r"\b(?:flagged|moderation|content policy)\b", re.IGNORECASE)
"""OpenRouter's messages, with a 403, about a prompt that a filter refused."""

_REFUSAL_CODES = {"content_filter", "content_policy_violation", "data_inspection_failed"}


def kind_of_status(status: int) -> str:
    """Return the kind of fault for an HTTP status of 400 or more, without regard to its message."""
    return _BY_STATUS.get(status, "server" if status >= 500 else "rejected")


def deadline_fault() -> "Fault":
    """Return the fault of a request after the deadline of its group."""
    return Fault("deadline", "the time for this group of responses is over; raise calls.deadline")


@asynccontextmanager
async def deadline_at(until: float | None) -> AsyncIterator[None]:
    """Raise `Fault` of kind `deadline` if the context is still open at `until`, a time of the running loop."""
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError:
        raise deadline_fault() from None


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and its contexts, even suppressed ones, from the last to the first, each once."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


class Fault(ModelError):
    """A request without a usable reply. `retry_after` is in seconds, if the provider sent it.

    `attempts` is the number of requests sent, once that is known; `call` the id of the call with the faulty reply, and
    `remedy` what the model is told to do about it.
    `is_unsent` is True if there was no connection, so that the server cannot have read the request.
    """

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.attempts = 0
        self.call: str | None = None
        self.remedy: str | None = None
        self.is_unsent = False

    @property
    def cause(self) -> Cause:
        """`response` if the response may have provoked the fault, else `infrastructure`."""
        return "response" if self.kind in RESPONSE_KINDS else "infrastructure"

    @property
    def failure(self) -> Failure:
        """The fault in the form of a verdict's failure."""
        return Failure(cause=self.cause, kind=self.kind, message=str(self)[:_MAX_MESSAGE])

    def raise_if_run_ends(self) -> None:
        """Raise the error in `errors.RUN_ENDING` for a fault that is about more than one question."""
        if self.kind in _RUN_ENDING:
            raise _RUN_ENDING[self.kind](str(self)) from self


class ServerError(NamedTuple):
    """A server's error: codes, message, and the status if the body has one: llama.cpp and OpenRouter may send a 200."""

    codes: frozenset[str]
    message: str
    status: int | None = None


def parse_error(content: bytes | bytearray) -> ServerError:
    """Parse the error in a reply's body; a body that is no JSON, or too large for an error, is itself the message."""
    try:
        body = from_json(content[: _MAX_PARSED + 1])
    except ValueError:
        body = content[:MAX_ERROR_BYTES].decode(errors="replace")
    error = body.get("error") or body if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return ServerError(frozenset(), str(error).strip())
    code = error.get("code")
    codes = frozenset(value.lower() for value in (code, error.get("type")) if isinstance(value, str))
    status = code if type(code) is int and 400 <= code < 600 else None
    message = str(error.get("message") or error.get("detail") or error)
    return ServerError(codes, message.strip(), status)


def error_kind(status: int, error: ServerError) -> str:
    """Return the kind of fault for a status and an error."""
    if error.codes & OUT_OF_FUNDS:
        return "unauthorised"
    if error.codes & _UNKNOWN_MODEL_CODES:
        return "unknown-model"
    if status == 403 and (error.codes & _REFUSAL_CODES or _FILTERED.search(error.message)):
        return "refused"
    kind = kind_of_status(status)
    if kind != "rejected":
        return kind
    if error.codes & _REFUSAL_CODES:
        return "refused"
    if error.codes & _OVERFLOW_CODES or _OVERFLOW_MESSAGES.search(error.message):
        return "overflowed"
    return "rejected"
