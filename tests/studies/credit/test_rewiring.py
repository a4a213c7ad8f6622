"""Random graphs keep the number and the kinds of edges."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.studies.credit import RANDOM_GRAPH_COUNT, report, rewire
from tests.aggregation.reference import Rubric, eq_9, eq_12, rubrics
from tests.examples import at_most
from tests.studies.credit.reference import Example, Link, sheet_of, sheets_of
from tests.studies.figures import figures_of


@settings(max_examples=at_most(60), deadline=None)
@given(rubrics(), st.integers(0, 2**64), st.text(max_size=3))
def test_rewiring_keeps_the_number_and_kinds_of_edges_and_is_acyclic(
    rubric: Rubric, seed: int, task: str
) -> None:
    drawn = rewire(gear.compile(rubric.n, rubric.parents, rubric.children), seed, task)
    edges = list(zip(drawn.parents, drawn.children, strict=True))
    assert len(edges) == len(set(edges)) == len(rubric.edges)
    assert Counter(rubric.kinds[kept] for kept in drawn.source_edge_indices) == Counter(
        rubric.kinds
    )
    assert all(0 <= end < rubric.n for ends in edges for end in ends)
    # refuses a cycle
    gear.compile(rubric.n, [parent for parent, _ in edges], [child for _, child in edges])


def test_rewiring_depends_only_on_the_seed_and_the_task() -> None:
    graph = gear.compile(6, [0, 1, 2], [1, 2, 3])
    assert rewire(graph, 1, "a") == rewire(graph, 1, "a")
    assert len({str(rewire(graph, seed, task)) for seed in range(5) for task in "ab"}) == 10


def test_rewiring_can_give_every_acyclic_graph() -> None:
    graph = gear.compile(3, [0], [1])
    drawn = {
        (one.parents[0], one.children[0])
        for one in (rewire(graph, seed, "a") for seed in range(200))
    }
    assert drawn == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_random_graphs_are_reported_by_seed_and_as_a_mean() -> None:
    example = Example(
        [1.0] * 4, [Link(0, 1, "weak"), Link(1, 2, "strong")], [0.2, 0.9, 0.9, 0.1], [True] * 4
    )
    edgeless = Example([1.0], [], [0.5], [True])
    sheets = sheets_of([[example], [edgeless]])
    random = figures_of(report(sheets)).ablations.random
    assert list(random.by_seed) == [str(seed) for seed in range(RANDOM_GRAPH_COUNT)]
    for figure in ("reward", "leakage"):
        values = [one[figure] for one in random.by_seed.values()]
        assert random.mean[figure] == pytest.approx(sum(values) / RANDOM_GRAPH_COUNT)


DIAMOND = [
    Link(0, 1, "strong"),
    Link(0, 2, "strong"),
    Link(1, 3, "strong"),
    Link(2, 3, "strong"),
    Link(3, 4, "strong"),
]


def test_a_sheet_is_inferred_as_in_its_run_and_random_graphs_by_their_own_size() -> None:
    example = Example([1.0] * 5, DIAMOND, [0.5, 0.9, 0.9, 0.9, 0.9], [True] * 5)
    edges, factors = [(link.parent, link.child) for link in DIAMOND], [0.2] * 5
    one_pass, exact = (replace(sheet_of("t", [example]), exact=how) for how in ("never", "auto"))
    np.testing.assert_allclose(
        one_pass.graph_gated_scores(factors), [eq_12(example.p, edges, factors)], atol=1e-15
    )
    np.testing.assert_allclose(
        exact.graph_gated_scores(factors), [eq_9(example.p, edges, factors)], atol=1e-15
    )
    large = [Link(0, i, "strong") for i in range(1, 13)] + [
        Link(1, 13, "strong"),
        Link(2, 13, "strong"),
    ]
    whole = Example([1.0] * 14, large, [0.5] * 14, [True] * 14)
    found, ends = (
        replace(sheet_of("t", [whole]), exact="auto"),
        [(link.parent, link.child) for link in large],
    )
    np.testing.assert_allclose(
        found.graph_gated_scores([0.2] * 14), [eq_12(whole.p, ends, [0.2] * 14)], atol=1e-15
    )
    small = gear.compile(14, [0, 0, 1, 2], [1, 2, 3, 3])
    expected = eq_9(whole.p[:4], [(0, 1), (0, 2), (1, 3), (2, 3)], [0.2] * 4)
    np.testing.assert_allclose(
        found.graph_gated_scores([0.2] * 4, small)[:, :4], [expected], atol=1e-15
    )
