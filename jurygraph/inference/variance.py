"""Where variance comes from: nested random effects, such as tasks, responses of a task, and samples of a response.

    y = μ + a_task + b_response + e_sample        Var[y] = σ²_task + σ²_response + σ²_sample

The components are the analysis-of-variance estimates, Henderson's method I (1953; Searle, Casella & McCulloch 1992,
chapter 5): the sums of squares of the levels are set equal to what they are expected to be, also where tasks differ in
size. They are unbiased without an assumption on the distributions, so that a component near 0 can be estimated below 0.
For balanced data and positive estimates they equal REML's.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, Ints, as_finite, check_shape
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import Estimate, jackknife_interval

_ROUNDING = 1e-12
_LARGEST = 700.0  # its exponential is finite


class VarianceSplit(NamedTuple):
    """Variance components of L levels, the outermost first, and the correlations of values that share a unit.

    `raw` has the unbiased estimates, which may be below 0; `components` has 0 there. `correlations[i]` is the
    intraclass correlation of two values from the same unit of level i, and not of the next: (σ²_0 + … + σ²_i) / σ²,
    with its interval, in [0, 1]; None if nothing varies. `units` counts the units of each level; the last are the
    values.
    """

    raw: tuple[float, ...]
    components: tuple[float, ...]
    correlations: tuple[Estimate | None, ...]
    units: tuple[int, ...]

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Return the components as shares of their sum; None if nothing varies."""
        total = math.fsum(self.components)
        return tuple(one / total for one in self.components) if total else None


def split_variance(values: ArrayLike, *levels: ArrayLike) -> VarianceSplit | None:
    """Return the variance components of values [N]; None where a level has no degree of freedom.

    So it is with one task, with one response for each task, or with one sample for each response where samples are a
    level. The intervals of correlations leave out each task in turn (jackknife with t), on the scale on which the
    variance ratio F of the analysis of variance is logarithmic; they have no ends where F is 0 or infinite with some
    task left out, as for fewer than three tasks, or tasks whose values are all alike.

    Args:
        values: finite numbers, [N].
        levels: ids of the units to which the values belong, one list [N] a level; the outermost first, each nested in
            the one before it. The values themselves are the last level.

    Raises:
        PlanError: a value that is not finite, a list of another length, or a unit that is in several outer ones.
    """
    numbers = as_finite("values", values)
    if not len(numbers):
        return None
    places = _check_levels(numbers, levels)
    centered = numbers - numbers.mean()
    sums = _SumsOfTasks.of(centered, places)
    rounding = _ROUNDING * max(float(np.mean(centered**2)), _ROUNDING * float(np.mean(numbers**2)))
    (raw,), without = (rows.components(rounding) for rows in (sums.all_tasks(), sums.without_each_task()))
    if np.isnan(raw).any():
        return None
    units = (*(int(level.max()) + 1 for level in places), len(numbers))
    sizes = [inner / outer for outer, inner in pairwise(units)]
    correlations = tuple(_correlation(raw, without, level, size) for level, size in enumerate(sizes))
    components = tuple(raw.tolist())
    return VarianceSplit(components, tuple(max(0.0, one) for one in components), correlations, units)


def reliability(correlation: float, count: float) -> float:
    """Return the reliability of the mean of `count` values that correlate so (Spearman 1910, Brown 1910).

    It is the share of the mean's variance that another mean over the same unit would repeat: kρ / (1 + (k - 1)ρ).
    """
    return count * correlation / (1.0 + (count - 1.0) * correlation)


def _check_levels(numbers: Floats, levels: Sequence[ArrayLike]) -> list[Ints]:
    places: list[Ints] = []
    for number, level in enumerate(levels, start=1):
        ids, units = np.unique(np.asarray(level), return_inverse=True)
        check_shape(f"level {number}", units, numbers.shape)
        if places and (mixed := places[-1] != _outer_unit(places[-1], units)[units]).any():
            raise PlanError(
                f"unit {ids[units[mixed][0]]!s} of level {number} is in several units of level {number - 1}; "
                "give each unit an id of its own"
            )
        places.append(units)
    return places


class _SumsOfTasks(NamedTuple):
    """Sums over each of G tasks of which the sums of squares consist, so that tasks can be left out.

    Of L levels, the values last: `size` [G], `sum` [G], `squares` [G, L]: Σ_u s_u² / n_u over the units u of a level,
    and `spread` [G, L, L]: Σ_u Σ_v n_v² / n_u over units v of level i within units u of level j, which is how often
    σ²_i is in the expected squares of level j; `own` [G, L] is Σ_v n_v².
    """

    size: Floats
    sum: Floats
    squares: Floats
    spread: Floats
    own: Floats

    @classmethod
    def of(cls, numbers: Floats, levels: Sequence[Ints]) -> "_SumsOfTasks":
        places = [*levels, np.arange(len(numbers))]
        tasks = int(levels[0].max()) + 1
        sizes = [np.bincount(level).astype(np.float64) for level in places]
        task_of = [_outer_unit(levels[0], level) for level in places]
        squares, own = (np.empty((tasks, len(places))) for _ in range(2))
        spread = np.empty((tasks, len(places), len(places)))
        for j, (level, size) in enumerate(zip(places, sizes, strict=True)):
            squares[:, j] = np.bincount(task_of[j], np.bincount(level, numbers) ** 2 / size, tasks)
            own[:, j] = np.bincount(task_of[j], size**2, tasks)
            for i in range(len(places)):
                inner = max(i, j)  # an inner unit of level j has all of its members in one unit of level i
                within = sizes[j][_outer_unit(level, places[inner])]
                spread[:, i, j] = np.bincount(task_of[inner], sizes[inner] ** 2 / within, tasks)
        return cls(sizes[0], np.bincount(levels[0], numbers).astype(np.float64), squares, spread, own)

    def all_tasks(self) -> "_SumsOfTasks":
        """Return the sums over all tasks, as one row."""
        return _SumsOfTasks(*(column.sum(axis=0, keepdims=True) for column in self))

    def without_each_task(self) -> "_SumsOfTasks":
        """Return the sums without each task, as G rows."""
        return _SumsOfTasks(*(column.sum(axis=0, keepdims=True) - column for column in self))

    def components(self, rounding: float) -> Floats:
        """Return the components of each row, [rows, L]; NaN where a level has no degree of freedom.

        Those nearer to 0 than `rounding` are 0.
        """
        size = np.where(self.size > 0.0, self.size, np.nan)  # without the only task
        squares = np.column_stack([self.sum**2 / size, self.squares])
        overall = (self.own / size[:, None])[:, :, None]
        gained = np.diff(squares, axis=1)
        times = np.diff(np.concatenate([overall, self.spread], axis=2), axis=2)
        solved = np.empty_like(gained)
        for level in reversed(range(gained.shape[1])):
            inner = np.sum(times[:, level + 1 :, level] * solved[:, level + 1 :], axis=1)
            freedom = times[:, level, level]
            solved[:, level] = (gained[:, level] - inner) / np.where(freedom > _ROUNDING, freedom, np.nan)
        return np.where(np.abs(solved) <= rounding, 0.0, solved)


def _outer_unit(outer: Ints, level: Ints) -> Ints:
    found = np.empty(int(level.max()) + 1, dtype=np.intp)
    found[level] = outer
    return found


def _correlation(raw: Floats, without: Floats, level: int, size: float) -> Estimate | None:
    """Return Σ σ²_0..level / σ² with its interval by log F, F = (1 + (size - 1) ρ) / (1 - ρ)."""
    if raw.sum() <= 0.0:
        return None
    value = float(raw[: level + 1].sum() / raw.sum())
    known = Estimate(min(1.0, max(0.0, value)), None, None, None, len(without))
    ratios = _log_ratio(np.vstack([raw, without]), level, size)
    if not np.isfinite(ratios).all():
        return known
    found = jackknife_interval(float(ratios[0]), ratios[1:])
    if found.low is None or found.high is None or found.error is None:
        return known
    low, high = (max(0.0, 1.0 - size / (math.exp(min(end, _LARGEST)) + size - 1.0)) for end in (found.low, found.high))
    slope = (1.0 - value) * (1.0 + (size - 1.0) * value) / size  # of ρ over log F
    return known._replace(low=low, high=high, error=found.error * slope)


def _log_ratio(components: Floats, level: int, size: float) -> Floats:
    outer = components[:, : level + 1].sum(axis=1)
    inner = components[:, level + 1 :].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log((size * outer + inner) / inner))
