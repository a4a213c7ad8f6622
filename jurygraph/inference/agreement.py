"""Agreement of two annotators beyond chance: Cohen's kappa, plain and weighted, with its interval.

    κ = 1 - D_o / D_e        D_o: mean distance of the two labels of an item
                             D_e: the same for two items drawn independently, one for each annotator

Distances [K, K] of labels 0, …, K-1 are 1 for different labels (Cohen 1960), |i - j|, or (i - j)² (Cohen 1968).
"""

import math

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.inference.clusters import Estimate, jackknife_interval, t_quantile
from jurygraph.inference.shares import wilson


def label_table(first: Ints, second: Ints, labels: int) -> Ints:
    """Return how many items [N] have label i of the first and j of the second annotator, [K, K]."""
    return np.bincount(first * labels + second, minlength=labels * labels).reshape(labels, labels)


def kappa(table: Ints, distances: Floats) -> float:
    """Return κ of a table of counts [K, K]; NaN where all labels are the same, so that chance agrees fully as well.

    The sums are rounded once, so that the bits do not depend on their order.
    """
    observed = math.fsum((distances * table).ravel()) * int(table.sum())
    by_chance = math.fsum((distances * np.outer(table.sum(axis=1), table.sum(axis=0))).ravel())
    return 1.0 - observed / by_chance if by_chance else math.nan


def kappa_estimate(first: Ints, second: Ints, distances: Floats, clusters: Ints) -> Estimate | None:
    """Return κ with its 95 % interval over clusters, such as tasks whose labels belong together; None where κ is NaN.

    The standard error is the cluster jackknife's. The interval is not κ ± t errors, which is too narrow where few
    labels differ and has no width where none does. It is Wilson's, as of `share_interval`, for the disagreement
    D_o / max d with the effective size that this error implies, divided by D_e / max d; for full agreement, or none,
    that size is the number of clusters, and also where κ is the same without each. The ends are None for one cluster,
    where κ is NaN without one of them, and where an annotator gives one label only, so that κ is 0 whatever the items.

    Args:
        first, second: labels of the two annotators, from 0, [N].
        distances: of labels, 0 on the diagonal and above it elsewhere, [K, K].
        clusters: of the items, numbered from 0 without a gap, [N].
    """
    value = kappa(label_table(first, second, len(distances)), distances)
    if math.isnan(value):
        return None
    count = int(clusters.max()) + 1
    unknown = Estimate(value, None, None, None, count)
    if count < 2 or not np.ptp(first) or not np.ptp(second):
        return unknown
    largest = float(distances.max())
    observed = float(distances[first, second].mean()) / largest
    by_chance = observed / (1.0 - value) if value < 1.0 else _chance(first, second, distances) / largest
    spread = observed * (1.0 - observed)
    effective = float(count)
    error = 0.0
    if spread:
        without = _kappas_without(first, second, distances, clusters)
        if np.isnan(without).any():
            return unknown
        error = jackknife_interval(value, without).error or 0.0
        effective = spread / (error * by_chance) ** 2 if error else effective
    low, high = wilson(observed * effective, effective, t_quantile(count - 1))
    return Estimate(value, max(-1.0, 1.0 - high / by_chance), 1.0 - low / by_chance, error, count)


def _chance(first: Ints, second: Ints, distances: Floats) -> float:
    rows, columns = (np.bincount(each, minlength=len(distances)) / len(each) for each in (first, second))
    return float(rows @ distances @ columns)


def _kappas_without(first: Ints, second: Ints, distances: Floats, clusters: Ints) -> Floats:
    """Return κ without each cluster, [G], from sums over its items; NaN where the others have one label only."""
    labels = len(distances)
    cells = int(clusters.max() + 1) * labels
    own_rows, own_columns = (
        np.bincount(clusters * labels + each, minlength=cells).reshape(-1, labels) for each in (first, second)
    )
    own = np.bincount(clusters, distances[first, second])
    sizes = len(first) - own_rows.sum(axis=1)
    rows = own_rows.sum(axis=0) - own_rows
    columns = own_columns.sum(axis=0) - own_columns
    observed = np.maximum(0.0, math.fsum(own) - own) * sizes
    by_chance = np.sum((rows @ distances) * columns, axis=1)
    return np.asarray(1.0 - np.divide(observed, by_chance, out=np.full(len(own), np.nan), where=by_chance > 0.0))
