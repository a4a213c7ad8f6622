"""The series of a stream of steps: their values at a step, and the direction in which each is bad.

They are statistics of a step's rows, mostly means; conflict is compared with the D_pair of the first steps. Rows lie
on the last axis; the axes before it are independent steps.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from jurygraph.agents.data_analyzer import scales
from jurygraph.agents.data_analyzer.scales import MIN_RELATIVE_SD, Measure
from jurygraph.agents.data_analyzer.step import Groups, TrainingStep
from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats, Ints

_EQUAL = 1e-12


def moments(values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return number, mean, sd and spread (maximum - minimum) of values [..., n], each [...]; NaN without a number."""
    is_number = ~np.isnan(values)
    rows = is_number.sum(axis=-1).astype(np.float64)
    rows_or_nan = np.where(rows > 0, rows, np.nan)
    mean = np.where(is_number, values, 0.0).sum(axis=-1) / rows_or_nan
    deviation = np.where(is_number, values - mean[..., None], 0.0)
    sd = np.sqrt((deviation * deviation).sum(axis=-1) / rows_or_nan)
    spread = np.where(is_number, values, -np.inf).max(axis=-1) - np.where(is_number, values, np.inf).min(axis=-1)
    return rows_or_nan, mean, sd, np.where(rows > 0, spread, np.nan)


def length_correlation(lengths: Floats, rewards: Floats, groups: Groups | None) -> Floats:
    """Return the `within_correlation` of the lengths' ranks with the rewards, [...]; ties share their mean rank.

    Ranks are used because, if few rows differ in reward from their group, a single very long one would dominate.
    """
    return within_correlation(np.asarray(stats.rankdata(lengths, axis=-1, nan_policy="omit")), rewards, groups)


def within_correlation(x: Floats, y: Floats, groups: Groups | None) -> Floats:
    """Return Pearson's r of the deviations from group means, [...]; NaN if either does not vary within any group.

    A hard prompt with long answers causes no correlation; longer answers to the same prompt with higher rewards do.
    """
    rows = x.shape[-1]
    order, starts, sizes = groups or Groups(np.arange(rows), np.zeros(1, np.intp), np.array([rows], np.intp))
    x = x[..., order]
    y = y[..., order]
    is_complete = ~(np.isnan(x) | np.isnan(y))
    counts = np.maximum(np.add.reduceat(is_complete, starts, axis=-1), 1)
    dx, dy = (_deviations(column, is_complete, counts, starts, sizes) for column in (x, y))
    product = np.sqrt((dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1))
    varies = product > _EQUAL * np.maximum(1.0, (np.where(is_complete, y, 0.0) ** 2).sum(axis=-1))
    return np.where(varies, (dx * dy).sum(axis=-1) / np.where(varies, product, 1.0), np.nan)


def _deviations(x: Floats, is_complete: Bools, counts: Floats, starts: Ints, sizes: Ints) -> Floats:
    means = np.add.reduceat(np.where(is_complete, x, 0.0), starts, axis=-1) / counts
    return np.where(is_complete, x - np.repeat(means, sizes, axis=-1), 0.0)


def saturation(rewards: Floats, groups: Groups) -> Floats:
    """Return 1 for groups with equal rewards, which give GRPO no signal, else 0, [..., g]; NaN for groups of one."""
    order, starts, _ = groups
    rewards = rewards[..., order]
    counts = np.add.reduceat(~np.isnan(rewards), starts, axis=-1)
    high, low = (ufunc.reduceat(rewards, starts, axis=-1) for ufunc in (np.fmax, np.fmin))
    return np.where(counts > 1, high - low <= _EQUAL, np.nan)


def disagreement(components: Sequence[Floats]) -> Floats:
    """Return D_pair [..., n] of components [..., n]; NaN if one is missing."""
    return np.asarray(fusion.disagreement(np.stack(components, axis=-1)))


def extremes(components: Sequence[Floats]) -> Floats:
    """Return 1 for each component's values at 0 or 1, where it cannot tell better from worse, else 0; NaN remain."""
    values = np.concatenate(components, axis=-1)
    return np.where(np.isnan(values), np.nan, (values <= 0.0) | (values >= 1.0))


PERCENTILE = 80.0
"""Percentile of D_pair above which components conflict (MACRM, Eqs. 5-6). If no value lies above it, its ties count:
for components with few values the percentile is often the maximum."""

MAX_ROWS = 16_384  # the largest number of rows kept until the calibration is complete; of larger steps, the first rows


class Calibration:
    """Collect the D_pair of the components `opposed` in the first `steps` steps: in later ones, a high one is
    conflict."""

    def __init__(self, steps: int, opposed: tuple[str, ...]) -> None:
        self._left = steps
        self._max_rows = MAX_ROWS // steps
        self._opposed = opposed
        self._pairs: list[Floats] = []

    def add(self, step: TrainingStep) -> float | None:
        """Add a step; return the `conflict_limit` after the last one, None before."""
        self._pairs.append(disagreement([step.components[name] for name in self._opposed])[: self._max_rows])
        self._left -= 1
        return None if self._left else conflict_limit(self._pairs)


def conflict_limit(pairs: Sequence[Floats]) -> float:
    """Return the least D_pair of a row in conflict, from those of the first steps; NaN without a number."""
    values = np.concatenate([array.ravel() for array in pairs])
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan")
    above = values[values > np.percentile(values, PERCENTILE) + MIN_RELATIVE_SD]
    return float(above.min() if above.size else values.max())


Direction = Literal["up", "down"]
COMPONENT = "component."


class Series(NamedTuple):
    """A series by name: the scale on which it is tested, the bad direction, if any, and a description for sentences."""

    name: str
    scale: str
    adverse: Direction | None
    description: str

    @property
    def is_component(self) -> bool:
        return self.name.startswith(COMPONENT)


def series_of(step: TrainingStep, opposed: Collection[str], penalties: Collection[str]) -> tuple[Series, ...]:
    """Return the series of a stream, given its first step."""
    lengths = step.lengths is not None
    groups = step.groups is not None
    components = (
        Series(f"{COMPONENT}{name}", _scale(column), "up" if name in penalties else "down", f"the component {name}")
        for name, column in step.components.items()
    )
    candidates = (
        (True, Series("reward", "plain", "down", "the mean reward")),
        *((True, series) for series in components),
        (lengths, Series("length", "logarithm", "up", "the mean length")),
        (True, Series("failed", "share", "up", "the share of failed rewards")),
        (lengths, Series("length_reward", "correlation", "up", "the correlation of length and reward within prompts")),
        (bool(opposed), Series("conflict", "share", "up", "the share of responses whose components disagree")),
        (groups, Series("saturation", "share", "up", "the share of prompts whose responses are all paid alike")),
        (bool(step.components), Series("extremes", "share", "up", "the share of component values at 0 or 1")),
    )
    return tuple(series for exists, series in candidates if exists)


def _scale(column: Floats) -> str:
    return "plain" if ((column < 0.0) | (column > 1.0)).any() else "share"


def has_left_unit(series: Series, step: TrainingStep) -> bool:
    """Return true if a component that was tested as a share no longer can be."""
    is_share = series.is_component and series.scale == "share"
    return is_share and _scale(step.components[series.name.removeprefix(COMPONENT)]) != "share"


def measure_series(
    step: TrainingStep, series: Collection[Series], opposed: Collection[str], conflict: float
) -> Measure:
    """Return every series of a step, [..., S] in their order; NaN if it has no value.

    `conflict` is the least D_pair of a row in conflict; NaN before it is known.
    """
    measures = [_measure(statistic, step, opposed, conflict) for statistic in series]
    return Measure(*(np.stack(column, axis=-1) for column in zip(*measures, strict=True)))


def _measure(series: Series, step: TrainingStep, opposed: Collection[str], conflict: float) -> Measure:
    if series.name == "length_reward":
        assert step.lengths is not None  # or the series would not exist
        r = length_correlation(step.lengths, step.rewards, step.groups)
        return scales.correlation(r, np.asarray(float(step.rows)))
    column = _column(series, step, opposed, conflict)
    assert column is not None  # or the series would not exist
    rows, mean, sd, spread = moments(column)
    if series.scale == "share":
        return scales.share(mean, spread, rows)
    return (scales.logarithm if series.scale == "logarithm" else scales.plain_scale)(mean, spread, sd, rows)


def _column(series: Series, step: TrainingStep, opposed: Collection[str], conflict: float) -> Floats | None:
    """Return the numbers whose mean is the value of a series; of a share, they are 0 or 1."""
    if series.is_component:
        return step.components[series.name.removeprefix(COMPONENT)]
    match series.name:
        case "failed":
            return np.where(np.isnan(step.rewards), 1.0, 0.0)
        case "saturation":
            return None if step.groups is None else saturation(step.rewards, step.groups)
        case "extremes":
            return extremes(list(step.components.values()))
        case "conflict":
            pairwise = disagreement([step.components[component] for component in opposed])
            limit = conflict - MIN_RELATIVE_SD
            return np.where(np.isnan(pairwise - limit), np.nan, pairwise >= limit)
    return {"reward": step.rewards, "length": step.lengths}[series.name]
