"""Intervals of means and ratios over clusters, such as tasks with all their responses.

The variance is the cluster jackknife, known as CR3 or CV3 (Bell & McCaffrey 2002; MacKinnon, Nielsen & Webb 2023),

    V = (G - 1) / G · Σ_g (θ_(g) - θ)²        θ_(g): the estimate without cluster g

and the interval is θ ± t · √V with G - 1 degrees of freedom. With clusters of one size it is Student's interval of the
cluster means. It makes no assumption on how the members of a cluster depend on each other.

Means of numbers with known bounds have an interval that holds for few tasks, too, and whole clusters can be drawn with
replacement (bootstrap).
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, Ints, as_finite, as_nonnegative, check_shape

LEVEL = 0.95
"""The level of every interval."""
QUANTILES = (0.025, 0.975)
"""The ends of a 95 % percentile interval."""
DRAWS_PER_BATCH = 1_000_000  # limits memory
_ROUNDING = 1e-12


class Estimate(NamedTuple):
    """An estimate with its 95 % interval, standard error, and the number of clusters behind it.

    `low` and `high` are None where the clusters cannot tell: a single one, which has no `error` either, or clusters
    that are all equal, whose `error` is 0. However many agree, they do not show that all others do.
    """

    value: float
    low: float | None
    high: float | None
    error: float | None
    clusters: int

    def within(self, least: float, most: float) -> Self:
        """Return the estimate with the ends of its interval cut off at those of the range that it can have."""
        if self.low is None or self.high is None:
            return self
        return self._replace(low=max(least, self.low), high=min(most, self.high))


def ratio_interval(sums: ArrayLike, sizes: ArrayLike) -> Estimate | None:
    """Return Σ sums / Σ sizes over G clusters with its interval; with counts as sizes, the mean over all members.

    Clusters of size 0 contribute nothing and are not counted. None if all are.

    Args:
        sums: finite numbers, [G].
        sizes: at least 0, [G].

    Raises:
        PlanError: other shapes or values.
    """
    totals = as_finite("sums", sums)
    weights = as_nonnegative("sizes", sizes)
    check_shape("sizes", weights, totals.shape)
    totals = totals[weights > 0.0]
    weights = weights[weights > 0.0]
    if not len(totals):
        return None
    value = math.fsum(totals) / math.fsum(weights)
    if len(totals) == 1:
        return Estimate(value, None, None, None, 1)
    # The estimate without g differs from it by (n_g θ - s_g) / (N - n_g); the difference of sums would cancel digits.
    without = value + (weights * value - totals) / (math.fsum(weights) - weights)
    return jackknife_interval(value, without)


def jackknife_interval(value: float, without: Floats, freedom: int | None = None) -> Estimate:
    """Return the interval of any smooth estimate from the estimates without each cluster, [G].

    Its degrees of `freedom` are fewer than G - 1, the default, if the variance is mostly that of a few clusters.
    Raises PlanError for an estimate that is not finite.
    """
    count = len(without)
    changes = as_finite("without", without) - value
    if count < 2:
        return Estimate(value, None, None, None, count)
    largest = float(np.abs(changes).max())
    if largest <= _ROUNDING * max(1.0, abs(value)):
        return Estimate(value, None, None, 0.0, count)
    error = largest * math.sqrt((count - 1) / count * math.fsum((changes / largest) ** 2))
    half_width = t_quantile(count - 1 if freedom is None else freedom) * error
    return Estimate(value, value - half_width, value + half_width, error, count)


def interval_among(estimate: Estimate, rows: int) -> tuple[float | None, float | None]:
    """Return the ends of an interval that is one of several: all of them hold together with 95 % (Bonferroni).

    `rows` is the number of intervals, at least 1; with 1 it is the estimate's own. None where that has none.
    """
    if estimate.low is None or estimate.error is None:
        return None, None
    half_width = t_quantile(estimate.clusters - 1, 1.0 - (1.0 - LEVEL) / (2 * rows)) * estimate.error
    return estimate.value - half_width, estimate.value + half_width


def means_differ(first: ArrayLike, second: ArrayLike, tests: int = 1) -> bool:
    """Return whether the means of two samples of independent numbers differ by more than chance: pooled t, p < .05.

    With several `tests`, the chance of any false alarm is below .05 (Bonferroni). False where one is empty, or both
    together have fewer than three numbers.
    """
    a = as_finite("first", first)
    b = as_finite("second", second)
    freedom = len(a) + len(b) - 2
    if not len(a) or not len(b) or freedom < 1:
        return False
    variance = (((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / freedom
    error = math.sqrt(variance * (1.0 / len(a) + 1.0 / len(b)))
    quantile = 1.0 - (1.0 - LEVEL) / (2 * tests)
    return bool(abs(a.mean() - b.mean()) > max(_ROUNDING, t_quantile(freedom, quantile) * error))


def t_quantile(freedom: float, probability: float = 0.5 + LEVEL / 2) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy import special

    return float(special.stdtrit(freedom, probability))


def bounded_interval(
    sums: ArrayLike, sizes: ArrayLike, least: float, most: float, more_variance: float = 0.0
) -> Estimate | None:
    """Return Σ sums / Σ sizes over G clusters with an interval within [least, most], the bounds of every member.

    It is the jackknife interval of the G clusters and two imaginary ones of average size: one at each bound, as in
    Agresti and Coull's interval of a proportion (1998). They count for the interval, and not for the estimate. Few
    equal members say little of those not seen: five members at the upper bound of 0 to 1 give .51 to 1. Its exact
    coverage for binary members of clusters of size 1 is at least .93 for every share and 2 to 50 clusters.

    None if no cluster has a size; the ends are None for one cluster, or if the bounds are equal.

    Args:
        sums, sizes: as for `ratio_interval`, [G].
        least, most: the bounds.
        more_variance: variance of the estimate from a source other than the clusters; it is added to theirs.
    """
    estimate = ratio_interval(sums, sizes)
    if estimate is None or estimate.clusters < 2 or least == most:
        return estimate and estimate._replace(low=None, high=None, error=None)
    totals = np.asarray(sums, dtype=np.float64)
    weights = np.asarray(sizes, dtype=np.float64)
    typical = float(weights.sum()) / estimate.clusters
    more = ratio_interval(np.append(totals, [least * typical, most * typical]), np.append(weights, [typical, typical]))
    assert more is not None  # it has the same clusters, and two more
    assert more.error is not None  # two of its clusters differ
    error = math.sqrt(more.error**2 + more_variance)
    half_width = t_quantile(more.clusters - 1) * error
    low = max(least, more.value - half_width)
    high = min(most, more.value + half_width)
    return Estimate(estimate.value, low, high, error, estimate.clusters)


def draw_clusters(clusters: int, resamples: int, seed: int | Sequence[int]) -> Iterator[Ints]:
    """Yield the clusters that each resample draws, [b, clusters] for a batch of resamples, by NumPy's PCG64 of `seed`;
    the size of the batches changes none of them."""
    rng = np.random.default_rng(seed)
    batch = max(1, DRAWS_PER_BATCH // clusters)
    for start in range(0, resamples, batch):
        yield rng.integers(clusters, size=(min(batch, resamples - start), clusters))


def mean_interval(
    sums: Floats, sizes: Ints, resamples: int, seed: int | Sequence[int]
) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % percentile interval of Σ sums / Σ sizes, from the sum and the size of each cluster.

    It is unknown, (None, None), for fewer than two clusters and without resamples.
    """
    if len(sums) < 2 or resamples == 0:
        return None, None
    batches = draw_clusters(len(sums), resamples, seed)
    means = np.concatenate([sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1) for drawn in batches])
    low, high = np.quantile(means, QUANTILES)
    return float(low), float(high)
