"""Dimensions that reviewers score, each with its scale and perhaps a threshold in another; and the reply for one."""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from jurygraph.agents.judging.forms import Claim, Measurement, Quotes, Reason, Scale
from jurygraph.models.request import Reply
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Id, Number, Positive
from jurygraph.sources.ratings import NUMERAL


class _Prediction(FrozenModel):  # `value` and `confidence` are added, the reason and its quotations before them
    @model_validator(mode="after")
    def _confident_in_a_value(self) -> Self:
        answer: Any = self
        if answer.value is not None and answer.confidence is None:
            raise ValueError("`confidence` is null and `value` is not: give both, or null for both if you cannot tell")
        return self


@dataclass(frozen=True, slots=True)
class PredictionForm(Scale):
    """A score in steps from `low` to `high` (None: any number) and a confidence from 0 to 100, or null: cannot tell.

    Any score needs a quotation, the lowest as well: otherwise a response would have to be good to be heard.
    `exclusion` is the value, at one end, that says that the dimension does not apply; then the scale is the rest.
    """

    step: float | None = 1.0
    exclusion: float | None = None

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _prediction_model(self, compact)

    def is_unknown(self, answer: Any) -> bool:
        return answer.value is None

    def claims(self, answer: Any) -> Iterator[Claim]:
        if answer.value is not None:
            yield Claim(f"a value of {answer.value:g}", answer.quotes)

    def measure(self, prediction: Any, reply: Reply, name: str) -> Measurement:
        native, (low, high) = float(prediction.value), self.scored_ends
        confidence = round(prediction.confidence / 100.0, 12)  # 80.3 of 100 is exactly 0.803
        score = None if native == self.exclusion else (native - low) / (high - low)
        return Measurement(score, native=native, scale=(low, high), confidence=confidence)

    @property
    def scored_ends(self) -> tuple[float, float]:
        """The lowest and the highest of its values that are scores."""
        step = self.step or 0.0
        return (
            self.low + step if self.low == self.exclusion else self.low,
            self.high - step if self.high == self.exclusion else self.high,
        )

    def is_valid_score(self, value: float) -> bool:
        """Return True if a value is one of its scores."""
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return self.low <= value <= self.high and abs(steps - round(steps)) < 1e-9


@lru_cache(maxsize=256)
def _prediction_model(form: PredictionForm, compact: bool) -> type[FrozenModel]:

    def require_score(value: float) -> float:
        if not form.is_valid_score(value):
            raise ValueError(f"is no score: they go from {form.low:g} to {form.high:g} in steps of {form.step:g}")
        return value

    bounds: Any = Field(strict=True, ge=form.low, le=form.high)
    value: Any = Annotated[float, bounds, AfterValidator(require_score)]
    if form.step == 1.0 and form.low.is_integer() and form.high.is_integer():
        value = Annotated[int, Field(strict=True, ge=int(form.low), le=int(form.high))]
    explanation: Any = {} if compact else {"reason": (Reason, ...), "quotes": (Quotes, ...)}
    confidence: Any = Annotated[float, Field(strict=True, ge=0.0, le=100.0)]
    fields: Any = {"value": (value | None, ...), "confidence": (confidence | None, ...)}
    return create_model("PredictionStated", __base__=_Prediction, **explanation, **fields)


ReadySet = Literal["ideas"]
"""Names of the ready sets of dimensions."""


class Dimension(FrozenModel):
    """A dimension that reviewers score: a text, a scale in steps (None: any number), and anchors for values.

    It is scored only if the reviewer's score for another dimension lies `above` a threshold: the staged screening of
    "Aggregate vs. Personalized Judges". `share` is its weight relative to the other dimensions of a reward. The value
    `not_applicable`, at one end of the scale, is no score: it says that the dimension does not apply, such as the
    paper's 0 for ideas that are no product for businesses ("category exclusion").
    """

    text: Id
    scale: tuple[Number, Number]
    step: Positive | None = 1.0
    anchors: dict[Id, str] = Field(default_factory=dict)
    above: dict[Id, Number] = Field(default_factory=dict, max_length=1)
    share: Positive = 1.0
    not_applicable: Number | None = None

    @model_validator(mode="after")
    def _steps_lead_up_the_scale(self) -> Self:
        low, high = self.scale
        if not low < high:
            raise ValueError("`scale` does not rise; write the lower end first, such as [1, 5]")
        if not self.form.is_valid_score(high):
            raise ValueError(f"`step` {self.step:g} does not lead from {low:g} to {high:g}; choose one that does")
        if self.not_applicable is None:
            return self
        if self.step is None or self.not_applicable not in self.scale:
            raise ValueError(
                f"`not_applicable` {self.not_applicable:g} is not an end of a scale in steps; write {low:g} or "
                f"{high:g}, with a step, or leave it out"
            )
        lowest, highest = self.form.scored_ends
        if not lowest < highest:
            raise ValueError(f"`not_applicable` {self.not_applicable:g} leaves less than two scores; widen `scale`")
        return self

    @property
    def form(self) -> PredictionForm:
        """The form in which a judge predicts its scores."""
        return PredictionForm(*self.scale, self.step, self.not_applicable)

    @property
    def sorted_anchors(self) -> tuple[tuple[str, str], ...]:
        """The values with their descriptions, numbers from low to high before any other."""
        return tuple(sorted(self.anchors.items(), key=lambda anchor: (_as_number(anchor[0]), anchor[0])))

    def mirror(self, score: float) -> float:
        """Return the score at the same distance from the other end of the scale."""
        return self.scale[0] + self.scale[1] - score


def _as_number(text: str) -> float:
    return float(text) if NUMERAL.fullmatch(text) else math.inf


def _check_name(name: str) -> str:
    if not name or "/" in name or "@" in name:
        raise ValueError("is not a valid name; write one without / and @")
    return name


DimensionName = Annotated[str, AfterValidator(_check_name)]
Dimensions = Annotated[dict[DimensionName, Dimension], Field(min_length=1)]


@lru_cache(maxsize=8)
def load_ready_set(name: str) -> dict[str, Dimension]:
    """Return a ready set of dimensions, sorted by name."""
    text = files("jurygraph.judges.few_shot").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return {key: Dimension.model_validate(fields) for key, fields in sorted(tomllib.loads(text).items())}


def check_screening(dimensions: Mapping[str, Dimension]) -> None:
    """Raise ValueError for a threshold of an unknown dimension, or one that parts no scores."""
    for name, dimension in dimensions.items():
        for screening, threshold in dimension.above.items():
            if screening not in dimensions:
                raise ValueError(f"`dimensions.{name}.above` there is no dimension {screening!r}; name one of them")
            low, high = dimensions[screening].scale
            if not low <= threshold < high:
                raise ValueError(
                    f"`dimensions.{name}.above` no score of {screening} is parted by {threshold:g}; write one from "
                    f"{low:g} on and below {high:g}"
                )
