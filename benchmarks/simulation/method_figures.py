"""Figures of several methods on the same simulated runs, and their differences."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats

_NORMAL = 1.959963984540054


class Gain(NamedTuple):
    """The mean of paired differences, and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class MethodFigures:
    """Figures `values` [S,M,F] by seed, method and figure, in the order of `methods` and `figures`."""

    methods: tuple[str, ...]
    figures: tuple[str, ...]
    values: Floats

    def mean(self, method: str, figure: str) -> float:
        """Return the mean of a figure over the seeds."""
        return float(self.by_seed(method, figure).mean())

    def error(self, method: str, figure: str) -> float:
        """Return the standard error of the mean; needs at least two seeds."""
        values = self.by_seed(method, figure)
        return float(values.std(ddof=1) / np.sqrt(len(values)))

    def gain(self, method: str, figure: str, over: str) -> Gain:
        """Return by how much a method's figure exceeds that of another method on the same seeds."""
        differences = self.by_seed(method, figure) - self.by_seed(over, figure)
        mean = differences.mean()
        half_width = _NORMAL * differences.std(ddof=1) / np.sqrt(len(differences))
        return Gain(float(mean), float(mean - half_width), float(mean + half_width))

    def by_seed(self, method: str, figure: str) -> Floats:
        """Return a figure by seed, [S]."""
        return np.asarray(self.values[:, self.methods.index(method), self.figures.index(figure)])
