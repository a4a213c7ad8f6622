"""What most annotators say, one vote each: the baseline, and how thin its decisions are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import BoolArray, FloatArray, IndexArray
from jurygraph.aggregation.consensus.result import Credited
from jurygraph.aggregation.consensus.votes import Key, Votes, encode, known_classes
from jurygraph.errors import PlanError

Ties = Literal["shared", "first", "lowest", "highest"]


@dataclass(frozen=True)
class MajorityVote(Credited):
    """The majority's class of each item. `posterior` [N,K] is certain, and where ties are shared 1/n of n classes.

    `tied` [N] are items that several classes lead; `margin` [N] is by how many votes the first leads the second. An
    item with margin 1 turns, or is tied, without one annotator: ranks by majority are not stable there (STABLEVAL,
    Proposition 1). An item without a label has every class alike, and margin 0.
    """

    tied: BoolArray
    margin: IndexArray

    def decided_by_one(self) -> list[Key]:
        """The items that one vote decides, in their order."""
        return [self.items[one] for one in np.flatnonzero(self.margin == 1).tolist()]


def majority_vote(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    ties: Ties = "shared",
    *,
    classes: Sequence[Key] | None = None,
    gold: Mapping[Any, Any] | None = None,
) -> MajorityVote:
    """The class that most rows of an item say; columns and errors as for `fit`.

    Args:
        ties: who wins a tie: nobody (`shared`), the label that stands first in the rows (`first`, as in STABLEVAL's
            tables of real votes), or the `lowest` or `highest` class (`highest` in its simulations).
        gold: items whose class is known, whatever was voted.
    """
    votes = encode(item, annotator, label, classes)
    return vote(votes, ties, known_classes(votes, gold or {}))


def vote(votes: Votes, ties: Ties, known: IndexArray) -> MajorityVote:
    """`majority_vote` of rows that are codes already. `known` [N] is the class of a gold item, -1 of any other."""
    if ties not in ("shared", "first", "lowest", "highest"):
        raise PlanError(f"ties is {ties!r}: shared, first, lowest or highest is needed")
    counts = votes.counts
    k = len(votes.classes)
    ranked = np.sort(counts, axis=1)
    margin = ranked[:, -1] - (ranked[:, -2] if k > 1 else 0)
    leads = counts == ranked[:, -1:]
    posterior = leads / leads.sum(axis=1, keepdims=True) if ties == "shared" else np.eye(k)[_winner(votes, leads, ties)]
    silent = ranked[:, -1] == 0
    posterior[silent] = 1.0 / k
    posterior[known >= 0] = np.eye(k)[known[known >= 0]]
    return MajorityVote(votes, posterior, (leads.sum(axis=1) > 1) & ~silent, margin)


def _winner(votes: Votes, leads: BoolArray, ties: Ties) -> IndexArray:
    n, k = leads.shape
    if ties == "lowest":
        return np.asarray(leads.argmax(axis=1))
    if ties == "highest":
        return np.asarray(k - 1 - leads[:, ::-1].argmax(axis=1))
    first = np.full((n, k), len(votes.item))
    first[votes.item[::-1], votes.label[::-1]] = np.arange(len(votes.item) - 1, -1, -1)
    return np.asarray(np.where(leads, first, len(votes.item)).argmin(axis=1))


@dataclass(frozen=True)
class Agreement:
    """How far the annotators agree: the share of items of which all rows say the same, and the mean over items of the
    share of pairs of rows that agree (1 for an item with one row)."""

    unanimous: float
    pairwise: float


def agreement(votes: Votes) -> Agreement:
    """Over the items that have a label."""
    counts = votes.counts[votes.labelled]
    size = counts.sum(axis=1)
    pairs = size * (size - 1) / 2
    agreeing = (counts * (counts - 1) / 2).sum(axis=1)
    share: FloatArray = np.where(pairs > 0, agreeing / np.where(pairs > 0, pairs, 1.0), 1.0)
    return Agreement(float((counts.max(axis=1) == size).mean()), float(share.mean()))
