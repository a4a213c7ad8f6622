"""Which reviewer rates which item: balanced over reviewers and strata, otherwise at random."""

from collections.abc import Hashable, Sequence

import numpy as np

from jurygraph.arrays import Bools, Ints

_ROUNDS = 30
"""Trades of every item; the overlaps of reviewers no longer change in distribution after about ten."""


def assign_reviewers(strata: Sequence[Hashable], reviewers: int, per_item: int, rng: np.random.Generator) -> Bools:
    """Return who rates which item, [items, reviewers]: each item has `per_item` reviewers.

    Numbers of items of two reviewers differ by at most one: of all, of each stratum, and, as strata are sorted, of all
    strata with the same beginning, such as those of an agent among (agent, domain). Within that, every assignment is
    as likely as any other.

    `strata` has the stratum of each item; all can be compared. 1 <= `per_item` <= `reviewers`.
    """
    ranks = {one: rank for rank, one in enumerate(sorted(set(strata)))}  # type: ignore[type-var]
    codes = np.array([ranks[one] for one in strata], dtype=np.intp)
    order = np.lexsort((rng.random(len(codes)), codes))
    # Dealt round the table, any run of items is balanced: all of them, and each stratum.
    seats = rng.permutation(reviewers)[np.arange(len(codes) * per_item).reshape(-1, per_item) % reviewers]
    assigned = np.zeros((len(codes), reviewers), dtype=np.bool_)
    assigned[order[:, None], seats] = True
    for _ in range(_ROUNDS):
        _trade(assigned, codes, rng)
    return assigned


def _trade(assigned: Bools, codes: Ints, rng: np.random.Generator) -> None:
    """Let random pairs of items of a stratum exchange reviewers at random; every number of items stays as it is.

    Otherwise neighbours at the table would always rate the same items. (The curveball algorithm, Strona et al. 2014,
    whose limit is the uniform distribution.)
    """
    order = np.lexsort((rng.random(len(codes)), codes))
    first = order[:-1:2]
    second = order[1::2]
    is_pair = codes[first] == codes[second]
    first = first[is_pair]
    second = second[is_pair]
    differs = assigned[first] ^ assigned[second]
    number = (assigned[first] & differs).sum(axis=1)
    keys = np.where(differs, rng.random(differs.shape), np.inf)
    ranks = keys.argsort(axis=1).argsort(axis=1)
    taken = ranks < number[:, None]
    common = assigned[first] & ~differs
    assigned[first] = common | taken
    assigned[second] = common | (differs & ~taken)
