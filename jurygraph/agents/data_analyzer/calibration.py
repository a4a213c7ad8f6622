"""Values frozen from the first steps: the D_pair from which components conflict, and the distribution of rewards."""

from typing import NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer.scales import MIN_RELATIVE_SD
from jurygraph.agents.data_analyzer.statistics import disagreement
from jurygraph.agents.data_analyzer.step import Step
from jurygraph.aggregation.arrays import Floats

PERCENTILE = 80.0
"""Percentile of D_pair above which components conflict (MACRM, Eqs. 5-6). If no value lies above it, its ties count:
for components with few values the percentile is often the maximum."""

BINS = 10
MAX_ROWS = 16_384
"""The largest number of rows kept until the calibration is complete; of larger steps, the first rows."""


class Frame(NamedTuple):
    """The result of the calibration.

    `conflict` is the least D_pair of a row in conflict; the rewards' bins end at `edges` [B - 1] and held the shares
    `expected` [B]. None if there was no value, or only a single one, to calibrate with.
    """

    conflict: float | None
    edges: Floats | None
    expected: Floats | None


class Calibration:
    """Collect the rows of the first steps until the calibration is complete.

    Args:
        steps: the number of steps to collect.
        opposed: components whose disagreement is conflict.
    """

    def __init__(self, steps: int, opposed: tuple[str, ...]) -> None:
        self.left = steps
        self._max_rows = MAX_ROWS // steps
        self._opposed = opposed
        self._rewards: list[Floats] = []
        self._pairs: list[Floats] = []

    def add(self, step: Step) -> Frame | None:
        """Add a step; return the frame after the last one, None before."""
        self._rewards.append(step.rewards[: self._max_rows].copy())
        if self._opposed:
            self._pairs.append(disagreement([step.components[name] for name in self._opposed])[: self._max_rows])
        self.left -= 1
        return None if self.left else frame(self._rewards, self._pairs)


def frame(rewards: list[Floats], pairs: list[Floats]) -> Frame:
    """Compute the frame from the rewards and D_pair of rows."""
    pairwise = _join_numbers(pairs)
    conflict = _conflict_threshold(pairwise) if pairwise.size else None
    values = _join_numbers(rewards)
    edges = _edges(values)
    if edges is None:
        return Frame(conflict, None, None)
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return Frame(conflict, edges, (counts + 0.5) / (counts.sum() + 0.5 * len(counts)))


def _conflict_threshold(pairwise: Floats) -> float:
    limit = np.percentile(pairwise, PERCENTILE)
    above = pairwise[pairwise > limit + MIN_RELATIVE_SD]
    return float(above.min() if above.size else pairwise.max())


def _edges(values: Floats) -> Floats | None:
    """Return quantiles that are values of the rows themselves, so that frequent rewards get a bin edge of their own."""
    if not values.size:
        return None
    shares = np.arange(1, BINS) / BINS
    edges = np.asarray(np.unique(np.quantile(values, shares, method="inverted_cdf")), dtype=np.float64)
    inner: Floats = edges[edges < values.max()]
    return inner if inner.size else None


def _join_numbers(rows: list[Floats]) -> Floats:
    values = np.concatenate([array.ravel() for array in rows]) if rows else np.empty(0)
    numbers: Floats = values[~np.isnan(values)]
    return numbers
