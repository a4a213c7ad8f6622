"""Words of messages: pydantic's first error as field, problem and remedy; near names; values, names and numbers."""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from traceback import extract_tb
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin
from unicodedata import normalize

from jurygraph.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound="BaseModel")
T = TypeVar("T", bound=str)
_ModelClass = type["BaseModel"]
FieldPath = tuple[str | int, ...]

_MAX_SUGGESTION_CANDIDATES = 10_000
DECIMAL_COMMA_PATTERN = re.compile(r"\s*[-+]?\d+,\d+\s*")
"""A number as many languages write it."""
_FIELD_PREFIX_PATTERN = re.compile(r"`([\w.\[\]]+)` ")
_LIBRARY_PATHS = (str(Path(__file__).parent), sysconfig.get_path("stdlib"))
MAX_INT_BITS = 1023
"""Bits of a whole number that fits a 64-bit float for certain."""


def locate_user_code(error: BaseException) -> str:
    """Return the innermost line of user code of an exception, without its folder; empty if there is none."""
    for frame in reversed(extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        is_library_code = (
            frame.filename.startswith(_LIBRARY_PATHS) or "site-packages" in frame.filename
        )
        if file.is_absolute() and not is_library_code:
            return f" ({file.name}, line {frame.lineno}, in {frame.name})"
    return ""


@dataclass(frozen=True)
class Problem:
    """One error: the path of the value, the problem, and what would be right."""

    path: FieldPath
    problem: str
    remedy: str | None = None

    def __str__(self) -> str:
        return self.problem if self.remedy is None else f"{self.problem}; {self.remedy}"

    @property
    def field(self) -> str:
        """The path in its usual notation, with long steps shortened."""
        steps = tuple(step if isinstance(step, int) else shorten(step) for step in self.path)
        return shorten(format_field_path(steps), 200)


def validate(model: type[M], value: Any) -> M | Problem:
    """Return a value as a model, or the error in it."""
    from pydantic import ValidationError  # imported lazily: most commands only shorten texts

    try:
        return model.model_validate(value)
    except ValidationError as error:
        return describe_validation_error(error, model, value)


def describe_validation_error(error: ValidationError, model: _ModelClass, value: Any) -> Problem:
    """Describe why `value` is no valid `model`. An unknown key comes first: it often explains a missing field."""
    errors = error.errors(include_url=False)
    unknown_keys = [e for e in errors if e["type"] == "extra_forbidden"]
    first = (unknown_keys or errors)[0]
    if not unknown_keys:
        # Of a union, the alternative that fits best has the deepest error.
        path = _error_path(first, value)
        inner = [e for e in errors if _error_path(e, value)[: len(path)] == path]
        first = max(inner, key=lambda e: len(_error_path(e, value)))
    path, invalid_value = _locate_error(first, value)
    alternatives = [e for e in errors if _error_path(e, value) == path]
    type_error_kinds = (*_EXPECTED_VALUE_BY_ERROR_TYPE, "is_instance_of", "literal_error")
    value_errors = [e for e in alternatives if e["type"] not in type_error_kinds]
    if not value_errors and not isinstance(invalid_value, str):
        # The problem is not that it is none of some words.
        value_errors = [e for e in alternatives if e["type"] != "literal_error"]
    if value_errors:
        first = value_errors[0]
    expected = dict.fromkeys(
        _EXPECTED_VALUE_BY_ERROR_TYPE[e["type"]]
        for e in alternatives
        if e["type"] in _EXPECTED_VALUE_BY_ERROR_TYPE
    )
    if len(expected) > 1:
        return Problem(
            path, f"is {describe_value(invalid_value)}", f"write {' or '.join(expected)}"
        )
    return _describe_validation_error(first, path, invalid_value, model)


def first_validation_message(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    problem = first["msg"].removeprefix("Value error, ")
    return f"{where}: {problem}" if where else problem


def format_field_path(path: FieldPath) -> str:
    """Return a path in its usual notation: `responses[2].text`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(steps).removeprefix(".")


_SUGGESTION_SIMILARITY = 0.6


def did_you_mean(
    name: str, candidates: Iterable[str], min_similarity: float = _SUGGESTION_SIMILARITY
) -> str | None:
    """Return a question for the nearest known name, "did you mean …?"; None if no name is near."""
    similar_name = nearest_name(name, candidates, min_similarity)
    if similar_name is None:
        return None
    text = shorten(similar_name) if similar_name == similar_name.strip() else quote(similar_name)
    looks_alike = normalize("NFC", similar_name) == normalize("NFC", name)
    if looks_alike and similar_name != name:
        text += ", in another Unicode form"
    return f"did you mean {text}?"


def suggest_known_name(name: str, known_names: Collection[str]) -> str:
    """Return a question for the nearest known name; if none is near, all of them."""
    return did_you_mean(name, known_names) or f"there are {', '.join(known_names) or 'none'}"


def split_names(text: str | None) -> list[str]:
    """Return the names of an option, which are joined by commas; none where the option is not given."""
    return [] if text is None else [name.strip() for name in text.split(",")]


def select_known_names(problem: str, names: Sequence[str], choices: Sequence[T]) -> tuple[T, ...]:
    for name in names:
        if name not in choices:
            raise InputError(f"{problem} {name!r}; {suggest_known_name(name, choices)}")
    return tuple(choice for choice in choices if choice in names)


def fold_name(name: str) -> str:
    """Return what names have in common that differ only in case, spaces or Unicode form."""
    return "".join(normalize("NFC", name).casefold().split())


_ID_PART_PATTERN = re.compile(r"0*(^-(?=\d)|\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s./:-])")


def fold_id(name: str) -> str:
    """Return what ids have in common that differ only in case, blanks, signs or leading zeros, as R-001 and `r 1`.

    Numbers, such as 0.5 and 0.05, or -1 and 1, differ.
    """
    return " ".join(_ID_PART_PATTERN.findall(normalize("NFC", name).casefold()))


def notes_on_similar_names(
    names: Iterable[str],
    other_remedy: str = "",
    fold: Callable[[str], str] = fold_name,
    differences: str = "case, spaces or Unicode form",
) -> Iterator[str]:
    """Yield a note on the names of people, of agents, or of items, that differ only in what `fold` leaves out."""
    first: dict[str, str] = {}
    pairs = []
    for name in sorted(set(names)):
        other = first.setdefault(fold(name), name)
        if other != name:
            pairs.append(f"{quote(other)} and {quote(name)}")
    if pairs:
        yield (
            f"{join_names(pairs)} differ only in {differences}, and count as two; write one name if they are "
            f"one{other_remedy}"
        )


_RESPONSE_NAMES = ("completion", "output", "response")
_FOREIGN_NAMES_BY_FIELD = {
    "messages": ("message",),
    "query": ("prompt", "question", "input", "instruction", "messages", "problem", "message"),
    "text": (*_RESPONSE_NAMES, "answer", "content"),
    "responses": (*_RESPONSE_NAMES, "completions", "outputs", "answers", "candidates"),
    "reference": (
        *(*_RESPONSE_NAMES, "answer", "content"),
        *("expected", "ground_truth", "gold", "target", "solution", "label"),
    ),
    "context": ("contexts", "documents", "passages"),
    "agent": ("model", "system", "policy", "bot", "assistant"),
    "judges": ("model",),
    "components": ("component",),
    "reward": ("weight",),
    "trajectory_match_mode": ("match_mode",),
}
"""Names of other projects by the field that they mean; a name that is in several rows means the first one there is."""


def find_meant_field(name: str, fields: Collection[str]) -> str | None:
    """Return the field that a name of other projects means; None if it means none of these."""
    for field, foreign_names in _FOREIGN_NAMES_BY_FIELD.items():
        if field in fields and name.casefold() in foreign_names:
            return field
    return None


def nearest_name(name: str, candidates: Iterable[str], min_similarity: float = 0.5) -> str | None:
    """Return the known name that differs only in case, or zeros before a number, else the most similar one.

    If none has the likeness that is usual, it is the only one that has all words of the name, or None.
    """
    names = list(islice(candidates, _MAX_SUGGESTION_CANDIDATES))
    spelling = _fold_spelling(name)
    for other in names:
        if _fold_spelling(other) == spelling:
            return other
    similar_names = difflib.get_close_matches(name, names, n=1, cutoff=min_similarity)
    if not similar_names and min_similarity <= _SUGGESTION_SIMILARITY:
        words = {*spelling.split()}
        similar_names = [other for other in names if words <= {*_fold_spelling(other).split()}]
    return similar_names[0] if len(similar_names) == 1 else None


def _fold_spelling(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.casefold())


def describe_value(value: Any) -> str:
    """Describe the type of a value, with the beginning of it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        return "a number too large for a 64-bit float"
    if isinstance(value, int | float):
        return (
            f"the number {shorten(str(value))}" if math.isfinite(value) else "not a finite number"
        )
    if isinstance(value, str):
        return f"the text {quote(value)}"
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else describe_type(value)


def describe_decimal_comma(path: FieldPath, number: str) -> Problem:
    return Problem(
        path, f"is {quote(number)}, with a decimal comma", f"write {number.replace(',', '.')}"
    )


def describe_type(value: Any) -> str:
    """Return the name of the type of a Python value, with an article: "a dict", "an int"."""
    name = shorten(type(value).__name__)
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}"


_MAX_NAMES_LISTED = 5


def join_names(names: Iterable[str]) -> str:
    """Return the names in a row, with the number of those beyond the fifth."""
    listed_names = list(names)
    excess = len(listed_names) - _MAX_NAMES_LISTED
    if excess > 0:
        listed_names[_MAX_NAMES_LISTED:] = [f"{excess} more"]
    return ", ".join(listed_names)


def list_first(texts: Sequence[str], limit: int) -> list[str]:
    """Return the first texts, and last, if there are others, how many these are."""
    first_texts = [*texts[:limit]]
    return first_texts if len(texts) <= limit else [*first_texts, f"and {len(texts) - limit} more"]


def quote(name: str) -> str:
    """Return the beginning of a name, in quotes."""
    return repr(shorten(name))


def quote_prose(words: str) -> str:
    """Return the beginning of a model's or a person's words, in quotation marks of prose."""
    return f"“{shorten(words, 80)}”"


def shell_quote(value: object) -> str:
    """Return a value as an argument in a shell; a path that begins with a hyphen is not taken for an option."""
    is_like_option = isinstance(value, PathLike) and str(value).startswith("-")
    return shlex.quote(f"./{value}" if is_like_option else str(value))


def plural_of(noun: str) -> str:
    """Return the plural of a noun, which may be a user's, such as the name of a column; one in -s may be a plural."""
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    if re.search("(ss|x|ch|sh)$", noun):
        return f"{noun}es"
    return noun if noun.endswith("s") else f"{noun}s"


def format_count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else plural_of(noun)}"


def format_time(milliseconds: int) -> str:
    """Format a time in milliseconds since 1970 as a date and a time of day, UTC."""
    return datetime.fromtimestamp(milliseconds / 1000.0, UTC).strftime("%Y-%m-%d %H:%M")


def shorten(text: str, limit: int = 60) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def format_number_for_sentence(value: float | None) -> str:
    """Format a number for a sentence: at most four decimals, never minus zero; `none` for None."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def format_factor_for_sentence(value: float) -> str:
    """Format a weight, threshold or gain: as `format_number_for_sentence`, but a small one with four significant
    digits."""
    digits = max(4, 3 - math.floor(math.log10(abs(value)))) if value else 4
    return f"{value + 0.0:.{digits}f}".rstrip("0").rstrip(".")


_NOT_FINITE_PATTERN = re.compile(r"\s*[-+]?\.?(nan|inf|infinity)\s*", re.IGNORECASE)

_EXPECTED_VALUE_BY_ERROR_TYPE = {
    "string_type": "text, in quotes",
    "float_type": "a number, without quotes",
    "int_type": "a whole number, without quotes",
    "int_from_float": "a whole number",
    "bool_type": "true or false, without quotes",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "none_required": "null",
}

_OMITTED_MODEL_NAME_WORDS = {"Line", "Use", "Config", "Reply", "Spec", "Imported"}
"""Words in the names of models that no message repeats: `ResponseLine` is a "response"."""

_MESSAGE_TEMPLATES_BY_ERROR_TYPE = {
    "greater_than": ("is {value}", "write a number above {gt:g}"),
    "greater_than_equal": ("is {value}", "write a number of {ge:g} or more"),
    "less_than": ("is {value}", "write a number below {lt:g}"),
    "less_than_equal": ("is {value}", "write a number of {le:g} or less"),
    "too_short": ("has {actual_length} entries", "give it at least {min_length:g}"),
    "too_long": ("has {actual_length} entries", "give it at most {max_length:g}"),
    "string_too_short": ("is empty", "write at least one character"),
    "string_too_long": ("has {characters} characters", "write at most {max_length}"),
    "invalid-json-value": (
        "is {value}",
        "write a list, an object, text, a number, true, false or null",
    ),
    "finite_number": ("is not a finite number", "write a number that a 64-bit float can hold"),
}
"""Problem and remedy by pydantic's kind of error, with places for the values of its context."""


def _locate_error(error: ErrorDetails, value: Any) -> tuple[FieldPath, Any]:
    """Return the path of an error in the value, without pydantic's names for parts of a union, and the value there."""
    location = error["loc"]
    path = []
    for step in location:
        is_list_index = (
            isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)
        )
        is_mapping_key = isinstance(value, Mapping) and step in value
        if is_list_index or is_mapping_key:
            value = value[step]
            path.append(step)
    if error["type"] == "missing" and path[-1:] != [location[-1]]:  # it may be null
        path.append(location[-1])
    if location[-1:] == ("[key]",) and path[-1:] == [location[-2]]:  # the error is in a key itself
        value = path[-1]
    return tuple(path), value


def _error_path(error: ErrorDetails, value: Any) -> FieldPath:
    path, _ = _locate_error(error, value)
    return path


def _describe_validation_error(
    error: ErrorDetails, path: FieldPath, value: Any, model: _ModelClass
) -> Problem:
    kind = error["type"]
    location = error["loc"]
    is_collection = isinstance(value, list | tuple | Mapping)
    # Such as the fields of a model.
    if _count_path_indices(location) > _count_path_indices(path) and not is_collection:
        return Problem(path, f"is {describe_value(value)}", "write a list")
    if location[-1:] == ("[key]",) and isinstance(value, Mapping):  # a key that is an object
        key = next(key for key in value if not isinstance(key, str | int))
        return Problem(
            path, f"has a key that is {describe_value(key)}", "write its name, in quotes"
        )
    if kind.startswith("float") and isinstance(value, str):
        if DECIMAL_COMMA_PATTERN.fullmatch(value):
            return describe_decimal_comma(path, value)
        if _NOT_FINITE_PATTERN.fullmatch(value):
            return Problem(path, f"is {quote(value)}, not a finite number", "write one")
    if kind in _EXPECTED_VALUE_BY_ERROR_TYPE:
        field = next((step for step in reversed(path) if isinstance(step, str)), None)
        example = _EXAMPLE_BY_ERROR_AND_FIELD.get((kind, field), "")
        return Problem(
            path,
            f"is {describe_value(value)}",
            f"write {_EXPECTED_VALUE_BY_ERROR_TYPE[kind]}{example}",
        )
    if kind in _MESSAGE_TEMPLATES_BY_ERROR_TYPE:
        context = error.get("ctx", {})
        parts = {**context, "value": describe_value(value), "characters": len(str(value))}
        problem, remedy = _MESSAGE_TEMPLATES_BY_ERROR_TYPE[kind]
        return Problem(path, problem.format(**parts), remedy.format(**parts))
    if kind in _PROBLEM_DESCRIBERS:
        return _PROBLEM_DESCRIBERS[kind](error, path, value, model)
    return Problem(path, f"is {describe_value(value)}", error["msg"])


RUBRIC_FORMS = " with `criteria`, a text with a criterion in each line, or a list of criteria"
_EXAMPLE_BY_ERROR_AND_FIELD: Mapping[tuple[str, str | None], str] = {
    ("model_type", "responses"): " with its `text` or `messages`",
    ("tuple_type", "scale"): ", such as [1, 5]",
    ("model_type", "rubric"): RUBRIC_FORMS,
    ("string_type", "model"): ": openai/gpt-5-mini, or openai-compatible:URL#NAME",
}
"""What is said of the type that a field should have, by error and name."""


_WORDS_FOR_MUST = ("veto", "critical", "required", "mandatory", "essential", "knockout", "hard")


def _count_path_indices(path: FieldPath) -> int:
    return sum(isinstance(step, int) for step in path)


def _describe_missing_field(
    error: ErrorDetails, path: FieldPath, value: Any, model: _ModelClass
) -> Problem:
    if isinstance(path[-1], int):  # the only lists of a fixed length are pairs
        return Problem(path[:-1], f"is a list of {len(value)}", "write a pair of two")
    owner = _find_field_owners(error, path, model)[0]
    field = owner.model_fields.get(path[-1])
    if field is not None and field.description is not None:
        return Problem(path, "is missing", f"write it: {' '.join(field.description.split())}")
    words = re.findall(r"[A-Z][a-z]*", owner.__name__)
    plain_words = [word for word in words if word not in _OMITTED_MODEL_NAME_WORDS]
    name = " ".join(plain_words).lower() or "config"
    need = f"{name} need it" if name.endswith("s") else f"every {name} needs it"
    return Problem(path, "is missing", need)


def _describe_unknown_field(
    error: ErrorDetails, path: FieldPath, value: Any, model: _ModelClass
) -> Problem:
    models_with_field = _find_field_owners(error, path, model)
    fields = [owner.model_fields.items() for owner in models_with_field]
    named_fields = chain.from_iterable(fields)
    names = dict.fromkeys(field.alias or name for name, field in named_fields)
    names_hint = f"known here: {', '.join(names)}" if names else "leave it out"
    name = str(path[-1])
    meant_field = find_meant_field(name, names)
    if "anchors" in names and find_meant_field(name, ("query",)):  # a question as a criterion
        meant_field = "text"
    if meant_field is not None:
        return Problem(path, "unknown", f"did you mean {meant_field}?")
    hint = did_you_mean(name, names)
    if name == "penalty" and "weight" in names:
        hint = "a penalty has a negative weight: `weight: -1`"
    if name in _WORDS_FOR_MUST and "must" in names:
        hint = "a fault there costs everything with `must: true`"
    return Problem(path, "unknown", hint or names_hint)


def _describe_wrong_choice(
    error: ErrorDetails, path: FieldPath, value: Any, _: _ModelClass
) -> Problem:
    context = error.get("ctx", {})
    expected = str(context.get("expected", context.get("expected_tags")))
    choices = re.findall(r"'([^']*)'", expected)
    similar_choice = nearest_name(str(value), choices)
    if value in _WORDS_FOR_MUST and "must" in choices:
        similar_choice = "must"
    hint = f"did you mean {similar_choice}? " if similar_choice else ""
    return Problem(path, f"is {describe_value(value)}", f"{hint}write {expected}")


def _describe_wrong_union_tag(
    error: ErrorDetails, path: FieldPath, value: Any, model: _ModelClass
) -> Problem:
    key = str(error.get("ctx", {})["discriminator"]).strip("'")
    if error["type"] == "union_tag_not_found":
        return Problem((*path, key), "is missing", f"say which `{key}` it is")
    return _describe_wrong_choice(error, (*path, key), value[key], model)


def _describe_validator_error(
    error: ErrorDetails, path: FieldPath, _: Any, __: _ModelClass
) -> Problem:
    """Return a validator's own message; if it begins with a field in backquotes, the error is about that field."""
    message = str(error.get("ctx", {}).get("error", error["msg"]))
    field = _FIELD_PREFIX_PATTERN.match(message)
    if field is None:
        return Problem(path, message)
    words = re.findall(r"\w+", field[1])
    steps = [int(word) if word.isdecimal() else word for word in words]
    return Problem((*path, *steps), message[field.end() :])


_PROBLEM_DESCRIBERS = {
    "missing": _describe_missing_field,
    "extra_forbidden": _describe_unknown_field,
    "literal_error": _describe_wrong_choice,
    "union_tag_invalid": _describe_wrong_union_tag,
    "union_tag_not_found": _describe_wrong_union_tag,
    "value_error": _describe_validator_error,
}


def _find_field_owners(
    error: ErrorDetails, path: FieldPath, model: _ModelClass
) -> list[_ModelClass]:
    """Return the models that may have the field of an error: of a union, those that the error's location names."""
    models = _find_pydantic_models(model, path[:-1]) or [model]
    models_named_in_error = [
        m for m in models if not {m.__name__, *_literal_tags(m)}.isdisjoint(error["loc"])
    ]
    return models_named_in_error or models


def _literal_tags(model: _ModelClass) -> Iterable[Any]:
    """Return the values of a model's literal fields, such as `kind`."""
    for field in model.model_fields.values():
        if get_origin(field.annotation) is Literal:
            yield from get_args(field.annotation)


def _find_pydantic_models(annotation: Any, path: FieldPath) -> list[_ModelClass]:
    """Return the models that may occur at a path, by the annotations of a model."""
    from pydantic import BaseModel  # imported lazily: most commands only shorten texts

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not path:
            return [annotation]
        field = annotation.model_fields.get(str(path[0]))
        return [] if field is None else _find_pydantic_models(field.annotation, path[1:])
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if origin in (Union, UnionType):
        return list(chain.from_iterable(_find_pydantic_models(part, path) for part in parts))
    if origin in (tuple, dict) and path:
        return _find_pydantic_models(parts[origin is dict], path[1:])
    return _find_pydantic_models(parts[0], path) if hasattr(annotation, "__metadata__") else []


INVISIBLE_CHARACTER_RANGES = (
    "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
)
"""A regex class of characters that affect a terminal or a line reader but are invisible to a person."""

_HIDDEN_CHARACTER_PATTERN = re.compile(f"[\x00-\x1f{INVISIBLE_CHARACTER_RANGES}]")


def escape_hidden_characters(line: str) -> str:
    """Return a line with control and invisible characters as escapes, so that it cannot control a terminal."""
    if line.isascii() and line.isprintable():  # fast path: true of nearly every id and number
        return line
    return _HIDDEN_CHARACTER_PATTERN.sub(_escape_match, line)


_HIDDEN_EXCEPT_LINE_BREAK_PATTERN = re.compile(f"[\x00-\x08\x0b-\x1f{INVISIBLE_CHARACTER_RANGES}]")


def escape_multiline_text(text: str) -> str:
    """Return the text with control and invisible characters as escapes, except tabs and the ends of lines."""
    text = text.replace("\r\n", "\n")  # what Windows ends a line with
    return _HIDDEN_EXCEPT_LINE_BREAK_PATTERN.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
