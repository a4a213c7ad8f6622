"""The series of a stream of steps: their values at a step, and the direction in which each is bad."""

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer import scales, statistics
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.statistics import Frame, Share, share_of
from jurygraph.agents.data_analyzer.step import Step
from jurygraph.aggregation.arrays import Floats

Direction = Literal["up", "down"]
COMPONENT = "component."

_DESCRIPTIONS = {
    "reward": "the mean reward",
    "population": "the distance of the rewards from the first steps'",
    "length": "the mean length",
    "repetition": "repetition",
    "failed": "the share of failed rewards",
    "length_reward": "the correlation of length and reward within prompts",
    "conflict": "the share of responses whose components disagree",
    "saturation": "the share of prompts whose responses are all paid alike",
    "extremes": "the share of component values at 0 or 1",
}
"""Descriptions of the series that are no component, for sentences."""


class Series(NamedTuple):
    """A series by name: the scale on which it is tested, and the bad direction, if any."""

    name: str
    scale: str
    adverse: Direction | None

    @property
    def is_component(self) -> bool:
        """Return true for the mean of a component of the reward."""
        return self.name.startswith(COMPONENT)

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
    is_share = series.is_component and series.scale == "share"
    return is_share and _scale(step.components[series.name.removeprefix(COMPONENT)]) != "share"


def measure_series(step: Step, series: Collection[Series], opposed: Collection[str], frame: Frame | None) -> Measure:
    """Return every series of a step, [..., S] in their order; NaN if it has no value, as before the frame is frozen."""
    measures = [_measure(statistic, step, opposed, frame) for statistic in series]
    return Measure(*(np.stack(column, axis=-1) for column in zip(*measures, strict=True)))


def _measure(series: Series, step: Step, opposed: Collection[str], frame: Frame | None) -> Measure:
    means = {"reward": step.rewards, "length": step.lengths, "repetition": step.repetition}
    column = step.components.get(series.name.removeprefix(COMPONENT)) if series.is_component else means.get(series.name)
    if column is not None:
        return _measure_mean(column, series.scale)
    if series.name == "length_reward":
        assert step.lengths is not None  # or the series would not exist
        r = statistics.length_correlation(step.lengths, step.rewards, step.groups)
        return scales.correlation(r, np.asarray(float(step.rows)))
    if series.name == "population":
        return _measure_population(step, frame)
    share = _share(series.name, step, opposed, frame)
    return scales.share(share.share, np.ones_like(share.share), share.of)


def _measure_mean(values: Floats, scale: str) -> Measure:
    rows, mean, sd, spread = statistics.moments(values)
    if scale == "share":
        return scales.share(mean, spread, rows)
    return (scales.logarithm if scale == "logarithm" else scales.plain_scale)(mean, spread, sd, rows)


def _measure_population(step: Step, frame: Frame | None) -> Measure:
    if frame is None or frame.edges is None or frame.expected is None:
        return Measure(*np.full((4, *step.rewards.shape[:-1]), np.nan))
    rows = (~np.isnan(step.rewards)).sum(axis=-1)
    index = np.where(rows > 0, statistics.stability_index(step.rewards, frame.edges, frame.expected), np.nan)
    return scales.fifth_root(index, len(frame.expected), np.where(rows > 0, rows, np.nan))


def _share(name: str, step: Step, opposed: Collection[str], frame: Frame | None) -> Share:
    failed = np.isnan(step.rewards)
    if name == "saturation":
        assert step.groups is not None  # or the series would not exist
        return statistics.saturated_share(step.rewards, step.groups)
    if name == "extremes":
        return statistics.extreme_share(list(step.components.values()))
    if name == "conflict":
        pairwise = statistics.disagreement([step.components[component] for component in opposed])
        limit = np.nan if frame is None or frame.conflict is None else frame.conflict - scales.MIN_RELATIVE_SD
        return share_of(pairwise >= limit, ~np.isnan(pairwise) & ~np.isnan(limit))
    return share_of(failed, np.ones_like(failed))
