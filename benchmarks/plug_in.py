"""How often what studies conclude from estimates is wrong, and whether `--need` asks for the labels that it takes.

It is the quick mode: 100 data sets a cell, and 10 for each judge of `--need`. A target is missed if a share is more
than three binomial errors beyond its bound. With 1,000 a cell, it is a test: `make test-exhaustive
TESTS="tests/benchmarks/test_plug_in.py tests/benchmarks/test_need.py"`.
"""

from collections.abc import Iterator

from benchmarks.figure import Figure
from benchmarks.simulation.need import DESIGNS, measure_need
from benchmarks.simulation.plug_in import cells
from benchmarks.units import measure_quickly

SAMPLES = 100
_NEED_SAMPLES = 10


def measure() -> Iterator[Figure]:
    yield from measure_quickly(cells(), SAMPLES)
    for design in DESIGNS:
        found = measure_need(design, _NEED_SAMPLES)
        yield Figure(
            design.name,
            found.ratio,
            f"± {found.error:.3f}",
            "0.85 to 1.15",
            abs(found.ratio - 1.0) <= 0.15,
        )
