"""Studies of data without a difference find none, and α is covered, where ratings or tasks resemble each other."""

import pytest

from benchmarks.simulation.units import (
    Cell,
    cells,
    compare_judges,
    compare_runs,
    cover_alpha,
    measure_cell,
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cell", list(cells()), ids=lambda cell: cell.name)
def test_true_nulls_are_rejected_and_alpha_is_missed_as_seldom_as_promised(cell: Cell) -> None:
    rate = measure_cell(cell, 1000)
    assert rate.is_within(cell, errors=0.0)


def test_a_few_simulations_tell_the_units_from_their_members() -> None:
    """The quick form: what ignores the units finds a difference in ten simulations, and what knows them does not."""
    samples = range(10)
    assert sum(compare_judges(20, 30, 1.0, seed) for seed in samples) <= 2
    assert sum(compare_runs(8, 10, seed) for seed in samples) <= 2
    assert sum(compare_runs(8, 10, seed, clustered=False) for seed in samples) >= 4
    assert sum(cover_alpha(50, 8, 3, seed) for seed in samples) >= 8
