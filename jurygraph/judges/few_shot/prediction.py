"""What a reviewer's judge replies: one of a scale's scores, and how sure it is of it."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from jurygraph.agents.judging.forms import Measured, OnScale, Quotes, Reason
from jurygraph.models.asking import Reply
from jurygraph.schema import Noun

_SUREST = 100.0
_NEAR = 1e-9
_DIGITS = 12
"""Of a confidence, so that 80.3 of 100 is 0.803 and no less."""


@dataclass(frozen=True, slots=True)
class Predicted(OnScale):
    """A score in steps from `low` to `high` (None: any number), and a confidence from 0 to 100."""

    step: float | None = 1.0

    def noun(self, compact: bool) -> type[Noun]:
        return _predicted(self, compact)

    def measured(self, stated: Any, reply: Reply, name: str) -> Measured:
        found = super(Predicted, self).measured(stated, reply, name)
        return replace(found, native=float(stated.value), confidence=round(stated.confidence / _SUREST, _DIGITS))

    @property
    def in_whole_numbers(self) -> bool:
        """Whether its scores are the whole numbers from one end to the other."""
        return self.step == 1.0 and self.low.is_integer() and self.high.is_integer()

    def holds(self, value: float) -> bool:
        """Whether a value is one of its scores."""
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return self.low <= value <= self.high and abs(steps - round(steps)) < _NEAR


@lru_cache(maxsize=256)
def _predicted(form: Predicted, compact: bool) -> type[Noun]:
    """The reason comes before what it leads to, and so do the quotations on which it rests."""

    def one_of_the_scores(value: float) -> float:
        if not form.holds(value):
            raise ValueError(f"is no score: they go from {form.low:g} to {form.high:g} in steps of {form.step:g}")
        return value

    bounds: Any = Field(strict=True, ge=form.low, le=form.high)
    value: Any = Annotated[float, bounds, AfterValidator(one_of_the_scores)]
    if form.in_whole_numbers:
        value = Annotated[int, Field(strict=True, ge=int(form.low), le=int(form.high))]
    said: Any = {} if compact else {"reason": (Reason, ...), "quotes": (Quotes, ...)}
    sure = Annotated[float, Field(strict=True, ge=0.0, le=_SUREST)]
    return create_model("PredictionStated", __base__=Noun, **said, value=(value, ...), confidence=(sure, ...))
