"""Limits for a given average run length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_analyzer.detectors import REFERENCES, TESTS, limits, run_length


@pytest.mark.parametrize(("k", "h", "arl"), [(0.5, 4.0, 336), (0.5, 5.0, 930), (0.25, 8.0, 736)])
def test_siegmunds_approximation_is_near_the_run_lengths_of_the_tables(k: float, h: float, arl: float) -> None:
    """One-sided: twice what Montgomery's tables have for both sides (168 and 465; 368)."""
    assert run_length(k, h) == pytest.approx(arl, rel=0.02)


@given(st.floats(100, 1e6), st.integers(1, 50))
def test_every_drift_test_has_its_share_of_the_rate_of_false_alarms(arl: float, series: int) -> None:
    found = limits(arl, series)
    each = [run_length(k, h) for k, h in zip(REFERENCES, found.drift, strict=True)]
    assert each == pytest.approx([arl * series * TESTS] * 2, rel=1e-6)


@pytest.mark.landing
@pytest.mark.parametrize("k", REFERENCES)
def test_simulated_cusums_run_as_long_as_their_limit_says(k: float) -> None:
    h = limits(200.0, 1).drift[REFERENCES.index(k)]
    rng = np.random.default_rng(0)
    cusum, alarm_step = np.zeros(2000), np.zeros(2000)
    for step in range(1, 10_001):
        cusum = np.maximum(cusum + rng.standard_normal(2000) - k, 0.0)
        alarm_step[(alarm_step == 0) & (cusum > h)] = step
    alarm_step[alarm_step == 0] = 10_000
    assert alarm_step.mean() == pytest.approx(run_length(k, h), rel=0.1)
