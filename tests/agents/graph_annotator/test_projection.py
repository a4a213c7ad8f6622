"""The acyclic projection."""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.agents.graph_annotator import drop_cycle_edges
from jurygraph.schema import Edge
from tests.examples import at_most

KINDS = ("weak", "strong", "activation")


def edge(parent: str, child: str, kind: str = "weak", confidence: float | None = 0.5) -> Edge:
    return Edge.model_validate(
        {"parent": parent, "child": child, "kind": kind, "confidence": confidence}
    )


@st.composite
def graphs(draw: Any) -> list[Edge]:
    size = draw(st.integers(2, 7))
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=len(pairs)))
    confidences = st.sampled_from([0.2, 0.5, 0.9, None])
    return [
        edge(f"n{i}", f"n{j}", draw(st.sampled_from(KINDS)), draw(confidences)) for i, j in chosen
    ]


def reaches(edges: Sequence[Edge], start: str, end: str) -> bool:
    seen, left = {start}, [start]
    while left:
        node = left.pop()
        new = {one.child for one in edges if one.parent == node} - seen
        seen |= new
        left += new
    return end in seen


def rank(one: Edge) -> tuple[int, float, str, str]:
    return (
        KINDS.index(one.kind),
        1.0 if one.confidence is None else one.confidence,
        one.parent,
        one.child,
    )


@settings(max_examples=at_most(60))
@given(graphs(), st.randoms(use_true_random=False))
def test_the_projection_removes_only_edges_on_cycles(edges: list[Edge], random: Any) -> None:
    kept, dropped = drop_cycle_edges(edges)
    order = {one.child: {two.parent for two in kept if two.child == one.child} for one in kept}
    list(TopologicalSorter(order).static_order())  # raises at a cycle
    for one, _ in dropped:
        assert reaches(edges, one.child, one.parent), "it lay on a cycle"
        assert reaches(kept, one.child, one.parent), "and could not be put back"
    assert sorted([*kept, *(one for one, _ in dropped)], key=rank) == sorted(edges, key=rank)
    shuffled = list(edges)
    random.shuffle(shuffled)
    assert drop_cycle_edges(shuffled) == (kept, dropped), "whatever the order"


@settings(max_examples=at_most(60))
@given(graphs())
def test_a_dropped_edge_is_reported_with_a_cycle_in_which_it_is_weakest(edges: list[Edge]) -> None:
    by_ends = {(one.parent, one.child): one for one in edges}
    for one, cycle in drop_cycle_edges(edges)[1]:
        steps = list(pairwise(cycle))
        assert steps[0] == (one.parent, one.child)
        assert cycle[0] == cycle[-1]
        assert min((by_ends[step] for step in steps), key=rank) == one


def test_edges_rank_by_kind_then_confidence_then_id() -> None:
    one, other = edge("a", "b", "weak", 0.9), edge("b", "a", "strong", 0.1)
    assert drop_cycle_edges([one, other])[0] == (other,)
    assert (
        drop_cycle_edges([edge("a", "b", "strong", 0.9), edge("b", "a", "activation", 0.1)])[0][
            0
        ].kind
        == "activation"
    )
    assert (
        drop_cycle_edges([edge("a", "b", "weak", 0.3), edge("b", "a", "weak", 0.4)])[0][0].parent
        == "b"
    )
    assert drop_cycle_edges([edge("a", "b"), edge("b", "a")])[0][0].parent == "b"


def test_existing_edges_are_kept() -> None:
    standing, proposed = edge("a", "b", "weak", 0.0), edge("b", "a", "activation", 1.0)
    kept, dropped = drop_cycle_edges([proposed], [standing])
    assert kept == (standing,)
    assert dropped == ((proposed, ("b", "a", "b")),)
