"""Agreement of annotators beyond chance, and overlap of what two of them rate high.

Cohen's kappa of two annotators, plain and weighted:

    κ = 1 - D_o / D_e        D_o: mean distance of the two labels of an item
                             D_e: the same for two items drawn independently, one for each annotator

Distances [K, K] of labels 0, …, K-1 are 1 for different labels (Cohen 1960), |i - j|, or (i - j)² (Cohen 1968).

Krippendorff's alpha of several raters, on items that not all of them rated: D_o is the mean distance of two ratings of
the same item, D_e that of any two ratings that have a partner. The distance of two levels at positions p is (p - p')².
For `interval` ratings the position is the number itself; for `ordinal` ones it is the number of ratings below, with
half of those at the level (Krippendorff 2011), so it depends on all ratings. For `nominal` ones the distance of
different labels is 1.

The Jaccard similarity of what two raters each rate high is the coarse agreement of "Aggregate vs. Personalized Judges":
who uses a scale differently may select the same.
"""

import math
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, Ints, as_ratings
from jurygraph.inference.clusters import (
    Estimate,
    cluster_numbers,
    divide_or_nan,
    jackknife_interval,
    jackknife_masks,
    mean_with_cluster_interval,
    members_by_cluster,
    pair_numbers,
    t_quantile,
    wilson,
)
from jurygraph.inference.crossed import t_test_p

MeasurementLevel = Literal["nominal", "ordinal", "interval"]
"""What the distance of two ratings means: different or not, the ranks between them, or their difference."""
_CELLS_PER_BATCH = 4_000_000  # limits memory


def label_table(first: Ints, second: Ints, labels: int) -> Ints:
    """Return how many items [N] have label i of the first and j of the second annotator, [K, K]."""
    return np.bincount(first * labels + second, minlength=labels * labels).reshape(labels, labels)


def kappa(table: Ints, label_distances: Floats) -> float:
    """Return κ of a table of counts [K, K]; NaN where all labels are the same, so that chance agrees fully as well.

    The sums are rounded once, so that the bits do not depend on their order.
    """
    observed_disagreement = math.fsum((label_distances * table).ravel()) * int(table.sum())
    # As often as each pair of labels would meet if both annotators drew theirs, [K, K].
    chance_table = np.outer(table.sum(axis=1), table.sum(axis=0))
    chance_disagreement = math.fsum((label_distances * chance_table).ravel())
    return 1.0 - observed_disagreement / chance_disagreement if chance_disagreement else math.nan


def kappa_estimate(
    first: Ints, second: Ints, label_distances: Floats, clusters: Ints
) -> Estimate | None:
    """Return κ with its 95 % interval over clusters, such as tasks whose labels belong together; None where κ is NaN.

    The standard error is the cluster jackknife's. The interval is not κ ± t errors, which is too narrow where few
    labels differ and has no width where none does. It is Wilson's, as of `share_interval`, for the disagreement
    D_o / max d with the effective size that this error implies, divided by D_e / max d; for full agreement, or none,
    that size is the number of clusters, and also where κ is the same without each. The ends are None for one cluster,
    where κ is NaN without one of them, and where an annotator gives one label only, so that κ is 0 whatever the items.

    Args:
        first, second: labels of the two annotators, from 0, [N].
        label_distances: of labels, 0 on the diagonal and above it elsewhere, [K, K].
        clusters: of the items, numbered from 0 without a gap, [N].
    """
    label_counts = label_table(first, second, len(label_distances))
    value = kappa(label_counts, label_distances)
    if math.isnan(value):
        return None
    count = int(clusters.max()) + 1
    estimate_without_interval = Estimate(value, None, None, None, count)
    if count < 2 or not np.ptp(first) or not np.ptp(second):
        return estimate_without_interval
    largest_distance = float(label_distances.max())
    observed_disagreement = float(label_distances[first, second].mean()) / largest_distance
    if value < 1.0:
        chance_disagreement = observed_disagreement / (1.0 - value)
    else:  # of two labels that are drawn independently, one of each annotator
        first_shares = label_counts.sum(axis=1) / len(first)
        second_shares = label_counts.sum(axis=0) / len(first)
        chance_distance = float(first_shares @ label_distances @ second_shares)
        chance_disagreement = chance_distance / largest_distance
    spread = observed_disagreement * (1.0 - observed_disagreement)
    effective_sample_size = float(count)
    error: float | None = 0.0
    if spread:
        jackknife_kappas = _kappas_leaving_out_clusters(first, second, label_distances, clusters)
        error = jackknife_interval(value, jackknife_kappas).error
        if error is None:
            return estimate_without_interval
        if error:
            effective_sample_size = spread / (error * chance_disagreement) ** 2
    # The ends of the disagreement: the more of it, the lower is κ.
    low, high = wilson(
        observed_disagreement * effective_sample_size, effective_sample_size, t_quantile(count - 1)
    )
    lower_end = max(-1.0, 1.0 - high / chance_disagreement)
    upper_end = 1.0 - low / chance_disagreement
    return Estimate(value, lower_end, upper_end, error, count)


def _kappas_leaving_out_clusters(
    first: Ints, second: Ints, label_distances: Floats, clusters: Ints
) -> Floats:
    """Return κ without each cluster, [G], from sums over its items; NaN where the others have one label only."""
    labels = len(label_distances)
    cells = int(clusters.max() + 1) * labels
    # How often each cluster has each label of an annotator, [G, K], then how often the others have it.
    label_counts = []
    for codes in (first, second):
        counts = np.bincount(clusters * labels + codes, minlength=cells).reshape(-1, labels)
        label_counts.append(counts.sum(axis=0) - counts)
    rows, columns = label_counts
    sizes = rows.sum(axis=1)
    # The distances of a cluster's items, [G], then those of the others.
    distance_sums_by_cluster = np.bincount(clusters, label_distances[first, second])
    rest = np.maximum(0.0, math.fsum(distance_sums_by_cluster) - distance_sums_by_cluster)
    observed_disagreement = rest * sizes
    chance_disagreement = np.sum((rows @ label_distances) * columns, axis=1)
    return 1.0 - divide_or_nan(observed_disagreement, chance_disagreement)


def alpha(counts: Floats, positions: Floats, level: MeasurementLevel) -> float:
    """Return α of items with `counts` [N, V] of ratings at each level, [V] positions in ascending order.

    NaN if no item has two ratings, or all ratings that have a partner are the same.
    """
    pairable_counts = counts[counts.sum(axis=1) > 1.0]
    # One cluster, of an item without ratings: nothing is left out.
    omitted_rating_counts = np.zeros((1, counts.shape[1]))
    owner = np.zeros(1, dtype=np.intp)
    (value,) = _batch_alphas_leaving_out_clusters(
        pairable_counts, omitted_rating_counts, owner, positions, level
    )
    return float(value)


def alpha_estimate(
    counts: Floats, positions: Floats, level: MeasurementLevel, clusters: Ints
) -> Estimate | None:
    """Return α with its 95 % jackknife interval over clusters of items, cut off at -1 and 1; None where α is NaN.

    The ends are None where α is NaN without one of the clusters. With fewer than about 30 of them, or a level that
    hardly anybody gives, the interval is too narrow.

    Args:
        counts, positions, level: as for `alpha`.
        clusters: numbers of the items' clusters, [N], such as the tasks that they belong to.
    """
    return estimate_from_alphas(alphas_leaving_out_clusters(counts, positions, level, clusters))


def estimate_from_alphas(alphas: Floats) -> Estimate | None:
    """Return `alpha_estimate` from what `alphas_leaving_out_clusters` returns, or the mean of several, [1 + G]."""
    value = float(alphas[0])
    if math.isnan(value):
        return None
    return jackknife_interval(value, alphas[1:]).within(-1.0, 1.0)


def alphas_leaving_out_clusters(
    counts: Floats, positions: Floats, level: MeasurementLevel, clusters: Ints
) -> Floats:
    """Return α of all items, then that without each cluster of items with two ratings, [1 + G]; NaN where undefined.

    Arguments are those of `alpha_estimate`.
    """
    is_rated_twice = counts.sum(axis=1) > 1.0
    owner = cluster_numbers(clusters[is_rated_twice])
    order = np.argsort(owner, kind="stable")
    pairable_counts = counts[is_rated_twice][order]
    owner = owner[order]
    # A batch has whole clusters: as many as begin within so many items.
    rows = max(1, _CELLS_PER_BATCH // counts.shape[1])
    starts = np.searchsorted(owner, np.unique(owner[::rows]))
    alphas = [np.array([alpha(pairable_counts, positions, level)])]
    for start, end in pairwise([*starts.tolist(), len(owner)]):
        cluster_numbers_in_batch = owner[start:end] - owner[start]  # from 0 in each batch
        alphas.append(
            _batch_alphas_leaving_out_clusters(
                pairable_counts,
                pairable_counts[start:end],
                cluster_numbers_in_batch,
                positions,
                level,
            )
        )
    return np.concatenate(alphas)


def _batch_alphas_leaving_out_clusters(
    pairable_counts: Floats,
    omitted_rating_counts: Floats,
    owner: Ints,
    positions: Floats,
    level: MeasurementLevel,
) -> Floats:
    """Return α of the items `pairable_counts` [N, V] without those of each cluster, [B]; NaN where it is undefined.

    `omitted_rating_counts` [M, V] are the items of these clusters, and `owner` [M] the number of each one's cluster.
    """
    weights = 1.0 / (pairable_counts.sum(axis=1) - 1.0)
    # Coincidences: how often two ratings of an item have these levels, each item counted by its number of ratings.
    coincidences = (pairable_counts * weights[:, None]).T @ pairable_counts - np.diag(
        weights @ pairable_counts
    )
    # Of each cluster, [B, V]; then the ratings of the other clusters, by level and in all.
    omitted_counts_by_cluster = np.zeros((int(owner.max()) + 1, omitted_rating_counts.shape[1]))
    np.add.at(omitted_counts_by_cluster, owner, omitted_rating_counts)
    totals = pairable_counts.sum(axis=0) - omitted_counts_by_cluster
    number = totals.sum(axis=1)
    omitted_pair_weights = 1.0 / np.maximum(omitted_rating_counts.sum(axis=1) - 1.0, 1.0)
    if level == "nominal":
        equal_pair_counts = (omitted_rating_counts * (omitted_rating_counts - 1.0)).sum(axis=1)
        omitted_equal_pair_weight = np.bincount(owner, omitted_pair_weights * equal_pair_counts)
        observed_disagreement = number - (np.trace(coincidences) - omitted_equal_pair_weight)
        chance_disagreement = number * number - (totals * totals).sum(axis=1)
    else:
        ranks = np.cumsum(totals, axis=1) - totals / 2.0
        level_positions = ranks if level == "ordinal" else np.broadcast_to(positions, totals.shape)
        # Centred, so that squares of large numbers lose no digits.
        center = (totals * level_positions).sum(axis=1, keepdims=True) / np.maximum(number, 1.0)[
            :, None
        ]
        level_positions = level_positions - center
        squares = (totals * level_positions * level_positions).sum(axis=1)
        item_level_positions = level_positions[owner]
        products = (omitted_rating_counts * item_level_positions).sum(axis=1) ** 2 - (
            omitted_rating_counts * item_level_positions * item_level_positions
        ).sum(axis=1)
        omitted_pair_products = np.bincount(owner, omitted_pair_weights * products)
        all_pair_products = (level_positions @ coincidences * level_positions).sum(axis=1)
        observed_disagreement = 2.0 * (squares - (all_pair_products - omitted_pair_products))
        chance_disagreement = 2.0 * number * squares
    return 1.0 - divide_or_nan(observed_disagreement * (number - 1.0), chance_disagreement)


def jaccard_above_median(ratings: ArrayLike, least: int = 10) -> Floats:
    """Return the Jaccard similarity of the items that two raters each rated above their own median, [raters, raters].

    A rater's median is that of all own ratings; the items are those that both rated. NaN for a pair with fewer than
    `least` such items, and where neither rated any of them above the own median. Two raters who select by chance do not
    have 0: if each selects half of many items, they have 1/3 (`jaccard_by_chance`).

    Args:
        ratings: [raters, items], with NaN where a rater did not rate an item.
        least: least number of items that both rated.

    Raises:
        PlanError: another shape, or an infinite number.
    """
    _, first, both = _count_selected_items(ratings, least)
    either = first + first.T - both
    return divide_or_nan(both, either)


def jaccard_by_chance(ratings: ArrayLike, least: int = 10) -> Floats:
    """Return the mean of `jaccard_above_median` if each rater selected as many items by chance, [raters, raters]."""
    common, first, _ = _count_selected_items(ratings, least)
    mean_jaccards = np.vectorize(_mean_chance_jaccard, otypes=[np.float64])
    return np.asarray(mean_jaccards(common, np.minimum(first, first.T), np.maximum(first, first.T)))


def jaccard_excess(ratings: ArrayLike, clusters: Ints, least: int = 10) -> Estimate | None:
    """Return the mean over pairs of `jaccard_above_median` less `jaccard_by_chance`, with its 95 % interval.

    The interval is a jackknife over clusters of items, or over a hundred groups of them. None without a pair.

    Args:
        ratings, least: as for `jaccard_above_median`.
        clusters: numbers of the items' clusters, [items].
    """
    table = as_ratings(ratings)
    upper = np.triu_indices(len(table), 1)
    excess_similarity = _jaccard_above_chance(table, least)[upper]
    is_defined_pair = ~np.isnan(excess_similarity)
    if not is_defined_pair.any():
        return None
    jackknife_means = []
    for kept in jackknife_masks(cluster_numbers(clusters)):
        # A pair with just enough items stays: what is left out must change the mean alone.
        jackknife_excess = _jaccard_above_chance(table[:, kept], 1)[upper]
        jackknife_means.append(np.nan_to_num(jackknife_excess[is_defined_pair]).mean())
    value = float(excess_similarity[is_defined_pair].mean())
    return jackknife_interval(value, np.array(jackknife_means)).within(-1.0, 1.0)


def _jaccard_above_chance(table: Floats, least: int) -> Floats:
    return jaccard_above_median(table, least) - jaccard_by_chance(table, least)


def _count_selected_items(ratings: ArrayLike, least: int) -> tuple[Ints, Ints, Ints]:
    """Return, of the items that two raters both rated, how many there are, and how many the first one and both rated
    above their own medians, [raters, raters] each; a pair with fewer than `least` items has none."""
    table = as_ratings(ratings)
    is_rated = ~np.isnan(table)
    # a rater without a rating, whose median is nobody's, selects nothing
    rated_rows = np.where(is_rated.any(axis=1, keepdims=True), table, 0.0)
    is_selected = table > np.nanmedian(rated_rows, axis=1, keepdims=True)
    # as floats: NumPy multiplies matrices of integers one by one
    rated, selected = is_rated.astype(np.float64), is_selected.astype(np.float64)
    counts = np.array([rated @ rated.T, selected @ rated.T, selected @ selected.T])
    common, first, both = np.where(counts[0] >= least, counts, 0.0).astype(np.intp)
    return common, first, both


# A jackknife meets the same sizes again: the cache saves two thirds of the time.
@lru_cache(maxsize=1 << 16)
def _mean_chance_jaccard(items: int, smaller_set_size: int, larger_set_size: int) -> float:
    """Return the mean Jaccard of random selections of these sizes: their overlap is hypergeometric."""
    from scipy import stats  # imported lazily: every `study` command would wait for it

    if not larger_set_size:
        return np.nan
    # Others have a chance below 1e-21 together (Hoeffding 1963); all of them would take seconds for 10,000 items.
    mean_overlap = smaller_set_size * larger_set_size / items
    reach = 5.0 * math.sqrt(smaller_set_size) + 1.0
    overlap = np.arange(smaller_set_size + 1)
    overlap = overlap[np.abs(overlap - mean_overlap) <= reach]
    overlap_probabilities = stats.hypergeom.pmf(overlap, items, larger_set_size, smaller_set_size)
    similarity_by_overlap = overlap / (larger_set_size + smaller_set_size - overlap)
    return float(overlap_probabilities @ similarity_by_overlap)


def rank_correlation(first: Floats, second: Floats, clusters: Ints) -> Estimate | None:
    """Return Spearman's coefficient of numbers [N] with the jackknife interval over clusters [N]; None if undefined.

    Of more than a hundred clusters, the interval is over a hundred groups of them.
    """
    from scipy import stats  # imported lazily: every `study` command would wait for it

    def rank_correlation_of_rows(kept: Bools) -> float:
        if not kept.any():  # without the only cluster
            return math.nan
        ranks = stats.rankdata([first[kept], second[kept]], axis=1)
        if not np.ptp(ranks, axis=1).all():
            return math.nan
        return float(np.corrcoef(ranks)[0, 1])

    value = rank_correlation_of_rows(np.ones(len(clusters), dtype=bool))
    if np.isnan(value):
        return None
    jackknife_values = np.array(list(map(rank_correlation_of_rows, jackknife_masks(clusters))))
    return jackknife_interval(value, jackknife_values).within(-1.0, 1.0)


def mean_without_own_subgroup(values: Floats, pool: Ints, subgroup: Ints) -> Floats:
    """Return the mean of a pool's values without those of one subgroup of it, [n]; NaN where none are left.

    `subgroup` numbers the parts of pools, none in two of them. Values that are NaN do not count.
    """
    has_value = ~np.isnan(values)
    values_or_zero = np.where(has_value, values, 0.0)
    number = np.bincount(pool, has_value)[pool] - np.bincount(subgroup, has_value)[subgroup]
    sums = np.bincount(pool, values_or_zero)[pool] - np.bincount(subgroup, values_or_zero)[subgroup]
    return divide_or_nan(sums, number)


def correlations_with_others(
    rater: Ints, item: Ints, score: Floats, clusters: Ints
) -> list[Estimate | None]:
    """Return the rank correlation of each rater's scores with the mean of the others' scores of the same items.

    All are of single ratings, [n], numbered from 0, whose score may be NaN. A guesser has 0 on average. The interval is
    over clusters of items.
    """
    cell = pair_numbers(rater, item)
    others = mean_without_own_subgroup(score, item, cell)
    correlations = []
    for rows in members_by_cluster(rater):
        shared = rows[~np.isnan(others[rows] + score[rows])]
        numbers = cluster_numbers(clusters[shared])
        correlations.append(rank_correlation(score[shared], others[shared], numbers))
    return correlations


_FALSE_ALARM_RATE = 0.05
"""Chance that a rater has a shift although nobody's scores are shifted."""


def is_surely_nonzero(estimate: Estimate, raters: int) -> bool:
    """Return whether a figure of one of several raters is not 0, by p-values that allow for all (Bonferroni)."""
    p = t_test_p(estimate)
    return p is not None and p < _FALSE_ALARM_RATE / raters


def shifts_from_others(
    rater: Ints, item: Ints, score: Floats, clusters: Ints
) -> list[Estimate | None]:
    """Return how much higher each rater's scores are than the others' mean on the same items, where that is sure.

    Arguments are those of `correlations_with_others`. A single lenient rater makes nobody strict: whoever is not surely
    off, both from the others and from the rater in the middle, has None, by p-values (Student's t over clusters) that
    allow for the number of raters (Bonferroni).
    """
    cell = pair_numbers(rater, item)
    gaps = score - mean_without_own_subgroup(score, item, cell)
    shifts = []
    for rows in members_by_cluster(rater):
        shared = rows[~np.isnan(gaps[rows])]
        shifts.append(mean_with_cluster_interval(gaps[shared], clusters[shared]))
    middle = np.median([shift.value for shift in shifts if shift is not None] or [0.0])
    sure_shifts = []
    for shift in shifts:
        if shift is not None:
            distance = shift.value - middle
            nearest = shift._replace(value=min(distance, shift.value, key=abs))
            if not is_surely_nonzero(nearest, len(shifts)) or distance * shift.value < 0.0:
                shift = None
        sure_shifts.append(shift)
    return sure_shifts
