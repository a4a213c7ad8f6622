"""High-div and Low-div (MACRM, Table 4): the samples that disagree most, by count, against the rest."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.studies.credit.bootstrap import times
from jurygraph.studies.disagreement.findings import Contrast, Split
from jurygraph.studies.disagreement.samples import Samples

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ENDS = (0.025, 0.975)
_ROUNDING = 9
"""Decimals beyond which a count of samples is rounding's: 10 % of 15 are 1.5, and half up is 2."""


def split(samples: Samples, apart: Floats, percentile: float, resamples: int, seed: int) -> Split:
    """The samples above a `percentile` of D_pair, `apart` [R], by count, against the rest.

    The intervals are 95 % percentile bootstrap intervals of the difference over tasks: a task is drawn with all its
    samples, for the responses to one task are not independent; with one task only, samples are drawn. Each sample stays
    on its side.
    """
    size = len(apart)
    above = round((100.0 - percentile) * size / 100.0, _ROUNDING)
    high = min(size - 1, max(1, math.floor(above + 0.5)))
    order = np.argsort(-apart, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high]] = True
    cut = apart[order[high - 1]]
    columns = np.column_stack([samples.rewards, samples.values])
    ends = _intervals(columns, chosen, _clusters(samples), resamples, seed)
    return Split(
        high=high,
        low=size - high,
        cut=float(cut),
        tied_high=int((chosen & (apart == cut)).sum()),
        tied_low=int((~chosen & (apart == cut)).sum()),
        resamples=resamples,
        empty=ends.empty,
        seed=seed,
        rows=tuple(_rows(samples, columns, chosen, ends)),
    )


class _Ends(NamedTuple):
    """Of each of K differences the interval's ends, None where nothing was drawn; and the draws of one side alone."""

    low: list[float | None]
    high: list[float | None]
    empty: int


def _rows(samples: Samples, columns: Floats, chosen: Bools, ends: _Ends) -> list[Contrast]:
    means = columns[chosen].mean(axis=0), columns[~chosen].mean(axis=0)
    names = ("reward", *samples.components)
    return [
        Contrast(
            name=name,
            high=float(high),
            low=float(low),
            difference=float(high - low),
            difference_low=ends.low[place],
            difference_high=ends.high[place],
        )
        for place, (name, high, low) in enumerate(zip(names, *means, strict=True))
    ]


def _clusters(samples: Samples) -> NDArray[np.int64]:
    """Which cluster each sample is drawn with, [R]: its task, or itself where there is one task."""
    tasks, places = np.unique(samples.groups, return_inverse=True)
    return places.astype(np.int64) if len(tasks) > 1 else np.arange(len(samples.groups))


def _intervals(columns: Floats, chosen: Bools, clusters: NDArray[np.int64], resamples: int, seed: int) -> _Ends:
    """Intervals of K differences of means, High-div less Low-div, over columns [R, K]."""
    held = int(clusters.max()) + 1
    sides = [
        _sums(np.column_stack([columns, np.ones(len(columns))]) * side[:, None], clusters, held)
        for side in (chosen, ~chosen)
    ]
    differences, empty = [], 0
    for drawn in times(held, resamples, seed):
        high, low = (drawn @ side for side in sides)
        both = (high[:, -1] > 0.0) & (low[:, -1] > 0.0)
        empty += int((~both).sum())
        differences.append(high[both, :-1] / high[both, -1:] - low[both, :-1] / low[both, -1:])
    found = np.concatenate(differences)
    if not len(found):
        nothing: list[float | None] = [None] * columns.shape[1]
        return _Ends(nothing, nothing, empty)
    low, high = np.quantile(found, _ENDS, axis=0)
    return _Ends(low.tolist(), high.tolist(), empty)


def _sums(columns: Floats, clusters: NDArray[np.int64], held: int) -> Floats:
    """What the rows of each cluster add up to, [clusters, K]."""
    return np.column_stack([np.bincount(clusters, column, minlength=held) for column in columns.T])
