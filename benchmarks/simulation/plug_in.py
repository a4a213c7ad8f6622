"""The designs of what studies conclude from estimates: gates, the pattern of agreement, the SNR of groups, rates."""

from collections.abc import Iterator
from functools import partial

from benchmarks.simulation.gates import break_promise
from benchmarks.simulation.noise import find_pattern
from benchmarks.simulation.rates import cover_rate
from benchmarks.simulation.signals import cover_snr
from benchmarks.simulation.units import Cell


def cells() -> Iterator[Cell]:
    """Yield the designs: promises and sentences may be wrong in 5 %; SNRs must be covered in 92 %, rates in 89 %."""
    for levels in (3, 5, 20):
        name = f"--false-positives breaks its promise: {levels} levels"
        yield Cell(f"{name}, 200 tasks", partial(break_promise, levels, 200), most=0.05)
        yield Cell(
            f"{name}, 100 tasks of 4",
            partial(break_promise, levels, 100, size=4, icc=0.5),
            most=0.05,
        )
    for reviewers, items, levels in ((3, 30, 5), (5, 50, 2), (5, 200, 5), (10, 40, 100)):
        name = f"pattern in noise: {reviewers} x {items}, {levels} levels"
        yield Cell(name, partial(find_pattern, reviewers, items, levels), most=0.05)
    yield Cell(
        "pattern in noise: 5 x 80 in groups of 4, 5 levels",
        partial(find_pattern, 5, 80, 5, size=4),
        most=0.05,
    )
    for tasks, group, snr in ((10, 4, 0.0), (40, 8, 0.0), (10, 4, 1.0), (40, 8, 1.0), (10, 4, 3.0)):
        name = f"SNR {snr:g} is covered: {tasks} groups of {group}"
        yield Cell(name, partial(cover_snr, tasks, group, snr), least=0.92)
    for labelled in (20, 50):
        for accuracy in (0.8, 0.95, 1.0):
            name = f"a rate of .1 is covered: {labelled} labels, accuracy {accuracy:g}"
            yield Cell(name, partial(cover_rate, labelled, accuracy, 0.1), least=0.89)
