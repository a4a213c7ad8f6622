"""Exact against approximate inference."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from jurygraph.aggregation import gear
from jurygraph.studies.credit.study import agreement
from tests.aggregation.reference import eq_9, eq_12
from tests.studies.credit.reference import LAMBDA, Example, Link, groups, sheet_of
from tests.studies.figures import Figures, read_figures


def agreement_of(*example_groups: list[Example], kappa: float = 1.0) -> Figures:
    sheets = [sheet_of(f"t{place}", group) for place, group in enumerate(example_groups)]
    return read_figures(agreement(sheets, kappa, lambda count: None))


DIAMOND = [Link(0, 1, "strong"), Link(0, 2, "strong"), Link(1, 3, "strong"), Link(2, 3, "strong"), Link(3, 4, "strong")]


def test_the_error_on_a_diamond_is_that_of_the_formulas() -> None:
    example = Example([1.0] * 5, DIAMOND, [0.5, 0.9, 0.9, 0.9, 0.9], [True] * 5)
    found = agreement_of([example])
    edges, factors = [(link.parent, link.child) for link in DIAMOND], [0.2] * 5
    off = [abs(a - b) for a, b in zip(eq_9(example.p, edges, factors), eq_12(example.p, edges, factors), strict=True)]
    assert (found.pairs, found.criteria) == (1, 5.0)
    assert found.marginal_mae == pytest.approx(sum(off) / 5, abs=1e-15)
    assert found.reward_mae == pytest.approx(sum(off) / 5, abs=1e-15)  # all off to one side
    assert found.reward_correlation is None  # of one pair


@settings(max_examples=20, deadline=None)
@given(groups(largest=6))
def test_the_agreement_matches_enumeration_of_all_states(group: list[Example]) -> None:
    found = agreement_of(group)
    links = group[0].links
    pairs = [one for one in group if links and all(one.judged)]
    assert found.pairs == len(pairs)
    assert found.unjudged == (len(group) - len(pairs) if links else 0)
    if not pairs:
        assert (found.marginal_mae, found.reward_mae, found.criteria) == (None, None, None)
        return
    edges, factors = [(link.parent, link.child) for link in links], [LAMBDA[link.kind] for link in links]
    exact = [eq_9(one.p, edges, factors) for one in pairs]
    updated = [eq_12(one.p, edges, factors) for one in pairs]
    assert found.marginal_mae == pytest.approx(np.abs(np.subtract(exact, updated)).mean(), abs=1e-12)
    rewards = [[one.reward(q) for one, q in zip(pairs, qs, strict=True)] for qs in (exact, updated)]
    assert found.reward_mae == pytest.approx(np.abs(np.subtract(*rewards)).mean(), abs=1e-12)


def test_a_sheet_is_inferred_as_in_its_run_and_random_graphs_by_their_own_size() -> None:
    example = Example([1.0] * 5, DIAMOND, [0.5, 0.9, 0.9, 0.9, 0.9], [True] * 5)
    edges, factors = [(link.parent, link.child) for link in DIAMOND], [0.2] * 5
    one_pass, exact = (replace(sheet_of("t", [example]), exact=how) for how in ("never", "auto"))
    np.testing.assert_allclose(one_pass.gated_scores(factors), [eq_12(example.p, edges, factors)], atol=1e-15)
    np.testing.assert_allclose(exact.gated_scores(factors), [eq_9(example.p, edges, factors)], atol=1e-15)
    large = [Link(0, i, "strong") for i in range(1, 13)] + [Link(1, 13, "strong"), Link(2, 13, "strong")]
    whole = Example([1.0] * 14, large, [0.5] * 14, [True] * 14)
    found, ends = replace(sheet_of("t", [whole]), exact="auto"), [(link.parent, link.child) for link in large]
    np.testing.assert_allclose(found.gated_scores([0.2] * 14), [eq_12(whole.p, ends, [0.2] * 14)], atol=1e-15)
    small = gear.compile(14, [0, 0, 1, 2], [1, 2, 3, 3])
    expected = eq_9(whole.p[:4], [(0, 1), (0, 2), (1, 3), (2, 3)], [0.2] * 4)
    np.testing.assert_allclose(found.gated_scores([0.2] * 4, small)[:, :4], [expected], atol=1e-15)


def test_large_rubrics_are_omitted_and_counted() -> None:
    links = [Link(i, i + 1, "weak") for i in range(21)]
    found = agreement_of([Example([1.0] * 22, links, [0.5] * 22, [True] * 22)] * 2)
    assert (found.pairs, found.too_large, found.unjudged) == (0, 2, 0)


def test_rubrics_without_edges_are_not_agreement_of() -> None:
    assert agreement_of([Example([1.0], [], [0.5], [True])]).pairs == 0
