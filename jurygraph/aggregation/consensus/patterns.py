"""Patterns: items with the same labels by the same annotators, as one weighted row. No model can distinguish them.

Real votes repeat: the 2,894 items of ConvAbuse are a few hundred patterns, and each step takes that much less time.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jurygraph.aggregation.arrays import Floats, Ints
from jurygraph.aggregation.consensus.votes import Votes


@dataclass(frozen=True)
class Patterns:
    """P patterns of the N items.

    Attributes:
        weight: the number of items of each pattern, [P].
        of: the pattern of each item, [N]; -1 for an item without a label.
        code: annotator · K + label of each row, [M], pattern by pattern.
        row: the pattern of each row, [M].
        start: the first row of each pattern, [P].
        cells: A · K, one more than the largest possible code.
    """

    weight: Floats
    pattern_of_item: Ints
    code: Ints
    row: Ints
    start: Ints
    cells: int

    @cached_property
    def matrix(self) -> Any:
        """Return how often each code occurs in each pattern, sparse, [P, cells]."""
        from scipy.sparse import csr_array

        ends = np.append(self.start, len(self.code))
        return csr_array((np.ones(len(self.code)), self.code, ends), shape=(len(self.weight), self.cells))

    def with_weights(self, weight: Floats) -> "Patterns":
        """Return the patterns with other weights [P].

        Patterns of weight 0 are left out, and their items get pattern -1.
        """
        is_kept = weight > 0
        size = np.diff(self.start, append=len(self.code))
        new_index = np.append(np.where(is_kept, np.cumsum(is_kept) - 1, -1), -1)  # last entry: items of no pattern
        return Patterns(
            weight=weight[is_kept],
            pattern_of_item=new_index[self.pattern_of_item],
            code=self.code[np.repeat(is_kept, size)],
            row=np.repeat(np.arange(np.count_nonzero(is_kept)), size[is_kept]),
            start=np.cumsum(size[is_kept]) - size[is_kept],
            cells=self.cells,
        )


def patterns(votes: Votes, group: Ints) -> Patterns:
    """Return the patterns of the items. `group` [N], from 0 on: items of different numbers are never in one pattern."""
    n, annotators, classes = votes.shape
    cells = annotators * classes
    size = np.bincount(votes.item)
    labelled = np.flatnonzero(size)
    size = size[labelled]
    code = np.sort(votes.item * cells + votes.annotator * classes + votes.label) - np.repeat(labelled * cells, size)
    start = np.cumsum(size) - size
    first, pattern_of = _group_equal_items(code, start, size, group[labelled], cells)
    of = np.full(n, -1)
    of[labelled] = pattern_of
    is_kept = np.zeros(len(labelled), dtype=np.bool_)
    is_kept[first] = True
    weight = np.zeros(len(first))
    np.add.at(weight, pattern_of, 1.0)
    return Patterns(
        weight=weight,
        pattern_of_item=of,
        code=code[np.repeat(is_kept, size)],
        row=np.repeat(np.arange(len(first)), size[first]),
        start=np.cumsum(size[first]) - size[first],
        cells=cells,
    )


def _group_equal_items(code: Ints, start: Ints, size: Ints, group: Ints, cells: int) -> tuple[Ints, Ints]:
    """Return the first item of each pattern, in order, and the pattern of each item.

    Items are compared by the sum of a random number for each code, and then row by row. If two different patterns have
    the same sum, every item becomes a pattern of its own.
    """
    hashes = np.random.default_rng(0).integers(0, 2**64, size=cells + int(group.max()) + 1, dtype=np.uint64)
    sums = np.add.reduceat(hashes[code], start) + hashes[cells + group]
    _, first, pattern_of = np.unique(sums, return_index=True, return_inverse=True)
    if len(first) == len(start):
        return np.arange(len(start)), np.arange(len(start))
    representative = first[pattern_of]
    if (size[representative] == size).all() and (group[representative] == group).all():
        offset = np.arange(len(code)) - np.repeat(start, size)
        if (code[np.repeat(start[representative], size) + offset] == code).all():
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return first[order], rank[pattern_of]
    return np.arange(len(start)), np.arange(len(start))
