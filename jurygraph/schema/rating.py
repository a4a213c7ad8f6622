"""Ratings that people gave: who gave which item which score, and what for."""

from jurygraph.schema.noun import Id, LongId, Noun, Number


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
