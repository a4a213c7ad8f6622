"""The notations in which tasks speak of texts and data, RE2 patterns and JSONPaths (RFC 9535), and configs of code.

The patterns that `match` and `search` take within a JSONPath are RE2 too: nothing here tries all ways to match.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jsonpath_rfc9535 as jsonpath
import re2
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    """An RE2 pattern, compiled: what it takes grows with a text and no faster. Raises ValueError."""
    try:
        return re2.compile(text, _QUIET)
    except re2.error as error:
        said = error.args[0] if error.args else error
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"is no RE2 pattern ({words}); RE2 has no look-around and no back references") from None


@lru_cache(maxsize=1024)
def path(text: str) -> Any:
    """A JSONPath, compiled. Raises ValueError."""
    try:
        return _ENVIRONMENT.compile(text)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"is no JSONPath ({error}); write one such as $[*].name") from None


def path_to(location: tuple[str | int, ...]) -> str:
    """The JSONPath of one location, normalised as RFC 9535 has it."""
    return jsonpath.JSONPathNode(value=None, location=location, parent=None, root=None).path()


def place(location: Sequence[str | int]) -> tuple[tuple[bool, str | int], ...]:
    """Where a path leads, as something that can be sorted: numbers and names do not compare."""
    return tuple((isinstance(step, str), step) for step in location)


def code(dotted: str) -> Any:
    """What package.module.name, or package.module:name, is in Python. Raises ValueError."""
    module, _, name = dotted.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{dotted!r} cannot be had ({error})") from error


def require(field: str, text: str, read: Callable[[str], Any]) -> None:
    """Raise ValueError naming the field where its text is not in the notation that `read` reads."""
    try:
        read(text)
    except ValueError as error:
        raise ValueError(f"`{field}` {error}") from None


class _Matches(FilterFunction):
    """`match` and `search`. What is no text, or no pattern, does not match."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 - as the library declares it
    return_type = ExpressionType.LOGICAL

    def __init__(self, how: str) -> None:
        self._how = how

    def __call__(self, text: object, words: object) -> bool:
        if not isinstance(text, str) or not isinstance(words, str):
            return False
        try:
            return getattr(pattern(words), self._how)(text) is not None
        except ValueError:
            return False


class _Environment(jsonpath.JSONPathEnvironment):
    max_recursion_depth = 300
    """Deeper than any data can be."""

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions |= {"match": _Matches("fullmatch"), "search": _Matches("search")}


_ENVIRONMENT = _Environment()
