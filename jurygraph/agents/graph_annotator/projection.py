"""The acyclic projection: the lowest edge of each cycle is removed (GEAR, Appendix A.5)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jurygraph.schema import Edge

_KINDS = ("weak", "strong", "activation")
"""The kinds of edges in ascending rank: the first is removed first."""


class Projection(NamedTuple):
    """The kept edges, and the dropped ones, each with the cycle that it would close; all in id order."""

    kept: tuple[Edge, ...]
    dropped: tuple[tuple[Edge, tuple[str, ...]], ...]


def project(edges: Iterable[Edge], standing: Iterable[Edge] = ()) -> Projection:
    """Return the edges without those that close a cycle with higher ones; edges in `standing` rank highest.

    Weak edges rank below strong ones, and these below activations; within a kind, less confident edges rank lower, and
    of equal ones those with smaller ids (our reading, since the paper leaves this open). So an edge on no cycle stays,
    a dropped edge would close a cycle in which it is the lowest, and none could be added back. `standing` has no cycle.
    """
    graph = _GrowingGraph()
    kept, dropped = [], []
    for edge in standing:
        graph.add(edge)
        kept.append(edge)
    for edge in sorted(edges, key=_rank, reverse=True):
        path = graph.path(edge.child, edge.parent)
        if path is None:
            graph.add(edge)
            kept.append(edge)
        else:
            dropped.append((edge, (edge.parent, *path)))
    return Projection(tuple(sorted(kept, key=_ends)), tuple(sorted(dropped, key=lambda entry: _ends(entry[0]))))


def _rank(edge: Edge) -> tuple[int, float, str, str]:
    return _KINDS.index(edge.kind), 1.0 if edge.confidence is None else edge.confidence, edge.parent, edge.child


def _ends(edge: Edge) -> tuple[str, str]:
    return edge.parent, edge.child


class _GrowingGraph:
    """A graph that grows edge by edge."""

    def __init__(self) -> None:
        self._children: dict[str, list[str]] = defaultdict(list)

    def add(self, edge: Edge) -> None:
        """Add an edge."""
        self._children[edge.parent].append(edge.child)

    def path(self, start: str, end: str) -> tuple[str, ...] | None:
        """Return the shortest path along the edges, including both ends; None if there is none."""
        came_from: dict[str, str | None] = {start: None}
        frontier = [start]
        while frontier and end not in came_from:
            reached = [(child, node) for node in frontier for child in self._children[node]]
            frontier = []
            for child, node in sorted(reached):
                if child not in came_from:
                    came_from[child] = node
                    frontier.append(child)
        return _path_to(came_from, end) if end in came_from else None


def _path_to(came_from: Mapping[str, str | None], end: str) -> tuple[str, ...]:
    path: list[str] = []
    node: str | None = end
    while node is not None:
        path.append(node)
        node = came_from[node]
    return tuple(reversed(path))
