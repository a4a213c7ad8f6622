"""The errors of an extractor that evidence catches: what is damaged is left out, and nothing else.

Each changes or adds one record of a perfect reply and returns its place; None if a plan gives no occasion for it.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import pairwise

from tests.agents.extraction.extractor import Record, Reply

Place = tuple[str, int]
Damage = Callable[[Reply, str, str], Place | None]

REFERENCE = "The best plan has dinner at Le Bernardin in New York, and sleeps at The Plaza."
INVENTED = "The Gilded Lantern"


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


def a_letter_changed(name: str) -> str:
    """Another letter for the last one."""
    place = max(place for place, letter in enumerate(name) if letter.isalnum())
    return f"{name[:place]}{'x' if name[place] != 'x' else 'y'}{name[place + 1 :]}"


def _ends_in_a_word(record: Record) -> bool:
    return bool(re.search(r"\w\w$", record["name"]))


ERRORS: Mapping[str, Damage] = {
    "an invented restaurant": adding(
        lambda reply, query: {"quote": f"We have dinner at {INVENTED}.", "name": INVENTED}
    ),
    "an invented name for a true passage": setting("meals", "name", lambda _: INVENTED),
    "a letter changed": setting("meals", "name", lambda one: a_letter_changed(one["name"])),
    "another case": setting("meals", "name", lambda one: one["name"].swapcase()),
    "a name cut within a word": setting("meals", "name", lambda one: one["name"][:-1], _ends_in_a_word),
    "a name with a word more": setting("meals", "name", lambda one: f"{one['name']} Grill"),
    "a quotation with a word changed": setting("meals", "quote", lambda one: f"{one['quote']} perhaps"),
    "a quotation from the task": adding(lambda reply, query: {"quote": query[:60], "name": query.split()[1]}),
    "a quotation from the reference": adding(lambda reply, query: {"quote": REFERENCE, "name": "Le Bernardin"}),
    "the next one's name": of_the_next("meals", "name"),
    "the next one's passage": of_the_next("attractions", "quote"),
    "a city that comes later": only_later,
    "a day that there is not": setting("meals", "day", lambda _: 999),
    "a time altered": setting("flights", "departs", lambda _: "09:59"),
    "a number altered": setting("drives", "cost", lambda one: one["cost"] + 1000),
    "the next one's number": of_the_next("drives", "cost"),
    "written down twice": adding(lambda reply, query: {}),
    "a quotation of two letters": setting("meals", "quote", lambda _: "at"),
    "the whole response as quotation": lambda reply, text, query: setting("meals", "quote", lambda _: text)(
        reply, text, query
    ),
}
