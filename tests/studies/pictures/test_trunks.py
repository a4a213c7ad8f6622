"""Trunks: long edges of a large graph run to the right of its rows."""

from itertools import combinations

from hypothesis import given, settings

from jurygraph.studies.pictures.layout import find_trunks
from tests.examples import at_most
from tests.studies.pictures.rubrics import tall_graphs

Edges = list[tuple[int, int]]


def one_node_per_row(n: int) -> dict[int, int]:
    """Return the row of each node of a chain."""
    return {node: node for node in range(n)}


def chain_and_star(n: int) -> Edges:
    return [*((node, node + 1) for node in range(n - 1)), *((0, node) for node in range(2, n))]


def same_styles(edges: Edges) -> list[str]:
    return ["weak"] * len(edges)


def test_a_small_graph_has_no_trunks() -> None:
    edges = chain_and_star(20)
    assert not find_trunks(edges, one_node_per_row(20), same_styles(edges)).of_edge


def test_a_broad_graph_has_no_trunks() -> None:
    rows = {0: 0} | {leaf: 1 + leaf // 20 for leaf in range(1, 100)}
    edges = [(0, leaf) for leaf in range(1, 100)]
    assert not find_trunks(edges, rows, same_styles(edges)).of_edge


def test_long_edges_from_the_same_parent_share_a_trunk() -> None:
    edges = chain_and_star(60)
    trunks = find_trunks(edges, one_node_per_row(60), same_styles(edges))
    assert {edges[number] for number in trunks.of_edge} == {(0, node) for node in range(4, 60)}
    assert set(trunks.of_edge.values()) == {0}
    assert list(trunks.columns) == [0]


def test_long_edges_to_the_same_child_share_a_trunk() -> None:
    edges = [(59 - child, 59 - parent) for parent, child in chain_and_star(60)]
    trunks = find_trunks(edges, one_node_per_row(60), same_styles(edges))
    assert len(trunks.of_edge) == 56
    assert set(trunks.of_edge.values()) == {0}


def test_edges_of_different_styles_share_no_trunk() -> None:
    edges = chain_and_star(60)
    styles = [("weak", "strong")[child % 2] for _, child in edges]
    trunks = find_trunks(edges, one_node_per_row(60), styles)
    assert list(trunks.columns) == [0, 1]
    assert len({(styles[number], trunk) for number, trunk in trunks.of_edge.items()}) == 2


@settings(max_examples=at_most(40))
@given(tall_graphs())
def test_trunks_have_a_common_end_and_columns_have_gaps_between_trunks(graph: tuple[int, Edges]) -> None:
    n, edges = graph
    styles = [("weak", "strong")[start % 2] for start, _ in edges]
    trunks = find_trunks(edges, one_node_per_row(n), styles)
    members: dict[int, list[int]] = {}
    for number, trunk in trunks.of_edge.items():
        members.setdefault(trunk, []).append(number)
    for numbers in members.values():
        assert len({styles[number] for number in numbers}) == 1
        assert 1 in (len({edges[number][end] for number in numbers}) for end in (0, 1))
    extents = {  # the row above it and the row below it
        trunk: (min(edges[number][0] for number in numbers), max(edges[number][1] for number in numbers))
        for trunk, numbers in members.items()
    }
    for one, other in combinations(members, 2):
        if trunks.columns[one] == trunks.columns[other]:
            assert extents[one][1] <= extents[other][0] or extents[other][1] <= extents[one][0]
