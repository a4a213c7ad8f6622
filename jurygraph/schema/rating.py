"""Ratings and votes, that is scores and labels that people gave to items, and confusion matrices learned from them."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from jurygraph.schema.frozen_model import (
    FrozenModel,
    Id,
    LongId,
    Number,
    StoredModel,
    StrictBool,
    UnitInterval,
)

Label = Number | Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""A class label: a number or a word."""


def format_label(label: Label) -> str:
    """Format a label; whole numbers have no decimal point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


class RatedItem(FrozenModel):
    """A rated item, or the output of an agent for it."""

    item: Id
    agent: Id | None = None

    @property
    def key(self) -> str:
        """Return the item, followed by "_" and the agent where there is one."""
        return self.item if self.agent is None else f"{self.item}_{self.agent}"


class Rating(RatedItem):
    """A score by a reviewer, in the units of its dimension; None if the reviewer gave none."""

    reviewer: Id
    score: Number | None
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None
    text: str | None = None
    reason: str | None = None
    time: str | Number | None = None


class LabelledItem(RatedItem):
    """An item and its label; None without one."""

    label: Label | None


class Vote(LabelledItem):
    """A label by an annotator; None is an abstention. Items that share a prompt or the like have the same `group`."""

    annotator: Annotated[Id, StringConstraints(strip_whitespace=True)]
    dimension: Id | None = None
    domain: Id | None = None
    group: LongId | None = None

    @property
    def subject(self) -> tuple[str, str, str | None]:
        """Return what a person labels once: the key of the item, the annotator, and the dimension."""
        return self.key, self.annotator, self.dimension


class VoteOnText(Vote):
    """A vote with the text that it is about, and the prompt of it, if the file has them."""

    text: str | None = None
    prompt: str | None = None


class RatedText(Vote):
    """A vote with the text that it is about, and the reason for it."""

    text: str
    reason: str | None = None
    time: str | Number | None = None


class RatedAnswer(RatedText):
    """A rated text with the prompt that it answers."""

    prompt: str | None = None


class JudgedLabel(FrozenModel):
    """A person's label of a response, or of one `question` about it, to compare a judge with.

    `target` is true or false, or a number in the judge's own units: 0 or 1, its scale, or a share. With `other` it is
    of a pair of responses: 1 if `id` is better, 0 if `other` is, and 0.5 for a tie.
    """

    id: Id
    other: Id | None = None
    target: StrictBool | Number
    question: LongId | None = None
    reviewer: Id | None = None
    split: str | None = None


class Confusions(StoredModel):
    """The class shares and confusion matrices of a fitted consensus, without its items.

    `classes` [K] are sorted from low to high, and `prior` [K] are their shares. `annotators` holds a matrix [K][K] by
    name: the share of items of the row's class that the annotator labels with the column's class. Each row sums to 1.
    """

    format: Literal["jurygraph-consensus/1"] = "jurygraph-consensus/1"
    classes: tuple[Label, ...] = Field(min_length=2)
    prior: tuple[UnitInterval, ...]
    annotators: dict[Id, tuple[tuple[UnitInterval, ...], ...]] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_shapes(self) -> Self:
        expected = len(self.classes)
        if len(set(self.classes)) < expected:
            raise ValueError("`classes` names one twice; name each once, from low to high")
        shares_by_field = {"prior": self.prior}
        for name, rows in self.annotators.items():
            if len(rows) != expected:
                raise ValueError(
                    f"`annotators.{name}` has {len(rows)} rows; give each of the {expected} classes one"
                )
            for index, row in enumerate(rows):
                shares_by_field[f"annotators.{name}[{index}]"] = row
        for field, shares in shares_by_field.items():
            if len(shares) != expected:
                raise ValueError(
                    f"`{field}` has {len(shares)} shares; give each of the {expected} classes one"
                )
            if abs(math.fsum(shares) - 1.0) > 1e-9:
                raise ValueError(
                    f"`{field}` sums to {math.fsum(shares)}; shares of all classes sum to 1"
                )
        return self
