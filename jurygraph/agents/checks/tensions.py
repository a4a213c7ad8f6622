"""Where constraints pull apart, by rule and from the constraints alone: no response is looked at.

Two checks pull with strength 1 where no response can pass both; and where two least or two greatest bounds of one
measure differ (two budgets) with the share that lies between them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from jurygraph.agents.checks.stated import BOUNDS, Check, Column, Test, Tests
from jurygraph.agents.checks.values import compared, is_one_of, same
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
    if one.values is None and _measured(one) == _measured(other):
        return _bounds_apart(one, other)
    if one.share is not None and one.share == other.share and not one.among and not other.among:
        least = [check.bound[0] for check in (one, other)]
        column = _tests_apart(one.where, other.where) if sum(least) > 1.0 else None
        return None if column is None else (1.0, f"no {column} of {one.share} passes both")
    return _demands_apart(one, other) or _demands_apart(other, one)


class _Demand(NamedTuple):
    """What a check says of the items of a kind: that `all`, at `least` or at `most` so many pass the tests."""

    who: Literal["all", "least", "most"]
    number: float
    kind: str
    tests: Tests


def _demands(check: Check) -> Iterator[_Demand]:
    low, high = check.bound
    if check.share is not None and not check.among and low > 0:
        yield _Demand("least", 1, check.share, check.where)
        if low >= 1.0:
            yield _Demand("all", 1, check.share, check.where)
    if check.count is not None:
        yield _Demand("least", low, check.count, check.where)
        yield _Demand("most", high, check.count, check.where)
    if check.values is not None and check.column is not None and check.column not in check.where:
        for one in check.includes or ():
            yield _Demand("least", 1, check.values, {**check.where, check.column: Test(has=one)})
        for one in check.excludes or ():
            yield _Demand("most", 0, check.values, {**check.where, check.column: Test(has=one)})


def _demands_apart(one: Check, other: Check) -> tuple[float, str] | None:
    """Whether one wants more items than the other lets pass."""
    for wanted, rule in product(_demands(one), _demands(other)):
        if wanted.who != "least" or wanted.number <= 0 or wanted.kind != rule.kind:
            continue
        if rule.who == "all" and _tests_apart(wanted.tests, rule.tests):
            return 1.0, f"some {wanted.kind} are to be what none of them may be"
        within = all(wanted.tests.get(column) == test for column, test in rule.tests.items())
        if rule.who == "most" and within and wanted.number > rule.number:
            return 1.0, f"more {wanted.kind} are wanted than there may be"
    return None


def _measured(check: Check) -> Check:
    """A check without what it asks of its measure, and whatever the order of its terms; a sum as the whole sum."""
    unasked = dict.fromkeys(BOUNDS)
    terms = None if check.sum is None else tuple(sorted(check.sum, key=lambda term: term.digest))
    return check.model_copy(update={**unasked, "partial": False, "per": None, "sum": terms})


def _bounds_apart(one: Check, other: Check) -> tuple[float, str] | None:
    (low, high), (other_low, other_high) = _whole(one), _whole(other)
    if max(low, other_low) > min(high, other_high):
        return 1.0, f"no {one.measure} can be both"
    if low == other_low == -math.inf:
        return _gap(one, sorted((high, other_high)))
    return _gap(one, sorted((low, other_low))) if high == other_high == math.inf else None


def _whole(check: Check) -> tuple[float, float]:
    """The bound of what is measured; that of a sum which is divided, multiplied back."""
    low, high = check.bound
    return low * (check.per or 1.0), high * (check.per or 1.0)


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
    allowed, barred = _allowed(one), [*(other.none_of or ()), *([other.is_not] if _is_plain(other.is_not) else [])]
    listed = one.has is not None and other.has_not is not None and same(one.has, other.has_not)
    return listed or (allowed is not None and all(is_one_of(value, barred) for value in allowed))


def _disjoint(one: Test, other: Test) -> bool:
    allowed, others = _allowed(one), _allowed(other)
    if allowed is not None and others is not None and not any(is_one_of(value, others) for value in allowed):
        return True
    return _above(one, other) or _above(other, one) or _beyond(one, other) or _beyond(other, one)


def _above(one: Test, other: Test) -> bool:
    """Whether the least that one allows lies above the most that the other does."""
    least, most = _least(one), _most(other)
    return least is not None and most is not None and (compared(least, most) or 0) > 0


def _beyond(one: Test, other: Test) -> bool:
    """Whether all that one allows lies outside the bounds of the other."""
    allowed, least, most = _allowed(one), _least(other), _most(other)
    return allowed is not None and all(
        (least is not None and (compared(value, least) or 0) < 0)
        or (most is not None and (compared(value, most) or 0) > 0)
        for value in allowed
    )


def _least(test: Test) -> Any:
    return test.between[0] if test.between else None if isinstance(test.at_least, Column) else test.at_least


def _most(test: Test) -> Any:
    return test.between[1] if test.between else None if isinstance(test.at_most, Column) else test.at_most


def _allowed(test: Test) -> Sequence[Any] | None:
    if _is_plain(test.equals):
        return [test.equals]
    return test.one_of


def _is_plain(value: object) -> bool:
    return value is not None and not isinstance(value, Column)
