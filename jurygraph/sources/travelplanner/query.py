"""What a TravelPlanner query asks for, by rules on its words."""

import re
from datetime import date, timedelta
from typing import NamedTuple

_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "pair": 2}
_N = r"(?P<n>\d+|one|two|three|four|five|six|seven|eight)"
_TIMES = r"[ -](?:(?:full|whole|different|distinct|separate) )?(?:days?|nights?|weeks?|cit(?:y|ies))\b"
_PEOPLE = (
    rf"(?:group|party) of {_N}\b",
    rf"\b{_N} (?:people|persons?|individuals|travelers|travellers)\b",
    rf"\bfor (?:a )?(?P<n>two|three|four|five|six|seven|eight|pair)\b(?!{_TIMES})",
    r"\b(?P<one>solo|alone|single person|travel plan for me)\b(?! and\b)",
)
_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)"
_ONE_DATE = re.compile(rf"\b(?:({_MONTH}) {_DAY}|{_DAY}(?: of)? ({_MONTH})|{_DAY})")
_YEAR = re.compile(r"(?<!\$)(?<!\$ )\b(20\d\d)\b")
_BUDGET = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)")
CUISINES = ("American", "Chinese", "French", "Indian", "Italian", "Mediterranean", "Mexican")
_RULES = {
    "No smoking": r"(?<!non-)(?<!no )smok",
    "No parties": r"part(?:y|ies) (?:are |is )?(?:allowed|permitted)|allow part",
    "No children under 10": r"children under",
    "No pets": r"pet-friendly|\bpets\b",
    "No visitors": r"allow(?:s|ing)? visitors|visitors (?:are )?allowed",
}
_ROOMS = {
    "Entire home/apt": r"entire rooms?",
    "Private room": r"private rooms?",
    "Shared room": r"(?<!not )(?<!non-)shared rooms?",
}
_NOT_SHARED = r"(?:not|non-)\s?shared"
_NO_FLIGHT = r"\b(?:not|avoid|without)\b[^.]{0,40}\bflights?\b"
_NO_DRIVE = r"non-self-driving|\bnot\b[^.]{0,30}(?:self-driving|drive ourselves)"


class Asked(NamedTuple):
    """What a query asks for. `house_rules` are those of a stay that would forbid what the travellers want."""

    people: int
    dates: tuple[date, ...]
    budget: float
    house_rules: tuple[str, ...]
    room: str | None
    not_shared: bool
    cuisines: tuple[str, ...]
    barred: tuple[str, ...]


def read_query(query: str) -> Asked:
    """Read a query. Raises ValueError saying which of people, dates and budget it does not state."""
    budget = _BUDGET.search(query)
    if budget is None:
        raise ValueError("states no budget such as $1,700")
    return Asked(
        people=_people(query),
        dates=_dates(query),
        budget=float(budget[1].replace(",", "")),
        house_rules=tuple(rule for rule, words in _RULES.items() if re.search(words, query, re.IGNORECASE)),
        room=next((room for room, words in _ROOMS.items() if re.search(words, query, re.IGNORECASE)), None),
        not_shared=re.search(_NOT_SHARED, query, re.IGNORECASE) is not None,
        cuisines=tuple(cuisine for cuisine in CUISINES if re.search(rf"\b{cuisine}\b", query)),
        barred=tuple(
            mode
            for mode, words in (("Flight", _NO_FLIGHT), ("Self-driving", _NO_DRIVE))
            if re.search(words, query, re.IGNORECASE)
        ),
    )


def _people(query: str) -> int:
    for words in _PEOPLE:
        found = re.search(words, query, re.IGNORECASE)
        if found is not None:
            stated = found.groupdict().get("n")
            people = 1 if stated is None else _NUMBERS.get(stated.lower()) or int(stated)
            if people:
                return people
    raise ValueError("does not state how many people travel, such as a group of 4")


def _dates(query: str) -> tuple[date, ...]:
    """Every day from the first date to the last."""
    found = [(m[1] or m[4], m[2] or m[3] or m[5]) for m in _ONE_DATE.finditer(query)]
    year = _YEAR.search(query)
    if len(found) < 2 or year is None:
        raise ValueError("does not state its first and last day, such as from March 1st to March 5th, 2022")
    (first_month, first_day), (last_month, last_day) = found[0], found[-1]
    months = [_MONTHS.index(month) + 1 for month in (first_month or last_month, last_month or first_month)]
    try:
        first, last = date(int(year[1]), months[0], int(first_day)), date(int(year[1]), months[1], int(last_day))
    except ValueError as error:
        raise ValueError(f"states a day that there is none of ({error})") from error
    if last < first:
        raise ValueError(f"states a last day, {last}, before its first, {first}")
    return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))
