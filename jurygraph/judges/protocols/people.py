"""The people whom a response is to serve, as prompts and replies know them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jurygraph.schema import Stakeholder

_NAME = re.compile(r"\bperson_([1-9]\d{0,5})\b")


class Person(NamedTuple):
    """Somebody under a name of ours; the id, which anybody may have written, stands in the text that is fenced."""

    name: str
    text: str


def names_of(number: int) -> tuple[str, ...]:
    """The names of so many people."""
    return tuple(f"person_{place}" for place in range(1, number + 1))


def shown(people: Sequence[Stakeholder]) -> tuple[Person, ...]:
    """Everybody, named by their places: `person_1` is the first."""
    named = zip(names_of(len(people)), people, strict=True)
    return tuple(Person(name, "\n".join(_lines(one))) for name, one in named)


def with_ids(reason: str, people: Sequence[Stakeholder]) -> str:
    """A reason in which everybody has their own id again."""
    return _NAME.sub(lambda found: people[int(found[1]) - 1].id if int(found[1]) <= len(people) else found[0], reason)


def _lines(one: Stakeholder) -> Iterator[str]:
    yield f"id: {one.id}"
    if one.profile:
        yield one.profile
    yield from (f"- {constraint.kind}: {constraint.text or constraint.id}" for constraint in one.constraints)
