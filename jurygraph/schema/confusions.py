"""Learned confusion matrices of annotators, which later plans can use."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from jurygraph.schema.frozen_model import FrozenModel, Id, Unit
from jurygraph.schema.rating import Label

FORM: Literal["jurygraph-consensus/1"] = "jurygraph-consensus/1"
_ROUNDING = 1e-9


class Confusions(FrozenModel):
    """The class shares and confusion matrices of a fitted consensus, without its items.

    `classes` [K] are sorted from low to high, and `prior` [K] are their shares. `annotators` holds a matrix [K][K] by
    name: the share of items of the row's class that the annotator labels with the column's class. Each row sums to 1.
    """

    format: Literal["jurygraph-consensus/1"] = FORM
    classes: tuple[Label, ...] = Field(min_length=2)
    prior: tuple[Unit, ...]
    annotators: dict[Id, tuple[tuple[Unit, ...], ...]] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_shapes(self) -> Self:
        expected = len(self.classes)
        if len(set(self.classes)) < expected:
            raise ValueError("`classes` names one twice; name each once, from low to high")
        _check_shares("`prior`", self.prior, expected)
        for name, rows in self.annotators.items():
            if len(rows) != expected:
                raise ValueError(f"`annotators.{name}` has {len(rows)} rows; give each of the {expected} classes one")
            for place, row in enumerate(rows):
                _check_shares(f"`annotators.{name}[{place}]`", row, expected)
        return self


def _check_shares(field: str, shares: tuple[float, ...], expected: int) -> None:
    if len(shares) != expected:
        raise ValueError(f"{field} has {len(shares)} shares; give each of the {expected} classes one")
    if abs(math.fsum(shares) - 1.0) > _ROUNDING:
        raise ValueError(f"{field} sums to {math.fsum(shares)}; shares of all classes sum to 1")
