"""CI thresholds on the figures of a report (`--gate`)."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, shorten

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""The pattern of a number in a condition."""
_CONDITION = re.compile(rf"\s*(\w+)\s*(>=|<=|==|>|<)\s*({NUMBER})\s*", re.ASCII)


class Threshold(NamedTuple):
    """One condition: a figure's name, one of > >= < <= ==, and a finite number."""

    name: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound!r}".removesuffix(".0")

    def is_met(self, seen: float | None) -> bool:
        """Return whether a figure meets the condition. A missing figure never does."""
        return seen is not None and _OPERATORS[self.sign](seen, self.bound)


def split_conditions(text: str) -> list[str]:
    """Return the conditions of a text, which are joined by `,` or `and`."""
    return re.split(r",|\sand\s", text)


def parse_thresholds(text: str, names: Sequence[str], example: str) -> list[Threshold]:
    """Parse conditions NAME OP NUMBER on the figures with these names, joined by `,` or `and`.

    `example` is a condition for messages. Raises `InputError` where a condition cannot be parsed, or names no figure.
    """
    return [parse_threshold(part, text, names, example) for part in split_conditions(text)]


def failed_thresholds(
    thresholds: Iterable[Threshold], figures: Mapping[str, Any]
) -> list[tuple[Threshold, float | None]]:
    """Return the conditions that do not hold, in their order, each with the value of its figure, None where missing."""
    values = ((threshold, figures[threshold.name]) for threshold in thresholds)
    return [(threshold, value) for threshold, value in values if not threshold.is_met(value)]


def parse_threshold(part: str, gate_text: str, figure_names: Sequence[str], example: str) -> Threshold:
    """Parse one of the conditions of `gate_text`, as `parse_thresholds` does."""
    match = _CONDITION.fullmatch(part)
    if match is None or not math.isfinite(float(match[3])):
        problem = f"{shorten(part.strip())!r} is not a condition" if part.strip() else "a condition is missing"
        raise InputError(f"gate {shorten(gate_text)!r}: {problem}; write it as in {example}")
    if match[1] not in figure_names:
        hint = did_you_mean(match[1], figure_names) or f"there are {', '.join(figure_names)}"
        raise InputError(f"gate {shorten(gate_text)!r}: unknown statistic {shorten(match[1])!r}; {hint}")
    return Threshold(match[1], match[2], float(match[3]))
