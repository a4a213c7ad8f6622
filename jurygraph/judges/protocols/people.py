"""The people whom a response should serve, as they are named in prompts and replies."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jurygraph.schema import Stakeholder

_NAME = re.compile(r"\bperson_([1-9]\d{0,5})\b")


class Person(NamedTuple):
    """A person under a generated name; the id, which is untrusted text, is part of the fenced text."""

    name: str
    text: str


def person_names(number: int) -> tuple[str, ...]:
    """Return the generated names of this many people."""
    return tuple(f"person_{index}" for index in range(1, number + 1))


def named_people(people: Sequence[Stakeholder]) -> tuple[Person, ...]:
    """Return the people as they appear in a prompt, named by position: `person_1` is the first."""
    pairs = zip(person_names(len(people)), people, strict=True)
    return tuple(Person(name, "\n".join(_lines(stakeholder))) for name, stakeholder in pairs)


def restore_ids(reason: str, people: Sequence[Stakeholder]) -> str:
    """Return a reason with the generated names replaced by the people's ids."""
    return _NAME.sub(lambda match: people[int(match[1]) - 1].id if int(match[1]) <= len(people) else match[0], reason)


def _lines(stakeholder: Stakeholder) -> Iterator[str]:
    yield f"id: {stakeholder.id}"
    if stakeholder.profile:
        yield stakeholder.profile
    yield from (f"- {constraint.kind}: {constraint.text or constraint.id}" for constraint in stakeholder.constraints)
