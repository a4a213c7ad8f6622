"""GEAR: what a criterion earns when what it builds on does not hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.errors import GraphError
from tests.aggregation.reference import Rubric, chain, eq_9, eq_12, has_independent_parents, rubrics

# r1 -> {r2, r3} -> r4 -> r5
DIAMOND = ([0, 0, 1, 2, 3], [1, 2, 3, 3, 4])
DIAMOND_P = [0.5, 0.9, 0.9, 0.9, 0.9]
kappas = st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0])


def marginals_of(rubric: Rubric, kappa: float = 1.0) -> np.ndarray:
    return gear.marginals(
        rubric.p, rubric.parents, rubric.children, gear.retention(rubric.kinds, kappa)
    )


class TestRetention:
    def test_the_paper_s_three_kinds(self) -> None:
        assert gear.retention(["weak", "strong", "activation"]).tolist() == [0.6, 0.2, 0.0]

    def test_kappa_is_a_power(self) -> None:
        assert gear.retention(["weak", "strong"], kappa=2).tolist() == [0.6**2, 0.2**2]
        assert gear.retention(["weak"], kappa=0.5).tolist() == [0.6**0.5]

    def test_kappa_zero_retains_everything_over_activation_edges_too(self) -> None:
        assert gear.retention(["weak", "strong", "activation"], kappa=0).tolist() == [1.0, 1.0, 1.0]

    def test_another_base_for_some_kinds(self) -> None:
        base = {"activation": 0.1, "strong": 1.0}
        assert gear.retention(["weak", "strong", "activation"], base=base).tolist() == [
            0.6,
            1.0,
            0.1,
        ]


class TestMarginals:
    def test_a_supported_child_keeps_its_score_and_an_unsupported_one_its_share(self) -> None:
        q = gear.marginals([[1.0, 0.8], [0.0, 0.8], [0.5, 0.8]], [0], [1], [0.2])
        assert q[:, 1].tolist() == pytest.approx([0.8, 0.8 * 0.2, 0.8 * 0.6], abs=1e-15)

    def test_a_penalty_applies_as_far_as_its_activation_holds(self) -> None:
        assert gear.marginals([0.25, 0.8], [0], [1], [0.0]).tolist() == [0.25, 0.2]

    @given(rubrics(), kappas)
    def test_marginals_equal_equation_12(self, rubric: Rubric, kappa: float) -> None:
        factors = gear.retention(rubric.kinds, kappa).tolist()
        expected = [eq_12(row, rubric.edges, factors) for row in rubric.p.tolist()]
        np.testing.assert_allclose(marginals_of(rubric, kappa), expected, rtol=0, atol=1e-14)

    @given(rubrics(), kappas)
    def test_a_graph_only_takes_credit_away(self, rubric: Rubric, kappa: float) -> None:
        q = marginals_of(rubric, kappa)
        assert (q >= 0.0).all()
        assert (q <= rubric.p).all()

    @given(rubrics(), st.floats(0.0, 8.0), st.floats(0.0, 8.0))
    def test_a_larger_kappa_never_gives_more(
        self, rubric: Rubric, one: float, other: float
    ) -> None:
        less, more = sorted((one, other))
        assert (marginals_of(rubric, more) <= marginals_of(rubric, less) + 1e-15).all()


class TestExactMarginals:
    def test_below_a_diamond_the_update_is_an_approximation(self) -> None:
        approximate = gear.marginals(DIAMOND_P, *DIAMOND, [0.2] * 5)
        exact = gear.exact_marginals(DIAMOND_P, *DIAMOND, [0.2] * 5)
        assert approximate.tolist() == pytest.approx(
            [0.5, 0.54, 0.54, 0.3594816, 0.4388267520], abs=1e-9
        )
        assert exact.tolist() == pytest.approx([0.5, 0.54, 0.54, 0.4341312, 0.4925744640], abs=1e-9)
        assert exact.tolist() == pytest.approx(
            eq_9(DIAMOND_P, list(zip(*DIAMOND, strict=True)), [0.2] * 5), abs=1e-14
        )

    @given(rubrics(largest=5), kappas)
    def test_it_sums_equation_9_over_all_states(self, rubric: Rubric, kappa: float) -> None:
        factors = gear.retention(rubric.kinds, kappa)
        q = gear.exact_marginals(rubric.p, rubric.parents, rubric.children, factors)
        expected = [eq_9(row, rubric.edges, factors.tolist()) for row in rubric.p.tolist()]
        np.testing.assert_allclose(q, expected, rtol=0, atol=1e-14)

    @given(rubrics(), kappas)
    def test_where_the_update_is_exact_both_have_the_same_bits(
        self, rubric: Rubric, kappa: float
    ) -> None:
        factors = gear.retention(rubric.kinds, kappa)
        exact = gear.exact_marginals(rubric.p, rubric.parents, rubric.children, factors)
        clear = [i for i in range(rubric.n) if has_independent_parents(i, rubric.edges)]
        assert marginals_of(rubric, kappa)[:, clear].tobytes() == exact[:, clear].tobytes()

    @given(rubrics())
    def test_kappa_zero_is_flat_bit_for_bit(self, rubric: Rubric) -> None:
        factors = gear.retention(rubric.kinds, 0.0)
        q = gear.exact_marginals(rubric.p, rubric.parents, rubric.children, factors)
        assert q.tobytes() == rubric.p.tobytes()

    @given(rubrics(), kappas)
    def test_it_lies_between_the_update_and_the_local_scores(
        self, rubric: Rubric, kappa: float
    ) -> None:
        """Criteria that share a prerequisite hold together, so their product is never below that of their means."""
        q = gear.exact_marginals(
            rubric.p, rubric.parents, rubric.children, gear.retention(rubric.kinds, kappa)
        )
        assert (q <= rubric.p).all()
        assert (q >= marginals_of(rubric, kappa) - 1e-15).all()

    @given(rubrics(), st.data())
    def test_a_higher_score_lowers_no_marginal(self, rubric: Rubric, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, rubric.n - 1))
        raised = rubric.p.copy()
        raised[:, place] = data.draw(st.floats(float(raised[:, place].max()), 1.0))
        factors = gear.retention(rubric.kinds)
        low, high = (
            gear.exact_marginals(p, rubric.parents, rubric.children, factors)
            for p in (rubric.p, raised)
        )
        assert (high >= low).all()

    @given(rubrics(largest=6), st.data(), st.sampled_from([0.0, 1.0]))
    def test_an_unjudged_criterion_is_a_fixed_event_for_its_children(
        self, rubric: Rubric, data: st.DataObject, event: float
    ) -> None:
        judged = np.array(data.draw(st.lists(st.booleans(), min_size=rubric.n, max_size=rubric.n)))
        factors = gear.retention(rubric.kinds)
        found = gear.compile(rubric.n, rubric.parents, rubric.children).exact_marginals(
            rubric.p, factors, judged, event
        )
        kept = [place for place, child in enumerate(rubric.children) if judged[child]]
        edges = [rubric.edges[place] for place in kept]
        fixed = np.where(judged, rubric.p, event)
        for row, expected in zip(found, fixed.tolist(), strict=True):
            alone = eq_9(expected, edges, factors[kept].tolist())
            np.testing.assert_allclose(row[judged], np.array(alone)[judged], rtol=0, atol=1e-14)

    def test_states_are_enumerated_over_criteria_with_a_parent_alone(self) -> None:
        roots, children = 30, 10
        parents = [
            *range(roots),
            *([roots] * (children - 1)),
            *range(roots + 1, roots + children - 1),
        ]
        ends = [*(roots + i % children for i in range(roots)), *range(roots + 1, roots + children)]
        ends += range(roots + 2, roots + children)
        graph = gear.compile(roots + children, parents, ends)
        p, factors = (
            np.linspace(0.4, 0.9, 2 * graph.n).reshape(2, -1),
            np.full(graph.edge_count, 0.2),
        )
        assert graph.criteria_with_parent_count == children
        q, update = graph.exact_marginals(p, factors), graph.marginals(p, factors)
        assert (q[:, : roots + 2] == update[:, : roots + 2]).all()
        assert (q[:, roots + 2 :] > update[:, roots + 2 :]).all()

    def test_twenty_criteria_with_a_parent_and_no_more(self) -> None:
        p = np.linspace(0.5, 1.0, 105).reshape(5, 21)
        exact = gear.exact_marginals(p, *chain(21), [0.2] * 20)
        assert exact.tobytes() == gear.marginals(p, *chain(21), [0.2] * 20).tobytes()
        with pytest.raises(GraphError, match="21 criteria with a parent have too many states"):
            gear.exact_marginals(np.full(22, 0.9), *chain(22), [0.2] * 21)


class TestHard:
    CHAIN = ([0, 1], [1, 2])

    def test_a_parent_that_does_not_hold_shuts_the_gate(self) -> None:
        p = [[0.5, 0.7], [0.49, 0.7]]
        assert gear.hard(p, [0], [1]).tolist() == [[0.5, 0.7], [0.49, 0.0]]

    def test_local_and_transitive_differ_from_depth_two_on(self) -> None:
        p = [0.1, 0.9, 0.8]
        assert gear.hard(p, *self.CHAIN, mode="local").tolist() == [0.1, 0.0, 0.8]
        assert gear.hard(p, *self.CHAIN, mode="transitive").tolist() == [0.1, 0.0, 0.0]

    @given(rubrics())
    def test_they_agree_at_depth_one_and_transitive_never_gives_more(self, rubric: Rubric) -> None:
        local = gear.hard(rubric.p, rubric.parents, rubric.children)
        transitive = gear.hard(rubric.p, rubric.parents, rubric.children, mode="transitive")
        shallow = [
            i for i in range(rubric.n) if not set(rubric.parents_of(i)) & set(rubric.children)
        ]
        assert local[:, shallow].tobytes() == transitive[:, shallow].tobytes()
        assert (transitive <= local).all()

    @given(rubrics())
    def test_transitive_is_what_no_retention_gives_for_sure_scores(self, rubric: Rubric) -> None:
        sure = np.round(rubric.p)
        q = gear.marginals(sure, rubric.parents, rubric.children, np.zeros(len(rubric.parents)))
        assert (
            gear.hard(sure, rubric.parents, rubric.children, mode="transitive").tolist()
            == q.tolist()
        )

    def test_the_judge_s_own_decisions_come_before_the_threshold(self) -> None:
        assert gear.hard([0.9, 0.8], [0], [1], met=[False, True]).tolist() == [0.9, 0.0]
        assert gear.hard([0.1, 0.8], [0], [1], met=[True, False]).tolist() == [0.1, 0.8]


class TestCompiledGraph:
    def test_a_compiled_graph_gives_the_results_of_the_functions(self) -> None:
        graph = gear.compile(5, *DIAMOND)
        retention = [0.2, 0.6, 0.0, 0.2, 0.6]
        assert (
            graph.marginals(DIAMOND_P, retention).tolist()
            == gear.marginals(DIAMOND_P, *DIAMOND, retention).tolist()
        )
        exact = gear.exact_marginals(DIAMOND_P, *DIAMOND, retention)
        assert graph.exact_marginals(DIAMOND_P, retention).tolist() == exact.tolist()
        assert graph.hard_gating(DIAMOND_P).tolist() == gear.hard(DIAMOND_P, *DIAMOND).tolist()

    def test_the_order_takes_the_smallest_index_that_is_ready(self) -> None:
        assert gear.compile(5, [4, 3], [0, 1]).order == (2, 3, 1, 4, 0)
        assert gear.compile(3, [], []).order == (0, 1, 2)


class TestUnjudgedParents:
    GRAPH = gear.compile(3, [0, 0], [1, 2])

    def test_an_unjudged_parent_counts_as_it_is_filled_whatever_its_score(self) -> None:
        judged = [False, True, True]
        for score in (0.0, 0.5, 1.0):
            p = [score, 0.5, 0.5]
            unmet = self.GRAPH.marginals(p, [0.2, 0.6], judged, 0.0).tolist()
            met = self.GRAPH.marginals(p, [0.2, 0.6], judged, 1.0).tolist()
            assert (unmet, met) == ([score, 0.5 * 0.2, 0.5 * 0.6], p)

    @given(rubrics(), st.sampled_from([0.0, 1.0]))
    def test_where_all_is_judged_nothing_changes(self, rubric: Rubric, unjudged: float) -> None:
        graph = gear.compile(rubric.n, rubric.parents, rubric.children)
        retention = gear.retention(rubric.kinds)
        judged = graph.marginals(rubric.p, retention, np.ones(rubric.p.shape, dtype=bool), unjudged)
        assert judged.tobytes() == graph.marginals(rubric.p, retention).tobytes()

    @given(
        st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
        st.floats(0.0, 1.0),
        st.floats(0.0, 1.0),
    )
    def test_a_missing_verdict_lowers_no_score_below_unmet_nor_lifts_it_above_met(
        self, p: list[float], one: float, other: float
    ) -> None:
        known = self.GRAPH.marginals(p, [one, other])
        missing = [False, True, True]
        assert (self.GRAPH.marginals(p, [one, other], missing, 0.0) <= known).all()
        assert (self.GRAPH.marginals(p, [one, other], missing, 1.0) >= known).all()

    @pytest.mark.parametrize(
        ("judged", "unjudged", "message"),
        [
            ([True] * 3, 0.5, "unjudged is 0.5: 0 or 1 is needed"),
            ([1, 1, 1], 0.0, "judged holds int64"),
            ([True] * 2, 0.0, r"judged has shape \(2,\)"),
        ],
    )
    def test_masks_that_do_not_fit_are_refused(
        self, judged: object, unjudged: float, message: str
    ) -> None:
        with pytest.raises(GraphError, match=message):
            self.GRAPH.marginals([0.5] * 3, [0.2, 0.6], judged, unjudged)
