"""A query as the request for a trip, read by rules on its words."""

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from examples.group_trip.travelplanner.mentions import Mention, classify_all, names_mentioned
from examples.group_trip.travelplanner.vocabulary import compile_words, load_vocabulary, pattern

_SHARED = "Shared room"


class TripRequest(NamedTuple):
    """The content of a query. `house_rules` are those of a stay that would forbid what the travellers want.

    `unread` are words of the query about a constraint that no rule here understands. `is_assumed` is True if no number
    of people is stated, and one is assumed.
    """

    people: int
    dates: tuple[date, ...]
    budget: float
    house_rules: tuple[str, ...]
    room: str | None
    not_shared: bool
    cuisines: tuple[str, ...]
    unwanted: tuple[str, ...]
    barred: tuple[str, ...]
    unread: tuple[str, ...]
    is_assumed: bool = False


def read_wishes(query: str) -> TripRequest:
    """Parse the constraints of a query, whose people, dates and budget stay empty."""
    rules, modes = classify_all(query, "rules"), _read_modes(query)
    cuisines = classify_all(_sentences_about_food(query), "cuisines")
    room, not_shared, unread_rooms = _read_rooms(query)
    return TripRequest(
        people=1,
        dates=(),
        budget=0.0,
        house_rules=tuple(names_mentioned(rules, "wanted")),
        room=room,
        not_shared=not_shared,
        cuisines=tuple(names_mentioned(cuisines, "wanted")),
        unwanted=tuple(names_mentioned(cuisines, "denied")),
        barred=tuple(names_mentioned(modes, "denied")),
        unread=(
            *(name.removeprefix("No ") for name in names_mentioned(rules, "denied", "unclear")),
            *unread_rooms,
            *names_mentioned(cuisines, "unclear"),
            *names_mentioned(modes, "unclear"),
            *_unknown_food(query),
        ),
    )


def _read_modes(query: str) -> dict[str, Mention | None]:
    """Classify the ways to travel; who goes by other ways only denies them."""
    modes = classify_all(query, "modes")
    for mode, others in load_vocabulary()["only_by"].items():
        around = rf"{{{{only}}}}[^.;!?]{{0,40}}?(?:{others})|(?:{others})[^.;!?]{{0,10}}\bonly\b"
        if modes[mode] is None and compile_words(around).search(query):
            modes[mode] = "denied"
    return modes


def _read_rooms(query: str) -> tuple[str | None, bool, tuple[str, ...]]:
    """Return the kind of room, whether only a shared one is denied, and the kinds that are not understood."""
    rooms = classify_all(query, "rooms")
    if pattern("not_shared").search(query):
        rooms[_SHARED] = "denied"
    wanted = tuple(names_mentioned(rooms, "wanted"))
    unread = tuple(
        room
        for room in names_mentioned(rooms, "denied", "unclear")
        if (room, rooms[room]) != (_SHARED, "denied")
    )
    if len(wanted) > 1:
        return None, rooms[_SHARED] == "denied", (*wanted, *unread)
    room = next(iter(wanted), None)
    return room, room is None and rooms[_SHARED] == "denied", unread


def _sentences_about_food(query: str) -> str:
    sentences = re.split(r"(?<=[.!?])\s+", query)
    return " ".join(sentence for sentence in sentences if pattern("food").search(sentence))


def _unknown_food(query: str) -> Iterator[str]:
    yield from dict.fromkeys(
        match[0] for match in pattern("other_food").finditer(_sentences_about_food(query))
    )
