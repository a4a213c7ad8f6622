"""The change detectors, against a scalar implementation of their formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from jurygraph.agents.data_analyzer import (
    CUSUM_REFERENCES,
    MIN_CUSUM_WEIGHT,
    MIN_SCORES_BEFORE_TESTS,
    TESTS_PER_SERIES,
    DriftTests,
    SeriesMeasure,
    average_run_length,
    compute_cusum_limits,
)

NEVER = np.array([1e9, 1e9])


def measure(scores: object, floor: float = 1e-9) -> SeriesMeasure:
    scores = np.asarray(scores, dtype=float)
    return SeriesMeasure(scores, scores, np.full(scores.shape, floor))


class ReferenceDetector:
    """One series: means and variances computed from all its scores, and each CUSUM by itself."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.cusum = {(k, side): 0.0 for k in CUSUM_REFERENCES for side in (1, -1)}
        self.start = dict.fromkeys(self.cusum, 0)

    def feed(self, score: float) -> float:
        n = len(self.scores)
        if n < MIN_SCORES_BEFORE_TESTS:
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
    scores = rng.normal(5.0, 2.0, (300, 4)) + np.where(
        np.arange(300)[:, None] > 200, [0, 1, -1, 4], 0
    )
    tests, references = DriftTests((2, 2), NEVER), [ReferenceDetector() for _ in range(4)]
    for step, row in enumerate(scores, start=1):
        u = tests.test_step_scores(step, measure(row.reshape(2, 2)))
        reference = [one.feed(score) for one, score in zip(references, row, strict=True)]
        assert_allclose(u.ravel(), reference, rtol=1e-7, atol=1e-9)
        expected = [
            [[one.cusum[k, side] for side in (1, -1)] for k in CUSUM_REFERENCES]
            for one in references
        ]
        assert_allclose(tests.cusum.reshape(4, 2, 2), expected, rtol=1e-7, atol=1e-8)


def test_without_change_normal_scores_are_independent_and_standard_normal_from_the_first() -> None:
    rng = np.random.default_rng(5)
    tests = DriftTests((4000, 1), NEVER)
    steps = range(1, MIN_SCORES_BEFORE_TESTS + 6)
    u = np.stack(
        [tests.test_step_scores(step, measure(rng.normal(7, 3, (4000, 1))))[:, 0] for step in steps]
    )
    first = u[MIN_SCORES_BEFORE_TESTS:]
    assert stats.kstest(first.ravel(), "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(first) - np.eye(5)).max() < 0.06


def test_a_series_that_never_varied_does_not_alarm_at_a_change_of_its_floor() -> None:
    tests = DriftTests((1,), compute_cusum_limits(10_000.0, 12))
    for step in range(1, 101):
        tests.test_step_scores(step, measure([1.0], floor=0.01))
        assert not tests.has_alarm.any()
    tests.test_step_scores(101, measure([1.01], floor=0.01))
    assert not tests.has_alarm.any()
    tests.test_step_scores(102, measure([2.0], floor=0.01))
    assert tests.has_alarm[0], "a single score that is far enough out is enough"


def test_a_cusum_that_rose_early_comes_down_again() -> None:
    """Without the floor of the weights it would keep its level for ever: they would fade away."""
    tests = DriftTests((1,), NEVER)
    rng = np.random.default_rng(7)
    for step in range(1, MIN_SCORES_BEFORE_TESTS + 1):
        tests.test_step_scores(step, measure([rng.normal()]))
    for step in range(MIN_SCORES_BEFORE_TESTS + 1, MIN_SCORES_BEFORE_TESTS + 6):
        tests.test_step_scores(step, measure([tests.baseline.mean[0] + 3.0]))
    assert tests.cusum[0, 0, 0] > 5
    fell = []
    for step in range(20, 420):
        tests.test_step_scores(step, measure([rng.normal(0.5)]))
        fell.append(tests.cusum[0, 0, 0])
    assert min(fell) == 0.0


@pytest.mark.parametrize(("k", "h", "arl"), [(0.5, 4.0, 336), (0.5, 5.0, 930), (0.25, 8.0, 736)])
def test_siegmunds_approximation_is_near_the_run_lengths_of_the_tables(
    k: float, h: float, arl: float
) -> None:
    """One-sided: twice what Montgomery's tables have for both sides (168 and 465; 368)."""
    assert average_run_length(k, h) == pytest.approx(arl, rel=0.02)


@given(st.floats(100, 1e6), st.integers(1, 50))
def test_every_test_has_its_share_of_the_rate_of_false_alarms(arl: float, series: int) -> None:
    each = [
        average_run_length(k, h)
        for k, h in zip(CUSUM_REFERENCES, compute_cusum_limits(arl, series), strict=True)
    ]
    assert each == pytest.approx([arl * series * TESTS_PER_SERIES] * 2, rel=1e-6)
