"""Random graphs keep the number and the kinds of edges."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.studies.credit import CreditStudy, rewire
from jurygraph.studies.credit.study import is_unchanged
from tests.aggregation.reference import Rubric, rubrics
from tests.examples import at_most
from tests.studies.credit.reference import Example, Link, sheet_of, sheets_of
from tests.studies.figures import figures_of


@settings(max_examples=at_most(60), deadline=None)
@given(rubrics(), st.integers(0, 2**64), st.text(max_size=3))
def test_rewiring_keeps_the_number_and_kinds_of_edges_and_is_acyclic(rubric: Rubric, seed: int, task: str) -> None:
    drawn = rewire(gear.compile(rubric.n, rubric.parents, rubric.children), seed, task)
    edges = list(zip(drawn.parents, drawn.children, strict=True))
    assert len(edges) == len(set(edges)) == len(rubric.edges)
    assert Counter(rubric.kinds[kept] for kept in drawn.source_edges) == Counter(rubric.kinds)
    assert all(0 <= end < rubric.n for ends in edges for end in ends)
    gear.compile(rubric.n, [parent for parent, _ in edges], [child for _, child in edges])  # refuses a cycle


def test_rewiring_depends_only_on_the_seed_and_the_task() -> None:
    graph = gear.compile(6, [0, 1, 2], [1, 2, 3])
    assert rewire(graph, 1, "a") == rewire(graph, 1, "a")
    assert len({str(rewire(graph, seed, task)) for seed in range(5) for task in "ab"}) == 10


def test_rewiring_can_give_every_acyclic_graph() -> None:
    graph = gear.compile(3, [0], [1])
    drawn = {(one.parents[0], one.children[0]) for one in (rewire(graph, seed, "a") for seed in range(200))}
    assert drawn == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_a_rewired_graph_equal_to_the_annotated_one_is_detected() -> None:
    pair = sheet_of("pair", [Example([1.0, 1.0], [Link(0, 1, "weak")], [0.2, 0.9], [True, True])])
    same = [is_unchanged(pair, seed) for seed in range(40)]
    for seed, unchanged in enumerate(same):
        drawn = rewire(pair.graph, seed, pair.task)
        assert unchanged == (drawn.parents == [0])
    assert 8 < sum(same) < 32


def test_random_graphs_are_reported_by_seed_and_as_a_mean() -> None:
    example = Example([1.0] * 4, [Link(0, 1, "weak"), Link(1, 2, "strong")], [0.2, 0.9, 0.9, 0.1], [True] * 4)
    edgeless = Example([1.0], [], [0.5], [True])
    study = CreditStudy(sheets_of([[example], [edgeless]]), random_graphs=4)
    steps: list[int] = []
    random = figures_of(study.run(steps.append)).ablations.random
    assert sum(steps) == study.size
    assert list(random.by_seed) == ["0", "1", "2", "3"]
    assert random.graphs == 4
    assert random.mean.reward == pytest.approx(sum(one.reward for one in random.by_seed.values()) / 4)
    assert random.mean.leakage == pytest.approx(sum(one.leakage or 0.0 for one in random.by_seed.values()) / 4)
