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
from scipy import optimize, special

from jurygraph.agents.data_analyzer.series import Measure
from jurygraph.arrays import Bools, Floats

REFERENCES = (0.25, 1.0)
"""Reference values k of the CUSUMs, in sd: tuned to shifts of 2 k, a lasting one of 0.5 sd and a sudden one of 2 sd. A
score that is far enough out exceeds the limit of the second one at once."""
TESTS = 2 * len(REFERENCES)
"""Number of tests per series: a CUSUM for each reference value, up and down."""
LEARNING_SCORES = 10  # the number of scores of a series before it is tested, at the start and after each alarm
MIN_CUSUM_WEIGHT = 0.5
_MAX_SCORE = 8.0
_SIDES = np.array([1.0, -1.0])
_K = np.array(REFERENCES)[:, None]


def run_length(k: float, h: float) -> float:
    """Return the ARL of a one-sided CUSUM of standard normal scores, reference value k > 0, limit h: Siegmund's
    approximation (1985), (exp(2 k b) - 2 k b - 1) / (2 k²), b = h + 1.166, which adds the overshoot at both ends."""
    b = h + 1.166
    return float((np.expm1(2 * k * b) - 2 * k * b) / (2 * k * k))


def limits(arl: float, series: int) -> Floats:
    """Return limits of the CUSUMs [K] that give all tests of so many series together this ARL.

    Each has an equal share of the false alarms. Alarms of one test occur at a rate of 1 / ARL, and the rates add up;
    correlated tests raise fewer alarms. So the whole has at least the required ARL.
    """
    arl_per_test = arl * series * TESTS

    def limit(k: float) -> float:
        highest = 10.0 + np.log(arl_per_test) / k
        return float(optimize.brentq(lambda h: np.log(run_length(k, h) / arl_per_test), 0.0, highest))

    return np.array([limit(k) for k in REFERENCES])


class Baseline(NamedTuple):
    """The number of scores learned, their mean, the sum of their squared deviations, and the mean of their floors.

    Numbers for one series, arrays for many.
    """

    n: Any
    mean: Any
    squares: Any
    floor: Any

    def sd(self, floor: Any = 0.0) -> Any:
        """Return the sd, at least the noise that the rows of a step show, now (`floor`) or on average."""
        sd = np.sqrt(self.squares / np.maximum(self.n - 1.0, 1.0))
        return np.maximum(np.maximum(sd, self.floor), floor)

    def learn(self, measure: Measure) -> "Baseline":
        """Return the baseline with one more score, for those series that have one."""
        has_score = ~np.isnan(measure.score)
        n = self.n + has_score
        divisor = np.maximum(n, 1.0)
        deviation = np.where(has_score, measure.score - self.mean, 0.0)
        mean = self.mean + deviation / divisor
        squares = self.squares + deviation * np.where(has_score, measure.score - mean, 0.0)
        return Baseline(n, mean, squares, self.floor + np.where(has_score, measure.floor - self.floor, 0.0) / divisor)


class Detectors:
    """The tests of S series, of `shape` [..., S]; leading axes hold that many streams in parallel."""

    def __init__(self, shape: tuple[int, ...], limits: Floats) -> None:
        self.limits = limits
        self.baseline = Baseline(*np.zeros((4, *shape)))
        sides = (*shape, len(REFERENCES), 2)
        self.cusum = np.zeros(sides)
        """By reference value and side, up first."""
        self.baseline_at_zero = Baseline(*np.zeros((4, *sides)))
        """The baseline when each CUSUM was last 0."""
        self.last_zero_step = np.zeros(sides)

    def feed(self, step: int, measure: Measure) -> Floats:
        """Test the scores [..., S] of a step against earlier ones, and learn them.

        Return the normal scores [..., S]; NaN where there is no score, or the series is not tested yet.
        """
        tested = ~np.isnan(measure.score) & (self.baseline.n >= LEARNING_SCORES)
        expected = np.where(tested, self.baseline.mean, np.nan)
        u = self._normal_scores((measure.score - expected) / self.baseline.sd(np.where(tested, measure.floor, 1.0)))
        self._update_cusums(step, np.where(tested, u, 0.0), tested)
        self.baseline = self.baseline.learn(measure)
        return u

    @property
    def excess(self) -> Floats:
        """Return each CUSUM as a multiple of its limit, [..., S, K, 2]."""
        return self.cusum / self.limits[:, None]

    @property
    def has_alarm(self) -> Bools:
        """Return which series have a CUSUM above its limit, [..., S]."""
        return np.asarray((self.excess > 1.0).any(axis=(-2, -1)))

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
