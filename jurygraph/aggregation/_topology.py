"""The order in which a rubric graph is walked, and the refusal of edges that leave none."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NoReturn

from jurygraph.errors import GraphCycleError, GraphError

Edge = tuple[int, int]


def refuse_repeats(edges: Sequence[Edge], names: Sequence[str] | None) -> None:
    """Refuse an edge from a criterion to itself, and a second edge between the same two, of whatever kind."""
    seen: dict[Edge, int] = {}
    for index, (parent, child) in enumerate(edges):
        if parent == child:
            raise GraphError(f"edge {index} leads from criterion {_shown(parent, names)} to itself")
        if (parent, child) in seen:
            pair = f"{_shown(parent, names)} -> {_shown(child, names)}"
            raise GraphError(f"edges {seen[parent, child]} and {index} are both {pair}: a pair has one edge at most")
        seen[parent, child] = index


def topological_order(n: int, edges: Sequence[Edge], names: Sequence[str] | None) -> tuple[int, ...]:
    """Kahn's order, the smallest index first, so that it does not depend on the order of the edges."""
    children: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    for parent, child in edges:
        children[parent].append(child)
        waiting[child] += 1
    ready = [i for i in range(n) if not waiting[i]]
    heapify(ready)
    order: list[int] = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heappush(ready, child)
    if len(order) < n:
        _refuse_cycle([i for i in range(n) if waiting[i]], edges, names)
    return tuple(order)


def _refuse_cycle(left: list[int], edges: Sequence[Edge], names: Sequence[str] | None) -> NoReturn:
    """Name one cycle: each node that is left has a parent that is left, so walking up must come round."""
    among = set(left)
    parent_of = {child: parent for parent, child in sorted(edges, reverse=True) if parent in among and child in among}
    node = left[0]
    for _ in left:
        node = parent_of[node]
    ring = [node]
    while (parent := parent_of[ring[-1]]) != node:
        ring.append(parent)
    ring.reverse()
    start = ring.index(min(ring))
    cycle = ring[start:] + ring[: start + 1]
    raise GraphCycleError(cycle, names=list(names) if names else None)


def _shown(node: int, names: Sequence[str] | None) -> str:
    return names[node] if names else str(node)
