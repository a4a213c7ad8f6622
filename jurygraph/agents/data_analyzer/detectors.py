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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from jurygraph.agents.data_analyzer.autocorrelation import LagOne
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.arrays import Bools, Floats

REFERENCES = (0.25, 1.0)
"""Reference values k of the CUSUMs, in sd: tuned to shifts of 2 k, a lasting one of 0.5 sd and a sudden one of 2 sd."""

TESTS = 2 * len(REFERENCES) + 2
"""Number of tests per series: a CUSUM for each reference value, and the jump test, each up and down."""

_TAIL_FACTOR = 1.15
"""The factor on the normal limit of the jump test, since hardly any statistic is normal in the far tail. CUSUMs need
no such factor, since they add scores up."""


class Limits(NamedTuple):
    """The limit of each CUSUM, in sd, in the order of REFERENCES; and that of a single step's normal score."""

    drift: tuple[float, ...]
    jump: float


def run_length(k: float, h: float) -> float:
    """Return the ARL of a one-sided CUSUM of standard normal scores, reference value k > 0, limit h: Siegmund's
    approximation (1985), (exp(2 k b) - 2 k b - 1) / (2 k²), b = h + 1.166, which adds the overshoot at both ends."""
    b = h + 1.166
    return float((np.expm1(2 * k * b) - 2 * k * b) / (2 * k * k))


def limits(arl: float, series: int) -> Limits:
    """Return limits that give all tests of so many series together this ARL, each with an equal share of false alarms.

    Alarms of one test occur at a rate of 1 / ARL, and the rates add up; correlated tests raise fewer alarms. So the
    whole has at least the required ARL.
    """
    arl_per_test = arl * series * TESTS

    def drift_limit(k: float) -> float:
        highest = 10.0 + np.log(arl_per_test) / k
        return float(optimize.brentq(lambda h: np.log(run_length(k, h) / arl_per_test), 0.0, highest))

    return Limits(tuple(map(drift_limit, REFERENCES)), float(-_TAIL_FACTOR * special.ndtri(1.0 / arl_per_test)))


LEARNING_SCORES = 10  # the number of scores of a series before it is tested, at the start and after each alarm

MIN_CUSUM_WEIGHT = 0.5
_MAX_SCORE = 8.0
_SIDES = np.array([1.0, -1.0])
_K = np.array(REFERENCES)[:, None]


class TestResults(NamedTuple):
    """The test results of all series at one step: `drift` [..., S, K, 2] and `jump` [..., S, 2], up first.

    `u` [..., S] are the normal scores; `expected` is the mean of earlier scores; `size` the distance from it in
    sd. NaN for series that were not tested.
    """

    drift: Bools
    jump: Bools
    u: Floats
    expected: Floats
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

    def sd(self, floor: ArrayLike) -> Floats:
        """Return the sd, at least the change that one row can cause, now (`floor`) or on average."""
        sd = np.sqrt(self.squares / np.maximum(self.n - 1.0, 1.0))
        return np.asarray(np.maximum(np.maximum(sd, self.floor), floor))

    def learn(self, measure: Measure, has_score: Bools) -> "Baseline":
        """Return the baseline with one more score, for those series that have one."""
        n = self.n + has_score
        divisor = np.maximum(n, 1.0)
        deviation = np.where(has_score, measure.score - self.mean, 0.0)
        mean = self.mean + deviation / divisor
        squares = self.squares + deviation * np.where(has_score, measure.score - mean, 0.0)
        return Baseline(n, mean, squares, self.floor + np.where(has_score, measure.floor - self.floor, 0.0) / divisor)


class Detectors:
    """The tests of S series, of `shape` [..., S]; leading axes hold that many streams in parallel."""

    def __init__(self, shape: tuple[int, ...], limits: Limits) -> None:
        self._limits = limits
        self.lag_one = LagOne(shape)
        self._drift = np.array(limits.drift)[:, None]
        self.baseline = Baseline(*np.zeros((4, *shape)))
        sides = (*shape, len(REFERENCES), 2)
        self.cusum = np.zeros(sides)
        self.baseline_at_zero = Baseline(*np.zeros((4, *sides)))
        """The baseline when each CUSUM was last 0."""
        self.last_zero_step = np.zeros(sides)
        """The last step at which each CUSUM was 0."""

    def feed(self, step: int, measure: Measure) -> TestResults:
        """Test the scores [..., S] of a step against earlier ones, and learn them. NaN are skipped."""
        has_score = ~np.isnan(measure.score)
        tested = has_score & (self.baseline.n >= LEARNING_SCORES)
        expected = np.where(tested, self.baseline.mean, np.nan)
        deviation = measure.score - expected
        size = deviation / self.baseline.sd(np.where(tested, measure.floor, 1.0))
        u = self._normal_scores(size)
        self._update_cusums(step, np.where(tested, u, 0.0), tested)
        is_far = np.stack([side * u > self._limits.jump for side in _SIDES], axis=-1)
        exceeds_error = np.abs(deviation) > self._limits.jump * measure.error
        self.baseline = self.baseline.learn(measure, has_score)
        self.lag_one.learn(measure.score, has_score)
        return TestResults(self.cusum > self._drift, is_far & exceeds_error[..., None], u, expected, size)

    def _normal_scores(self, size: Floats) -> Floats:
        """Return normal scores, within ±8, of differences in sd from what was expected."""
        freedom = np.maximum(self.baseline.n - 1.0, 1.0)
        t = size / np.sqrt(1.0 + 1.0 / np.maximum(self.baseline.n, 2.0))
        tail = special.ndtri(special.stdtr(freedom, -np.abs(t)))
        return np.asarray(np.sign(t) * np.minimum(-tail, _MAX_SCORE))

    def _update_cusums(self, step: int, u: Floats, tested: Bools) -> None:
        is_zero = self.cusum <= 0.0
        now = Baseline(*(statistic[..., None, None] for statistic in self.baseline))
        pairs = zip(now, self.baseline_at_zero, strict=True)
        self.baseline_at_zero = Baseline(*(np.where(is_zero, current, earlier) for current, earlier in pairs))
        self.last_zero_step = np.where(is_zero, step - 1, self.last_zero_step)
        n = np.maximum(now.n, 1.0)
        w = np.maximum(self.baseline_at_zero.n / np.sqrt(n * (n + 1.0)), MIN_CUSUM_WEIGHT)
        grown = np.maximum(self.cusum + w * (_SIDES * u[..., None, None] - _K * w), 0.0)
        self.cusum = np.where(tested[..., None, None], grown, self.cusum)

    def restart(self, series: Bools) -> None:
        """Reset some series [..., S]: their next scores form a new baseline."""
        self.baseline = Baseline(*(np.where(series, 0.0, statistic) for statistic in self.baseline))
        self.cusum = np.where(series[..., None, None], 0.0, self.cusum)
        self.lag_one.restart(series)


_WEIGHT = 0.25  # of the last step in the mean of recent scores


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
        early = (measure.score - before.mean) / (self._sd * np.sqrt(1.0 + 1.0 / count))
        score = np.where(np.isnan(u), np.clip(early, -_MAX_SCORE, _MAX_SCORE), u)
        self.mean = np.where(np.isnan(score), self.mean, self.mean + _WEIGHT * (score - self.mean))

    def restart(self, series: Bools, forget_scale: bool = False) -> None:
        """Reset the means of some series [S], so that only later steps count; also their sd if their scale changes."""
        self.mean = np.where(series, 0.0, self.mean)
        self._sd = np.where(series & forget_scale, np.nan, self._sd)
