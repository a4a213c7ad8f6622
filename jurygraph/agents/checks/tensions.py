"""Where constraints pull apart, by rule and from the constraints alone: no response is looked at.

Two checks pull with strength 1 where no response can pass both; and where two least or two greatest bounds of one
measure differ (two budgets) with the share that lies between them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from pydantic import ValidationError

from jurygraph.agents.checks.stated import BOUNDS, Check, Column, Test, Tests
from jurygraph.agents.facts.names import shown
from jurygraph.schema import Constraint, Stakeholder


class Pull(NamedTuple):
    """Two constraints that pull apart: how strongly, in (0, 1], and why."""

    one: str
    other: str
    strength: float
    why: str


def tensions(one: Stakeholder, other: Stakeholder) -> list[Pull]:
    """What pulls two stakeholders apart, in the order of the constraints' ids."""
    return [pull for pair in product(_checks(one.constraints), _checks(other.constraints)) for pull in _pulls(*pair)]


def contradictions(constraints: Sequence[Constraint]) -> list[Pull]:
    """The pairs of one stakeholder's hard constraints that no response can meet."""
    hard = _checks(c for c in constraints if c.kind == "hard")
    return [pull for pair in combinations(hard, 2) for pull in _pulls(*pair) if pull.strength == 1.0]


def _checks(constraints: Iterable[Constraint]) -> list[tuple[str, Check]]:
    """The checks by their constraints' ids, in the order of these."""
    read = ((one.id, _read(one)) for one in sorted(constraints, key=lambda c: c.id))
    return [(name, check) for name, check in read if check is not None]


def _pulls(one: tuple[str, Check], other: tuple[str, Check]) -> Iterator[Pull]:
    found = _apart(one[1], other[1])
    if found is not None:
        yield Pull(one[0], other[0], *found)


def _read(constraint: Constraint) -> Check | None:
    """A constraint's check; None where it has none in this vocabulary, which another evaluator may have use for."""
    try:
        return None if constraint.check is None else Check.model_validate(constraint.check)
    except ValidationError:
        return None


def _apart(one: Check, other: Check) -> tuple[float, str] | None:
    if _measured(one) == _measured(other) and one.values is None:
        return _bounds_apart(one, other)
    if one.share is not None and (one.share, one.among) == (other.share, other.among):
        least = [check.bound[0] for check in (one, other)]
        column = _tests_apart(one.where, other.where) if sum(least) > 1.0 else None
        return None if column is None else (1.0, f"no {column} of {one.share} passes both")
    if one.values is not None and (one.values, one.column, one.where) == (other.values, other.column, other.where):
        both = {*(one.includes or ())} & {*(other.excludes or ())} | {*(one.excludes or ())} & {*(other.includes or ())}
        wanted = ", ".join(sorted(map(shown, both)))
        return (1.0, f"{one.column} of {one.values} is to include {wanted}, and not to") if both else None
    return None


def _measured(check: Check) -> Check:
    """A check without what it asks of its measure."""
    unasked = dict.fromkeys(BOUNDS)
    return check.model_copy(update={**unasked, "partial": False})


def _bounds_apart(one: Check, other: Check) -> tuple[float, str] | None:
    (low, high), (other_low, other_high) = one.bound, other.bound
    if max(low, other_low) > min(high, other_high):
        return 1.0, f"no {one.measure} can be both"
    if low == other_low == -math.inf:
        return _gap(one, sorted((high, other_high)))
    return _gap(one, sorted((low, other_low))) if high == other_high == math.inf else None


def _gap(check: Check, ends: Sequence[float]) -> tuple[float, str] | None:
    narrow, wide = ends
    if wide <= 0 or wide == narrow:
        return None
    return 1.0 - max(0.0, narrow) / wide, f"the bounds {shown(narrow)} and {shown(wide)} of one {check.measure} differ"


def _tests_apart(one: Tests, other: Tests) -> str | None:
    """A column of which no value passes both."""
    return next(
        (column for column in sorted(one.keys() & other.keys()) if _test_apart(one[column], other[column])), None
    )


def _test_apart(one: Test, other: Test) -> bool:
    return _excluded(one, other) or _excluded(other, one) or _disjoint(one, other)


def _excluded(one: Test, other: Test) -> bool:
    """Whether all that one allows, or asks a list to have, the other bars."""
    allowed = _allowed(one)
    barred = {*(other.none_of or ()), *([other.is_not] if _is_plain(other.is_not) else [])}
    listed = one.has is not None and one.has == other.has_not
    return listed or (allowed is not None and bool(barred) and allowed <= barred)


def _disjoint(one: Test, other: Test) -> bool:
    allowed = _allowed(one), _allowed(other)
    if allowed[0] is not None and allowed[1] is not None and not allowed[0] & allowed[1]:
        return True
    return _above(one, other) or _above(other, one)


def _above(one: Test, other: Test) -> bool:
    """Whether the least that one allows lies above the most that the other does."""
    least = one.between[0] if one.between else one.at_least
    most = other.between[1] if other.between else other.at_most
    if isinstance(least, float | int) and isinstance(most, float | int):
        return least > most
    return isinstance(least, str) and isinstance(most, str) and least > most


def _allowed(test: Test) -> set[object] | None:
    if _is_plain(test.equals):
        return {test.equals}
    return None if test.one_of is None else set(test.one_of)


def _is_plain(value: object) -> bool:
    return value is not None and not isinstance(value, Column)
