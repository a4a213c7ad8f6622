"""Send one group's requests to its model: structured replies, one deadline, and a record of every call.

A reply counts as a whole or not at all, without one section of reasoning at its beginning and one code fence around all
the rest. JSON inside it is not searched for: a quotation from a response, or text around an answer, never becomes an
answer. The config may allow words around the only object (`calls.reply: one-object`). A reply that cannot be used is
sent back once. Log probabilities of its tokens give the probability of an answer.
"""

import asyncio
import json
import math
import re
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from jurygraph.messages import FieldPath, Problem, describe_validation_error, quote, shorten
from jurygraph.models.gateway import Gateway, make_call_record
from jurygraph.models.request import (
    JUDGE_CALL_PURPOSE,
    REASONING_MESSAGE_FIELDS,
    REPAIR_CALL_PURPOSE,
    AnsweredCall,
    CallLog,
    CallSink,
    Fault,
    PlannedLookup,
    Reply,
    Request,
    StoredLookup,
    Token,
    ToolResult,
    double_wrong_backslashes,
    find_json,
    has_thought_tag,
    is_quoted_from,
)
from jurygraph.prompts import Prompt, RenderedPrompt, RenderOptions
from jurygraph.safety.gates import TextFence
from jurygraph.schema import Call, CallsConfig, CallUse, Lookup, Message, Response, SafetyConfig
from jurygraph.schema.frozen_model import (
    ConstantJsonObject,
    JsonFields,
    JsonObject,
    ReadOnlyFields,
    decode_json_strictly,
    iter_json_values,
)

if TYPE_CHECKING:
    from jurygraph.models.backends.chat_model import JudgeChatModel

T = TypeVar("T", bound=BaseModel)

_TRUNCATED_FINISH_REASONS = frozenset(
    {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
)
_WITHHELD_FINISH_REASONS = frozenset(
    {"content_filter", "safety", "refusal", "recitation", "blocklist", "prohibited_content", "spii"}
)
_REPEATED_CHARACTER_PATTERN = re.compile(r"(.)\1+", re.DOTALL)
_MAX_CHARACTERS_PER_TOKEN = 12
"""More than any tokenizer reads as one token on average, but for repetitions of one character."""
_MAX_FAULT_MESSAGE_CHARACTERS = 300
_MAX_SHOWN_REPLY_CHARACTERS = 4_000
_MAX_JSON_OBJECTS_TRIED = 5_000
_JSON_ALONE_HINT = "no code fence, and no word before or after it"
_COPIED_SCHEMA_KEYWORDS = (
    "type description enum minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum"
).split()
_HANDLED_SCHEMA_KEYWORDS = frozenset(_COPIED_SCHEMA_KEYWORDS).union(
    "const anyOf oneOf items properties required additionalProperties".split()
)
_DROPPED_SCHEMA_KEYWORDS = frozenset(
    "$defs title default examples deprecated readOnly writeOnly discriminator format pattern minLength maxLength"
    " multipleOf".split()
)

_JSON_SPACES = " \t\n\r"
# largest error of a probability, if one of the two words is not among the alternatives
_MAX_PROBABILITY_ERROR = 0.05
_MINUS_INFINITY_LOGPROB = -9999.0  # vLLM's value for minus infinity
_POSITIVE_LOGPROB_TOLERANCE = 1e-3  # most by which a server's log probability may be above 0
_STRING_OR_BOOLEAN_PATTERN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|true|false', re.DOTALL)
_JSON_VALUE_PATTERN = re.compile(
    r""""(?:[^"\\]|\\.)*"(?P<named>[ \t\n\r]*:)?|[{\[]|[^\s"{}\[\]:,]+""", re.DOTALL
)


WordLogprob = tuple[str, float]
"""The text of a token, or what is left of it, and its log probability."""


def answer_schema(reply_model: type[BaseModel]) -> JsonObject:
    """Return a pydantic model's JSON schema in the subset that OpenAI's strict mode, vLLM, SGLang and llama.cpp accept.

    Every field is required, in the order of the model, and no other is allowed. Definitions are inlined. Kept are
    types, descriptions, enumerations, alternatives, and the bounds of numbers and of list lengths; llama.cpp's own
    grammars ignore the bounds of numbers that are not whole. Removed are titles, defaults, formats, patterns, text
    lengths and multiples, which one or the other rejects; `parse_reply` still checks them. Each call computes it again,
    in half a millisecond: keep the result.

    Raises `TypeError` if the subset cannot express the model: objects with free keys, tuples of mixed types, sets,
    values of any type, and models that contain themselves.
    """
    schema = reply_model.model_json_schema()
    strict_schema = _strict_schema(schema, reply_model.__name__, schema.get("$defs", {}))
    if strict_schema.get("type") != "object":
        raise TypeError(
            f"{reply_model.__name__} is not an object, as an answer has to be; give it a field"
        )
    return strict_schema


def _strict_schema(
    source: ReadOnlyFields, location: str, schema_definitions: ReadOnlyFields
) -> JsonObject:
    if "$ref" in source:
        name = str(source["$ref"]).removeprefix("#/$defs/")
        if name not in schema_definitions:
            raise _schema_error(location, "contains itself")
        sibling_keywords = {key: value for key, value in source.items() if key != "$ref"}
        # none in it may refer to it
        others = {key: value for key, value in schema_definitions.items() if key != name}
        return _strict_schema({**schema_definitions[name], **sibling_keywords}, location, others)
    if unknown_schema_keywords := sorted(
        source.keys() - _HANDLED_SCHEMA_KEYWORDS - _DROPPED_SCHEMA_KEYWORDS
    ):
        raise _schema_error(location, f"has {unknown_schema_keywords[0]}")
    if not source.keys() & {"type", "enum", "const", "anyOf", "oneOf"}:
        raise _schema_error(location, "may be anything")
    strict_schema = {name: source[name] for name in _COPIED_SCHEMA_KEYWORDS if name in source}
    if "const" in source:
        strict_schema["enum"] = [source["const"]]
    if alternatives := source.get("anyOf", source.get("oneOf")):
        strict_schema["anyOf"] = [
            _strict_schema(alternative_schema, location, schema_definitions)
            for alternative_schema in alternatives
        ]
    if source.get("type") == "array":
        strict_schema["items"] = _strict_schema(
            source.get("items", {}), f"{location}[]", schema_definitions
        )
    if source.get("type") == "object":
        if "properties" not in source or source.get("additionalProperties"):
            raise _schema_error(location, "has free keys")
        fields = source["properties"].items()
        strict_schema["properties"] = {
            n: _strict_schema(field, f"{location}.{n}", schema_definitions) for n, field in fields
        }
        strict_schema["required"] = list(source["properties"])
        strict_schema["additionalProperties"] = False
    return strict_schema


def _schema_error(location: str, problem: str) -> TypeError:
    return TypeError(
        f"{location} {problem}, which no strict schema can say; use fields, tuples of one type, or Literals"
    )


def extract_reply_json(reply: Reply, *, allow_words_around: bool = False) -> Reply:
    """Return the reply with its JSON alone as its text (see `find_json`): that is the answer, or there is none."""
    text = find_json(reply.text, allow_words_around=allow_words_around).text
    return reply if text is reply.text else reply.model_copy(update={"text": text})


ProblemFinder = Callable[[T, Reply], Problem | None]
"""Returns what breaks the form of a parsed reply beyond what its JSON alone can show; None if nothing does."""


def parse_reply(
    reply: Reply,
    reply_model: type[T],
    strict: bool = True,
    find_reply_problem: ProblemFinder[T] | None = None,
    *,
    allow_words_around: bool = False,
    request: Request | None = None,
) -> T:
    """Parse the whole reply, unwrapped, as `reply_model`, a pydantic model; only JSON's white space may surround it.

    With `allow_words_around`, words may surround the only JSON object in it. If not `strict`, and without that, the
    first object in it that validates counts: many programs read replies so, and the option makes its effect measurable.
    `find_reply_problem` gets the answer with the unwrapped reply. An object between words that `request` has, too, may
    be a quotation from the response, and is no answer. A backslash that begins no escape of JSON stands for itself.

    Types are strict, and every field is present once and known, even one with a default. NaN, infinities, −0 and
    numbers that no float can represent are rejected, and so are unpaired surrogates and values nested too deeply.

    Raises `Fault`, in this order: `truncated`, `refused`, `empty`, `malformed`, which has a `remedy` for the model.
    """
    refuse_unfinished_reply(reply, request)
    answer = _find_and_parse_json(reply, reply_model, allow_words_around, request)
    setting = None
    if isinstance(answer, Problem) and not strict:
        answer = next(_json_objects_inside(extract_reply_json(reply).text, reply_model), answer)
    elif isinstance(answer, Problem) and not allow_words_around:
        is_readable_among_words = not isinstance(
            _find_and_parse_json(reply, reply_model, True, request), Problem
        )
        setting = "calls.reply: one-object" if is_readable_among_words else None
    json_reply = extract_reply_json(reply, allow_words_around=allow_words_around)
    if find_reply_problem is not None and not isinstance(answer, Problem):
        answer = find_reply_problem(answer, json_reply) or answer
    if isinstance(answer, Problem):
        location = f"field {answer.field}:" if answer.path else "the reply"
        message = shorten(f"{location} {answer.problem}", _MAX_FAULT_MESSAGE_CHARACTERS)
        raise Fault("malformed", message, remedy=answer.remedy, setting=setting)
    return answer


def _find_and_parse_json(
    reply: Reply, reply_model: type[T], allow_words_around: bool, request: Request | None
) -> T | Problem:
    part = find_json(reply.text, allow_words_around=allow_words_around)
    answer = _parse_json_reply(part.text, reply_model)
    if isinstance(answer, Problem) or not part.has_words_around or request is None:
        return answer
    prompt = [message.content for message in request.messages]
    if part.has_unopened_thought and any(map(has_thought_tag, prompt)):
        problem = "ends a thought that it did not begin, with a tag that the prompt has, too"
    elif is_quoted_from(part.text, prompt):
        problem = "has words around an object that the prompt has, too"
    else:
        return answer
    return Problem((), problem, f"write one JSON value, {_JSON_ALONE_HINT}")


def make_repair_request(request: Request, reply: Reply, problem: str) -> Request:
    """Return the request for the one round of repair: with the reply (its first 4,000 characters) and its error."""
    instruction = f"That cannot be used: {problem}.\nWrite the whole answer again as JSON alone: {_JSON_ALONE_HINT}."
    # empty messages are refused
    content = (
        shorten(reply.text, _MAX_SHOWN_REPLY_CHARACTERS) if reply.text.strip() else "(no text)"
    )
    repair_messages = (
        Message(role="assistant", content=content),
        Message(role="user", content=instruction),
    )
    return request.model_copy(update={"messages": request.messages + repair_messages})


def with_schema_instructions(request: Request) -> Request:
    """Return the request with its schema as instructions, for an endpoint that takes none.

    A request without a schema is returned unchanged. The instructions end the last message: everything before them
    remains a prefix that a provider's cache shares with requests for other schemas, and they come after the judged
    response. They are part of the user's message, since many chat templates reject two messages of a role in a row, and
    a system message that is not the first.
    """
    if request.answer is None:
        return request
    schema = json.dumps(request.answer, ensure_ascii=False, separators=(",", ":"))
    instruction = (
        f"Answer with JSON alone: {_JSON_ALONE_HINT}. It is one value of this JSON Schema, its fields in this order:\n"
        f"{schema}"
    )
    messages = add_to_user_message(request.messages, instruction)
    return request.model_copy(update={"messages": messages, "form": "instructed"})


def add_to_user_message(messages: Sequence[Message], content: str) -> tuple[Message, ...]:
    """Return messages that end with this content of a user: at the end of the last message, if that is a user's."""
    *earlier, last = messages
    if last.role != "user":
        return (*messages, Message(role="user", content=content))
    return (*earlier, last.model_copy(update={"content": f"{last.content}\n\n{content}"}))


def merge_system_message(request: Request) -> Request:
    """Return the request with its system text in front of the first user message, for a model without that role."""
    system = [message.content for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    if not system:
        return request
    index = next((index for index, message in enumerate(others) if message.role == "user"), None)
    if index is None:
        others.insert(0, Message(role="user", content="\n\n".join(system)))
    else:
        content = "\n\n".join((*system, others[index].content))
        others[index] = Message(role="user", content=content)
    return request.model_copy(update={"messages": tuple(others)})


def refuse_unfinished_reply(reply: Reply, request: Request | None = None) -> None:
    """Raise `Fault` for a reply that is cut off (`truncated`), `refused` or `empty`."""
    finish = (reply.finish or "").lower()
    if finish in _TRUNCATED_FINISH_REASONS:
        raise Fault(
            "truncated",
            f"the reply ended at its limit of tokens, after {len(reply.text)} characters; allow it more (max_tokens, "
            "context)",
        )
    if reply.refusal:
        raise Fault("refused", f"the model refused: {quote(reply.refusal)}")
    if finish in _WITHHELD_FINISH_REASONS:
        raise Fault("refused", f"the provider's filter withheld the reply (finish {quote(finish)})")
    if not reply.text.strip() and not reply.tool_calls:
        name = reply.other_field
        has_tools = request is not None and request.investigation and request.investigation.native
        message = "the reply has no text"
        if name in REASONING_MESSAGE_FIELDS:
            message += (
                f", and the field `{name}` has some; the server's reasoning parser took all of it for a thought: turn "
                "that parser off, or the thoughts"
            )
        elif name is not None and has_tools:
            message += (
                ": the model still calls tools after its last round (`max_steps`, `max_tokens`)"
            )
        elif name is not None:
            message += f": the model called a tool (`{name}`) where text is expected; turn off tools on the server"
        raise Fault("empty", message)


def _refuse_cut_prompt(request: Request, reply: Reply) -> None:
    """Raise `Fault` if a server read so few tokens of a prompt that it must have dropped a part of it.

    Some servers shorten what exceeds their context, say 200, and judge what is left. A count of 0 is none.
    """
    if not reply.tokens_in:
        return
    texts = [message.content for message in request.messages]
    max_characters = _MAX_CHARACTERS_PER_TOKEN * reply.tokens_in
    if sum(map(len, texts)) <= max_characters:
        return
    length = sum(len(_REPEATED_CHARACTER_PATTERN.sub(r"\1", text)) for text in texts)
    if length > max_characters:
        raise Fault(
            "overflowed",
            f"the server read {reply.tokens_in:,} tokens of a prompt of {length:,} characters, so that it cut most "
            "off; raise its context length, or shorten what is judged",
        )


def _json_objects_inside(text: str, reply_model: type[T]) -> Iterator[T]:
    for brace_match in islice(re.finditer("{", text), _MAX_JSON_OBJECTS_TRIED):
        try:
            _, end = json.JSONDecoder().raw_decode(text, brace_match.start())
        except (ValueError, RecursionError):
            continue
        answer = _parse_json_reply(text[brace_match.start() : end], reply_model)
        if not isinstance(answer, Problem):
            yield answer


def _parse_json_reply(text: str, reply_model: type[T]) -> T | Problem:
    text = double_wrong_backslashes(text)
    try:
        answer: T | ValidationError
        try:
            answer = reply_model.model_validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            if syntax_problem := _find_json_syntax_problem(error):
                return syntax_problem
            answer = error
        data = decode_json_strictly(text, allow_negative_zero=False)
        if isinstance(data, Problem):
            return data
        if isinstance(answer, ValidationError):
            return describe_validation_error(answer, reply_model, data)
        answer_as_json = answer.model_dump(mode="json", round_trip=True, by_alias=True)
        return _find_answer_flaw(data, answer_as_json) or answer
    except RecursionError:
        return Problem((), "is nested too deeply", "write it as the schema says")


def _find_json_syntax_problem(error: ValidationError) -> Problem | None:
    """Return why a text is not JSON; None if it is JSON and another error was found."""
    if error.error_count() > 1:
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] not in ("json_invalid", "string_unicode") or first["loc"]:
        return None
    problem = first["msg"].removeprefix("Invalid JSON: ")
    return Problem((), f"is not valid JSON: {problem}", f"write one JSON value, {_JSON_ALONE_HINT}")


def _find_answer_flaw(data: Any, answer_as_json: Any) -> Problem | None:
    """Return an error that validation does not catch, None if there is none.

    `answer_as_json` is `data` as the pydantic model parsed and dumped it. An error is a field left to its default, or a
    boolean for a number, since Python accepts True for 1.
    """
    values: dict[FieldPath, Any] = {}
    for path, value in iter_json_values(data):
        values.setdefault(path, value)  # of an object itself: its keys have its path, too
    for path, answer_value in iter_json_values(answer_as_json):
        if path not in values:
            if isinstance(values.get(path[:-1]), dict):
                return Problem(path, "is missing", "write every field")
        elif isinstance(answer_value, bool) is not isinstance(values[path], bool):
            return Problem(
                path,
                f"is {json.dumps(values[path])}",
                "write a value of the type that is asked for",
            )
    return None


def probability_of_true(reply: Reply, path: Sequence[str | int]) -> float | None:
    """Return the probability in [0, 1] that the boolean at `path` of a JSON reply is true.

    A path is such as `("verdicts", 1, "met")`. The probability is P(true) / (P(true) + P(false)) over the token in
    which the boolean begins and its alternatives. An alternative counts if it agrees with the reply up to the boolean,
    apart from white space before it, and continues with the whole word or a prefix of it.

    None if there is no such boolean, if no token begins either word, or if the alternatives leave more than 0.05 of the
    probability to the word that is not among them; and if the tokens do not spell the text. They may spell more around
    it: a server removes fences and thoughts from the text.
    """
    offset = find_boolean_offset(reply.text, path) if reply.tokens else None
    alternatives = None if offset is None else _token_alternatives_at(reply, offset)
    return None if alternatives is None else _share_of_true(alternatives)


def read_token_logprobs(logprobs: Any, text: str) -> tuple[Token, ...]:
    """Read log probabilities in OpenAI's format: of every token, or of none if one is unreadable, which left a gap.

    Alternatives of a token are needed only where a value of a JSON text begins, and are kept only there.
    """
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(entries, list):
        return ()
    read = list(filter(None, map(_parse_token, entries)))
    if len(read) < len(entries):
        return ()
    texts = [token for token, _ in read]
    if text not in "".join(texts):
        texts = decode_token_texts(
            [(token, entry.get("bytes")) for token, entry in zip(texts, entries, strict=True)]
        )
    indices = find_value_token_indices(text, texts)
    tokens = []
    for index, (token_text, (_, logprob)) in enumerate(zip(texts, read, strict=True)):
        top_entries = entries[index].get("top_logprobs") if index in indices else None
        others: tuple[WordLogprob, ...] = ()
        if isinstance(top_entries, list):
            alternatives = filter(None, map(_parse_token, top_entries))
            others = tuple(sorted(alternatives, key=itemgetter(1), reverse=True))
        tokens.append(Token.model_construct(text=token_text, logprob=logprob, others=others))
    return tuple(tokens)


def _parse_token(entry: Any) -> WordLogprob | None:
    """Return a token and its log probability, which is at most 0; None if there is no such pair."""
    if not isinstance(entry, dict):
        return None
    text = entry.get("token")
    number = entry.get("logprob")
    if (
        not isinstance(text, str)
        or not isinstance(number, (float, int))
        or not number <= _POSITIVE_LOGPROB_TOLERANCE
    ):
        return None
    return text, max(_MINUS_INFINITY_LOGPROB, min(0.0, float(number)))


def decode_token_texts(tokens: Sequence[tuple[str, Sequence[int] | None]]) -> list[str]:
    """Return the texts of tokens from their bytes: a character that is split belongs to the token in which it ends.

    The texts are returned unchanged if a token has no bytes, or if the bytes are not UTF-8.
    """
    utf8_decoder = getincrementaldecoder("utf-8")()
    try:
        return [
            utf8_decoder.decode(bytes(codes if isinstance(codes, Sequence) else [-1]))
            for _, codes in tokens
        ]
    except (ValueError, TypeError):
        return [text for text, _ in tokens]


def find_value_token_indices(text: str, tokens: Sequence[str]) -> Collection[int]:
    """Return the indices of a reply's tokens at which a JSON value begins, or the characters of a string value.

    Returns all indices if the text is not a JSON object or list, or if the tokens do not spell it.
    """
    ends = list(accumulate(map(len, tokens)))
    before = "".join(tokens).rfind(text)
    if before < 0 or text.lstrip(_JSON_SPACES)[:1] not in ("{", "["):
        return range(len(tokens))
    indices = set()
    for match in _JSON_VALUE_PATTERN.finditer(text):
        if match["named"]:  # the name of a field is no value
            continue
        start = before + match.start()
        indices.add(bisect_right(ends, start))
        if match[0].startswith('"'):
            indices.add(bisect_right(ends, start + 1))
    return indices


def find_boolean_offset(text: str, path: Sequence[str | int]) -> int | None:
    """Return the offset in characters of the boolean at `path` in a JSON text; None if there is none."""
    boolean_offsets = (
        match.start() for match in _STRING_OR_BOOLEAN_PATTERN.finditer(text) if match[0][0] != '"'
    )
    try:  # the words stand in the order of the document, unless a field occurs twice
        values = iter_json_values(json.loads(double_wrong_backslashes(text)))
        boolean_paths = [location for location, value in values if isinstance(value, bool)]
        offset_by_path = dict(zip(boolean_paths, boolean_offsets, strict=True))
        return offset_by_path.get(tuple(path))
    except (ValueError, RecursionError):
        return None


def _token_alternatives_at(reply: Reply, offset: int) -> list[WordLogprob] | None:
    """Return the token at an offset and its alternatives, from there on ("" if they differ before it)."""
    reply_text = "".join(token.text for token in reply.tokens)
    before = reply_text.rfind(reply.text)  # the last, as thoughts may contain a draft of it
    if before < 0:
        return None
    offset += before
    ends = accumulate(len(token.text) for token in reply.tokens)
    spans = zip(reply.tokens, ends, strict=True)
    token, end = next((token, end) for token, end in spans if offset < end)
    token_start = end - len(token.text)
    lead = token.text[: offset - token_start].rstrip(_JSON_SPACES)
    # some servers include the token itself
    others = [other for other in token.others if other[0] != token.text]
    alternatives = []
    for text, logprob in [(token.text, token.logprob), *others]:
        rest = text[len(lead) :].lstrip(_JSON_SPACES) if text.startswith(lead) else ""
        alternatives.append((rest, logprob))
    return alternatives


def _share_of_true(alternatives: list[WordLogprob]) -> float | None:
    """Return the share of `true` among the two words; None if no alternative begins either.

    A word that none begins may have at most the probability of the least likely alternative.
    """
    true_logprobs = [logprob for text, logprob in alternatives if _is_word_start(text, "true")]
    false_logprobs = [logprob for text, logprob in alternatives if _is_word_start(text, "false")]
    if not true_logprobs and not false_logprobs:
        return None
    # subtracted, so that the largest exponential neither overflows nor vanishes
    max_logprob = max(true_logprobs + false_logprobs)
    true_mass = math.fsum(math.exp(logprob - max_logprob) for logprob in true_logprobs)
    false_mass = math.fsum(math.exp(logprob - max_logprob) for logprob in false_logprobs)
    missing_mass = 0.0
    if not true_logprobs or not false_logprobs:
        least_logprob = min(logprob for _, logprob in alternatives)
        missing_mass = math.exp(least_logprob - max_logprob)
    return (
        None
        if missing_mass > _MAX_PROBABILITY_ERROR * (true_mass + false_mass + missing_mass)
        else true_mass / (true_mass + false_mass)
    )


def _is_word_start(text: str, word: str) -> bool:
    """Return True if a text is a prefix of the word, or begins with it and the word ends there."""
    if len(text) < len(word):
        return text != "" and word.startswith(text)
    return text.startswith(word) and not text[len(word) :][:1].isalnum()


class InvestigationResult(NamedTuple):
    """The end of an investigation: the reply, the request for a verdict alone, with which to repair it, and the results
    that the reply may quote."""

    request: Request
    answered: AnsweredCall
    results: tuple[ToolResult, ...]


class Investigator(Protocol):
    """Lets the model look things up before it answers a request (`graphs.investigate_graph`)."""

    def outline(self, value: Any) -> Any:
        """Return a variable of a prompt with an outline in the place of each long text that a tool can read."""

    def with_responses(self, responses: Sequence[Response]) -> "Investigator":
        """Return one whose tools number these responses in this order."""

    async def investigate(
        self, client: "JudgeClient", request: Request, purpose: str | None
    ) -> InvestigationResult:
        """Return the reply with which the model ends its investigation. Raises `Fault`."""


ReplyCheck = Callable[[T], str | Awaitable[str | None] | None]
"""A check of a reply: returns a message about an error in it, or None if it is valid."""

DEFAULT_SAFETY_CONFIG = SafetyConfig()
DEFAULT_CALLS_CONFIG = CallsConfig()
CUT_OFF_FAULT_KIND = "cut-off"


@lru_cache(maxsize=64)
def _cached_answer_schema(reply_model: type[BaseModel]) -> ConstantJsonObject:
    return ConstantJsonObject(answer_schema(reply_model))


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """A reply, unwrapped, that validates as the requested pydantic model, and its call."""

    value: T
    reply: Reply
    call: Call


class JudgeClient:
    """The requests of one group, or one task, to a model. `calls` are all calls, new or cached, by id, and `lookups`
    those of tools; the clients of several models share them.

    `safety` selects the defences; `key` is the project's, for the marks of fences. Replies are kept in `sink`. Of the
    `settings` of calls, a client itself follows `parameters`, `reply` and `system`; the others are the gateway's. The
    client of an `EvaluatorInput` or `DeriverInput` lists its calls with the verdict or material, under a `purpose`.
    """

    def __init__(
        self,
        gateway: Gateway,
        safety: SafetyConfig = DEFAULT_SAFETY_CONFIG,
        key: bytes = b"",
        sink: CallSink | None = None,
        calls: dict[str, Call] | None = None,
        lookups: dict[str, Lookup] | None = None,
        settings: CallsConfig = DEFAULT_CALLS_CONFIG,
    ) -> None:
        self.calls = {} if calls is None else calls
        self.lookups = {} if lookups is None else lookups
        self.safety = safety
        self._render_options = RenderOptions(
            safety.fence, safety.reminder, key, gateway.backend.mark_length
        )
        self.gateway = gateway
        self._sink = sink
        self._parameters = {**(gateway.backend.own_parameters or {}), **settings.parameters}
        self._reads_among_words = settings.reply == "one-object" and safety.whole_reply
        self._joins_system = settings.system == "joined"
        self._deadline_time: float | None = None
        self._group = self  # its deadline counts for the clients of all inputs
        self.loop: asyncio.AbstractEventLoop | None = None
        self._logs: tuple[CallLog, ...] = ()
        self._purpose = JUDGE_CALL_PURPOSE
        self._investigator: Investigator | None = None

    def with_call_logs(
        self,
        *call_logs: CallLog,
        purpose: str = JUDGE_CALL_PURPOSE,
        investigator: Investigator | None = None,
    ) -> "JudgeClient":
        """Return a client of the same group, for the running event loop, that lists its calls in these logs.

        With an `investigator` the model may look things up before it answers.
        """
        client = copy(self)
        client._logs = call_logs
        client._purpose = purpose
        client._investigator = investigator or self._investigator
        client.loop = asyncio.get_running_loop()
        client.__dict__.pop("fence", None)  # a fence lists the marks of its own messages alone
        return client

    def with_responses(self, responses: Sequence[Response]) -> "JudgeClient":
        """Return a client for a prompt that shows the responses in this order, as its tools number them."""
        if self._investigator is None:
            return self
        investigator = self._investigator.with_responses(responses)
        return self.with_call_logs(*self._logs, purpose=self._purpose, investigator=investigator)

    @cached_property
    def fence(self) -> TextFence:
        """The fence for text by others in your own messages (see `chat_request`)."""
        options = self._render_options
        return TextFence(options.key, options.fence, options.mark_length)

    @property
    def chat_model(self) -> "JudgeChatModel":
        """The model as a langchain-core chat model, whose requests are those of this client."""
        # imported lazily: only needed for LangChain
        from jurygraph.models.backends.chat_model import JudgeChatModel

        return JudgeChatModel(client=self)

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        return self.gateway.backend.model

    def request(
        self,
        prompt: Prompt,
        reply_model: type[BaseModel],
        variables: ReadOnlyFields,
        *,
        sample: int = 0,
        logprobs: bool = False,
        max_reply_tokens: int = 0,
    ) -> Request:
        """Build a request, equal for equal arguments. `max_reply_tokens` counts if it is more than the config's."""
        if self._investigator is not None:
            variables = {
                name: self._investigator.outline(variable_value)
                for name, variable_value in variables.items()
            }
        rendered_prompt = prompt.render(self._render_options, **variables)
        capabilities = self.gateway.backend.capabilities
        parameters = {"max_tokens": max(self.gateway.settings.max_tokens, max_reply_tokens)}
        if logprobs and capabilities.logprobs:
            parameters |= {"logprobs": True, "top_logprobs": capabilities.top_logprobs}
        return self._build_request(
            Request.model_construct,  # all parts are validated already, and validating a schema is slow
            {**parameters, **self._parameters},
            reply_model,
            messages=rendered_prompt.messages,
            prompt=prompt.id,
            prompt_version=prompt.full_version,
            sample=sample,
            marks=rendered_prompt.marks,
        )

    def chat_request(
        self,
        messages: Sequence[Message],
        reply_model: type[BaseModel] | None = None,
        sample: int = 0,
        **settings: Any,
    ) -> Request:
        """Build a request from your own messages; the reply is free text if there is no `reply_model`.

        `settings` replace the config's parameters, such as `temperature`. Text by others belongs inside the `fence`.
        """
        content = "".join(message.content for message in messages)
        parameters = {
            "max_tokens": self.gateway.settings.max_tokens,
            **self._parameters,
            **settings,
            "logprobs": False,
        }
        marks = [mark for mark in self.fence.marks if mark in content]
        return self._build_request(
            Request,
            parameters,
            reply_model,
            messages=tuple(messages),
            sample=sample,
            marks=tuple(sorted(marks, key=content.index)),
        )

    def _build_request(
        self,
        build: Callable[..., Request],
        parameters: JsonFields,
        reply_model: type[BaseModel] | None,
        **fields: Any,
    ) -> Request:
        backend = self.gateway.backend
        parameters = {"temperature": 0.0, **parameters}
        if not parameters.get("logprobs"):  # the config may turn them off
            parameters |= {"logprobs": None, "top_logprobs": None}
        sent_parameters = {name: value for name, value in parameters.items() if value is not None}
        answer = None if reply_model is None else _cached_answer_schema(reply_model)
        form = "text" if reply_model is None else backend.capabilities.form
        request = build(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            parameters=sent_parameters,
            answer=answer,
            form=form,
            **fields,
        )
        if self._joins_system:
            request = merge_system_message(request)
        return with_schema_instructions(request) if request.form == "instructed" else request

    async def ask(self, request: Request, purpose: str | None = None) -> AnsweredCall:
        """Return the reply as it is, and its call.

        Raises `Fault`, also for a cut-off, refused or empty reply, and the errors that end a run.
        """
        request, answered_call, _ = await self._answer(request, purpose)
        refuse_unfinished_reply(answered_call.reply, request)
        self._note_accepted_call(answered_call.call.id, answered_call.call.id)
        return answered_call

    async def judge(
        self,
        request: Request,
        reply_model: type[T],
        check: "ReplyCheck[T] | None" = None,
        purpose: str | None = None,
        find_reply_problem: ProblemFinder[T] | None = None,
        record_tool_results: "Callable[[Sequence[ToolResult]], object] | None" = None,
    ) -> ParsedReply[T]:
        """Return the reply parsed as `reply_model`; a malformed reply is sent back to the model once for repair.

        One in which `find_reply_problem` finds a problem is malformed. A reply for which `check` returns a message is
        sent back, too; if its repair is malformed, the first reply counts. A slow `check` is a coroutine function, so
        that the event loop continues. `record_tool_results` gets the results of tools that the reply may quote, before
        it is read.

        Raises `Fault`, whose `call` is the call with the malformed reply, and the errors that end a run.
        """
        request, first, results = await self._answer(request, purpose)
        if record_tool_results is not None:
            record_tool_results(results)
        parsed_reply = None
        try:
            parsed_reply = self._read_reply(first, reply_model, request, find_reply_problem)
            message = check(parsed_reply.value) if check else None
            problem = await message if isinstance(message, Awaitable) else message
            if problem is None:
                return parsed_reply
        except Fault as fault:
            if fault.kind != "malformed":
                self.gateway.drop_from_cache(first.call.id)
                raise
            problem = "; ".join(filter(None, (str(fault), fault.remedy)))
        try:
            repair_request = self.gateway.backend.find_repair(
                request, make_repair_request(request, first.reply, problem)
            )
            second = await self.send(repair_request, REPAIR_CALL_PURPOSE, first.call.id)
            return self._read_reply(second, reply_model, request, find_reply_problem)
        except Fault as fault:
            if parsed_reply is not None and fault.cause == "response":
                return parsed_reply
            if parsed_reply is None:
                for call in filter(None, (first.call.id, fault.call)):
                    self.gateway.drop_from_cache(call)
            fault.call = fault.call or first.call.id  # the first call was paid for
            raise

    async def _answer(self, request: Request, purpose: str | None) -> InvestigationResult:
        """Return the first reply that is an answer: where the model may look things up, the last of that."""
        if self._investigator is None:
            return InvestigationResult(request, await self.send(request, purpose), ())
        return await self._investigator.investigate(self, request, purpose)

    def _read_reply(
        self,
        answered_call: AnsweredCall,
        reply_model: type[T],
        request: Request,
        find_reply_problem: ProblemFinder[T] | None,
    ) -> ParsedReply[T]:
        """Return the parsed reply to a request, or to the repair of one, whose messages have the first reply."""
        call = answered_call.call
        try:
            value = parse_reply(
                answered_call.reply,
                reply_model,
                self.safety.whole_reply,
                find_reply_problem,
                allow_words_around=self._reads_among_words,
                request=request,
            )
        except Fault as fault:
            fault.call = call.id
            self.gateway.note_read_reply(answered_call, fault)
            raise
        self.gateway.note_read_reply(answered_call, None)
        self._note_accepted_call(request.digest, call.id)
        return ParsedReply(
            value,
            extract_reply_json(answered_call.reply, allow_words_around=self._reads_among_words),
            call,
        )

    def render(self, prompt: Prompt, **variables: Any) -> RenderedPrompt:
        """Return the messages of a prompt, with this project's fences."""
        return prompt.render(self._render_options, **variables)

    async def look_up(self, planned_lookup: PlannedLookup) -> StoredLookup:
        """Return the planned call of a tool as it is stored, or else made; it is then durable, and listed."""
        stored_lookup = await self.gateway.look_up(planned_lookup, self._sink)
        self.lookups[planned_lookup.lookup.id] = stored_lookup.lookup
        for log in self._unclosed_logs:
            log.add_lookup(stored_lookup.lookup)
        return stored_lookup

    async def send(
        self, request: Request, purpose: str | None, after: str | None = None
    ) -> AnsweredCall:
        """Send a request, which may go on from the call `after`, and return its reply, which may call tools.

        Its place in the logs is that of its start, which does not depend on the time of a reply. Raises `Fault`, and
        the errors that end a run.
        """
        use = CallUse(id=request.digest, purpose=purpose or self._purpose)
        for log in self._unclosed_logs:
            log.add(use, after)
            log.waiting_requests[request.digest] = request
        group = self._group
        limit = self.gateway.settings.deadline
        if group._deadline_time is None and limit is not None:  # from the group's first request
            group._deadline_time = asyncio.get_running_loop().time() + limit
        try:
            answered_call = await self.gateway.ask(request, group._deadline_time, self._sink)
        except BaseException as error:
            fault = error if isinstance(error, Fault) else None
            if self._unclosed_logs:
                self._add_unanswered_call(request, fault)
            if fault is not None:
                fault.raise_if_run_ends()
            raise
        finally:
            for log in self._logs:
                log.waiting_requests.pop(request.digest, None)
        if self._unclosed_logs or not self._logs:  # a reply after the final answer changes nothing
            self.calls[answered_call.call.id] = answered_call.call
        try:
            _refuse_cut_prompt(request, answered_call.reply)
        except Fault as fault:
            fault.call = answered_call.call.id
            # a server with more context is asked again
            self.gateway.drop_from_cache(answered_call.call.id)
            raise
        return answered_call

    def _add_unanswered_call(self, request: Request, fault: Fault | None) -> None:
        """Add a call that failed, or that is cut off: then it does not matter if it waits, is sent or has a reply."""
        attempts, kind = (1, CUT_OFF_FAULT_KIND) if fault is None else (fault.attempts, fault.kind)
        if attempts and request.digest not in self.calls:
            call = self.calls[request.digest] = make_call_record(
                request, attempts=attempts, fault=kind
            )
            self.gateway.store_unanswered(request, call, self._sink)

    @property
    def _unclosed_logs(self) -> list[CallLog]:
        return [log for log in self._logs if not log.is_closed]

    @property
    def has_waiting_request(self) -> bool:
        """True while a request of an input has no reply."""
        return any(log.waiting_requests for log in self._unclosed_logs)

    def close_call_logs(self) -> None:
        """List calls under way as cut off, and no later ones: the answer is final."""
        for log in self._unclosed_logs:
            log.is_closed = True
            for request in list(log.waiting_requests.values()):
                self._add_unanswered_call(request, None)

    def _note_accepted_call(self, first: str, call: str) -> None:
        for log in self._unclosed_logs:
            log.accepted[first] = call
