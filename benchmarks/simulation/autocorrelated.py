"""Alarms of the analyzer's tests on autocorrelated scores, over many parallel streams.

The scores of a stream are a Gaussian lag-1 autoregression of variance 1. Each stream has one series; its tests have the
limits of one of ten, and alarms are counted as those of ten.
"""

from collections.abc import Iterator

import numpy as np

from jurygraph.agents.data_analyzer import DriftTests, SeriesMeasure, compute_cusum_limits
from jurygraph.arrays import Floats

SERIES = 10
ARL = 10_000.0


def autoregression(rho: float, streams: int, seed: int) -> Iterator[Floats]:
    """Yield the scores of one step after another, [streams]."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(streams)
    while True:
        scores = rho * scores + np.sqrt(1.0 - rho * rho) * rng.standard_normal(streams)
        yield scores


def alarms_per_thousand(rho: float, streams: int, steps: int, seed: int) -> float:
    """Return the alarms per 1,000 steps of ten series without change; a series restarts after each."""
    tests, alarms = DriftTests((streams,), compute_cusum_limits(ARL, SERIES)), 0
    for step, scores in zip(range(1, steps + 1), autoregression(rho, streams, seed), strict=False):
        tests.test_step_scores(step, SeriesMeasure(scores, scores, np.zeros_like(scores)))
        has_alarm = tests.has_alarm
        alarms += int(has_alarm.sum())
        tests.restart_series(has_alarm)
    return 1000.0 * SERIES * alarms / (streams * steps)
