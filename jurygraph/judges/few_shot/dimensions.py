"""What reviewers score: dimensions, each with its scale, and with what must be reached before it is asked about."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from jurygraph.agents.functions import describe
from jurygraph.errors import ConfigError
from jurygraph.judges.few_shot.prediction import Predicted
from jurygraph.schema import Noun
from jurygraph.schema.noun import Id, Number, Positive

READY = ("ideas",)
"""Sets of dimensions that a config can name."""


class Dimension(Noun):
    """One thing that reviewers score: in words, on a scale in steps (None: any number), with anchors for values.

    It is asked about only where the reviewer's score for another dimension lies `above` a threshold: the staged
    screening of "Aggregate vs. Personalized Judges". `share` is what it weighs beside the others in a reward.
    """

    text: Id
    scale: tuple[Number, Number]
    step: Positive | None = 1.0
    anchors: dict[Id, str] = Field(default_factory=dict)
    above: dict[Id, Number] = Field(default_factory=dict, max_length=1)
    share: Positive = 1.0

    @model_validator(mode="after")
    def _steps_lead_up_the_scale(self) -> Self:
        low, high = self.scale
        if not low < high:
            raise ValueError("`scale` does not rise; write the lower end first, such as [1, 5]")
        if not self.form.holds(high):
            raise ValueError(f"`step` {self.step:g} does not lead from {low:g} to {high:g}; choose one that does")
        return self

    @property
    def form(self) -> Predicted:
        """The form in which a judge predicts its scores."""
        return Predicted(*self.scale, self.step)


def dimensions_of(stated: str | Mapping[str, Any]) -> dict[str, Dimension]:
    """Dimensions by name, in the order of their names, as a config states them: a ready set, or each by itself.

    Raises `ConfigError` naming the dimension and the field.
    """
    if isinstance(stated, str):
        if stated not in READY:
            raise ConfigError(f"dimensions: there is no ready set {stated!r}; name {', '.join(READY)}, or state each")
        stated = _ready(stated)
    if not isinstance(stated, Mapping) or not stated:
        raise ConfigError("dimensions: state at least one, such as {quality: {text: ..., scale: [1, 5]}}")
    found = {name: _dimension(name, stated[name]) for name in sorted(stated)}
    _check_order(found)
    return found


@cache
def _ready(name: str) -> dict[str, Any]:
    return tomllib.loads(files("jurygraph.judges.few_shot").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def _dimension(name: str, stated: Any) -> Dimension:
    if not name or "/" in name or "@" in name:
        raise ConfigError(f"dimensions: {name!r} is no name; write one without / and @")
    try:
        return Dimension.model_validate(stated)
    except ValidationError as error:
        raise ConfigError(f"dimensions.{name}: {describe(error)}") from None


def _check_threshold(name: str, before: str, threshold: float, dimensions: Mapping[str, Dimension]) -> None:
    if before not in dimensions:
        raise ConfigError(f"dimensions.{name}.above: there is no dimension {before!r}; name one of them")
    low, high = dimensions[before].scale
    if not low <= threshold < high:
        raise ConfigError(
            f"dimensions.{name}.above: no score of {before} is parted by {threshold:g}; write one from {low:g} on and "
            f"below {high:g}"
        )


def _check_order(dimensions: Mapping[str, Dimension]) -> None:
    for name, dimension in dimensions.items():
        for before, threshold in dimension.above.items():
            _check_threshold(name, before, threshold, dimensions)
    for name, dimension in dimensions.items():
        passed = [name]
        while dimension.above:
            (before,) = dimension.above
            if before in passed:
                circle = " -> ".join((*passed, before))
                raise ConfigError(
                    f"dimensions.{name}.above: these wait for each other: {circle}; leave one `above` out"
                )
            passed.append(before)
            dimension = dimensions[before]
