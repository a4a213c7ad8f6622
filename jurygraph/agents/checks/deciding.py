"""Whether a check holds of a response's items: how many there are, which share of them passes, what they add up to."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jurygraph.agents.checks.bounds import bounded
from jurygraph.agents.checks.columns import decide_column
from jurygraph.agents.checks.decided import Decided, Unknown, hanging_on
from jurygraph.agents.checks.items import Item, Truth, holds
from jurygraph.agents.checks.stated import Check, Term
from jurygraph.agents.checks.values import Amount, amount
from jurygraph.agents.facts.names import shown

Items = Mapping[str, Sequence[Item]]


def decide_check(check: Check, items: Items) -> Decided:
    """Decide a check that measures items. `items` has every source that the check names."""
    if check.values is not None:
        return decide_column(check, items[check.values])
    if check.share is not None:
        return _share(check, items[check.share])
    if check.count is not None:
        return _count(check, items[check.count])
    return _sum(check, items)


def _count(check: Check, items: Sequence[Item]) -> Decided:
    unknown = Unknown()
    held = [(item, unknown.noted(holds(check.where, item), item)) for item in items]

    def number(unshown: bool, untold: bool) -> float:
        counted = _counted(unshown, untold)
        return sum(counted[truth] for _, truth in held)

    at = [item for item, truth in held if truth == "yes"]
    return bounded(check, number, f"the number of {check.count}", unknown, at)


def _counted(unshown: bool, untold: bool) -> Mapping[Truth, bool]:
    return {"yes": True, "no": False, "unshown": unshown, "untold": untold}


def _share(check: Check, items: Sequence[Item]) -> Decided:
    if not items:
        return Decided(False, 0.0, f"the response names no {check.share}")
    among = [(item, of) for item in items if (of := holds(check.among, item)).truth != "no"]
    if not among:
        return Decided(True, 1.0, f"none of the {check.share} is of that kind")
    unknown = Unknown()
    held = [(item, unknown.noted(of, item), unknown.noted(holds(check.where, item), item)) for item, of in among]

    def share(unshown: bool, untold: bool) -> float | None:
        """Of what is perhaps not among them, what passes adds to the share by being so, and else by not being so."""
        counted = _counted(unshown, untold)
        passing = [counted[truth] for _, of, truth in held if of == "yes" or counted[truth] == counted[of]]
        return sum(passing) / len(passing) if passing else None

    yes = [item for item, _, truth in held if truth == "yes"]
    no = [item for item, _, truth in held if truth == "no"]
    return bounded(check, share, f"the share of {check.share} that pass", unknown, no or yes)


def _sum(check: Check, items: Items) -> Decided:
    terms = check.sum or ()
    if not any(items[term.of] for term in terms):
        return Decided(False, 0.0, f"the response names no {' and no '.join(dict.fromkeys(t.of for t in terms))}")
    unknown = Unknown()
    added = [one for term in terms for item in items[term.of] if (one := _added(term, item, unknown)) is not None]
    mixed = _mixed(added)
    if mixed is not None:
        return mixed
    per = check.per or 1.0

    def total(unshown: bool, untold: bool) -> float:
        counted = _counted(unshown, untold)
        return _total(one.price.number if one.price else math.inf for one in added if counted[one.truth]) / per

    told = "the sum" + (f" per {shown(per)}" if check.per else "")
    at = {id(one.item): one.item for one in added if one.truth == "yes"}
    return bounded(check, total, told, unknown, [*at.values()])


class _Added(NamedTuple):
    """What an item adds to a sum, and whether it does; `price` is None where it can be anything."""

    item: Item
    truth: Truth
    price: Amount | None
    own: bool


def _added(term: Term, item: Item, unknown: Unknown) -> _Added | None:
    held = holds(term.where, item)
    if held.truth == "no":
        return None
    price, lacking = _price(term, item)
    truth = unknown.noted(hanging_on(lacking, held, item), item)
    return _Added(item, truth, price, own=item.lacks(term.column) == "unshown")


def _price(term: Term, item: Item) -> tuple[Amount | None, Sequence[str]]:
    """What an item costs, or the columns that leave it open. Nothing costs less than nothing."""
    stated = (term.column, term.times or 1.0, term.places)
    price, times, places = (_number(one, item) for one in stated)
    if price is None or times is None or places is None:
        return None, [str(one) for one, found in zip(stated, (price, times, places), strict=True) if found is None]
    units = 1.0 if term.people is None else _units(term.people, places.number)
    if units is None:
        return None, [str(term.places)]
    return Amount(price.number * times.number * units, price.currency), ()


def _number(stated: str | float, item: Item) -> Amount | None:
    """A number that is stated, or that stands in a column; None where there is none, or one below 0."""
    if not isinstance(stated, str):
        return Amount(float(stated), "")
    found = amount(item.value(stated))
    return found if found is not None and found.number >= 0 else None


def _units(people: float, places: float) -> float | None:
    """How many units of so many places people need; None where that is no number."""
    needed = people / places if places > 0 else math.inf
    return float(math.ceil(needed)) if math.isfinite(needed) else None


def _total(prices: Iterable[float]) -> float:
    """The same for every order of the items."""
    try:
        return math.fsum(prices)
    except OverflowError:
        return math.inf


def _mixed(added: Sequence[_Added]) -> Decided | None:
    """Amounts in several currencies make no sum, which is the response's fault where it wrote any of them itself."""
    priced = {one.price.currency: one for one in added if one.price is not None and one.price.currency}
    if len(priced) < 2:
        return None
    own = any(one.own for one in added if one.price is not None and one.price.currency)
    return Decided(False if own else None, 0.0, f"{' and '.join(sorted(priced))} are mixed, and no rate is stated")
