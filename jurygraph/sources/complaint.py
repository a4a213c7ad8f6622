"""What is wrong with a value, in words: pydantic's first error as a field, a problem and a remedy."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

_COMPARED = 10_000
_OWN_FIELD = re.compile(r"`([\w.\[\]]+)` ")
LARGEST_BITS = 1023
"""Bits of a whole number that a 64-bit float surely holds."""


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong: where it stands, what it is, and what would be right."""

    path: Path
    problem: str
    remedy: str | None = None

    def __str__(self) -> str:
        return self.problem if self.remedy is None else f"{self.problem}; {self.remedy}"

    @property
    def field(self) -> str:
        """The path as one writes it, of which no step is endless."""
        return shortened(written(tuple(s if isinstance(s, int) else shortened(s) for s in self.path)), 200)


def complaint(error: ValidationError, noun: type[BaseModel], value: Any) -> Complaint:
    """What to say of `value`, which is no `noun`. An unknown key comes first: it explains what is missing."""
    found = error.errors(include_url=False)
    first = next((e for e in found if e["type"] == "extra_forbidden"), found[0])
    path, given = _place(first, value)
    rivals = [e for e in found if _place(e, value)[0][: len(path)] == path]
    deepest = max(rivals, key=lambda e: len(_place(e, value)[0]))
    if first["type"] != "extra_forbidden" and len(_place(deepest, value)[0]) > len(path):
        return _say(deepest, *_place(deepest, value), noun)
    wanted = dict.fromkeys(_WANTED[e["type"]] for e in rivals if e["type"] in _WANTED)
    if len(wanted) > 1:
        return Complaint(path, f"is {described(given)}", f"write {' or '.join(wanted)}")
    return _say(first, path, given, noun)


def written(path: Path) -> str:
    """A path as one writes it: `responses[2].text`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The question whether the nearest known name was meant; None where none is near."""
    near = nearest_name(name, known)
    return None if near is None else f"did you mean {shortened(near)}?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None where none is near."""
    return next(iter(difflib.get_close_matches(name, islice(known, _COMPARED), n=1, cutoff=0.5)), None)


def described(value: Any) -> str:
    """What kind of value this is, and a little of it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > LARGEST_BITS:
        return "a number too large for a 64-bit float"
    if isinstance(value, int | float):
        return f"the number {shortened(str(value))}" if math.isfinite(value) else "not a finite number"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None:
        return "null"
    return "an object" if isinstance(value, Mapping) else "a list"


def quoted(name: str) -> str:
    """The beginning of a name, in quotes."""
    return repr(shortened(name))


def shortened(text: str, limit: int = 60) -> str:
    """The beginning of a long text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


_WANTED = {
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

_BOUNDS = {
    "greater_than": ("gt", "write a number above {}"),
    "greater_than_equal": ("ge", "write a number of {} or more"),
    "less_than": ("lt", "write a number below {}"),
    "less_than_equal": ("le", "write a number of {} or less"),
    "too_short": ("min_length", "give it at least {}"),
    "too_long": ("max_length", "give it at most {}"),
}


def _place(error: ErrorDetails, value: Any) -> tuple[Path, Any]:
    """The error's path through the value itself, without pydantic's names for branches of a union; and the value."""
    path: list[str | int] = []
    for step in error["loc"]:
        if _holds(value, step):
            value = value[step]
            path.append(step)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    if error["loc"][-1:] == ("[key]",):  # what is wrong is a key itself
        value = path[-1]
    return tuple(path), value


def _holds(value: Any, step: str | int) -> bool:
    if isinstance(value, list | tuple):
        return isinstance(step, int) and step < len(value)
    return isinstance(value, Mapping) and step in value


def _say(error: ErrorDetails, path: Path, value: Any, noun: type[BaseModel]) -> Complaint:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WANTED:
        return Complaint(path, f"is {described(value)}", f"write {_WANTED[kind]}")
    if kind in _BOUNDS:
        key, remedy = _BOUNDS[kind]
        size = f"has {context['actual_length']} entries" if "actual_length" in context else f"is {described(value)}"
        return Complaint(path, size, remedy.format(f"{context[key]:g}"))
    return _PHRASES.get(kind, _other)(error, path, value, noun)


def _missing(_: ErrorDetails, path: Path, value: Any, noun: type[BaseModel]) -> Complaint:
    if isinstance(path[-1], int):  # lists of a fixed length are pairs here
        return Complaint(path[:-1], f"is a list of {len(value)}", "write a pair of two")
    owner = next((n.__name__ for n in _nouns_at(noun, path[:-1])), noun.__name__)
    name = _plain(owner)
    return Complaint(path, "is missing", f"{name} need it" if name.endswith("s") else f"every {name} needs it")


def _unknown(_: ErrorDetails, path: Path, __: Any, noun: type[BaseModel]) -> Complaint:
    known = dict.fromkeys(name for owner in _nouns_at(noun, path[:-1]) for name in owner.model_fields)
    return Complaint(path, "unknown", nearest(str(path[-1]), known) or f"known here: {', '.join(known)}")


def _choice(error: ErrorDetails, path: Path, value: Any, _: type[BaseModel]) -> Complaint:
    context = error.get("ctx", {})
    expected = str(context.get("expected", context.get("expected_tags")))
    near = nearest_name(str(value), re.findall(r"'([^']*)'", expected))
    hint = f"did you mean {near}? " if near else ""
    return Complaint(path, f"is {described(value)}", f"{hint}write {expected}")


def _gate_kind(error: ErrorDetails, path: Path, value: Any, noun: type[BaseModel]) -> Complaint:
    key = str(error.get("ctx", {})["discriminator"]).strip("'")
    if error["type"] == "union_tag_not_found":
        return Complaint((*path, key), "is missing", f"say which `{key}` it is")
    return _choice(error, (*path, key), value[key], noun)


def _empty(_: ErrorDetails, path: Path, __: Any, ___: type[BaseModel]) -> Complaint:
    return Complaint(path, "is empty", "write at least one character")


def _lengthy(error: ErrorDetails, path: Path, value: Any, _: type[BaseModel]) -> Complaint:
    most = error.get("ctx", {})["max_length"]
    return Complaint(path, f"has {len(value)} characters", f"write at most {most}")


def _not_finite(_: ErrorDetails, path: Path, __: Any, ___: type[BaseModel]) -> Complaint:
    return Complaint(path, "is not a finite number", "write a number that a 64-bit float can hold")


def _own_words(error: ErrorDetails, path: Path, _: Any, __: type[BaseModel]) -> Complaint:
    """What a noun says of itself; where it begins with a field of its own, in backquotes, that is what is wrong."""
    words = str(error.get("ctx", {}).get("error", error["msg"]))
    named = _OWN_FIELD.match(words)
    return Complaint(path, words) if named is None else Complaint((*path, *_steps(named[1])), words[named.end() :])


def _steps(field: str) -> Path:
    """The path that is written so."""
    return tuple(int(step) if step.isdigit() else step for step in re.findall(r"\w+", field))


def _other(error: ErrorDetails, path: Path, value: Any, _: type[BaseModel]) -> Complaint:
    return Complaint(path, f"is {described(value)}", error["msg"])


_PHRASES: dict[str, Callable[[ErrorDetails, Path, Any, type[BaseModel]], Complaint]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _choice,
    "union_tag_invalid": _gate_kind,
    "union_tag_not_found": _gate_kind,
    "string_too_short": _empty,
    "string_too_long": _lengthy,
    "finite_number": _not_finite,
    "value_error": _own_words,
}


def _plain(name: str) -> str:
    """`ResponseLine` as one says it: response."""
    words = re.findall(r"[A-Z][a-z]*", name)
    return " ".join(word.lower() for word in words if word not in {"Line", "Use", "Config", "Stated"}) or "config"


def _nouns_at(annotation: Any, path: Path) -> list[type[BaseModel]]:
    """The nouns that may stand at a path, following a noun's annotations."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not path:
            return [annotation]
        field = annotation.model_fields.get(str(path[0]))
        return [] if field is None else _nouns_at(field.annotation, path[1:])
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return [noun for part in parts for noun in _nouns_at(part, path)]
    if origin in (tuple, dict) and path:
        return _nouns_at(parts[origin is dict], path[1:])
    return _nouns_at(parts[0], path) if hasattr(annotation, "__metadata__") else []
