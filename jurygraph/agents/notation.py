"""Patterns (RE2) and values (JSONPaths of RFC 9535) in tasks and configs, and names that have to be known there.

No pattern here can backtrack: a JSONPath has no `match` and `search`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache, partial
from typing import Annotated, Any

import re2
from pydantic import AfterValidator

from jurygraph.errors import PlanError
from jurygraph.messages import quote, suggest_known_name

_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Any:
    """Compile an RE2 pattern; matching takes time linear in the text. Raises ValueError."""
    try:
        return re2.compile(text, _RE2_OPTIONS)
    except re2.error as error:
        error_detail = error.args[0] if error.args else error
        message = (
            error_detail.decode(errors="replace")
            if isinstance(error_detail, bytes)
            else str(error_detail)
        )
        raise ValueError(
            f"is not a valid RE2 pattern ({message}); RE2 has no look-around and no back references"
        ) from None


@cache
def _jsonpath_environment() -> Any:
    """Return what compiles JSONPaths. Imported lazily, as below: few configs have one."""
    from jsonpath_rfc9535 import JSONPathEnvironment

    class RestrictedJSONPathEnvironment(JSONPathEnvironment):
        max_recursion_depth = 300
        """Greater than the depth of any data accepted here."""

        def setup_function_extensions(self) -> None:
            """Leave `match` and `search` out: their patterns could backtrack over a response's data."""
            super().setup_function_extensions()
            del self.function_extensions["match"], self.function_extensions["search"]

    return RestrictedJSONPathEnvironment()


@lru_cache(maxsize=1024)
def compile_jsonpath(text: str) -> Any:
    """Compile a JSONPath. Raises ValueError."""
    from jsonpath_rfc9535 import JSONPathError

    try:
        return _jsonpath_environment().compile(text)
    except JSONPathError as error:
        raise ValueError(
            f"is not a valid JSONPath ({error}); write one such as $[*].name"
        ) from None


def location_to_jsonpath(location: tuple[str | int, ...]) -> str:
    """Return the JSONPath of a location, normalised as in RFC 9535, 2.7."""
    from jsonpath_rfc9535 import JSONPathNode

    return JSONPathNode(value=None, location=location, parent=None, root=None).path()


def location_sort_key(location: Sequence[str | int]) -> tuple[Any, ...]:
    """Return a sortable key of a location: numbers and names do not compare with each other."""
    return tuple((isinstance(step, str), step) for step in location)


def _check_expression(compile_function: Callable[[str], Any], text: str) -> str:
    compile_function(text)
    return text


PATTERN_VALIDATOR = AfterValidator(partial(_check_expression, compile_pattern))
PatternText = Annotated[str, PATTERN_VALIDATOR]
"""A text that is an RE2 pattern, as the type of a field."""

JsonPathText = Annotated[str, AfterValidator(partial(_check_expression, compile_jsonpath))]
"""A text that is a JSONPath, as the type of a field."""


def require_known_names(
    where: str, names: Iterable[str], known_names: Collection[str] | None, kind: str = "column"
) -> None:
    """Raise PlanError for the first name that is not known; if nothing is known of them (None), any may exist."""
    if known_names is None:
        return
    for name in names:
        if name not in known_names:
            hint = suggest_known_name(name, sorted(known_names))
            raise PlanError(f"{where}: there is no {kind} {quote(name)}; {hint}")
