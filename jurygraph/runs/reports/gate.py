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
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CONDITION = re.compile(rf"\s*(\w+)\s*(>=|<=|==|>|<|=)\s*({_NUMBER})\s*", re.ASCII)


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


def parse_gate(
    gate: Sequence[str] | None, names: Sequence[str], example: str, margins: Sequence[str] = ()
) -> list[Threshold]:
    """Parse conditions NAME OP NUMBER on the figures with these names, joined by `,` or `and`; none without a gate.

    `margins` are names of tests with a margin above 0, NAME=NUMBER. `example` is a gate for messages. Raises
    `InputError` where a condition cannot be parsed, or names no figure.
    """
    text = ",".join(gate or ())
    parts = re.split(r",|\sand\s", text) if gate else []
    thresholds = []
    for clause in parts:
        match = _CONDITION.fullmatch(clause)
        is_margin = match is not None and match[1] in margins
        if match is None or not math.isfinite(float(match[3])) or (match[2] == "=") != is_margin:
            problem = (
                f"{shorten(clause.strip())!r} is not a condition"
                if clause.strip()
                else "a condition is missing"
            )
            raise InputError(f"gate {shorten(text)!r}: {problem}; write it as in {example}")
        if is_margin and float(match[3]) <= 0.0:
            raise InputError(
                f"gate {shorten(text)!r}: the margin of {match[1]} must be above 0, got {match[3]}"
            )
        if not is_margin and match[1] not in names:
            hint = did_you_mean(match[1], names) or f"there are {', '.join(names)}"
            raise InputError(
                f"gate {shorten(text)!r}: unknown statistic {shorten(match[1])!r}; {hint}"
            )
        thresholds.append(Threshold(match[1], match[2], float(match[3])))
    return thresholds


def failed_thresholds(
    thresholds: Iterable[Threshold], figures: Mapping[str, Any]
) -> list[tuple[Threshold, float | None]]:
    """Return the conditions that do not hold, in their order, each with the value of its figure, None where missing."""
    values = ((threshold, figures[threshold.name]) for threshold in thresholds)
    return [(threshold, value) for threshold, value in values if not threshold.is_met(value)]
