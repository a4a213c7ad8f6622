"""Decide a check of a response's items: bounds, columns, how many there are, which share passes, what they add up to.

A value that the response made up (no such row exists), or omits from its own data, can be anything, so a check that
depends on it does not hold. A value missing in the tables is no fault of the response: a check that depends only on
such values cannot be decided, and abstains.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jurygraph.agents.checks.items import Item, TestResult, Truth, reason_unknown, run_tests
from jurygraph.agents.checks.spec import Check, Scalar, Term
from jurygraph.agents.checks.values import Amount, equality_key, is_one_of, parse_amount, split_list
from jurygraph.agents.facts.names import to_text
from jurygraph.messages import shorten


class CheckResult(NamedTuple):
    """The result of a check. `holds` is None if it cannot be decided; `reason` then names what is missing.

    `share` is the share of the requirement that is surely met. `items` are the items that the result depends on.
    """

    holds: bool | None
    share: float
    reason: str
    items: Sequence[Item] = ()


@dataclass
class UnknownValues:
    """The unknown values that a measure depends on: those the response cannot show, and those the tables do not have.

    `items` are the items that lack a value, each once.
    """

    missing_in_response: list[str] = field(default_factory=list)
    missing_in_tables: list[str] = field(default_factory=list)
    items: dict[int, Item] = field(default_factory=dict)

    def record(self, test_result: TestResult, item: Item) -> Truth:
        """Record the values that tests of an item lack, and return the truth of the tests."""
        for column in test_result.missing_columns:
            (self.missing_in_tables if item.reason_unknown(column) == "untold" else self.missing_in_response).append(
                item.describe_unknown(column)
            )
        if test_result.missing_columns:
            self.items[id(item)] = item
        return test_result.truth

    def undecided_result(self, reason: str) -> CheckResult:
        """Return an undecided result, because of values that the tables do not have."""
        return CheckResult(None, 0.0, f"{reason}; the tables do not tell {join_first(self.missing_in_tables)}")

    def unproven_result(self, reason: str, share: float = 0.0) -> CheckResult:
        """Return a failed result, because of values that the response cannot show."""
        message = f"{reason}; it cannot be shown, for {join_first(self.missing_in_response)}"
        return CheckResult(False, share, message, [*self.items.values()])


def depending_on(columns: Sequence[str], test_result: TestResult, item: Item) -> TestResult:
    """Return a test result that depends on additional columns."""
    lacking = [*test_result.missing_columns, *columns]
    return TestResult(reason_unknown(item, lacking), lacking) if columns else test_result


def join_first(texts: Sequence[str], between: str = "; ", most: int = 5) -> str:
    """Join the texts, each once, and count those beyond the first `most`."""
    unique = list(dict.fromkeys(texts))
    return between.join(unique[:most]) + (f"{between}and {len(unique) - most} more" if len(unique) > most else "")


Items = Mapping[str, Sequence[Item]]


def decide_check(check: Check, items: Items) -> CheckResult:
    """Decide a check that measures items. `items` contains every source that the check names."""
    if check.values is not None:
        return decide_column(check, items[check.values])
    if check.share is not None:
        return _decide_share(check, items[check.share])
    if check.count is not None:
        return _decide_count(check, items[check.count])
    return _decide_sum(check, items)


def _decide_count(check: Check, items: Sequence[Item]) -> CheckResult:
    unknown = UnknownValues()
    truths = [(item, unknown.record(run_tests(check.where, item), item)) for item in items]

    def number(unshown: bool, untold: bool) -> float:
        counts = _counted_truths(unshown, untold)
        return sum(counts[truth] for _, truth in truths)

    at = [item for item, truth in truths if truth == "yes"]
    return decide_bound(check, number, f"the number of {check.count}", unknown, at)


def _counted_truths(unshown: bool, untold: bool) -> Mapping[Truth, bool]:
    return {"yes": True, "no": False, "unshown": unshown, "untold": untold}


def _decide_share(check: Check, items: Sequence[Item]) -> CheckResult:
    if not items:
        return CheckResult(False, 0.0, f"the response names no {check.share}")
    among = [(item, among_result) for item in items if (among_result := run_tests(check.among, item)).truth != "no"]
    if not among:
        return CheckResult(True, 1.0, f"none of the {check.share} is of that kind")
    unknown = UnknownValues()
    truths = [
        (item, unknown.record(among_result, item), unknown.record(run_tests(check.where, item), item))
        for item, among_result in among
    ]

    def share(unshown: bool, untold: bool) -> float | None:
        """Count an item that is only perhaps `among` if that moves the share: up if unknown values add, else down."""
        counts = _counted_truths(unshown, untold)
        passing = [
            counts[truth]
            for _, among_truth, truth in truths
            if among_truth == "yes" or counts[truth] == counts[among_truth]
        ]
        return sum(passing) / len(passing) if passing else None

    yes = [item for item, _, truth in truths if truth == "yes"]
    no = [item for item, _, truth in truths if truth == "no"]
    return decide_bound(check, share, f"the share of {check.share} that pass", unknown, no or yes)


def _decide_sum(check: Check, items: Items) -> CheckResult:
    terms = check.sum or ()
    if not any(items[term.of] for term in terms):
        return CheckResult(False, 0.0, f"the response names no {' and no '.join(dict.fromkeys(t.of for t in terms))}")
    unknown = UnknownValues()
    addends = [
        addend
        for term in terms
        for item in items[term.of]
        if (addend := _evaluate_term(term, item, unknown)) is not None
    ]
    mixed = _check_currencies(addends)
    if mixed is not None:
        return mixed
    per = check.per or 1.0

    def total(unshown: bool, untold: bool) -> float:
        counts = _counted_truths(unshown, untold)
        return (
            _total(addend.price.number if addend.price else math.inf for addend in addends if counts[addend.truth])
            / per
        )

    label = "the sum" + (f" per {to_text(per)}" if check.per else "")
    at = {id(addend.item): addend.item for addend in addends if addend.truth == "yes"}
    return decide_bound(check, total, label, unknown, [*at.values()])


class _Addend(NamedTuple):
    """The contribution of an item to a sum, and the truth of counting it; `price` is None if it could be anything."""

    item: Item
    truth: Truth
    price: Amount | None
    own: bool


def _evaluate_term(term: Term, item: Item, unknown: UnknownValues) -> _Addend | None:
    test_result = run_tests(term.where, item)
    if test_result.truth == "no":
        return None
    price, lacking = _price(term, item)
    truth = unknown.record(depending_on(lacking, test_result, item), item)
    return _Addend(item, truth, price, own=item.reason_unknown(term.column) == "unshown")


def _price(term: Term, item: Item) -> tuple[Amount | None, Sequence[str]]:
    """Return the price of an item, or the columns that leave it unknown. Negative prices count as unknown."""
    operands = (term.column, term.times or 1.0, term.places)
    price, times, places = (_number(operand, item) for operand in operands)
    if price is None or times is None or places is None:
        return None, [
            str(operand) for operand, number in zip(operands, (price, times, places), strict=True) if number is None
        ]
    units = 1.0 if term.people is None else _units(term.people, places.number)
    if units is None:
        return None, [str(term.places)]
    return Amount(price.number * times.number * units, price.currency), ()


def _number(operand: str | float, item: Item) -> Amount | None:
    """Return a constant, or the number in a column; None if there is none, or if it is negative."""
    if not isinstance(operand, str):
        return Amount(float(operand), "")
    result = parse_amount(item.value(operand))
    return result if result is not None and result.number >= 0 else None


def _units(people: float, places: float) -> float | None:
    """Return how many units with `places` places each `people` need; None if that is not finite."""
    needed = people / places if places > 0 else math.inf
    return float(math.ceil(needed)) if math.isfinite(needed) else None


def _total(prices: Iterable[float]) -> float:
    """Return the exact sum, which does not depend on the order of the items."""
    try:
        return math.fsum(prices)
    except OverflowError:
        return math.inf


def _check_currencies(addends: Sequence[_Addend]) -> CheckResult | None:
    """Return a result if amounts have several currencies: a failure if the response wrote any of them itself."""
    priced = {addend.price.currency: addend for addend in addends if addend.price is not None and addend.price.currency}
    if len(priced) < 2:
        return None
    is_own = any(addend.own for addend in addends if addend.price is not None and addend.price.currency)
    return CheckResult(
        False if is_own else None, 0.0, f"{' and '.join(sorted(priced))} are mixed, and no rate is stated"
    )


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


class _Value(NamedTuple):
    """A value of an item, None if it could be anything, and the truth of counting it."""

    item: Item
    truth: Truth
    value: Any


class _ColumnValues(NamedTuple):
    """The values of a column, and the entries whose value could be anything."""

    values: list[_Value]
    anything: list[_Value]
    unknown: UnknownValues

    def among(self, wanted: Sequence[Scalar], *truths: Truth) -> list[_Value]:
        """Return the entries with a wanted value and one of the truths."""
        return [entry for entry in self.values if entry.truth in truths and is_one_of(entry.value, wanted)]


def decide_column(check: Check, items: Sequence[Item]) -> CheckResult:
    """Decide a check of a column's values."""
    column_values = _read_column(check, items)
    label = f"{check.column} of {check.values}"
    if check.includes is not None:
        return _decide_includes(label, check.includes, column_values)
    if check.excludes is not None:
        return _decide_excludes(label, check.excludes, column_values)
    return _decide_distinct(label, column_values)


def _read_column(check: Check, items: Sequence[Item]) -> _ColumnValues:
    column_values, column = _ColumnValues([], [], UnknownValues()), check.column or ""
    for item in items:
        test_result, value = run_tests(check.where, item), item.value(column)
        if test_result.truth == "no":
            continue
        truth = column_values.unknown.record(depending_on([column] if value is None else [], test_result, item), item)
        if value is None:
            column_values.anything.append(_Value(item, truth, None))
        else:
            column_values.values.extend(_Value(item, truth, part) for part in split_list(value, item.lists.get(column)))
    return column_values


def _decide_includes(label: str, wanted: Sequence[Scalar], column_values: _ColumnValues) -> CheckResult:
    absent = [missing_value for missing_value in wanted if not column_values.among([missing_value], "yes")]
    at = [entry.item for entry in column_values.among(wanted, "yes")]
    if not absent:
        return CheckResult(True, 1.0, f"{label} includes {_quote_values(wanted)}", at)
    share, reason = 1.0 - len(absent) / len(wanted), f"{label} does not include {_quote_values(absent)}"
    anything = any(entry.truth == "untold" for entry in column_values.anything)
    if anything or all(column_values.among([value], "untold") for value in absent):
        return column_values.unknown.undecided_result(reason)
    if column_values.unknown.missing_in_response:
        return column_values.unknown.unproven_result(reason, share)
    return CheckResult(False, share, reason, at)


def _decide_excludes(label: str, barred: Sequence[Scalar], column_values: _ColumnValues) -> CheckResult:
    violations = column_values.among(barred, "yes")
    perhaps = [*column_values.among(barred, "unshown", "untold"), *column_values.anything]
    if not violations:
        return _decide_unless_open(
            f"{label} includes none of {_quote_values(barred)}",
            [entry.truth for entry in perhaps],
            column_values.unknown,
        )
    violating_ids = {id(entry.item) for entry in (*violations, *perhaps)}
    items = {id(entry.item) for entry in column_values.values if entry.truth == "yes"} | violating_ids
    reason = f"{label} includes {_quote_values([entry.value for entry in violations])}"
    return CheckResult(False, 1.0 - len(violating_ids) / len(items), reason, [entry.item for entry in violations])


def _decide_distinct(label: str, column_values: _ColumnValues) -> CheckResult:
    entries_by_value: dict[Hashable, list[_Value]] = {}
    for entry in column_values.values:
        entries_by_value.setdefault(equality_key(entry.value), []).append(entry)
    repeated = [entries for entries in entries_by_value.values() if len(entries) > 1]
    repeats = [entry for entries in repeated for entry in [each for each in entries if each.truth == "yes"][1:]]
    if not repeats:
        perhaps = [*map(_open_truth, repeated), *(entry.truth for entry in column_values.anything)]
        return _decide_unless_open(f"{label} never repeats", perhaps, column_values.unknown)
    different = sum(any(entry.truth == "yes" for entry in entries) for entries in entries_by_value.values())
    all_ = sum(entry.truth == "yes" for entry in column_values.values) + sum(
        entry.truth != "yes" for entries in repeated for entry in entries
    )
    reason = f"{label} repeats {_quote_values([entry.value for entry in repeats])}"
    return CheckResult(
        False, 0.0 if column_values.anything else different / all_, reason, [entry.item for entry in repeats]
    )


def _open_truth(entries: Sequence[_Value]) -> Truth:
    """Return why it is unknown if a value is repeated."""
    return "unshown" if sum(entry.truth != "untold" for entry in entries) > 1 else "untold"


def _decide_unless_open(reason: str, open_: Collection[Truth], unknown: UnknownValues) -> CheckResult:
    """Return a decision that holds unless an unknown value breaks it."""
    if "unshown" in open_:
        return unknown.unproven_result(reason)
    return unknown.undecided_result(reason) if "untold" in open_ else CheckResult(True, 1.0, reason)


def _quote_values(values: Sequence[Any]) -> str:
    return join_first([shorten(to_text(value)) for value in values], ", ", 10)
