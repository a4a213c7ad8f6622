"""Intervals of means of numbers with known bounds, such as credits between 0 and 1, that hold for few tasks."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.inference.clusters import Estimate, ratio_interval, t_quantile


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
    error = sqrt(more.error**2 + more_variance)
    half_width = t_quantile(more.clusters - 1) * error
    low = max(least, more.value - half_width)
    high = min(most, more.value + half_width)
    return Estimate(estimate.value, low, high, error, estimate.clusters)
