"""One line of JSON as a noun. What is ambiguous in JSON is refused: double keys, NaN, half characters."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import Noun
from jurygraph.sources.complaint import Complaint, Path, complaint, described, shortened
from jurygraph.sources.files import Line, Place, TextFile

N = TypeVar("N", bound=Noun)
T = TypeVar("T")

_DEEPEST = 100
_MOST_DIGITS = 300


def read_lines(file: TextFile, noun: type[N]) -> Iterator[tuple[Line, N]]:
    """Every line of the file as a noun."""
    for line in file.lines():
        found = _read(line.text, noun)
        if isinstance(found, Complaint):
            refuse(file.name, line.number, found)
        yield line, found


def read_again(file: TextFile, place: Place, noun: type[N]) -> N:
    """The noun of a line that `read_lines` gave before."""
    return noun.model_validate_json(file.read(place), strict=True)


def refuse(name: str, line: int, wrong: Complaint) -> NoReturn:
    """Raise what is wrong in a line of a file."""
    raise InputError(f"{name}, line {line}{f', field {wrong.field}' if wrong.path else ''}: {wrong}")


def _read(text: str, noun: type[N]) -> N | Complaint:
    """The noun in a line, or what is wrong with it."""
    value = _plain(text)
    if isinstance(value, Complaint):
        return value
    if not isinstance(value, dict):
        return Complaint((), f"is {described(value)}", 'each line is one JSON object, such as {"id": "a", …}')
    try:
        return noun.model_validate_json(text, strict=True)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["type"] != "json_invalid":
            return complaint(error, noun, value)
        half = next((path for path, part in _parts(value) if isinstance(part, str) and not _is_whole(part)), ())
        return Complaint(half, "holds half of a surrogate pair, which is no character", "write the whole character")


class _Fault(ValueError):
    """What our own hooks refuse while JSON is read; `path` leads there from the value that they were given."""

    def __init__(self, problem: str, remedy: str, path: Path = ()) -> None:
        self.problem, self.remedy, self.path = problem, remedy, path
        super().__init__(problem)


def _plain(text: str) -> Any:
    """The value of a JSON text, or what is wrong with it."""
    try:
        value = _decoded(text)
        if text.count("{") + text.count("[") > _DEEPEST and _depth(value) > _DEEPEST:
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        return _broken(text, error)
    except RecursionError:
        return Complaint((), "is nested too deeply", f"keep it within {_DEEPEST} levels")


def _decoded(text: str) -> Any:
    try:
        return _STRICT.decode(text)
    except _Fault:
        parts = _parts(_MARKING.decode(text))
        path, fault = next((path, part) for path, part in parts if isinstance(part, _Fault))
        return Complaint((*path, *fault.path), fault.problem, fault.remedy)


def _broken(text: str, error: json.JSONDecodeError) -> Complaint:
    """Why a text is no JSON."""
    nul, cr = text.find("\0") + 1, text.find("\r") + 1
    if nul:
        return Complaint((), f"holds a NUL byte at column {nul}", "copy the file again, or save it as UTF-8")
    if text.startswith("\ufeff", error.pos):
        return Complaint((), f"holds a byte-order mark at column {error.colno}", "take it out; joined files have such")
    if cr:
        wrong = f"holds a CR at column {cr}, which ends no line"
        return Complaint((), wrong, "end lines with LF, and write \\r within a text")
    if error.msg == "Extra data":
        wrong = f"goes on at column {error.colno} after its JSON object"
        return Complaint((), wrong, "put each object on a line of its own")
    wrong = f"is not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    return Complaint((), wrong, "each line is one whole JSON object")


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part of a value with its path; a key has the path of its object."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from _parts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _parts(inner, (*path, index))


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Fault("stands twice in one object", "keep one of them", (twice,))
    return values


def _no_constant(name: str) -> NoReturn:
    raise _Fault(f"{name} is not JSON", "leave the field out where there is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Fault(f"{shortened(digits)} is too large a number", "a 64-bit float holds up to 1.7e308")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise _Fault(f"{shortened(digits, 20)} has {len(digits)} digits", "write so long a number as text")
    return int(digits)


def _marking(hook: Callable[[Any], T]) -> Callable[[Any], T | _Fault]:
    """The hook, with its fault in the place of the value, so that the field can be found in which it stands."""

    def marked(given: Any) -> T | _Fault:
        try:
            return hook(given)
        except _Fault as fault:
            return fault

    return marked


_STRICT = json.JSONDecoder(
    object_pairs_hook=_without_doubles, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
)
_MARKING = json.JSONDecoder(
    object_pairs_hook=_marking(_without_doubles),
    parse_constant=_marking(_no_constant),
    parse_float=_marking(_finite),
    parse_int=_marking(_whole),
)
