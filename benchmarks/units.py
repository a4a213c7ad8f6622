"""How often studies find what is not there, where ratings or tasks resemble each other: the quick mode, 200 a cell.

A target is missed if a share is more than three binomial errors beyond its bound. With 1,000 a cell, and no allowance,
it is a test: `make test-exhaustive TESTS=tests/benchmarks/test_units.py`.
"""

from collections.abc import Iterable, Iterator

from benchmarks.figure import Figure
from benchmarks.simulation.units import Cell, cells, measure_cell

SAMPLES = 200
_ERRORS = 3.0


def measure() -> Iterator[Figure]:
    return measure_quickly(cells())


def measure_quickly(designs: Iterable[Cell], samples: int = SAMPLES) -> Iterator[Figure]:
    for cell in designs:
        rate = measure_cell(cell, samples)
        met = rate.is_within(cell, _ERRORS) if cell.bound else None
        yield Figure(cell.name, rate.value, f"± {rate.error:.3f}", cell.bound, met)
