"""Summary of the whole stream in one table, in constant memory (Welford 1962)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.aggregation.arrays import Floats
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number


class SeriesSummary(FrozenModel):
    """A series over the steps at which it had a value: count, mean, sd, extremes, the last value, and the trend.

    `trend` is the slope of a straight line through the values, per step; 0 for a single value. None if no step had a
    value.
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
    """Running statistics of S series."""

    def __init__(self, series: int) -> None:
        self._n, self._mean, self._squares = np.zeros(series), np.zeros(series), np.zeros(series)
        self._time, self._times, self._product = np.zeros(series), np.zeros(series), np.zeros(series)
        self._least, self._most = np.full(series, np.inf), np.full(series, -np.inf)
        self._last = np.full(series, np.nan)

    def add(self, step: int, values: Floats) -> None:
        """Add the values [S] of a step; NaN are skipped."""
        has_value = ~np.isnan(values)
        value_or_zero = np.where(has_value, values, 0.0)
        self._n = self._n + has_value
        divisor = np.maximum(self._n, 1.0)
        deviation, time_deviation = (
            np.where(has_value, value_or_zero - self._mean, 0.0),
            np.where(has_value, step - self._time, 0.0),
        )
        self._mean = self._mean + deviation / divisor
        self._time = self._time + time_deviation / divisor
        new_deviation = np.where(has_value, value_or_zero - self._mean, 0.0)
        self._squares = self._squares + deviation * new_deviation
        self._times = self._times + time_deviation * np.where(has_value, step - self._time, 0.0)
        self._product = self._product + time_deviation * new_deviation
        self._least, self._most = np.fmin(self._least, values), np.fmax(self._most, values)
        self._last = np.where(has_value, values, self._last)

    def rows(self, names: Sequence[str]) -> tuple[SeriesSummary, ...]:
        """Return the table, one row per series."""
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
                series=name,
                steps=int(n),
                **{key: float(column[index]) if n else None for key, column in columns.items()},
            )
            for index, (name, n) in enumerate(zip(names, self._n, strict=True))
        )
