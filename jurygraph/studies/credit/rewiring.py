"""Random graphs with the same number and kinds of edges: the ablation "random graph" (GEAR, 4.6)."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import gear
from jurygraph.schema import digest_of


class Wiring(NamedTuple):
    """A graph over C criteria: ends of its edges [E], and the index of the edge whose kind and λ each takes [E]."""

    parents: list[int]
    children: list[int]
    source_edges: list[int]


def rewire(graph: gear.Graph, seed: int, task: str) -> Wiring:
    """Return a random acyclic graph over the same criteria with as many edges, each with the kind and λ of another
    edge.

    The draws are an order of the criteria, then as many of its forward pairs as there are edges, then the edge whose
    kind
    and λ each pair takes. So there are no self-loops, no duplicate edges and no cycles. Such a graph always exists,
    since
    the annotated one is one; with two criteria the result is often the annotated graph. Roles are ignored (GEAR, 4.6:
    "rewires dependencies between criteria").

    Args:
        graph: the annotated graph, over C criteria with E edges.
        seed: at least 0.
        task: the task's id; the draw depends on the seed and on it only, not on the other tasks.
    """
    rng = np.random.Generator(np.random.PCG64([seed, int(digest_of(task), 16)]))
    order = rng.permutation(graph.n)
    first, second = np.triu_indices(graph.n, k=1)
    edges = len(graph.parents)
    pairs = rng.choice(len(first), size=edges, replace=False)
    kept = rng.permutation(edges)
    return Wiring(order[first[pairs]].tolist(), order[second[pairs]].tolist(), kept.tolist())
