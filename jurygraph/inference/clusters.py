"""Intervals of means, ratios and proportions over clusters, such as tasks with all their responses.

The variance is the cluster jackknife, known as CR3 or CV3 (Bell & McCaffrey 2002; MacKinnon, Nielsen & Webb 2023),

    V = (G - 1) / G · Σ_g (θ_(g) - θ)²        θ_(g): the estimate without cluster g

and the interval is θ ± t · √V with G - 1 degrees of freedom. With clusters of one size it is Student's interval of the
cluster means. It makes no assumption on how the members of a cluster depend on each other.

Means of numbers with known bounds have an interval that holds for few tasks, too, and whole clusters can be drawn with
replacement (bootstrap). At the end: is a difference small enough, and which one could be found?
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, Ints, as_finite, as_nonnegative, check_shape
from jurygraph.errors import PlanError

CONFIDENCE_LEVEL = 0.95
"""The level of every interval."""
ONE_SIDED_LEVEL = (1.0 - CONFIDENCE_LEVEL) / 2
"""The level of a one-sided test, that of one end of an interval."""
Bounds = tuple[float | None, float | None]
"""The ends of an interval; None where it cannot be computed."""
INTERVAL_QUANTILES = (0.025, 0.975)
"""The ends of a 95 % percentile interval."""
MIN_TESTED_ITEMS = 6
"""Of fewer, no test can tell: a judge that only guesses is nearer in all of five with a chance of 0.06, 2 · ½⁵."""
DRAWS_PER_BATCH = 1_000_000  # limits memory
_MAX_JACKKNIFE_PARTS = 100
_ROUNDING_ERROR = 1e-12


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

    def within(self, least: float, most: float) -> "Estimate":
        """Return the estimate with its value and the ends of its interval cut off at those of a range."""
        numbers = [end if end is None else min(most, max(least, end)) for end in self[:3]]
        return Estimate._make([*numbers, *self[3:]])


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
    is_nonempty_cluster = weights > 0.0
    totals = totals[is_nonempty_cluster]
    weights = weights[is_nonempty_cluster]
    if not len(totals):
        return None
    size = math.fsum(weights)
    value = math.fsum(totals) / size
    if len(totals) == 1:
        return Estimate(value, None, None, None, 1)
    # The estimate without g differs from it by (n_g θ - s_g) / (N - n_g); the difference of sums would cancel digits.
    changes = (weights * value - totals) / (size - weights)
    # What overflows is no estimate without an interval: that says that all clusters are alike.
    return jackknife_interval(value, as_finite("jackknife_values", value + changes))


def cluster_numbers(clusters: ArrayLike) -> Ints:
    """Return the number of each member's cluster, from 0 in the order of their names, given these names, [N]."""
    return np.unique(clusters, return_inverse=True)[1]


def pair_numbers(first: Ints, second: Ints) -> Ints:
    """Return the number of each pair of numbers, from 0 in the order of the pairs, [N]."""
    return cluster_numbers(first * (second.max(initial=0) + 1) + second)


def divide_or_nan(numerators: Floats | Ints, denominators: Floats | Ints) -> Floats:
    """Return ratios; NaN where the denominator is not above 0."""
    shape = np.broadcast_shapes(numerators.shape, denominators.shape)
    ratios = np.full(shape, np.nan)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios


def members_by_cluster(clusters: Ints) -> list[Ints]:
    """Return the members of each cluster that has some, given the number of each member's cluster, [N]."""
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order])) + 1
    return np.split(order, starts)


def mean_with_cluster_interval(values: ArrayLike, clusters: ArrayLike) -> Estimate | None:
    """Return the mean of values [N] with its interval over clusters, names or numbers [N]; None without a value."""
    codes = cluster_numbers(clusters)
    return ratio_interval(np.bincount(codes, values), np.bincount(codes))


def jackknife_interval(
    value: float, jackknife_values: Floats, clusters: int | None = None
) -> Estimate:
    """Return the interval of any smooth estimate from the estimates without each cluster, [G].

    `clusters` are fewer than G, the default, if the variance is mostly that of a few of them; there is one degree of
    freedom less. There is no interval where the estimate is infinite or unknown, or would be without some cluster.
    """
    count = len(jackknife_values)
    if clusters is None:
        clusters = count
    changes = np.subtract(jackknife_values, value)
    if count < 2 or not np.isfinite(changes).all():
        return Estimate(value, None, None, None, clusters)
    largest_change = float(np.abs(changes).max())
    if largest_change <= _ROUNDING_ERROR * max(1.0, abs(value)):
        return Estimate(value, None, None, 0.0, clusters)
    # Scaled by the largest change, so that no square overflows or vanishes.
    squares = math.fsum((changes / largest_change) ** 2)
    error = largest_change * math.sqrt((count - 1) / count * squares)
    half_width = t_quantile(clusters - 1) * error
    return Estimate(value, value - half_width, value + half_width, error, clusters)


def difference_interval(sums: Floats, counts: Floats) -> Estimate:
    """Return the mean of one side minus that of another, [2,G] each, with its interval over G clusters.

    A cluster may have members of both sides, or of one alone. There is one degree of freedom less than the side with
    the fewer clusters, the `clusters` of the estimate, has; no interval where a cluster has all of a side. Each
    side has a member.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    means = np.array([[math.fsum(side)] for side in sums]) / sizes
    difference = float(means[0, 0] - means[1, 0])
    fewest_cluster_count = int((counts > 0.0).sum(axis=1).min())
    if (counts >= sizes).any():
        return Estimate(difference, None, None, None, fewest_cluster_count)
    first, second = means + (counts * means - sums) / (sizes - counts)
    return jackknife_interval(difference, first - second, fewest_cluster_count)


def jackknife_masks(clusters: Ints) -> Iterator[Bools]:
    """Yield the members [N] without each cluster, or, of more than a hundred, without each of a hundred groups of them.

    `clusters` [N] has the number of each member's cluster, from 0.
    """
    parts = clusters % _MAX_JACKKNIFE_PARTS
    for group in np.unique(parts):
        yield parts != group


def bonferroni_interval(estimate: Estimate, rows: int) -> Bounds:
    """Return the ends of an interval that is one of several: all of them hold together with 95 % (Bonferroni).

    `rows` is the number of intervals, at least 1; with 1 it is the estimate's own. None where that has none.
    """
    if estimate.low is None or estimate.error is None:
        return None, None
    quantile = t_quantile(estimate.clusters - 1, 1.0 - ONE_SIDED_LEVEL / rows)
    half_width = quantile * estimate.error
    return estimate.value - half_width, estimate.value + half_width


def is_mean_difference_significant(first: ArrayLike, second: ArrayLike, tests: int = 1) -> bool:
    """Return whether the means of two samples of independent numbers differ by more than chance: pooled t, p < .05.

    With several `tests`, the chance of any false alarm is below .05 (Bonferroni). False where one is empty, or both
    together have fewer than three numbers.
    """
    a = as_finite("first", first)
    b = as_finite("second", second)
    degrees_of_freedom = len(a) + len(b) - 2
    if not len(a) or not len(b) or degrees_of_freedom < 1:
        return False
    squares = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
    variance = squares / degrees_of_freedom
    error = math.sqrt(variance * (1.0 / len(a) + 1.0 / len(b)))
    quantile = t_quantile(degrees_of_freedom, 1.0 - ONE_SIDED_LEVEL / tests)
    return bool(abs(a.mean() - b.mean()) > max(_ROUNDING_ERROR, quantile * error))


def t_quantile(degrees_of_freedom: float, probability: float = 0.5 + CONFIDENCE_LEVEL / 2) -> float:
    from scipy import special

    return float(special.stdtrit(degrees_of_freedom, probability))


def bounded_interval(
    sums: ArrayLike, sizes: ArrayLike, least: float, most: float, added_variance: float = 0.0
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
        added_variance: variance of the estimate from a source other than the clusters; it is added to theirs.
    """
    estimate = ratio_interval(sums, sizes)
    if estimate is None or estimate.clusters < 2 or least == most:
        return estimate and estimate._replace(low=None, high=None, error=None)
    typical_weight = float(np.sum(sizes)) / estimate.clusters
    totals_with_pseudo_clusters = np.append(sums, [least * typical_weight, most * typical_weight])
    weights_with_pseudo_clusters = np.append(sizes, [typical_weight, typical_weight])
    wider_estimate = ratio_interval(totals_with_pseudo_clusters, weights_with_pseudo_clusters)
    assert wider_estimate is not None  # it has the same clusters, and two more
    assert wider_estimate.error is not None  # two of its clusters differ
    error = math.sqrt(wider_estimate.error**2 + added_variance)
    half_width = t_quantile(wider_estimate.clusters - 1) * error
    low = max(least, wider_estimate.value - half_width)
    high = min(most, wider_estimate.value + half_width)
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
    means = [
        sums[drawn_clusters].sum(axis=1) / sizes[drawn_clusters].sum(axis=1)
        for drawn_clusters in draw_clusters(len(sums), resamples, seed)
    ]
    low, high = np.quantile(np.concatenate(means), INTERVAL_QUANTILES)
    return float(low), float(high)


NORMAL_QUANTILE = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""
_PSEUDO_CLUSTER_COUNT = 0.5
"""Clusters added to estimate n_eff: the least that keeps coverage at .93 (`benchmarks inference`)."""


def wilson(hits: float, n: float, quantile: float = NORMAL_QUANTILE) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson, 1927) of the proportion of `hits` out of `n` > 0, within [0, 1].

    Both may be fractions: shares of a hit, or the effective size of a weighted sample. Unlike the usual normal
    interval, it has a positive width for 0 or `n` hits: 0 of 300 gives 0 to 1.3 %.
    """
    share = hits / n
    z2 = quantile * quantile
    scale_divisor = 1 + z2 / n
    middle = (share + z2 / (2 * n)) / scale_divisor
    spread = share * (1 - share) / n + z2 / (4 * n * n)
    half_width = quantile / scale_divisor * math.sqrt(spread)
    # Set, because rounding would leave them a little off.
    low = 0.0 if hits == 0 else max(0.0, middle - half_width)
    high = 1.0 if hits == n else min(1.0, middle + half_width)
    return low, high


class ProportionEstimate(NamedTuple):
    """A proportion with its 95 % interval, the effective number of independent trials, and the number of clusters.

    The ends are None with one cluster.
    """

    value: float
    low: float | None
    high: float | None
    effective: float
    clusters: int


def share_interval(hits: ArrayLike, sizes: ArrayLike) -> ProportionEstimate | None:
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
    counts = as_nonnegative("hits", hits)
    trials = as_nonnegative("sizes", sizes)
    check_shape("sizes", trials, counts.shape)
    is_cluster_with_trials = trials > 0.0
    if (counts > trials).any() or (is_cluster_with_trials & (trials < 1.0)).any():
        raise PlanError("each cluster needs 0 or at least 1 trials, and no more hits than trials")
    counts = counts[is_cluster_with_trials]
    trials = trials[is_cluster_with_trials]
    return share_of_clustered_trials(counts, trials) if len(trials) else None


def share_with_cluster_interval(hits: ArrayLike, clusters: ArrayLike) -> ProportionEstimate | None:
    """Return the share of hits [N], each from 0 to 1, as `mean_with_cluster_interval` returns a mean."""
    codes = cluster_numbers(clusters)
    return share_interval(np.bincount(codes, hits), np.bincount(codes))


def share_of_clustered_trials(counts: Floats, trials: Floats) -> ProportionEstimate:
    """Return `share_interval` of clusters that all have trials, more than 0 each and more than 1 together.

    They may be fractions, such as weights that add up to the effective number of trials.
    """
    share = min(1.0, math.fsum(counts) / math.fsum(trials))
    clusters = len(trials)
    if clusters == 1:
        return ProportionEstimate(share, None, None, 1.0, 1)
    if share in (0.0, 1.0):
        max_unseen_share = max_unseen_cluster_share(clusters)
        low = 1.0 - max_unseen_share if share else 0.0
        high = 1.0 if share else max_unseen_share
        return ProportionEstimate(share, low, high, float(clusters), clusters)
    effective_trials = _effective_trials(counts, trials)
    low, high = wilson(share * effective_trials, effective_trials, t_quantile(clusters - 1))
    return ProportionEstimate(share, low, high, effective_trials, clusters)


def _effective_trials(hits: Floats, sizes: Floats) -> float:
    """Return n_eff = s² / V, with s² the sample variance of single trials, and V the jackknife variance of their share.

    Both are of the clusters and `_PSEUDO_CLUSTER_COUNT` more: half of only hits, half of none. Without them a few equal
    clusters, or a few rare hits that happen to be spread evenly, would seem to be independent trials.
    """
    mean = sizes.mean()
    n = np.append(sizes, [mean, mean])
    s = np.append(hits, [mean, 0.0])
    weights = np.append(np.ones(len(sizes)), [_PSEUDO_CLUSTER_COUNT / 2, _PSEUDO_CLUSTER_COUNT / 2])
    trials = float(weights @ n)
    clusters = len(sizes) + _PSEUDO_CLUSTER_COUNT
    share = float(weights @ s) / trials
    changes = (n * share - s) / (trials - n)  # of the share, without each cluster
    variance = (clusters - 1) / clusters * float(weights @ changes**2)
    trial_variance = trials / (trials - 1) * share * (1 - share)
    return min(math.fsum(sizes), trial_variance / variance)


TEST_POWER = 0.8
"""The chance to find what a plan says would be found."""
POWER_QUANTILE = 0.8416212335729143  # of the normal distribution
_MIN_PLANNED_TASKS = 10
"""With as many clusters, the estimated error is off by a quarter; with five, by more than a third."""
_MIN_P_VALUE = 1e-12
_MAX_PLANNED_CLUSTERS = 1_000_000


def max_unseen_cluster_share(clusters: int, level: float = ONE_SIDED_LEVEL) -> float:
    """Return how many of all clusters, as a share, may be of a kind that none of so many is (Clopper & Pearson 1934).

    It is the exact upper bound at the one-sided `level`.
    """
    return float(1.0 - level ** (1.0 / clusters))


def lower_bound(
    estimate: Estimate,
    largest_loss: float,
    level: float = ONE_SIDED_LEVEL,
    clusters: int = 0,
    power_quantile: float = 0.0,
) -> float:
    """Return a lower bound of the true value that also counts losses which the clusters did not show.

        θ - t_(1-α) · √V - (1 - α^(1/G)) · L

    The last term is Clopper and Pearson's (1934) exact bound on the share of clusters of a kind that none of G is,
    times the most that one can lose. Without it, a value with rare or skewed losses looks safe while none was drawn.

    Args:
        estimate: the mean difference θ with its standard error √V, of two clusters or more.
        largest_loss: L, the most that one cluster can lose, at least 0.
        level: α, in (0, 1).
        clusters: G; another number than the estimate's says what as many clusters alike would show.
        power_quantile: by how many errors the bound is to be lower, as that of an unlucky study is.
    """
    count = clusters or estimate.clusters
    error = (estimate.error or 0.0) * (estimate.clusters / count) ** 0.5
    max_unseen_share = max_unseen_cluster_share(count, level)
    half_width = (t_quantile(count - 1, 1.0 - level) + power_quantile) * error
    return float(estimate.value - half_width - max_unseen_share * largest_loss)


def no_worse_p_value(estimate: Estimate, margin: float, largest_loss: float) -> float:
    """Return the one-sided p-value of "the true value is at or below -margin": small means no worse than by `margin`.

    It is the level at which `lower_bound` is -margin. If all clusters are equal, it is exact: the chance that none of
    G shows a loss of which as many exist as make the margin. At least 1e-12. Of two clusters or more.
    """
    from scipy import optimize

    def lower_bound_excess(level: float) -> float:
        return lower_bound(estimate, largest_loss, level) + margin

    if lower_bound_excess(_MIN_P_VALUE) > 0.0:
        return _MIN_P_VALUE
    if lower_bound_excess(1.0 - _MIN_P_VALUE) < 0.0:
        return 1.0
    return float(
        optimize.brentq(lower_bound_excess, _MIN_P_VALUE, 1.0 - _MIN_P_VALUE, xtol=_MIN_P_VALUE)
    )


def needed_cluster_count(estimate: Estimate, margin: float, largest_loss: float) -> int | None:
    """Return the least number of clusters alike with which `lower_bound` would be above -margin with power 0.8.

    None if none would: not even 1,000,000, or where the value itself is not above -margin.
    """

    def is_enough(clusters: int) -> bool:
        return -margin < lower_bound(
            estimate, largest_loss, clusters=clusters, power_quantile=POWER_QUANTILE
        )

    return find_least_count(is_enough, _MAX_PLANNED_CLUSTERS)


def find_least_count(is_enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least number from 2 on that is enough, as all greater ones are; None if `most` is not.

    By bisection below the first such power of 2: great numbers may take long to try.
    """
    high = 2
    while not is_enough(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    return bisect_left(range(high), True, high // 2 + 1, key=is_enough)


def detectable_difference(estimate: Estimate) -> float | None:
    """Return the smallest true difference that a test at 5 %, two-sided, would find with power 0.8, given this error.

    None where the estimate has no error, or where that is 0, and for fewer than ten clusters: their error is too rough
    to plan with.
    """
    if not estimate.error or estimate.clusters < _MIN_PLANNED_TASKS:
        return None
    return _detectable_error_multiple(estimate.clusters) * estimate.error


def needed_count_for_difference(
    difference: float, half_width: float, count: int, most: int, tests: int = 1
) -> int | None:
    """Return how many like those of a t interval would find a true difference with power 0.8; None if `most` would not.

    The standard error of so many is that of the interval, over `count`, times √(count / number). The interval is one of
    as many as there are `tests`, which hold together (Bonferroni).
    """
    probability = 1.0 - ONE_SIDED_LEVEL / tests
    error_of_one = half_width / t_quantile(count - 1, probability) * math.sqrt(count)
    return find_least_count(
        lambda number: (
            _detectable_error_multiple(number, probability) * error_of_one
            <= difference * math.sqrt(number)
        ),
        most,
    )


def needed_count_without_misses(difference: float, gap: float, count: int, most: int) -> int | None:
    """Return how many, all hits, bring the end of Wilson's interval within a difference of its value; None if `most`
    would not.

    `gap` is how far the end is with `count`, all hits, in the unit of the difference: κ is not in shares.
    """
    end = difference / gap * wilson(0.0, count, t_quantile(count - 1))[1]
    return find_least_count(
        lambda number: wilson(0.0, number, t_quantile(number - 1))[1] <= end, most
    )


def _detectable_error_multiple(
    count: int, probability: float = 0.5 + CONFIDENCE_LEVEL / 2
) -> float:
    """Return the least true difference that is found with power 0.8, in standard errors of so many clusters.

    What is found exceeds the quantile of this probability.

    It is the noncentrality of Student's t with the clusters' degrees of freedom that gives this power; the chance of a
    significant result of the wrong sign is neglected.
    """
    from scipy import special

    return float(special.nctdtrinc(count - 1, 1.0 - TEST_POWER, t_quantile(count - 1, probability)))
