"""What `study stability` says of judges blind to wording, and how often its intervals cover: the quick mode.

It simulates 200 data sets a cell, with the allowance of `benchmarks units`. With 1,000, it is a test:
`make test-exhaustive TESTS=tests/benchmarks/test_wording.py`.
"""

from collections.abc import Iterator

from benchmarks.figure import Figure
from benchmarks.simulation.wording import cells
from benchmarks.units import measure_quickly


def measure() -> Iterator[Figure]:
    return measure_quickly(cells())
