"""Trends of short series whose steps may depend on each other.

The Mann-Kendall test asks whether later values tend to be larger: S = Σ_{i<j} sign(x_j - x_i), and τ-b is its share of
the pairs. If steps are positively autocorrelated, the variance of S is larger than the test assumes: by the factor

    1 + 2 / (n (n - 1) (n - 2)) · Σ_k (n - k) (n - k - 1) (n - k - 2) r_k

of n steps, r_k the autocorrelations of the ranks without their trend (Hamed & Rao 1998). How r_k is estimated matters
more: see `trend_test`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, as_finite, check_shape

MIN_STEPS = 10
"""The least number of steps whose autocorrelation is estimated."""
MAX_AUTOCORRELATION = 0.98
_Z = 1.959963984540054  # the 0.975 quantile of the standard normal distribution
_DECIMALS = 9  # residuals of a line that differ by less, relative to the spread of the values, tie
_ROUNDING = 1e-6  # relative to it, residuals within less are the rounding of a straight line


class TrendTest(NamedTuple):
    """τ-b, the two-sided p-value, and the factor by which autocorrelation multiplies the variance of S.

    `autocorrelation` is that of one step with the next (lag 1) without the trend; None for fewer than 10 steps, and for
    a straight line.
    """

    kendall: float
    p: float
    factor: float
    autocorrelation: float | None


def lag_one(values: ArrayLike, fitted: int = 1) -> float | None:
    """Return the lag-1 autocorrelation of values [n], corrected for bias and within ±.98.

    The usual r₁ = Σ x_t x_{t+1} / Σ x_t² of deviations is on average about ρ - (f + 4 ρ) / n (Kendall 1954), with f =
    `fitted` parameters of the level: 1 for a mean, 2 for residuals of a line. None for n < 10 or constant values.
    """
    deviations = as_finite("values", values)
    count = len(deviations)
    if count < MIN_STEPS or not np.ptp(deviations):
        return None
    deviations = deviations - deviations.mean()
    r = float(deviations[1:] @ deviations[:-1] / (deviations @ deviations))
    return min(MAX_AUTOCORRELATION, max(-MAX_AUTOCORRELATION, (count * r + fitted) / (count - 4)))


def variance_factor(autocorrelations: ArrayLike) -> float:
    """Return the factor above from the autocorrelations of n steps at lags 1 to n - 1, [n - 1], n > 2."""
    r = as_finite("autocorrelations", autocorrelations)
    n = len(r) + 1
    left = n - np.arange(1.0, n)
    return 1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * math.fsum(left * (left - 1.0) * (left - 2.0) * r)


def trend_test(times: ArrayLike, values: ArrayLike) -> TrendTest | None:
    """Test a trend with the largest of three factors: 1, Hamed and Rao's, and a lag-1 autoregression's, r_k = ρ^k.

    ρ is `lag_one` of the values without their trend (Theil-Sen). Hamed and Rao's alone keeps no level: of series
    without trend, the published test rejects 9 % at .05 even if steps are independent, since chance makes some of many
    sample autocorrelations significant, negative ones too. If the factor is 1, p is that of Kendall's τ-b, exact up to
    33 steps without ties. None for fewer than 2 steps, or constant values.

    Args:
        times: of the steps, increasing, [n].
        values: finite, [n].

    Raises:
        PlanError: other shapes or values.
    """
    from scipy import stats

    numbers = as_finite("times", times)
    column = as_finite("values", values)
    check_shape("values", column, numbers.shape)
    if len(column) < 2 or not np.ptp(column):
        return None
    slope = stats.theilslopes(column, numbers).slope
    residuals = np.round((column - slope * numbers) / np.ptp(column), _DECIMALS)
    if np.ptp(residuals) <= _ROUNDING:
        residuals = np.zeros_like(residuals)
    rho = lag_one(residuals, 2)
    autoregression = 1.0 if rho is None else variance_factor(rho ** np.arange(1.0, len(column)))
    factor = max(1.0, significant_factor(residuals), autoregression)
    plain = stats.kendalltau(numbers, column)
    p = float(plain.pvalue) if factor == 1.0 else _normal_p(column, factor)
    return TrendTest(float(plain.statistic), p, factor, rho)


def significant_factor(residuals: Floats) -> float:
    """Return Hamed and Rao's factor, of the autocorrelations beyond ± 1.96 / √n of the ranks of residuals [n]."""
    from scipy import stats

    ranks = stats.rankdata(residuals)
    deviations = ranks - ranks.mean()
    squares = float(deviations @ deviations)
    if not squares:
        return 1.0
    count = len(ranks)
    r = np.correlate(deviations, deviations, "full")[count:] / squares
    return variance_factor(np.where(np.abs(r) > _Z / math.sqrt(count), r, 0.0))


def _normal_p(values: Floats, factor: float) -> float:
    from scipy import special

    later, earlier = np.tril_indices(len(values), -1)
    score = float(np.sum(np.sign(values[later] - values[earlier])))
    n = len(values)
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18 * factor
    return float(2.0 * special.ndtr(-max(0.0, abs(score) - 1.0) / math.sqrt(variance)))
