"""High-div and Low-div (MACRM, Table 4): the samples that disagree most, by count, against the rest."""

import math
from collections.abc import Sequence

import numpy as np

from jurygraph.aggregation.arrays import Bools, Floats
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
    high_count = min(size - 1, max(1, math.floor(exact_count + 0.5)))
    order = np.argsort(-disagreement, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high_count]] = True
    cut = disagreement[order[high_count - 1]]
    columns = np.column_stack([samples.rewards, samples.values])
    differences = _resampled_differences(columns, chosen, samples.groups, resamples, seed)
    no_ends: list[float | None] = [None] * columns.shape[1]
    ends = np.quantile(differences, QUANTILES, axis=0).tolist() if len(differences) else [no_ends, no_ends]
    names, means = ("reward", *samples.components), (columns[side].mean(axis=0) for side in (chosen, ~chosen))
    return Split(
        high=high_count,
        low=size - high_count,
        cut=float(cut),
        tied_high=int((chosen & (disagreement == cut)).sum()),
        tied_low=int((~chosen & (disagreement == cut)).sum()),
        resamples=resamples,
        empty=resamples - len(differences),
        seed=seed,
        rows=tuple(
            GroupDifference(
                name=name,
                high=float(high),
                low=float(low),
                difference=float(high - low),
                difference_low=difference_low,
                difference_high=difference_high,
            )
            for name, high, low, difference_low, difference_high in zip(names, *means, *ends, strict=True)
        ),
    )


def _resampled_differences(columns: Floats, chosen: Bools, groups: Sequence[str], resamples: int, seed: int) -> Floats:
    """Return the differences of means of columns [R, K], High-div minus Low-div, without resamples of one side only.

    A sample is drawn with its group, or by itself if there is only one group.
    """
    tasks, clusters = np.unique(groups, return_inverse=True)
    if len(tasks) == 1:
        clusters = np.arange(len(groups))
    counted = np.column_stack([columns, np.ones(len(columns))])
    sides = [
        np.column_stack([np.bincount(clusters, column * side) for column in counted.T]) for side in (chosen, ~chosen)
    ]
    differences = []
    for draws in count_draws(int(clusters.max()) + 1, resamples, seed):
        high, low = (draws @ side for side in sides)
        both = (high[:, -1] > 0.0) & (low[:, -1] > 0.0)
        differences.append(high[both, :-1] / high[both, -1:] - low[both, :-1] / low[both, -1:])
    return np.concatenate(differences)
