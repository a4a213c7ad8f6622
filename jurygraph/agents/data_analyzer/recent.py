"""What the series lately did, also those that learn a new baseline and are not tested meanwhile."""

import numpy as np
from numpy.typing import NDArray

from jurygraph.agents.data_analyzer.detectors import LEARN, Baseline
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.step import Floats

_WEIGHT = 0.25
"""Of the last step in the mean of recent scores."""

_MOST = 8.0


class Recent:
    """Weighted means of the last normal scores of S series; of one that learns, of how far it lies from what it has
    learned so far, in the sd that it had before."""

    def __init__(self, series: int) -> None:
        self.mean: Floats = np.zeros(series)
        self._sd: Floats = np.full(series, np.nan)

    def add(self, measure: Measure, u: Floats, before: Baseline) -> None:
        """Take in the scores [S] of a step, with the baseline before it; u [S] is NaN where none was tested."""
        self._sd = np.where(before.n >= LEARN, before.sd(measure.floor), self._sd)
        known = np.where(before.n > 0, before.n, np.nan)
        early = np.clip((measure.score - before.mean) / (self._sd * np.sqrt(1.0 + 1.0 / known)), -_MOST, _MOST)
        score = np.where(np.isnan(u), early, u)
        self.mean = np.where(np.isnan(score), self.mean, self.mean + _WEIGHT * (score - self.mean))

    def forget(self, series: NDArray[np.bool_]) -> None:
        """Some series [S] are tested on another scale from now on."""
        self.restart(series)
        self._sd = np.where(series, np.nan, self._sd)

    def restart(self, series: NDArray[np.bool_]) -> None:
        """What some series [S] did is told; from now on it is what they do next that counts."""
        self.mean = np.where(series, 0.0, self.mean)
