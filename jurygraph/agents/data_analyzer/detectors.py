"""Self-starting tests for change (Hawkins 1987), of many series at once, in memory that does not grow.

Each score is compared with the mean and sd of those before it: t has Student's distribution exactly, and is mapped to a
normal score u. Without change the u are independent standard normal, from the first on. With one, the running mean
learns the new level, and u fades: after a shift of δ sd behind n₀ scores, the next, behind n, has the mean δ w,
w = n₀ / √(n (n + 1)). The CUSUMs weigh by that,

    C ← max(0, C + w (±u - k w)),

which is the likelihood ratio of a shift of 2 k sd that began where C last was 0. As long as w = 1 this is the usual
CUSUM, so its run length without change is no shorter; what is learned while C is raised costs no more power than it
must. w is never below ½, so that a CUSUM that rose early comes down again.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jurygraph.agents.data_analyzer.limits import REFERENCES, Limits
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.step import Floats

LEARN = 10
"""Scores of a series before it is tested, at the start and after each alarm."""

FADED = 0.5
_MOST = 8.0
_SIDES = np.array([1.0, -1.0])
_K = np.array(REFERENCES)[:, None]


class Raised(NamedTuple):
    """What the tests of all series said of one step: `drift` [..., S, K, 2], `jump` [..., S, 2], up first.

    `u` [..., S] are the normal scores; `mean` is that of the scores before, `size` how far from it these lie, in sd.
    NaN where a series was not tested.
    """

    drift: NDArray[np.bool_]
    jump: NDArray[np.bool_]
    u: Floats
    mean: Floats
    size: Floats

    @property
    def any(self) -> NDArray[np.bool_]:
        """Which series raised an alarm, [..., S]."""
        return np.asarray(self.drift.any(axis=(-2, -1)) | self.jump.any(axis=-1))


class Baseline(NamedTuple):
    """How many scores were learned, their mean, the sum of their squared deviations, and the mean of their floors.

    Of one series numbers, of many arrays.
    """

    n: Any
    mean: Any
    squares: Any
    floor: Any

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Nothing is learned yet."""
        return cls(*(np.zeros(shape) for _ in range(4)))

    def sd(self, floor: ArrayLike) -> Floats:
        """The sd, not below what one row can change, now or as a rule."""
        own = np.sqrt(self.squares / np.maximum(self.n - 1.0, 1.0))
        return np.asarray(np.maximum(np.maximum(own, self.floor), floor))

    def learned(self, measure: Measure, there: NDArray[np.bool_]) -> "Baseline":
        """With one more score, of those series that have one."""
        n = self.n + there
        some = np.maximum(n, 1.0)
        off = np.where(there, measure.score - self.mean, 0.0)
        mean = self.mean + off / some
        squares = self.squares + off * np.where(there, measure.score - mean, 0.0)
        return Baseline(n, mean, squares, self.floor + np.where(there, measure.floor - self.floor, 0.0) / some)


class Detectors:
    """The tests of S series; with streams before them, of that many streams side by side.

    Args:
        shape: [..., S].
        limits: when a test tells.
    """

    def __init__(self, shape: tuple[int, ...], limits: Limits) -> None:
        self._limits = limits
        self._drift = np.array(limits.drift)[:, None]
        self.baseline = Baseline.empty(shape)
        sides = (*shape, len(REFERENCES), 2)
        self.cusum = np.zeros(sides)
        self.began = Baseline.empty(sides)
        """The baseline when each CUSUM last was 0."""
        self.since = np.zeros(sides)
        """The last step at which it was 0."""

    def feed(self, step: int, measure: Measure) -> Raised:
        """Test the scores [..., S] of a step against those before, and learn them. NaN are passed over."""
        there = ~np.isnan(measure.score)
        tested = there & (self.baseline.n >= LEARN)
        mean = np.where(tested, self.baseline.mean, np.nan)
        off = measure.score - mean
        size = off / self.baseline.sd(np.where(tested, measure.floor, 1.0))
        u = self._normal(size)
        self._follow(step, np.where(tested, u, 0.0), tested)
        far = np.stack([side * u > self._limits.jump for side in _SIDES], axis=-1)
        beyond = np.abs(off) > self._limits.jump * measure.error
        self.baseline = self.baseline.learned(measure, there)
        return Raised(self.cusum > self._drift, far & beyond[..., None], u, mean, size)

    def _normal(self, size: Floats) -> Floats:
        """Normal scores, within ±8, of differences in sd from the mean of those before."""
        n = np.maximum(self.baseline.n, 2.0)
        t = size / np.sqrt(1.0 + 1.0 / n)
        tail = special.ndtri(special.stdtr(n - 1.0, -np.abs(t)))
        return np.asarray(np.sign(t) * np.minimum(-tail, _MOST))

    def _follow(self, step: int, u: Floats, tested: NDArray[np.bool_]) -> None:
        """Take the CUSUMs on by one step."""
        resting = self.cusum <= 0.0
        now = Baseline(*(one[..., None, None] for one in self.baseline))
        self.began = Baseline(*(np.where(resting, a, b) for a, b in zip(now, self.began, strict=True)))
        self.since = np.where(resting, step - 1, self.since)
        n = np.maximum(now.n, 1.0)
        w = np.maximum(self.began.n / np.sqrt(n * (n + 1.0)), FADED)
        grown = np.maximum(self.cusum + w * (_SIDES * u[..., None, None] - _K * w), 0.0)
        self.cusum = np.where(tested[..., None, None], grown, self.cusum)

    def restart(self, series: NDArray[np.bool_]) -> None:
        """Forget what was learned of some series [..., S]: what comes next is their new baseline."""
        self.baseline = Baseline(*(np.where(series, 0.0, one) for one in self.baseline))
        self.cusum = np.where(series[..., None, None], 0.0, self.cusum)
