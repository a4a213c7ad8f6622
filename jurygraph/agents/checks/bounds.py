"""What is measured of a response against a bound: what is unshown is taken as it is worst."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jurygraph.agents.checks.decided import Decided, Unknown
from jurygraph.agents.checks.items import Item
from jurygraph.agents.checks.stated import Check
from jurygraph.agents.facts.names import shown

_ROUNDING = 1e-9

Measure = Callable[[bool, bool], float | None]
"""What is measured, if all that is unshown, and all that is untold, adds to it or not; None where there is nothing to
measure, which is as asked. Adding never makes it less."""


class _Between(NamedTuple):
    """The least and the greatest of something."""

    low: float
    high: float


def bounded(check: Check, measure: Measure, what: str, unknown: Unknown, at: Sequence[Item]) -> Decided:
    """What a bound says of a measure. What is unshown is taken as it is worst."""
    asked = _Between(*check.bound)
    worlds = [[measure(unshown, untold) for untold in (False, True)] for unshown in (False, True)]
    found = [value for world in worlds for value in world if value is not None]
    span = _Between(min(found), max(found))
    if all(_least(value, asked.low) and _most(value, asked.high) for value in found):
        return Decided(True, 1.0, f"{what} is {_number_told(span)}, as asked", at)
    if _outside([span.low, span.high], asked) and len(found) == 4:
        reason = f"{what} is {_number_told(span)}, not {_asked(asked)}"
        return Decided(False, _closeness(span, asked), reason, at)
    reason = f"{what} is {_number_told(span)}, and {_asked(asked)} is asked for"
    if any(_outside(world, asked) for world in worlds):
        return unknown.unproven(reason)
    return unknown.undecided(reason)


def _outside(values: Sequence[float | None], asked: _Between) -> bool:
    """Whether all that a measure can be lies to one side of what is asked."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return False
    return not any(_least(value, asked.low) for value in numbers) or not any(
        _most(value, asked.high) for value in numbers
    )


def _least(value: float, asked: float) -> bool:
    return value >= asked - _ROUNDING * max(1.0, abs(asked)) if math.isfinite(asked) else True


def _most(value: float, asked: float) -> bool:
    return value <= asked + _ROUNDING * max(1.0, abs(asked)) if math.isfinite(asked) else True


def _closeness(span: _Between, asked: _Between) -> float:
    """How near a measure comes to what was asked, in [0, 1]: the share of the least, or what the excess leaves."""
    if not _most(span.low, asked.high):
        if asked.high <= 0 or span.high == math.inf:
            return 0.0
        return max(0.0, 1.0 - (span.high - asked.high) / asked.high)
    return span.low / asked.low  # nothing measures less than 0, so more than that is asked for


def _asked(asked: _Between) -> str:
    if asked.low == asked.high:
        return shown(asked.low)
    if asked.high == math.inf:
        return f"{shown(asked.low)} or more"
    return f"{shown(asked.high)} or less" if asked.low == -math.inf else f"{shown(asked.low)} to {shown(asked.high)}"


def _number_told(span: _Between) -> str:
    low, high = (shown(round(end, 6)) for end in span)
    if span.low == span.high:
        return low
    return f"{low} or more" if span.high == math.inf else f"{low} to {high}"
