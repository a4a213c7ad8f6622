"""Positions of boxes and routes of edges."""

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.studies.pictures.layout import Box, Layout, compute_layout, count_inversions
from tests.examples import at_most
from tests.studies.pictures.rubrics import graphs, tall_graphs

Graph = tuple[int, list[tuple[int, int]]]
few = settings(max_examples=at_most(40))
any_graph = st.one_of(graphs(), tall_graphs())


def layout_of(graph: Graph) -> Layout:
    n, edges = graph
    order = gear.compile(n, [a for a, _ in edges], [b for _, b in edges]).order
    return compute_layout([60.0 + 7 * (node % 5) for node in range(n)], edges, order)


def overlap(one: Box, other: Box) -> bool:
    separate = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (separate or one.y + one.height <= other.y or other.y + other.height <= one.y)


def crosses_box(x: float, upper: float, lower: float, box: Box) -> bool:
    """Return True if a vertical line runs through a box."""
    return box.x < x < box.x + box.width and upper < box.y + box.height and lower > box.y


@few
@given(any_graph)
def test_boxes_do_not_overlap_and_stay_inside_the_picture(graph: Graph) -> None:
    layout = layout_of(graph)
    assert len(layout.boxes) == graph[0]
    assert not any(overlap(one, other) for one, other in combinations(layout.boxes, 2))
    for box in layout.boxes:
        assert box.x >= -1e-6
        assert box.x + box.width <= layout.width + 1e-6
        assert box.y >= 0
        assert box.y + box.height <= layout.height


@few
@given(any_graph)
def test_a_child_is_below_its_parents(graph: Graph) -> None:
    boxes = layout_of(graph).boxes
    assert all(boxes[parent].y + boxes[parent].height < boxes[child].y for parent, child in graph[1])


@few
@given(any_graph)
def test_an_edge_runs_from_the_bottom_of_its_parent_to_the_top_of_its_child(graph: Graph) -> None:
    layout = layout_of(graph)
    for (parent, child), route in zip(graph[1], layout.routes, strict=True):
        upper, lower, (x, y), (end_x, end_y) = layout.boxes[parent], layout.boxes[child], route[0], route[-1]
        assert upper.x < x < upper.x + upper.width
        assert y == upper.y + upper.height
        assert lower.x < end_x < lower.x + lower.width
        assert end_y == lower.y


@few
@given(any_graph)
def test_no_edge_runs_through_a_box(graph: Graph) -> None:
    layout = layout_of(graph)
    for route in layout.routes:
        for number, ((x, upper), (end_x, lower)) in enumerate(pairwise(route)):
            if number % 2 == 0:  # straight down, through a row
                assert x == end_x
                assert not any(crosses_box(x, upper, lower, box) for box in layout.boxes)
            else:  # across a gap, in which no box stands
                assert not any(upper < box.y + box.height and lower > box.y for box in layout.boxes)


@few
@given(any_graph)
def test_the_layout_is_deterministic(graph: Graph) -> None:
    assert layout_of(graph) == layout_of(graph)


def test_a_broad_graph_grows_downwards() -> None:
    star = layout_of((41, [(0, leaf) for leaf in range(1, 41)]))
    assert max(sum(box.y == row for box in star.boxes) for row in {box.y for box in star.boxes}) <= 8


def test_nodes_without_edges_are_below_the_graph() -> None:
    boxes = layout_of((4, [(1, 2)])).boxes
    assert boxes[1].y < boxes[2].y < boxes[0].y == boxes[3].y


def test_many_long_edges_share_a_line_to_the_right_of_the_rows() -> None:
    chain = [(node, node + 1) for node in range(59)]
    layout = layout_of((60, [*chain, *((0, node) for node in range(10, 60))]))
    begun = {route[:3] for route in layout.routes[len(chain) :]}
    assert len(begun) == 1
    *_, (x, _) = begun.pop()
    assert max(box.x + box.width for box in layout.boxes) < x < layout.width


def test_avoidable_crossings_are_avoided() -> None:
    boxes = layout_of((6, [(0, 5), (1, 4), (2, 3)])).boxes
    assert sorted((0, 1, 2), key=lambda i: boxes[i].x) == sorted((0, 1, 2), key=lambda i: boxes[5 - i].x)


@given(st.lists(st.integers(0, 9), max_size=30))
def test_inversions_are_counted(places: list[int]) -> None:
    assert count_inversions(places) == sum(first > second for first, second in combinations(places, 2))
