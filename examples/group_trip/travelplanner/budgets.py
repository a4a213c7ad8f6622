"""The budget of a trip, as a query states it."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from examples.group_trip.travelplanner.trip_dates import blank_dates
from examples.group_trip.travelplanner.vocabulary import load_vocabulary, parse_number, pattern

_FORMS = ("budget", "budget_after", "budget_words", "budget_bare")


class _Amount(NamedTuple):
    """Dollars in a query; `each` is for one traveller, `per` the words of a rate such as "per day"."""

    start: int
    end: int
    dollars: float
    each: bool
    per: str | None


def parse_budget(query: str, people: int) -> float:
    """Return the dollars for all; an amount "per person" is for each of the `people`.

    Of a range, the upper end counts, and of a change "from … to …" the new amount. Raises ValueError if there is no
    budget for the whole trip, or more than one.
    """
    text = blank_dates(query)
    amounts = _without_replaced(text, list(_find_amounts(text)))
    if not amounts:
        raise ValueError("has no budget such as $1,700")
    whole = [amount for amount in amounts if amount.per is None]
    if not whole:
        raise ValueError(
            f"has a budget {str(amounts[0].per).strip(' /')}; write one for the whole trip"
        )
    if len({amount[2:] for amount in whole}) > 1:
        whole = [amount for amount in whole if _is_about_budget(text, amount)] or whole
    distinct = dict.fromkeys((amount.dollars, amount.each) for amount in whole)
    if len(distinct) > 1:
        several = ", ".join(
            f"${dollars:,.0f}{' each' if each else ''}" for dollars, each in distinct
        )
        raise ValueError(f"has several budgets ({several}); keep the one that counts")
    ((dollars, each),) = distinct
    return dollars * (people if each else 1)


def _find_amounts(text: str) -> Iterator[_Amount]:
    """Yield the amounts in the first form that occurs: with a sign, with a word for dollars, or only after "budget"."""
    taken: list[_Amount] = []
    for form in _FORMS:
        if form == "budget_bare" and taken:
            break
        for match in pattern(form).finditer(text):
            start, end = match.span("words" if form == "budget_words" else "n")
            if not any(start < other.end and other.start < end for other in taken):
                each = bool(match["each"] or pattern("each_before").search(text[: match.start()]))
                taken.append(_Amount(start, match.end(), _to_dollars(match), each, match["per"]))
    yield from sorted(taken)


def _to_dollars(match: re.Match[str]) -> float:
    groups = match.groupdict()
    if "words" in groups:
        return _parse_words(groups["words"])
    size = (groups["size"] or "").lower()
    return float(groups["n"].replace(",", "")) * float(load_vocabulary()["multipliers"][size])


def _parse_words(words: str) -> float:
    """Return the number of "two thousand five hundred"."""
    total = current = 0
    for word in re.split(r"[- ]", words.lower()):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word == "thousand":
            total, current = total + max(current, 1) * 1000, 0
        elif word != "and":
            current += parse_number(word)
    return float(total + current)


def _without_replaced(text: str, amounts: list[_Amount]) -> list[_Amount]:
    """Return the amounts without those that begin a range or a change."""
    replaced = {
        one
        for one, other in pairwise(amounts)
        if pattern("range_of").search(text[one.end : other.start])
    }
    return [amount for amount in amounts if amount not in replaced]


def _is_about_budget(text: str, amount: _Amount) -> bool:
    """Return True if the budget is named just before the amount, in its sentence and after any other amount."""
    before = re.split(r"[.!?;]\s|\$", text[: amount.start].rstrip("$ "))[-1]
    return pattern("meant").search(before) is not None
