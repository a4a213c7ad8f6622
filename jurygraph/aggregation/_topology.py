"""Topological order of a rubric graph, and the refusal of edges for which there is none."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NoReturn

from jurygraph.errors import GraphCycleError, GraphError

Edge = tuple[int, int]


def check_edges(edges: Sequence[Edge], names: Sequence[str] | None) -> None:
    """Refuse an edge from a criterion to itself, and a second edge between the same two criteria, of any kind."""
    seen: dict[Edge, int] = {}
    for index, (parent, child) in enumerate(edges):
        if parent == child:
            raise GraphError(f"edge {index} leads from criterion {_node_name(parent, names)} to itself")
        if (parent, child) in seen:
            pair = f"{_node_name(parent, names)} -> {_node_name(child, names)}"
            raise GraphError(f"edges {seen[parent, child]} and {index} are both {pair}: a pair has one edge at most")
        seen[parent, child] = index


def topological_order(n: int, edges: Sequence[Edge], names: Sequence[str] | None) -> tuple[int, ...]:
    """Return the topological order by Kahn's algorithm, smallest index first, independent of the order of edges."""
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


def _refuse_cycle(remaining: list[int], edges: Sequence[Edge], names: Sequence[str] | None) -> NoReturn:
    """Raise GraphCycleError naming one cycle.

    Each remaining node has a parent that remains, so following parents always reaches a cycle.
    """
    remaining_nodes = set(remaining)
    parent_of = {
        child: parent
        for parent, child in sorted(edges, reverse=True)
        if parent in remaining_nodes and child in remaining_nodes
    }
    node = remaining[0]
    for _ in remaining:
        node = parent_of[node]
    cycle_nodes = [node]
    while (parent := parent_of[cycle_nodes[-1]]) != node:
        cycle_nodes.append(parent)
    cycle_nodes.reverse()
    start = cycle_nodes.index(min(cycle_nodes))
    cycle = cycle_nodes[start:] + cycle_nodes[: start + 1]
    raise GraphCycleError(cycle, names=list(names) if names else None)


def _node_name(node: int, names: Sequence[str] | None) -> str:
    return names[node] if names else str(node)
