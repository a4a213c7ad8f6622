"""One line of JSON as a noun. What is ambiguous in JSON is refused: double keys, NaN, half characters."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import Noun
from jurygraph.sources.complaint import Complaint, Path, complaint, described, shortened
from jurygraph.sources.files import TextFile

N = TypeVar("N", bound=Noun)

_DEEPEST = 100


class _Fault(ValueError):
    """What our own hooks refuse while JSON is read."""


def read_lines(file: TextFile, noun: type[N]) -> Iterator[tuple[int, N]]:
    """Every line of the file as a noun, with its number."""
    for number, line in file.lines():
        yield number, read_line(line, noun, f"{file.name}, line {number}")


def read_line(line: str, noun: type[N], place: str) -> N:
    """The line as a noun; `place` stands in front of what is wrong with it."""
    value = _plain(line, place)
    if not isinstance(value, dict):
        wrong = described(value)
        raise InputError(f'{place}: is {wrong}; each line is one JSON object, such as {{"id": "a", …}}')
    try:
        return noun.model_validate_json(line, strict=True)
    except ValidationError as error:
        refuse(place, _complaint(error, noun, value))


def refuse(place: str, wrong: Complaint) -> NoReturn:
    """Raise what is wrong at a place in a file."""
    raise InputError(f"{place}, field {shortened(wrong.field, 200)}: {wrong}" if wrong.path else f"{place}: {wrong}")


def _plain(line: str, place: str) -> Any:
    try:
        value = json.loads(
            line, object_pairs_hook=_without_doubles, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
        if line.count("{") + line.count("[") > _DEEPEST and _depth(value) > _DEEPEST:
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        wrong = f"is not valid JSON: {error.msg} at column {error.colno}"
        raise InputError(f"{place}: {wrong}; each line is one whole JSON object") from None
    except RecursionError:
        raise InputError(f"{place}: is nested too deeply; keep it within {_DEEPEST} levels") from None
    except _Fault as error:
        raise InputError(f"{place}{error}") from None


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Fault(f", field {shortened(twice)}: stands twice in one object; keep one of them")
    return values


def _no_constant(name: str) -> NoReturn:
    raise _Fault(f": {name} is not JSON; leave the field out where there is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Fault(f": {shortened(digits)} is too large a number; a 64-bit float holds up to 1.7e308")
    return value


def _whole(digits: str) -> int:
    if len(digits) > 300:
        raise _Fault(f": {shortened(digits, 20)} has {len(digits)} digits; write so long a number as text")
    return int(digits)


def _complaint(error: ValidationError, noun: type[Noun], value: Any) -> Complaint:
    if error.errors(include_url=False)[0]["type"] != "json_invalid":
        return complaint(error, noun, value)
    half = next(_halves(value, ()), ())
    return Complaint(half, "holds half of a surrogate pair, which is no character", "write the whole character")


def _halves(value: Any, path: Path) -> Iterator[Path]:
    """Where texts stand that cannot be encoded."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _halves(key, path)
            yield from _halves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _halves(inner, (*path, index))
