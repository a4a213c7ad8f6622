"""The forms in which a model judges one item: the reply model, the claims that need a quotation, and the measurement.

An item is met or not, with a probability; has a value on a scale; or has parts that are each met or not, for partial
credit (GEAR, D.2). `null` in place of the decision says that the judge cannot tell: then there is no measurement.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, create_model, model_validator

from jurygraph.display import Displayed
from jurygraph.errors import InputError
from jurygraph.messages import require_type
from jurygraph.models.request import Reply
from jurygraph.models.structured import p_true
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Unit

MAX_QUOTES = 3
CANNOT_TELL = "the judge cannot tell"
_WEIGHTS_HINT = "give a tuple with a number above 0 for each part"
Quotes = Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=MAX_QUOTES)]
Reason = Annotated[str, Field(max_length=2000)]


# The next models have no docstrings because these would be part of the JSON schema that a model is given. Class names
# are visible too, in messages about missing fields.


class BinaryAnswer(FrozenModel):  # on one item that is met or not; _add_reason adds the reason and quotations
    met: Flag | None
    probability: Unit | None

    @model_validator(mode="after")
    def _derive_met(self) -> Self:
        """Take `met` from the probability, which says more; a `met` of null is final: the judge cannot tell."""
        if self.met is None:
            return self.model_copy(update={"probability": None})
        if self.probability is None:
            raise ValueError(
                f"met is {json.dumps(self.met)} and probability null: give null for both if you cannot tell"
            )
        return self.model_copy(update={"met": self.probability >= 0.5})


class PartAnswer(FrozenModel):
    quotes: Quotes
    met: Flag | None


class BarePartAnswer(FrozenModel):
    met: Flag | None


class Measurement(NamedTuple):
    """The content of a verdict: score in [0, 1], the judge's decision, native value and scale, confidence in [0, 1].

    `score` is None where the judge says that the item does not apply.
    """

    score: float | None
    met: bool | None = None
    native: float | str | None = None
    scale: tuple[float, float] | None = None
    confidence: float | None = None


class Claim(NamedTuple):
    """A claim of a reply about a response that needs a quotation, with the quotations given for it."""

    statement: str
    quotes: Sequence[str]


class Form(Displayed, ABC):
    """Base class of the forms in which one item is judged. `compact` replies hold neither reasons nor quotations."""

    @abstractmethod
    def reply_model(self, compact: bool) -> type[FrozenModel]:
        """Return the reply model."""

    @abstractmethod
    def claims(self, answer: Any) -> Iterator[Claim]:
        """Yield the positive findings of the reply, which need a quotation from the response."""

    def is_unknown(self, answer: Any) -> bool:
        """Return True if the judge cannot tell, so that the item has no score; a form has no such answer by default."""
        return False

    def explain_unknown(self, answer: Any) -> str:
        """Return why an unknown item has no score: the judge's reason, empty in a compact reply."""
        return str(getattr(answer, "reason", ""))

    @abstractmethod
    def measure(self, answer: Any, reply: Reply, name: str) -> Measurement:
        """Return the measurement of a known answer; `name` is the field of the reply that holds it."""


@dataclass(frozen=True, slots=True, repr=False)
class Binary(Form):
    """Met or not. The score is P(met): from the log probabilities of the token of `met`, else the probability given.

    It is the probability given that the judge can tell: what a token leaves to `null` is no part of it. If the log
    probabilities contradict the reply, the given probability is used instead: so something unmet, which needs no
    quotation, stays below 0.5.
    """

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return BinaryAnswer if compact else _add_reason(BinaryAnswer)

    def claims(self, answer: Any) -> Iterator[Claim]:
        if answer.met:
            yield Claim("met", answer.quotes)

    def is_unknown(self, answer: Any) -> bool:
        return answer.met is None

    def measure(self, answer: Any, reply: Reply, name: str) -> Measurement:
        probability = p_true(reply, (name, "met"))
        if probability is not None and (probability >= 0.5) != answer.met:
            probability = None  # a reply of "no" with P(yes) above 0.5 has no quotation for it
        source = "as stated" if probability is None else "from log probabilities"
        return Measurement(answer.probability if probability is None else probability, answer.met, f"P(met) {source}")


@dataclass(frozen=True, slots=True, repr=False)
class Scale(Form):
    """A value from `low` (not at all) to `high` (fully), scored as its relative position in [0, 1]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            require_type(f"Scale.{name}", getattr(self, name), int | float, "give a number")
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(f"Scale({self.low}, {self.high}): does not rise; give the lower end first")

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _scale_model(self.low, self.high, compact)

    def claims(self, answer: Any) -> Iterator[Claim]:
        if answer.value is not None and answer.value > self.low:
            yield Claim(f"a value of {answer.value:g}", answer.quotes)

    def is_unknown(self, answer: Any) -> bool:
        return answer.value is None

    def measure(self, answer: Any, reply: Reply, name: str) -> Measurement:
        score = (answer.value - self.low) / (self.high - self.low)
        return Measurement(score, native=answer.value, scale=(self.low, self.high))


@dataclass(frozen=True, slots=True, repr=False)
class PartialCredit(Form):
    """Each part is met or not, and adds its weight as partial credit. If one is unknown, so is the item."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require_type("PartialCredit.weights", self.weights, list | tuple, _WEIGHTS_HINT)
        for place, weight in enumerate(self.weights):
            require_type(f"PartialCredit.weights[{place}]", weight, int | float, _WEIGHTS_HINT)
        if not self.weights or not all(0 < weight < math.inf for weight in self.weights):
            raise InputError(f"PartialCredit.weights: are {list(self.weights)}; {_WEIGHTS_HINT}")

    @property
    def names(self) -> list[str]:
        return [f"part_{place}" for place in range(1, len(self.weights) + 1)]

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _parts_model(len(self.weights), compact)

    def claims(self, answer: Any) -> Iterator[Claim]:
        for name in self.names:
            part = getattr(answer, name)
            if part.met:
                yield Claim(f"{name} met", part.quotes)

    def is_unknown(self, answer: Any) -> bool:
        return any(self._unknown_parts(answer))

    def explain_unknown(self, answer: Any) -> str:
        reason = super(PartialCredit, self).explain_unknown(answer)
        return f"{CANNOT_TELL} {', '.join(self._unknown_parts(answer))}" + (f": {reason}" if reason else "")

    def _unknown_parts(self, answer: Any) -> list[str]:
        return [name for name in self.names if getattr(answer, name).met is None]

    def measure(self, answer: Any, reply: Reply, name: str) -> Measurement:
        met = [getattr(answer, part).met for part in self.names]
        credit = math.fsum(weight for weight, is_met in zip(self.weights, met, strict=True) if is_met)
        total = math.fsum(self.weights)
        return Measurement(min(1.0, credit / total), all(met), credit, (0.0, total))


@lru_cache(maxsize=1024)
def _scale_model(low: float, high: float, compact: bool) -> type[FrozenModel]:
    value = Annotated[float, Field(strict=True, ge=low, le=high, allow_inf_nan=False)] | None
    bare = create_model("ScaleAnswer", __base__=FrozenModel, value=(value, ...))
    return bare if compact else _add_reason(bare)


@lru_cache(maxsize=64)
def _parts_model(number: int, compact: bool) -> type[FrozenModel]:
    part = BarePartAnswer if compact else PartAnswer
    fields: Any = {f"part_{place}": (part, ...) for place in range(1, number + 1)}
    reason_field: Any = {} if compact else {"reason": (Reason, ...)}
    return create_model("PartsAnswer", __base__=FrozenModel, **reason_field, **fields)


@lru_cache(maxsize=1024)
def _add_reason(bare: type[FrozenModel]) -> type[FrozenModel]:
    """Put the reason and the quotations before the judgement that follows from them."""
    reasoned = create_model("Reasoned", __base__=FrozenModel, reason=(Reason, ...), quotes=(Quotes, ...))
    return create_model(bare.__name__, __base__=(bare, reasoned))
