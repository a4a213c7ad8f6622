"""Alerts of the analyzer."""

from typing import Literal

from pydantic import Field

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Number


class Alert(FrozenModel):
    """A change in a series that chance does not explain.

    `step` is when the alert was raised, counted from 1; `since` the estimated first step of the change. `before` and
    `after` are the levels, `size` their signed distance in sd of the step's statistic. A `hack` is based on the changes
    listed in `evidence`. An `adverse` alert is a bad sign; others are expected in training.
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
