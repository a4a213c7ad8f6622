"""Majority vote of annotators, one vote each: the baseline, and the margins of its decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.result import Credited
from jurygraph.aggregation.consensus.votes import Key, Votes, encode, known_classes
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import PlanError

Ties = Literal["shared", "first", "lowest", "highest"]


@dataclass(frozen=True)
class MajorityVote(Credited):
    """The majority's class of each item.

    `posterior` [N,K] is certain; if ties are shared, each of n tied classes has 1/n. `tied` [N] marks items with
    several leading classes; `margin` [N] is the number of votes by which the first class leads the second. An item with
    margin 1 changes or becomes tied if one annotator is left out: ranks by majority are not stable there (STABLEVAL,
    Proposition 1). An item without a label has equal probabilities and margin 0.
    """

    tied: Bools
    margin: Ints

    def items_with_margin_one(self) -> list[Key]:
        """Return the items that one vote decides, in their order."""
        return [self.items[index] for index in np.flatnonzero(self.margin == 1).tolist()]


def majority_vote(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    ties: Ties = "shared",
    *,
    classes: Sequence[Key] | None = None,
    gold: Mapping[Any, Any] | None = None,
) -> MajorityVote:
    """Return the most frequent label of each item; columns and errors as for `fit`.

    Args:
        ties: winner of a tie: all tied classes equally (`shared`), the label that comes first in the rows (`first`, as
            in STABLEVAL's tables of real votes), or the `lowest` or `highest` class (`highest` in its simulations).
        gold: known class by item, which overrides the votes.
    """
    votes = encode(item, annotator, label, classes)
    return vote(votes, ties, known_classes(votes, gold or {}))


def vote(votes: Votes, ties: Ties, known: Ints) -> MajorityVote:
    """Apply `majority_vote` to encoded rows. `known` [N] is the class of a gold item, -1 for any other."""
    if ties not in ("shared", "first", "lowest", "highest"):
        raise PlanError(f"ties is {ties!r}: shared, first, lowest or highest is needed")
    counts = votes.counts
    k = len(votes.classes)
    ranked = np.sort(counts, axis=1)
    margin = ranked[:, -1] - (ranked[:, -2] if k > 1 else 0)
    is_leading = counts == ranked[:, -1:]
    posterior = (
        is_leading / is_leading.sum(axis=1, keepdims=True)
        if ties == "shared"
        else np.eye(k)[_break_ties(votes, is_leading, ties)]
    )
    unlabelled = ranked[:, -1] == 0
    posterior[unlabelled] = 1.0 / k
    posterior[known >= 0] = np.eye(k)[known[known >= 0]]
    return MajorityVote(votes, posterior, (is_leading.sum(axis=1) > 1) & ~unlabelled, margin)


def _break_ties(votes: Votes, is_leading: Bools, ties: Ties) -> Ints:
    n, k = is_leading.shape
    if ties == "lowest":
        return np.asarray(is_leading.argmax(axis=1))
    if ties == "highest":
        return np.asarray(k - 1 - is_leading[:, ::-1].argmax(axis=1))
    first_row = np.full((n, k), len(votes.item))
    first_row[votes.item[::-1], votes.label[::-1]] = np.arange(len(votes.item) - 1, -1, -1)
    return np.asarray(np.where(is_leading, first_row, len(votes.item)).argmin(axis=1))


@dataclass(frozen=True)
class VoteAgreement:
    """Agreement of the annotators: `unanimous` is the share of items of which all rows have the same label; `pairwise`
    the mean over items of the share of pairs of rows that agree (1 for an item with one row)."""

    unanimous: float
    pairwise: float


def agreement(votes: Votes) -> VoteAgreement:
    """Return the agreement over the items that have a label."""
    counts = votes.counts[votes.has_label]
    size = counts.sum(axis=1)
    pairs = size * (size - 1) / 2
    agreeing = (counts * (counts - 1) / 2).sum(axis=1)
    share: Floats = np.where(pairs > 0, agreeing / np.where(pairs > 0, pairs, 1.0), 1.0)
    return VoteAgreement(float((counts.max(axis=1) == size).mean()), float(share.mean()))
