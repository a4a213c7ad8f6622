"""Cells of a question that compares responses, read as pairs in both orders, each from the side of both of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Floats
from jurygraph.aggregation import pairwise
from jurygraph.errors import PlanError

Shown = Literal["pairs", "lists"]
Grid = TypeVar("Grid", Floats, Bools)


@dataclass(frozen=True, slots=True)
class BothOrders:
    """Every pair of a group from the side of each: rows are responses, columns the others, [R,R].

    `first` and `second` are the preferences of the row in the two orders; where an order is unjudged they are what the
    rule fills in, from both sides: by 0 it is lost for whoever asks. `there` is where the two were compared at all. Who
    was compared with nobody, since a gate stopped it or its material failed, has `alone` for a value, [R]. `figures`
    [R] say what the order did.
    """

    first: Floats
    second: Floats
    there: Bools
    alone: Floats
    present: Bools
    figures: Mapping[str, Floats]

    @property
    def outcomes(self) -> Floats:
        """What both orders come to for the row, 1, 0.5 or 0, [R,R]; 0 where nothing was compared."""
        return np.where(self.there, pairwise.outcomes(self.first, self.second), 0.0)

    @property
    def opponents(self) -> Floats:
        """With how many each was compared, [R]."""
        return _counted(self.there)


def read_pairs(cells: Cells) -> BothOrders:
    """Verdicts on ordered pairs: column j of row i is how i fared, shown first, against j.

    Figures: `flips`, the share of its opponents at which the order decided, of those judged in both; and `first`, the
    share of the verdicts on those that preferred whoever was shown first, of those that preferred somebody (else 0.5).
    Raises `PlanError` where that is not what the columns are.
    """
    size = len(cells.value)
    if cells.value.shape[1] > size or (cells.judged & cells.live)[:, : cells.value.shape[1]].diagonal()[1:].any():
        raise PlanError(
            f"{size} responses have {cells.value.shape[1]} verdicts each, where one on each ordered pair is needed; "
            "give it the verdicts of `pairwise`, asked once in each order"
        )
    live, judged = _widened(cells.live, size), _widened(cells.judged, size)
    first = _widened(cells.value, size)
    there = live & live.T & ~np.eye(size, dtype=np.bool_)
    second = np.where(judged.T, 1.0 - first.T, first.T)
    known = there & judged
    both = known & known.T
    figures = {"flips": _flips(first, second, both), "first": _toward_first(first, both)}
    return _both_orders(cells, first, second, there, figures)


def read_lists(cells: Cells) -> BothOrders:
    """Verdicts of two listings: column s of row i is how high i was ranked in listing s, of which one is reversed.

    Figures: `flips`, as for pairs. Who stood first in which listing, the cells do not say.
    Raises `PlanError` where there are others than two.
    """
    size, listings = cells.value.shape
    if listings > 2:
        raise PlanError(
            f"{listings} listings were asked for, where one in each order is needed; give it the verdicts of `listwise`"
        )
    live, judged, value = _widened(cells.live, 2), _widened(cells.judged, 2), _widened(cells.value, 2)
    first, second = (_ranked(value[:, each], judged[:, each]) for each in (0, 1))
    asked, known = np.asarray(live.all(axis=1)), np.asarray(judged.all(axis=1))
    there = asked[:, None] & asked & ~np.eye(size, dtype=np.bool_)
    figures = {"flips": _flips(first, second, there & known[:, None] & known)}
    return _both_orders(cells, first, second, there, figures)


READERS: dict[Shown, Callable[[Cells], BothOrders]] = {"pairs": read_pairs, "lists": read_lists}


def _both_orders(
    cells: Cells, first: Floats, second: Floats, there: Bools, figures: Mapping[str, Floats]
) -> BothOrders:
    """A cell that is not judged and stands for no pair is all that there is of a response: its value is that."""
    alone = np.max(np.where(cells.live & ~cells.judged, cells.value, 0.0), axis=1)
    return BothOrders(first, second, there, alone, np.asarray(cells.live.any(axis=1)), figures)


def _flips(first: Floats, second: Floats, judged: Bools) -> Floats:
    return _counted(judged & pairwise.flips(first, second)) / np.maximum(_counted(judged), 1.0)


def _toward_first(first: Floats, known: Bools) -> Floats:
    """Each verdict on a pair is one on both of it."""
    decided, won = known & (first != 0.5), known & (first > 0.5)
    verdicts = _counted(decided) + _counted(decided.T)
    return np.where(verdicts > 0, (_counted(won) + _counted(won.T)) / np.maximum(verdicts, 1.0), 0.5)


def _ranked(value: Floats, judged: Bools) -> Floats:
    """Who of two is ranked higher, from the side of the row; where one is unjudged, what the rule fills in for it."""
    above = np.where(value[:, None] > value, 1.0, np.where(value[:, None] < value, 0.0, 0.5))
    filled = np.where(judged[:, None], value, value[:, None])
    return np.where(judged[:, None] & judged, above, filled)


def _widened(columns: Grid, width: int) -> Grid:
    """With columns of nothing behind, for opponents that nobody was compared with."""
    return np.pad(columns, ((0, 0), (0, width - columns.shape[1])))


def _counted(where: Bools) -> Floats:
    return np.asarray(aggregation.total(np.where(where, 1.0, 0.0)))
