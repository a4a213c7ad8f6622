"""Non-inferiority as a condition of a gate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import compare
from jurygraph.runs.reports.comparison.figures import ComparisonStatistics, MarginTest
from jurygraph.runs.reports.comparison.margins import Margin, parse_gate
from jurygraph.runs.reports.gate import Threshold
from tests.rows import all_rows
from tests.runs.reports.comparison.traces import run, unhurried

DELTAS = [0.01, -0.02, 0.03, 0.0, -0.01, 0.02, -0.03, 0.01]


def check(deltas: list[float], *margins: Margin) -> tuple[MarginTest, ...]:
    return compare(run([0.0] * len(deltas)), run(deltas), margins=margins).margins


# The tests


@unhurried
@given(st.floats(0.001, 0.1), st.sampled_from([DELTAS, [delta - 0.02 for delta in DELTAS]]))
def test_the_p_values_equal_those_of_statsmodels(margin: float, deltas: list[float]):
    theirs = DescrStatsW(np.array(deltas))
    (found,) = check(deltas, Margin(margin))
    assert found.p == pytest.approx(theirs.ttest_mean(-margin, alternative="larger")[1])
    assert found.holds is bool(found.p < 0.025)


@pytest.mark.parametrize(("margin", "holds"), [(0.02, True), (0.01, False)])
def test_a_margin_holds_if_the_interval_is_above_its_negative(margin: float, holds: bool):
    """The interval of these differences is from -0.0154 to 0.0179."""
    (found,) = check(DELTAS, Margin(margin))
    assert (found.name, found.margin, found.holds, found.problem) == ("no_worse_than", margin, holds, None)


def test_without_an_interval_no_margin_holds():
    """Two equal differences prove nothing, and the mean of 0 least of all."""
    (found,) = check([0.0, 0.0], Margin(0.5))
    assert (found.holds, found.p) == (False, None)
    assert found.problem == "no task differs, and 2 tasks are too few to show that none does"


def test_equal_differences_of_many_tasks_are_within_a_margin_but_have_no_p():
    """Six equal tasks are no evidence for p = 0."""
    (found,) = check([0.1] * 6, Margin(0.02))
    assert (found.holds, found.p) == (True, None)


# Conditions


def test_margins_and_thresholds_can_be_joined():
    thresholds, margins = parse_gate("mean_delta>-0.01, no_worse_than=0.02 and no_worse_than = .5,flips<=3")
    assert thresholds == [Threshold("mean_delta", ">", -0.01), Threshold("flips", "<=", 3.0)]
    assert margins == [Margin(0.02), Margin(0.5)]


@all_rows("name", ComparisonStatistics.model_fields)
def test_every_statistic_can_be_named_and_has_a_description(name: str):
    assert parse_gate(f"{name}>=0") == ([Threshold(name, ">=", 0.0)], [])
    assert ComparisonStatistics.model_fields[name].description


@all_rows(
    ("text", "message"),
    [
        (
            "no_worse_than>0.02",
            "'no_worse_than>0.02' is not a condition; no_worse_than takes a margin, as in no_worse_",
        ),
        ("no_worse_than==0.02", "no_worse_than takes a margin, as in no_worse_than=0.02"),
        ("no_worse_than", "no_worse_than takes a margin, as in no_worse_than=0.02"),
        ("no_worse_than=-0.02", "the margin of no_worse_than must be above 0 and finite, got -0.02"),
        ("no_worse_than=1e999", "the margin of no_worse_than must be above 0 and finite, got 1e999"),
        ("no_worse_then=0.02", "unknown condition 'no_worse_then'; did you mean no_worse_than?"),
        ("mean_delta=0", "'mean_delta=0' is not a condition; write it as in \"mean_delta>-0.01\""),
        ("mean_detla>0", "unknown statistic 'mean_detla'; did you mean mean_delta?"),
        ("n>1,", "a condition is missing; write it as in"),
    ],
)
def test_a_misused_condition_is_refused(text: str, message: str):
    with pytest.raises(InputError) as caught:
        parse_gate(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"gate {text!r}: ")
