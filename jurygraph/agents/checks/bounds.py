"""Compare a measure of a response with a bound: values that the response does not show count as the worst case."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jurygraph.agents.checks.items import Item
from jurygraph.agents.checks.result import CheckResult, UnknownValues
from jurygraph.agents.checks.spec import Check
from jurygraph.agents.facts.names import to_text

_ROUNDING = 1e-9

Measure = Callable[[bool, bool], float | None]
"""A function (unshown, untold) that computes the measure; the flags decide if all unshown, and all untold, values add
to it. None if there is nothing to measure, which satisfies any bound. Adding values never makes it smaller."""


class _Interval(NamedTuple):
    """The least and greatest value of a number."""

    low: float
    high: float


def decide_bound(check: Check, measure: Measure, label: str, unknown: UnknownValues, at: Sequence[Item]) -> CheckResult:
    """Decide a bound on a measure. Unshown values count as the worst case."""
    bound = _Interval(*check.bound)
    worlds = [[measure(unshown, untold) for untold in (False, True)] for unshown in (False, True)]
    values = [value for world in worlds for value in world if value is not None]
    span = _Interval(min(values), max(values))
    if all(_reaches(value, bound.low) and _stays_within(value, bound.high) for value in values):
        return CheckResult(True, 1.0, f"{label} is {_describe_measure(span)}, as asked", at)
    if _is_outside([span.low, span.high], bound) and len(values) == 4:
        reason = f"{label} is {_describe_measure(span)}, not {_describe_bound(bound)}"
        return CheckResult(False, _closeness(span, bound), reason, at)
    reason = f"{label} is {_describe_measure(span)}, and {_describe_bound(bound)} is asked for"
    if any(_is_outside(world, bound) for world in worlds):
        return unknown.unproven_result(reason)
    return unknown.undecided_result(reason)


def _is_outside(values: Sequence[float | None], bound: _Interval) -> bool:
    """Return true if every possible value of the measure lies on the same side of the bound."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return False
    return not any(_reaches(value, bound.low) for value in numbers) or not any(
        _stays_within(value, bound.high) for value in numbers
    )


def _reaches(value: float, limit: float) -> bool:
    return value >= limit - _ROUNDING * max(1.0, abs(limit)) if math.isfinite(limit) else True


def _stays_within(value: float, limit: float) -> bool:
    return value <= limit + _ROUNDING * max(1.0, abs(limit)) if math.isfinite(limit) else True


def _closeness(span: _Interval, bound: _Interval) -> float:
    """Return the closeness to the bound in [0, 1]: the share of the minimum, or 1 minus the relative excess."""
    if not _stays_within(span.low, bound.high):
        if bound.high <= 0 or span.high == math.inf:
            return 0.0
        return max(0.0, 1.0 - (span.high - bound.high) / bound.high)
    return span.low / bound.low  # measures are never negative, so the lower bound is above 0


def _describe_bound(bound: _Interval) -> str:
    if bound.low == bound.high:
        return to_text(bound.low)
    if bound.high == math.inf:
        return f"{to_text(bound.low)} or more"
    return (
        f"{to_text(bound.high)} or less" if bound.low == -math.inf else f"{to_text(bound.low)} to {to_text(bound.high)}"
    )


def _describe_measure(span: _Interval) -> str:
    low, high = (to_text(round(end, 6)) for end in span)
    if span.low == span.high:
        return low
    return f"{low} or more" if span.high == math.inf else f"{low} to {high}"
