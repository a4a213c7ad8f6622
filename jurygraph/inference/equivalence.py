"""Is a difference small enough? Non-inferiority, and the difference that a design can detect."""

from bisect import bisect_left

from jurygraph.inference.clusters import LEVEL, Estimate, t_quantile

POWER = 0.8
ONE_SIDED = (1.0 - LEVEL) / 2
"""The level of a one-sided test, that of one end of an interval."""
_LEAST_P = 1e-12
_MOST_TASKS = 1_000_000


def lowest_value(estimate: Estimate, largest_loss: float, level: float = ONE_SIDED, clusters: int = 0) -> float:
    """Return a lower bound of the true value that also counts losses which the clusters did not show.

        θ - t_(1-α) · √V - (1 - α^(1/G)) · L

    The last term is Clopper and Pearson's (1934) exact bound on the share of clusters of a kind that none of G is,
    times the most that one can lose. Without it, a value with rare or skewed losses looks safe while none was drawn.

    Args:
        estimate: the mean difference θ with its standard error √V, of two clusters or more.
        largest_loss: L, the most that one cluster can lose, at least 0.
        level: α, in (0, 1).
        clusters: G; another number than the estimate's says what as many clusters alike would show.
    """
    count = clusters or estimate.clusters
    error = (estimate.error or 0.0) * (estimate.clusters / count) ** 0.5
    unseen = 1.0 - level ** (1.0 / count)
    return float(estimate.value - t_quantile(count - 1, 1.0 - level) * error - unseen * largest_loss)


def no_worse_p(estimate: Estimate, margin: float, largest_loss: float) -> float | None:
    """Return the one-sided p-value of "the true value is at or below -margin": small means no worse than by `margin`.

    It is the level at which `lowest_value` is -margin. If all clusters are equal, it is exact: the chance that none of
    G shows a loss of which as many exist as make the margin. At least 1e-12. None with a single cluster.
    """
    from scipy import optimize

    if estimate.clusters < 2:
        return None

    def above_margin(level: float) -> float:
        return lowest_value(estimate, largest_loss, level) + margin

    if above_margin(_LEAST_P) > 0.0:
        return _LEAST_P
    if above_margin(1.0 - _LEAST_P) < 0.0:
        return 1.0
    return float(optimize.brentq(above_margin, _LEAST_P, 1.0 - _LEAST_P, xtol=_LEAST_P))


def needed_clusters(estimate: Estimate, margin: float, largest_loss: float) -> int | None:
    """Return the least number of clusters alike with which `lowest_value` would be above -margin; None if none would.

    That is at 1,000,000, or where the value itself is not above -margin.
    """
    counts = range(2, _MOST_TASKS + 1)
    place = bisect_left(counts, True, key=lambda count: lowest_value(estimate, largest_loss, clusters=count) > -margin)
    return counts[place] if place < len(counts) else None


def detectable_difference(estimate: Estimate) -> float | None:
    """Return the smallest true difference that a test at 5 %, two-sided, would find with power 0.8, given this error.

    It is the noncentrality of Student's t with the clusters' degrees of freedom that gives this power, times the error;
    the chance of a significant result of the wrong sign is neglected. None where the estimate has no error, or where
    that is 0.
    """
    from scipy import special

    if not estimate.error:
        return None
    freedom = estimate.clusters - 1
    return float(special.nctdtrinc(freedom, 1.0 - POWER, t_quantile(freedom))) * estimate.error
