"""GEAR: rewards over a rubric graph that keep false credit from propagating ("GEAR", Eqs. 6-17).

A criterion keeps only a share λ of its local score p_i where a prerequisite or an activation does not hold:

    q_i = p_i Π_{j in parents} (q_j + (1 - q_j) λ_ji)          R = Σ w_i q_i / Σ_{w_i>0} w_i

The module's functions check the graph on each call; `compile` checks it once for many calls. A NaN, an unknown kind, a
missing λ or a cycle could each become false credit, so each raises a `GraphError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._rubric_graph import Graph, compile_graph
from jurygraph.aggregation.arrays import Floats, Ints, as_floats
from jurygraph.aggregation.flat import normalised_utility
from jurygraph.errors import GraphError

__all__ = [
    "BASE_RETENTION",
    "Graph",
    "compile",
    "edges",
    "exact_marginals",
    "hard",
    "marginals",
    "retention",
    "reward",
]

BASE_RETENTION: Mapping[str, float] = MappingProxyType({"weak": 0.6, "strong": 0.2, "activation": 0.0})
"""λ of each kind of edge at κ = 1 (GEAR, Table 5)."""

compile = compile_graph  # noqa: A001 - read as `gear.compile`; the builtin is not used here


def retention(kinds: Sequence[str], kappa: float = 1.0, base: Mapping[str, float] | None = None) -> Floats:
    """Return λ = base^κ for each edge: Eqs. 6 and 17 of GEAR; the power is our reading of the missing Eq. 17.

    κ = 0 gives 1 for every kind, activation included (0^0 = 1), and so exactly the flat reward; a larger κ suppresses
    more. λ is computed once, when a plan is made, because the bits of powers depend on the machine.

    Args:
        kinds: "weak", "strong" or "activation" for each edge [E].
        kappa: strength of suppression, finite and at least 0.
        base: other λ at κ = 1 for some kinds, in [0, 1].

    Raises:
        GraphError: an unknown kind, a base outside [0, 1], or a κ that is negative or not finite.
    """
    if not (isfinite(kappa) and kappa >= 0.0):
        raise GraphError(f"kappa is {kappa}: a finite number of at least 0 is needed")
    table = {**BASE_RETENTION, **(base or {})}
    _refuse_unknown_kinds(table)
    for kind, factor in table.items():
        if not 0.0 <= factor <= 1.0:
            raise GraphError(f"base[{kind!r}] is {factor}: a number in [0, 1] is needed")
    if isinstance(kinds, str):
        raise GraphError(f"kinds is the string {kinds!r}: one kind for each edge is needed")
    _refuse_unknown_kinds(kinds)
    return np.array([float(table[kind]) ** kappa for kind in kinds])


def edges(ids: Sequence[str], edges: Iterable[tuple[str, str, str]]) -> tuple[Ints, Ints, tuple[str, ...]]:
    """Convert edges between ids to edges between indices.

    Args:
        ids: ids of the criteria [C], each once; an index is a position in this list.
        triples: (parent's id, child's id, kind) [E].

    Returns:
        parents [E], children [E] and kinds [E], in the order of `edges`, for `compile` and `retention`.

    Raises:
        GraphError: a repeated id, or an edge with an unknown id or kind, from a criterion to itself, or between two
            that already have an edge, of any kind; the message names the edge.
    """
    index_of = {name: index for index, name in enumerate(ids)}
    if len(index_of) < len(ids):
        raise GraphError(f"criterion {next(i for i in ids if list(ids).count(i) > 1)} is there twice")
    kind_of_edge: dict[tuple[str, str], str] = {}
    for parent, child, kind in edges:
        _refuse_edge(parent, child, kind, index_of, kind_of_edge)
        kind_of_edge[parent, child] = kind
    parents = np.array([index_of[parent] for parent, _ in kind_of_edge], dtype=np.intp)
    children = np.array([index_of[child] for _, child in kind_of_edge], dtype=np.intp)
    return parents, children, tuple(kind_of_edge.values())


def marginals(p: ArrayLike, parents: ArrayLike, children: ArrayLike, retention: ArrayLike) -> Floats:
    """Return dependency-adjusted event scores q, computed in one pass: Eq. 12 of GEAR.

    The result is exact where the parents of a criterion and of all its ancestors are independent (for instance with at
    most one parent each), and an approximation below a diamond.

    Args:
        p: local event scores in [0, 1], [C] or [R, C]; for a penalty, that the violation is present.
        parents: parent of each edge, indices in 0..C-1, [E].
        children: child of each edge, [E].
        retention: λ of each edge in [0, 1], [E].

    Returns:
        q of p's shape, 0 <= q <= p; the same bits for any order of the edges and any chunking of the responses.

    Raises:
        GraphCycleError: the edges form a cycle, named in their order.
        GraphError: a score or λ that is NaN or out of range, a missing λ, an index out of range, a self-edge, two edges
            between the same two criteria, or shapes that do not fit.
    """
    return compile_graph(_count_criteria(p), parents, children).marginals(p, retention)


def exact_marginals(p: ArrayLike, parents: ArrayLike, children: ArrayLike, retention: ArrayLike) -> Floats:
    """Return the same marginals by enumerating the joint distribution: Eqs. 9 and 10 of GEAR; 20 criteria at most.

    Arguments, result and errors are those of `marginals`. Each response has 2^C states: use it for checks, not for
    training.
    """
    return compile_graph(_count_criteria(p), parents, children).exact_marginals(p, retention)


def hard(
    p: ArrayLike,
    parents: ArrayLike,
    children: ArrayLike,
    mode: str = "local",
    met: ArrayLike | None = None,
    threshold: float = 0.5,
) -> Floats:
    """Return p where every parent holds, else 0: deterministic gating, GEAR's baseline. See `Graph.hard`.

    Args:
        p: local event scores in [0, 1], [C] or [R, C].
        parents: parent of each edge, [E].
        children: child of each edge, [E].
        mode: "local" uses each parent's own decision, "transitive" its gate, too.
        met: the judge's own decisions, booleans of p's shape; without them p >= threshold.
        threshold: in [0, 1].

    Raises:
        GraphError: as for `marginals`, or an unknown mode.
    """
    return compile_graph(_count_criteria(p), parents, children).hard_gating(p, mode, met, threshold)


def reward(q: ArrayLike, weights: ArrayLike) -> np.float64 | Floats:
    """Return R = Σ w q / Σ_{w>0} w: Eq. 14 of GEAR.

    Args:
        q: event scores in [0, 1], [C] or [R, C].
        weights: signed weights [C]; a penalty's is negative.

    Returns:
        A scalar for [C], [R] for [R, C]; at most 1; penalties make it unbounded below, and nothing is clipped.

    Raises:
        GraphError: a score outside [0, 1] or NaN, a weight that is not finite, shapes that do not fit, or no positive
            weight.
    """
    return normalised_utility("q", q, weights)


def _count_criteria(p: ArrayLike) -> int:
    scores = as_floats("p", p, GraphError)
    if not scores.ndim:
        raise GraphError("p is a single number: [C] or [R, C] is needed")
    return int(scores.shape[-1])


def _refuse_unknown_kinds(kinds: Iterable[str]) -> None:
    for kind in kinds:
        if kind not in BASE_RETENTION:
            raise GraphError(f"{kind!r} is not a kind of edge: {', '.join(BASE_RETENTION)} are")


def _refuse_edge(
    parent: str, child: str, kind: str, index_of: Mapping[str, int], kind_of_edge: Mapping[tuple[str, str], str]
) -> None:
    shown = f"edge {parent} -> {child} ({kind})"
    for end in (parent, child):
        if end not in index_of:
            raise GraphError(f"{shown}: there is no criterion {end}")
    if kind not in BASE_RETENTION:
        raise GraphError(f"{shown}: {kind!r} is not a kind of edge: {', '.join(BASE_RETENTION)} are")
    if parent == child:
        raise GraphError(f"{shown}: it leads from a criterion to itself")
    if (parent, child) in kind_of_edge:
        raise GraphError(f"{shown}: these two have an edge already ({kind_of_edge[parent, child]})")
