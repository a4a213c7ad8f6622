"""High-div and Low-div (MACRM, Table 4): the samples that disagree most, by count, against the rest."""

import math
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.arrays import Bools, Floats, Ints
from jurygraph.aggregation.bootstrap import QUANTILES, count_draws
from jurygraph.studies.disagreement.models import GroupDifference, Split
from jurygraph.studies.disagreement.samples import Samples

_ROUNDING = 9
"""Counts of samples are rounded to this number of decimals first: 10 % of 15 is 1.5, and half up is 2."""


def split(samples: Samples, disagreement: Floats, percentile: float, resamples: int, seed: int) -> Split:
    """Compare the samples above a `percentile` of D_pair, `disagreement` [R], by count, with the rest.

    The intervals are 95 % percentile bootstrap intervals of the difference over tasks: a task is drawn with all its
    samples, because responses to one task are not independent; with one task only, samples are drawn. Each sample stays
    on its side.
    """
    size = len(disagreement)
    exact_count = round((100.0 - percentile) * size / 100.0, _ROUNDING)
    high = min(size - 1, max(1, math.floor(exact_count + 0.5)))
    order = np.argsort(-disagreement, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high]] = True
    threshold = disagreement[order[high - 1]]
    columns = np.column_stack([samples.rewards, samples.values])
    intervals = _intervals(columns, chosen, _clusters(samples), resamples, seed)
    return Split(
        high=high,
        low=size - high,
        cut=float(threshold),
        tied_high=int((chosen & (disagreement == threshold)).sum()),
        tied_low=int((~chosen & (disagreement == threshold)).sum()),
        resamples=resamples,
        empty=intervals.empty,
        seed=seed,
        rows=tuple(_contrasts(samples, columns, chosen, intervals)),
    )


class _Intervals(NamedTuple):
    """Ends of the intervals of K differences, None without resamples, and the number of resamples of one side only."""

    low: list[float | None]
    high: list[float | None]
    empty: int


def _contrasts(samples: Samples, columns: Floats, chosen: Bools, intervals: _Intervals) -> list[GroupDifference]:
    means = columns[chosen].mean(axis=0), columns[~chosen].mean(axis=0)
    names = ("reward", *samples.components)
    return [
        GroupDifference(
            name=name,
            high=float(high),
            low=float(low),
            difference=float(high - low),
            difference_low=intervals.low[index],
            difference_high=intervals.high[index],
        )
        for index, (name, high, low) in enumerate(zip(names, *means, strict=True))
    ]


def _clusters(samples: Samples) -> Ints:
    """Return the cluster with which each sample is drawn, [R]: its task, or itself if there is only one task."""
    tasks, clusters = np.unique(samples.groups, return_inverse=True)
    return clusters.astype(np.int64) if len(tasks) > 1 else np.arange(len(samples.groups))


def _intervals(columns: Floats, chosen: Bools, clusters: Ints, resamples: int, seed: int) -> _Intervals:
    """Return intervals of K differences of means, High-div minus Low-div, over columns [R, K]."""
    cluster_count = int(clusters.max()) + 1
    sides = [
        _sum_by_cluster(np.column_stack([columns, np.ones(len(columns))]) * side[:, None], clusters, cluster_count)
        for side in (chosen, ~chosen)
    ]
    differences, empty = [], 0
    for draws in count_draws(cluster_count, resamples, seed):
        high, low = (draws @ side for side in sides)
        both = (high[:, -1] > 0.0) & (low[:, -1] > 0.0)
        empty += int((~both).sum())
        differences.append(high[both, :-1] / high[both, -1:] - low[both, :-1] / low[both, -1:])
    resampled = np.concatenate(differences)
    if not len(resampled):
        missing: list[float | None] = [None] * columns.shape[1]
        return _Intervals(missing, missing, empty)
    low, high = np.quantile(resampled, QUANTILES, axis=0)
    return _Intervals(low.tolist(), high.tolist(), empty)


def _sum_by_cluster(columns: Floats, clusters: Ints, cluster_count: int) -> Floats:
    """Return the sums over the rows of each cluster, [clusters, K]."""
    return np.column_stack([np.bincount(clusters, column, minlength=cluster_count) for column in columns.T])
