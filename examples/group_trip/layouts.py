"""A plan of TravelPlanner written out in words, by rule, in five layouts that say the same.

`prose` has a paragraph for each day, `bullets` a heading and bullet points, `letter` tells of the way first, then of
nights, meals and sights, `table` is one in Markdown, and `typeset` is prose as a word processor leaves it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

Plan = Sequence[Mapping[str, Any]]

MEALS = ("breakfast", "lunch", "dinner")
_NOTHING = ("", "-")
_STATE = re.compile(r"\([^)]*\)")
_FLIGHT = re.compile(
    r"Flight Number: (?P<number>[^,]+), from (?P<origin>.+?) to (?P<destination>.+?), "
    r"Departure Time: (?P<departs>[^,]+), Arrival Time: (?P<arrives>.+)"
)
_DRIVE = re.compile(
    r"(?P<mode>Self-driving|Taxi), from (?P<origin>.+?) to (?P<destination>.+?), "
    r"duration: (?P<duration>[^:]+), distance: (?P<distance>[^:]+), cost: (?P<cost>.+)"
)


class Place(NamedTuple):
    """Somewhere to eat, to sleep or to see, and its city."""

    name: str
    city: str


class Flight(NamedTuple):
    """A way by air."""

    number: str
    origin: str
    destination: str
    departs: str
    arrives: str


class Drive(NamedTuple):
    """A way by road: Self-driving or Taxi."""

    mode: str
    origin: str
    destination: str
    duration: str
    distance: str
    cost: str


class Day(NamedTuple):
    """A day of a plan. `where` is a city, or `from A to B`."""

    number: int
    where: str
    way: Flight | Drive | None
    meals: Mapping[str, Place]
    sights: Sequence[Place]
    stay: Place | None


def read_days(plan: Plan) -> list[Day]:
    """The days of a plan. Raises ValueError at a way that is neither a flight nor a drive."""
    return [_day(day) for day in sorted(plan, key=lambda day: int(day["days"]))]


def _day(day: Mapping[str, Any]) -> Day:
    return Day(
        number=int(day["days"]),
        where=_STATE.sub("", day["current_city"]),
        way=_way(day["transportation"]),
        meals={meal: _place(day[meal]) for meal in MEALS if day[meal] not in _NOTHING},
        sights=[_place(one) for one in day["attraction"].split(";") if one.strip() not in _NOTHING],
        stay=_place(day["accommodation"]) if day["accommodation"] not in _NOTHING else None,
    )


def _place(text: str) -> Place:
    name, _, city = text.rpartition(", ")
    return Place(" ".join(name.split()), _STATE.sub("", city))


def _way(text: str) -> Flight | Drive | None:
    if text in _NOTHING:
        return None
    flight, drive = _FLIGHT.fullmatch(text), _DRIVE.fullmatch(text)
    if flight is not None:
        return Flight(**{name: _STATE.sub("", value) for name, value in flight.groupdict().items()})
    if drive is not None:
        return Drive(**{name: _STATE.sub("", value) for name, value in drive.groupdict().items()})
    raise ValueError(f"{text!r} is neither a flight nor a drive")


# A paragraph for each day


def prose(days: Sequence[Day], name: str = "{}") -> str:
    """Paragraphs; names of places stand as in `name`."""
    return "\n\n".join(" ".join(_sentences(day, name)) for day in days)


def _sentences(day: Day, name: str) -> Iterator[str]:
    yield (
        f"On day {day.number} we travel {day.where}."
        if _moves(day)
        else f"We spend day {day.number} in {day.where}."
    )
    if isinstance(day.way, Flight):
        way = day.way
        times = f"leaves at {way.departs} and lands at {way.arrives}"
        yield f"Flight {way.number} from {way.origin} to {way.destination} {times}."
    elif day.way is not None:
        yield f"{_DRIVEN[day.way.mode]} {_road(day.way)}."
    for meal, place in day.meals.items():
        yield f"We have {meal} at {name.format(place.name)} in {place.city}."
    if day.sights:
        yield f"We see {'; '.join(f'{name.format(one.name)} in {one.city}' for one in day.sights)}."
    if day.stay is not None:
        yield f"We stay the night at {name.format(day.stay.name)} in {day.stay.city}."


_DRIVEN = {"Self-driving": "We drive ourselves", "Taxi": "A taxi takes us"}


def _road(way: Drive) -> str:
    return f"from {way.origin} to {way.destination}, {way.duration} and {way.distance}, for ${way.cost}"


def _moves(day: Day) -> bool:
    return day.where.startswith("from ")


# A heading and bullet points for each day: the city stands in the heading, where there is one city


def bullets(days: Sequence[Day]) -> str:
    """Markdown with a section for each day."""
    return "\n\n".join("\n".join(_points(day)) for day in days)


def _points(day: Day) -> Iterator[str]:
    yield f"## Day {day.number}: {day.where}"
    if isinstance(day.way, Flight):
        way = day.way
        yield f"- Flight {way.number}, {way.origin} to {way.destination}, {way.departs} to {way.arrives}"
    elif day.way is not None:
        way = day.way
        yield f"- {way.mode}, {way.origin} to {way.destination} ({way.duration}, {way.distance}), ${way.cost}"
    for meal, place in day.meals.items():
        yield f"- {meal.capitalize()}: {_pointed(place, day)}"
    for place in day.sights:
        yield f"- To see: {_pointed(place, day)}"
    if day.stay is not None:
        yield f"- For the night: {_pointed(day.stay, day)}"


def _pointed(place: Place, day: Day) -> str:
    return place.name if place.city == day.where else f"{place.name} ({place.city})"


# A letter: the way, the nights, the meals, the sights


def letter(days: Sequence[Day]) -> str:
    """A letter that goes by subjects, and not by days."""
    parts = (
        "Dear all,",
        *map(" ".join, (_route(days), _ways(days), _nights(days), _meals(days), _sights(days))),
    )
    return "\n\n".join(filter(None, (*parts, "Yours, the planner")))


def _route(days: Sequence[Day]) -> Iterator[str]:
    for day in days:
        yield (
            f"Day {day.number} takes us {day.where}."
            if _moves(day)
            else f"Day {day.number} belongs to {day.where}."
        )


def _ways(days: Sequence[Day]) -> Iterator[str]:
    for day in days:
        if isinstance(day.way, Flight):
            way = day.way
            yield (
                f"On day {day.number}, flight {way.number} goes from {way.origin} to {way.destination}, "
                f"{way.departs} to {way.arrives}."
            )
        elif day.way is not None:
            yield f"On day {day.number} {_DRIVEN_THEN[day.way.mode]} {_road(day.way)}."


_DRIVEN_THEN = {"Self-driving": "we drive", "Taxi": "a taxi goes"}


def _nights(days: Sequence[Day]) -> Iterator[str]:
    for stay, nights in groupby(days, key=lambda day: day.stay):
        numbers = ", ".join(str(day.number) for day in nights)
        if stay is not None:
            yield f'The beds of day {numbers} are at "{stay.name}" in {stay.city}.'


def _meals(days: Sequence[Day]) -> Iterator[str]:
    for meal in MEALS:
        for day in days:
            if meal in day.meals:
                place = day.meals[meal]
                yield f'{meal.capitalize()} on day {day.number} is at "{place.name}" in {place.city}.'


def _sights(days: Sequence[Day]) -> Iterator[str]:
    for day in days:
        for sight in day.sights:
            yield f'Day {day.number} shows us "{sight.name}" in {sight.city}.'


# A table


def table(days: Sequence[Day]) -> str:
    """A table in Markdown, a row for each day."""
    rows = [
        _HEADINGS,
        tuple("---" for _ in _HEADINGS),
        *(tuple(map(_escaped, _cells(day))) for day in days),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_HEADINGS = ("Day", "Where", "Way", *(meal.capitalize() for meal in MEALS), "Sights", "Night")


def _cells(day: Day) -> Iterator[str]:
    yield str(day.number)
    yield day.where
    yield _way_in_a_cell(day.way)
    for meal in MEALS:
        yield _in_a_cell(day.meals.get(meal))
    yield "<br>".join(map(_in_a_cell, day.sights)) or "none"
    yield _in_a_cell(day.stay)


def _way_in_a_cell(way: Flight | Drive | None) -> str:
    if way is None:
        return "none"
    if isinstance(way, Flight):
        return (
            f"Flight {way.number}, {way.origin} to {way.destination}, {way.departs}–{way.arrives}"
        )
    return f"{way.mode}, {way.origin} to {way.destination}, {way.duration}, {way.distance}, ${way.cost}"


def _in_a_cell(place: Place | None) -> str:
    return "none" if place is None else f"{place.name}, {place.city}"


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")


# As a word processor leaves it


def typeset(days: Sequence[Day]) -> str:
    """Prose with decomposed accents, spaces of other kinds, broken lines, and names in curly quotation marks."""
    paragraphs = prose(days, "“{}”").split("\n\n")
    return "\n\n\n".join(
        unicodedata.normalize("NFD", _spaced(paragraph)) for paragraph in paragraphs
    )


_SPACES = (" ", " ", "\u00a0", " ", "\n", "  ", " ", "\u2009", " ", "\n   ", " ")


def _spaced(paragraph: str) -> str:
    words = paragraph.split(" ")
    return "".join(
        word + _SPACES[place % len(_SPACES)] for place, word in enumerate(words)
    ).rstrip()


LAYOUTS: Mapping[str, Callable[[Sequence[Day]], str]] = {
    "prose": prose,
    "bullets": bullets,
    "letter": letter,
    "table": table,
    "typeset": typeset,
}
