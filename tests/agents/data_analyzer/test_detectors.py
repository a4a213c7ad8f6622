"""The change detectors, against a scalar implementation of their formulas."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from jurygraph.agents.data_analyzer.detectors import (
    LEARNING_SCORES,
    MIN_CUSUM_WEIGHT,
    REFERENCES,
    Detectors,
    Limits,
    limits,
)
from jurygraph.agents.data_analyzer.scales import Measure

NEVER = Limits((1e9, 1e9), 1e9)
OLD = 1e-9


def measure(scores: np.ndarray, floor: float = OLD, error: float = 0.0) -> Measure:
    scores = np.asarray(scores, dtype=float)
    return Measure(scores, scores, np.full(scores.shape, floor), np.full(scores.shape, error))


class ReferenceDetector:
    """One series: means and variances computed from all its scores, and each CUSUM by itself."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.cusum = {(k, side): 0.0 for k in REFERENCES for side in (1, -1)}
        self.start = dict.fromkeys(self.cusum, 0)

    def feed(self, score: float) -> float:
        n = len(self.scores)
        if n < LEARNING_SCORES:
            self.scores.append(score)
            return math.nan
        t = (score - np.mean(self.scores)) / (np.std(self.scores, ddof=1) * math.sqrt(1 + 1 / n))
        u = float(np.clip(-stats.norm.ppf(stats.t.cdf(-abs(t), n - 1)) * np.sign(t), -8, 8))
        for k, side in self.cusum:
            if self.cusum[k, side] == 0:
                self.start[k, side] = n
            w = max(MIN_CUSUM_WEIGHT, self.start[k, side] / math.sqrt(n * (n + 1)))
            self.cusum[k, side] = max(0.0, self.cusum[k, side] + w * (side * u - k * w))
        self.scores.append(score)
        return u


def test_the_array_form_equals_the_reference() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(5.0, 2.0, (300, 4)) + np.where(np.arange(300)[:, None] > 200, [0, 1, -1, 4], 0)
    tests, references = Detectors((2, 2), NEVER), [ReferenceDetector() for _ in range(4)]
    for step, row in enumerate(scores, start=1):
        raised = tests.feed(step, measure(row.reshape(2, 2)))
        assert_allclose(
            raised.u.ravel(),
            [one.feed(score) for one, score in zip(references, row, strict=True)],
            rtol=1e-7,
            atol=1e-9,
        )
        expected = [[[one.cusum[k, side] for side in (1, -1)] for k in REFERENCES] for one in references]
        assert_allclose(tests.cusum.reshape(4, 2, 2), expected, rtol=1e-7, atol=1e-8)


def test_without_change_normal_scores_are_independent_and_standard_normal_from_the_first() -> None:
    rng = np.random.default_rng(5)
    tests = Detectors((4000, 1), NEVER)
    u = np.stack(
        [tests.feed(step, measure(rng.normal(7, 3, (4000, 1)))).u[:, 0] for step in range(1, LEARNING_SCORES + 6)]
    )
    first = u[LEARNING_SCORES:]
    assert stats.kstest(first.ravel(), "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(first) - np.eye(5)).max() < 0.06


def test_a_series_that_never_varied_does_not_alarm_at_a_change_of_its_floor() -> None:
    tests = Detectors((1,), limits(10_000.0, 12))
    for step in range(1, 101):
        assert not tests.feed(step, measure([1.0], floor=0.01)).has_alarm.any()
    raised = tests.feed(101, measure([1.01], floor=0.01))
    assert not raised.has_alarm.any()
    assert float(raised.size[0]) == pytest.approx(1.0)
    assert tests.feed(102, measure([2.0], floor=0.01)).jump[0, 0]


def test_a_jump_within_the_error_of_its_rows_raises_no_alarm() -> None:
    tests = [Detectors((1,), Limits((1e9, 1e9), 5.0)) for _ in range(2)]
    rng = np.random.default_rng(6)
    for step, score in enumerate(rng.normal(size=60), start=1):
        for one in tests:
            one.feed(step, measure([score]))
    assert tests[0].feed(61, measure([10.0], error=1.0)).jump.any()
    assert not tests[1].feed(61, measure([10.0], error=5.0)).jump.any()


def test_a_cusum_that_rose_early_comes_down_again() -> None:
    """Without the floor of the weights it would keep its level for ever: they would fade away."""
    tests = Detectors((1,), NEVER)
    rng = np.random.default_rng(7)
    for step in range(1, LEARNING_SCORES + 1):
        tests.feed(step, measure([rng.normal()]))
    for step in range(LEARNING_SCORES + 1, LEARNING_SCORES + 6):
        tests.feed(step, measure([tests.baseline.mean[0] + 3.0]))
    assert tests.cusum[0, 0, 0] > 5
    fell = [tests.feed(step, measure([rng.normal(0.5)])) and tests.cusum[0, 0, 0] for step in range(20, 420)]
    assert min(fell) == 0.0
