"""Read a score matrix of comparisons as pairs in both orders, from the side of each response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from jurygraph import aggregation
from jurygraph.aggregation import pairwise
from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.decision.combiner import ScoreMatrix
from jurygraph.errors import PlanError

ComparisonForm = Literal["pairs", "lists"]
Grid = TypeVar("Grid", Floats, Bools)


@dataclass(frozen=True, slots=True)
class BothOrders:
    """Every pair of a group from the side of each response: rows are responses, columns their opponents, [R,R].

    `first` and `second` are the preferences for the row in the two orders. An order without a verdict holds the fill
    value, from both sides: a fill of 0 means lost for the row. `compared` marks the pairs that were compared at all. A
    response that was compared with none, because a gate excluded it or its material failed, has the value
    `uncompared_value`, [R]. `diagnostics`, [R] each, are diagnostics of the effect of the order.
    """

    first: Floats
    second: Floats
    compared: Bools
    uncompared_value: Floats
    present: Bools
    diagnostics: Mapping[str, Floats]

    @property
    def outcomes(self) -> Floats:
        """The result of both orders for the row, 1, 0.5 or 0, [R,R]; 0 where nothing was compared."""
        return np.where(self.compared, pairwise.outcomes(self.first, self.second), 0.0)

    @property
    def opponents(self) -> Floats:
        """The number of opponents that each response was compared with, [R]."""
        return _count_per_row(self.compared)


def read_pairs(cells: ScoreMatrix) -> BothOrders:
    """Read verdicts on ordered pairs: column j of row i is the score of i, shown first, against j.

    Diagnostics: `flips`, the share of opponents at which the order decided, among those judged in both orders; and
    `first`, the share of verdicts that preferred the response shown first, among those that preferred one (0.5 without
    any). Raises `PlanError` if the columns are not verdicts on ordered pairs.
    """
    size = len(cells.value)
    if cells.value.shape[1] > size or (cells.judged & cells.applicable)[:, : cells.value.shape[1]].diagonal()[1:].any():
        raise PlanError(
            f"{size} responses have {cells.value.shape[1]} verdicts each, where one on each ordered pair is needed; "
            "give it the verdicts of `pairwise`, asked once in each order"
        )
    live, judged = _pad_columns(cells.applicable, size), _pad_columns(cells.judged, size)
    first = _pad_columns(cells.value, size)
    there = live & live.T & ~np.eye(size, dtype=np.bool_)
    second = np.where(judged.T, 1.0 - first.T, first.T)
    has_verdict = there & judged
    judged_in_both = has_verdict & has_verdict.T
    figures = {"flips": _flip_share(first, second, judged_in_both), "first": _first_share(first, judged_in_both)}
    return _both_orders(cells, first, second, there, figures)


def read_lists(cells: ScoreMatrix) -> BothOrders:
    """Read verdicts of two listings: column s of row i is the rank score of i in listing s; one listing is reversed.

    Diagnostics: `flips`, as for pairs. The matrix does not tell which response was shown first in a listing. Raises
    `PlanError` if there are more than two listings.
    """
    size, listings = cells.value.shape
    if listings > 2:
        raise PlanError(
            f"{listings} listings were asked for, where one in each order is needed; give it the verdicts of `listwise`"
        )
    live, judged, value = _pad_columns(cells.applicable, 2), _pad_columns(cells.judged, 2), _pad_columns(cells.value, 2)
    first, second = (_compare_ranks(value[:, listing], judged[:, listing]) for listing in (0, 1))
    live_rows, judged_rows = np.asarray(live.all(axis=1)), np.asarray(judged.all(axis=1))
    there = live_rows[:, None] & live_rows & ~np.eye(size, dtype=np.bool_)
    figures = {"flips": _flip_share(first, second, there & judged_rows[:, None] & judged_rows)}
    return _both_orders(cells, first, second, there, figures)


READERS: dict[ComparisonForm, Callable[[ScoreMatrix], BothOrders]] = {"pairs": read_pairs, "lists": read_lists}


def _both_orders(
    cells: ScoreMatrix, first: Floats, second: Floats, compared: Bools, figures: Mapping[str, Floats]
) -> BothOrders:
    """Build `BothOrders`; a cell without a verdict and without an opponent gives the response its value `alone`."""
    alone = np.max(np.where(cells.applicable & ~cells.judged, cells.value, 0.0), axis=1)
    return BothOrders(first, second, compared, alone, np.asarray(cells.applicable.any(axis=1)), figures)


def _flip_share(first: Floats, second: Floats, judged: Bools) -> Floats:
    return _count_per_row(judged & pairwise.flips(first, second)) / np.maximum(_count_per_row(judged), 1.0)


def _first_share(first: Floats, has_verdict: Bools) -> Floats:
    """Return the share of decided verdicts that preferred the first response; each counts for both of its pair."""
    decided, won = has_verdict & (first != 0.5), has_verdict & (first > 0.5)
    verdicts = _count_per_row(decided) + _count_per_row(decided.T)
    return np.where(verdicts > 0, (_count_per_row(won) + _count_per_row(won.T)) / np.maximum(verdicts, 1.0), 0.5)


def _compare_ranks(value: Floats, judged: Bools) -> Floats:
    """Compare ranks from the side of the row, [R,R]; where one of the two has no verdict, the fill value counts."""
    above = np.where(value[:, None] > value, 1.0, np.where(value[:, None] < value, 0.0, 0.5))
    filled = np.where(judged[:, None], value, value[:, None])
    return np.where(judged[:, None] & judged, above, filled)


def _pad_columns(matrix: Grid, width: int) -> Grid:
    """Pad with empty columns up to a width, for opponents without a comparison."""
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))


def _count_per_row(where: Bools) -> Floats:
    return np.asarray(aggregation.total(np.where(where, 1.0, 0.0)))
