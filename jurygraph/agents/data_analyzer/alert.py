"""What the analyzer tells."""

from typing import Literal

from pydantic import Field

from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag, Number


class Alert(Noun):
    """A change in a series that chance does not explain.

    `step` is when it was told, counted from 1; `since` the first step that the change is in, as far as can be said.
    `before` and `after` are the levels, `size` their distance in sd of the step's figure, with its sign. A `hack` rests
    on the changes that `evidence` names. An `adverse` one should worry; others are what training is for.
    """

    step: int = Field(strict=True, ge=1)
    series: str
    kind: Literal["drift", "jump", "hack"]
    direction: Literal["up", "down"]
    since: int = Field(strict=True, ge=1)
    before: Number
    after: Number
    size: Number
    adverse: Flag
    sentence: str
    evidence: tuple[str, ...] = ()
