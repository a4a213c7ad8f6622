"""Whether a check holds of a response's items: what is known decides, and what is not known is told.

What the response made up (there is no such row), or leaves out of its own data, can be anything, so a check that hangs
on it does not hold. What the tables leave open is no fault of the response: a check that hangs on it alone cannot be
decided, and abstains.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jurygraph.agents.checks.items import Held, Item, Truth, holds, lacks
from jurygraph.agents.checks.stated import Check, Scalar, Term
from jurygraph.agents.checks.values import Amount, amount, is_one_of, key, parts
from jurygraph.agents.facts.names import shown
from jurygraph.sources.complaint import shortened

ROUNDING = 1e-9
Items = Mapping[str, Sequence[Item]]
Measure = Callable[[bool, bool], float | None]
"""What is measured, if all that is unshown, and all that is untold, adds to it or not; None where there is nothing to
measure, which is as asked. Adding never makes it less."""


@dataclass
class Unknown:
    """What a measure hangs on and is not known: what the response cannot show, and what the tables do not tell.

    `items` are those that lack something, each once.
    """

    unshown: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    items: dict[int, Item] = field(default_factory=dict)

    def note(self, item: Item, columns: Sequence[str]) -> None:
        """Keep what an item lacks."""
        for column in columns:
            (self.untold if item.lacks(column) == "untold" else self.unshown).append(item.told(column))
        if columns:
            self.items[id(item)] = item


class Decided(NamedTuple):
    """`holds` None: it cannot be decided, and `reason` says what was missing. `at` are the items that it hangs on.

    `share` is how much of what was asked for there surely is.
    """

    holds: bool | None
    share: float
    reason: str
    at: Sequence[Item] = ()


def decide_check(check: Check, items: Items) -> Decided:
    """Decide a check that measures items. `items` has every source that the check names."""
    if check.values is not None:
        return _values(check, items[check.values])
    if check.share is not None:
        return _share(check, items[check.share])
    if check.count is not None:
        return _count(check, items[check.count])
    return _sum(check, items)


def _count(check: Check, items: Sequence[Item]) -> Decided:
    unknown = Unknown()
    held = [(item, _noted(holds(check.where, item), item, unknown)) for item in items]

    def number(unshown: bool, untold: bool) -> float:
        counted = _counted(unshown, untold)
        return sum(counted[truth] for _, truth in held)

    at = [item for item, truth in held if truth == "yes"]
    return _bounded(check, number, f"the number of {check.count}", unknown, at)


def _noted(held: Held, item: Item, unknown: Unknown) -> Truth:
    unknown.note(item, held.lacking)
    return held.truth


def _counted(unshown: bool, untold: bool) -> Mapping[Truth, bool]:
    return {"yes": True, "no": False, "unshown": unshown, "untold": untold}


def _share(check: Check, items: Sequence[Item]) -> Decided:
    if not items:
        return Decided(False, 0.0, f"the response names no {check.share}")
    among = [(item, of) for item in items if (of := holds(check.among, item)).truth != "no"]
    if not among:
        return Decided(True, 1.0, f"none of the {check.share} is of that kind")
    unknown = Unknown()
    held = [(item, _noted(of, item, unknown), _noted(holds(check.where, item), item, unknown)) for item, of in among]

    def share(unshown: bool, untold: bool) -> float | None:
        """Of what is perhaps not among them, what passes adds to the share by being so, and else by not being so."""
        counted = _counted(unshown, untold)
        passing = [counted[truth] for _, of, truth in held if of == "yes" or counted[truth] == counted[of]]
        return sum(passing) / len(passing) if passing else None

    yes = [item for item, _, truth in held if truth == "yes"]
    no = [item for item, _, truth in held if truth == "no"]
    return _bounded(check, share, f"the share of {check.share} that pass", unknown, no or yes)


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
    return _bounded(check, total, told, unknown, [*at.values()])


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
    truth = _noted(_with(held, item, lacking), item, unknown)
    return _Added(item, truth, price, own=item.lacks(term.column) == "unshown")


def _with(held: Held, item: Item, lacking: Sequence[str]) -> Held:
    """What hangs on more columns than the tests do."""
    return Held(lacks(item, [*held.lacking, *lacking]), [*held.lacking, *lacking]) if lacking else held


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


class _Value(NamedTuple):
    """A value of an item, None where it can be anything, and whether it counts."""

    item: Item
    truth: Truth
    value: Any


class _Seen(NamedTuple):
    """The values of a column, and those that can be anything."""

    values: list[_Value]
    anything: list[_Value]
    unknown: Unknown

    def among(self, wanted: Sequence[Scalar], *truths: Truth) -> list[_Value]:
        """Those that are wanted and count so."""
        return [one for one in self.values if one.truth in truths and is_one_of(one.value, wanted)]


def _values(check: Check, items: Sequence[Item]) -> Decided:
    seen = _seen(check, items)
    told = f"{check.column} of {check.values}"
    if check.includes is not None:
        return _includes(told, check.includes, seen)
    if check.excludes is not None:
        return _excludes(told, check.excludes, seen)
    return _distinct(told, seen)


def _seen(check: Check, items: Sequence[Item]) -> _Seen:
    seen, column = _Seen([], [], Unknown()), check.column or ""
    for item in items:
        held, value = holds(check.where, item), item.value(column)
        if held.truth == "no":
            continue
        truth = _noted(_with(held, item, [column] if value is None else []), item, seen.unknown)
        if value is None:
            seen.anything.append(_Value(item, truth, None))
        else:
            seen.values.extend(_Value(item, truth, one) for one in parts(value, item.lists.get(column)))
    return seen


def _includes(told: str, wanted: Sequence[Scalar], seen: _Seen) -> Decided:
    absent = [one for one in wanted if not seen.among([one], "yes")]
    at = [one.item for one in seen.among(wanted, "yes")]
    if not absent:
        return Decided(True, 1.0, f"{told} includes {_listed(wanted)}", at)
    share, reason = 1.0 - len(absent) / len(wanted), f"{told} does not include {_listed(absent)}"
    anything = any(one.truth == "untold" for one in seen.anything)
    if anything or all(seen.among([one], "untold") for one in absent):
        return _untold(reason, seen.unknown)
    if seen.unknown.unshown:
        return Decided(False, share, reason + _unshown(seen.unknown), [*seen.unknown.items.values()])
    return Decided(False, share, reason, at)


def _excludes(told: str, barred: Sequence[Scalar], seen: _Seen) -> Decided:
    found = seen.among(barred, "yes")
    perhaps = [*seen.among(barred, "unshown", "untold"), *seen.anything]
    if not found:
        return _unbroken(f"{told} includes none of {_listed(barred)}", [one.truth for one in perhaps], seen.unknown)
    wrong = {id(one.item) for one in (*found, *perhaps)}
    items = {id(one.item) for one in seen.values if one.truth == "yes"} | wrong
    reason = f"{told} includes {_listed([one.value for one in found])}"
    return Decided(False, 1.0 - len(wrong) / len(items), reason, [one.item for one in found])


def _distinct(told: str, seen: _Seen) -> Decided:
    alike: dict[Hashable, list[_Value]] = {}
    for one in seen.values:
        alike.setdefault(key(one.value), []).append(one)
    repeated = [ones for ones in alike.values() if len(ones) > 1]
    again = [one for ones in repeated for one in [each for each in ones if each.truth == "yes"][1:]]
    if not again:
        perhaps = [*map(_repeated, repeated), *(one.truth for one in seen.anything)]
        return _unbroken(f"{told} never repeats", perhaps, seen.unknown)
    different = sum(any(one.truth == "yes" for one in ones) for ones in alike.values())
    all_ = sum(one.truth == "yes" for one in seen.values) + sum(one.truth != "yes" for ones in repeated for one in ones)
    reason = f"{told} repeats {_listed([one.value for one in again])}"
    return Decided(False, 0.0 if seen.anything else different / all_, reason, [one.item for one in again])


def _repeated(alike: Sequence[_Value]) -> Truth:
    """Why it is not known whether a value is repeated."""
    return "unshown" if sum(one.truth != "untold" for one in alike) > 1 else "untold"


def _unbroken(reason: str, open_: Collection[Truth], unknown: Unknown) -> Decided:
    """What holds unless something that is not known breaks it."""
    if "unshown" in open_:
        return Decided(False, 0.0, reason + _unshown(unknown), [*unknown.items.values()])
    return _untold(reason, unknown) if "untold" in open_ else Decided(True, 1.0, reason)


class _Between(NamedTuple):
    """The least and the greatest of something."""

    low: float
    high: float


def _bounded(check: Check, measure: Measure, what: str, unknown: Unknown, at: Sequence[Item]) -> Decided:
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
        return Decided(False, 0.0, reason + _unshown(unknown), [*unknown.items.values()])
    return _untold(reason, unknown)


def _outside(values: Sequence[float | None], asked: _Between) -> bool:
    """Whether all that a measure can be lies to one side of what is asked."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return False
    return not any(_least(value, asked.low) for value in numbers) or not any(
        _most(value, asked.high) for value in numbers
    )


def _untold(reason: str, unknown: Unknown) -> Decided:
    return Decided(None, 0.0, f"{reason}; the tables do not tell {_some(unknown.untold)}")


def _unshown(unknown: Unknown) -> str:
    return f"; it cannot be shown, for {_some(unknown.unshown)}"


def _least(value: float, asked: float) -> bool:
    return value >= asked - ROUNDING * max(1.0, abs(asked)) if math.isfinite(asked) else True


def _most(value: float, asked: float) -> bool:
    return value <= asked + ROUNDING * max(1.0, abs(asked)) if math.isfinite(asked) else True


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


def _listed(values: Sequence[Any]) -> str:
    return _some([shortened(shown(value)) for value in values], ", ", 10)


def _some(told: Sequence[str], between: str = "; ", most: int = 5) -> str:
    each = list(dict.fromkeys(told))
    return between.join(each[:most]) + (f"{between}and {len(each) - most} more" if len(each) > most else "")
