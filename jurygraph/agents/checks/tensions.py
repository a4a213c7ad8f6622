"""Find tensions between constraints by rule, from the constraints alone: no response is looked at.

Two checks have tension 1 if no response can pass both. Two lower or two upper bounds on one measure that differ (two
budgets) have as tension the share between them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from jurygraph.agents.checks.spec import BOUNDS, Check, Column, Test, Tests
from jurygraph.agents.checks.values import are_equal, compare, is_one_of
from jurygraph.agents.facts.names import to_text
from jurygraph.decision.weighting import ConstraintTension
from jurygraph.schema import Constraint, Stakeholder


def find_tensions(first: Stakeholder, second: Stakeholder) -> list[ConstraintTension]:
    """Return the tensions between two stakeholders, in the order of the constraints' ids."""
    return [
        tension
        for pair in product(_checks(first.constraints), _checks(second.constraints))
        for tension in _find_pair_tension(*pair)
    ]


def find_contradictions(constraints: Sequence[Constraint]) -> list[ConstraintTension]:
    """Return the pairs of one stakeholder's hard constraints that no response can satisfy together."""
    hard = _checks(c for c in constraints if c.kind == "hard")
    return [
        tension for pair in combinations(hard, 2) for tension in _find_pair_tension(*pair) if tension.strength == 1.0
    ]


def _checks(constraints: Iterable[Constraint]) -> list[tuple[str, Check]]:
    """Return the checks with their constraints' ids, ordered by id."""
    parsed = ((constraint.id, _parse_check(constraint)) for constraint in sorted(constraints, key=lambda c: c.id))
    return [(name, check) for name, check in parsed if check is not None]


def _find_pair_tension(first: tuple[str, Check], second: tuple[str, Check]) -> Iterator[ConstraintTension]:
    tension = _find_tension(first[1], second[1])
    if tension is not None:
        yield ConstraintTension(first[0], second[0], *tension)


def _parse_check(constraint: Constraint) -> Check | None:
    """Return a constraint's check; None without one in this vocabulary, since another evaluator may use it."""
    try:
        return None if constraint.check is None else Check.model_validate(constraint.check)
    except ValidationError:
        return None


def _find_tension(first: Check, second: Check) -> tuple[float, str] | None:
    if first.values is None and _normalise_measure(first) == _normalise_measure(second):
        return _bounds_tension(first, second)
    if first.share is not None and first.share == second.share and not first.among and not second.among:
        least = [check.bound[0] for check in (first, second)]
        column = _conflicting_column(first.where, second.where) if sum(least) > 1.0 else None
        return None if column is None else (1.0, f"no {column} of {first.share} passes both")
    return _demands_tension(first, second) or _demands_tension(second, first)


class _Demand(NamedTuple):
    """A requirement on the items of a kind: `all`, at `least` or at `most` a number of them pass the tests."""

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
        for value in check.includes or ():
            yield _Demand("least", 1, check.values, {**check.where, check.column: Test(has=value)})
        for value in check.excludes or ():
            yield _Demand("most", 0, check.values, {**check.where, check.column: Test(has=value)})


def _demands_tension(first: Check, second: Check) -> tuple[float, str] | None:
    """Return a tension if one check requires more items than the other lets pass."""
    for wanted, rule in product(_demands(first), _demands(second)):
        if wanted.who != "least" or wanted.number <= 0 or wanted.kind != rule.kind:
            continue
        if rule.who == "all" and _conflicting_column(wanted.tests, rule.tests):
            return 1.0, f"some {wanted.kind} are to be what none of them may be"
        is_covered = all(wanted.tests.get(column) == test for column, test in rule.tests.items())
        if rule.who == "most" and is_covered and wanted.number > rule.number:
            return 1.0, f"more {wanted.kind} are wanted than there may be"
    return None


def _normalise_measure(check: Check) -> Check:
    """Return a check without its bounds and independent of the order of its terms; a sum without its divisor."""
    no_bounds = dict.fromkeys(BOUNDS)
    terms = None if check.sum is None else tuple(sorted(check.sum, key=lambda term: term.digest))
    return check.model_copy(update={**no_bounds, "partial": False, "per": None, "sum": terms})


def _bounds_tension(first: Check, second: Check) -> tuple[float, str] | None:
    (low, high), (other_low, other_high) = _undivided_bound(first), _undivided_bound(second)
    if max(low, other_low) > min(high, other_high):
        return 1.0, f"no {first.measure} can be both"
    if low == other_low == -math.inf:
        return _gap(first, sorted((high, other_high)))
    return _gap(first, sorted((low, other_low))) if high == other_high == math.inf else None


def _undivided_bound(check: Check) -> tuple[float, float]:
    """Return the bound of the measure; for a divided sum, multiplied by the divisor."""
    low, high = check.bound
    return low * (check.per or 1.0), high * (check.per or 1.0)


def _gap(check: Check, ends: Sequence[float]) -> tuple[float, str] | None:
    narrow, wide = ends
    if wide <= 0 or wide == narrow:
        return None
    return 1.0 - max(
        0.0, narrow
    ) / wide, f"the bounds {to_text(narrow)} and {to_text(wide)} of one {check.measure} differ"


def _conflicting_column(first: Tests, second: Tests) -> str | None:
    """Return a column for which no value passes both tests; None if there is none."""
    return next(
        (column for column in sorted(first.keys() & second.keys()) if _tests_conflict(first[column], second[column])),
        None,
    )


def _tests_conflict(first: Test, second: Test) -> bool:
    return _is_excluded(first, second) or _is_excluded(second, first) or _is_disjoint(first, second)


def _is_excluded(first: Test, second: Test) -> bool:
    """Return true if the second test bars every value that the first allows, or requires of a list."""
    allowed, barred = (
        _allowed_values(first),
        [*(second.none_of or ()), *([second.is_not] if _is_constant(second.is_not) else [])],
    )
    listed = first.has is not None and second.has_not is not None and are_equal(first.has, second.has_not)
    return listed or (allowed is not None and all(is_one_of(value, barred) for value in allowed))


def _is_disjoint(first: Test, second: Test) -> bool:
    allowed, others_allowed = _allowed_values(first), _allowed_values(second)
    if (
        allowed is not None
        and others_allowed is not None
        and not any(is_one_of(value, others_allowed) for value in allowed)
    ):
        return True
    return (
        _is_above(first, second) or _is_above(second, first) or _is_beyond(first, second) or _is_beyond(second, first)
    )


def _is_above(first: Test, second: Test) -> bool:
    """Return true if the lower bound of the first test is above the upper bound of the second."""
    least, most = _lower_end(first), _upper_end(second)
    return least is not None and most is not None and (compare(least, most) or 0) > 0


def _is_beyond(first: Test, second: Test) -> bool:
    """Return true if every value that the first test allows is outside the bounds of the second."""
    allowed, least, most = _allowed_values(first), _lower_end(second), _upper_end(second)
    return allowed is not None and all(
        (least is not None and (compare(value, least) or 0) < 0)
        or (most is not None and (compare(value, most) or 0) > 0)
        for value in allowed
    )


def _lower_end(test: Test) -> Any:
    return test.between[0] if test.between else None if isinstance(test.at_least, Column) else test.at_least


def _upper_end(test: Test) -> Any:
    return test.between[1] if test.between else None if isinstance(test.at_most, Column) else test.at_most


def _allowed_values(test: Test) -> Sequence[Any] | None:
    if _is_constant(test.equals):
        return [test.equals]
    return test.one_of


def _is_constant(value: object) -> bool:
    return value is not None and not isinstance(value, Column)
