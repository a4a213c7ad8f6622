"""A reviewer judge's reply: one of a scale's scores, and a confidence."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from jurygraph.agents.judging.forms import Measurement, Quotes, Reason, Scale
from jurygraph.models.request import Reply
from jurygraph.schema import FrozenModel

_MAX_CONFIDENCE = 100.0
_STEP_TOLERANCE = 1e-9
_DIGITS = 12
"""Decimal places of a confidence, so that 80.3 of 100 is exactly 0.803."""


@dataclass(frozen=True, slots=True)
class PredictionForm(Scale):
    """A score in steps from `low` to `high` (None: any number), and a confidence from 0 to 100."""

    step: float | None = 1.0

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _prediction_model(self, compact)

    def measure(self, prediction: Any, reply: Reply, name: str) -> Measurement:
        measured = super(PredictionForm, self).measure(prediction, reply, name)
        return replace(
            measured, native=float(prediction.value), confidence=round(prediction.confidence / _MAX_CONFIDENCE, _DIGITS)
        )

    @property
    def is_integer_scale(self) -> bool:
        """True if its scores are all the whole numbers from `low` to `high`."""
        return self.step == 1.0 and self.low.is_integer() and self.high.is_integer()

    def is_valid_score(self, value: float) -> bool:
        """Return True if a value is one of its scores."""
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return self.low <= value <= self.high and abs(steps - round(steps)) < _STEP_TOLERANCE


@lru_cache(maxsize=256)
def _prediction_model(form: PredictionForm, compact: bool) -> type[FrozenModel]:
    """Return the pydantic model of the reply: the reason and its quotations come before the conclusion."""

    def require_score(value: float) -> float:
        if not form.is_valid_score(value):
            raise ValueError(f"is no score: they go from {form.low:g} to {form.high:g} in steps of {form.step:g}")
        return value

    bounds: Any = Field(strict=True, ge=form.low, le=form.high)
    value: Any = Annotated[float, bounds, AfterValidator(require_score)]
    if form.is_integer_scale:
        value = Annotated[int, Field(strict=True, ge=int(form.low), le=int(form.high))]
    explanation: Any = {} if compact else {"reason": (Reason, ...), "quotes": (Quotes, ...)}
    confidence = Annotated[float, Field(strict=True, ge=0.0, le=_MAX_CONFIDENCE)]
    return create_model(
        "PredictionReply", __base__=FrozenModel, **explanation, value=(value, ...), confidence=(confidence, ...)
    )
