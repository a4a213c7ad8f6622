"""Run lengths of the analyzer until its first alarm, without change or after a shift, over many parallel streams.

The steps of the streams are drawn with replacement from pools of steps, whose rows were simulated and measured as the
analyzer measures them; each pool has its own limit of conflict, from its first steps. The tests are the analyzer's
array form.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.streams import unchanged_steps
from jurygraph.agents.data_analyzer import (
    CALIBRATION_STEPS,
    DriftTests,
    SeriesMeasure,
    compute_cusum_limits,
    find_shares,
    learn_calibration,
    measure_series,
)

_CHUNK = 250


class Pool(NamedTuple):
    """Measured steps: `measure` [T, S] of the series by `names`."""

    names: tuple[str, ...]
    measure: SeriesMeasure


class RunLengths(NamedTuple):
    """Steps [R] until each stream's first alarm, counted from the change if there is one.

    `censored` streams ended without an alarm, and count with their full length; `false_alarms` streams had an alarm
    before the change, and are not counted.
    """

    steps: NDArray[np.int64]
    censored: int
    false_alarms: int


def pool(seed: int, steps: int) -> Pool:
    """Draw steps without change from a seed."""
    first = unchanged_steps(seed, CALIBRATION_STEPS)
    reference, shares = learn_calibration(first), find_shares(first[0])
    measured = []
    for drawn in np.random.SeedSequence(seed).generate_state(-(-steps // _CHUNK)).tolist():
        for step in unchanged_steps(drawn, _CHUNK):
            series, measures = zip(
                *measure_series(step, reference, shares, ("repetition",)), strict=True
            )
            measured.append(SeriesMeasure(*np.array(measures).T))
    columns = (np.array(column[:steps]) for column in zip(*measured, strict=True))
    return Pool(tuple(item.name for item in series), SeriesMeasure(*columns))


def run_lengths(
    pools: Sequence[Pool],
    streams: int,
    max_steps: int,
    seed: int,
    arl: float = 10_000.0,
    shift: tuple[str, float] | None = None,
    after: int = 0,
) -> RunLengths:
    """Follow streams for up to `max_steps` steps after the first `after`, or until each has had an alarm.

    `shift` names a series and the number of sd of a step by which it is raised from then on; after the change only its
    own
    alarms count. Streams are shared evenly among the pools.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    stacked = SeriesMeasure(
        *(np.stack(column) for column in zip(*(one.measure for one in pools), strict=True))
    )
    names, size = pools[0].names, stacked.score.shape[1]
    pool_of = np.arange(streams) % len(pools)
    offset, shifted = np.zeros(len(names)), np.ones(len(names), bool)
    if shift is not None:
        shifted = np.array([name == shift[0] for name in names])
        offset = np.where(shifted, shift[1] * np.nanstd(stacked.score, axis=(0, 1)), 0.0)
    tests = DriftTests((streams, len(names)), compute_cusum_limits(arl, len(names)))
    alarm_step = np.zeros(streams, np.int64)
    for step in range(1, after + max_steps + 1):
        measure = SeriesMeasure(
            *(column[pool_of, rng.integers(size, size=streams)] for column in stacked)
        )
        if step > after:
            measure = measure._replace(score=measure.score + offset)
        tests.test_step_scores(step, measure)
        alarms = tests.has_alarm
        alarm = (alarms if step <= after else alarms & shifted).any(axis=-1)
        alarm_step[alarm & (alarm_step == 0)] = step
        if alarm_step.all():
            break
    is_false = (alarm_step > 0) & (alarm_step <= after)
    lengths = np.where(alarm_step == 0, after + max_steps, alarm_step)[~is_false] - after
    return RunLengths(lengths, int((alarm_step == 0).sum()), int(is_false.sum()))
