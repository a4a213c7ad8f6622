"""The days of a trip, as a query states them."""

import re
from datetime import date, timedelta
from typing import NamedTuple

from examples.group_trip.travelplanner.vocabulary import load_vocabulary, parse_number, pattern

_LONGEST = 366
_HINT = "such as from March 1st to March 5th, 2022"


class _Mention(NamedTuple):
    """A date in a query; the year may be missing."""

    start: int
    end: int
    month: int
    day: int
    year: int | None


def parse_dates(query: str) -> tuple[date, ...]:
    """Return every day from the first date to the last, or as many as the query counts from its only date.

    Raises ValueError if they are missing or impossible.
    """
    mentions, lengths = find_dates(query), parse_lengths(query)
    if not mentions or (len(mentions) == 1 and not lengths):
        raise ValueError(f"does not state its first and last day, {_HINT}")
    if len(mentions) > 2:  # days within the trip may have dates too
        mentions.sort(key=lambda mention: (mention.year or 0, mention.month, mention.day))
    first, last = _to_dates(query, mentions[0], mentions[-1])
    if len(mentions) == 1:
        last = first + timedelta(days=lengths[0] - 1)
    if last < first:
        raise ValueError(f"has a last day, {last}, before its first, {first}")
    if (last - first).days >= _LONGEST:
        raise ValueError(
            f"has a trip of {(last - first).days + 1} days, from {first} to {last}; write its own dates"
        )
    return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))


def parse_lengths(query: str) -> list[int]:
    """Return the numbers of days that the query counts; nights have one day more."""
    return [_to_days(match) for match in pattern("duration").finditer(query)]


def _to_days(match: re.Match[str]) -> int:
    if match["n"] is None:
        return 7
    number, unit = parse_number(match["n"]), match["unit"].lower().rstrip("s")
    return {"day": number, "night": number + 1, "week": 7 * number}[unit]


def find_dates(query: str) -> list[_Mention]:
    """Return the dates in the order of the query, with the days beside a date that share its month."""
    found: list[_Mention] = []
    for name in ("iso", "slashed", "day_first", "month_first"):
        for match in pattern(name).finditer(query):
            if not any(match.start() < other.end and other.start < match.end() for other in found):
                found.append(_to_mention(match))
    for mention in tuple(found):
        last = pattern("last_day").match(query, mention.end)
        if last is not None and not any(
            last.start() < other.end and other.start < last.end() for other in found
        ):
            year = last["year"]
            found.append(
                _Mention(*last.span(), mention.month, int(last["day"]), int(year) if year else None)
            )
        first = pattern("first_day").search(query[: mention.start])
        if first is not None and not any(
            first.start() < other.end for other in found if other.end <= mention.start
        ):
            found.append(_Mention(*first.span(), mention.month, _to_day(first["day"]), None))
    return sorted(found)


def _to_mention(match: re.Match[str]) -> _Mention:
    groups, months = match.groupdict(), load_vocabulary()["months"]
    name = groups.get("month")
    starts = [
        number
        for number, month in enumerate(months, 1)
        if name and month.startswith(name[:3].capitalize())
    ]
    month = starts[0] if starts else int(groups["monthnumber"])
    return _Mention(
        *match.span(),
        month,
        _to_day(match["day"]),
        int(groups["year"]) if groups.get("year") else None,
    )


def _to_day(text: str) -> int:
    """Return the day of a month, written in digits or as "first"."""
    ordinals = load_vocabulary()["ordinals"]
    return ordinals.index(text.lower()) + 1 if text.lower() in ordinals else int(text)


def _to_dates(query: str, first: _Mention, last: _Mention) -> tuple[date, date]:
    """Return both dates; one without a year takes the other's, or any year of the query, and the year may turn."""
    elsewhere = pattern("year").search(query)
    year = first.year or last.year or (int(elsewhere[1]) if elsewhere else None)
    if year is None:
        raise ValueError(f"does not state the year of its dates, {_HINT}")
    first_year, last_year = first.year or last.year or year, last.year or first.year or year
    if first.month > last.month and first_year == last_year:
        first_year, last_year = (
            (first_year, last_year + 1) if first.year else (first_year - 1, last_year)
        )
    try:
        return date(first_year, first.month, first.day), date(last_year, last.month, last.day)
    except ValueError as error:
        raise ValueError(f"has an invalid date ({error})") from error


def blank_dates(query: str) -> str:
    """Return the query with spaces for its dates and years, whose digits are no amounts."""
    for start, end, *_ in find_dates(query):
        query = query[:start] + " " * (end - start) + query[end:]
    return query
