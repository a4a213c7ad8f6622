"""Means of values that two kinds of clusters share: each value is of a row, such as a reviewer, and of a column.

Values of a row resemble each other, and so do those of a column: a judge that errs on an item errs for every reviewer
of it. An interval over reviewers alone takes what they share for independent evidence, so the variance of the mean
counts both (Cameron, Gelbach & Miller 2011), less what both contain:

    V = max(V_row + V_column - V_cell, V_row, V_column)

    V_row     R / (R - 1) · Σ_r (Σ of the residuals of row r)² / N², in a complete table var(row means) / R
    V_column  the same of the columns
    V_cell    in a complete table that of the residuals without their row and column means, with (R - 1)(C - 1) degrees
              of freedom; in any other the same as V_row, of cells

The maximum keeps V above what either kind of clusters shows alone: the difference of estimates may even be negative.
Student's t has min(R, C) - 1 degrees of freedom, those of the kind that says less.
"""

import numpy as np

from jurygraph.arrays import Floats, Ints, as_finite
from jurygraph.inference.clusters import Estimate, cluster_numbers, pair_numbers, t_quantile

_ROUNDING_ERROR = 1e-12


def crossed_interval(values: Floats, rows: Ints, columns: Ints) -> Estimate | None:
    """Return the mean of values [N] with its interval over rows and columns; None without a value.

    `rows` and `columns` [N] number the two clusters of each value, in any way. `clusters` is the number of rows or of
    columns, whichever is smaller; with one of either there is no interval.

    Raises:
        PlanError: a value that is not finite.
    """
    numbers = as_finite("values", values)
    if not len(numbers):
        return None
    row = cluster_numbers(rows)
    column = cluster_numbers(columns)
    cell = pair_numbers(row, column)
    sizes = np.bincount(cell)
    mean = float(numbers.mean())
    residuals = numbers - mean
    row_sums = np.bincount(row, residuals).astype(np.float64)
    column_sums = np.bincount(column, residuals).astype(np.float64)
    clusters = min(len(row_sums), len(column_sums))
    if clusters < 2:
        return Estimate(mean, None, None, None, clusters)
    if float(np.abs(residuals).max()) <= _ROUNDING_ERROR * max(1.0, abs(mean)):
        return Estimate(mean, None, None, 0.0, clusters)
    squares = (np.bincount(cell, residuals) ** 2).sum()
    is_every_cell_filled = len(sizes) == len(row_sums) * len(column_sums)
    is_design_complete = is_every_cell_filled and bool((sizes == sizes[0]).all())
    error = float(
        crossed_error(row_sums, column_sums, squares, len(numbers), len(sizes), is_design_complete)
    )
    half_width = t_quantile(clusters - 1) * error
    return Estimate(mean, mean - half_width, mean + half_width, error, clusters)


def crossed_error(
    row_sums: Floats,
    column_sums: Floats,
    cell_squares: Floats,
    members: int,
    cells: int,
    is_design_complete: bool,
) -> Floats:
    """Return the standard error of means from the sums of their residuals, [...]: of many data sets at once.

    Args:
        row_sums, column_sums: sums of the residuals by row, [..., R], and by column, [..., C]; R and C at least 2.
        cell_squares: the sum over cells of the squared sum of a cell's residuals, [...].
        members: N, the number of values.
        cells: number of pairs of a row and a column that have a value.
        is_design_complete: whether every row has as many values in every column.
    """
    row_count = row_sums.shape[-1]
    column_count = column_sums.shape[-1]
    row_squares = (row_sums**2).sum(axis=-1)
    column_squares = (column_sums**2).sum(axis=-1)
    # V_row, V_column and V_cell, each times N².
    row_variance = row_squares * row_count / (row_count - 1)
    column_variance = column_squares * column_count / (column_count - 1)
    if is_design_complete:
        interaction_squares = cell_squares - row_squares / column_count - column_squares / row_count
        degrees_of_freedom = (row_count - 1) * (column_count - 1)
        cell_variance = np.maximum(0.0, interaction_squares) * cells / degrees_of_freedom
    else:
        cell_variance = cell_squares * cells / (cells - 1)
    larger = np.maximum(row_variance, column_variance)
    variance = np.maximum(row_variance + column_variance - cell_variance, larger)
    return np.asarray(np.sqrt(variance) / members)


def t_test_p(estimate: Estimate | None) -> float | None:
    """Return the two-sided p-value of Student's t that the true value is 0; None where the estimate has no error."""
    from scipy import special

    if estimate is None or not estimate.error:
        return None
    statistic = -abs(estimate.value) / estimate.error
    return float(2.0 * special.stdtr(estimate.clusters - 1, statistic))
