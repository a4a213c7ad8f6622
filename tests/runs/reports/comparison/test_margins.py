"""Non-inferiority as a condition of a gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import compare
from jurygraph.runs.reports.comparison.figures import ComparisonStatistics, MarginTest
from jurygraph.runs.reports.comparison.margins import Margin, parse_gate, tasks_for_bound
from jurygraph.runs.reports.gate import Threshold
from tests.rows import all_rows
from tests.runs.reports.comparison.traces import run, unhurried

DELTAS = [0.01, -0.02, 0.03, 0.0, -0.01, 0.02, -0.03, 0.01]


def check(deltas: list[float], *margins: Margin) -> tuple[MarginTest, ...]:
    return compare(run([0.0] * len(deltas)), run(deltas), margins=margins).margins


# The tests


@unhurried
@given(st.floats(0.001, 0.1), st.sampled_from([DELTAS, [delta - 0.02 for delta in DELTAS]]))
def test_a_margin_holds_where_its_p_is_below_025(margin: float, deltas: list[float]):
    (found,) = check(deltas * 30, Margin(margin))
    assert found.p is not None
    assert found.lowest is not None
    assert found.holds is (found.p < 0.025)
    assert found.holds is (found.lowest > -margin)


def test_no_margin_holds_for_lack_of_evidence():
    """Ten unchanged tasks do not show that no other task loses all of its reward."""
    (found,) = check([0.0] * 10, Margin(0.02))
    assert (found.name, found.margin, found.holds) == ("no_worse_than", 0.02, False)
    assert found.p == pytest.approx(0.98**10)
    assert found.lowest == pytest.approx(-(1.0 - 0.025**0.1))
    assert found.needed_tasks == 183
    assert check([0.0] * 183, Margin(0.02))[0].holds
    assert not check([0.0] * 182, Margin(0.02))[0].holds


def test_a_single_task_shows_nothing():
    (found,) = check([0.5], Margin(0.5))
    assert (found.holds, found.p, found.lowest, found.needed_tasks) == (False, None, None, None)


def test_a_task_can_lose_what_the_rewards_allow_or_more_where_it_did():
    found = compare(run([0.0] * 40), run([0.0] * 40), margins=[Margin(0.1)], largest_loss=4.0).margins
    assert (found[0].holds, found[0].largest_loss, found[0].needed_tasks) == (False, 4.0, 146)
    found = compare(run([2.0] * 40), run([2.0] * 39 + [0.0]), margins=[Margin(0.1)]).margins
    assert found[0].largest_loss == 2.0


@all_rows(
    ("condition", "tasks"), [("mean_delta_low>-0.02", 183), ("mean_delta_low>=0", None), ("mean_delta_high<0.1", None)]
)
def test_a_lower_bound_without_an_interval_needs_as_many_tasks_as_a_margin(condition: str, tasks: int | None):
    comparison = compare(run([0.5] * 10), run([0.5] * 10))
    (threshold,), _ = parse_gate(condition)
    assert comparison.mean_delta_low is None
    assert tasks_for_bound(threshold, comparison, 1.0) == tasks


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
