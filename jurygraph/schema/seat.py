"""An evaluator as a run remembers it, once nobody is asked any more."""

from pydantic import Field

from jurygraph.schema.noun import Id, Noun, Positive
from jurygraph.schema.task import Audience


class Seat(Noun):
    """An evaluator's version, whom it asks about, and how its questions make up a component of their own.

    `combiner` is that component's. `shares` say what a question weighs in it, by the first part of its subject, up to a
    slash; where they say nothing all questions weigh alike. `rests_on` is the digest of what else says what it asks,
    such as a history that it read; empty where nothing does.
    """

    version: str
    audience: Audience
    combiner: Id = Field(default="mean", exclude_if=lambda combiner: combiner == "mean")
    shares: dict[Id, Positive] = Field(default_factory=dict, exclude_if=lambda shares: not shares)
    rests_on: str = Field(default="", exclude_if=lambda rests_on: not rests_on)
