"""The benchmark of tests and intervals: what it compares, and that its verdicts follow from the figures."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import inference
from benchmarks.inference import Cell, make_figure, mcnemar, t_test
from benchmarks.simulation.responses import Design

pytestmark = pytest.mark.exhaustive

NORMAL = Design(10, 8, 0.7)


def test_plain_tests_are_scipys_over_responses() -> None:
    drawn = np.random.default_rng(0).normal(0.2, 1.0, (3, 8, 8))
    assert t_test(drawn) == pytest.approx([stats.ttest_1samp(one.ravel(), 0.0).pvalue for one in drawn])
    decisions = np.zeros((1, 4, 3))
    decisions[0, :3] = [[1, 1, 0], [1, 1, 1], [0, -1, 1]]
    assert mcnemar(decisions) == pytest.approx([stats.binomtest(1, 7).pvalue])
    assert t_test(np.zeros((1, 2, 2))) == mcnemar(np.zeros((1, 2, 2))) == [None]


def test_a_target_is_missed_beyond_three_standard_errors() -> None:
    """.06 ± 3 x .0038 of 4,000 samples, .93 ± 3 x .0026 of 10,000; heavy skew and 3 tasks have no target."""
    test, interval = Cell("mean", "normal", NORMAL, 4_000), Cell("mean interval", "binary", NORMAL, 10_000)
    assert [make_figure(test, inference.Rates(rate, 0.4)).met for rate in (0.05, 0.071, 0.072)] == [True, True, False]
    found = [make_figure(interval, inference.Rates(rate, 0.9)).met for rate in (0.95, 0.923, 0.922)]
    assert found == [True, True, False]
    for cell in (test._replace(kind="skewed"), test._replace(design=Design(3, 8, 0.7))):
        assert make_figure(cell, inference.Rates(1.0, 1.0)).met is None
    rare = make_figure(interval._replace(kind="rare binary"), inference.Rates(0.6, 0.5, unknown=0.25))
    assert rare.target == "25.0% unknown"
