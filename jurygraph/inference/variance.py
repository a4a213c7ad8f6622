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
from jurygraph.inference.clusters import Estimate, jackknife_interval, jackknife_masks

_ROUNDING_ERROR = 1e-12
_LARGEST_EXPONENT = 700.0  # its exponential is finite


class VarianceComponents(NamedTuple):
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
        return tuple(component / total for component in self.components) if total else None


def split_variance(values: ArrayLike, *levels: ArrayLike) -> VarianceComponents | None:
    """Return the variance components of values [N]; None where a level has no degree of freedom.

    So it is with one task, with one response for each task, or with one sample for each response where samples are a
    level. The intervals of correlations leave out each task in turn, or each hundredth of the tasks (jackknife with t),
    on the scale on which the variance ratio F of the analysis of variance is logarithmic; they have no ends where F is
    0 or infinite without some of them, as for fewer than three tasks, or tasks whose values are all alike.

    Args:
        values: finite numbers, [N], N > 0.
        levels: ids of the units to which the values belong, one list [N] a level; the outermost first, each nested in
            the one before it. The values themselves are the last level.

    Raises:
        PlanError: a value that is not finite, a list of another length, or a unit that is in several outer ones.
    """
    numbers = as_finite("values", values)
    unit_codes: list[Ints] = []
    for number, level in enumerate(levels, start=1):
        ids, codes = np.unique(level, return_inverse=True)
        check_shape(f"level {number}", codes, numbers.shape)
        if unit_codes:
            outer_codes = unit_codes[-1]
            has_several_outer_units = (
                outer_codes != _outer_unit_of_each_unit(outer_codes, codes)[codes]
            )
            if has_several_outer_units.any():
                raise PlanError(
                    f"unit {ids[codes[has_several_outer_units][0]]!s} of level {number} is in "
                    f"several units of level {number - 1}; give each unit an id of its own"
                )
        unit_codes.append(codes)
    centered = numbers - numbers.mean()
    variance = float(np.mean(centered**2))
    # What rounding alone can leave of a component; large means lose more digits.
    rounding_tolerance = _ROUNDING_ERROR * max(
        variance, _ROUNDING_ERROR * float(np.mean(numbers**2))
    )
    raw_variance_components = _variance_components(centered, unit_codes, rounding_tolerance)
    if np.isnan(raw_variance_components).any():
        return None
    jackknife_rows = []
    for kept in jackknife_masks(unit_codes[0]):
        kept_unit_codes = [codes[kept] for codes in unit_codes]
        jackknife_rows.append(
            _variance_components(centered[kept], kept_unit_codes, rounding_tolerance)
        )
    units = (*(int(codes.max()) + 1 for codes in unit_codes), len(numbers))
    # The mean number of inner units in an outer one.
    sizes = [inner / outer_unit_count for outer_unit_count, inner in pairwise(units)]
    jackknife_components = np.array(jackknife_rows)
    correlations = [
        _intraclass_correlation(raw_variance_components, jackknife_components, level, size)
        for level, size in enumerate(sizes)
    ]
    components = raw_variance_components.tolist()
    return VarianceComponents(
        raw=tuple(components),
        components=tuple(max(0.0, component) for component in components),
        correlations=tuple(correlations),
        units=units,
    )


def reliability(correlation: float, count: float) -> float:
    """Return the reliability of the mean of `count` values that correlate so (Spearman 1910, Brown 1910).

    It is the share of the mean's variance that another mean over the same unit would repeat: kρ / (1 + (k - 1)ρ).
    """
    return count * correlation / (1.0 + (count - 1.0) * correlation)


def _variance_components(
    numbers: Floats, unit_codes: Sequence[Ints], rounding_tolerance: float
) -> Floats:
    """Return the components of values [N] by level, [L]; NaN where a level has no degree of freedom.

    Those nearer to 0 than `rounding_tolerance` are 0. A unit without a value does not count.
    """
    # Before the outermost level one unit of all values, after the innermost each value by itself.
    levels = [np.zeros(len(numbers), dtype=np.intp), *unit_codes, np.arange(len(numbers))]
    sizes = [np.bincount(level).astype(np.float64) for level in levels]
    sums = [np.bincount(level, numbers) for level in levels]
    squares = [_sum_of_ratios(total**2, size) for total, size in zip(sums, sizes, strict=True)]

    def times(outer: int, inner: int) -> float:
        """Return how often the component of a level is in the expected squares of another one."""
        deeper_level = max(outer, inner)  # an inner unit has all of its members in one outer unit
        outer_unit_sizes = sizes[outer][
            _outer_unit_of_each_unit(levels[outer], levels[deeper_level])
        ]
        return _sum_of_ratios(sizes[deeper_level] ** 2, outer_unit_sizes)

    # From the innermost level outwards: expected squares contain the components of all inner levels.
    solved_components = np.zeros(len(levels))
    for level in reversed(range(1, len(levels))):
        squares_increase = squares[level] - squares[level - 1]
        for inner in range(level + 1, len(levels)):
            squares_increase -= (times(level, inner) - times(level - 1, inner)) * solved_components[
                inner
            ]
        degrees_of_freedom = times(level, level) - times(level - 1, level)
        solved_components[level] = (
            squares_increase / degrees_of_freedom
            if degrees_of_freedom > _ROUNDING_ERROR
            else np.nan
        )
    return np.where(np.abs(solved_components[1:]) <= rounding_tolerance, 0.0, solved_components[1:])


def _sum_of_ratios(numerators: Floats | Ints, denominators: Floats) -> float:
    is_positive_denominator = denominators > 0.0
    return float(
        np.sum(numerators[is_positive_denominator] / denominators[is_positive_denominator])
    )


def _outer_unit_of_each_unit(outer: Ints, level: Ints) -> Ints:
    """Return the outer unit of each unit of a level, [U], from those of the values, [N] each."""
    outer_unit_by_unit = np.zeros(int(level.max()) + 1, dtype=np.intp)
    outer_unit_by_unit[level] = outer
    return outer_unit_by_unit


def _intraclass_correlation(
    raw_variance_components: Floats, jackknife_components: Floats, level: int, size: float
) -> Estimate | None:
    """Return Σ σ²_0..level / σ² with its interval by log F, F = (1 + (size - 1) ρ) / (1 - ρ)."""
    if raw_variance_components.sum() <= 0.0:
        return None
    value = float(raw_variance_components[: level + 1].sum() / raw_variance_components.sum())
    estimate = Estimate(min(1.0, max(0.0, value)), None, None, None, len(jackknife_components))
    components = np.vstack([raw_variance_components, jackknife_components])
    outer_variance = components[:, : level + 1].sum(axis=1)
    inner_variance = components[:, level + 1 :].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log((size * outer_variance + inner_variance) / inner_variance)
        interval = jackknife_interval(float(log_ratios[0]), log_ratios[1:])
    if interval.low is None or interval.high is None or interval.error is None:
        return estimate
    low = _correlation_at_log_ratio(interval.low, size)
    high = _correlation_at_log_ratio(interval.high, size)
    slope = (1.0 - value) * (1.0 + (size - 1.0) * value) / size  # of ρ over log F
    return estimate._replace(low=low, high=high, error=interval.error * slope)


def _correlation_at_log_ratio(log_variance_ratio: float, size: float) -> float:
    """Return ρ, at least 0, at a variance ratio F."""
    f = math.exp(min(log_variance_ratio, _LARGEST_EXPONENT))
    return max(0.0, 1.0 - size / (f + size - 1.0))
