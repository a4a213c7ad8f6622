"""The errors of an extractor, and for each if evidence catches it, or else if facts notice it.

Each changes or adds one record of a perfect reply and returns its place; None if a plan gives no occasion for it.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

from tests.agents.extraction.extractor import SKIPPED, Record, Reply

Place = tuple[str, int]
Damage = Callable[[Reply, str, str], Place | None]

REFERENCE = "The best plan has dinner at Le Bernardin in New York, and sleeps at The Plaza."
INVENTED = "The Gilded Lantern"


class Error(NamedTuple):
    """An error. `caught`: what is damaged is left out, and nothing else. Otherwise all of it stays, and `noticed` says
    whether some fact is then not confirmed, or `nobody` sees it. `besides` is what the plan then says more."""

    damage: Damage
    caught: bool
    noticed: Literal["facts", "nobody"] = "nobody"
    besides: Callable[[Reply], str] = lambda reply: ""


def place_of(reply: Reply, kind: str, fits: Callable[[Record], bool] = lambda record: True) -> Place | None:
    """The record in the middle of those of a kind that fit."""
    fitting = [place for place, record in enumerate(reply[kind]) if fits(record)]
    return (kind, fitting[len(fitting) // 2]) if fitting else None


def changing(kind: str, change: Callable[[Record], None], fits: Callable[[Record], bool] = lambda _: True) -> Damage:
    """A damage of one record."""

    def damage(reply: Reply, text: str, query: str) -> Place | None:
        place = place_of(reply, kind, fits)
        if place is not None:
            change(reply[kind][place[1]])
        return place

    return damage


def setting(
    kind: str, field: str, value: Callable[[Record], object], fits: Callable[[Record], bool] | None = None
) -> Damage:
    """A damage of one field."""
    return changing(kind, lambda record: record.update({field: value(record)}), fits or (lambda _: True))


def adding(record: Callable[[Reply, str], Record], kind: str = "meals") -> Damage:
    """A record more, made from the last one of its kind and the query."""

    def damage(reply: Reply, text: str, query: str) -> Place | None:
        if not reply[kind]:
            return None
        reply[kind].append({**reply[kind][-1], **record(reply, query)})
        return kind, len(reply[kind]) - 1

    return damage


def swapping(kind: str, one: str, other: str) -> Damage:
    return changing(kind, lambda record: record.update({one: record[other], other: record[one]}))


def of_the_next(kind: str, field: str) -> Damage:
    """Set a field to the value of the next record that has a different one."""

    def damage(reply: Reply, text: str, query: str) -> Place | None:
        records = reply[kind]
        for place, (record, other) in enumerate(pairwise(records)):
            if other[field] != record[field] and not _occurs(other[field], record["quote"]):
                records[place] = {**record, field: other[field]}
                return kind, place
        return None

    return damage


def _occurs(value: str | float, words: str) -> bool:
    return (value if isinstance(value, str) else f"{value:g}") in words


def only_later(reply: Reply, text: str, query: str) -> Place | None:
    """A city that the response names later only."""
    plain = " ".join(unicodedata.normalize("NFC", text).replace("“", '"').replace("”", '"').split())
    first = next(iter(reply["meals"]), None)
    if first is None:
        return None
    upto = plain.index(first["quote"]) + len(first["quote"])
    later = [one["city"] for one in reply["meals"] if not re.search(rf"\b{re.escape(one['city'])}\b", plain[:upto])]
    if not later:
        return None
    first["city"] = later[0]
    return "meals", 0


def as_another_kind(reply: Reply, text: str, query: str) -> Place | None:
    reply["attractions"].append(reply["meals"].pop())
    return "attractions", len(reply["attractions"]) - 1


def leaving_out(reply: Reply, text: str, query: str) -> Place | None:
    reply["meals"].pop()
    return "meals", -1


def a_letter_changed(name: str) -> str:
    """Another letter for the last one."""
    place = max(place for place, letter in enumerate(name) if letter.isalnum())
    return f"{name[:place]}{'x' if name[place] != 'x' else 'y'}{name[place + 1 :]}"


def _origin(record: Record) -> str:
    """A city that every layout names before anything else: where the trip begins."""
    return str(record["where"]).removeprefix("from ").split(" to ")[0]


def of_the_first_city(reply: Reply, text: str, query: str) -> Place | None:
    origin = _origin(reply["days"][0])
    return setting("meals", "city", lambda _: origin)(reply, text, query)


def of_the_first_day(reply: Reply, text: str, query: str) -> Place | None:
    return setting("meals", "day", lambda _: 1, lambda record: record["day"] > 1)(reply, text, query)


def _of_several_words(record: Record) -> bool:
    return " " in record["name"]


def _ends_in_a_word(record: Record) -> bool:
    return bool(re.search(r"\w\w$", record["name"]))


def _led_by_words(record: Record) -> bool:
    return record["quote"].find(record["name"]) > 0 and '"' not in record["quote"]


def _up_to_the_name(record: Record) -> str:
    return str(record["quote"][: record["quote"].index(record["name"]) + len(record["name"])])


def skipping(name: Callable[[Reply], str], noticed: Literal["facts", "nobody"]) -> Error:
    """Add a place that the plan leaves out as a meal."""
    damage = adding(lambda reply, query: {"quote": f"We skip {name(reply)} altogether", "name": name(reply)})
    return Error(damage, False, noticed, lambda reply: f"{SKIPPED}{name(reply)} altogether.")


ERRORS = {
    "an invented restaurant": Error(
        adding(lambda reply, query: {"quote": f"We have dinner at {INVENTED}.", "name": INVENTED}), caught=True
    ),
    "an invented name for a true passage": Error(setting("meals", "name", lambda _: INVENTED), caught=True),
    "a letter changed": Error(setting("meals", "name", lambda one: a_letter_changed(one["name"])), caught=True),
    "another case": Error(setting("meals", "name", lambda one: one["name"].swapcase()), caught=True),
    "a name cut within a word": Error(
        setting("meals", "name", lambda one: one["name"][:-1], _ends_in_a_word), caught=True
    ),
    "a name with a word more": Error(setting("meals", "name", lambda one: f"{one['name']} Grill"), caught=True),
    "a quotation with a word changed": Error(
        setting("meals", "quote", lambda one: f"{one['quote']} perhaps"), caught=True
    ),
    "a quotation from the task": Error(
        adding(lambda reply, query: {"quote": query[:60], "name": query.split()[1]}), caught=True
    ),
    "a quotation from the reference": Error(
        adding(lambda reply, query: {"quote": REFERENCE, "name": "Le Bernardin"}), caught=True
    ),
    "the next one's name": Error(of_the_next("meals", "name"), caught=True),
    "the next one's passage": Error(of_the_next("attractions", "quote"), caught=True),
    "a city that comes later": Error(only_later, caught=True),
    "a day that there is not": Error(setting("meals", "day", lambda _: 999), caught=True),
    "a time altered": Error(setting("flights", "departs", lambda _: "09:59"), caught=True),
    "a number altered": Error(setting("drives", "cost", lambda one: one["cost"] + 1000), caught=True),
    "the next one's number": Error(of_the_next("drives", "cost"), caught=True),
    "written down twice": Error(adding(lambda reply, query: {}), caught=True),
    "a quotation of two letters": Error(setting("meals", "quote", lambda _: "at"), caught=True),
    "the whole response as quotation": Error(
        lambda reply, text, query: setting("meals", "quote", lambda _: text)(reply, text, query), caught=True
    ),
    "the name cut at a word": Error(
        setting("meals", "name", lambda one: one["name"].split()[0], _of_several_words), caught=False, noticed="facts"
    ),
    "words of the passage before the name": Error(
        setting("meals", "name", _up_to_the_name, _led_by_words), caught=False, noticed="facts"
    ),
    "a city that came before": Error(of_the_first_city, caught=False, noticed="facts"),
    "times swapped": Error(swapping("flights", "departs", "arrives"), caught=False, noticed="facts"),
    "ends swapped": Error(swapping("flights", "origin", "destination"), caught=False, noticed="facts"),
    "the wrong one of two ways": Error(
        setting("drives", "mode", lambda one: "Taxi" if one["mode"] != "Taxi" else "Self-driving"),
        caught=False,
        noticed="facts",
    ),
    "a restaurant among the sights": Error(as_another_kind, caught=False, noticed="facts"),
    "what is skipped, and is nowhere": skipping(lambda _: INVENTED, "facts"),
    "what is skipped, and is there": skipping(lambda reply: str(reply["meals"][-1]["name"]), "nobody"),
    "the first day's number": Error(of_the_first_day, caught=False),
    "the place itself for where the day is spent": Error(
        setting("meals", "where", lambda one: one["city"], lambda one: one["where"] != one["city"]), caught=False
    ),
    "one left out": Error(leaving_out, caught=False),
}
