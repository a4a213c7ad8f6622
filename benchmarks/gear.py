"""Aggregating rubric graphs: Eq. 12 of GEAR for 4,096 responses of 12 criteria and 11 edges."""

import numpy as np

from benchmarks.figure import Figure, at_least, at_most, best_of
from jurygraph.aggregation import gear

RESPONSES, CRITERIA = 4096, 12
GROUP = 8
PARENTS = (0, 0, 1, 2, 3, 3, 4, 5, 6, 8, 9)
CHILDREN = (1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10)
KINDS = (
    "weak",
    "strong",
    "activation",
    "weak",
    "strong",
    "weak",
    "strong",
    "weak",
    "activation",
    "weak",
    "strong",
)


def measure() -> list[Figure]:
    """Microseconds a response, and how many times a plain Python loop's speed that is, in the same run."""
    random = np.random.default_rng(0)
    p = random.random((RESPONSES, CRITERIA))
    weights = random.normal(size=CRITERIA)
    retention = gear.retention(KINDS)
    graph = gear.compile(CRITERIA, PARENTS, CHILDREN)
    rows, factors = p.tolist(), retention.tolist()
    np.testing.assert_allclose(
        gear.marginals(p, PARENTS, CHILDREN, retention), plain_loop(rows, factors), atol=1e-12
    )

    free = best_of(lambda: gear.marginals(p, PARENTS, CHILDREN, retention), repeat=20, number=50)
    compiled = best_of(lambda: graph.marginals(p, retention), repeat=20, number=50)
    group = best_of(lambda: graph.marginals(p[:GROUP], retention), repeat=20, number=500)
    reward = best_of(lambda: gear.reward(p, weights), repeat=20, number=50)
    exact = best_of(lambda: graph.exact_marginals(p[:GROUP], retention), repeat=20, number=500)
    parents, children = np.triu_indices(gear.MAX_EXACT_CHILDREN + 1, k=1)
    dense, factors_of_dense = (
        gear.compile(gear.MAX_EXACT_CHILDREN + 1, parents, children),
        np.full(len(parents), 0.5),
    )
    few = p[:GROUP, : dense.n]
    dense_update = best_of(lambda: dense.marginals(few, factors_of_dense), repeat=20, number=100)
    dense_exact = best_of(
        lambda: dense.exact_marginals(few, factors_of_dense), repeat=20, number=100
    )
    loop = best_of(lambda: plain_loop(rows, factors), repeat=10, number=3)
    return [
        at_most("gear.marginals, 4,096 responses", free / RESPONSES * 1e6, "µs a response", 0.1),
        at_least("gear.marginals against a plain Python loop", loop / free, "times", 10.0),
        Figure("plain Python loop of Eq. 12", loop / RESPONSES * 1e6, "µs a response"),
        Figure("compiled graph, 4,096 responses", compiled / RESPONSES * 1e6, "µs a response"),
        Figure(f"compiled graph, a group of {GROUP}", group / GROUP * 1e6, "µs a response"),
        at_most(
            f"exact inference against the update, a group of {GROUP}", exact / group, "times", 4.0
        ),
        at_most(
            "the same, each of 11 criteria with all others above it",
            dense_exact / dense_update,
            "times",
            10.0,
        ),
        Figure("gear.reward, 4,096 responses", reward / RESPONSES * 1e6, "µs a response"),
    ]


def plain_loop(rows: list[list[float]], factors: list[float]) -> list[list[float]]:
    """Eq. 12 as one would write it without NumPy; the criteria above are in topological order already."""
    incoming: list[list[tuple[int, float]]] = [[] for _ in range(CRITERIA)]
    for parent, child, factor in zip(PARENTS, CHILDREN, factors, strict=True):
        incoming[child].append((parent, factor))
    scored = []
    for row in rows:
        q = row.copy()
        for child, parents in enumerate(incoming):
            for parent, factor in parents:
                q[child] *= q[parent] + (1.0 - q[parent]) * factor
        scored.append(q)
    return scored
