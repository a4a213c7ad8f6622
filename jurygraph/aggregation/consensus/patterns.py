"""Items that got the same labels of the same annotators are one pattern with a weight: no model can tell them apart.

Real votes repeat themselves: ConvAbuse's 2,894 items are a few hundred patterns, and every step takes as much less.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jurygraph.aggregation._inputs import FloatArray, IndexArray
from jurygraph.aggregation.consensus.votes import Votes


@dataclass(frozen=True)
class Patterns:
    """P patterns of the N items.

    Attributes:
        weight: how many items a pattern is, [P].
        of: the pattern of each item, [N]; -1 for one without a label.
        code: annotator · K + label of each row, [M], pattern by pattern.
        row: the pattern of each row, [M].
        start: the first row of each pattern, [P].
        cells: A · K, one more than the greatest code can be.
    """

    weight: FloatArray
    of: IndexArray
    code: IndexArray
    row: IndexArray
    start: IndexArray
    cells: int

    @cached_property
    def matrix(self) -> Any:
        """How often each code stands in each pattern, sparse, [P, cells]."""
        from scipy.sparse import csr_array

        ends = np.append(self.start, len(self.code))
        return csr_array((np.ones(len(self.code)), self.code, ends), shape=(len(self.weight), self.cells))

    def weighed(self, weight: FloatArray) -> "Patterns":
        """The same patterns with other weights [P]; those of weight 0 are left out, and their items are of none."""
        kept = weight > 0
        size = np.diff(self.start, append=len(self.code))
        place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last is for items of no pattern
        return Patterns(
            weight=weight[kept],
            of=place[self.of],
            code=self.code[np.repeat(kept, size)],
            row=np.repeat(np.arange(np.count_nonzero(kept)), size[kept]),
            start=np.cumsum(size[kept]) - size[kept],
            cells=self.cells,
        )


def patterns(votes: Votes, apart: IndexArray) -> Patterns:
    """The patterns of the items. `apart` [N], from 0 on: items of different numbers are never one pattern."""
    n, annotators, classes = votes.shape
    cells = annotators * classes
    size = np.bincount(votes.item)
    labelled = np.flatnonzero(size)
    size = size[labelled]
    code = np.sort(votes.item * cells + votes.annotator * classes + votes.label) - np.repeat(labelled * cells, size)
    start = np.cumsum(size) - size
    first, same = _alike(code, start, size, apart[labelled], cells)
    of = np.full(n, -1)
    of[labelled] = same
    kept = np.zeros(len(labelled), dtype=np.bool_)
    kept[first] = True
    weight = np.zeros(len(first))
    np.add.at(weight, same, 1.0)
    return Patterns(
        weight=weight,
        of=of,
        code=code[np.repeat(kept, size)],
        row=np.repeat(np.arange(len(first)), size[first]),
        start=np.cumsum(size[first]) - size[first],
        cells=cells,
    )


def _alike(
    code: IndexArray, start: IndexArray, size: IndexArray, group: IndexArray, cells: int
) -> tuple[IndexArray, IndexArray]:
    """The first item of each pattern, in order, and the pattern of each item.

    By the sum of a random number for each code, and then row by row; where two patterns should share a sum, every item
    is a pattern of its own.
    """
    mark = np.random.default_rng(0).integers(0, 2**64, size=cells + int(group.max()) + 1, dtype=np.uint64)
    sums = np.add.reduceat(mark[code], start) + mark[cells + group]
    _, first, same = np.unique(sums, return_index=True, return_inverse=True)
    if len(first) == len(start):
        return np.arange(len(start)), np.arange(len(start))
    other = first[same]
    if (size[other] == size).all() and (group[other] == group).all():
        within = np.arange(len(code)) - np.repeat(start, size)
        if (code[np.repeat(start[other], size) + within] == code).all():
            order = np.argsort(first)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            return first[order], place[same]
    return np.arange(len(start)), np.arange(len(start))
