"""Decide a check of a response's items: bounds, columns, how many there are, which share passes, what they add up to.

A value that the response made up (no such row exists), or omits from its own data, can be anything, so a check that
depends on it does not hold. A value missing in the tables is no fault of the response: a check that depends only on
such values cannot be decided, and abstains.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from jurygraph.agents.checks.items import ListedItem, Open, Truth, lacking_columns, truth_without
from jurygraph.agents.checks.spec import Check, Scalar, TermSpec, Tests
from jurygraph.agents.facts.values import Amount, are_equal, equality_key, is_one_of, parse_amount, split_list, to_text
from jurygraph.messages import shorten


class CheckResult(NamedTuple):
    """The result of a check. `holds` is None if it cannot be decided; `reason` then names what is missing.

    `share` is the share of the requirement that is surely met. `items` are the items that the result depends on.
    """

    holds: bool | None
    share: float
    reason: str
    items: Sequence[ListedItem] = ()


class Unknowns:
    """The unknown values that a measure depends on: the response cannot show them, or the tables do not have them."""

    def __init__(self) -> None:
        self._unknown: list[tuple[ListedItem, str]] = []

    def __bool__(self) -> bool:
        return bool(self._unknown)

    def run_tests(self, tests: Tests, item: ListedItem) -> Truth:
        """Return the truth of tests, and record the values that the item lacks."""
        lacking = lacking_columns(tests, item)
        return "no" if lacking is None else self.record(item, lacking)

    def record(self, item: ListedItem, lacking: Sequence[str]) -> Truth:
        """Record the columns that the item lacks; return the truth of what depends on them alone."""
        if lacking:
            self._unknown += ((item, column) for column in lacking)
        return truth_without(lacking, item)

    def describe(self, why: Open) -> list[str]:
        return [item.describe_unknown(column) for item, column in self._unknown if item.reason_unknown(column) == why]

    def undecided_result(self, reason: str) -> CheckResult:
        return CheckResult(None, 0.0, f"{reason}; the tables do not tell {_join_first(self.describe('untold'))}")

    def unproven_result(self, reason: str, share: float = 0.0) -> CheckResult:
        message = f"{reason}; it cannot be shown, for {_join_first(self.describe('unshown'))}"
        return CheckResult(False, share, message, [*{id(item): item for item, _ in self._unknown}.values()])


def _join_first(texts: Sequence[str], between: str = "; ", most: int = 5) -> str:
    """Join the texts, each once, and count those beyond the first `most`."""
    unique = list(dict.fromkeys(texts))
    return between.join(unique[:most]) + (f"{between}and {len(unique) - most} more" if len(unique) > most else "")


Items = Mapping[str, Sequence[ListedItem]]


def decide_check(check: Check, items: Items) -> CheckResult:
    """Decide a check that measures items. `items` contains every source that the check names."""
    if check.values is not None:
        return _decide_column(check, items[check.values])
    if check.share is not None:
        return _decide_share(check, items[check.share])
    if check.count is not None:
        return _decide_count(check, items[check.count])
    return _decide_sum(check, items)


Counted = Mapping[Truth, bool]
"""Says for each truth if what has it counts: "yes" does, "no" does not, and unknown ones do in some possible worlds."""


def _decide_count(check: Check, items: Sequence[ListedItem]) -> CheckResult:
    unknown = Unknowns()
    truths = [(item, unknown.run_tests(check.where, item)) for item in items]

    def count(counted: Counted) -> float:
        return sum(counted[truth] for _, truth in truths)

    at = [item for item, truth in truths if truth == "yes"]
    return _decide_bound(check, count, f"the number of {check.count}", unknown, at)


def _decide_share(check: Check, items: Sequence[ListedItem]) -> CheckResult:
    if not items:
        return CheckResult(False, 0.0, f"the response names no {check.share}")
    unknown = Unknowns()
    truths = [
        (item, among, unknown.run_tests(check.where, item))
        for item in items
        if (among := unknown.run_tests(check.among, item)) != "no"
    ]
    if not truths:
        return CheckResult(True, 1.0, f"none of the {check.share} is of that kind")

    def share(counted: Counted) -> float | None:
        """Count an item that is only perhaps `among` if that moves the share: up if unknown values add, else down."""
        passing = [counted[truth] for _, among, truth in truths if among == "yes" or counted[truth] == counted[among]]
        return sum(passing) / len(passing) if passing else None

    yes = [item for item, _, truth in truths if truth == "yes"]
    no = [item for item, _, truth in truths if truth == "no"]
    return _decide_bound(check, share, f"the share of {check.share} that pass", unknown, no or yes)


def _decide_sum(check: Check, items: Items) -> CheckResult:
    terms = check.sum or ()
    per = check.per or 1.0
    if not any(items[term.of] for term in terms):
        return CheckResult(False, 0.0, f"the response names no {' and no '.join(dict.fromkeys(t.of for t in terms))}")
    unknown = Unknowns()
    addends = []
    for term in terms:
        for item in items[term.of]:
            lacking = lacking_columns(term.where, item)
            if lacking is not None:
                price, unpriced = _price(term, item)
                truth = unknown.record(item, [*lacking, *unpriced])
                addends.append(_Addend(item, truth, price, is_own=item.reason_unknown(term.column) == "unshown"))
    priced = [addend for addend in addends if addend.price is not None and addend.price.currency]
    currencies = sorted({addend.price.currency for addend in priced if addend.price})
    if len(currencies) > 1:  # a fault of the response if it wrote any of them itself
        holds = False if any(addend.is_own for addend in priced) else None
        return CheckResult(holds, 0.0, f"{' and '.join(currencies)} are mixed, and no rate is stated")

    def total(counted: Counted) -> float:
        prices = (addend.price.number if addend.price else math.inf for addend in addends if counted[addend.truth])
        try:
            return math.fsum(prices) / per  # exact, and so the same in every order
        except OverflowError:
            return math.inf

    label = "the sum" + (f" per {to_text(per)}" if check.per else "")
    at = {id(addend.item): addend.item for addend in addends if addend.truth == "yes"}
    return _decide_bound(check, total, label, unknown, [*at.values()])


class _Addend(NamedTuple):
    """The contribution of an item to a sum, and the truth of counting it; `price` is None if it could be anything."""

    item: ListedItem
    truth: Truth
    price: Amount | None
    is_own: bool


def _price(term: TermSpec, item: ListedItem) -> tuple[Amount | None, Sequence[str]]:
    """Return the price of an item, or the columns that leave it unknown. Negative prices count as unknown."""
    price = _amount(term.column, item)
    times = _number(term.times or 1.0, item)
    places = _number(term.places, item)
    if price is None or times is None or places is None:
        operands = {term.column: price, term.times: times, term.places: places}
        return None, [str(operand) for operand, amount in operands.items() if amount is None]
    number = price.number * times
    if term.people is not None:
        units = term.people / places if places > 0 else math.inf
        if not math.isfinite(units):
            return None, [str(term.places)]
        number *= float(math.ceil(units))
    return Amount(number, price.currency), ()


def _amount(column: str, item: ListedItem) -> Amount | None:
    result = parse_amount(item.value(column))
    return result if result is not None and result.number >= 0 else None


def _number(operand: str | float, item: ListedItem) -> float | None:
    if not isinstance(operand, str):
        return float(operand)
    amount = _amount(operand, item)
    return None if amount is None else amount.number


_ROUNDING = 1e-9

Measure = Callable[[Counted], float | None]
"""A function that computes the measure, given what counts. None if there is nothing to measure, which satisfies any
bound. Counting more never makes it smaller."""

_Interval = tuple[float, float]
"""The least and greatest value of a number."""


def _decide_bound(
    check: Check, measure: Measure, label: str, unknown: Unknowns, at: Sequence[ListedItem]
) -> CheckResult:
    """Decide a bound on a measure. Unshown values count as the worst case."""
    bound = low, high = check.bound
    if unknown:
        worlds = [
            [measure({"yes": True, "no": False, "unshown": unshown, "untold": untold}) for untold in (False, True)]
            for unshown in (False, True)
        ]
    else:
        worlds = [[measure({"yes": True, "no": False})] * 2] * 2
    values = [value for world in worlds for value in world if value is not None]
    span = min(values), max(values)
    result = f"{label} is {_describe_range(span, 6)}"
    if all(_reaches(value, low) and _is_at_most(value, high) for value in values):
        return CheckResult(True, 1.0, f"{result}, as asked", at)
    if _is_outside(span, bound) and len(values) == 4:
        return CheckResult(False, _closeness(span, bound), f"{result}, not {_describe_range(bound)}", at)
    reason = f"{result}, and {_describe_range(bound)} is asked for"
    if any(_is_outside(world, bound) for world in worlds):
        return unknown.unproven_result(reason)
    return unknown.undecided_result(reason)


def _is_outside(values: Sequence[float | None], bound: _Interval) -> bool:
    """Return true if every possible value of the measure lies on the same side of the bound."""
    low, high = bound
    is_below = all(value is not None and not _reaches(value, low) for value in values)
    return is_below or all(value is not None and not _is_at_most(value, high) for value in values)


def _reaches(value: float, limit: float) -> bool:
    return value >= limit - _ROUNDING * max(1.0, abs(limit))


def _is_at_most(value: float, limit: float) -> bool:
    return value <= limit + _ROUNDING * max(1.0, abs(limit))


def _closeness(span: _Interval, bound: _Interval) -> float:
    """Return the closeness to the bound in [0, 1]: the share of the minimum, or 1 minus the relative excess."""
    (least, greatest), (low, high) = span, bound
    if not _is_at_most(least, high):
        return 0.0 if high <= 0 or greatest == math.inf else max(0.0, 1.0 - (greatest - high) / high)
    return least / low  # measures are never negative, so the lower bound is above 0


def _describe_range(span: _Interval, digits: int | None = None) -> str:
    low, high = span
    least, most = (to_text(end if digits is None else round(end, digits)) for end in span)
    if low == high:
        return least
    if high == math.inf:
        return f"{least} or more"
    return f"{most} or less" if low == -math.inf else f"{least} to {most}"


_ANYTHING = object()
"""Marks a value that is unknown."""


class _Value(NamedTuple):
    """A value of an item, or `_ANYTHING`, and the truth of counting it."""

    item: ListedItem
    truth: Truth
    value: Any


def _decide_column(check: Check, items: Sequence[ListedItem]) -> CheckResult:
    unknown = Unknowns()
    column = check.column or ""
    values: list[_Value] = []
    for item in items:
        lacking = lacking_columns(check.where, item)
        if lacking is not None:
            value = item.value(column)
            truth = unknown.record(item, lacking if value is not None else [*lacking, column])
            parts = [_ANYTHING] if value is None else split_list(value, item.lists.get(column))
            values += [_Value(item, truth, part) for part in parts]
    label = f"{column} of {check.values}"
    if check.includes is not None:
        return _decide_includes(label, check.includes, values, unknown)
    if check.excludes is not None:
        return _decide_excludes(label, check.excludes, values, unknown)
    return _decide_distinct(label, values, unknown)


def _among(values: Sequence[_Value], wanted: Sequence[Scalar]) -> list[_Value]:
    return [entry for entry in values if entry.value is not _ANYTHING and is_one_of(entry.value, wanted)]


def _includes(values: Sequence[_Value], wanted: Scalar, truth: Truth) -> bool:
    return any(entry.truth == truth and are_equal(entry.value, wanted) for entry in values)


def _decide_includes(label: str, wanted: Sequence[Scalar], values: Sequence[_Value], unknown: Unknowns) -> CheckResult:
    among = _among(values, wanted)
    absent = [value for value in wanted if not _includes(among, value, "yes")]
    at = [entry.item for entry in among if entry.truth == "yes"]
    if not absent:
        return CheckResult(True, 1.0, f"{label} includes {_quote_values(wanted)}", at)
    share = 1.0 - len(absent) / len(wanted)
    reason = f"{label} does not include {_quote_values(absent)}"
    has_untold = any(entry.value is _ANYTHING and entry.truth == "untold" for entry in values)
    if has_untold or all(_includes(among, value, "untold") for value in absent):
        return unknown.undecided_result(reason)
    if unknown.describe("unshown"):
        return unknown.unproven_result(reason, share)
    return CheckResult(False, share, reason, at)


def _decide_excludes(label: str, barred: Sequence[Scalar], values: Sequence[_Value], unknown: Unknowns) -> CheckResult:
    among = _among(values, barred)
    violations = [entry for entry in among if entry.truth == "yes"]
    perhaps = [entry for entry in among if entry.truth != "yes"]
    perhaps += [entry for entry in values if entry.value is _ANYTHING]
    if not violations:
        reason = f"{label} includes none of {_quote_values(barred)}"
        return _decide_unless_open(reason, [entry.truth for entry in perhaps], unknown)
    violating_ids = {id(entry.item) for entry in (*violations, *perhaps)}
    known_ids = {id(entry.item) for entry in values if entry.value is not _ANYTHING and entry.truth == "yes"}
    reason = f"{label} includes {_quote_values([entry.value for entry in violations])}"
    share = 1.0 - len(violating_ids) / len(known_ids | violating_ids)
    return CheckResult(False, share, reason, [entry.item for entry in violations])


def _decide_distinct(label: str, values: Sequence[_Value], unknown: Unknowns) -> CheckResult:
    truths_of_anything = [entry.truth for entry in values if entry.value is _ANYTHING]
    entries_by_value: dict[Hashable, list[_Value]] = {}
    for entry in values:
        if entry.value is not _ANYTHING:
            entries_by_value.setdefault(equality_key(entry.value), []).append(entry)
    repeated = [entries for entries in entries_by_value.values() if len(entries) > 1]
    repeats = [entry for entries in repeated for entry in [each for each in entries if each.truth == "yes"][1:]]
    if not repeats:
        shown = (sum(entry.truth != "untold" for entry in entries) for entries in repeated)
        reasons: list[Truth] = ["unshown" if number > 1 else "untold" for number in shown]
        return _decide_unless_open(f"{label} never repeats", [*reasons, *truths_of_anything], unknown)
    counts = [sum(entry.truth == "yes" for entry in entries) for entries in entries_by_value.values()]
    doubtful = sum(entry.truth != "yes" for entries in repeated for entry in entries)
    share = 0.0 if truths_of_anything else sum(map(bool, counts)) / (sum(counts) + doubtful)
    reason = f"{label} repeats {_quote_values([entry.value for entry in repeats])}"
    return CheckResult(False, share, reason, [entry.item for entry in repeats])


def _decide_unless_open(reason: str, open_: Collection[Truth], unknown: Unknowns) -> CheckResult:
    if "unshown" in open_:
        return unknown.unproven_result(reason)
    return unknown.undecided_result(reason) if "untold" in open_ else CheckResult(True, 1.0, reason)


def _quote_values(values: Sequence[Any]) -> str:
    return _join_first([shorten(to_text(value)) for value in values], ", ", 10)
