"""Short representations of objects, in a line under 200 characters; numbers as text; progress."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from importlib import import_module
from math import inf, isclose
from typing import Any

MAX_LINE_CHARACTERS = 199
MAX_VALUE_CHARACTERS = 60

ProgressCallback = Callable[[int], None]
"""A callback that receives the number of newly finished items of long work: tasks, records, seeds, texts."""


def ignore_progress(count: int) -> None:
    """Report nothing."""


ReprParts = Iterable[tuple[str, Any]]
"""The names and values that a `repr` shows, the most important first."""


class ShortRepr:
    """Base class of objects with a short `repr`; `_repr_parts` returns what it shows, the most important first."""

    __slots__ = ()

    def _repr_parts(self) -> ReprParts:
        """Return names and values; unless overridden the fields of a dataclass, or the name and version of code."""
        names = ["name", "version"]
        if is_dataclass(self):
            names = [field.name for field in fields(self) if field.repr]
        return [(name, getattr(self, name)) for name in names if hasattr(self, name)]

    def __repr__(self) -> str:
        return format_repr_line(type(self).__name__, self._repr_parts())

    def __str__(self) -> str:
        return repr(self)


def draw_notebook_html(drawing_function_name: str, subject: object) -> str:
    """Return the HTML that a function of `viewer.notebook` draws of an object.

    It is loaded by its name: pages lay out runs, which lie above this room, and only a notebook needs them.
    """
    draw = getattr(import_module("jurygraph.viewer.notebook"), drawing_function_name)
    html: str = draw(subject)
    return html


def format_repr_line(kind: str, parts: ReprParts) -> str:
    """Return `kind(name=value, …)`, without the parts that are too long for the line."""
    line = f"{format_value(kind, 50)[1:-1]}("
    separator = ""
    for name, value in parts:
        field = f"{separator}{name}={format_value(value)}"
        if len(line) + len(field) > MAX_LINE_CHARACTERS - len(", …)"):
            line += f"{separator}…"
            break
        line += field
        separator = ", "
    return f"{line})"


def format_value(
    value: Any, limit: int = MAX_VALUE_CHARACTERS, is_nested_value: bool = False
) -> str:
    """Return a value as printable text of at most `limit` characters; an inner collection is only hinted at."""
    if isinstance(value, str):
        text = repr(value[:limit])
        is_within_limit = len(value) <= limit and len(text) <= limit
        return text if is_within_limit else f"{text[: limit - 2]}…{text[0]}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 3 * limit else "<a large number>"
    if isinstance(value, Mapping):
        pairs = (
            f"{format_value(k, 20, True)}: {format_value(v, 20, True)}" for k, v in value.items()
        )
        return "{…}" if is_nested_value and value else _join_parts("{}", pairs, len(value), limit)
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray):
        if value and all(isinstance(item, ShortRepr) for item in value):
            return f"[{len(value)} {_type_name(next(iter(value)))}]"
        parts = (format_value(item, 20, True) for item in value)
        return "[…]" if is_nested_value and value else _join_parts("[]", parts, len(value), limit)
    return "None" if value is None else f"<{_type_name(value)}>"


def _type_name(value: Any) -> str:
    return format_value(type(value).__name__, 30)[1:-1]


def _join_parts(bracket_pair: str, parts: Iterable[str], size: int, limit: int) -> str:
    text = ""
    count = 0
    for part in parts:
        extended_text = f"{text}, {part}" if text else part
        if len(extended_text) > limit - len("{, …}"):
            break
        text = extended_text
        count = count + 1
    if count != size:
        text += ", …" if text else "…"
    return f"{bracket_pair[0]}{text}{bracket_pair[1]}"


def is_filled_in(judged: float | None, counted: float | None) -> bool:
    """Return whether the failure rule filled in a component's value for verdicts that are missing.

    `judged` is its value from the judged verdicts alone, `counted` that in the reward; None if there is none.
    """
    return counted is not None and (judged is None or not isclose(judged, counted, abs_tol=1e-9))


_EXPONENT_FORMAT_THRESHOLD = 1e15


def format_cost(dollars: float | None) -> str:
    """Format an amount of US dollars; a dash for None."""
    if dollars is None:
        return "–"
    return "under $0.0001" if 0.0 < dollars < 0.0001 else f"${dollars:.4f}"


def format_number(value: float | None, digits: int = 4) -> str:
    """Format with a number of decimals; a dash for None, ∞ for infinity, and never minus zero.

    Numbers of more digits than a float has get an exponent instead.
    """
    if value is None:
        return "-"
    if value == inf:
        return "∞"
    if _EXPONENT_FORMAT_THRESHOLD <= abs(value) < inf:
        return f"{value:.{digits}e}"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def format_interval(
    value: float | None, low: float | None, high: float | None, digits: int = 4
) -> str:
    """Format an estimate with its interval in parentheses, if it has one."""
    text = format_number(value, digits)
    if low is None or high is None:
        return text
    return f"{text} ({format_number(low, digits)} to {format_number(high, digits)})"
