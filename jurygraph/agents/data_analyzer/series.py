"""Which series a stream of steps has, what their values at a step are, and which way each is bad."""

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer import scales
from jurygraph.agents.data_analyzer.calibration import Frame
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.statistics import (
    Share,
    at_extremes,
    disagreement,
    length_correlation,
    moments,
    saturated,
    share_of,
    stability,
)
from jurygraph.agents.data_analyzer.step import Floats, Step

Direction = Literal["up", "down"]
COMPONENT = "component."

_UP: dict[str, str] = {
    "length": "the mean length",
    "repetition": "repetition",
    "failed": "the share of failed rewards",
    "length_reward": "the correlation of length and reward within prompts",
    "conflict": "the share of responses whose components disagree",
    "saturation": "the share of prompts whose responses are all paid alike",
    "extremes": "the share of component values at 0 or 1",
}
"""Series whose rise is bad, and how they are told."""

_TOLD = {"reward": "the mean reward", "population": "the distance of the rewards from the first steps'", **_UP}


class Series(NamedTuple):
    """A series by name: the scale on which it is tested, and the direction that is bad, if one is."""

    name: str
    scale: str
    adverse: Direction | None

    @property
    def told(self) -> str:
        """What it is called in a sentence."""
        return _TOLD.get(self.name) or f"the component {self.name.removeprefix(COMPONENT)}"


def series_of(step: Step, opposed: Collection[str], penalties: Collection[str]) -> tuple[Series, ...]:
    """The series that a stream has whose first step is this one."""
    names = step.components
    return (
        Series("reward", "plain", "down"),
        *(Series(f"{COMPONENT}{n}", _scale(names[n]), "up" if n in penalties else "down") for n in names),
        *([] if step.lengths is None else [Series("length", "logarithm", "up")]),
        *([] if step.repetition is None else [Series("repetition", "share", "up")]),
        Series("failed", "share", "up"),
        *([] if step.lengths is None else [Series("length_reward", "correlation", "up")]),
        *([Series("conflict", "share", "up")] if opposed else []),
        *([] if step.groups is None else [Series("saturation", "share", "up")]),
        *([Series("extremes", "share", "up")] if names else []),
        Series("population", "fifth_root", None),
    )


def _scale(column: Floats) -> str:
    """A share until a value lies outside [0, 1]; NaN decide nothing."""
    return "plain" if ((column < 0.0) | (column > 1.0)).any() else "share"


def leaves_unit(one: Series, step: Step) -> bool:
    """Whether a component that was tested as a share can be so no more."""
    mine = one.name.startswith(COMPONENT) and one.scale == "share"
    return mine and _scale(step.components[one.name.removeprefix(COMPONENT)]) != "share"


def measured(step: Step, series: Collection[Series], opposed: Collection[str], frame: Frame | None) -> Measure:
    """Every series at a step, [..., S] in their order; NaN where there is none, as before the frame is frozen."""
    each = [_measured(one, step, opposed, frame) for one in series]
    return Measure(*(np.stack(column, axis=-1) for column in zip(*each, strict=True)))


def _measured(one: Series, step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if one.name.startswith(COMPONENT):
        return _mean(step.components[one.name.removeprefix(COMPONENT)], one.scale)
    return _BY_NAME[one.name](step, opposed, frame)


def _mean(values: Floats, scale: str) -> Measure:
    rows, mean, sd, spread = moments(values)
    if scale == "share":
        return scales.share(mean, spread, rows)
    return (scales.logarithm if scale == "logarithm" else scales.plain)(mean, spread, sd, rows)


def _share(found: Share) -> Measure:
    return scales.share(found.share, np.ones_like(found.share), found.of)


def _absent(step: Step) -> Measure:
    nothing = np.full(step.rewards.shape[:-1], np.nan)
    return Measure(nothing, nothing, nothing, nothing)


def _failed(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    failed = np.isnan(step.rewards)
    return _share(share_of(failed, np.ones_like(failed)))


def _length(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _absent(step) if step.lengths is None else _mean(step.lengths, "logarithm")


def _repetition(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _absent(step) if step.repetition is None else _mean(step.repetition, "share")


def _length_reward(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if step.lengths is None:
        return _absent(step)
    r = length_correlation(step.lengths, step.rewards, step.groups)
    return scales.correlation(r, np.asarray(float(step.rows)))


def _conflict(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if frame is None or frame.conflict is None:
        return _absent(step)
    apart = disagreement([step.components[name] for name in opposed])
    return _share(share_of(apart >= frame.conflict - scales.LEAST, ~np.isnan(apart)))


def _saturation(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _absent(step) if step.groups is None else _share(saturated(step.rewards, step.groups))


def _extremes(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _share(at_extremes(list(step.components.values())))


def _population(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if frame is None or frame.edges is None or frame.expected is None:
        return _absent(step)
    rows = (~np.isnan(step.rewards)).sum(axis=-1)
    known = np.where(rows > 0, rows, np.nan)
    index = np.where(rows > 0, stability(step.rewards, frame.edges, frame.expected), np.nan)
    return scales.fifth_root(index, len(frame.expected), known)


_BY_NAME: dict[str, Callable[[Step, Collection[str], Frame | None], Measure]] = {
    "reward": lambda step, opposed, frame: _mean(step.rewards, "plain"),
    "length": _length,
    "repetition": _repetition,
    "failed": _failed,
    "length_reward": _length_reward,
    "conflict": _conflict,
    "saturation": _saturation,
    "extremes": _extremes,
    "population": _population,
}
