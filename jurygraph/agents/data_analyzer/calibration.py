"""What is frozen from the first steps: from which D_pair on components conflict, and how rewards were distributed."""

from typing import NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer.scales import LEAST
from jurygraph.agents.data_analyzer.statistics import disagreement
from jurygraph.agents.data_analyzer.step import Floats, Step

PERCENTILE = 80.0
"""Of D_pair: above it components conflict (MACRM, Eqs. 5-6). Where nothing lies above it, its ties do: of components
that have few values the percentile is often the largest there is."""

BINS = 10
MOST_ROWS = 16_384
"""Rows that are kept until all is frozen; of steps that have more, the first."""


class Frame(NamedTuple):
    """`conflict` is the least D_pair of a row in conflict; the rewards' bins end at `edges` [B - 1] and held the
    shares `expected` [B]. None where there was nothing, or but one value, to calibrate by."""

    conflict: float | None
    edges: Floats | None
    expected: Floats | None


class Calibration:
    """Gathers the rows of the first steps, as long as they are needed.

    Args:
        steps: how many steps are gathered before all is frozen.
        opposed: components whose disagreement is conflict.
    """

    def __init__(self, steps: int, opposed: tuple[str, ...]) -> None:
        self.left = steps
        self._most = MOST_ROWS // steps
        self._opposed = opposed
        self._rewards: list[Floats] = []
        self._pairs: list[Floats] = []

    def add(self, step: Step) -> Frame | None:
        """Gather a step; the frame, once there were enough."""
        self._rewards.append(step.rewards[: self._most].copy())
        if self._opposed:
            self._pairs.append(disagreement([step.components[name] for name in self._opposed])[: self._most])
        self.left -= 1
        return None if self.left else frame(self._rewards, self._pairs)


def frame(rewards: list[Floats], pairs: list[Floats]) -> Frame:
    """What is frozen from rewards and D_pair of rows."""
    apart = _numbers(pairs)
    conflict = _above(apart) if apart.size else None
    values = _numbers(rewards)
    edges = _edges(values)
    if edges is None:
        return Frame(conflict, None, None)
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return Frame(conflict, edges, (counts + 0.5) / (counts.sum() + 0.5 * len(counts)))


def _above(apart: Floats) -> float:
    limit = np.percentile(apart, PERCENTILE)
    above = apart[apart > limit + LEAST]
    return float(above.min() if above.size else apart.max())


def _edges(values: Floats) -> Floats | None:
    """Quantiles that are values of the rows themselves: rewards that come often have an end of a bin for themselves."""
    if not values.size:
        return None
    shares = np.arange(1, BINS) / BINS
    edges = np.asarray(np.unique(np.quantile(values, shares, method="inverted_cdf")), dtype=np.float64)
    inner: Floats = edges[edges < values.max()]
    return inner if inner.size else None


def _numbers(rows: list[Floats]) -> Floats:
    values = np.concatenate([one.ravel() for one in rows]) if rows else np.empty(0)
    numbers: Floats = values[~np.isnan(values)]
    return numbers
