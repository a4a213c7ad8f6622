"""The scale of DecompR's protocols, from 1 to 10, and the parts of a reply that use it."""

from typing import Annotated

from pydantic import Field

from jurygraph.agents.judging.forms import Measurement, Quotes, Reason
from jurygraph.schema import FrozenModel

LOWEST, HIGHEST = 1.0, 10.0

Ten = Annotated[float, Field(strict=True, ge=LOWEST, le=HIGHEST, allow_inf_nan=False)]


# No docstrings: they would be part of the schema in the prompt.


class GroundsReply(FrozenModel):  # the reason and its quotations, which come before the decision
    reason: Reason
    quotes: Quotes


class RatingReply(FrozenModel):
    reason: Reason
    quotes: Quotes
    value: Ten


def on_scale(value: float) -> Measurement:
    """Convert a value on the scale to the form of a verdict: its fraction of the range, and the value itself."""
    return Measurement((value - LOWEST) / (HIGHEST - LOWEST), native=value, scale=(LOWEST, HIGHEST))
