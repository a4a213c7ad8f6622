"""The series of a stream of steps: their values at a step, and the direction in which each is bad."""

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer import scales
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.statistics import (
    Frame,
    Share,
    disagreement,
    extreme_share,
    length_correlation,
    moments,
    saturated_share,
    share_of,
    stability_index,
)
from jurygraph.agents.data_analyzer.step import Step
from jurygraph.aggregation.arrays import Floats

Direction = Literal["up", "down"]
COMPONENT = "component."

_ADVERSE_UP: dict[str, str] = {
    "length": "the mean length",
    "repetition": "repetition",
    "failed": "the share of failed rewards",
    "length_reward": "the correlation of length and reward within prompts",
    "conflict": "the share of responses whose components disagree",
    "saturation": "the share of prompts whose responses are all paid alike",
    "extremes": "the share of component values at 0 or 1",
}
"""Series whose rise is bad, with their descriptions for sentences."""

_DESCRIPTIONS = {
    "reward": "the mean reward",
    "population": "the distance of the rewards from the first steps'",
    **_ADVERSE_UP,
}


class Series(NamedTuple):
    """A series by name: the scale on which it is tested, and the bad direction, if any."""

    name: str
    scale: str
    adverse: Direction | None

    @property
    def description(self) -> str:
        """Return the description of the series for sentences."""
        return _DESCRIPTIONS.get(self.name) or f"the component {self.name.removeprefix(COMPONENT)}"


def series_of(step: Step, opposed: Collection[str], penalties: Collection[str]) -> tuple[Series, ...]:
    """Return the series of a stream, given its first step."""
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
    """Return `share` unless a value lies outside [0, 1]; NaN are ignored."""
    return "plain" if ((column < 0.0) | (column > 1.0)).any() else "share"


def has_left_unit(series: Series, step: Step) -> bool:
    """Return true if a component that was tested as a share no longer can be."""
    is_share = series.name.startswith(COMPONENT) and series.scale == "share"
    return is_share and _scale(step.components[series.name.removeprefix(COMPONENT)]) != "share"


def measure_series(step: Step, series: Collection[Series], opposed: Collection[str], frame: Frame | None) -> Measure:
    """Return every series at a step, [..., S] in their order; NaN if it has no value, as before the frame is frozen."""
    measures = [_measure(statistic, step, opposed, frame) for statistic in series]
    return Measure(*(np.stack(column, axis=-1) for column in zip(*measures, strict=True)))


def _measure(series: Series, step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if series.name.startswith(COMPONENT):
        return _measure_mean(step.components[series.name.removeprefix(COMPONENT)], series.scale)
    return _BY_NAME[series.name](step, opposed, frame)


def _measure_mean(values: Floats, scale: str) -> Measure:
    rows, mean, sd, spread = moments(values)
    if scale == "share":
        return scales.share(mean, spread, rows)
    return (scales.logarithm if scale == "logarithm" else scales.plain_scale)(mean, spread, sd, rows)


def _measure_share(share: Share) -> Measure:
    return scales.share(share.share, np.ones_like(share.share), share.of)


def _nan_measure(step: Step) -> Measure:
    nan = np.full(step.rewards.shape[:-1], np.nan)
    return Measure(nan, nan, nan, nan)


def _failed_share(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    failed = np.isnan(step.rewards)
    return _measure_share(share_of(failed, np.ones_like(failed)))


def _length(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _nan_measure(step) if step.lengths is None else _measure_mean(step.lengths, "logarithm")


def _repetition(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _nan_measure(step) if step.repetition is None else _measure_mean(step.repetition, "share")


def _length_reward(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if step.lengths is None:
        return _nan_measure(step)
    r = length_correlation(step.lengths, step.rewards, step.groups)
    return scales.correlation(r, np.asarray(float(step.rows)))


def _conflict(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if frame is None or frame.conflict is None:
        return _nan_measure(step)
    pairwise = disagreement([step.components[name] for name in opposed])
    return _measure_share(share_of(pairwise >= frame.conflict - scales.MIN_RELATIVE_SD, ~np.isnan(pairwise)))


def _saturation(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _nan_measure(step) if step.groups is None else _measure_share(saturated_share(step.rewards, step.groups))


def _extremes(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    return _measure_share(extreme_share(list(step.components.values())))


def _population(step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    if frame is None or frame.edges is None or frame.expected is None:
        return _nan_measure(step)
    rows = (~np.isnan(step.rewards)).sum(axis=-1)
    rows_or_nan = np.where(rows > 0, rows, np.nan)
    index = np.where(rows > 0, stability_index(step.rewards, frame.edges, frame.expected), np.nan)
    return scales.fifth_root(index, len(frame.expected), rows_or_nan)


_BY_NAME: dict[str, Callable[[Step, Collection[str], Frame | None], Measure]] = {
    "reward": lambda step, opposed, frame: _measure_mean(step.rewards, "plain"),
    "length": _length,
    "repetition": _repetition,
    "failed": _failed_share,
    "length_reward": _length_reward,
    "conflict": _conflict,
    "saturation": _saturation,
    "extremes": _extremes,
    "population": _population,
}
