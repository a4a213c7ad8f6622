"""Ratings that people gave: who gave which item which score, and what for; and votes, whose label may be a word."""

from typing import Annotated

from pydantic import StringConstraints

from jurygraph.schema.noun import Id, LongId, Noun, Number

Label = Number | Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""A class by its name, a number or a word."""


class Rated(Noun):
    """What is rated: an item, or what an agent made of it."""

    item: Id
    agent: Id | None = None

    @property
    def key(self) -> str:
        """What it is known by: the item, with "_" and the agent where there is one."""
        return self.item if self.agent is None else f"{self.item}_{self.agent}"


class Rating(Rated):
    """The score that a reviewer gave, in the units of its dimension."""

    reviewer: Id
    score: Number
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None
    text: str | None = None
    reason: str | None = None
    time: str | Number | None = None


class Labelled(Rated):
    """An item and its label; None where there is none."""

    label: Label | None


class Vote(Labelled):
    """The label that an annotator gave; None is an abstention. `group` is the prompt or the like that several items
    share."""

    annotator: Id
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None
