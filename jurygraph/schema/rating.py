"""Ratings and votes by people: a score, or a label (a number or a word), that a person gave to an item."""

from typing import Annotated

from pydantic import StringConstraints

from jurygraph.schema.frozen_model import FrozenModel, Id, LongId, Number

Label = Number | Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""A class label: a number or a word."""


class RatedItem(FrozenModel):
    """A rated item, or the output of an agent for it."""

    item: Id
    agent: Id | None = None

    @property
    def key(self) -> str:
        """Return the item, followed by "_" and the agent where there is one."""
        return self.item if self.agent is None else f"{self.item}_{self.agent}"


class Rating(RatedItem):
    """A score by a reviewer, in the units of its dimension."""

    reviewer: Id
    score: Number
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None
    text: str | None = None
    reason: str | None = None
    time: str | Number | None = None


class LabelledItem(RatedItem):
    """An item and its label; None without one."""

    label: Label | None


class Vote(LabelledItem):
    """A label by an annotator; None is an abstention. Items that share a prompt or the like have the same `group`."""

    annotator: Id
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None
