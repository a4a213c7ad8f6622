"""S/R of a judge blind to wording is 1, seldom clearly above, and variances are covered, also of skewed scores."""

import numpy as np
import pytest

from benchmarks.simulation.units import Cell, measure_cell
from benchmarks.simulation.wording import (
    NORMAL,
    SKEWED,
    cells,
    cover_part,
    cover_variance,
    draw_scores,
)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "cell", [cell for cell in cells() if cell.bound], ids=lambda cell: cell.name
)
def test_a_blind_judge_has_1_and_variances_are_covered_as_often_as_promised(cell: Cell) -> None:
    rate = measure_cell(cell, 1000)
    assert rate.is_within(cell, errors=0.0)


def test_a_few_simulations_tell_equal_divisors_from_those_of_the_population() -> None:
    """The quick form: with two repeats, variances divided by their number of scores show wording that is not there."""
    few_repeats = "normal, 40 tasks, 15 variants, 2 repeats"
    by_name = {cell.name: cell for cell in cells()}
    mean = measure_cell(by_name[f"S/R, blind: {few_repeats}"], 40)
    assert abs(mean.value - 1.0) < 3.0 * mean.error < 0.2
    assert measure_cell(by_name[f"S/R above 1, blind: {few_repeats}"], 40).value <= 0.1
    drawn = [draw_scores(NORMAL, 40, 15, 2, seed) for seed in range(40)]
    by_population = [
        variants.var(axis=1).mean() / repeats.var(axis=1).mean() for variants, repeats in drawn
    ]
    assert np.mean(by_population) > 1.7
    assert sum(cover_variance(SKEWED, 10, 5, seed) for seed in range(20)) >= 17
    assert sum(cover_part(SKEWED, 10, 5, 2, seed) for seed in range(20)) >= 17
