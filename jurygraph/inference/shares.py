"""Intervals of proportions: of independent counts, and of counts over tasks whose members belong together."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, as_nonnegative, check_shape
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import LEVEL, t_quantile

_Z = 1.959963984540054  # the 0.975 quantile of the standard normal distribution
_ADDED = 0.5
"""Clusters added to estimate n_eff: the least that keeps coverage at .93 (`benchmarks inference`)."""


def wilson(hits: float, n: float, quantile: float = _Z) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson, 1927) of the proportion of `hits` out of `n` > 0, within [0, 1].

    Both may be fractions: shares of a hit, or the effective size of a weighted sample. Unlike the usual normal
    interval, it has a positive width for 0 or `n` hits: 0 of 300 gives 0 to 1.3 %.
    """
    share = hits / n
    z2 = quantile * quantile
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

    n_eff is at most Σ sizes (Korn & Graubard 1998); with one trial in each cluster, it is G. Where every cluster has
    only hits or none has any, the interval is the exact one of G trials (Clopper & Pearson 1934): all members of G
    clusters are hits with a probability of at most p^G, however they depend on each other. None if no cluster has a
    size.

    Args:
        hits: number of hits of each cluster, from 0 to its size, [G].
        sizes: number of trials of each cluster, 0 or at least 1, [G].

    Raises:
        PlanError: other shapes or values.
    """
    found = as_nonnegative("hits", hits)
    trials = as_nonnegative("sizes", sizes)
    check_shape("sizes", trials, found.shape)
    if (found > trials).any() or ((trials > 0.0) & (trials < 1.0)).any():
        raise PlanError("each cluster needs 0 or at least 1 trials, and no more hits than trials")
    found = found[trials > 0.0]
    trials = trials[trials > 0.0]
    if not len(trials):
        return None
    share = min(1.0, math.fsum(found) / math.fsum(trials))
    clusters = len(trials)
    if clusters == 1:
        return Share(share, None, None, 1.0, 1)
    if share in (0.0, 1.0):
        bound = (0.5 - LEVEL / 2) ** (1.0 / clusters)
        low, high = (bound, 1.0) if share else (0.0, 1.0 - bound)
        return Share(share, low, high, float(clusters), clusters)
    effective = _effective_trials(found, trials)
    low, high = wilson(share * effective, effective, t_quantile(clusters - 1))
    return Share(share, low, high, effective, clusters)


def _effective_trials(hits: Floats, sizes: Floats) -> float:
    """Return n_eff = s² / V, with s² the sample variance of single trials, and V the jackknife variance of their share.

    Both are of the clusters and `_ADDED` more: half of only hits, half of none. Without them a few equal clusters, or
    a few rare hits that happen to be spread evenly, would seem to be independent trials.
    """
    mean = sizes.mean()
    n = np.append(sizes, [mean, mean])
    s = np.append(hits, [mean, 0.0])
    weights = np.append(np.ones(len(sizes)), [_ADDED / 2, _ADDED / 2])
    trials = float(weights @ n)
    clusters = len(sizes) + _ADDED
    share = float(weights @ s) / trials
    variance = (clusters - 1) / clusters * float(weights @ ((n * share - s) / (trials - n)) ** 2)
    return min(math.fsum(sizes), trials / (trials - 1) * share * (1 - share) / variance)
