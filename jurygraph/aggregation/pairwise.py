"""Comparisons of two responses, each judged in both orders: outcomes, position bias, and a ranking with intervals.

A preference is a verdict from the side of one response: 1 if it is preferred, 0 if the other one is, 0.5 for a tie. A
value in between counts for the side that it is closer to. If the judge prefers the other response once the order is
swapped, the order decided the comparison.
"""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, as_nonnegative, as_unit_interval, check_shape, total
from jurygraph.errors import PlanError

MAX_NEWTON_STEPS = 1000
STRENGTH_TOLERANCE = 1e-11
"""Largest relative error of a strength that is not corrected, so that equal strengths stay equal."""
MIN_PRIOR = 1e-6
MAX_PRIOR = 1e6
"""Limits of the prior, and of wins of one over another: beyond them floats cannot distinguish the strengths."""
_TIE_SCORE = 0.5


def outcomes(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return 1 where the response is preferred in both orders, 0 where the other one is, else 0.5.

    `first` and `second` are the preferences for it where it is shown first and second, in [0, 1], of one shape; others
    raise PlanError. So a flip counts as a tie, and so does a preference in one order with a tie in the other.
    """
    first, second = _check_preferences(first, second)
    is_win = (first > _TIE_SCORE) & (second > _TIE_SCORE)
    is_loss = (first < _TIE_SCORE) & (second < _TIE_SCORE)
    return np.where(is_win, 1.0, np.where(is_loss, 0.0, 0.5))


def flips(first: ArrayLike, second: ArrayLike) -> Bools:
    """Return where each order prefers another response; arguments and errors as for `outcomes`."""
    first, second = _check_preferences(first, second)
    return np.asarray((first - _TIE_SCORE) * (second - _TIE_SCORE) < 0.0)


def bradley_terry(wins: ArrayLike, prior: float = 0.1) -> Floats:
    """Return strengths p [n] under which i beats j with probability p_i / (p_i + p_j) (Bradley & Terry 1952).

    Each p_i has a Gamma prior of shape 1 + a and rate a (Caron & Doucet 2012), so that the solution is unique also
    where a response won all or nothing, and where few pairs were compared. It is the mode of the posterior, at which

        p_i (Σ_j n_ij / (p_i + p_j) + a) = Σ_j w_ij + a          n_ij = w_ij + w_ji

    and the mean is 1. It equals the result of choix's `mm_pairwise` with alpha = a. It is computed by Newton's method
    in log p with + - * / only: choix takes logarithms, whose bits differ by machine, so that no reward could depend on
    them, and the MM algorithm takes thousands of rounds where one response wins against all.

    Args:
        wins: how often i (row) beat j (column), [n, n], at least 0; a tie is half a win for each. Its diagonal is 0.
        prior: a, from `MIN_PRIOR` to `MAX_PRIOR`; the larger it is, the nearer all strengths are to 1.

    Returns:
        The strengths, above 0; 1 for a response that was never compared. They are settled when a round would change
        none by more than `STRENGTH_TOLERANCE` of itself; after `MAX_NEWTON_STEPS` rounds they are returned as they are.

    Raises:
        PlanError: no square matrix, an entry below 0 or above `MAX_PRIOR`, a win over oneself, or a prior out of range.
    """
    win_counts = as_nonnegative("wins", wins)
    size = len(win_counts) if win_counts.ndim else 0
    check_shape("wins", win_counts, (size, size))
    if win_counts.diagonal().any():
        raise PlanError("wins has a number on its diagonal: no response is compared with itself")
    if not MIN_PRIOR <= prior <= MAX_PRIOR:
        raise PlanError(f"prior is {prior}: a number from {MIN_PRIOR:g} to {MAX_PRIOR:g} is needed")
    if (win_counts > MAX_PRIOR).any():
        raise PlanError(
            f"wins holds {win_counts.max():g}: {MAX_PRIOR:g} of one over another are the most"
        )
    comparison_counts = win_counts + win_counts.T
    wins_with_prior = np.asarray(total(win_counts)) + prior
    strength = np.ones(len(win_counts))
    for _ in range(MAX_NEWTON_STEPS):
        # Newton's step in log p; up to 0.5 in each coordinate it leads uphill (self-concordance, Bach 2010)
        share = strength[:, None] / (strength[:, None] + strength)  # the probability to win
        gradient = wins_with_prior - total(comparison_counts * share) - prior * strength
        pair_curvature = comparison_counts * share * share.T
        diagonal = total(pair_curvature) + prior * strength
        step = _solve_linear_system(np.diag(diagonal) - pair_curvature, gradient)
        largest_step = np.max(np.abs(step), initial=0.0)
        if largest_step <= STRENGTH_TOLERANCE:
            break
        half_log_step = step * min(0.5, 0.25 / largest_step)
        # e^step to the third order, exact where the step is 0
        strength_factor = (1.0 + half_log_step) / (1.0 - half_log_step)
        strength = strength * strength_factor
    return strength


def _solve_linear_system(matrix: Floats, right_side: Floats) -> Floats:
    """Return x with matrix x = right, by elimination: the matrix is diagonally dominant, so no rows are exchanged."""
    matrix = matrix.copy()
    x = right_side.copy()
    size = len(x)
    for row in range(size):
        factor = matrix[row + 1 :, row] / matrix[row, row]
        matrix[row + 1 :, row:] -= factor[:, None] * matrix[row, row:]
        x[row + 1 :] -= factor * x[row]
    for row in reversed(range(size)):
        x[row] = x[row] / matrix[row, row]
        x[:row] -= matrix[:row, row] * x[row]
    return x


def _check_preferences(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    scores_shown_first = as_unit_interval("first", first)
    scores_shown_second = as_unit_interval("second", second)
    check_shape("second", scores_shown_second, scores_shown_first.shape)
    return scores_shown_first, scores_shown_second
