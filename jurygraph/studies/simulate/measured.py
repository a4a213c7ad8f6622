"""Figures of several methods on the same simulated runs, and their differences."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jurygraph.studies.simulate.setting import Floats

_NORMAL = 1.959963984540054


class Gain(NamedTuple):
    """The mean of paired differences, and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """`values` [S,M,F]: of each seed by method and figure, in the order of `methods` and `figures`."""

    methods: tuple[str, ...]
    figures: tuple[str, ...]
    values: Floats

    def mean(self, method: str, figure: str) -> float:
        """Over the seeds."""
        return float(self.of(method, figure).mean())

    def error(self, method: str, figure: str) -> float:
        """The standard error of the mean; at least two seeds are needed."""
        own = self.of(method, figure)
        return float(own.std(ddof=1) / np.sqrt(len(own)))

    def gain(self, method: str, figure: str, over: str) -> Gain:
        """By how much a method's figure is greater than that of another on the same seeds."""
        apart = self.of(method, figure) - self.of(over, figure)
        mean, half = apart.mean(), _NORMAL * apart.std(ddof=1) / np.sqrt(len(apart))
        return Gain(float(mean), float(mean - half), float(mean + half))

    def of(self, method: str, figure: str) -> Floats:
        """By seed, [S]."""
        return np.asarray(self.values[:, self.methods.index(method), self.figures.index(figure)])
