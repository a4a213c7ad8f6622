"""Structured replies: the schema that is asked for, the noun or the named fault in a reply, and one round of repair.

A reply counts as a whole or not at all. Nobody looks for JSON inside it: what a model quotes from a response, or writes
around its answer, never becomes one.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from jurygraph.models.asking import Reply, Request
from jurygraph.models.faults import Fault
from jurygraph.schema import Message
from jurygraph.sources.complaint import Complaint, complaint, quoted, shortened

T = TypeVar("T", bound=BaseModel)

_CUT_OFF = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
_WITHHELD = frozenset({"content_filter", "safety", "refusal", "recitation", "blocklist", "prohibited_content", "spii"})
_LONGEST_MESSAGE = 300
_LONGEST_REPLY = 4_000
_MOST_SOUGHT = 5_000
_ALONE = "no code fence, and no word before or after it"


def answer_schema(noun: type[BaseModel]) -> dict[str, JsonValue]:
    """The JSON schema of a noun in the subset that OpenAI's strict mode, vLLM, SGLang and llama.cpp take alike.

    Every field is required, in the order of the noun, and no other is allowed. Definitions stand where they are used,
    save those that recur. Kept are types, descriptions, enumerations, alternatives, and the bounds of numbers and of
    list lengths; llama.cpp's own grammars pass over those of numbers that are not whole. Left out are titles,
    defaults, formats, patterns, lengths of texts and multiples, which one or the other refuses; `read` still checks
    what they say. It is made anew at each call, in half a millisecond: keep it.

    Raises `TypeError` where the subset has no words for the noun: objects with free keys, tuples of mixed parts, sets,
    and values of any type.
    """
    said = noun.model_json_schema()
    definitions = said.get("$defs", {})
    recurring = frozenset(name for name in definitions if name in _reached(name, definitions))
    strict = _Strict(noun.__name__, definitions, recurring)
    root = strict.schema(definitions[_named(said)] if "$ref" in said else said, "")
    if root.get("type") != "object":
        raise TypeError(f"{noun.__name__} is no object, which an answer has to be; give it a field")
    return {**root, "$defs": strict.kept()} if recurring else root


def read(reply: Reply, noun: type[T], whole: bool = True) -> T:
    """The noun that the whole reply is; nothing but JSON's own white space may stand around it.

    Not `whole`, the first JSON object in it that is such a noun does: many read replies so, and what comes of it can be
    measured.

    Types are strict, and every field is there once and is known, defaults or not. NaN, infinities, −0 and numbers that
    no float holds are refused, and so are halves of surrogate pairs and values nested too deeply.

    Raises `Fault`, in this order: `truncated`, `refused`, `empty`, `malformed`.
    """
    _refuse_unfinished(reply)
    answer = _answer(reply.text, noun)
    if isinstance(answer, Complaint) and not whole:
        answer = next(_inside(reply.text, noun), answer)
    if isinstance(answer, Complaint):
        where = f"field {answer.field}:" if answer.path else "the reply"
        raise Fault("malformed", shortened(f"{where} {answer}", _LONGEST_MESSAGE))
    return answer


def repaired(request: Request, reply: Reply, fault: Fault) -> Request:
    """The one round of repair: the request again, with the reply (its first 4,000 characters) and what is wrong."""
    told = f"That cannot be used: {fault}.\nWrite the whole answer again as JSON alone: {_ALONE}."
    given = shortened(reply.text, _LONGEST_REPLY) if reply.text.strip() else "(no text)"  # empty messages are refused
    added = (Message(role="assistant", content=given), Message(role="user", content=told))
    return request.model_copy(update={"messages": request.messages + added})


def instructed(request: Request) -> Request:
    """The request with its schema in words, for an endpoint that takes none; as it is where it has none.

    The words end the last message: all before them stays a prefix that a provider's cache shares with requests for
    other schemas, and what they say comes after the response that is judged. They join the user's message, since many
    chat templates refuse two of a role in a row, and a system message that is not the first.
    """
    if request.answer is None:
        return request
    schema = json.dumps(request.answer, ensure_ascii=False, separators=(",", ":"))
    words = (
        f"Answer with JSON alone: {_ALONE}. It is one value of this JSON Schema, its fields in this order:\n{schema}"
    )
    *before, last = request.messages
    if last.role == "user":
        ending = [Message(role="user", content=f"{last.content}\n\n{words}")]
    else:
        ending = [last, Message(role="user", content=words)]
    return request.model_copy(update={"messages": (*before, *ending), "form": "instructed"})


def _refuse_unfinished(reply: Reply) -> None:
    finish = (reply.finish or "").lower()
    if finish in _CUT_OFF:
        size = f"{len(reply.text)} characters"
        raise Fault(
            "truncated", f"the reply ended at its limit of tokens, after {size}; allow it more (max_tokens, context)"
        )
    if reply.refusal:
        raise Fault("refused", f"the model refused: {quoted(reply.refusal)}")
    if finish in _WITHHELD:
        raise Fault("refused", f"the provider's filter withheld the reply (finish {quoted(finish)})")
    if not reply.text.strip():
        raise Fault("empty", "the reply has no text")


def _answer(text: str, noun: type[T]) -> T | Complaint:
    try:
        return _validated(text, noun)
    except RecursionError:
        return Complaint((), "is nested too deeply", "write it as the schema says")


def _inside(text: str, noun: type[T]) -> Iterator[T]:
    """The nouns that stand in a text as JSON objects."""
    for opening in islice(re.finditer("{", text), _MOST_SOUGHT):
        try:
            _, end = json.JSONDecoder().raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        answer = _answer(text[opening.start() : end], noun)
        if not isinstance(answer, Complaint):
            yield answer


def _validated(text: str, noun: type[T]) -> T | Complaint:
    try:
        answer = noun.model_validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        return _no_json(error) or _invalid(error, text, noun)
    return _flaw(_JSON.decode(text), answer.model_dump(mode="json", round_trip=True, by_alias=True)) or answer


def _invalid(error: ValidationError, text: str, noun: type[BaseModel]) -> Complaint:
    said = _JSON.decode(text)
    return _flaw(said, said) or complaint(error, noun, said)


def _no_json(error: ValidationError) -> Complaint | None:
    """Why a text is no JSON; None where it is, and something else is wrong."""
    if error.error_count() > 1:
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] not in ("json_invalid", "string_unicode") or first["loc"]:
        return None
    why = first["msg"].removeprefix("Invalid JSON: ")
    return Complaint((), f"is not valid JSON: {why}", f"write one JSON value, {_ALONE}")


def _flaw(said: Any, told: Any) -> Complaint | None:
    """What validation lets pass, where `told` is what the noun made of `said`.

    That is a complaint in the place of a value, a field left to its default, or a boolean for a number, since Python
    takes True for 1.
    """
    if isinstance(said, Complaint):
        return said
    if isinstance(said, bool) is not isinstance(told, bool):
        return Complaint((), f"is {json.dumps(said)}", "write a value of the type that is asked for")
    if isinstance(said, dict):
        told = told if isinstance(told, dict) else said
        missing = next((name for name in told if name not in said), None)
        if missing is not None:
            return Complaint((missing,), "is missing", "write every field")
        return _first_flaw((name, part, told.get(name, part)) for name, part in said.items())
    if isinstance(said, list):
        told = told if isinstance(told, list) and len(told) == len(said) else said
        return _first_flaw(zip(range(len(said)), said, told, strict=True))
    return None


def _first_flaw(parts: Iterable[tuple[str | int, Any, Any]]) -> Complaint | None:
    for step, said, told in parts:
        flaw = _flaw(said, told)
        if flaw is not None:
            return Complaint((step, *flaw.path), flaw.problem, flaw.remedy)
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Complaint:
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return Complaint((twice,), "stands twice in one object", "keep one of them")


def _constant(name: str) -> Complaint:
    return Complaint((), f"is {name}, which is not JSON", "write a number")


def _real(digits: str) -> float | Complaint:
    value = float(digits)
    if math.isinf(value):
        return Complaint((), f"is {shortened(digits)}, which no 64-bit float holds", "write a smaller number")
    if value == 0 and digits[0] == "-":
        return Complaint((), f"is {shortened(digits)}", "write 0")
    return value


def _whole(digits: str) -> int | Complaint:
    value = _real(digits)
    return value if isinstance(value, Complaint) else int(digits)


_JSON = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_constant, parse_float=_real, parse_int=_whole)
"""Puts a complaint in the place of what JSON leaves ambiguous, so that the field in which it stands is found."""


class _Strict(NamedTuple):
    """Writes schemas of one noun in the strict subset."""

    noun: str
    definitions: Mapping[str, Any]
    recurring: frozenset[str]

    def kept(self) -> dict[str, JsonValue]:
        """The definitions that cannot stand where they are used."""
        return {name: self.schema(self.definitions[name], name) for name in sorted(self.recurring)}

    def schema(self, said: Mapping[str, Any], at: str) -> dict[str, JsonValue]:
        """One schema; `at` says which, for errors."""
        if "$ref" in said:
            return self._referred(said, at)
        if unknown := sorted(said.keys() - _TAKEN - _LEFT_OUT):
            raise self._cannot(at, f"has {unknown[0]}")
        if said.get("type") == "object":
            return self._object(said, at)
        if not said.keys() & {"type", "enum", "const", "anyOf", "oneOf"}:
            raise self._cannot(at, "may be anything")
        found = {name: said[name] for name in _AS_SAID if name in said}
        if "const" in said:
            found["enum"] = [said["const"]]
        if alternatives := said.get("anyOf", said.get("oneOf")):
            found["anyOf"] = [self.schema(one, at) for one in alternatives]
        if said.get("type") == "array":
            found["items"] = self.schema(said.get("items", {}), f"{at}[]")
        return found

    def _referred(self, said: Mapping[str, Any], at: str) -> dict[str, JsonValue]:
        name = _named(said)
        if name in self.recurring:
            return {"$ref": said["$ref"]}  # strict mode takes no word beside a reference
        beside = {key: value for key, value in said.items() if key != "$ref"}
        return self.schema({**self.definitions[name], **beside}, at)

    def _object(self, said: Mapping[str, Any], at: str) -> dict[str, JsonValue]:
        if "properties" not in said or said.get("additionalProperties"):
            raise self._cannot(at, "has free keys")
        fields = {name: self.schema(one, f"{at}.{name}") for name, one in said["properties"].items()}
        found = {name: said[name] for name in _AS_SAID if name in said}
        return {**found, "properties": fields, "required": list(fields), "additionalProperties": False}

    def _cannot(self, at: str, why: str) -> TypeError:
        field = f"{self.noun}{'' if at.startswith('.') or not at else ' '}{at}"
        return TypeError(f"{field} {why}, which no strict schema can say; use fields, tuples of one type, or Literals")


_AS_SAID = (
    *("type", "description", "enum", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)
_TAKEN = frozenset((*_AS_SAID, "const", "anyOf", "oneOf", "items", "properties", "required", "additionalProperties"))
_LEFT_OUT = frozenset(
    (
        *("$defs", "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
        *("format", "pattern", "minLength", "maxLength", "multipleOf"),
    )
)


def _named(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).removeprefix("#/$defs/")


def _reached(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that one leads to."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(_references(definitions[waiting.pop()])) - reached
        reached |= new
        waiting += new
    return reached


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield _named(schema)
        yield from (name for part in schema.values() for name in _references(part))
    elif isinstance(schema, list):
        yield from (name for part in schema for name in _references(part))
