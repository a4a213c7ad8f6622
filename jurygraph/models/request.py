"""Requests to a model, its replies, and their permanent storage, in the same types for every backend.

So are the faults between a request and its reply:

kind          cause           retry   meaning
timeout       infrastructure  yes     no whole reply in time
connection    infrastructure  yes     refused, reset, cut off, or no such host
rate-limit    infrastructure  yes     429, or the provider's equivalent; with `retry_after` if the provider sent it
server        infrastructure  yes     5xx
unreadable    infrastructure  yes     the provider's envelope is malformed
too-large     infrastructure  no      more bytes than any reply has
rejected      infrastructure  no      any other 4xx: the request is wrong, and a retry cannot succeed
code          infrastructure  no      the code of the user's own chat model is wrong
unauthorised  infrastructure  no      401, 402, 403: the key is missing or wrong, or its account has no funds
unknown-model infrastructure  no      404: no such model or path
unrecorded    infrastructure  no      the recording does not contain this request
outage        infrastructure  no      the server did not answer for as long as `calls.outage.wait` allows
all-rejected  infrastructure  no      the first requests were all rejected for one reason, as every other would be
deadline      infrastructure  no      the group's deadline has passed
budget        infrastructure  no      the run's limit of cost or calls is reached
overflowed    response        no      the request has more tokens than the model's context
refused       response        no      the provider's filter, or the model itself, refused to answer
truncated     response        no      the reply ended at its token limit
empty         response        no      the reply has no text
malformed     response        no      the reply does not match the requested format, even after repair

A fault concerns one question, which has no verdict then, except for those of kind unauthorised, unknown-model, outage,
all-rejected and budget: they end a run, and whoever asks for a judgement gets an error of `errors.RUN_ENDING` in their
place.
"""

import asyncio
import html
import json
import re
import unicodedata
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import orjson
from pydantic import Field
from pydantic_core import from_json, to_json

from jurygraph.errors import (
    BudgetExceeded,
    JurygraphError,
    ModelAccessError,
    ModelError,
    ModelOutageError,
    UnusableRepliesError,
)
from jurygraph.schema import (
    Call,
    CallUse,
    Failure,
    FailureCause,
    FrozenModel,
    Lookup,
    Material,
    Message,
    RecordedVerdict,
    Step,
    ToolCall,
    ToolSpec,
    canonical_json,
)
from jurygraph.schema.conversation import OMITTED_IF_EMPTY, OMITTED_IF_NONE
from jurygraph.schema.frozen_model import (
    Count,
    Id,
    JsonFields,
    JsonObject,
    Number,
    ReadOnlyFields,
    StrictBool,
    digest_of,
)
from jurygraph.schema.task import NonNegativeNumber

R = TypeVar("R", RecordedVerdict, Material)
# purposes of calls to which their author gives none
JUDGE_CALL_PURPOSE = "judge"
DERIVE_CALL_PURPOSE = "derive"
REPAIR_CALL_PURPOSE = "repair"

SchemaMode = Literal["native", "grammar", "instructed", "text"]
"""Method that makes a reply match its schema: by the endpoint (`native`), a grammar in the engine, or instructions in
the messages; `text` is without a schema.
"""

RETRYABLE_FAULT_KINDS = frozenset({"timeout", "connection", "rate-limit", "server", "unreadable"})
RESPONSE_CAUSED_FAULT_KINDS = frozenset(
    {"overflowed", "refused", "truncated", "empty", "malformed"}
)
"""Kinds that the judged response may have provoked."""

ACCESS_FAULT_KINDS = frozenset({"unauthorised", "unknown-model"})
"""Kinds with which a server refuses every other request, too."""

CODE_FAULT_KIND = "code"
REJECTION_FAULT_KINDS = frozenset({"rejected", CODE_FAULT_KIND})
"""Kinds that every other request may get, too: the run ends if all of the first do."""
ALL_REJECTED_FAULT_KIND = "all-rejected"
PROBE_ONLY_FAULT_KINDS = ACCESS_FAULT_KINDS | {ALL_REJECTED_FAULT_KIND}
"""Kinds after which no request is sent but an occasional probe."""

_RUN_ENDING_ERROR_BY_FAULT_KIND: dict[str, type[JurygraphError]] = {
    **dict.fromkeys(ACCESS_FAULT_KINDS, ModelAccessError),
    "outage": ModelOutageError,
    ALL_REJECTED_FAULT_KIND: UnusableRepliesError,
    "budget": BudgetExceeded,
}

OUT_OF_FUNDS_CODES = frozenset(
    {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached"}
)
"""Providers' error codes, with a 429 or another 4xx, for which a retry cannot help."""

REASONING_MESSAGE_FIELDS = ("reasoning_content", "reasoning")
NON_CONTENT_MESSAGE_FIELDS = ("tool_calls", "function_call", *REASONING_MESSAGE_FIELDS)
"""Fields of a message that may have something where `content` is empty; what is in them is no reply."""

ABORTED_FINISH_REASONS = ("abort", "error")
"""Finish reasons of SGLang, vLLM and OpenRouter for a reply that the server, not the model, ended."""

_FAULT_KIND_BY_STATUS = dict.fromkeys((401, 402, 403), "unauthorised") | dict.fromkeys(
    (408, 504), "timeout"
)
_FAULT_KIND_BY_STATUS |= {404: "unknown-model", 409: "server", 425: "server", 429: "rate-limit"}
_MAX_MESSAGE_LENGTH = 500

MAX_ERROR_BODY_BYTES = 64 << 10  # most bytes of an error's body that are read; the rest is ignored
_MAX_PARSED_ERROR_BYTES = 1 << 20
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
}
_OVERFLOW_MESSAGE_PATTERN = re.compile(
    r"(?:maximum|model's|available) (?:context|model|prompt|input|allowed|allowed input) (?:length|size|window)"
    r"|exceed(?:s|ed)?(?: the)?(?: max(?:imum)?)? context (?:window|length|size|limit)"  # Together, Ollama, Anthropic
    r"|context (?:window|length|size|limit) (?:has been |was |is )?exceeded"  # LM Studio
    r"|(?:prompt|input)(?: \(\d+ tokens\))?(?: is)? too long"  # Anthropic, Bedrock
    r"|(?:prompt|input|total) tokens?\b.{0,60}\bexceed|exceed(?:s|ed)? (?:the )?model('s)? token limit"  # Moonshot
    r"|input (?:token count|length)\b.{0,40}\b(?:only supports up to|should be \[)"  # Gemini, Qwen
    r"|reduce the length of the (?:messages|prompt|input)"  # OpenAI, Groq
    r"|(?:exceeds?|over) the (?:maximum|limit of|max(?:imum)?) (?:number of )?(?:input )?tokens"  # Gemini
    r"|max_(?:new|total)_tokens`? must be <=|must have less than \d+ tokens"  # TGI
    r"|context (?:the )?overflows|context length of only"  # LM Studio
    r"|too many (?:input )?tokens\b",  # Cohere
    re.IGNORECASE,
)
"""Messages about a request longer than the context; those of the first line are of OpenAI, vLLM, SGLang and llama.cpp.
"""

_UNKNOWN_MODEL_CODES = {"model_not_found"}
_INVALID_KEY_CODES = {"api_key_invalid"}
_INVALID_KEY_MESSAGE_PATTERN = re.compile(
    r"(?:incorrect|invalid) api key\b|api key (?:is )?(?:not valid|invalid|expired)\b",
    re.IGNORECASE,
)
"""How Gemini's and xAI's messages about a key begin, with a 400; elsewhere in a message it may be echoed text."""

_FILTER_MESSAGE_PATTERN = re.compile(r"\b(?:flagged|moderation|content policy)\b", re.IGNORECASE)
"""OpenRouter's messages, with a 403, about a prompt that a filter refused."""

_REFUSAL_CODES = {"content_filter", "content_policy_violation", "data_inspection_failed"}


def fault_kind_of_status(status: int) -> str:
    """Return the kind of fault for an HTTP status of 400 or more, without regard to its message."""
    return _FAULT_KIND_BY_STATUS.get(status, "server" if status >= 500 else "rejected")


def make_deadline_fault() -> "Fault":
    return Fault("deadline", "the time for this group of responses is over; raise calls.deadline")


@asynccontextmanager
async def fault_at_deadline(until: float | None) -> AsyncIterator[None]:
    """Raise `Fault` of kind `deadline` if the context is still open at `until`, a time of the running loop."""
    try:
        async with asyncio.timeout_at(until) as timer:
            yield
    except TimeoutError:
        if not timer.expired():  # one of another kind, such as of a disk
            raise
        raise make_deadline_fault() from None


def iterate_exception_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and its contexts, even suppressed ones, from the last to the first, each once."""
    yielded_ids: set[int] = set()
    current_exception: BaseException | None = error
    while current_exception is not None and id(current_exception) not in yielded_ids:
        yielded_ids.add(id(current_exception))
        yield current_exception
        current_exception = current_exception.__cause__ or current_exception.__context__


class Fault(ModelError):
    """A request without a usable reply. `retry_after` is in seconds, if the provider sent it.

    `attempts` is the number of requests sent, once that is known; `call` the id of the call with the faulty reply, and
    `remedy` what the model is told to do about it. `is_unsent` is True if there was no connection, so that the server
    cannot have read the request. `code` is the status and the code of a server's error, if it has both, and `setting`
    the line of the config that mends the fault, as `calls.form: instructed`.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        retry_after: float | None = None,
        *,
        attempts: int = 0,
        remedy: str | None = None,
        is_unsent: bool = False,
        code: str | None = None,
        setting: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.attempts = attempts
        self.call: str | None = None
        self.remedy = remedy
        self.is_unsent = is_unsent
        self.code = code
        self.setting = setting

    @property
    def cause(self) -> FailureCause:
        """`response` if the response may have provoked the fault, else `infrastructure`."""
        return "response" if self.kind in RESPONSE_CAUSED_FAULT_KINDS else "infrastructure"

    @property
    def failure(self) -> Failure:
        message = str(self)
        if self.setting is not None and self.setting not in message:
            message += f"; {self.setting} in the config would accept it"
        return Failure(cause=self.cause, kind=self.kind, message=message[:_MAX_MESSAGE_LENGTH])

    def raise_if_run_ends(self) -> None:
        """Raise the error in `errors.RUN_ENDING` for a fault that is about more than one question."""
        if self.kind in _RUN_ENDING_ERROR_BY_FAULT_KIND:
            raise _RUN_ENDING_ERROR_BY_FAULT_KIND[self.kind](str(self)) from self


class ServerErrorDetails(NamedTuple):
    """A server's error: codes, message, and the status if the body has one: llama.cpp and OpenRouter may send a 200.

    `codes` are those that it has anywhere, and `code` is the one of its field of that name.
    """

    codes: frozenset[str]
    message: str
    status: int | None = None
    code: str | None = None


def parse_server_error(content: bytes | bytearray) -> ServerErrorDetails:
    """Parse the error in a reply's body; a body that is no JSON, or too large for an error, is itself the message."""
    try:
        body = from_json(content[: _MAX_PARSED_ERROR_BYTES + 1])
    except ValueError:
        body = content[:MAX_ERROR_BODY_BYTES].decode(errors="replace")
    if isinstance(body, list) and body:  # as Gemini's OpenAI-compatible address sends it
        body = body[0]
    error = body.get("error") or body if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return ServerErrorDetails(frozenset(), str(error).strip())
    code = error.get("code")
    details = error.get("details")
    values = [code, error.get("type")]
    if isinstance(details, list):
        values += [part.get("reason") for part in details if isinstance(part, dict)]
    codes = frozenset(value.lower() for value in values if isinstance(value, str))
    status = code if type(code) is int and 400 <= code < 600 else None
    error_code = code if isinstance(code, str) else None
    message = str(error.get("message") or error.get("detail") or error)
    return ServerErrorDetails(codes, message.strip(), status, error_code)


def fault_kind_of_error(status: int, error: ServerErrorDetails) -> str:
    if error.codes & (OUT_OF_FUNDS_CODES | _INVALID_KEY_CODES):
        return "unauthorised"
    if error.codes & _UNKNOWN_MODEL_CODES:
        return "unknown-model"
    if status == 403 and (
        error.codes & _REFUSAL_CODES or _FILTER_MESSAGE_PATTERN.search(error.message)
    ):
        return "refused"
    kind = fault_kind_of_status(status)
    # llama.cpp and gateways before it
    if status in (413, 500) and _OVERFLOW_MESSAGE_PATTERN.search(error.message):
        return "overflowed"
    if kind != "rejected":
        return kind
    if error.codes & _REFUSAL_CODES:
        return "refused"
    if error.codes & _OVERFLOW_CODES or _OVERFLOW_MESSAGE_PATTERN.search(error.message):
        return "overflowed"
    return "unauthorised" if _INVALID_KEY_MESSAGE_PATTERN.match(error.message) else "rejected"


class Investigation(FrozenModel):
    """The `tools` that the model may call before its verdict, in as many further requests as `steps_left`.

    With 0 it asks for the verdict. The tools are `native` if the endpoint takes them as such; else the messages
    describe them. `tokens_left` bounds what further results may add, a token taken for four bytes. `sources` is the
    digest of what the tools see, which equal messages need not share: two responses with one text may have other files.
    """

    tools: tuple[ToolSpec, ...]
    native: StrictBool
    steps_left: Count
    tokens_left: Count
    sources: str = ""

    def to_chat(self) -> JsonFields:
        """Return the fields of OpenAI's chat completions; with no step left, no tool may be called.

        The tools stay: some providers refuse messages with calls of tools that a request does not list.
        """
        if not self.native:
            return {}
        functions = []
        for tool in self.tools:
            function = {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            }
            functions.append({"type": "function", "function": function})
        chat = {"tools": functions}
        return chat if self.steps_left else {**chat, "tool_choice": "none"}


class Request(FrozenModel):
    """One request to a model. Its `digest` is its identity: the key of cache, resume, trace and replay.

    `parameters` are all settings for the provider besides the messages (temperature, max_tokens, logprobs, seed, …).
    `answer` is the full JSON schema of the reply, or None for free text. `sample` distinguishes repetitions. `marks`
    are those of the fences in the messages; they depend on the project's key, while the identity of a request does not.
    An `investigation` says what the model may look up.
    """

    provider: Id
    endpoint: str | None = None
    model: Id
    messages: tuple[Message, ...] = Field(min_length=1)
    parameters: JsonObject = Field(default_factory=dict)
    answer: JsonObject | None = None
    form: SchemaMode = "text"
    prompt: str | None = None
    prompt_version: str | None = None
    sample: Count = 0
    marks: tuple[Id, ...] = OMITTED_IF_EMPTY
    investigation: Investigation | None = OMITTED_IF_NONE

    @property
    def asks_for_verdict(self) -> bool:
        """True if no tool may be called before the answer."""
        return self.investigation is None or self.investigation.steps_left == 0

    @property
    def offers_tools(self) -> bool:
        """True if the endpoint is given tools that the model may call."""
        investigation = self.investigation
        return investigation is not None and investigation.native and investigation.steps_left > 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of `to_identity_fields()`."""
        return digest_of(self.to_identity_fields())

    def to_chat(self) -> JsonFields:
        """Return the messages, the tools, and a schema that the endpoint enforces, as in OpenAI's chat completions."""
        chat: JsonFields = {
            "messages": [message.model_dump(mode="json") for message in self.messages]
        }
        if self.investigation is not None:
            chat |= self.investigation.to_chat()
        if self.form == "native" and self.answer is not None:
            schema = {"name": "verdict", "strict": True, "schema": self.answer}
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        return chat

    def to_identity_fields(self) -> JsonFields:
        """Return the fields as `to_dict` does, with each fence mark replaced by its number: the key has no effect."""
        request_fields = self.to_dict()
        if self.marks:
            del request_fields["marks"]
            for message in request_fields["messages"]:
                message["content"] = _replace_fence_marks(message["content"], self.marks)
        return request_fields

    def to_dict(self) -> JsonFields:
        """Return the same as `model_dump(mode="json")`, without its visit to each part of the schema in Python."""
        fields = {name: getattr(self, name) for name in _PLAIN_REQUEST_FIELDS}
        fields["messages"] = [message.model_dump(mode="json") for message in self.messages]
        if self.marks:
            fields["marks"] = list(self.marks)
        if self.investigation is not None:
            fields["investigation"] = self.investigation.model_dump(mode="json")
        return fields


_PLAIN_REQUEST_FIELDS = [
    name for name in Request.model_fields if name not in ("marks", "investigation")
]


def encode_compact_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raises `PydanticSerializationError` for what that cannot express."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # such as integers of more than 64 bits, which `to_json` writes in five times the time
        return to_json(value)


_MAX_MARKS_SEARCHED_SINGLY = 32
"""Number of marks up to which to search each takes less than one pass for whatever may be a mark: for the two of most
requests, .08 ms less, an eighth of the CPU time of a question."""


def _replace_fence_marks(text: str, marks: Sequence[str]) -> list[str | int]:
    """Split a text at its marks, which are hexadecimal, and insert their numbers.

    No two different texts give the same list.
    """
    numbers = {mark: number for number, mark in enumerate(marks)}
    pieces: list[str | int] = [text]
    for length in sorted({len(mark) for mark in marks}):  # marks of one backend have one length
        previous_pieces = pieces
        pieces = []
        for piece in previous_pieces:
            if isinstance(piece, int):
                pieces.append(piece)
                continue
            last_mark_end = 0
            for start in _positions_of_fence_marks(piece, length, numbers):
                if start >= last_mark_end:
                    end = start + length
                    pieces += piece[last_mark_end:start], numbers[piece[start:end]]
                    last_mark_end = end
            pieces.append(piece[last_mark_end:])
    return pieces


def _positions_of_fence_marks(text: str, length: int, marks: Collection[str]) -> Iterable[int]:
    """Return where marks of a length begin in a text, ascending; they may overlap."""
    if len(marks) > _MAX_MARKS_SEARCHED_SINGLY:  # a conversation has one for each of its messages
        candidates = re.finditer(f"(?=([0-9a-f]{{{length}}}))", text)
        return (candidate.start() for candidate in candidates if candidate[1] in marks)
    starts = []
    for mark in marks:
        start = text.find(mark) if len(mark) == length else -1
        while start >= 0:
            starts.append(start)
            start = text.find(mark, start + 1)
    return sorted(starts)


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
    probabilities were requested and returned. Token counts are None if the provider does not report them. A reply
    without text may have something else: `other_field` is the name of that field, such as `tool_calls`. The reply to a
    request that offers tools has its `tool_calls`.
    """

    text: str
    finish: str | None = None
    refusal: str | None = None
    served: str | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    tokens: tuple[Token, ...] = ()
    # older replies keep their bytes
    other_field: str | None = OMITTED_IF_NONE
    tool_calls: tuple[ToolCall, ...] = OMITTED_IF_EMPTY


def read_tool_calls(message: ReadOnlyFields, request: Request) -> tuple[ToolCall, ...]:
    """Return the calls of tools in a message of a reply, in OpenAI's form, if the request offers any.

    A call that is malformed is left out, and one without an id gets one that every provider accepts.
    """
    calls = []
    raw_tool_calls = message.get("tool_calls") if request.offers_tools else None
    for number, entry in enumerate(raw_tool_calls if isinstance(raw_tool_calls, list) else ()):
        function = entry.get("function") if isinstance(entry, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):  # some servers parse them
            arguments = canonical_json(arguments or {}).decode()
        arguments = arguments.strip() or "{}"  # as some servers send for a tool without any
        identity = entry.get("id")
        name = identity if isinstance(identity, str) and identity else f"call{number:05}"
        tool_call_fields = {
            "id": name,
            "function": {"name": function["name"], "arguments": arguments},
        }
        calls.append(ToolCall.model_validate(tool_call_fields))
    return tuple(calls)


def find_non_content_field(message: ReadOnlyFields) -> str | None:
    """Return the name of the field that has something, in a message without text; None if there is none."""
    return next((name for name in NON_CONTENT_MESSAGE_FIELDS if message.get(name)), None)


# The judged response may have provoked every character of a reply: what is cut off never decides which object counts.
# Log probabilities belong to the text as it was sent, so that it is cut and never rewritten.
_REASONING_BLOCK_PATTERN = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
_THOUGHT_TAG_PATTERN = re.compile(r"<(?P<closes>/?)think(?:ing)?>")
_CODE_FENCE_PATTERN = re.compile(r"\s*```[A-Za-z0-9_+-]*\s(?P<inside>.*)```\s*", re.DOTALL)
_JSON_ESCAPE_PATTERN = re.compile(r'\\(?P<escaped>["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_JSON_OPENING_PATTERN = re.compile(r'\{\s*"')
_NO_LETTERS_OR_DIGITS_PATTERN = re.compile(r"[\W_]+")
_MIN_COPIED_JSON_LETTERS = 20  # shorter objects are in many prompts by chance, as "score 1" is
# times the length of an object: escapes take six characters for one, and white space some
_MAX_JSON_EXPANSION_FACTOR = 8


class ReplyJsonText(NamedTuple):
    """The part of a reply that may be its JSON; `has_words_around` if other words than a marked thought were cut
    off, `has_unopened_thought` if these were a thought without an opening tag."""

    text: str
    has_words_around: bool
    has_unopened_thought: bool


def find_json(text: str, *, allow_words_around: bool) -> ReplyJsonText:
    """Return a reply without one thought at its beginning, and without one code fence around the rest.

    With `allow_words_around`, words around the only object are cut off, too. A thought ends with the first closing tag
    if it begins with an opening tag. Chat templates that write the opening tag themselves leave a thought without it:
    that ends with the only tag of the reply, since a second one may be part of a response that the thought repeats.
    """
    has_unopened_thought = False
    if thought_match := _REASONING_BLOCK_PATTERN.match(text):
        text = text[thought_match.end() :]
    elif (end := _end_of_unopened_thought(text)) is not None:
        text = text[end:]
        has_unopened_thought = True
    has_words_around = has_unopened_thought
    if fence := _CODE_FENCE_PATTERN.fullmatch(text):
        text = fence["inside"]
    if allow_words_around and (cut_text := _cut_to_json_object(text)) is not None:
        has_words_around |= cut_text != text.strip()
        text = cut_text
    return ReplyJsonText(text, has_words_around, has_unopened_thought)


def has_thought_tag(text: str) -> bool:
    return _THOUGHT_TAG_PATTERN.search(text) is not None


def _end_of_unopened_thought(text: str) -> int | None:
    """Return the offset at which the answer begins after a thought without an opening tag; None if there is none.

    In a text that begins with JSON, or a fence, the tag is part of a string.
    """
    tags = list(_THOUGHT_TAG_PATTERN.finditer(text))
    if len(tags) != 1 or not tags[0]["closes"] or text.lstrip().startswith(("{", "```")):
        return None
    return tags[0].end()


def _cut_to_json_object(text: str) -> str | None:
    """Return a text from its first brace to its last, None if it has none or if a thought remains around them.

    Two objects, or braces among the words, leave what is no JSON: which of several objects counts is never chosen, not
    even where one is within a string of a broken one.
    """
    start = text.find("{")
    end = text.rfind("}") + 1
    if (
        not 0 <= start < end
        or _THOUGHT_TAG_PATTERN.search(text[:start])
        or _THOUGHT_TAG_PATTERN.search(text[end:])
    ):
        return None
    return text[start:end]


def double_wrong_backslashes(text: str) -> str:
    """Return a JSON text in which a backslash that begins no escape stands for itself, as in `\\sqrt` or `\\(`.

    Strings end where they did, because a quotation mark and a backslash after a backslash remain an escape.
    """
    return _JSON_ESCAPE_PATTERN.sub(lambda escape: escape[0] if escape["escaped"] else "\\\\", text)


def _letters_and_digits_of(text: str) -> str:
    return _NO_LETTERS_OR_DIGITS_PATTERN.sub(
        "", unicodedata.normalize("NFKC", html.unescape(text))
    ).casefold()


def is_quoted_from(json_text: str, sources: Sequence[str]) -> bool:
    """Return whether a source has the object of a JSON text: in any white space and order of keys, or with the same
    letters and digits, however they are quoted and escaped."""
    letters = _letters_and_digits_of(json_text)
    if len(letters) >= _MIN_COPIED_JSON_LETTERS and any(
        letters in _letters_and_digits_of(source) for source in sources
    ):
        return True
    answer = json.loads(double_wrong_backslashes(json_text))
    longest = _MAX_JSON_EXPANSION_FACTOR * len(json_text)
    json_decoder = json.JSONDecoder()
    for source in map(double_wrong_backslashes, sources):
        for opening_match in _JSON_OPENING_PATTERN.finditer(source):
            start = opening_match.start()
            try:
                found, _ = json_decoder.raw_decode(source[start : start + longest])
            except ValueError:
                continue
            except RecursionError:
                return True  # nobody nests so deeply in good faith, and trying every level would take long
            if found == answer:
                return True
    return False


class AnsweredCall(NamedTuple):
    reply: Reply
    call: Call


class ToolResult(NamedTuple):
    """A result of a tool in one conversation, counted from 1.

    `response` is the number, from 1, of the response whose words it has; None for other words.
    """

    number: int
    text: str
    response: int | None


class StoredLookup(NamedTuple):
    """A call of a tool, with its arguments as JSON and the result that the model was shown."""

    lookup: Lookup
    arguments: str
    result: str


class PlannedLookup(NamedTuple):
    """A call of a tool that a reply asks for: its record before it has a result, its arguments, and what makes it.

    `make` gets whether a gate reads the result.
    """

    lookup: Lookup
    arguments: str
    make: Callable[[bool], Awaitable[StoredLookup]]


class CachedReply(NamedTuple):
    """A reply, and its cost in US dollars when it was billed; None if that is not known."""

    reply: Reply
    cost: NonNegativeNumber | None


@dataclass(slots=True)
class CallLog:
    """The calls made for one verdict or one piece of material, until its answer is final: then the log `is_closed`.

    `lookups` are the ids of calls of tools, by the call that led to them.

    `uses` are its requests, each once, in the order in which they were made, but a repair after what it repairs.
    `accepted` are the calls with valid replies, by the first call of each: the call itself, or its repair.
    `waiting_requests` are the requests without a reply so far, by id.
    """

    uses: list[CallUse] = field(default_factory=list)
    accepted: dict[str, str] = field(default_factory=dict)
    waiting_requests: dict[str, Request] = field(default_factory=dict)
    lookups: dict[str, list[str]] = field(default_factory=dict)
    is_closed: bool = False

    def add(self, use: CallUse, after: str | None = None) -> None:
        """Add a request, unless it is there already; `after` is the id of the call that it repairs or goes on from."""
        ids = [earlier.id for earlier in self.uses]
        if use.id not in ids:
            index = len(ids) if after is None else ids.index(after) + 1
            self.uses.insert(index, use)

    def add_lookup(self, lookup: Lookup) -> None:
        """Add a call of a tool, unless it is there already."""
        lookup_ids = self.lookups.setdefault(lookup.call, [])
        if lookup.id not in lookup_ids:
            lookup_ids.append(lookup.id)

    def add_calls_to_result(
        self, result: R, sent_calls: Container[str], steps: Sequence[Step] = ()
    ) -> R:
        """Return a result with its steps and its `calls`: those among the `sent_calls`, and the one that it names.

        That may be one for another input of its batch. A result that names none was made from the only accepted one.
        """
        call_id = result.call
        if call_id is None and len(self.accepted) == 1:
            call_id = next(iter(self.accepted.values()))
        calls = [use for use in self.uses if use.id in sent_calls]
        if (
            call_id is not None
            and call_id in sent_calls
            and all(use.id != call_id for use in calls)
        ):
            calls.append(CallUse(id=call_id, purpose=JUDGE_CALL_PURPOSE))
        fields: JsonFields = {}
        if calls:
            fields |= {"call": call_id, "calls": tuple(calls)}
        lookups = [name for use in calls for name in self.lookups.get(use.id, ())]
        if lookups:
            fields["lookups"] = tuple(lookups)
        if steps:
            fields["steps"] = tuple(steps)
        return result.model_copy(update=fields) if fields else result


class CallSink(Protocol):
    """Find and store calls, so that a resumed run repeats no request."""

    def find(self, key: str) -> AnsweredCall | None:
        """Return the stored call whose request has this digest, if there is one."""

    async def store(self, request: Request, answered_call: AnsweredCall) -> None:
        """Store a call; it is durable when this returns."""

    def store_unanswered(self, request: Request, call: Call) -> None:
        """Store a call without a reply, unless the request is stored already."""

    def find_lookup(self, key: str) -> StoredLookup | None:
        """Return the stored call of a tool of this id, if there is one."""

    async def store_lookup(self, stored_lookup: StoredLookup) -> None:
        """Store a call of a tool; it is durable when this returns."""
