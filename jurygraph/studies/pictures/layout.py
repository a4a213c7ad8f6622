"""Layered layout of a graph (Sugiyama): positions of the boxes, parents above children, and routes of the edges.

A row holds a few boxes, so that a broad graph grows downwards. An edge that passes a row has a lane of its own there.
Lanes take space and time quadratic in the size of the graph if many edges are long: if there would be too many, the
long edges leave the rows, and those with a common node share a trunk, a line that runs straight down to the right of
all rows.

Items are numbered: nodes from 0 on, lanes after them, and trunks from -1 down.
"""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from math import ceil, sqrt
from typing import NamedTuple

WIDTH, LANE = 236.0, 8.0
_BOX_SPACING, _LANE_SPACING = 30.0, 16.0
_GAP, _GAP_PER_EDGE, _MAX_GAP = 56.0, 5.0, 150.0
_SWEEPS = 12
_MAX_LANES, _LANES_PER_ITEM = 200, 2
"""Maximum number of lanes of a graph without trunks, and additional lanes for each node and edge."""
_MAX_SHORT = 2
"""Edges that pass at most this many rows keep their lanes."""

Point = tuple[float, float]
Edges = Sequence[tuple[int, int]]
Rows = list[list[int]]
Neighbours = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `x` and `y` are its upper left corner."""

    x: float
    y: float
    height: float
    width: float = WIDTH


@dataclass(frozen=True, slots=True)
class Layout:
    """A box for each node, and a route for each edge, from the bottom of its parent to the top of its child.

    From its first point a route runs straight down to the second. The others come in pairs: between the two points of a
    pair it crosses the gap between two rows, and from one pair to the next it runs straight down through a row.
    """

    boxes: tuple[Box, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def compute_layout(
    heights: Sequence[float], edges: Edges, order: Sequence[int], styles: Sequence[Hashable] | None = None
) -> Layout:
    """Return the layout of nodes of these heights; the same input gives the same layout.

    `order` is a topological order of the nodes. `styles` describes how each edge is drawn: only edges of the same style
    share a line. None if all have the same style.
    """
    n = len(heights)
    rows, row_of = _rows_of_nodes(n, edges, order)
    trunks = find_trunks(edges, row_of, styles or [None] * len(edges))
    rows, chains = _add_lanes(rows, row_of, edges, trunks)
    pairs = [pair for number, chain in enumerate(chains) if number not in trunks.of_edge for pair in pairwise(chain)]
    above, below = _neighbours((lower, upper) for upper, lower in pairs), _neighbours(pairs)
    rows = _order_rows(rows, above, below)
    x = _x_positions(rows, above, below, n)
    breadth = max(x[item] + _breadth(item, n) / 2 for row in rows for item in row)
    columns = [breadth + _LANE_SPACING + LANE / 2 + (LANE + _LANE_SPACING) * column for column in trunks.columns]
    x |= {-1 - number: at for number, at in enumerate(columns)}
    row_of = {item: number for number, row in enumerate(rows) for item in row}
    tops, feet = _y_positions(rows, row_of, chains, heights)
    boxes = tuple(Box(x[i] - WIDTH / 2, tops[row_of[i]], height) for i, height in enumerate(heights))
    leaves, enters = _ports(chains, x, up=False), _ports(chains, x, up=True)
    routes = []
    for number, (first, *passed, last) in enumerate(chains):
        route = [(leaves[number], boxes[first].y + boxes[first].height), (leaves[number], feet[row_of[first]])]
        for item in passed:  # straight down through the row of a lane, or along a trunk
            start, end = (row_of[first] + 1, row_of[last] - 1) if item < 0 else (row_of[item], row_of[item])
            route += [(x[item], tops[start]), (x[item], feet[end])]
        routes.append((*route, (enters[number], boxes[last].y)))
    return Layout(boxes, tuple(routes), max([breadth, *(at + LANE / 2 for at in columns)]), feet[-1])


def _rows_of_nodes(n: int, edges: Edges, order: Sequence[int]) -> tuple[Rows, dict[int, int]]:
    """Return the nodes of each row, and the row of each node; nodes without edges are below the others."""
    parents = _neighbours((child, parent) for parent, child in edges)
    depth: dict[int, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[parent] for parent in parents.get(node, ())), default=-1)
    isolated = set(range(n)).difference(*edges)
    max_row_size = max(4, ceil(1.2 * sqrt(n)))
    rows: Rows = []
    row_of: dict[int, int] = {}
    first_free = 0
    for node in sorted(range(n), key=lambda node: (node in isolated, depth[node], node)):
        row = first_free if node in isolated else 1 + max((row_of[one] for one in parents.get(node, ())), default=-1)
        while row < len(rows) and len(rows[row]) >= max_row_size:
            row += 1
        rows.extend([] for _ in range(row + 1 - len(rows)))
        rows[row].append(node)
        row_of[node] = row
        first_free = row if node in isolated else max(first_free, row + 1)
    return rows, row_of


def _neighbours(pairs: Iterable[tuple[int, int]]) -> Neighbours:
    """Return by the first item of pairs the second ones."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for item, other in pairs:
        neighbours[item].append(other)
    return dict(neighbours)


class Trunks(NamedTuple):
    """The trunk of each edge that has one, by the number of the edge, and the column of each trunk, from 0 on."""

    of_edge: Mapping[int, int]
    columns: Sequence[int]


def find_trunks(edges: Edges, row_of: Mapping[int, int], styles: Sequence[Hashable]) -> Trunks:
    """Return the trunks of a graph whose nodes have these rows; a graph with few lanes has none.

    Edges that share a trunk have a common end, and the same style. Trunks that pass no common row may share a column.
    """
    passed = [row_of[child] - row_of[parent] - 1 for parent, child in edges]
    if sum(passed) <= _MAX_LANES + _LANES_PER_ITEM * (len(row_of) + len(edges)):
        return Trunks({}, ())
    ends = {
        number: [(end, edges[number][end], styles[number]) for end in (0, 1)]
        for number, rows in enumerate(passed)
        if rows > _MAX_SHORT
    }
    long_edges_at = Counter(end for both in ends.values() for end in both)
    fans: dict[Hashable, list[int]] = defaultdict(list)
    for number, both in ends.items():
        fans[max(both, key=long_edges_at.__getitem__)].append(number)
    extents = [
        (1 + min(row_of[edges[number][0]] for number in fan), max(row_of[edges[number][1]] for number in fan) - 1)
        for fan in fans.values()
    ]
    of_edge = {number: trunk for trunk, fan in enumerate(fans.values()) for number in fan}
    return Trunks(of_edge, _assign_columns(extents))


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


def _add_lanes(rows: Rows, row_of: Mapping[int, int], edges: Edges, trunks: Trunks) -> tuple[Rows, Rows]:
    """Return the rows with lanes, and the items of each edge: its parent, the lanes or the trunk that it passes, and
    its child."""
    lefts: Rows = [[] for _ in rows]
    rights: Rows = [[] for _ in rows]
    chains, lane = [], len(row_of)
    for number, (parent, child) in enumerate(edges):
        if number in trunks.of_edge:
            chains.append([parent, -1 - trunks.of_edge[number], child])
            continue
        passed = range(row_of[parent] + 1, row_of[child])
        for row in passed:  # alternately on the left and on the right
            (lefts if number % 2 else rights)[row].append(lane + row - passed.start)
        chains.append([parent, *range(lane, lane + len(passed)), child])
        lane += len(passed)
    return [[*reversed(left), *row, *right] for left, row, right in zip(lefts, rows, rights, strict=True)], chains


def _order_rows(rows: Rows, above: Neighbours, below: Neighbours) -> Rows:
    """Return the rows in the order with the fewest crossings that sweeps by barycentre find."""
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        rows, neighbours = list(rows), (above, below)[sweep % 2]
        place = {item: i for row in rows for i, item in enumerate(row)}
        for number in range(len(rows)) if sweep % 2 == 0 else reversed(range(len(rows))):
            mean = {item: _mean(place, neighbours.get(item, (item,))) for item in rows[number]}
            rows[number] = sorted(rows[number], key=mean.__getitem__)
            place.update((item, i) for i, item in enumerate(rows[number]))
        if (count := _crossings(rows, below)) < fewest:
            best, fewest = rows, count
    return best


def _crossings(rows: Rows, below: Neighbours) -> int:
    place = {item: i for row in rows for i, item in enumerate(row)}
    return sum(
        count_inversions([at for item in row for at in sorted(place[other] for other in below.get(item, ()))])
        for row in rows
    )


def count_inversions(places: Sequence[int]) -> int:
    """Return the number of pairs in which the first is larger: crossings, for edges listed by their upper ends."""
    count = 0
    seen: list[int] = []
    for number, place in enumerate(places):
        count += number - bisect_right(seen, place)
        insort(seen, place)
    return count


def _mean(values: Mapping[int, float], items: Sequence[int]) -> float:
    if len(items) == 1:  # the usual case for lanes
        return values[items[0]]
    return sum(values[item] for item in items) / len(items)


def _breadth(item: int, n: int) -> float:
    return WIDTH if item < n else LANE


def _x_positions(rows: Rows, above: Neighbours, below: Neighbours, n: int) -> dict[int, float]:
    """Return the middle of every item, from 0 on: as near to its neighbours as the order of its row allows."""
    places = [(row, _offsets(row, n)) for row in rows]
    x = {item: at - offsets[-1] / 2 for row, offsets in places for item, at in zip(row, offsets, strict=True)}
    everything = tuple(x)
    both = {item: (*above.get(item, ()), *below.get(item, ())) for item in x}
    for sweep in range(_SWEEPS):
        neighbours = both if sweep >= _SWEEPS - 2 else (above, below)[sweep % 2]
        for row, offsets in places if sweep % 2 == 0 else reversed(places):
            mid = _mean(x, everything) if not all(both[item] for item in row) else 0.0  # for items without neighbours
            wanted = [_mean(x, adjacent) if (adjacent := neighbours.get(item, both[item])) else mid for item in row]
            x.update(zip(row, _spread(wanted, offsets), strict=True))
    left = min(x[item] - _breadth(item, n) / 2 for item in x)
    return {item: at - left for item, at in x.items()}


def _offsets(row: Sequence[int], n: int) -> list[float]:
    """Return the minimum distance of each item of a row from the first."""
    positions = [0.0]
    for left, right in pairwise(row):
        spacing = _BOX_SPACING if min(left, right) < n else _LANE_SPACING
        positions.append(positions[-1] + (_breadth(left, n) + _breadth(right, n)) / 2 + spacing)
    return positions


def _spread(wanted: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """Return the places nearest to the wanted ones that keep their distances (isotonic regression by pooling)."""
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        pools.append((want - offset, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (a, m), (b, k) = pools[-2:]
            pools[-2:] = [((a * m + b * k) / (m + k), m + k)]
    places = [mean for mean, size in pools for _ in range(size)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]


def _y_positions(
    rows: Rows, row_of: Mapping[int, int], chains: Sequence[Sequence[int]], heights: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the start and end of each row; a gap that many lines cross is larger."""
    crossing = [0] * len(rows)
    for upper, lower in {pair for chain in chains for pair in pairwise(chain)}:
        crossing[row_of[upper] if upper in row_of else row_of[lower] - 1] += 1
    tops, feet, top = [], [], 0.0
    for number, row in enumerate(rows):
        tops.append(top)
        feet.append(top + max((heights[item] for item in row if item < len(heights)), default=0.0))
        top = feet[-1] + min(_MAX_GAP, _GAP + _GAP_PER_EDGE * crossing[number])
    return tops, feet


def _ports(chains: Sequence[Sequence[int]], x: Mapping[int, float], up: bool) -> list[float]:
    """Return where each edge enters the top of its child (`up`) or leaves the bottom of its parent: next to each other,
    except edges of one trunk, which share a place."""
    sides: dict[int, list[int]] = defaultdict(list)
    for number, chain in enumerate(chains):
        sides[chain[-1 if up else 0]].append(number)
    positions = [0.0] * len(chains)
    for node, numbers in sides.items():
        nearest = {number: chains[number][-2 if up else 1] for number in numbers}
        ranked = sorted(set(nearest.values()), key=lambda item: (x[item], item))
        places = {item: place for place, item in enumerate(ranked, start=1)}
        for number, item in nearest.items():
            positions[number] = x[node] + WIDTH * 0.8 * (places[item] / (len(ranked) + 1) - 0.5)
    return positions
