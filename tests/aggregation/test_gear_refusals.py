"""GEAR refuses rather than guesses: each guess would be false credit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.errors import GraphCycleError, GraphError
from tests.aggregation.reference import Rubric, rubrics
from tests.rows import all_rows

IDS = ("cites", "quotes", "invents")


@all_rows(
    ("p", "message"),
    [
        ([0.5, np.nan], r"p\[1\] is nan: a number in \[0, 1\]"),
        ([[0.5, 0.5], [np.inf, 0.5]], r"p\[1, 0\] is inf"),
        ([1.7, 0.5], r"p\[0\] is 1.7"),
        ([np.nextafter(1.0, 2.0), 0.5], r"p\[0\] is 1.0000000000000002"),
        ([-1e-9, 0.5], r"p\[0\] is -1e-09"),
        ([True, True], "p holds bool"),
        (["0.5", "0.5"], "p holds <U3"),
        ([None, 0.5], "p holds object"),
        ([[0.5], [0.5, 0.5]], "p is not an array of numbers"),
        (0.5, "p is a single number"),
        ([[[0.5, 0.5]]], r"p has shape \(1, 1, 2\)"),
        ([], "0 criteria"),
        (np.ma.masked_invalid([0.5, np.nan]), "p is a masked array"),
    ],
)
@all_rows("function", [gear.marginals, gear.exact_marginals])
def test_scores(function: object, p: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        function(p, [0], [1], [0.2])
    with pytest.raises(GraphError, match=message):
        gear.hard(p, [0], [1])


@all_rows(
    ("retention", "message"),
    [
        ([], r"shape \(0,\) for 2 edges: every edge needs its own"),
        ([0.2], r"shape \(1,\) for 2 edges"),
        ([0.2] * 3, r"shape \(3,\) for 2 edges"),
        (0.2, r"shape \(\) for 2 edges"),
        ([0.2, np.nan], r"retention\[1\] is nan"),
        ([0.2, 1.2], r"retention\[1\] is 1.2"),
        ([-0.2, 0.2], r"retention\[0\] is -0.2"),
        ([None, 0.2], "retention holds object"),
    ],
)
def test_retention(retention: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.marginals([0.5] * 3, [0, 1], [1, 2], retention)


@all_rows(
    ("parents", "children", "message"),
    [
        ([0, 3], [1, 2], r"parents\[1\] is 3, but the criteria are numbered 0 to 2"),
        ([0, 1], [1, -1], r"children\[1\] is -1"),
        ([0, 1], [1], "2 parents but 1 children"),
        ([0.0, 1.0], [1, 2], "parents has shape .* and holds float64"),
        ([False, True], [1, 2], "holds bool"),
        ([[0, 1]], [1, 2], r"parents has shape \(1, 2\)"),
        ([0, 1], [1, 1], "edge 1 leads from criterion 1 to itself"),
        ([0, 0], [1, 1], "edges 0 and 1 are both 0 -> 1: a pair has one edge at most"),
    ],
)
def test_edges_between_indices(parents: object, children: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.compile(3, parents, children)


@pytest.mark.parametrize(
    ("parents", "children", "cycle"),
    [
        ([0, 1], [1, 0], [0, 1, 0]),
        ([2, 0, 1], [0, 1, 2], [0, 1, 2, 0]),
        ([4, 3, 1, 4, 0], [3, 1, 4, 2, 1], [1, 4, 3, 1]),  # 0 leads in, 2 hangs below
        ([1, 2, 3, 2], [2, 3, 1, 0], [1, 2, 3, 1]),  # 0 hangs below
        ([1, 3, 0, 2], [3, 1, 2, 0], [0, 2, 0]),  # of two, the one of the smallest index
        ([2, 1, 0, 0], [0, 0, 1, 2], [0, 1, 0]),  # of two parents, the smaller
    ],
)
def test_a_cycle_is_named_in_the_order_of_its_edges(
    parents: list[int], children: list[int], cycle: list[int]
) -> None:
    with pytest.raises(GraphCycleError) as refused:
        gear.marginals([0.5] * 5, parents, children, [0.2] * len(parents))
    assert refused.value.cycle == cycle


@given(rubrics(), st.randoms())
def test_the_named_cycle_exists_in_the_edges(rubric: Rubric, random: object) -> None:
    backwards = [(child, parent) for parent, child in rubric.edges]
    both = rubric.edges + backwards
    random.shuffle(both)
    if not both:
        return
    with pytest.raises(GraphCycleError) as refused:
        gear.compile(rubric.n, [parent for parent, _ in both], [child for _, child in both])
    cycle = refused.value.cycle
    assert cycle[0] == cycle[-1] == min(cycle)
    assert set(pairwise(cycle)) <= set(both)


def test_errors_use_the_names_of_the_criteria() -> None:
    with pytest.raises(GraphCycleError, match="cites -> quotes -> cites"):
        gear.compile(3, [0, 1], [1, 0], names=IDS)
    with pytest.raises(GraphError, match="criterion quotes to itself"):
        gear.compile(3, [1], [1], names=IDS)
    with pytest.raises(
        GraphError, match="edges 0 and 1 are both cites -> quotes: a pair has one edge at most"
    ):
        gear.compile(3, [0, 0], [1, 1], names=IDS)


def test_edges_between_ids_become_edges_between_indices() -> None:
    parents, children = gear.edges(IDS, [("quotes", "invents"), ("cites", "quotes")])
    assert (parents.tolist(), children.tolist()) == ([1, 0], [2, 1])
    assert [len(part) for part in gear.edges(IDS, [])] == [0, 0]
    assert {part.dtype for part in gear.edges(IDS, [])} == {np.dtype(np.intp)}
    assert gear.compile(3, *gear.edges(IDS, [])).order == (0, 1, 2)


def test_a_repeated_id_of_an_array_is_named() -> None:
    with pytest.raises(GraphError, match="criterion cites is there twice"):
        gear.edges(np.array(["cites", "quotes", "cites"]), [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("cites", "sings"), "edge cites -> sings: there is no criterion sings"),
        (("sings", "cites"), "edge sings -> cites: there is no criterion sings"),
    ],
)
def test_edges_between_unknown_ids(pair: tuple[str, str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.edges(IDS, [pair])


@all_rows(
    ("kinds", "settings", "message"),
    [
        (["weak", "soft"], {}, "'soft' is not a kind of edge"),
        ("strong", {}, "kinds is 'strong': a list"),
        (["weak"], {"kappa": -0.5}, "kappa is -0.5"),
        (["weak"], {"kappa": np.nan}, "kappa is nan"),
        (["weak"], {"kappa": np.inf}, "kappa is inf"),
        (["weak"], {"base": {"soft": 0.5}}, "'soft' is not a kind of edge"),
        (["weak"], {"base": {"strong": 1.5}}, r"base\['strong'\] is 1.5"),
        (["weak"], {"base": {"weak": np.nan}}, r"base\['weak'\] is nan"),
    ],
)
def test_kinds_kappa_and_base(kinds: object, settings: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.retention(kinds, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "soft"}, "mode is 'soft': local or transitive"),
        ({"met": [1, 0]}, "met holds int64"),
        ({"met": [True]}, r"met has shape \(1,\)"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"threshold": np.nan}, "threshold is nan"),
        ({"threshold": [0.5, 0.5]}, r"threshold has shape \(2,\)"),
    ],
)
def test_hard_gating(settings: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        gear.hard([0.5, 0.5], [0], [1], **settings)


def test_a_repeated_id_is_named() -> None:
    with pytest.raises(GraphError, match=r"^criterion quotes is there twice$"):
        gear.edges([*IDS, "quotes"], [])
