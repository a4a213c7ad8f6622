"""Five ways to answer: what each writer makes of a town, as prose and as data."""

from collections.abc import Callable
from typing import Any, NamedTuple

from examples.panel.trips import HOME, NIGHTS, TRAVELLERS, Town

Answer = tuple[str, list[dict[str, Any]]]
INVENTED = "The Gilded Lantern"
"""A table that stands in no town."""


class _Trip(NamedTuple):
    """Where a plan sleeps and eats, by the places in the town's lists; an invented table may stand for one."""

    hotel: int
    tables: tuple[int, int, int, int]
    invented: bool = False


def careful(town: Town) -> Answer:
    """Keeps everybody's needs, adds up, says what was given up."""
    trip = _Trip(1, (1, 2, 1, 2))
    dear, plain = town.hotels[0], town.hotels[1]
    beside = [
        _sum(town, trip),
        f"When it rains, {town.sights[2]} takes the place of {town.sights[1]}: it has a roof.",
        f"{plain[0]} was chosen for Lin, since there are no steps; {town.tables[1][0]} for Oke, who eats no meat.",
        f"Given up: {dear[0]}, which costs {dear[1] - plain[1]} euros more a head and night, and has steps.",
    ]
    return _plan(town, trip, "a slow afternoon at", beside)


def lavish(town: Town) -> Answer:
    """The dear hotel and the dear table, and a sum that is wrong."""
    trip = _Trip(0, (0, 2, 0, 2))
    beside = [
        _sum(town, trip, slip=10),
        f"{town.hotels[0][0]}, by the water, was chosen for Mara.",
    ]
    return _plan(town, trip, "the afternoon at", beside)


def inventive(town: Town) -> Answer:
    """Reads well, and sends everybody to a table that is nowhere."""
    beside = [
        f"Everybody will love {INVENTED}; it was chosen for Oke, who eats no meat.",
        "Book today, or it is gone.",
    ]
    return _plan(town, _Trip(1, (1, 2, 1, 2), invented=True), "a slow afternoon at", beside)


def talkative(town: Town) -> Answer:
    """No plan at all, and much of what goes with a good one: credit that was not earned."""
    lines = [
        f"{town.name} is a fine choice for three, and there is so much to say about it.",
        "When it rains, something under a roof takes the place of whatever is outside.",
        "Something has to be given up on every trip, since nobody can have everything.",
        "Each choice was made for whoever it suits: for Lin, for Oke, for Mara.",
    ]
    return "\n".join(lines), []


def terse(town: Town) -> Answer:
    """A plan that can be followed, and not a word besides."""
    return _plan(town, _Trip(1, (1, 1, 2, 2)), "the afternoon at", [])


WRITERS: dict[str, Callable[[Town], Answer]] = {
    one.__name__: one for one in (careful, lavish, inventive, talkative, terse)
}


def _plan(town: Town, trip: _Trip, afternoon: str, beside: list[str]) -> Answer:
    """A trip of two nights, a line a day, and what stands beside it."""
    (there, leaves, arrives, _), (back, starts, home, _) = town.trains
    first, second, third = town.sights
    hotel = town.hotels[trip.hotel][0]
    one, two, three, four = (town.tables[place][0] for place in trip.tables)
    four = INVENTED if trip.invented else four
    lines = [
        f"Day 1: train {there} at {leaves} from {HOME}, there at {arrives}; lunch at {one}, {first}, "
        f"dinner at {two}, the night at {hotel}.",
        f"Day 2: {second}, lunch at {three}, {afternoon} {third}, dinner at {four}, the night at {hotel}.",
        f"Day 3: breakfast at leisure, then train {back} at {starts}, in {HOME} at {home}.",
        *beside,
    ]
    days = [
        {
            "day": 1,
            "train": f"{there} at {leaves}",
            "sights": [first],
            "lunch": one,
            "dinner": two,
            "night": hotel,
        },
        {"day": 2, "sights": [second, third], "lunch": three, "dinner": four, "night": hotel},
        {"day": 3, "train": f"{back} at {starts}"},
    ]
    return "\n".join(lines), [_placed(day, town.name) for day in days]


def _placed(day: dict[str, Any], town: str) -> dict[str, Any]:
    """A day in which whatever stands in the town says so."""
    named = {key: f"{day[key]}, {town}" for key in ("lunch", "dinner", "night") if key in day}
    sights = (
        {"sights": ";".join(f"{name}, {town}" for name in day["sights"])} if "sights" in day else {}
    )
    return {**day, **named, **sights}


def _sum(town: Town, trip: _Trip, slip: int = 0) -> str:
    """The bill, in one line; its total is wrong by a `slip`."""
    there, back = (train[3] for train in town.trains)
    bed = town.hotels[trip.hotel][1]
    meals = [town.tables[place][1] for place in trip.tables]
    trains, beds, food = (
        TRAVELLERS * (there + back),
        TRAVELLERS * NIGHTS * bed,
        TRAVELLERS * sum(meals),
    )
    items = [
        f"trains {TRAVELLERS} * ({there} + {back}) = {trains}",
        f"beds {TRAVELLERS} * {NIGHTS} * {bed} = {beds}",
        f"meals {TRAVELLERS} * ({' + '.join(map(str, meals))}) = {food}",
        f"in all {trains} + {beds} + {food} = {trains + beds + food + slip} euros",
    ]
    return f"Cost: {', '.join(items)}."
