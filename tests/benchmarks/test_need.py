"""`study judge --need` asks for as many labels as the interval of the corrected mean takes in simulation."""

import pytest

from benchmarks.simulation.need import DESIGNS, NeedDesign, measure_need


@pytest.mark.exhaustive
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_labels_asked_for_are_those_that_it_takes(design: NeedDesign) -> None:
    found = measure_need(design, 200)
    assert abs(found.ratio - 1.0) <= 0.15
