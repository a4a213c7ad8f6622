"""The series of a stream of steps: what is measured of the rows of a training step, and on which scale it is tested."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from jurygraph.aggregation import fusion
from jurygraph.arrays import Floats, Ints
from jurygraph.errors import InputError

MAX_VALUE = 1e100  # the largest absolute value: sums of squares of larger ones would overflow
MIN_RELATIVE_SD = 1e-9  # the least sd, relative to the size of the number: below it differences are rounding errors
PERCENTILE = 80.0
"""Percentile of D_pair above which components conflict (MACRM, Eqs. 5-6). If no value lies above it, its ties count:
for components with few values the percentile is often the maximum."""
_EQUAL = 1e-12
COMPONENT = "component."

Direction = Literal["up", "down"]


class TrainingStep:
    """The rows of a training step, one per response.

    Args:
        rewards: [n], NaN if a reward failed.
        components: [n] each, by name; NaN if there is no value.
        lengths: [n], at least 0, in any unit.
        groups: [n] ids; the responses to one prompt are a group.

    Omitted columns are not watched.

    Raises:
        InputError: no row, columns of another shape, a value that is infinite or beyond 1e100, or a length below 0.
    """

    def __init__(
        self,
        rewards: ArrayLike,
        components: Mapping[str, ArrayLike] | None = None,
        lengths: ArrayLike | None = None,
        groups: Sequence[Any] | NDArray[Any] | None = None,
    ) -> None:
        self.rewards = _column("rewards", rewards)
        rows = len(self.rewards)
        named = sorted((components or {}).items())
        self.components = {name: _column(f"component {name!r}", column, rows) for name, column in named}
        self.lengths = None if lengths is None else _column("lengths", lengths, rows)
        self.groups: Ints | None = None
        """The number of each row's group, [n]; None without groups."""
        if groups is not None:
            if len(groups) != rows:
                raise InputError(f"a step: groups has {len(groups)} ids for {rows} rows; give one for each")
            self.groups = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]
        if self.lengths is not None and (self.lengths < 0.0).any():
            raise InputError("a step: lengths has a value below 0")


def _column(name: str, values: ArrayLike, rows: int | None = None) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"a step: {name} are not all numbers; give NaN where there is none") from None
    if column.ndim != 1 or not column.size or rows not in (None, column.size):
        wanted = "one value for each response" if rows is None else f"one value for each of {rows} rewards"
        raise InputError(f"a step: {name} has shape {column.shape}; give {wanted}")
    if (np.abs(column) > MAX_VALUE).any():
        raise InputError(f"a step: {name} has a value beyond ±{MAX_VALUE:g}; give numbers of another unit")
    return column


class Measure(NamedTuple):
    """Series at a step, [S]: the `value` for people, and the `score` that is tested.

    `floor` is the least sd of a score's noise: the standard error that the step's own rows show.
    """

    value: Any
    score: Any
    floor: Any


def measure_mean(column: Floats, is_share: bool) -> Measure:
    """Return the mean of the numbers in a column [n], each a number; NaN without one.

    A share in [0, 1] is tested as 2 arcsin √((n m + 3/8) / (n + 3/4)) (Anscombe 1948): near 0 and 1 shares are skewed,
    and their noise depends on their level; here neither. If all of its rows are equal, its floor is one flip.
    """
    values = column[~np.isnan(column)]
    rows = len(values)
    if not rows:
        return Measure(np.nan, np.nan, np.nan)
    mean = float(values.mean())
    error = float(values.std()) / rows**0.5
    if not is_share:
        return _build_measure(mean, mean, error)

    def angle(share: float) -> float:
        return float(2.0 * np.arcsin(np.sqrt((rows * min(1.0, max(0.0, share)) + 0.375) / (rows + 0.75))))

    score = angle(mean)
    error = error or 1.0 / rows
    return _build_measure(mean, score, max(angle(mean + error) - score, score - angle(mean - error)))


def _build_measure(value: float, score: float, floor: float) -> Measure:
    return Measure(value, score, max(floor, MIN_RELATIVE_SD * (1.0 + abs(score))))


def length_correlation(lengths: Floats, rewards: Floats, groups: Ints | None) -> float:
    """Return Pearson's r of the lengths' ranks and the rewards, of deviations from group means.

    Ranks are used because, if few rows differ in reward from their group, a single very long one would dominate. A hard
    prompt with long answers causes no correlation; longer answers to the same prompt with higher rewards do. NaN if
    either does not vary within any group.
    """
    known = ~(np.isnan(lengths) | np.isnan(rewards))
    group = np.zeros(np.count_nonzero(known), dtype=np.intp) if groups is None else groups[known]
    deviations = []
    for column in (stats.rankdata(lengths[known]), rewards[known]):  # ties share their mean rank
        means = np.bincount(group, column) / np.maximum(np.bincount(group), 1)
        deviations.append(column - means[group])
    of_ranks, of_rewards = deviations
    size = np.sqrt(float(of_ranks @ of_ranks) * float(of_rewards @ of_rewards))
    if size <= _EQUAL * max(1.0, float(rewards[known] @ rewards[known])):
        return float("nan")
    return float(of_ranks @ of_rewards / size)


def saturation(rewards: Floats, groups: Ints) -> Floats:
    """Return 1 for groups with equal rewards, which give GRPO no signal, else 0, [g]; NaN for groups of one."""
    known = ~np.isnan(rewards)
    count = int(groups.max()) + 1
    high = np.full(count, -np.inf)
    low = np.full(count, np.inf)
    np.maximum.at(high, groups[known], rewards[known])
    np.minimum.at(low, groups[known], rewards[known])
    sizes = np.bincount(groups[known], minlength=count)
    return np.where(sizes > 1, high - low <= _EQUAL, np.nan)


def disagreement(step: TrainingStep, opposed: Sequence[str]) -> Floats:
    """Return D_pair [n] of the components `opposed`; NaN if one is missing."""
    return np.asarray(fusion.disagreement(np.stack([step.components[name] for name in opposed], axis=-1)))


def conflict_limit(pairs: Sequence[Floats]) -> float:
    """Return the least D_pair of a row in conflict, from those of the first steps; NaN without a number."""
    values = np.concatenate(pairs)
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan")
    above = values[values > np.percentile(values, PERCENTILE) + MIN_RELATIVE_SD]
    return float(above.min() if above.size else values.max())


class Series(NamedTuple):
    """A series by name, with the direction that is bad, and whether it is tested as a share."""

    name: str
    adverse: Direction
    is_share: bool

    def to_value(self, score: float) -> float:
        """Return the value that has this score; for a share, to within 1 / n."""
        return float(np.sin(np.clip(score, 0.0, np.pi) / 2.0) ** 2) if self.is_share else score


def series_of(step: TrainingStep, opposed: Sequence[str], penalties: Collection[str]) -> tuple[Series, ...]:
    """Return the series of a stream, given its first step. A component is a share if it is in [0, 1] there."""
    found = [Series("reward", "down", False)]
    for name, column in step.components.items():
        is_share = not ((column < 0.0) | (column > 1.0)).any()
        found.append(Series(f"{COMPONENT}{name}", "up" if name in penalties else "down", is_share))
    found.append(Series("failed", "up", True))
    if step.lengths is not None:
        found += [Series("length", "up", False), Series("length_reward", "up", False)]
    if opposed:
        found.append(Series("conflict", "up", True))
    if step.groups is not None:
        found.append(Series("saturation", "up", True))
    return tuple(found)


def measure_series(step: TrainingStep, series: Collection[Series], opposed: Sequence[str], conflict: float) -> Measure:
    """Return every series of a step, [S] in their order; NaN if it has no value.

    `conflict` is the least D_pair of a row in conflict; NaN before it is known.
    """
    measures = []
    for one in series:
        if one.name == "length_reward":
            assert step.lengths is not None  # or the series would not exist
            r = length_correlation(step.lengths, step.rewards, step.groups)
            measures.append(_build_measure(r, r, len(step.rewards) ** -0.5))
        else:
            measures.append(measure_mean(_column_of(one.name, step, opposed, conflict), one.is_share))
    return Measure(*np.array(measures).T)


def _column_of(name: str, step: TrainingStep, opposed: Sequence[str], conflict: float) -> Floats:
    """Return the numbers whose mean is the value of a series; of a share other than a component, they are 0 or 1."""
    if name.startswith(COMPONENT):
        return step.components[name.removeprefix(COMPONENT)]
    if name == "failed":
        return np.where(np.isnan(step.rewards), 1.0, 0.0)
    if name == "saturation":
        assert step.groups is not None  # or the series would not exist
        return saturation(step.rewards, step.groups)
    if name == "conflict":
        pairs = disagreement(step, opposed)
        return np.where(np.isnan(pairs - conflict), np.nan, pairs >= conflict - MIN_RELATIVE_SD)
    column = step.rewards if name == "reward" else step.lengths
    assert column is not None  # or the series would not exist
    return column
