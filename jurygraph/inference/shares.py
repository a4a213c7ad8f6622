"""Intervals of proportions: of independent counts, and of counts over tasks whose members belong together."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.inference.clusters import LEVEL, ratio_interval, t_quantile

_Z = 1.959963984540054  # the 0.975 quantile of the standard normal distribution


def wilson(hits: float, n: float, quantile: float = _Z) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson, 1927) of the proportion of `hits` out of `n` > 0, within [0, 1].

    Both may be fractions: shares of a hit, or the effective size of a weighted sample. Unlike the usual normal
    interval, it has a positive width for 0 or `n` hits: 0 of 300 gives 0 to 1.3 %.
    """
    share, z2 = hits / n, quantile * quantile
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half_width = quantile / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return 0.0 if hits == 0 else max(0.0, middle - half_width), 1.0 if hits == n else min(1.0, middle + half_width)


class Share(NamedTuple):
    """A proportion with its 95 % interval, the effective number of independent trials, and the number of clusters.

    The ends are None with one cluster.
    """

    value: float
    low: float | None
    high: float | None
    effective: float
    clusters: int


def share_interval(hits: ArrayLike, sizes: ArrayLike) -> Share | None:
    """Return Σ hits / Σ sizes over G clusters, with Wilson's interval for n_eff trials and t of G - 1 degrees.

    n_eff = p (1 - p) / V with the jackknife variance V, at most Σ sizes (Korn & Graubard 1998). Where every cluster has
    only hits or none has any, V says nothing. Then the interval is the exact one of G trials (Clopper & Pearson 1934):
    all members of G clusters are hits with a probability of at most p^G, however they depend on each other. None if
    no cluster has a size.

    Args:
        hits: number of hits of each cluster, from 0 to its size, [G].
        sizes: number of trials of each cluster, at least 0, [G].

    Raises:
        PlanError: other shapes or values.
    """
    estimate = ratio_interval(hits, sizes)
    if estimate is None:
        return None
    share, clusters = min(1.0, max(0.0, estimate.value)), estimate.clusters
    trials = float(np.sum(sizes))
    if clusters < 2:
        return Share(share, None, None, 1.0, clusters)
    spread = share * (1.0 - share)
    if not spread:
        bound = (0.5 - LEVEL / 2) ** (1.0 / clusters)
        low, high = (bound, 1.0) if share else (0.0, 1.0 - bound)
        return Share(share, low, high, float(clusters), clusters)
    effective = min(trials, spread / estimate.error**2) if estimate.error else trials
    low, high = wilson(share * effective, effective, t_quantile(clusters - 1))
    return Share(share, low, high, effective, clusters)
