"""Recent normal scores of the series, also of those that learn a new baseline and are not tested meanwhile."""

import numpy as np

from jurygraph.agents.data_analyzer.detectors import LEARNING_SCORES, Baseline
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.aggregation.arrays import Bools, Floats

_WEIGHT = 0.25
"""The weight of the last step in the mean of recent scores."""

_MAX_SCORE = 8.0


class Recent:
    """Weighted means of the last normal scores of S series. For a series that is learning: of its distance from the
    mean learned so far, in the sd that it had before."""

    def __init__(self, series: int) -> None:
        self.mean: Floats = np.zeros(series)
        self._sd: Floats = np.full(series, np.nan)

    def add(self, measure: Measure, u: Floats, before: Baseline) -> None:
        """Add the scores [S] of a step, with the baseline before it; u [S] is NaN for series that were not tested."""
        self._sd = np.where(before.n >= LEARNING_SCORES, before.sd(measure.floor), self._sd)
        count = np.where(before.n > 0, before.n, np.nan)
        early = np.clip(
            (measure.score - before.mean) / (self._sd * np.sqrt(1.0 + 1.0 / count)), -_MAX_SCORE, _MAX_SCORE
        )
        score = np.where(np.isnan(u), early, u)
        self.mean = np.where(np.isnan(score), self.mean, self.mean + _WEIGHT * (score - self.mean))

    def forget(self, series: Bools) -> None:
        """Reset some series [S] that change to another scale."""
        self.restart(series)
        self._sd = np.where(series, np.nan, self._sd)

    def restart(self, series: Bools) -> None:
        """Reset the means of some series [S] after an alert; only later steps count."""
        self.mean = np.where(series, 0.0, self.mean)
