"""Choose the edges of a large graph that run to the right of its rows, and their columns.

Lanes in every row that an edge passes take space and time quadratic in the size of the graph if many edges are long. If
there would be too many lanes, the long edges leave the rows: those with a common node share a trunk, a line that runs
straight down to the right of all rows, and trunks that pass no common row share a column.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

_MAX_LANES, _LANES_PER_ITEM = 200, 2
"""Maximum number of lanes of a graph, and additional lanes for each node and edge."""
_MAX_SHORT = 2
"""Edges that pass at most this many rows keep their lanes."""

Edge = tuple[int, int]


class Trunks(NamedTuple):
    """The trunk of each edge that has one, by the number of the edge, and the column of each trunk, from 0 on."""

    of_edge: Mapping[int, int]
    columns: Sequence[int]


def find_trunks(edges: Sequence[Edge], row_of: Mapping[int, int], styles: Sequence[Hashable]) -> Trunks:
    """Return the trunks of a graph whose nodes have these rows; a graph with few lanes has none.

    Edges that share a trunk have a common end, and the same style.
    """
    passed = [row_of[child] - row_of[parent] - 1 for parent, child in edges]
    if sum(passed) <= _MAX_LANES + _LANES_PER_ITEM * (len(row_of) + len(edges)):
        return Trunks({}, ())
    fans = _group_by_end(edges, [number for number, rows in enumerate(passed) if rows > _MAX_SHORT], styles)
    extents = [
        (1 + min(row_of[edges[number][0]] for number in fan), max(row_of[edges[number][1]] for number in fan) - 1)
        for fan in fans
    ]
    return Trunks({number: trunk for trunk, fan in enumerate(fans) for number in fan}, _assign_columns(extents))


def _group_by_end(edges: Sequence[Edge], long: Sequence[int], styles: Sequence[Hashable]) -> list[list[int]]:
    """Return the long edges, by number, in groups with a common end: of its two ends, that of more long edges."""
    ends = {number: [(end, edges[number][end], styles[number]) for end in (0, 1)] for number in long}
    meeting = Counter(end for both in ends.values() for end in both)
    fans: dict[Hashable, list[int]] = {}
    for number, both in ends.items():
        fans.setdefault(max(both, key=meeting.__getitem__), []).append(number)
    return list(fans.values())


def _assign_columns(extents: Sequence[tuple[int, int]]) -> list[int]:
    """Return a column for each extent, the first and last row that it passes.

    A column holds several extents if at least one row lies between them. No assignment needs fewer columns.
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
