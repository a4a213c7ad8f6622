"""Decide a check of a response's items: how many there are, which share passes, and what they add up to."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jurygraph.agents.checks.bounds import decide_bound
from jurygraph.agents.checks.columns import decide_column
from jurygraph.agents.checks.items import Item, Truth, run_tests
from jurygraph.agents.checks.result import CheckResult, UnknownValues, depending_on
from jurygraph.agents.checks.spec import Check, Term
from jurygraph.agents.checks.values import Amount, parse_amount
from jurygraph.agents.facts.names import to_text

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
