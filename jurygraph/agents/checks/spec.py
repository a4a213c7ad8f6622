"""The vocabulary of checks: the model of a constraint's `check`.

A check has one measure and a requirement on it. The measures:

    {"count": ITEMS, "where": TESTS}                    how many items pass the tests
    {"share": ITEMS, "where": TESTS, "among": TESTS}    the share that passes, of those in `among`; 1 unless bounded
    {"sum": [TERM, ...], "per": n}                      a sum over items, divided by n
    {"values": ITEMS, "column": C, "where": TESTS}      the values of a column, for `includes`, `excludes`, `distinct`
    {"text": PATTERN}                                   whether an RE2 pattern is found in the response's text
    {"function": NAME, "params": {...}}                 a Python function that the config lists

Items are a kind of claims from the task's `facts`, or the matches of a JSONPath ($...) in the response's data: an
object, or {"value": ...} for anything else. A bound is `at_least`, `at_most`, `equals` or `between`.

Tensions between constraints are found by rule, from the checks alone: two have tension 1 if no response can pass both.
Two lower or two upper bounds on one measure that differ (two budgets) have as tension the share between them."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, product
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from jurygraph.agents import notation
from jurygraph.agents.facts.tables import are_equal, compare_values, is_one_of, value_to_text
from jurygraph.decision.weighting import ConstraintTension
from jurygraph.messages import quote
from jurygraph.schema import Constraint, FrozenModel, Stakeholder
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Id,
    JsonObject,
    LongId,
    Number,
    PositiveNumber,
    StrictBool,
)
from jurygraph.schema.task import sort_by_id


def _validate_items_path(source: str) -> str:
    if source.startswith("$"):
        notation.compile_jsonpath(source)
    return source


ItemsPath = Annotated[Id, AfterValidator(_validate_items_path)]
"""A kind of claims, or a JSONPath."""

Scalar = str | Number | StrictBool
Scalars = Annotated[tuple[Scalar, ...], Field(min_length=1)]
BOUND_FIELDS = ("at_least", "at_most", "equals", "between")
_ALLOWED_FIELDS_BY_MEASURE: Mapping[str, Sequence[str]] = {
    "count": ("where", *BOUND_FIELDS, "partial"),
    "share": ("where", "among", *BOUND_FIELDS, "partial"),
    "sum": ("per", *BOUND_FIELDS, "partial"),
    "values": ("column", "where", "includes", "excludes", "distinct", "partial"),
    "text": (),
    "function": ("params",),
}
CHECK_MEASURES = tuple(_ALLOWED_FIELDS_BY_MEASURE)


class Column(FrozenModel):
    """The value of another column of the same item."""

    column: Id


Operand = Scalar | Column | None


class Test(FrozenModel):
    """Requirements on a value; all given ones must hold. `has` and `has_not` test columns that contain lists, `names`
    tests for whole words in a text."""

    equals: Operand = None
    is_not: Operand = None
    one_of: Scalars | None = None
    none_of: Scalars | None = None
    has: Scalar | None = None
    has_not: Scalar | None = None
    names: Operand = None
    at_least: Number | str | Column | None = None
    at_most: Number | str | Column | None = None
    matches: notation.PatternText | None = None

    @model_validator(mode="after")
    def _check_test(self) -> Self:
        if all(expected is None for _, expected in self):
            raise ValueError('says nothing of the value; write such as {"equals": 3}')
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if isinstance(bound, str) and compare_values(bound, bound) is None:
                raise ValueError(
                    f"`{name}` is {quote(bound)}; write a number, a time such as 9:30, or a date as 2022-03-01"
                )
        if (compare_values(self.at_least, self.at_most) or 0) > 0:
            raise ValueError(
                "`at_most` lies below `at_least`, so no value passes; leave one of them out"
            )
        return self

    @cached_property
    def requirements(self) -> tuple[tuple[str, Any], ...]:
        return tuple((name, expected) for name, expected in self if expected is not None)


TestsByColumn = dict[Id, Test]


class TermSpec(FrozenModel):
    """One term of a sum: the `column` of each item that passes `where`, `times` another column or a number.

    `people` pay for as many units as they need, each with `places` (a number, or a column); a price per head has one
    place.
    """

    of: ItemsPath
    column: Id
    where: TestsByColumn = EMPTY_OBJECT
    times: PositiveNumber | Id | None = None
    people: PositiveNumber | None = None
    places: PositiveNumber | Id = 1.0

    @model_validator(mode="after")
    def _require_people_with_places(self) -> Self:
        if self.people is None and "places" in self.model_fields_set:
            raise ValueError(
                "`places` has no meaning without `people`; say how many they are, or leave it out"
            )
        return self


class Check(FrozenModel):
    """A check. With `partial`, a failed check scores the share that is met, otherwise 0."""

    count: ItemsPath | None = None
    share: ItemsPath | None = None
    sum: tuple[TermSpec, ...] | None = Field(default=None, min_length=1)
    values: ItemsPath | None = None
    text: Annotated[LongId, notation.PATTERN_VALIDATOR] | None = None
    function: Id | None = None
    where: TestsByColumn = EMPTY_OBJECT
    among: TestsByColumn = EMPTY_OBJECT
    column: Id | None = None
    per: PositiveNumber | None = None
    includes: Scalars | None = None
    excludes: Scalars | None = None
    distinct: Literal[True] | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    equals: Number | None = None
    between: tuple[Number, Number] | None = None
    params: JsonObject = EMPTY_OBJECT
    partial: StrictBool = False

    @model_validator(mode="after")
    def _check_measure(self) -> Self:
        measure_names = [name for name in CHECK_MEASURES if getattr(self, name) is not None]
        if len(measure_names) != 1:
            raise ValueError(
                f"measures {' and '.join(measure_names) or 'nothing'}; give one of {', '.join(CHECK_MEASURES)}"
            )
        (measure,) = measure_names
        allowed_fields = _ALLOWED_FIELDS_BY_MEASURE[measure]
        unused_fields = sorted(self.model_fields_set - {measure, *allowed_fields})
        if unused_fields:
            raise ValueError(
                f"`{unused_fields[0]}` has no meaning for `{measure}`; it takes "
                f"{', '.join(allowed_fields) or 'nothing else'}"
            )
        self._check_bounds(measure)
        return self

    def _check_bounds(self, measure: str) -> None:
        bound_fields = [name for name in BOUND_FIELDS if getattr(self, name) is not None]
        if measure in ("count", "sum") and len(bound_fields) != 1:
            raise ValueError(
                f"has {' and '.join(bound_fields) or 'no bound'}; give one of {', '.join(BOUND_FIELDS)}"
            )
        if measure == "share" and (len(bound_fields) > 1 or not self.where):
            raise ValueError(
                "a share has `where`, and at most one bound; without one all must pass"
            )
        if measure == "values":
            requirements = (self.includes, self.excludes, self.distinct)
            if requirements.count(None) != 2 or self.column is None:
                raise ValueError(
                    "values have a `column`, and one of `includes`, `excludes` and `distinct`"
                )
        if self.between is not None and not self.between[0] <= self.between[1]:
            raise ValueError("`between` does not rise; write the lower end first")
        low, high = self.bound_interval
        if bound_fields and (high < 0 or (measure == "share" and low > 1)):
            upper = "1" if measure == "share" else "any number"
            raise ValueError(
                f"`{bound_fields[0]}` can never be met: a {measure} lies from 0 to {upper}"
            )
        if measure == "count" and math.isfinite(low) and math.ceil(low) > high:
            raise ValueError(f"`{bound_fields[0]}` can never be met: a count is a whole number")

    @property
    def measure(self) -> str:
        return next(name for name in CHECK_MEASURES if getattr(self, name) is not None)

    @property
    def bound_interval(self) -> tuple[float, float]:
        """Return the least and greatest allowed value of the measure; a share must be 1 without a bound."""
        if self.between is not None:
            return self.between
        if self.equals is not None:
            return self.equals, self.equals
        if self.at_most is not None:
            return -math.inf, self.at_most
        return (1.0 if self.at_least is None else self.at_least), math.inf

    @cached_property
    def items(self) -> tuple[tuple[str, frozenset[str]], ...]:
        if self.sum is not None:
            return tuple(
                (term.of, _list_tested_columns(term.where, term.column, term.times, term.places))
                for term in self.sum
            )
        source = self.count or self.share or self.values
        if not source:
            return ()
        columns = _list_tested_columns(self.where, self.column) | _list_tested_columns(self.among)
        return ((source, columns),)

    @cached_property
    def claim_kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self.items if not kind.startswith("$")))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for path, _ in self.items if path.startswith("$")))


def _list_tested_columns(tests: TestsByColumn, *operands: str | float | None) -> frozenset[str]:
    columns = set(tests)
    for _, value in chain.from_iterable(tests.values()):
        if isinstance(value, Column):
            columns.add(value.column)
    columns.update(operand for operand in operands if isinstance(operand, str))
    return frozenset(columns)


_TensionOrNone = tuple[float, str] | None
"""The strength of a tension, and the reason; None where there is none."""


def find_tensions(first: Stakeholder, second: Stakeholder) -> list[ConstraintTension]:
    """Return the tensions between two stakeholders, in the order of the constraints' ids."""
    checks = (_parse_constraint_checks(person.constraints) for person in (first, second))
    return list(_iter_tensions(product(*checks)))


def find_contradictions(constraints: Sequence[Constraint]) -> list[ConstraintTension]:
    """Return the pairs of one stakeholder's hard constraints that no response can satisfy together."""
    checks = _parse_constraint_checks(c for c in constraints if c.kind == "hard")
    tensions = _iter_tensions(combinations(checks, 2))
    return [tension for tension in tensions if tension.strength == 1.0]


def _parse_constraint_checks(constraints: Iterable[Constraint]) -> list[tuple[str, Check]]:
    """Return the checks with their constraints' ids, ordered by id; without those of another evaluator's vocabulary."""
    checks = []
    for constraint in sort_by_id(constraints):
        with contextlib.suppress(ValidationError):
            if constraint.check is not None:
                checks.append((constraint.id, Check.model_validate(constraint.check)))
    return checks


def _iter_tensions(pairs: Iterable[Sequence[tuple[str, Check]]]) -> Iterator[ConstraintTension]:
    for (first, check), (second, other) in pairs:
        tension = _find_tension_of_checks(check, other)
        if tension is not None:
            yield ConstraintTension(first, second, *tension)


def _find_tension_of_checks(first: Check, second: Check) -> _TensionOrNone:
    if first.values is None and _normalise_measure(first) == _normalise_measure(second):
        return _find_bounds_tension(first, second)
    if first.share is not None and first.share == second.share:
        return _find_shares_tension(first, second)
    if first.values is not None and (first.values, first.column) == (second.values, second.column):
        for including_check, excluding_check in ((first, second), (second, first)):
            excluded_values = () if excluding_check.where else excluding_check.excludes or ()
            if any(is_one_of(value, excluded_values) for value in including_check.includes or ()):
                return 1.0, f"what is wanted of {first.values} is barred"
    return None


def _find_shares_tension(first: Check, second: Check) -> _TensionOrNone:
    # Two shares that add up to more than 1 have an item in common, which has to pass the tests of both.
    has_common_item = first.bound_interval[0] + second.bound_interval[0] > 1.0
    if first.among or second.among or not has_common_item:
        return None
    for column in sorted(first.where.keys() & second.where.keys()):
        test = first.where[column]
        other = second.where[column]
        if _is_test_contradicted(test, other) or _is_test_contradicted(other, test):
            return 1.0, f"no {column} of {first.share} passes both"
    return None


def _normalise_measure(check: Check) -> Check:
    """Return a check without its bounds and independent of the order of its terms; a sum without its divisor."""
    terms = None if check.sum is None else tuple(sorted(check.sum, key=lambda term: term.digest))
    return check.model_copy(
        update={**dict.fromkeys(BOUND_FIELDS), "partial": False, "per": None, "sum": terms}
    )


def _find_bounds_tension(first: Check, second: Check) -> _TensionOrNone:
    low, high = (end * (first.per or 1.0) for end in first.bound_interval)
    other_low, other_high = (end * (second.per or 1.0) for end in second.bound_interval)
    if max(low, other_low) > min(high, other_high):
        return 1.0, f"no {first.measure} can be both"
    if low == other_low == -math.inf:
        return _compute_gap_tension(first, sorted((high, other_high)))
    if high == other_high == math.inf:
        return _compute_gap_tension(first, sorted((low, other_low)))
    return None


def _compute_gap_tension(check: Check, ends: Sequence[float]) -> _TensionOrNone:
    smaller_bound, larger_bound = ends
    if larger_bound <= 0 or larger_bound == smaller_bound:
        return None
    strength = 1.0 - max(0.0, smaller_bound) / larger_bound
    why = f"the bounds {value_to_text(smaller_bound)} and {value_to_text(larger_bound)} of one {check.measure} differ"
    return strength, why


def _is_test_contradicted(first: Test, second: Test) -> bool:
    """Return true if the second test fails for all that the first allows, or requires of a list."""
    at_least = second.at_least
    at_most = second.at_most
    if _is_less_than(at_most, first.at_least):
        return True
    are_both_set = first.has is not None and second.has_not is not None
    if are_both_set and are_equal(first.has, second.has_not):
        return True
    allowed_values = _constant_as_list(first.equals) or first.one_of
    if allowed_values is None:
        return False
    barred_values = [*(second.none_of or ()), *_constant_as_list(second.is_not)]
    if all(is_one_of(value, barred_values) for value in allowed_values):
        return True
    if all(
        _is_less_than(value, at_least) or _is_less_than(at_most, value) for value in allowed_values
    ):
        return True
    other_allowed_values = _constant_as_list(second.equals) or second.one_of
    return other_allowed_values is not None and not any(
        is_one_of(value, other_allowed_values) for value in allowed_values
    )


def _is_less_than(value: Any, other: Any) -> bool:
    return compare_values(value, other) == -1


def _constant_as_list(value: Any) -> list[Any]:
    return [] if value is None or isinstance(value, Column) else [value]
