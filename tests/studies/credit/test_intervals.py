"""Intervals of a credit study: over tasks, whose responses and edges belong together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jurygraph.inference.clusters import ratio_interval
from jurygraph.studies import credit
from tests.studies.credit.reference import Example, Link, groups, sheets_of
from tests.studies.figures import Figures, figures_of, read_figures


def report(example_groups: list[list[Example]]) -> Figures:
    return figures_of(credit.report(sheets_of(example_groups), random_graph_count=1))


def leaking(share: float) -> Example:
    """Return a response with one leakage case, and one case whose parent is met."""
    links = [Link(0, 1, "weak"), Link(2, 3, "weak")]
    return Example([1.0, share, 1.0, share], links, [0.25, 1.0, 0.75, 1.0], [True] * 4)


SHARES = [0.5, 1.0, 1.5, 2.5, 3.0, 4.0, 5.5]


def test_with_one_case_per_task_the_interval_is_students() -> None:
    values = np.array([0.1, 0.4, 0.3, 0.9])
    found = read_figures(credit.estimate_mean(values, np.arange(4)))
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert (found.cases, found.tasks) == (4, 4)


def test_further_responses_that_only_repeat_the_first_narrow_no_interval() -> None:
    once, often = report([[leaking(w)] for w in SHARES]), report([[leaking(w)] * 8 for w in SHARES])
    for name in ("leakage", "preservation"):
        one, other = (getattr(found.methods["gear"], name) for found in (once, often))
        assert (other.low, other.high) == (pytest.approx(one.low), pytest.approx(one.high))
        assert (other.cases, other.tasks) == (8 * one.cases, 7)
    assert often.differences["flat"].reward.low == pytest.approx(
        once.differences["flat"].reward.low
    )


def test_intervals_hold_nothing_that_no_leakage_and_no_preservation_can_be() -> None:
    """Student's interval of two tasks that differ would reach from below 0 to above 1."""
    blocked = replace(leaking(4.0), met=[True, True, False, True])
    found = report([[leaking(0.5)], [blocked]])
    one = found.methods["hard-local"].preservation
    assert (one.low, one.high) == (0.0, 1.0)
    assert found.methods["flat"].leakage.low == 0.0
    less = found.differences["hard-local"].preservation
    assert -1.0 <= less.low < 0.0 < less.high <= 1.0


@settings(max_examples=25, deadline=None)
@given(st.lists(groups(), min_size=1, max_size=4))
def test_differences_between_rules_are_paired_case_by_case(
    example_groups: list[list[Example]],
) -> None:
    met = [Example([1.0, 1.0], [Link(0, 1, "weak")], [p, 0.9], [True, True]) for p in (0.2, 0.9)]
    example_groups = [*example_groups, met]
    found = report(example_groups)
    for name, difference in found.differences.items():
        for figure in ("leakage", "preservation"):
            one, other, both = (
                getattr(x, figure) for x in (found.methods["gear"], found.methods[name], difference)
            )
            assert both.value == pytest.approx(one.value - other.value, abs=1e-12)
            assert (both.cases, both.tasks) == (one.cases, one.tasks)
        sums = []
        for sheet in sheets_of(example_groups).sheets:
            scores = sheet.p if name == "flat" else sheet.hard[name]
            by_gear = sheet.rewards(sheet.graph_gated_scores(sheet.retention(1.0)))
            sums.append(float((by_gear - sheet.rewards(scores)).sum()))
        expected = ratio_interval(sums, [len(group) for group in example_groups])
        assert difference.reward.tasks == len(example_groups)
        assert difference.reward.value == pytest.approx(expected.value, abs=1e-12)
        assert difference.reward.low == pytest.approx(expected.low, abs=1e-9)
