"""Find tensions between constraints by rule, from the constraints alone: no response is looked at.

Two checks have tension 1 if no response can pass both. Two lower or two upper bounds on one measure that differ (two
budgets) have as tension the share between them.
"""

import contextlib
import math
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

from pydantic import ValidationError

from jurygraph.agents.checks.spec import BOUNDS, Check, Column, Test, Tests
from jurygraph.agents.facts.values import are_equal, compare, is_one_of, to_text
from jurygraph.decision.weighting import ConstraintTension
from jurygraph.schema import Constraint, Stakeholder


def find_tensions(first: Stakeholder, second: Stakeholder) -> list[ConstraintTension]:
    """Return the tensions between two stakeholders, in the order of the constraints' ids."""
    return _tensions(product(_read_checks(first.constraints), _read_checks(second.constraints)))


def find_contradictions(constraints: Sequence[Constraint]) -> list[ConstraintTension]:
    """Return the pairs of one stakeholder's hard constraints that no response can satisfy together."""
    pairs = combinations(_read_checks(c for c in constraints if c.kind == "hard"), 2)
    return [tension for tension in _tensions(pairs) if tension.strength == 1.0]


def _read_checks(constraints: Iterable[Constraint]) -> list[tuple[str, Check]]:
    """Return the checks with their constraints' ids, ordered by id; without those of another evaluator's vocabulary."""
    checks = []
    for constraint in sorted(constraints, key=lambda c: c.id):
        with contextlib.suppress(ValidationError):
            if constraint.check is not None:
                checks.append((constraint.id, Check.model_validate(constraint.check)))
    return checks


def _tensions(pairs: Iterable[tuple[tuple[str, Check], tuple[str, Check]]]) -> list[ConstraintTension]:
    found = ((first, second, _find_tension(check, other)) for (first, check), (second, other) in pairs)
    return [ConstraintTension(first, second, *tension) for first, second, tension in found if tension]


def _find_tension(first: Check, second: Check) -> tuple[float, str] | None:
    if first.values is None and _normalise_measure(first) == _normalise_measure(second):
        return _bounds_tension(first, second)
    if first.share is not None and first.share == second.share and not first.among and not second.among:
        least = [check.bound[0] for check in (first, second)]
        column = _conflicting_column(first.where, second.where) if sum(least) > 1.0 else None
        return None if column is None else (1.0, f"no {column} of {first.share} passes both")
    if first.values is not None and (first.values, first.column) == (second.values, second.column):
        for wanted, barred in ((first, second), (second, first)):
            if not barred.where and any(is_one_of(value, barred.excludes or ()) for value in wanted.includes or ()):
                return 1.0, f"what is wanted of {first.values} is barred"
    return None


def _normalise_measure(check: Check) -> Check:
    """Return a check without its bounds and independent of the order of its terms; a sum without its divisor."""
    terms = None if check.sum is None else tuple(sorted(check.sum, key=lambda term: term.digest))
    return check.model_copy(update={**dict.fromkeys(BOUNDS), "partial": False, "per": None, "sum": terms})


def _bounds_tension(first: Check, second: Check) -> tuple[float, str] | None:
    undivided = ([end * (check.per or 1.0) for end in check.bound] for check in (first, second))
    (low, high), (other_low, other_high) = undivided
    if max(low, other_low) > min(high, other_high):
        return 1.0, f"no {first.measure} can be both"
    if low == other_low == -math.inf:
        return _gap(first, sorted((high, other_high)))
    return _gap(first, sorted((low, other_low))) if high == other_high == math.inf else None


def _gap(check: Check, ends: Sequence[float]) -> tuple[float, str] | None:
    narrow, wide = ends
    if wide <= 0 or wide == narrow:
        return None
    strength = 1.0 - max(0.0, narrow) / wide
    return strength, f"the bounds {to_text(narrow)} and {to_text(wide)} of one {check.measure} differ"


def _conflicting_column(first: Tests, second: Tests) -> str | None:
    shared = sorted(first.keys() & second.keys())
    return next((c for c in shared if _is_barred(first[c], second[c]) or _is_barred(second[c], first[c])), None)


def _is_barred(first: Test, second: Test) -> bool:
    """Return true if the second test fails for all that the first allows, or requires of a list."""
    least = second.at_least
    most = second.at_most
    if _is_less(most, first.at_least):
        return True
    if first.has is not None and second.has_not is not None and are_equal(first.has, second.has_not):
        return True
    allowed, others_allowed = (_constants(test.equals) or test.one_of for test in (first, second))
    if allowed is None:
        return False
    barred = [*(second.none_of or ()), *_constants(second.is_not)]
    return (
        all(is_one_of(value, barred) for value in allowed)
        or all(_is_less(value, least) or _is_less(most, value) for value in allowed)
        or (others_allowed is not None and not any(is_one_of(value, others_allowed) for value in allowed))
    )


def _is_less(value: Any, other: Any) -> bool:
    return compare(value, other) == -1


def _constants(value: Any) -> list[Any]:
    return [] if value is None or isinstance(value, Column) else [value]
