"""Calibration: what a judge's score on a question means by the labels of people."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from jurygraph.schema.frozen_model import FrozenModel, PositiveInt, Unit

CalibrationMethod = Literal["isotonic", "platt"]


class ScoreCalibration(FrozenModel):
    """A map from a judge's score to the mean label of people, linear between knots and constant outside of them.

    `scores` rise, and their `calibrated` values do not fall. `labels` is the number of responses that it was fitted to.
    A `digest` beside the fields must be that of the rest.
    """

    format: Literal["jurygraph-calibration/1"] = "jurygraph-calibration/1"
    method: CalibrationMethod
    labels: PositiveInt
    scores: tuple[Unit, ...] = Field(min_length=1, max_length=1000)
    calibrated: tuple[Unit, ...]

    @model_validator(mode="wrap")
    @classmethod
    def _check_digest(cls, value: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, Mapping) or "digest" not in value:
            return build(value)
        built = build({name: content for name, content in value.items() if name != "digest"})
        if value["digest"] != built.digest:
            raise ValueError("`digest` is not that of the rest, which was changed; leave it out, or fit it again")
        return built

    @model_validator(mode="after")
    def _check_knots(self) -> Self:
        if len(self.calibrated) != len(self.scores):
            raise ValueError(
                f"`calibrated` has {len(self.calibrated)} values for {len(self.scores)} scores; give each one"
            )
        if any(left >= right for left, right in pairwise(self.scores)):
            raise ValueError("`scores` do not rise; write them from low to high, each once")
        if any(left > right for left, right in pairwise(self.calibrated)):
            raise ValueError("`calibrated` falls; a higher score never means less")
        return self
