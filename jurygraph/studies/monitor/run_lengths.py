"""How long the analyzer runs until it tells something: without change, and after a shift. Many streams side by side.

The steps of the streams are drawn with replacement from pools of steps whose rows were simulated and measured as the
analyzer measures them; each pool has a frame of its own, from the first of its steps. The tests are the analyzer's own
array form.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.agents.data_analyzer import Settings
from jurygraph.agents.data_analyzer.calibration import frame
from jurygraph.agents.data_analyzer.detectors import Detectors
from jurygraph.agents.data_analyzer.limits import limits
from jurygraph.agents.data_analyzer.scales import Measure
from jurygraph.agents.data_analyzer.series import measured, series_of
from jurygraph.agents.data_analyzer.statistics import disagreement
from jurygraph.studies.monitor.simulate import unchanged

_CHUNK = 250


class Pool(NamedTuple):
    """Measured steps: `measure` [T, S] of the series by `names`."""

    names: tuple[str, ...]
    measure: Measure


class RunLengths(NamedTuple):
    """Steps [R] until each stream's first alarm, from the change on if there was one.

    `censored` are those that ended without one, and count as long as they were; `false` those that told something
    before the change, which count not at all.
    """

    steps: NDArray[np.int64]
    censored: int
    false: int


def pool(seed: int, steps: int) -> Pool:
    """Steps without change, drawn from a seed."""
    settings = Settings()
    first = unchanged(seed, settings.calibration)
    series = series_of(first, settings.opposed, settings.penalties)
    pairs = disagreement([first.components[name] for name in settings.opposed])
    frozen = frame([first.rewards], [pairs])
    seeds = np.random.SeedSequence(seed).generate_state(-(-steps // _CHUNK)).tolist()
    chunks = [measured(unchanged(one, _CHUNK), series, settings.opposed, frozen) for one in seeds]
    whole = (np.concatenate(column)[:steps] for column in zip(*chunks, strict=True))
    return Pool(tuple(one.name for one in series), Measure(*whole))


def run_lengths(
    pools: Sequence[Pool],
    streams: int,
    most: int,
    seed: int,
    arl: float = 10_000.0,
    shift: tuple[str, float] | None = None,
    after: int = 0,
) -> RunLengths:
    """Follow streams up to `most` steps behind the first `after`, or until each told something.

    `shift` names a series and by how many sd of a step it lies higher from then on; then only its own alarms count
    behind the change. Streams are shared evenly among the pools.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    stacked = Measure(*(np.stack(column) for column in zip(*(one.measure for one in pools), strict=True)))
    names, size = pools[0].names, stacked.score.shape[1]
    home = np.arange(streams) % len(pools)
    offset, own = np.zeros(len(names)), np.ones(len(names), bool)
    if shift is not None:
        own = np.array([name == shift[0] for name in names])
        offset = np.where(own, shift[1] * np.nanstd(stacked.score, axis=(0, 1)), 0.0)
    tests = Detectors((streams, len(names)), limits(arl, len(names)))
    told = np.zeros(streams, np.int64)
    for step in range(1, after + most + 1):
        drawn = Measure(*(column[home, rng.integers(size, size=streams)] for column in stacked))
        if step > after:
            drawn = drawn._replace(score=drawn.score + offset)
        alarms = tests.feed(step, drawn).any
        alarm = (alarms if step <= after else alarms & own).any(axis=-1)
        told[alarm & (told == 0)] = step
        if told.all():
            break
    false = (told > 0) & (told <= after)
    lengths = np.where(told == 0, after + most, told)[~false] - after
    return RunLengths(lengths, int((told == 0).sum()), int(false.sum()))
