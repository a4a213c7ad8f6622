"""What was learned of annotators: how each of them confuses the classes, as later plans may use it."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from jurygraph.schema.noun import Id, Noun, Unit
from jurygraph.schema.rating import Label

FORM: Literal["jurygraph-consensus/1"] = "jurygraph-consensus/1"
_ROUNDING = 1e-9


class Confusions(Noun):
    """A fitted consensus without its items: shares and confusions that stay as they are.

    `classes` [K] are from low to high, `prior` [K] their shares, and `annotators` by name [K][K]: of an item of the
    class of the row, how often the annotator says the class of the column. Each row sums to 1.
    """

    format: Literal["jurygraph-consensus/1"] = FORM
    classes: tuple[Label, ...] = Field(min_length=2)
    prior: tuple[Unit, ...]
    annotators: dict[Id, tuple[tuple[Unit, ...], ...]] = Field(min_length=1)

    @model_validator(mode="after")
    def _of_one_scale(self) -> Self:
        many = len(self.classes)
        if len(set(self.classes)) < many:
            raise ValueError("`classes` names one twice; name each once, from low to high")
        _shares("`prior`", self.prior, many)
        for name, rows in self.annotators.items():
            if len(rows) != many:
                raise ValueError(f"`annotators.{name}` has {len(rows)} rows; give each of the {many} classes one")
            for place, row in enumerate(rows):
                _shares(f"`annotators.{name}[{place}]`", row, many)
        return self


def _shares(field: str, shares: tuple[float, ...], many: int) -> None:
    if len(shares) != many:
        raise ValueError(f"{field} has {len(shares)} shares; give each of the {many} classes one")
    if abs(math.fsum(shares) - 1.0) > _ROUNDING:
        raise ValueError(f"{field} sums to {math.fsum(shares)}; shares of all classes sum to 1")
