"""CI thresholds on the figures of a report (`--gate`)."""

import math
import operator
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import shorten, suggest_known_name
from jurygraph.schema.frozen_model import JsonMapping

_COMPARISON_BY_OPERATOR = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBER_PATTERN = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_THRESHOLD_PATTERN = re.compile(
    rf"\s*([^\s<>=!](?:[^<>=!]*[^\s<>=!])?)\s*(>=|<=|==|>|<|=)\s*({_NUMBER_PATTERN})\s*", re.ASCII
)


class CiThreshold(NamedTuple):
    """One condition: a figure's name, one of > >= < <= ==, and a finite number."""

    name: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound!r}".removesuffix(".0")

    def is_met(self, figure: float | None) -> bool:
        """Return whether a figure meets the condition. A missing figure never does."""
        return figure is not None and _COMPARISON_BY_OPERATOR[self.sign](figure, self.bound)


def parse_ci_thresholds(
    gate: Sequence[str] | None, names: Sequence[str], example: str, margins: Sequence[str] = ()
) -> list[CiThreshold]:
    """Parse conditions NAME OP NUMBER on the figures with these names, joined by `,` or `and`; none without a gate.

    `margins` are names of tests with a margin above 0, NAME=NUMBER. `example` is a gate for messages. Raises
    `InputError` where a condition cannot be parsed, or names no figure.
    """
    text = ",".join(gate or ())
    threshold_clauses = re.split(r",|\sand\s", text) if gate else []
    label = f"gate {shorten(text)!r}"
    thresholds = []
    for clause in threshold_clauses:
        threshold, number = parse_threshold(clause)
        is_margin_threshold = threshold is not None and threshold.name in margins
        if threshold is None or (threshold.sign == "=") != is_margin_threshold:
            words = clause.strip()
            problem = (
                f"{shorten(words)!r} is not a condition" if words else "a condition is missing"
            )
            raise InputError(f"{label}: {problem}; write it as in {example}")
        name = threshold.name
        if is_margin_threshold and threshold.bound <= 0.0:
            raise InputError(f"{label}: the margin of {name} must be above 0, got {number}")
        if not is_margin_threshold and name not in names:
            hint = suggest_known_name(name, names)
            raise InputError(f"{label}: unknown statistic {shorten(name)!r}; {hint}")
        thresholds.append(threshold)
    return thresholds


def parse_threshold(clause: str) -> tuple[CiThreshold | None, str]:
    """Return the condition in a clause, None if it is none, and its number as it is written."""
    match = _THRESHOLD_PATTERN.fullmatch(clause)
    if match is None:
        return None, ""
    name, sign, number = match.groups()
    bound = float(number)
    if not math.isfinite(bound):  # such as 1e999
        return None, number
    return CiThreshold(name, sign, bound), number


def failed_thresholds(
    thresholds: Iterable[CiThreshold], figures: JsonMapping
) -> list[tuple[CiThreshold, float | None]]:
    """Return the conditions that do not hold, in their order, each with the value of its figure, None where missing."""
    return [
        (threshold, figures[threshold.name])
        for threshold in thresholds
        if not threshold.is_met(figures[threshold.name])
    ]
