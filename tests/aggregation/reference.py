"""Slow and plain restatements of GEAR's equations, and strategies that draw rubric graphs."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

KINDS = ("weak", "strong", "activation")


class Rubric(NamedTuple):
    """A drawn rubric graph: edges with their kinds, and scores of R responses."""

    n: int
    parents: list[int]
    children: list[int]
    kinds: list[str]
    p: np.ndarray

    @property
    def edges(self) -> list[tuple[int, int]]:
        return list(zip(self.parents, self.children, strict=True))

    def parents_of(self, i: int) -> list[int]:
        return [parent for parent, child in self.edges if child == i]


def eq_12(
    p: Sequence[float], edges: Sequence[tuple[int, int]], retention: Sequence[float]
) -> list[float]:
    """One response in a plain Python loop; the indices of acyclic edges need not be in topological order."""
    q: dict[int, float] = {}

    def of(i: int) -> float:
        if i not in q:
            value = p[i]
            for (parent, child), factor in zip(edges, retention, strict=True):
                if child == i:
                    value *= of(parent) + (1.0 - of(parent)) * factor
            q[i] = value
        return q[i]

    return [of(i) for i in range(len(p))]


def eq_9(
    p: Sequence[float], edges: Sequence[tuple[int, int]], retention: Sequence[float]
) -> list[float]:
    """Marginals of the joint, state by state."""
    marginal = [0.0] * len(p)
    for state in product((0, 1), repeat=len(p)):
        probability = 1.0
        for i, holds in enumerate(state):
            event = p[i]
            for (parent, child), factor in zip(edges, retention, strict=True):
                if child == i and not state[parent]:
                    event *= factor
            probability *= event if holds else 1.0 - event
        for i, holds in enumerate(state):
            marginal[i] += probability * holds
    return marginal


def ancestry(i: int, edges: Sequence[tuple[int, int]]) -> set[int]:
    """The node itself and all its ancestors."""
    found = {i}
    for parent, child in edges:
        if child == i:
            found |= ancestry(parent, edges)
    return found


def has_independent_parents(i: int, edges: Sequence[tuple[int, int]]) -> bool:
    """Whether the parents of the node, and those of each of its ancestors, share no ancestor."""
    for node in ancestry(i, edges):
        families = [ancestry(parent, edges) for parent, child in edges if child == node]
        if len(families) > 1 and sum(map(len, families)) > len(set.union(*families)):
            return False
    return True


def chain(n: int) -> tuple[range, range]:
    """Parents and children of 0 -> 1 -> … -> n-1."""
    return range(n - 1), range(1, n)


probabilities = st.floats(0.0, 1.0)


@st.composite
def rubrics(draw: st.DrawFn, largest: int = 7, responses: int = 3) -> Rubric:
    """Acyclic graphs whose indices are not in topological order, edges in any order."""
    n = draw(st.integers(1, largest))
    place = draw(st.permutations(range(n)))
    pairs = list(_forward_pairs(place))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=len(chosen), max_size=len(chosen)))
    p = draw(
        st.lists(
            st.lists(probabilities, min_size=n, max_size=n), min_size=responses, max_size=responses
        )
    )
    return Rubric(
        n, [parent for parent, _ in chosen], [child for _, child in chosen], kinds, np.array(p)
    )


def _forward_pairs(place: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((a, b) for i, a in enumerate(place) for b in place[i + 1 :])
