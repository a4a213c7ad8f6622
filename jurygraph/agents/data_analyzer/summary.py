"""The whole stream in one table, in memory that does not grow (Welford 1962)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.agents.data_analyzer.step import Floats
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count, Number


class SeriesSummary(Noun):
    """A series over the steps at which it had a value: how many, mean, sd, extremes, the last value, and the trend.

    `trend` is the slope of a straight line through the values, a step; 0 where there is but one. None where no step
    had a value.
    """

    series: str
    steps: Count
    mean: Number | None
    sd: Number | None
    least: Number | None
    most: Number | None
    last: Number | None
    trend: Number | None


class Summary:
    """Follows S series."""

    def __init__(self, series: int) -> None:
        self._n, self._mean, self._squares = np.zeros(series), np.zeros(series), np.zeros(series)
        self._time, self._times, self._product = np.zeros(series), np.zeros(series), np.zeros(series)
        self._least, self._most = np.full(series, np.inf), np.full(series, -np.inf)
        self._last = np.full(series, np.nan)

    def add(self, step: int, values: Floats) -> None:
        """Take in the values [S] of a step; NaN are passed over."""
        there = ~np.isnan(values)
        known = np.where(there, values, 0.0)
        self._n = self._n + there
        some = np.maximum(self._n, 1.0)
        off, late = np.where(there, known - self._mean, 0.0), np.where(there, step - self._time, 0.0)
        self._mean = self._mean + off / some
        self._time = self._time + late / some
        rest = np.where(there, known - self._mean, 0.0)
        self._squares = self._squares + off * rest
        self._times = self._times + late * np.where(there, step - self._time, 0.0)
        self._product = self._product + late * rest
        self._least, self._most = np.fmin(self._least, values), np.fmax(self._most, values)
        self._last = np.where(there, values, self._last)

    def rows(self, names: Sequence[str]) -> tuple[SeriesSummary, ...]:
        """The table, a row for each series."""
        sd = np.sqrt(self._squares / np.maximum(self._n - 1.0, 1.0))
        trend = self._product / np.where(self._times > 0.0, self._times, 1.0)
        columns = {
            "mean": self._mean,
            "sd": sd,
            "least": self._least,
            "most": self._most,
            "last": self._last,
            "trend": trend,
        }
        return tuple(
            SeriesSummary(
                series=name, steps=int(n), **{key: float(one[place]) if n else None for key, one in columns.items()}
            )
            for place, (name, n) in enumerate(zip(names, self._n, strict=True))
        )
