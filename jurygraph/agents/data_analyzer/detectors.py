"""Self-starting change detection (Hawkins 1987) for many series at once, in constant memory.

Each score is compared with the mean and sd of those before it: t has Student's distribution exactly, and is mapped to a
normal score u. Without a change the u are independent standard normal, from the first on. After a change, the running
mean learns the new level, and u fades: after a shift of δ sd behind n₀ scores, the next one, behind n, has mean δ w,
w = n₀ / √(n (n + 1)). The CUSUMs are weighted accordingly,

    C ← max(0, C + w (±u - k w)),

which is the likelihood ratio of a shift of 2 k sd that began when C was last 0. For w = 1 this is the usual CUSUM, so
the run length without a change is no shorter; learning while C is raised costs no more power than necessary. w is never
below ½, so that a CUSUM that rose early comes down again.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from jurygraph.agents.data_analyzer.limits import REFERENCES, Limits
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.aggregation.arrays import Bools, Floats

LEARNING_SCORES = 10
"""The number of scores of a series before it is tested, at the start and after each alarm."""

MIN_CUSUM_WEIGHT = 0.5
_MAX_SCORE = 8.0
_SIDES = np.array([1.0, -1.0])
_K = np.array(REFERENCES)[:, None]


class TestResults(NamedTuple):
    """The test results of all series at one step: `drift` [..., S, K, 2] and `jump` [..., S, 2], up first.

    `u` [..., S] are the normal scores; `mean` is the mean of earlier scores, `size` the distance from it in sd. NaN for
    series that were not tested.
    """

    drift: Bools
    jump: Bools
    u: Floats
    mean: Floats
    size: Floats

    @property
    def has_alarm(self) -> Bools:
        """Return which series raised an alarm, [..., S]."""
        return np.asarray(self.drift.any(axis=(-2, -1)) | self.jump.any(axis=-1))


class Baseline(NamedTuple):
    """The number of scores learned, their mean, the sum of their squared deviations, and the mean of their floors.

    Numbers for one series, arrays for many.
    """

    n: Any
    mean: Any
    squares: Any
    floor: Any

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Return a baseline that has learned no score."""
        return cls(*(np.zeros(shape) for _ in range(4)))

    def sd(self, floor: ArrayLike) -> Floats:
        """Return the sd, at least the change that one row can cause, now (`floor`) or on average."""
        sample_sd = np.sqrt(self.squares / np.maximum(self.n - 1.0, 1.0))
        return np.asarray(np.maximum(np.maximum(sample_sd, self.floor), floor))

    def learn(self, measure: Measure, has_score: Bools) -> "Baseline":
        """Return the baseline with one more score, for those series that have one."""
        n = self.n + has_score
        divisor = np.maximum(n, 1.0)
        deviation = np.where(has_score, measure.score - self.mean, 0.0)
        mean = self.mean + deviation / divisor
        squares = self.squares + deviation * np.where(has_score, measure.score - mean, 0.0)
        return Baseline(n, mean, squares, self.floor + np.where(has_score, measure.floor - self.floor, 0.0) / divisor)


class Detectors:
    """The tests of S series; leading axes hold that many streams in parallel.

    Args:
        shape: [..., S].
        limits: the alarm limits of the tests.
    """

    def __init__(self, shape: tuple[int, ...], limits: Limits) -> None:
        self._limits = limits
        self._drift = np.array(limits.drift)[:, None]
        self.baseline = Baseline.empty(shape)
        sides = (*shape, len(REFERENCES), 2)
        self.cusum = np.zeros(sides)
        self.baseline_at_zero = Baseline.empty(sides)
        """The baseline when each CUSUM was last 0."""
        self.last_zero_step = np.zeros(sides)
        """The last step at which each CUSUM was 0."""

    def feed(self, step: int, measure: Measure) -> TestResults:
        """Test the scores [..., S] of a step against earlier ones, and learn them. NaN are skipped."""
        has_score = ~np.isnan(measure.score)
        tested = has_score & (self.baseline.n >= LEARNING_SCORES)
        mean = np.where(tested, self.baseline.mean, np.nan)
        deviation = measure.score - mean
        size = deviation / self.baseline.sd(np.where(tested, measure.floor, 1.0))
        u = self._normal_scores(size)
        self._update_cusums(step, np.where(tested, u, 0.0), tested)
        is_far = np.stack([side * u > self._limits.jump for side in _SIDES], axis=-1)
        exceeds_error = np.abs(deviation) > self._limits.jump * measure.error
        self.baseline = self.baseline.learn(measure, has_score)
        return TestResults(self.cusum > self._drift, is_far & exceeds_error[..., None], u, mean, size)

    def _normal_scores(self, size: Floats) -> Floats:
        """Return normal scores, within ±8, of differences in sd from the mean of earlier scores."""
        n = np.maximum(self.baseline.n, 2.0)
        t = size / np.sqrt(1.0 + 1.0 / n)
        tail = special.ndtri(special.stdtr(n - 1.0, -np.abs(t)))
        return np.asarray(np.sign(t) * np.minimum(-tail, _MAX_SCORE))

    def _update_cusums(self, step: int, u: Floats, tested: Bools) -> None:
        """Advance the CUSUMs by one step."""
        is_zero = self.cusum <= 0.0
        now = Baseline(*(statistic[..., None, None] for statistic in self.baseline))
        self.baseline_at_zero = Baseline(
            *(np.where(is_zero, a, b) for a, b in zip(now, self.baseline_at_zero, strict=True))
        )
        self.last_zero_step = np.where(is_zero, step - 1, self.last_zero_step)
        n = np.maximum(now.n, 1.0)
        w = np.maximum(self.baseline_at_zero.n / np.sqrt(n * (n + 1.0)), MIN_CUSUM_WEIGHT)
        grown = np.maximum(self.cusum + w * (_SIDES * u[..., None, None] - _K * w), 0.0)
        self.cusum = np.where(tested[..., None, None], grown, self.cusum)

    def restart(self, series: Bools) -> None:
        """Reset some series [..., S]: their next scores form a new baseline."""
        self.baseline = Baseline(*(np.where(series, 0.0, statistic) for statistic in self.baseline))
        self.cusum = np.where(series[..., None, None], 0.0, self.cusum)
