"""Which edges of a large graph run beside its rows, and in which columns there.

A lane in every row that an edge passes takes room and time that grow with the square of the graph where many edges are
long. Where the lanes would be too many, the long edges leave the rows: those of one node share a trunk, a line that
runs straight down beside all rows, and trunks that pass no common row share a column.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

_LANES, _LANES_PER_ITEM = 200, 2
"""How many lanes a graph may have, and how many more for each node and edge."""
_SHORT = 2
"""An edge that passes as many rows or fewer keeps its lanes."""

Edge = tuple[int, int]


class Trunks(NamedTuple):
    """The trunk of each edge that has one, by the edge's number; and the column of each trunk, from 0 on."""

    of_edge: Mapping[int, int]
    columns: Sequence[int]


def find_trunks(edges: Sequence[Edge], row_of: Mapping[int, int], styles: Sequence[Hashable]) -> Trunks:
    """Return the trunks of a graph whose nodes have these rows; a graph with few lanes has none.

    Edges that share a trunk have one end in common, and the same style.
    """
    passed = [row_of[child] - row_of[parent] - 1 for parent, child in edges]
    if sum(passed) <= _LANES + _LANES_PER_ITEM * (len(row_of) + len(edges)):
        return Trunks({}, ())
    fans = _fans(edges, [number for number, rows in enumerate(passed) if rows > _SHORT], styles)
    extents = [
        (1 + min(row_of[edges[number][0]] for number in fan), max(row_of[edges[number][1]] for number in fan) - 1)
        for fan in fans
    ]
    return Trunks({number: trunk for trunk, fan in enumerate(fans) for number in fan}, _columns(extents))


def _fans(edges: Sequence[Edge], long: Sequence[int], styles: Sequence[Hashable]) -> list[list[int]]:
    """Return the long edges, by their numbers, in groups with a common end: that at which more of them meet."""
    ends = {number: [(end, edges[number][end], styles[number]) for end in (0, 1)] for number in long}
    meeting = Counter(end for both in ends.values() for end in both)
    fans: dict[Hashable, list[int]] = {}
    for number, both in ends.items():
        fans.setdefault(max(both, key=meeting.__getitem__), []).append(number)
    return list(fans.values())


def _columns(extents: Sequence[tuple[int, int]]) -> list[int]:
    """Return a column for each extent, the first and last row that it passes.

    One column holds several where at least one row lies between them. No assignment needs fewer columns.
    """
    columns = [0] * len(extents)
    free: list[int] = []
    used: list[tuple[int, int]] = []
    for place in sorted(range(len(extents)), key=extents.__getitem__):
        first, last = extents[place]
        while used and used[0][0] < first - 1:
            heappush(free, heappop(used)[1])
        columns[place] = heappop(free) if free else len(used)
        heappush(used, (last, columns[place]))
    return columns
