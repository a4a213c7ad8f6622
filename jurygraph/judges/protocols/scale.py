"""The scale of DecompR's protocols, from 1 to 10, and what stands on it in a reply."""

from typing import Annotated

from pydantic import Field

from jurygraph.agents.judging.forms import Measured, Quotes, Reason
from jurygraph.schema import Noun

LOWEST, HIGHEST = 1.0, 10.0

Ten = Annotated[float, Field(strict=True, ge=LOWEST, le=HIGHEST, allow_inf_nan=False)]


# A docstring would stand in the schema that a model is given.


class GroundsStated(Noun):  # why, before anything is decided, and where that stands
    reason: Reason
    quotes: Quotes


class RatedStated(Noun):
    reason: Reason
    quotes: Quotes
    value: Ten


def on_scale(value: float) -> Measured:
    """A value on the scale as a verdict says it: its share of the way up, and itself."""
    return Measured((value - LOWEST) / (HIGHEST - LOWEST), native=value, scale=(LOWEST, HIGHEST))
