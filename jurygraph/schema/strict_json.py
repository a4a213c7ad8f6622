"""Decode JSON strictly: duplicate keys, NaN, infinities and numbers that no 64-bit float can hold are refused."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from jurygraph.messages import Path, Problem, shorten


def decode_strictly(text: str, *, allow_negative_zero: bool = True) -> Any:
    """Return the value of a JSON text, or the `Problem` of its first part that JSON leaves ambiguous.

    Raises `json.JSONDecodeError` where the text is no JSON, and `RecursionError` where it is nested too deeply.
    """
    try:
        return _quick_decoder(allow_negative_zero).decode(text)
    except _AmbiguousPart:
        value = _decoder(allow_negative_zero, Problem).decode(text)
    path, problem = next((path, part) for path, part in iter_parts(value) if isinstance(part, Problem))
    return Problem((*path, *problem.path), problem.problem, problem.remedy)


def iter_parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every part of a value with its path; a key has the path of its object."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from iter_parts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from iter_parts(inner, (*path, index))


class _AmbiguousPart(Exception):
    """A part of a text that JSON leaves ambiguous."""


@cache
def _quick_decoder(allow_negative_zero: bool) -> json.JSONDecoder:
    """Return a decoder that stops at the first ambiguous part, as few texts have one."""

    def stop(path: Path, problem: str, remedy: str) -> None:
        raise _AmbiguousPart

    return _decoder(allow_negative_zero, stop)


def _decoder(allow_negative_zero: bool, refuse: Callable[[Path, str, str], Any]) -> json.JSONDecoder:
    """Return a decoder that puts what `refuse` returns in the place of each ambiguous part, which locates it."""

    def parse_object(pairs: list[tuple[str, Any]]) -> Any:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return refuse((duplicate,), "occurs twice in one object", "keep one of them")

    def parse_constant(name: str) -> Any:
        return refuse((), f"{name} is not JSON", "write a number, or leave the field out")

    def parse_float(digits: str) -> Any:
        value = float(digits)
        if math.isinf(value):
            return refuse((), f"{shorten(digits)} is too large a number", "a 64-bit float holds up to 1.7e308")
        if value == 0 and digits[0] == "-" and not allow_negative_zero:
            return refuse((), f"is {shorten(digits)}", "write 0")
        return value

    def parse_int(digits: str) -> Any:
        if math.isinf(float(digits)):
            return refuse((), f"{shorten(digits, 20)} has {len(digits)} digits", "write so long a number as text")
        return int(digits) if allow_negative_zero or digits != "-0" else parse_float(digits)

    return json.JSONDecoder(
        object_pairs_hook=parse_object, parse_constant=parse_constant, parse_float=parse_float, parse_int=parse_int
    )
