"""Comparisons of two responses, each asked for in both orders: outcomes, what the order did, and a ranking.

A preference is what a judge says from the side of one response: 1 it is preferred, 0 the other one is, 0.5 a tie. What
lies between counts for the side that it is nearer to. Asked again with the two in the other order, from the side of the
same response, the judge says the same, or the order decided.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import BoolArray, FloatArray, nonnegative, shaped, unit
from jurygraph.aggregation._ordered import total
from jurygraph.errors import PlanError

__all__ = [
    "LEAST",
    "MOST",
    "MOST_ROUNDS",
    "TOLERANCE",
    "Position",
    "Strengths",
    "bradley_terry",
    "flips",
    "outcomes",
    "position",
]

MOST_ROUNDS = 1000
TOLERANCE = 1e-11
"""What a strength may be off, as a share of itself, and is left as it is; so who is equal at first stays so."""
LEAST, MOST = 1e-6, 1e6
"""A prior, and the wins of one over another: beyond these, strengths leave what floats can tell apart."""
_TIE = 0.5


def outcomes(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """What both orders come to: 1 where the response is preferred in both, 0 where the other one is, else 0.5.

    So a flip is a tie, and a preference beside a tie is one too.

    Args:
        first: preferences where the response is shown first, in [0, 1], of any shape.
        second: preferences of the same response where it is shown second, of that shape.

    Raises:
        PlanError: a preference outside [0, 1] or NaN, or shapes that do not fit.
    """
    first, second = _both(first, second)
    won, lost = (first > _TIE) & (second > _TIE), (first < _TIE) & (second < _TIE)
    return np.where(won, 1.0, np.where(lost, 0.0, 0.5))


def flips(first: ArrayLike, second: ArrayLike) -> BoolArray:
    """Where each order prefers another response; arguments and errors as for `outcomes`."""
    first, second = _both(first, second)
    return np.asarray(((first > _TIE) & (second < _TIE)) | ((first < _TIE) & (second > _TIE)))


class Position(NamedTuple):
    """What the order did over many comparisons: `pairs` = `consistent` + `flips` + `wavering`.

    `consistent` are those of which both orders say the same, `ties` those of them that are a tie in both; `wavering`
    those that are a tie in one order alone. `toward_first` and `toward_second` are the flips to whoever was shown
    first, or second. `decided` are the verdicts, two a pair, that prefer a response, and `first` those of them that
    prefer the one shown first.
    """

    pairs: int
    consistent: int
    ties: int
    wavering: int
    flips: int
    toward_first: int
    toward_second: int
    decided: int
    first: int

    @property
    def preference_for_first(self) -> float | None:
        """Share of the decided verdicts in which the one shown first won; None where none is decided.

        Over pairs in both orders it is 0.5 where the order does nothing, whatever the responses are like.
        """
        return self.first / self.decided if self.decided else None


def position(first: ArrayLike, second: ArrayLike) -> Position:
    """The figures of position bias over comparisons in both orders; arguments and errors as for `outcomes`."""
    first, second = _both(first, second)
    toward_first, toward_second = (first > _TIE) & (second < _TIE), (first < _TIE) & (second > _TIE)
    tied_first, tied_second = first == _TIE, second == _TIE
    flipped = _count(toward_first) + _count(toward_second)
    wavering = _count(tied_first ^ tied_second)
    return Position(
        pairs=first.size,
        consistent=first.size - flipped - wavering,
        ties=_count(tied_first & tied_second),
        wavering=wavering,
        flips=flipped,
        toward_first=_count(toward_first),
        toward_second=_count(toward_second),
        decided=_count(~tied_first) + _count(~tied_second),
        first=_count(first > _TIE) + _count(second < _TIE),
    )


class Strengths(NamedTuple):
    """How strong each response is, [n], of mean 1; after how many rounds; and whether none would move on."""

    strength: FloatArray
    rounds: int
    settled: bool


def bradley_terry(wins: ArrayLike, prior: float = 0.1) -> Strengths:
    """Strengths p under which i beats j with probability p_i / (p_i + p_j) (Bradley & Terry 1952).

    Each p_i has a Gamma prior of shape 1 + a and rate a (Caron & Doucet 2012), so that there is one answer also where
    a response won all or nothing, and where few pairs were compared: the posterior's mode, at which

        p_i (Σ_j n_ij / (p_i + p_j) + a) = Σ_j w_ij + a          n_ij = w_ij + w_ji

    and the mean is 1. It is what choix's `mm_pairwise` gives as alpha = a, found by Newton's method in log p with + - *
    / alone: choix takes logarithms, whose bits differ by machine, so that no reward could rest on them; and the MM
    algorithm takes thousands of rounds where one wins over all.

    Args:
        wins: how often i (row) beat j (column), [n, n], at least 0; a tie is half a win for each. Its diagonal is 0.
        prior: a, from `LEAST` to `MOST`; the larger it is, the nearer all strengths are to 1.

    Returns:
        The strengths, above 0; 1 for whoever was compared with nobody. They are settled when a round would move
        none by more than `TOLERANCE` of itself; after `MOST_ROUNDS` they are taken as they are.

    Raises:
        PlanError: no square matrix, an entry below 0 or above `MOST`, a win over oneself, or another prior.
    """
    won = nonnegative("wins", wins)
    shaped("wins", won, (len(won), len(won)) if won.ndim else (0, 0))
    if won.diagonal().any():
        raise PlanError("wins has a number on its diagonal: nobody is compared with itself")
    if not LEAST <= prior <= MOST:
        raise PlanError(f"prior is {prior}: a number from {LEAST:g} to {MOST:g} is needed")
    if (won > MOST).any():
        raise PlanError(f"wins holds {won.max():g}: {MOST:g} of one over another are the most")
    compared, gained = won + won.T, np.asarray(total(won)) + prior
    strength, rounds, settled = np.ones(len(won)), 0, False
    while rounds < MOST_ROUNDS and not settled:
        step = _newton(compared, gained, strength, prior)
        farthest = np.max(np.abs(step), initial=0.0)
        rounds, settled = rounds + 1, bool(farthest <= TOLERANCE)
        if not settled:
            half = step * min(0.5, 0.25 / farthest)
            strength = strength * ((1.0 + half) / (1.0 - half))  # e^step to the third order, and exact where it is 0
    return Strengths(strength, rounds, settled)


def _newton(compared: FloatArray, gained: FloatArray, strength: FloatArray, prior: float) -> FloatArray:
    """Newton's step in log p. No longer than 0.5 anywhere, it always leads uphill (self-concordance, Bach 2010)."""
    share = strength[:, None] / (strength[:, None] + strength)  # the probability to win
    slope = gained - total(compared * share) - prior * strength
    bend = compared * share * share.T
    curvature = np.diag(np.asarray(total(bend)) + prior * strength) - bend
    return _solved(curvature, slope)


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """x where matrix x = right, by elimination row by row: the diagonal outweighs the rest, so no row is exchanged."""
    matrix, x = matrix.copy(), right.copy()
    size = len(x)
    for row in range(size):
        factor = matrix[row + 1 :, row] / matrix[row, row]
        matrix[row + 1 :, row:] -= factor[:, None] * matrix[row, row:]
        x[row + 1 :] -= factor * x[row]
    for row in reversed(range(size)):
        x[row] = x[row] / matrix[row, row]
        x[:row] -= matrix[:row, row] * x[row]
    return x


def _both(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    one, other = unit("first", first), unit("second", second)
    shaped("second", other, one.shape)
    return one, other


def _count(where: BoolArray) -> int:
    return int(np.count_nonzero(where))
