"""The forms in which a model judges one thing: what it replies, what of that needs a quotation, and what it measures.

met or not, with a probability; a value on a scale; or each of several parts met or not, for partial credit (GEAR, D.2).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model, model_validator

from jurygraph.models.asking import Reply
from jurygraph.models.probability import p_true
from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag, Unit

MOST_QUOTED = 3
Quotes = Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=MOST_QUOTED)]
Reason = Annotated[str, Field(max_length=2000)]


# A docstring would stand in the schema that a model is given, and a name in what it is told of a field that is missing.


class VerdictStated(Noun):  # of something that is met or not, without reasons
    met: Flag
    probability: Unit

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "VerdictStated":
        if self.met != (self.probability >= 0.5):
            said = f"met is {str(self.met).lower()} and probability {self.probability}"
            raise ValueError(f"{said}: it is 0.5 or more exactly where met is true")
        return self


class PartStated(Noun):
    quotes: Quotes
    met: Flag


class BarePartStated(Noun):
    met: Flag


@dataclass(frozen=True, slots=True)
class Measured:
    """What a verdict says: score in [0, 1], the decision of the judge, native value and scale, confidence in [0, 1]."""

    score: float
    met: bool | None = None
    native: float | str | None = None
    scale: tuple[float, float] | None = None
    confidence: float | None = None


class Claim(NamedTuple):
    """Something that a reply says of a response and that needs a quotation; and the quotations given for it."""

    said: str
    quotes: Sequence[str]


class Form(ABC):
    """How one thing is judged. `compact` replies hold neither reasons nor quotations."""

    @abstractmethod
    def noun(self, compact: bool) -> type[Noun]:
        """What is to be replied."""

    @abstractmethod
    def claims(self, stated: Any) -> Iterator[Claim]:
        """What in the reply needs a quotation: whatever it finds in the response."""

    @abstractmethod
    def measured(self, stated: Any, reply: Reply, name: str) -> Measured:
        """What the reply comes to; `name` is the field of the reply in which it stands."""


@dataclass(frozen=True, slots=True)
class MetOrNot(Form):
    """Met or not. The score is P(met): from the log probabilities of the word that says so, else as stated.

    It is as stated too where the log probabilities say otherwise than the reply: so what is not met, and needs no
    quotation, lies below 0.5.
    """

    def noun(self, compact: bool) -> type[Noun]:
        return VerdictStated if compact else _with_reason(VerdictStated)

    def claims(self, stated: Any) -> Iterator[Claim]:
        if stated.met:
            yield Claim("met", stated.quotes)

    def measured(self, stated: Any, reply: Reply, name: str) -> Measured:
        likely = p_true(reply, (name, "met"))
        if likely is not None and (likely >= 0.5) != stated.met:
            likely = None  # whoever says no and means yes has quoted nothing for it
        source = "as stated" if likely is None else "from log probabilities"
        return Measured(stated.probability if likely is None else likely, stated.met, f"P(met) {source}")


@dataclass(frozen=True, slots=True)
class OnScale(Form):
    """A value from `low` (not at all) to `high` (wholly), as a share of the way."""

    low: float
    high: float

    def noun(self, compact: bool) -> type[Noun]:
        return _rated(self.low, self.high, compact)

    def claims(self, stated: Any) -> Iterator[Claim]:
        if stated.value > self.low:
            yield Claim(f"a value of {stated.value:g}", stated.quotes)

    def measured(self, stated: Any, reply: Reply, name: str) -> Measured:
        score = (stated.value - self.low) / (self.high - self.low)
        return Measured(score, native=stated.value, scale=(self.low, self.high))


@dataclass(frozen=True, slots=True)
class InParts(Form):
    """Each part is met or not, and gives its weight as partial credit."""

    weights: tuple[float, ...]

    @property
    def names(self) -> list[str]:
        """The parts, as prompt and reply know them."""
        return [f"part_{place}" for place in range(1, len(self.weights) + 1)]

    def noun(self, compact: bool) -> type[Noun]:
        return _in_parts(len(self.weights), compact)

    def claims(self, stated: Any) -> Iterator[Claim]:
        for name in self.names:
            part = getattr(stated, name)
            if part.met:
                yield Claim(f"{name} met", part.quotes)

    def measured(self, stated: Any, reply: Reply, name: str) -> Measured:
        met = [getattr(stated, part).met for part in self.names]
        reached = math.fsum(weight for weight, one in zip(self.weights, met, strict=True) if one)
        total = math.fsum(self.weights)
        return Measured(min(1.0, reached / total), all(met), reached, (0.0, total))


@lru_cache(maxsize=1024)
def _rated(low: float, high: float, compact: bool) -> type[Noun]:
    value = Annotated[float, Field(strict=True, ge=low, le=high, allow_inf_nan=False)]
    plain = create_model("VerdictStated", __base__=Noun, value=(value, ...))
    return plain if compact else _with_reason(plain)


@lru_cache(maxsize=64)
def _in_parts(number: int, compact: bool) -> type[Noun]:
    part = BarePartStated if compact else PartStated
    fields: Any = {f"part_{place}": (part, ...) for place in range(1, number + 1)}
    said: Any = {} if compact else {"reason": (Reason, ...)}
    return create_model("VerdictStated", __base__=Noun, **said, **fields)


@lru_cache(maxsize=1024)
def _with_reason(plain: type[Noun]) -> type[Noun]:
    """The reason comes before what it leads to, and so do the quotations on which it rests."""
    first = create_model("Reasoned", __base__=Noun, reason=(Reason, ...), quotes=(Quotes, ...))
    return create_model(plain.__name__, __base__=(plain, first))
