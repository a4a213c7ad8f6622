"""Alarms of the analyzer's tests on autocorrelated scores, over many parallel streams, with and without pre-whitening.

The scores of a stream are a Gaussian lag-1 autoregression of variance 1. Each stream has one series; its tests have the
limits of one of twelve, and alarms are counted as those of twelve.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer.detectors import Detectors, limits
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.arrays import Floats

SERIES = 12
ARL = 10_000.0


class Delays(NamedTuple):
    """The median steps from a shift to the alarm, and the number of streams: `missed`, of all `counted`.

    Streams with an alarm before the shift are not counted. Missed ones count with their full length; the median is NaN
    if no stream is counted.
    """

    median: float
    missed: int
    counted: int


def autoregression(rho: float, streams: int, seed: int) -> Iterator[Floats]:
    """Yield the scores of one step after another, [streams]."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(streams)
    while True:
        scores = rho * scores + np.sqrt(1.0 - rho * rho) * rng.standard_normal(streams)
        yield scores


def alarms_per_thousand(rho: float, prewhiten: bool, streams: int, steps: int, seed: int) -> float:
    """Return the alarms per 1,000 steps of twelve series without change; a series restarts after each."""
    tests, alarms = Detectors((streams,), limits(ARL, SERIES), prewhiten), 0
    for step, scores in zip(range(1, steps + 1), autoregression(rho, streams, seed), strict=False):
        has_alarm = tests.feed(step, _measure(scores)).has_alarm
        alarms += int(has_alarm.sum())
        tests.restart(has_alarm)
    return 1000.0 * SERIES * alarms / (streams * steps)


def delays(
    rho: float, shift: float, prewhiten: bool, streams: int, seed: int, after: int = 400, followed: int = 2_000
) -> Delays:
    """Follow streams until their first alarm, for up to `followed` steps after a lasting shift by `shift` sd."""
    tests, alarm_step = Detectors((streams,), limits(ARL, SERIES), prewhiten), np.zeros(streams, np.int64)
    for step, scores in zip(range(1, after + followed + 1), autoregression(rho, streams, seed), strict=False):
        has_alarm = tests.feed(step, _measure(scores + (shift if step > after else 0.0))).has_alarm
        alarm_step[has_alarm & (alarm_step == 0)] = step
        if alarm_step.all():
            break
    is_counted = (alarm_step == 0) | (alarm_step > after)
    steps = np.where(alarm_step == 0, followed, alarm_step - after)[is_counted]
    median = float(np.median(steps)) if len(steps) else float("nan")
    return Delays(median, int((alarm_step == 0).sum()), len(steps))


def _measure(scores: Floats) -> Measure:
    nothing = np.zeros_like(scores)
    return Measure(scores, scores, nothing, nothing)
