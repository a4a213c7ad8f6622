"""What a column of items includes, excludes, or never repeats."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

from jurygraph.agents.checks.decided import Decided, Unknown, hanging_on, some
from jurygraph.agents.checks.items import Item, Truth, holds
from jurygraph.agents.checks.stated import Check, Scalar
from jurygraph.agents.checks.values import is_one_of, key, parts
from jurygraph.agents.facts.names import shown
from jurygraph.sources.complaint import shortened


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


def decide_column(check: Check, items: Sequence[Item]) -> Decided:
    """Decide a check of a column's values."""
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
        truth = seen.unknown.noted(hanging_on([column] if value is None else [], held, item), item)
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
        return seen.unknown.undecided(reason)
    if seen.unknown.unshown:
        return seen.unknown.unproven(reason, share)
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
        return unknown.unproven(reason)
    return unknown.undecided(reason) if "untold" in open_ else Decided(True, 1.0, reason)


def _listed(values: Sequence[Any]) -> str:
    return some([shortened(shown(value)) for value in values], ", ", 10)
