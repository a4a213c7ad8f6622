"""Read lines of JSON as models. Ambiguous JSON is rejected: duplicate keys, NaN, unpaired surrogates."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.messages import Path, Problem, describe_validation_error, describe_value, shorten
from jurygraph.schema import FrozenModel
from jurygraph.sources.files import ByteRange, Line, TextFile

N = TypeVar("N", bound=FrozenModel)
T = TypeVar("T")

_MAX_DEPTH = 100
_MAX_DIGITS = 300


def read_lines(file: TextFile, model: type[N]) -> Iterator[tuple[Line, N]]:
    """Yield every line of the file as a model."""
    for line in file.lines():
        result = _parse_line(line.text, model)
        if isinstance(result, Problem):
            raise_line_error(file.name, line.number, result)
        yield line, result


def reread_line(file: TextFile, place: ByteRange, model: type[N]) -> N:
    """Return the model of a line that `read_lines` has yielded before."""
    return model.model_validate_json(file.read(place), strict=True)


def raise_line_error(name: str, line: int, problem: Problem) -> NoReturn:
    """Raise the error in a line of a file."""
    raise InputError(f"{name}, line {line}{f', field {problem.field}' if problem.path else ''}: {problem}")


def _parse_line(text: str, model: type[N]) -> N | Problem:
    """Return the model in a line, or the error in it."""
    value = _parse_value(text)
    if isinstance(value, Problem):
        return value
    if not isinstance(value, dict):
        return Problem((), f"is {describe_value(value)}", 'each line is one JSON object, such as {"id": "a", …}')
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["type"] != "json_invalid":
            return describe_validation_error(error, model, value)
        path = next((path for path, part in _parts(value) if isinstance(part, str) and not _has_no_surrogate(part)), ())
        return Problem(path, "holds half of a surrogate pair, which is not a character", "write the whole character")


class _Fault(ValueError):
    """An error that our hooks find while JSON is parsed; `path` leads to it from the value that the hook received."""

    def __init__(self, problem: str, remedy: str, path: Path = ()) -> None:
        self.problem, self.remedy, self.path = problem, remedy, path
        super().__init__(problem)


def _parse_value(text: str) -> Any:
    """Return the value of a JSON text, or the error in it."""
    try:
        value = _decode(text)
        if text.count("{") + text.count("[") > _MAX_DEPTH and _depth(value) > _MAX_DEPTH:
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        return _describe_invalid(text, error)
    except RecursionError:
        return Problem((), "is nested too deeply", f"keep it within {_MAX_DEPTH} levels")


def _decode(text: str) -> Any:
    try:
        return _STRICT_DECODER.decode(text)
    except _Fault:
        parts = _parts(_FAULT_DECODER.decode(text))
        path, fault = next((path, part) for path, part in parts if isinstance(part, _Fault))
        return Problem((*path, *fault.path), fault.problem, fault.remedy)


def _describe_invalid(text: str, error: json.JSONDecodeError) -> Problem:
    """Explain why a text is not JSON."""
    nul, cr = text.find("\0") + 1, text.find("\r") + 1
    if nul:
        return Problem((), f"holds a NUL byte at column {nul}", "copy the file again, or save it as UTF-8")
    if text.startswith("\ufeff", error.pos):
        return Problem((), f"holds a byte-order mark at column {error.colno}", "take it out; joined files have such")
    if cr:
        problem = f"holds a CR at column {cr}, which ends no line"
        return Problem((), problem, "end lines with LF, and write \\r within a text")
    if error.msg == "Extra data":
        problem = f"goes on at column {error.colno} after its JSON object"
        return Problem((), problem, "put each object on a line of its own")
    problem = f"is not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    return Problem((), problem, "each line is one whole JSON object")


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every part of a value with its path; a key has the path of its object."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from _parts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _parts(inner, (*path, index))


def _has_no_surrogate(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Fault("occurs twice in one object", "keep one of them", (duplicate,))
    return values


def _reject_constant(name: str) -> NoReturn:
    raise _Fault(f"{name} is not JSON", "leave the field out where there is no number")


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Fault(f"{shorten(digits)} is too large a number", "a 64-bit float holds up to 1.7e308")
    return value


def _parse_whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _Fault(f"{shorten(digits, 20)} has {len(digits)} digits", "write so long a number as text")
    return int(digits)


def _returning_faults(hook: Callable[[Any], T]) -> Callable[[Any], T | _Fault]:
    """Wrap a hook so that it returns its fault in the place of the value, to find the field of the fault."""

    def call_hook(value: Any) -> T | _Fault:
        try:
            return hook(value)
        except _Fault as fault:
            return fault

    return call_hook


_STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=_require_unique_keys,
    parse_constant=_reject_constant,
    parse_float=_parse_finite,
    parse_int=_parse_whole,
)
_FAULT_DECODER = json.JSONDecoder(
    object_pairs_hook=_returning_faults(_require_unique_keys),
    parse_constant=_returning_faults(_reject_constant),
    parse_float=_returning_faults(_parse_finite),
    parse_int=_returning_faults(_parse_whole),
)
