"""jurygraph's own combiners against values worked out by hand, and the bounds that they promise."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import Combiner, GraphCycleError, PlanError, ScoreMatrix
from jurygraph.agents.registry import BUILTIN_COMBINER_PATHS, load_combiner
from jurygraph.decision.combiners import input_means
from jurygraph.schema import ComponentInput
from tests.examples import at_most
from tests.rows import all_rows

Draw = Callable[[st.SearchStrategy[Any]], Any]


def matrix(
    value: Any,
    weight: Any = 1.0,
    input_weight: float = 1.0,
    judged: Any = True,
    applicable: Any = True,
    met: Any = None,
) -> ScoreMatrix:
    """One input; a number is a single response's single cell."""
    numbers = np.atleast_2d(np.array(value, dtype=float))
    return ScoreMatrix(
        value=numbers,
        met=numbers >= 0.5 if met is None else np.broadcast_to(np.array(met), numbers.shape),
        judged=np.broadcast_to(np.array(judged), numbers.shape),
        applicable=np.broadcast_to(np.array(applicable), numbers.shape),
        weight=np.full(numbers.shape[1], weight),
        input_weight=input_weight,
    )


def component_inputs(matrices: Mapping[str, ScoreMatrix]) -> dict[str, ComponentInput]:
    return {
        name: ComponentInput(
            questions=(name,), weights=tuple(c.weight.tolist()), input_weight=c.input_weight
        )
        for name, c in matrices.items()
    }


def run_combiner(name: str, matrices: Mapping[str, ScoreMatrix], **params: Any) -> Any:
    combiner = load_combiner(name)
    return combiner.combine(matrices, combiner.freeze(component_inputs(matrices), params))


def value_of(name: str, matrices: Mapping[str, ScoreMatrix], **params: Any) -> float:
    result = run_combiner(name, matrices, **params)
    assert result.present.tolist() == [True]
    return float(result.value[0])


def inference_of(criteria: list[str], edges: list[dict[str, Any]], exact: str) -> str:
    inputs = component_inputs({name: matrix(1.0) for name in criteria})
    params = load_combiner("gear").freeze(inputs, {"edges": edges, "exact": exact})
    return str(params["inference"])


def parts_of(name: str, matrices: Mapping[str, ScoreMatrix], **params: Any) -> dict[str, float]:
    return {
        part: float(shown[0])
        for part, shown in run_combiner(name, matrices, **params).parts.items()
    }


def make_edge(
    parent: str, child: str, kind: str = "strong", retention: float | None = None
) -> dict[str, Any]:
    return {"parent": parent, "child": child, "kind": kind, "retention": retention}


# Mean, product


def test_the_mean_weighs_the_inputs_by_their_weights() -> None:
    assert value_of(
        "mean", {"a": matrix(0.2), "b": matrix(0.8, input_weight=3.0)}
    ) == pytest.approx(0.65, abs=1e-15)


def test_the_mean_inside_an_input_goes_by_the_size_of_its_weights() -> None:
    cells = matrix([[0.0, 1.0]])
    assert (
        value_of(
            "mean",
            {
                "a": ScoreMatrix(
                    cells.value, cells.met, cells.judged, cells.applicable, np.array([3.0, -1.0])
                )
            },
        )
        == 0.25
    )


def test_the_mean_leaves_out_an_input_that_does_not_apply() -> None:
    a = matrix([[0.2], [0.2], [0.2]], applicable=[[True], [True], [False]])
    b = matrix([[0.8], [0.8], [0.8]], applicable=[[True], [False], [False]], input_weight=3.0)
    result = run_combiner("mean", {"a": a, "b": b})
    assert result.value.tolist() == pytest.approx([0.65, 0.2, 0.0], abs=1e-15)
    assert result.present.tolist() == [True, True, False]


def test_the_product_multiplies_the_inputs_whatever_their_weights() -> None:
    assert (
        value_of(
            "product", {"a": matrix(1.0), "b": matrix(0.5, input_weight=9.0), "c": matrix(0.25)}
        )
        == 0.125
    )


def test_a_product_is_there_only_where_every_input_is() -> None:
    result = run_combiner(
        "product",
        {"a": matrix([[0.5], [0.5]]), "b": matrix([[0.5], [0.5]], applicable=[[True], [False]])},
    )
    assert result.present.tolist() == [True, False]


def test_a_product_of_one_is_refused() -> None:
    with pytest.raises(PlanError, match="two inputs or more; add one, or use 'mean'"):
        run_combiner("product", {"a": matrix(1.0)})


# The rubric: a -> b -> c, and a penalty d below b

CHAIN = [
    make_edge("a", "b", "strong"),
    make_edge("b", "c", "weak"),
    make_edge("b", "d", "activation"),
]


def criteria_chain(
    a: Any = 0.4, b: Any = 0.9, c: Any = 1.0, d: Any = 0.5, **fields: Any
) -> dict[str, ScoreMatrix]:
    return {
        "a": matrix(a, input_weight=2.0, **fields),
        "b": matrix(b, **fields),
        "c": matrix(c, **fields),
        "d": matrix(d, weight=-1.0, **fields),
    }


def test_flat_is_eq_14_with_the_scores_as_they_are() -> None:
    assert value_of("flat", criteria_chain(), edges=CHAIN) == pytest.approx(
        (2 * 0.4 + 0.9 + 1.0 - 0.5) / 4, abs=1e-15
    )


def test_gear_is_eq_12_and_eq_14() -> None:
    b = 0.9 * (0.4 + 0.6 * 0.2)
    c = 1.0 * (b + (1 - b) * 0.6)
    d = 0.5 * b
    assert parts_of("gear", criteria_chain(), edges=CHAIN) == pytest.approx(
        {"a": 0.4, "b": b, "c": c, "d": d}, abs=1e-15
    )
    assert value_of("gear", criteria_chain(), edges=CHAIN) == pytest.approx(
        (2 * 0.4 + b + c - d) / 4, abs=1e-15
    )


def test_hard_local_looks_at_each_parents_own_decision() -> None:
    assert parts_of("hard-local", criteria_chain(), edges=CHAIN) == {
        "a": 0.4,
        "b": 0.0,
        "c": 1.0,
        "d": 0.5,
    }
    assert value_of("hard-local", criteria_chain(), edges=CHAIN) == pytest.approx(
        (2 * 0.4 + 1.0 - 0.5) / 4, abs=1e-15
    )


def test_hard_transitive_looks_at_each_parents_gate_too() -> None:
    assert parts_of("hard-transitive", criteria_chain(), edges=CHAIN) == {
        "a": 0.4,
        "b": 0.0,
        "c": 0.0,
        "d": 0.0,
    }
    assert value_of("hard-transitive", criteria_chain(), edges=CHAIN) == pytest.approx(
        2 * 0.4 / 4, abs=1e-15
    )


@pytest.mark.parametrize(
    ("kappa", "retention", "expected"),
    [
        (1.0, None, 0.2),
        (2.0, None, 0.04),
        (0.5, None, 0.2**0.5),
        (0.0, None, 1.0),
        (1.0, 0.5, 0.5),
        (2.0, 0.5, 0.25),
    ],
)
def test_retention_of_an_edge_is_its_own_or_the_base_of_its_kind_to_the_power_kappa(
    kappa: float, retention: float | None, expected: float
) -> None:
    cells = {"a": matrix(0.0), "b": matrix(1.0)}
    shown = parts_of("gear", cells, edges=[make_edge("a", "b", "strong", retention)], kappa=kappa)
    assert shown["b"] == pytest.approx(expected, abs=1e-15)


def test_exact_inference_and_one_pass_give_a_tree_the_same_bits() -> None:
    exact, one_pass = (
        run_combiner("gear", criteria_chain(), edges=CHAIN, exact=how) for how in ("auto", "never")
    )
    assert exact.value.tobytes() == one_pass.value.tobytes()


@pytest.mark.parametrize(("exact", "half"), [("auto", 0.5 + 0.5 * 0.04), ("never", 0.6**2)])
def test_exact_inference_sees_that_two_prerequisites_fail_together(exact: str, half: float) -> None:
    """Both depend on one that was not judged: it does not hold for a gain, and does for a penalty."""
    cells = {"a": matrix(0.0, judged=False), "b": matrix(1.0), "c": matrix(1.0), "d": matrix(1.0)}
    edges = [make_edge("a", "b", "activation"), make_edge("a", "c", "activation")]
    edges += [make_edge("b", "d", retention=0.2), make_edge("c", "d", retention=0.2)]
    assert parts_of("gear", cells, edges=edges, exact=exact)["d"] == pytest.approx(0.04, abs=1e-15)
    cells |= {"d": matrix(1.0, weight=-1.0)}
    assert parts_of("gear", cells, edges=edges, exact=exact)["d"] == 1.0
    cells |= {"a": matrix(0.5)}
    assert parts_of("gear", cells, edges=edges, exact=exact)["d"] == pytest.approx(half, abs=1e-15)


@all_rows(
    ("exact", "inference"),
    [("auto", "one-pass exact"), ("ten-nodes", "one-pass one-pass"), ("always", "exact exact")],
)
def test_inference_follows_the_criteria_with_a_parent_or_all_of_them(
    exact: str, inference: str
) -> None:
    """Eleven criteria below one parent, and eleven criteria of which one has a parent."""
    children = [f"c{number}" for number in range(11)]
    wide = [make_edge("a", child) for child in children]
    found = [inference_of(["a", *children], edges, exact) for edges in (wide, wide[:1])]
    assert " ".join(found) == inference


def test_exact_inference_is_refused_where_there_are_too_many_states() -> None:
    names = [f"c{number:02}" for number in range(22)]
    edges = [make_edge(*ends) for ends in pairwise(names)]
    with pytest.raises(PlanError, match=r"21 criteria .* 20 at most; write `exact: auto`"):
        inference_of(names, edges, "always")


@all_rows(
    ("name", "positive", "penalty"),
    [
        ("gear", 0.2, 1.0),
        ("hard-local", 0.0, 1.0),
        ("hard-transitive", 0.0, 1.0),
        ("flat", 1.0, 1.0),
    ],
)
@all_rows("why", [{"judged": False}, {"applicable": False}])
def test_a_parent_without_a_verdict_never_helps(
    name: str, positive: float, penalty: float, why: dict[str, bool]
) -> None:
    """A positive child is as if unsupported, a penalty as if supported, whatever the parent was filled with."""
    edges = [make_edge("a", "b"), make_edge("a", "d")]
    for filled in (0.0, 1.0):
        cells = {"a": matrix(filled, **why), "b": matrix(1.0), "d": matrix(1.0, weight=-1.0)}
        shown = parts_of(name, cells, edges=edges)
        assert (shown["b"], shown["d"]) == (positive, penalty)


def test_a_parent_is_judged_when_all_of_its_cells_that_apply_are() -> None:
    def child(judged: list[bool], applicable: list[bool]) -> float:
        cells = {"a": matrix([[1.0, 1.0]], judged=judged, applicable=applicable), "b": matrix(1.0)}
        return parts_of("gear", cells, edges=[make_edge("a", "b")])["b"]

    assert child([True, True], [True, True]) == 1.0
    assert child([True, False], [True, True]) == 0.2
    assert child([True, False], [True, False]) == 1.0
    assert child([True, True], [False, False]) == 0.2


def test_a_parent_of_several_cells_holds_when_half_of_those_that_apply_do() -> None:
    def child(met: list[bool], applicable: list[bool]) -> float:
        cells = {"a": matrix([[0.0] * len(met)], met=met, applicable=applicable), "b": matrix(1.0)}
        return parts_of("hard-local", cells, edges=[make_edge("a", "b")])["b"]

    assert child([True, False], [True, True]) == 1.0
    assert child([True, False, False], [True, True, True]) == 0.0
    assert child([True, False, False], [True, True, False]) == 1.0


def test_a_criterion_that_does_not_apply_leaves_numerator_and_denominator() -> None:
    cells = criteria_chain() | {
        "c": matrix(1.0, applicable=False),
        "d": matrix(0.5, weight=-1.0, applicable=False),
    }
    assert value_of("flat", cells) == pytest.approx((2 * 0.4 + 0.9) / 3, abs=1e-15)


def test_without_a_positive_criterion_that_applies_there_is_no_component() -> None:
    cells = criteria_chain() | {name: matrix(1.0, applicable=False) for name in "abc"}
    assert run_combiner("flat", cells).present.tolist() == [False]


@pytest.mark.parametrize("name", ["flat", "gear", "hard-local", "hard-transitive"])
def test_a_rubric_of_penalties_alone_is_refused(name: str) -> None:
    with pytest.raises(
        PlanError,
        match=r"no criterion of positive weight.* for faults alone, .*reward: {rude: -0.3}",
    ):
        run_combiner(name, {"a": matrix(1.0, weight=-1.0)})


@pytest.mark.parametrize("name", ["gear", "hard-local", "hard-transitive"])
def test_a_cycle_is_named_by_the_ids_of_its_criteria(name: str) -> None:
    edges = [
        make_edge("core-c", "core-a"),
        make_edge("core-a", "core-b"),
        make_edge("core-b", "core-c"),
    ]
    cells = {each: matrix(1.0) for each in ("core-a", "core-b", "core-c")}
    with pytest.raises(GraphCycleError, match="core-a -> core-b -> core-c -> core-a"):
        run_combiner(name, cells, edges=edges)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"edges": [make_edge("a", "z")]}, "there is no criterion z"),
        ({"edges": [make_edge("a", "a")]}, "to itself"),
        (
            {"edges": [make_edge("a", "b"), make_edge("a", "b", "weak")]},
            "a -> b: a pair has one edge at most",
        ),
        ({"edges": [{"parent": "a"}]}, r"params.edges\[0\].child: is missing; every edge needs it"),
    ],
)
def test_params_that_make_no_graph_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        run_combiner("gear", {"a": matrix(1.0), "b": matrix(1.0)}, **params)


# Bounds

RUBRIC = ("flat", "gear", "hard-local", "hard-transitive")
WELFARE = ("stakeholders", "egalitarian", "nash")
PROPERTY_TESTED = [
    name for name in BUILTIN_COMBINER_PATHS if not load_combiner(name).needs_all_columns
]
"""Combiners that read columns as pairs or samples have the same test next to their own tests."""


@st.composite
def combiner_groups(
    draw: Draw, name: str
) -> tuple[Combiner, dict[str, Any], list[dict[str, ScoreMatrix]]]:
    """A combiner with its frozen params, and a group's cells filled low, filled high, and in a way of their own."""
    rows, width = draw(st.integers(1, 2)), draw(st.integers(2, 4))
    names = [f"c{i}" for i in range(width)]
    share = 1.0 / width
    fillings_of_group: list[dict[str, ScoreMatrix]] = [{}, {}, {}]
    welfare, rubric = name in WELFARE, name in RUBRIC
    for i, each in enumerate(names):
        columns = draw(st.integers(1, 2))
        shape = (rows, columns)
        grids = {what: draw(arrays_of(kind, shape)) for what, kind in GRIDS.items()}
        weight = draw(st.sampled_from([1.0, -1.0])) if rubric and i else 1.0
        input_weight = share if welfare else draw(st.floats(0.1, 5.0))
        judged = grids["judged"] | ~grids["applicable"]
        fillings = ((0.0, False), (1.0, True), (grids["fill_value"], grids["fill_met"]))
        for cells, (fill, decided) in zip(fillings_of_group, fillings, strict=True):
            cells[each] = ScoreMatrix(
                value=np.where(judged, grids["value"], fill),
                met=np.where(judged, grids["met"], decided),
                judged=judged if cells is not fillings_of_group[2] else np.ones(shape, dtype=bool),
                applicable=grids["applicable"],
                weight=np.full(columns, weight),
                input_weight=input_weight,
            )
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    kinds = st.sampled_from(["weak", "strong", "activation"])
    edges = [
        make_edge(a, b, draw(kinds), draw(st.none() | st.floats(0.0, 1.0)))
        for a, b in pairs
        if draw(st.booleans())
    ]
    combiner = load_combiner(name)
    params = {"edges": edges, "kappa": draw(st.floats(0.0, 3.0))} if rubric else {}
    params |= {"exact": draw(st.sampled_from(["auto", "always", "never"]))} if rubric else {}
    if welfare:
        hard = {each: [0] for each in names if draw(st.booleans())}
        soft = {each: [fillings_of_group[0][each].value.shape[1] - 1] for each in names}
        params = {"hard": hard, "soft": soft, "cap": draw(st.floats(0.0, 1.0))}
        params |= {"floor": draw(st.floats(0.0, 1.0))} if name == "egalitarian" else {}
    return (
        combiner,
        combiner.freeze(component_inputs(fillings_of_group[0]), params),
        fillings_of_group,
    )


GRIDS: dict[str, Any] = {
    "value": st.floats(0.0, 1.0),
    "fill_value": st.floats(0.0, 1.0),
    "met": st.booleans(),
    "fill_met": st.booleans(),
    "judged": st.booleans(),
    "applicable": st.integers(0, 4).map(bool),
}


def arrays_of(kind: st.SearchStrategy[Any], shape: tuple[int, int]) -> st.SearchStrategy[Any]:
    rows = st.lists(
        st.lists(kind, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
    return rows.map(np.array)


@pytest.mark.parametrize("name", PROPERTY_TESTED)
@settings(max_examples=at_most(60, quick=8), deadline=None)
@given(data=st.data())
def test_the_bounds_hold_whatever_the_unjudged_turn_out_to_be(
    name: str, data: st.DataObject
) -> None:
    combiner, params, (low, high, filled) = data.draw(combiner_groups(name))
    least, greatest = combiner.bounds(low, high, params)
    result = combiner.combine(filled, params)
    inside = (least <= result.value + 1e-12) & (result.value <= greatest + 1e-12)
    assert (inside | ~result.present).all()


@pytest.mark.parametrize("name", PROPERTY_TESTED)
@settings(max_examples=at_most(30, quick=8), deadline=None)
@given(data=st.data())
def test_a_response_has_the_same_component_alone_and_in_a_group(
    name: str, data: st.DataObject
) -> None:
    combiner, params, (_, _, cells) = data.draw(combiner_groups(name))
    together = combiner.combine(cells, params).value
    for row in range(len(together)):
        alone = combiner.combine({each: _row_of(c, row) for each, c in cells.items()}, params).value
        assert alone.tobytes() == together[row : row + 1].tobytes()


def _row_of(cells: ScoreMatrix, row: int) -> ScoreMatrix:
    rows = slice(row, row + 1)
    return ScoreMatrix(
        cells.value[rows],
        cells.met[rows],
        cells.judged[rows],
        cells.applicable[rows],
        cells.weight,
        cells.input_weight,
    )


@settings(max_examples=at_most(100), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(-0.0, 1.0), min_size=3, max_size=3),
            st.lists(st.booleans(), min_size=3, max_size=3),
            st.sampled_from([1.0, -0.3, 0.0, 1e-9, 1 / 3]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_inputs_of_one_column_have_the_means_of_each_input_to_the_bit(drawn: Any) -> None:
    inputs = {
        f"i{place}": matrix(np.array([values]).T, weight, applicable=np.array([applicable]).T)
        for place, (values, applicable, weight) in enumerate(drawn)
    }
    values, present = zip(*(one.mean() for one in inputs.values()), strict=True)
    found, applies = input_means(inputs)
    assert found.tobytes() == np.stack(values, axis=1).tobytes()
    assert applies.tolist() == np.stack(present, axis=1).tolist()
