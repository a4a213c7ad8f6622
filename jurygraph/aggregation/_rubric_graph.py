"""A rubric graph, compiled once and used for many responses (GEAR)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import (
    Bools,
    Floats,
    Ints,
    as_booleans,
    as_indices,
    as_probability,
    as_unit_interval,
    check_shape,
    check_vector_or_matrix,
)
from jurygraph.errors import GraphCycleError, GraphError

Edge = tuple[int, int]
# Per criterion, in topological order: its index and its (parent, λ) pairs.
Conditionals = Sequence[tuple[int, Sequence[tuple[int, float]]]]
MODES = ("local", "transitive")
ROWS_AT_ONCE = 2048  # keeps the work array in the cache, and small enough for malloc to reuse its memory
MAX_CRITERIA = 20
STATES_PER_BATCH = 1 << 22  # 32 MiB of float64


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """An acyclic rubric graph; create one with `gear.compile`.

    Attributes:
        n: number of criteria C.
        parents: parent of each edge [E], edges sorted by child, then parent (read-only).
        children: child of each edge [E], in the same order (read-only).
        order: the criteria in topological order, the smallest index first.

    `retention` always has the order of the edges passed to `compile`, not of the sorted ones. The factors of a child's
    parents are multiplied in ascending order of index, so that the order of the edges changes no bit.
    """

    n: int
    parents: Ints
    children: Ints
    order: tuple[int, ...]
    # (criterion, ((parent, edge as passed to `compile`), ...)) in topological order
    _incoming: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = field(repr=False)

    def marginals(
        self, p: ArrayLike, retention: ArrayLike, judged: ArrayLike | None = None, positive: ArrayLike | None = None
    ) -> Floats:
        """Return q_i = p_i Π_j (q_j + (1 - q_j) λ_ji), computed in topological order: Eq. 12 of GEAR.

        Args:
            p: local event scores in [0, 1], [C] or [R, C].
            retention: λ in [0, 1], one for each edge in the order passed to `compile`, [E].
            judged: booleans [C] or [R, C]. The factor of a parent without a verdict is λ for a positive child (as if
                unsupported) and 1 for a negative one (as if supported), so that over this edge a missing verdict never
                helps a response. For the criterion itself, the caller fills in p.
            positive: booleans [C], true where the weight is at least 0; required with `judged`, and only then.

        Returns:
            q of p's shape, 0 <= q <= p.

        Raises:
            GraphError: values out of range or NaN, shapes that do not fit, or only one of `judged` and `positive`.
        """
        scores = self._scores(p)
        factors = self._factors(retention)
        known, credit = self._unjudged_parents(scores, judged, positive)
        rows = np.atleast_2d(scores)
        q = np.empty(rows.shape)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            q[block] = self._propagate(rows[block], factors, known if known is None else known[block], credit)
        return q.reshape(scores.shape)

    def exact_marginals(self, p: ArrayLike, retention: ArrayLike) -> Floats:
        """Return P(z_i = 1) by enumerating the joint distribution: Eqs. 9 and 10 of GEAR.

        It has 2^C states, so at most 20 criteria are possible; more raise `GraphError`. Arguments, result and other
        errors are those of `marginals`.
        """
        if self.n > MAX_CRITERIA:
            raise GraphError(f"{self.n} criteria have too many states to enumerate: {MAX_CRITERIA} at most")
        scores = self._scores(p)
        factors = self._factors(retention)
        conditionals = [(i, [(j, factors[edge]) for j, edge in incoming]) for i, incoming in self._incoming]
        return _enumerate_marginals(np.atleast_2d(scores), conditionals).reshape(scores.shape)

    def hard_gating(
        self, p: ArrayLike, mode: str = "local", met: ArrayLike | None = None, threshold: float = 0.5
    ) -> Floats:
        """Return p where the gate is open and 0 where it is shut: deterministic gating (GEAR's baseline "Hard").

        A criterion's gate is open when every parent's own decision holds (`local`, the paper's baseline) and, if
        `transitive` (what λ = 0 gives), every parent's gate is open as well. The two differ from depth 2 on.

        Args:
            p: local event scores in [0, 1], [C] or [R, C].
            mode: "local" or "transitive".
            met: the judge's own decisions, booleans of p's shape; without them a decision holds when p >= threshold.
            threshold: in [0, 1]; not used with `met`.

        Returns:
            The gated scores, of p's shape.

        Raises:
            GraphError: an unknown mode, values out of range or NaN, or shapes that do not fit.
        """
        if mode not in MODES:
            raise GraphError(f"mode is {mode!r}: {' or '.join(MODES)} is needed")
        scores = self._scores(p)
        holds = _parent_decisions(scores, met, threshold)
        gate = np.ones(scores.shape, dtype=np.bool_)
        for child, incoming in self._incoming:
            for parent, _ in incoming:
                gate[..., child] &= holds[..., parent]
                if mode == "transitive":
                    gate[..., child] &= gate[..., parent]
        return np.where(gate, scores, 0.0)

    def _propagate(self, p: Floats, factors: list[float], known: Bools | None, credit: list[float]) -> Floats:
        q = np.array(p.T, order="C")  # one contiguous row a criterion
        factor = np.empty(q.shape[1])
        for child, incoming in self._incoming:
            for parent, edge in incoming:
                parent_score = q[parent] if known is None else np.where(known[:, parent], q[parent], credit[child])
                # λ + (1 - λ) q: exactly 1 at λ = 1, exactly q at λ = 0
                np.multiply(parent_score, 1.0 - factors[edge], out=factor)
                np.add(factor, factors[edge], out=factor)
                np.multiply(q[child], factor, out=q[child])
        return q.T

    def _scores(self, p: ArrayLike) -> Floats:
        scores = as_unit_interval("p", p, GraphError)
        check_vector_or_matrix("p", scores, self.n, GraphError)
        return scores

    def _factors(self, retention: ArrayLike) -> list[float]:
        factors = as_unit_interval("retention", retention, GraphError)
        if factors.shape != self.parents.shape:
            raise GraphError(
                f"retention has shape {factors.shape} for {self.parents.size} edges: every edge needs its own factor"
            )
        return [float(factor) for factor in factors]

    def _unjudged_parents(
        self, scores: Floats, judged: ArrayLike | None, positive: ArrayLike | None
    ) -> tuple[Bools | None, list[float]]:
        """Return which parents were judged, [R, C], and the value that an unjudged parent takes for each child, [C]."""
        if judged is None and positive is None:
            return None, []
        if judged is None or positive is None:
            raise GraphError("judged and positive belong together: give both or neither")
        known, signs = as_booleans("judged", judged, GraphError), as_booleans("positive", positive, GraphError)
        check_shape("judged", known, (self.n,), scores.shape, error=GraphError)
        check_shape("positive", signs, (self.n,), error=GraphError)
        return np.broadcast_to(known, np.atleast_2d(scores).shape), np.where(signs, 0.0, 1.0).tolist()


def _parent_decisions(scores: Floats, met: ArrayLike | None, threshold: float) -> Bools:
    if met is None:
        return scores >= as_probability("threshold", threshold, GraphError)
    decisions = as_booleans("met", met, GraphError)
    check_shape("met", decisions, scores.shape, error=GraphError)
    return decisions


def compile_graph(n: int, parents: ArrayLike, children: ArrayLike, names: Sequence[str] | None = None) -> Graph:
    """Check the edges of a rubric graph and order them.

    Args:
        n: number of criteria C.
        parents: parent of each edge, indices in 0..n-1, [E].
        children: child of each edge, [E].
        names: ids of the criteria [C], for error messages.

    Raises:
        GraphCycleError: the edges form a cycle; its `cycle` names one in the order of the edges.
        GraphError: no criterion, an index out of range, a self-edge, two edges between the same two criteria, or
            lengths that differ.
    """
    if n < 1:
        raise GraphError(f"a rubric graph of {n} criteria has nothing to aggregate")
    heads, tails = as_indices("parents", parents, n, GraphError), as_indices("children", children, n, GraphError)
    if heads.size != tails.size:
        raise GraphError(f"{heads.size} parents but {tails.size} children: an edge has one of each")
    if names is not None and len(names) != n:
        raise GraphError(f"{len(names)} names for {n} criteria")
    edges = list(zip(heads.tolist(), tails.tolist(), strict=True))
    _check_edges(edges, names)
    order = _topological_order(n, edges, names)
    incoming: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    canonical = sorted(range(len(edges)), key=lambda edge: (edges[edge][1], edges[edge][0]))
    for edge in canonical:
        parent, child = edges[edge]
        incoming[child].append((parent, edge))
    return Graph(
        n,
        _read_only(heads, canonical),
        _read_only(tails, canonical),
        order,
        tuple((i, tuple(incoming[i])) for i in order),
    )


def _read_only(ends: Ints, canonical: list[int]) -> Ints:
    ends = ends[np.array(canonical, dtype=np.intp)]
    ends.setflags(write=False)
    return ends


def _check_edges(edges: Sequence[Edge], names: Sequence[str] | None) -> None:
    """Refuse an edge from a criterion to itself, and a second edge between the same two criteria, of any kind."""
    seen: dict[Edge, int] = {}
    for index, (parent, child) in enumerate(edges):
        if parent == child:
            raise GraphError(f"edge {index} leads from criterion {_node_name(parent, names)} to itself")
        if (parent, child) in seen:
            pair = f"{_node_name(parent, names)} -> {_node_name(child, names)}"
            raise GraphError(f"edges {seen[parent, child]} and {index} are both {pair}: a pair has one edge at most")
        seen[parent, child] = index


def _topological_order(n: int, edges: Sequence[Edge], names: Sequence[str] | None) -> tuple[int, ...]:
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


def _enumerate_marginals(p: Floats, conditionals: Conditionals) -> Floats:
    """Return P(z_i = 1) under Π_i P(z_i | z_parents), [R, C], for p [R, C]; each response has 2^C states.

    The joint distribution grows by one criterion at a time, in topological order: criteria that come later sum to 1 and
    are left out.
    """
    q = np.empty(p.shape)
    rows = max(1, STATES_PER_BATCH >> p.shape[1])
    for start in range(0, len(p), rows):
        q[start : start + rows] = _enumerate_rows(p[start : start + rows], conditionals)
    return q


def _enumerate_rows(p: Floats, conditionals: Conditionals) -> Floats:
    q = np.empty(p.shape)
    joint = np.ones((len(p), 1))
    bit: dict[int, int] = {}
    for criterion, parents in conditionals:
        support = np.ones(joint.shape[1])
        states = np.arange(joint.shape[1])
        for parent, retention in parents:
            support *= np.where(states >> bit[parent] & 1, 1.0, retention)
        holds = joint * (p[:, criterion, None] * support)
        q[:, criterion] = holds.sum(axis=1)
        bit[criterion] = len(bit)
        joint = np.concatenate((joint - holds, holds), axis=1)
    return q
