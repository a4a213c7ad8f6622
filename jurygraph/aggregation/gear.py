"""GEAR: rewards over a rubric graph that keep false credit from propagating ("GEAR", Eqs. 6-17).

A criterion keeps only a share λ of its local score p_i where a prerequisite or an activation does not hold:

    q_i = p_i Π_{j in parents} (q_j + (1 - q_j) λ_ji)          R = Σ w_i q_i / Σ_{w_i>0} w_i

This one-pass update takes parents as independent; exact inference uses their joint distribution instead.

The module's functions check the graph on each call; `compile` checks it once for many calls. A NaN, an unknown kind, a
missing λ or a cycle could each become false credit, so each raises a `GraphError`.
"""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import (
    Bools,
    Floats,
    Ints,
    ScalarOrFloats,
    as_booleans,
    as_finite,
    as_floats,
    as_indices,
    as_probability,
    as_unit_interval,
    check_shape,
    check_vector_or_matrix,
    total,
)
from jurygraph.errors import GraphCycleError, GraphError

BASE_RETENTION: Mapping[str, float] = MappingProxyType(
    {"weak": 0.6, "strong": 0.2, "activation": 0.0}
)
"""λ of each kind of edge at κ = 1 (GEAR, Table 5)."""
MAX_EXACT_CHILDREN = 10
"""The largest number of criteria with a parent for which a decision uses exact inference (`rubric.exact: auto`)."""
MAX_EXACT_NODES = 10
"""The largest number of criteria for which the authors' scripts enumerate (`exact_auto`; `rubric.exact: ten-nodes`)."""
MAX_ENUMERATED_CHILDREN = 20
"""The largest number of criteria with a parent that can be enumerated."""
STATES_PER_BATCH = 1 << 18  # 2 MiB of float64


def retention(
    kinds: Sequence[str], kappa: float = 1.0, base: Mapping[str, float] | None = None
) -> Floats:
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
    if isinstance(kinds, str):
        raise GraphError(f"kinds is {kinds!r}: a list with the kind of each edge is needed")
    if not (isfinite(kappa) and kappa >= 0.0):
        raise GraphError(f"kappa is {kappa}: a finite number of at least 0 is needed")
    table = {**BASE_RETENTION, **(base or {})}
    for kind in (*table, *kinds):
        if kind not in BASE_RETENTION:
            raise GraphError(f"{kind!r} is not a kind of edge: {', '.join(BASE_RETENTION)} are")
    for kind, factor in table.items():
        if not 0.0 <= factor <= 1.0:
            raise GraphError(f"base[{kind!r}] is {factor}: a number in [0, 1] is needed")
    return np.array([float(table[kind]) ** kappa for kind in kinds])


def edges(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> tuple[Ints, Ints]:
    """Convert edges between ids, (parent's id, child's id) [E], to parents [E] and children [E], for `compile`.

    `ids` are those of the criteria [C], each once; an index is a position in this list. Raises `GraphError` that names
    a repeated id, or an edge with an unknown one.
    """
    index_by_name = {name: index for index, name in enumerate(ids)}
    if len(index_by_name) < len(ids):
        repeated_name = next(name for name in ids if list(ids).count(name) > 1)
        raise GraphError(f"criterion {repeated_name} is there twice")
    for parent, child in edges:
        for end in (parent, child):
            if end not in index_by_name:
                raise GraphError(f"edge {parent} -> {child}: there is no criterion {end}")
    parents = np.array([index_by_name[parent] for parent, _ in edges], dtype=np.intp)
    children = np.array([index_by_name[child] for _, child in edges], dtype=np.intp)
    return parents, children


def marginals(
    p: ArrayLike, parents: ArrayLike, children: ArrayLike, retention: ArrayLike
) -> Floats:
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
    return compile(_count_criteria(p), parents, children).marginals(p, retention)


def exact_marginals(
    p: ArrayLike, parents: ArrayLike, children: ArrayLike, retention: ArrayLike
) -> Floats:
    """Return the marginals of the joint distribution itself: Eqs. 9 and 10 of GEAR.

    Arguments, result and errors are those of `marginals`; at most 20 criteria may have a parent. The result is never
    below that of `marginals`, since criteria that share a prerequisite hold together more often than by chance, and has
    its bits where that is exact.
    """
    return compile(_count_criteria(p), parents, children).exact_marginals(p, retention)


def hard(
    p: ArrayLike,
    parents: ArrayLike,
    children: ArrayLike,
    mode: str = "local",
    met: ArrayLike | None = None,
    threshold: float = 0.5,
) -> Floats:
    """Return p where the gate is open and 0 where it is shut: deterministic gating (GEAR's baseline "Hard").

    A criterion's gate is open when every parent's own decision holds (`local`, the paper's baseline) and, if
    `transitive` (what λ = 0 gives), every parent's gate is open as well. The two differ from depth 2 on.

    Args:
        p, parents, children: as for `marginals`.
        mode: "local" or "transitive".
        met: the judge's own decisions, booleans of p's shape; without them a decision holds when p >= threshold.
        threshold: in [0, 1]; not used with `met`.

    Returns:
        The gated scores, of p's shape.

    Raises:
        GraphError: as for `marginals`, or an unknown mode.
    """
    return compile(_count_criteria(p), parents, children).hard_gating(p, mode, met, threshold)


@np.errstate(over="ignore")
def reward(q: ArrayLike, weights: ArrayLike) -> ScalarOrFloats:
    """Return R = Σ w q / Σ_{w>0} w: Eq. 14 of GEAR; of local scores p, the flat baseline (Eq. 2).

    Args:
        q: event scores in [0, 1], [C] or [R, C].
        weights: signed weights [C]; a penalty's is negative.

    Returns:
        A scalar for [C], [R] for [R, C]; at most 1; penalties make it unbounded below, and nothing is clipped.

    Raises:
        GraphError: a score outside [0, 1] or NaN, a weight that is not finite, shapes that do not fit, or no criterion
            with a positive weight.
    """
    w = as_finite("weights", weights, GraphError)
    check_shape("weights", w, (w.size,), error=GraphError)
    scores = as_unit_interval("q", q, GraphError)
    check_vector_or_matrix("q", scores, w.size, GraphError)
    denominator = total(np.maximum(w, 0.0))
    if denominator == 0.0:
        raise GraphError(
            "no criterion with a positive weight is there: the reward has no denominator"
        )
    if np.isinf(denominator):
        raise GraphError("the positive weights sum to infinity")
    result = total(scores * w) / denominator
    if not np.isfinite(result).all():
        raise GraphError("the weights differ too much in size: the reward is not a finite number")
    return result


def _count_criteria(p: ArrayLike) -> int:
    scores = as_floats("p", p, GraphError)
    if not scores.ndim:
        raise GraphError("p is a single number: [C] or [R, C] is needed")
    return int(scores.shape[-1])


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """An acyclic rubric graph, compiled once and used for many responses; create one with `gear.compile`.

    Attributes:
        n: number of criteria C.
        edge_count: number of edges E.
        order: the criteria in topological order, the smallest index first.

    `retention` has the order of the edges passed to `compile`. The factors of a child's
    parents are multiplied in ascending order of index, so that the order of the edges changes no bit.
    """

    n: int
    edge_count: int
    order: tuple[int, ...]
    # (criterion, ((parent, edge as passed to `compile`), ...)) in topological order
    _incoming_edges: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = field(repr=False)

    def marginals(
        self,
        p: ArrayLike,
        retention: ArrayLike,
        judged: ArrayLike | None = None,
        unjudged: float = 0.0,
    ) -> Floats:
        """Return q of `gear.marginals` (Eq. 12) for this graph, where criteria may be unjudged.

        Args:
            p: as for `gear.marginals`.
            retention: λ in [0, 1], one for each edge in the order passed to `compile`, [E].
            judged: booleans [C] or [R, C]. A criterion without a verdict is the event `unjudged` for all its children.
            unjudged: 0 (it does not hold) or 1 (it does); not used without `judged`.

        Raises:
            GraphError: values out of range or NaN, shapes that do not fit, or `unjudged` is neither 0 nor 1.
        """
        scores = self._check_scores(p)
        retention_factors = self._check_retention_factors(retention)
        is_judged = self._check_judged_mask(scores, judged, unjudged)
        q = np.array(np.atleast_2d(scores).T, order="C")  # one contiguous row a criterion
        factor = np.empty(q.shape[1])
        for child, incoming_edges in self._incoming_edges:
            for parent, edge in incoming_edges:
                parent_score = q[parent]
                if is_judged is not None:
                    parent_score = np.where(is_judged[parent], q[parent], unjudged)
                # λ + (1 - λ) q: exactly 1 at λ = 1, exactly q at λ = 0
                np.multiply(parent_score, 1.0 - retention_factors[edge], out=factor)
                np.add(factor, retention_factors[edge], out=factor)
                np.multiply(q[child], factor, out=q[child])
        return np.ascontiguousarray(q.T).reshape(scores.shape)

    @property
    def criteria_with_parent_count(self) -> int:
        """Return the number of criteria that have a parent."""
        return len([child for child, incoming_edges in self._incoming_edges if incoming_edges])

    def exact_marginals(
        self,
        p: ArrayLike,
        retention: ArrayLike,
        judged: ArrayLike | None = None,
        unjudged: float = 0.0,
    ) -> Floats:
        """Return `gear.exact_marginals` (Eqs. 9, 10) for this graph, where criteria may be unjudged.

        Args:
            p, retention, judged, unjudged: as for `marginals`.

        Raises:
            GraphError: as for `marginals`, or more than 20 criteria with a parent.
        """
        if self.criteria_with_parent_count > MAX_ENUMERATED_CHILDREN:
            raise GraphError(
                f"{self.criteria_with_parent_count} criteria with a parent have too many states to enumerate: "
                f"{MAX_ENUMERATED_CHILDREN} at most"
            )
        scores = self._check_scores(p)
        retention_factors = self._check_retention_factors(retention)
        is_judged = self._check_judged_mask(scores, judged, unjudged)
        rows = np.atleast_2d(scores)
        expectations = _factor_expectations(self, tuple(retention_factors))
        states = max(expectation.states for expectation in expectations)
        q = np.empty(rows.shape)
        rows_per_batch = max(1, STATES_PER_BATCH // states)
        for start in range(0, len(rows), rows_per_batch):
            block = slice(start, start + rows_per_batch)
            part = np.array(rows[block].T, order="C")  # one contiguous row a criterion
            is_judged_in_block = None if is_judged is None else is_judged[:, block]
            q[block] = _infer_marginals(part, expectations, is_judged_in_block, unjudged).T
        return q.reshape(scores.shape)

    def hard_gating(
        self,
        p: ArrayLike,
        mode: str = "local",
        met: ArrayLike | None = None,
        threshold: float = 0.5,
    ) -> Floats:
        """Return the gated scores of `gear.hard` for this graph; arguments and errors as there."""
        if mode not in ("local", "transitive"):
            raise GraphError(f"mode is {mode!r}: local or transitive is needed")
        scores = self._check_scores(p)
        if met is None:
            holds = scores >= as_probability("threshold", threshold, GraphError)
        else:
            holds = as_booleans("met", met, GraphError)
            check_shape("met", holds, scores.shape, error=GraphError)
        is_gate_open = np.ones(scores.shape, dtype=np.bool_)
        for child, incoming_edges in self._incoming_edges:
            for parent, _ in incoming_edges:
                is_gate_open[..., child] &= holds[..., parent]
                if mode == "transitive":
                    is_gate_open[..., child] &= is_gate_open[..., parent]
        return np.where(is_gate_open, scores, 0.0)

    def _check_scores(self, p: ArrayLike) -> Floats:
        scores = as_unit_interval("p", p, GraphError)
        check_vector_or_matrix("p", scores, self.n, GraphError)
        return scores

    def _check_retention_factors(self, retention: ArrayLike) -> list[float]:
        retention_factors = as_unit_interval("retention", retention, GraphError)
        if retention_factors.shape != (self.edge_count,):
            raise GraphError(
                f"retention has shape {retention_factors.shape} for {self.edge_count} edges: every "
                "edge needs its own factor"
            )
        return [float(factor) for factor in retention_factors]

    def _check_judged_mask(
        self, scores: Floats, judged: ArrayLike | None, unjudged: float
    ) -> Bools | None:
        """Return which criteria were judged, [C, R]; None if all were."""
        if unjudged not in (0.0, 1.0):
            raise GraphError(f"unjudged is {unjudged}: 0 or 1 is needed")
        if judged is None:
            return None
        is_judged = as_booleans("judged", judged, GraphError)
        check_shape("judged", is_judged, (self.n,), scores.shape, error=GraphError)
        return np.broadcast_to(is_judged, np.atleast_2d(scores).shape).T


class _FactorExpectationPlan(NamedTuple):
    """How the mean of a child's factor over its parents' joint distribution (Eq. 11) is computed.

    Both outcomes of each criterion of `enumerated_ancestors` are followed, the last in topological order first: it
    holds, and then its own factors count, or it does not. The `independent` criteria hold by their own marginals. Each
    has its λ in every state of the criteria enumerated after it: the product over those of its children that hold, and
    the child.
    """

    child: int
    enumerated_ancestors: tuple[tuple[int, Floats], ...]
    independent: tuple[tuple[int, Floats], ...]

    @property
    def states(self) -> int:
        return 1 << len(self.enumerated_ancestors)


@lru_cache(maxsize=16)  # few: of twenty criteria with a parent, one can take megabytes
def _factor_expectations(
    graph: Graph, retention_factors: tuple[float, ...]
) -> tuple[_FactorExpectationPlan, ...]:
    """Return an expectation for each criterion of a graph, in topological order.

    A criterion that all paths from its ancestors to the child pass through is drawn by its own marginal, and its
    ancestors are left out. Of a tree, or of independent parents, nothing is enumerated.
    """
    position_by_criterion = {criterion: position for position, criterion in enumerate(graph.order)}
    retention_by_edge = {}
    ancestors: dict[int, set[int]] = {}
    children = defaultdict(set)
    expectations = []
    # In topological order, so that the ancestors of all parents are there.
    for child, incoming_edges in graph._incoming_edges:
        ancestor_criteria = set()
        for parent, edge in incoming_edges:
            retention_by_edge[parent, child] = retention_factors[edge]
            children[parent].add(child)
            ancestor_criteria |= {parent} | ancestors[parent]
        ancestors[child] = ancestor_criteria
        criteria_on_paths = {*ancestor_criteria, child}
        # Those that all paths from their ancestors to the child pass through: no edge may lead from an ancestor past
        # the criterion towards the child.
        dominating_criteria = set()
        for criterion in ancestor_criteria:
            criterion_and_ancestors = ancestors[criterion] | {criterion}
            if all(
                children[ancestor] & criteria_on_paths <= criterion_and_ancestors
                for ancestor in ancestors[criterion]
            ):
                dominating_criteria.add(criterion)
        relevant_ancestors = ancestor_criteria.difference(
            *(ancestors[criterion] for criterion in dominating_criteria)
        )
        enumerated_ancestors = sorted(
            relevant_ancestors - dominating_criteria, key=position_by_criterion.__getitem__
        )
        independent_parents = sorted(relevant_ancestors & dominating_criteria)
        states = {
            criterion: _retention_by_state(
                criterion, child, enumerated_ancestors, retention_by_edge
            )
            for criterion in relevant_ancestors
        }
        expectation = _FactorExpectationPlan(
            child,
            enumerated_ancestors=tuple(
                (criterion, states[criterion]) for criterion in enumerated_ancestors
            ),
            independent=tuple((criterion, states[criterion]) for criterion in independent_parents),
        )
        expectations.append(expectation)
    return tuple(expectations)


def _retention_by_state(
    criterion: int,
    child: int,
    enumerated_ancestors: Sequence[int],
    retention_by_edge: Mapping[tuple[int, int], float],
) -> Floats:
    """Return λ of a criterion for each set of the criteria enumerated after it that hold; the last is the lowest
    bit."""
    after = enumerated_ancestors
    if criterion in enumerated_ancestors:
        after = enumerated_ancestors[enumerated_ancestors.index(criterion) + 1 :]
    factor_by_state = np.array([retention_by_edge.get((criterion, child), 1.0)])
    for later_child in reversed(after):
        # First all sets without the later one, then the same sets with it.
        factors_with_later_child = factor_by_state * retention_by_edge.get(
            (criterion, later_child), 1.0
        )
        factor_by_state = np.concatenate([factor_by_state, factors_with_later_child])
    return factor_by_state[:, None]


def _infer_marginals(
    p: Floats, expectations: Iterable[_FactorExpectationPlan], judged: Bools | None, unjudged: float
) -> Floats:
    """Return exact marginals [C, R] of local scores p [C, R].

    All terms are sums and products of numbers in [0, 1], so q grows with every p, bit by bit.
    """
    q = p.copy()
    for child, enumerated_ancestors, independent_parents in expectations:
        # by state of the enumerated criteria, [S, R]; without any, q is multiplied as in Eq. 12, to the bit
        factor = (
            np.ones((1 << len(enumerated_ancestors), p.shape[1]))
            if enumerated_ancestors
            else q[child : child + 1]
        )
        for parent, parent_retention in independent_parents:
            parent_score = q[parent]
            if judged is not None:
                parent_score = np.where(judged[parent], q[parent], unjudged)
            factor *= parent_score * (1.0 - parent_retention) + parent_retention
        for parent, parent_retention in enumerated_ancestors:
            # The parent is the highest bit of a state: in the second half it holds.
            factor_if_unmet = factor[: len(parent_retention)]
            factor_if_met = factor[len(parent_retention) :]
            factor = factor_if_unmet * parent_retention + (1.0 - parent_retention) * (
                p[parent] * factor_if_met
            )
            if judged is not None:
                unjudged_factor = (
                    factor_if_unmet if unjudged else factor_if_unmet * parent_retention
                )
                factor = np.where(judged[parent], factor, unjudged_factor)
        if enumerated_ancestors:
            q[child] *= factor[0]
    return q


def compile(  # noqa: A001 - read as `gear.compile`; the builtin is not used here
    n: int, parents: ArrayLike, children: ArrayLike, names: Sequence[str] | None = None
) -> Graph:
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
    parent_indices = as_indices("parents", parents, n, GraphError)
    child_indices = as_indices("children", children, n, GraphError)
    if parent_indices.size != child_indices.size:
        raise GraphError(
            f"{parent_indices.size} parents but {child_indices.size} children: an edge has one of each"
        )
    pairs = list(zip(parent_indices.tolist(), child_indices.tolist(), strict=True))
    labels = names or range(n)
    first_edges: dict[tuple[int, int], int] = {}
    incoming_edges = defaultdict(list)
    for edge, (parent, child) in enumerate(pairs):
        if parent == child:
            raise GraphError(f"edge {edge} leads from criterion {labels[parent]} to itself")
        first = first_edges.setdefault((parent, child), edge)
        if first != edge:  # of any kind
            pair = f"{labels[parent]} -> {labels[child]}"
            raise GraphError(
                f"edges {first} and {edge} are both {pair}: a pair has one edge at most"
            )
        incoming_edges[child].append((parent, edge))
    order = _topological_order(n, pairs, names)
    # Sorted, so that the order of the edges changes no bit.
    sorted_incoming_edges = tuple((child, tuple(sorted(incoming_edges[child]))) for child in order)
    return Graph(n, len(pairs), order, sorted_incoming_edges)


def _topological_order(
    n: int, pairs: Sequence[tuple[int, int]], names: Sequence[str] | None
) -> tuple[int, ...]:
    """Return the topological order, smallest index first, independent of the order of edges."""
    topological_sorter = TopologicalSorter(dict.fromkeys(range(n), ()))
    for parent, child in sorted(pairs):
        topological_sorter.add(child, parent)
    try:
        topological_sorter.prepare()
    except CycleError as error:
        # The cycle, whose first node stands at both ends, is turned to begin with its smallest node.
        nodes = error.args[1][1:]
        start = nodes.index(min(nodes))
        cycle = [*nodes[start:], *nodes[: start + 1]]
        raise GraphCycleError(cycle, names=list(names) if names else None) from None
    ready_criteria: list[int] = []
    order = []
    while topological_sorter.is_active():
        for node in topological_sorter.get_ready():
            heappush(ready_criteria, node)
        order.append(heappop(ready_criteria))
        topological_sorter.done(order[-1])
    return tuple(order)
