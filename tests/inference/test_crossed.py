"""Intervals over two kinds of clusters, against plain loops and figures worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from jurygraph.arrays import Floats, Ints
from jurygraph.inference.clusters import ratio_interval
from jurygraph.inference.crossed import crossed_interval, t_test_p
from tests.rows import all_rows


def looped_variance(values: Floats, rows: Ints, columns: Ints) -> float:
    """The definition of the module, pair by pair: what two values share is counted once for each pair."""
    mean = values.mean()
    names = sorted(set(rows.tolist())), sorted(set(columns.tolist()))
    cells = dict.fromkeys(zip(rows.tolist(), columns.tolist(), strict=True), 0.0)
    by_row = dict.fromkeys(names[0], 0.0)
    by_column = dict.fromkeys(names[1], 0.0)
    for value, row, column in zip(values.tolist(), rows.tolist(), columns.tolist(), strict=True):
        cells[row, column] += value - mean
        by_row[row] += value - mean
        by_column[column] += value - mean
    count = len(values)

    def variance(sums: dict[object, float]) -> float:
        return len(sums) / (len(sums) - 1) * sum(own**2 for own in sums.values()) / count**2

    of_rows = variance(dict(by_row))
    of_columns = variance(dict(by_column))
    if len(cells) == len(names[0]) * len(names[1]) == count:
        squares = 0.0
        for (row, column), own in cells.items():
            squares += (own - by_row[row] / len(names[1]) - by_column[column] / len(names[0])) ** 2
        of_cells = squares / ((len(names[0]) - 1) * (len(names[1]) - 1)) / count
    else:
        of_cells = variance(dict(cells))
    return max(of_rows + of_columns - of_cells, of_rows, of_columns)


@all_rows(
    "row_count, column_count, share",
    [(8, 5, 1.0), (3, 30, 1.0), (20, 30, 0.4), (12, 40, 0.1), (6, 6, 0.7)],
)
def test_the_variance_is_that_of_plain_loops(
    row_count: int, column_count: int, share: float
) -> None:
    rng = np.random.default_rng(row_count)
    table = rng.normal(size=(row_count, 1)) + rng.normal(size=(1, column_count))
    table = table + rng.normal(size=(row_count, column_count))
    chosen = rng.random(table.shape) < share
    rows, columns = np.nonzero(chosen)
    estimate = crossed_interval(table[chosen], rows, columns)
    assert estimate is not None
    assert estimate.error is not None
    assert estimate.error**2 == pytest.approx(
        looped_variance(table[chosen], rows, columns), rel=1e-12
    )
    clusters = min(len(set(rows.tolist())), len(set(columns.tolist())))
    half_width = float(stats.t.ppf(0.975, clusters - 1)) * estimate.error
    assert (estimate.low, estimate.high) == pytest.approx(
        (estimate.value - half_width, estimate.value + half_width)
    )
    assert estimate.clusters == clusters
    expected = 2.0 * stats.t.sf(abs(estimate.value) / estimate.error, clusters - 1)
    assert t_test_p(estimate) == pytest.approx(float(expected))


def test_by_hand() -> None:
    """Rows (1, 2), (3, 8): residuals by row -4, 4, by column -3, 3, each cell ±1 without both means."""
    rows = np.array([0, 0, 1, 1])
    columns = np.array([0, 1, 0, 1])
    estimate = crossed_interval(np.array([1.0, 2.0, 3.0, 8.0]), rows, columns)
    # V_row = 2 · 32 / 16 = 4, V_column = 2 · 18 / 16 = 2.25, V_cell = 4 · 1 / 1 / 4 = 1
    assert estimate is not None
    assert estimate.error == pytest.approx(math.sqrt(4.0 + 2.25 - 1.0))
    assert (estimate.value, estimate.clusters) == (3.5, 2)
    # An item for each value: rows alone are the clusters, and what both contain is counted once.
    nested = crossed_interval(np.array([1.0, 2.0, 3.0, 8.0]), rows, np.arange(4))
    assert nested is not None
    of_rows = ratio_interval([3.0, 11.0], [2, 2])
    assert of_rows is not None
    assert nested.error == pytest.approx(of_rows.error)


def test_clusters_that_cannot_tell_have_no_interval_and_no_test() -> None:
    ones = np.ones(4)
    numbers = np.arange(4)
    assert crossed_interval(ones[:0], numbers[:0], numbers[:0]) is None
    assert crossed_interval(ones, numbers, numbers) == (1.0, None, None, 0.0, 4)
    assert crossed_interval(np.arange(4.0), numbers, numbers * 0) == (1.5, None, None, None, 1)
    assert t_test_p(crossed_interval(ones, numbers, numbers)) is None
    assert t_test_p(None) is None


def test_members_of_one_cell_are_no_further_evidence() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=40)
    rows = np.repeat(np.arange(4), 10)
    columns = np.tile(np.arange(10), 4)
    single = crossed_interval(values, rows, columns)
    repeated = crossed_interval(np.tile(values, 3), np.tile(rows, 3), np.tile(columns, 3))
    assert single is not None
    assert repeated == pytest.approx(single)
