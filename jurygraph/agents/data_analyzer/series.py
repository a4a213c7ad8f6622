"""The series of a stream of steps: their values at a step, and the direction in which each is bad.

They are statistics of a step's rows, some compared with what is frozen of the first steps: the D_pair of conflict, and
the rewards. Rows lie on the last axis; the axes before it are independent steps.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from jurygraph.agents.data_analyzer import scales
from jurygraph.agents.data_analyzer.scales import MIN_RELATIVE_SD, Measure
from jurygraph.agents.data_analyzer.step import Groups, Step
from jurygraph.aggregation import fusion
from jurygraph.aggregation.arrays import Bools, Floats, Ints

_EQUAL = 1e-12


class Moments(NamedTuple):
    """Number, mean, sd and spread (maximum - minimum) of the rows that are numbers; NaN if there are none."""

    rows: Floats
    mean: Floats
    sd: Floats
    spread: Floats


def moments(values: Floats) -> Moments:
    """Return the moments of values [..., n]."""
    is_number = ~np.isnan(values)
    rows = is_number.sum(axis=-1).astype(np.float64)
    rows_or_nan = np.where(rows > 0, rows, np.nan)
    mean = np.where(is_number, values, 0.0).sum(axis=-1) / rows_or_nan
    deviation = np.where(is_number, values - mean[..., None], 0.0)
    sd = np.sqrt((deviation * deviation).sum(axis=-1) / rows_or_nan)
    spread = np.where(is_number, values, -np.inf).max(axis=-1) - np.where(is_number, values, np.inf).min(axis=-1)
    return Moments(rows_or_nan, mean, sd, np.where(rows > 0, spread, np.nan))


def length_correlation(lengths: Floats, rewards: Floats, groups: Groups | None) -> Floats:
    """Return the `within_correlation` of the lengths' ranks with the rewards, [...].

    Ranks are used because, if few rows differ in reward from their group, a single very long one would dominate.
    """
    return within_correlation(rank_values(lengths), rewards, groups)


def rank_values(values: Floats) -> Floats:
    """Return ranks on the last axis, from 1; ties share their mean rank, and NaN remain NaN."""
    return np.asarray(stats.rankdata(values, axis=-1, nan_policy="omit"))


def within_correlation(x: Floats, y: Floats, groups: Groups | None) -> Floats:
    """Return Pearson's r of the deviations from group means, [...]; NaN if either does not vary within any group.

    A hard prompt with long answers causes no correlation; longer answers to the same prompt with higher rewards do.
    """
    rows = x.shape[-1]
    order, starts, sizes = groups or Groups(np.arange(rows), np.zeros(1, np.intp), np.array([rows], np.intp))
    x, y = x[..., order], y[..., order]
    is_complete = ~(np.isnan(x) | np.isnan(y))
    counts = np.maximum(np.add.reduceat(is_complete, starts, axis=-1), 1)
    dx, dy = (_deviations(column, is_complete, counts, starts, sizes) for column in (x, y))
    product = np.sqrt((dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1))
    varies = product > _EQUAL * np.maximum(1.0, (np.where(is_complete, y, 0.0) ** 2).sum(axis=-1))
    return np.where(varies, (dx * dy).sum(axis=-1) / np.where(varies, product, 1.0), np.nan)


def _deviations(x: Floats, is_complete: Bools, counts: Floats, starts: Ints, sizes: Ints) -> Floats:
    means = np.add.reduceat(np.where(is_complete, x, 0.0), starts, axis=-1) / counts
    return np.where(is_complete, x - np.repeat(means, sizes, axis=-1), 0.0)


class Share(NamedTuple):
    """A share, and the number that it is a share of; NaN if that is 0."""

    share: Floats
    of: Floats


def share_of(chosen: Bools, counted: Bools) -> Share:
    """Return the share of chosen items among the counted ones, on the last axis."""
    of = counted.sum(axis=-1).astype(np.float64)
    of_or_nan = np.where(of > 0, of, np.nan)
    return Share((chosen & counted).sum(axis=-1) / of_or_nan, of_or_nan)


def saturated_share(rewards: Floats, groups: Groups) -> Share:
    """Return the share of groups with equal rewards, which give GRPO no signal; groups of one do not count."""
    order, starts, _ = groups
    rewards = rewards[..., order]
    counted = np.add.reduceat(~np.isnan(rewards), starts, axis=-1) > 1
    high, low = (ufunc.reduceat(rewards, starts, axis=-1) for ufunc in (np.fmax, np.fmin))
    return share_of(high - low <= _EQUAL, counted)


def disagreement(components: Sequence[Floats]) -> Floats:
    """Return D_pair [..., n] of components [..., n]; NaN if one is missing."""
    return np.asarray(fusion.disagreement(np.stack(components, axis=-1)))


def extreme_share(components: Sequence[Floats]) -> Share:
    """Return the share of all components' values at 0 or 1, where a component cannot tell better from worse."""
    values = np.concatenate(components, axis=-1)
    return share_of((values <= 0.0) | (values >= 1.0), ~np.isnan(values))


def stability_index(rewards: Floats, edges: Floats, expected: Floats) -> Floats:
    """Return the population stability index Σ (p - q) ln(p / q) of rewards [..., n] over bins.

    The bins end at `edges` [B - 1]. q [B] is `expected`; p adds half a row to each bin, so that an empty one does not
    give infinity.
    """
    counts_above = [(rewards > edge).sum(axis=-1) for edge in (-np.inf, *edges, np.inf)]
    counts = -np.diff(np.stack(counts_above, axis=-1).astype(np.float64), axis=-1)
    p = (counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 0.5 * len(expected))
    return np.asarray(((p - expected) * np.log(p / expected)).sum(axis=-1))


PERCENTILE = 80.0
"""Percentile of D_pair above which components conflict (MACRM, Eqs. 5-6). If no value lies above it, its ties count:
for components with few values the percentile is often the maximum."""

BINS = 10
MAX_ROWS = 16_384  # the largest number of rows kept until the calibration is complete; of larger steps, the first rows


class Frame(NamedTuple):
    """The result of the calibration.

    `conflict` is the least D_pair of a row in conflict; the rewards' bins end at `edges` [B - 1] and held the shares
    `expected` [B]. None if there was no value, or only a single one, to calibrate with.
    """

    conflict: float | None
    edges: Floats | None
    expected: Floats | None


class Calibration:
    """Collect the rows of the first `steps` steps; the disagreement of the components `opposed` is conflict."""

    def __init__(self, steps: int, opposed: tuple[str, ...]) -> None:
        self._left, self._max_rows, self._opposed = steps, MAX_ROWS // steps, opposed
        self._rewards: list[Floats] = []
        self._pairs: list[Floats] = []

    def add(self, step: Step) -> Frame | None:
        """Add a step; return the frame after the last one, None before."""
        self._rewards.append(step.rewards[: self._max_rows].copy())
        if self._opposed:
            self._pairs.append(disagreement([step.components[name] for name in self._opposed])[: self._max_rows])
        self._left -= 1
        return None if self._left else frame(self._rewards, self._pairs)


def frame(rewards: list[Floats], pairs: list[Floats]) -> Frame:
    """Compute the frame from the rewards and D_pair of rows."""
    pairwise, values = _join_numbers(pairs), _join_numbers(rewards)
    conflict = _conflict_threshold(pairwise) if pairwise.size else None
    if not values.size:
        return Frame(conflict, None, None)
    # Quantiles that are values of the rows themselves, so that frequent rewards get a bin edge of their own.
    quantiles = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    edges = np.asarray(quantiles[quantiles < values.max()], dtype=np.float64)
    if not edges.size:
        return Frame(conflict, None, None)
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return Frame(conflict, edges, (counts + 0.5) / (counts.sum() + 0.5 * len(counts)))


def _conflict_threshold(pairwise: Floats) -> float:
    above = pairwise[pairwise > np.percentile(pairwise, PERCENTILE) + MIN_RELATIVE_SD]
    return float(above.min() if above.size else pairwise.max())


def _join_numbers(rows: list[Floats]) -> Floats:
    values = np.concatenate([array.ravel() for array in rows]) if rows else np.empty(0)
    return np.asarray(values[~np.isnan(values)])


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
        r = length_correlation(step.lengths, step.rewards, step.groups)
        return scales.correlation(r, np.asarray(float(step.rows)))
    if series.name == "population":
        return _measure_population(step, frame)
    share = _share(series.name, step, opposed, frame)
    return scales.share(share.share, np.ones_like(share.share), share.of)


def _measure_mean(values: Floats, scale: str) -> Measure:
    rows, mean, sd, spread = moments(values)
    if scale == "share":
        return scales.share(mean, spread, rows)
    return (scales.logarithm if scale == "logarithm" else scales.plain_scale)(mean, spread, sd, rows)


def _measure_population(step: Step, frame: Frame | None) -> Measure:
    if frame is None or frame.edges is None or frame.expected is None:
        return Measure(*np.full((4, *step.rewards.shape[:-1]), np.nan))
    rows = (~np.isnan(step.rewards)).sum(axis=-1)
    index = np.where(rows > 0, stability_index(step.rewards, frame.edges, frame.expected), np.nan)
    return scales.fifth_root(index, len(frame.expected), np.where(rows > 0, rows, np.nan))


def _share(name: str, step: Step, opposed: Collection[str], frame: Frame | None) -> Share:
    failed = np.isnan(step.rewards)
    if name == "saturation":
        assert step.groups is not None  # or the series would not exist
        return saturated_share(step.rewards, step.groups)
    if name == "extremes":
        return extreme_share(list(step.components.values()))
    if name == "conflict":
        pairwise = disagreement([step.components[component] for component in opposed])
        limit = np.nan if frame is None or frame.conflict is None else frame.conflict - MIN_RELATIVE_SD
        return share_of(pairwise >= limit, ~np.isnan(pairwise) & ~np.isnan(limit))
    return share_of(failed, np.ones_like(failed))
