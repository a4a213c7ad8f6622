"""Paired differences of rewards: whole tasks are the independent units."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import compare
from jurygraph.runs.reports.comparison.differences import sum_by_task
from jurygraph.runs.reports.comparison.figures import ComparisonStatistics
from jurygraph.schema import Trace
from tests.runs.reports.comparison.traces import compare_deltas, compare_rewards, run, tenths, trace, unhurried

rewards = st.one_of(st.none(), tenths)
pairs_of_rewards = st.lists(st.tuples(rewards, rewards), min_size=1, max_size=30)
pairs_of_numbers = st.lists(st.tuples(tenths, tenths), min_size=2, max_size=60)
lists_of_deltas = st.lists(tenths, min_size=2, max_size=12)


# Means


def test_means_and_their_difference_match_a_manual_calculation():
    found = compare_rewards([(0.25, 0.5), (0.5, 0.5), (0.75, 0.25), (1.0, 0.5)])
    assert (found.n, found.tasks, found.mean_a, found.mean_b) == (4, 4, 0.625, 0.4375)
    assert (found.mean_delta, found.median_delta) == (-0.1875, -0.25)


def test_a_failed_reward_is_counted_as_failed_and_not_as_zero():
    found = compare_rewards([(0.5, 1.0), (None, 1.0), (0.5, None), (0.5, None), (None, None)])
    assert (found.paired, found.n, found.tasks, found.mean_a, found.mean_b) == (5, 1, 1, 0.5, 1.0)
    assert (found.failed_a, found.failed_b, found.failed_both) == (1, 2, 1)


def test_a_response_in_one_run_only_is_counted_and_left_out():
    found = compare(run([0.5, 0.5, 1.0]), run([0.5, 0.25]))
    assert (found.paired, found.only_a, found.only_b, found.mean_a) == (2, 1, 0, 0.5)
    swapped = compare(run([0.5, 0.25]), run([0.5, 0.5, 1.0]))
    assert (swapped.paired, swapped.only_a, swapped.only_b, swapped.mean_b) == (2, 0, 1, 0.5)


@unhurried
@given(pairs_of_rewards)
def test_the_counts_of_responses_add_up(pairs: list[tuple[float | None, float | None]]):
    found = compare_rewards(pairs)
    assert found.n + found.failed_a + found.failed_b + found.failed_both == found.paired == len(pairs)
    assert sum(agent.n for agent in found.agents) == found.n


@unhurried
@given(pairs_of_numbers)
def test_a_run_compared_with_itself_has_no_differences(pairs: list[tuple[float, float]]):
    same = run(a for a, _ in pairs)
    found = compare(same, same)
    assert (found.mean_delta, found.median_delta, found.flips) == (0, 0, 0)
    assert (found.mean_delta_low, found.mean_delta_high) == (None, None)
    assert (found.mean_delta_p, found.pass_p) == (None, None)
    assert (found.changes, found.flipped_verdicts) == ((), ())


@unhurried
@given(pairs_of_numbers, st.integers(1, 5))
def test_swapping_the_runs_swaps_every_sign(pairs: list[tuple[float, float]], per_task: int):
    there, back = compare_rewards(pairs, per_task), compare_rewards([(b, a) for a, b in pairs], per_task)
    assert (back.mean_delta, back.median_delta) == (-there.mean_delta, -there.median_delta)
    assert (back.passed_a_only, back.passed_b_only) == (there.passed_b_only, there.passed_a_only)
    for name in ("mean_delta_p", "pass_p", "effective_size", "detectable_difference"):
        assert getattr(back, name) == pytest.approx(getattr(there, name))
    if there.mean_delta_low is not None:
        limits = -there.mean_delta_high, -there.mean_delta_low
        assert (back.mean_delta_low, back.mean_delta_high) == pytest.approx(limits)


# The interval


@unhurried
@given(lists_of_deltas.filter(lambda deltas: len(set(deltas)) > 1), st.integers(1, 4))
def test_with_tasks_of_one_size_the_interval_is_students_of_the_task_means(deltas: list[float], per_task: int):
    values = [delta + change for delta in deltas for change in np.linspace(-0.5, 0.5, per_task)]
    found = compare_deltas(values, per_task)
    means = np.reshape(values, (-1, per_task)).mean(axis=1)
    theirs = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (found.mean_delta_low, found.mean_delta_high) == pytest.approx((theirs.low, theirs.high))
    assert found.mean_delta_error == pytest.approx(stats.sem(means))
    assert found.detectable_difference is not None
    freedom, effect = len(deltas) - 1, found.detectable_difference / stats.sem(means)
    assert stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, effect) == pytest.approx(0.8, abs=1e-6)


def test_a_task_counts_by_its_number_of_responses():
    """Differences (1, 1) and (-1) in two tasks: without either, the mean is -1 or 1 instead of 1/3, so V is 10/9."""
    found = compare(run([0.0] * 3, per_task=2), run([1.0, 1.0, -1.0], per_task=2))
    assert found.mean_delta == pytest.approx(1 / 3)
    assert found.mean_delta_error == pytest.approx((0.5 * ((4 / 3) ** 2 + (2 / 3) ** 2)) ** 0.5)


@unhurried
@given(lists_of_deltas, st.integers(2, 5))
def test_copies_of_a_response_add_no_evidence(deltas: list[float], copies: int):
    alone = compare_deltas(deltas)
    copied = compare_deltas([delta for delta in deltas for _ in range(copies)], copies)
    assert copied.n == copies * alone.n
    assert copied.tasks == alone.tasks
    for name in ("mean_delta", "mean_delta_low", "mean_delta_high", "mean_delta_p", "pass_p", "detectable_difference"):
        assert getattr(copied, name) == pytest.approx(getattr(alone, name))
    if copied.effective_size is not None:
        assert copied.effective_size <= alone.n


@pytest.mark.parametrize("tasks", [2, 60])
def test_equal_differences_have_no_interval(tasks: int):
    """Tasks that agree do not show how much others vary."""
    found = compare_deltas([0.1] * tasks)
    assert (found.mean_delta, found.mean_delta_low, found.mean_delta_high) == (pytest.approx(0.1), None, None)


def test_the_responses_of_one_task_have_no_interval():
    found = compare_deltas([0.1, 0.2, -0.3, 0.4], per_task=4)
    assert (found.tasks, found.mean_delta_low, found.mean_delta_high, found.mean_delta_p) == (1, None, None, 1.0)


def test_without_a_common_reward_there_are_no_reward_statistics():
    found = compare_rewards([(None, 0.5), (0.5, None)])
    absent = {name for name in ComparisonStatistics.model_fields if getattr(found, name) is None}
    assert absent == {
        "effective_size", "mean_a", "mean_b", "mean_delta", "mean_delta_low", "mean_delta_high", "mean_delta_error",
        "mean_delta_p", "detectable_difference", "median_delta", "pass_p", "kendall_within", "flip_rate",
    }  # fmt: skip
    assert (found.n, found.tasks, found.paired, found.changes) == (0, 0, 2, ())


# Tests


def test_four_changes_among_fifty_one_tasks_have_the_exact_p():
    """Four gains of four: 2 of 16 combinations of signs, however many tasks do not differ."""
    found = compare_rewards([(0.4, 0.6)] * 4 + [(0.4, 0.4)] * 47)
    assert (found.mean_delta_p, found.pass_p) == (0.125, 0.125)


def test_a_task_that_gains_as_much_as_it_loses_does_not_differ():
    """0.1 + 0.2 - 0.3 is not 0 in binary, but it is no change: four tasks gain, and the exact p is 2 of 16."""
    found = compare_deltas([0.1, 0.2, -0.3] * 40 + [0.1, 0.2, 0.4] * 4, per_task=3)
    assert found.mean_delta_p == 0.125


def test_rewards_that_differ_by_rounding_errors_are_equal():
    """0.1 + 0.2 is above 0.3 in binary: no response changed, and none failed to pass from 0.3 or 0.1 + 0.2."""
    pairs = [(0.1 + 0.2, 0.3)] * 6 + [(1.0, 1.0 - 7e-13)]
    for passing in (0.3, 0.1 + 0.2):
        found = compare_rewards(pairs, passing=passing)
        assert (found.mean_delta, found.changed_tasks, found.passed_a_only, found.changes) == (0.0, 0, 0, ())
        assert found.mean_delta_p is found.pass_p is None


def test_huge_rewards_are_compared_as_far_as_their_sums_are_finite():
    small, huge = (compare_deltas([scale * i for i in range(8)], per_task=2) for scale in (1.0, 1e299))
    assert huge.mean_delta == pytest.approx(1e299 * small.mean_delta)
    assert huge.effective_size == pytest.approx(small.effective_size)
    assert huge.mean_delta_p == small.mean_delta_p
    with pytest.raises(InputError, match=r"the reward of response 'r001' in run B is beyond 1e\+300, too large"):
        compare_deltas([0.0, -1.1e300])


@unhurried
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_with_one_response_a_task_passes_are_tested_as_by_mcnemar(passes: list[tuple[bool, bool]]):
    found = compare_rewards([(float(a), float(b)) for a, b in passes])
    lost, gained = passes.count((True, False)), passes.count((False, True))
    assert (found.passed_a_only, found.passed_b_only) == (lost, gained)
    expected = stats.binomtest(lost, lost + gained).pvalue if lost + gained else None
    assert found.pass_p == pytest.approx(expected)


def test_passes_of_one_task_flip_together():
    """Task 1 gains two passes, tasks 2 to 4 one each: 2 of 16, not 2 of 32."""
    found = compare_rewards([(0.0, 1.0), (0.0, 1.0)] + [(0.0, 1.0), (0.0, 0.0)] * 3, per_task=2)
    assert (found.passed_b_only, found.pass_p) == (5, 0.125)


def test_a_response_passes_from_the_given_reward_on():
    pairs = [(0.7, 0.8), (0.9, 0.6)]
    assert [compare_rewards(pairs, passing=at).passed_a_only for at in (0.5, 0.6, 0.7, 0.9, 1.0)] == [0, 0, 1, 1, 0]
    assert compare_rewards(pairs, passing=0.7).pass_threshold == 0.7


def test_sums_are_of_the_tasks_that_have_values():
    sums, sizes = sum_by_task(np.array([1.0, 2.0, 4.0]), np.array([3, 0, 3]))
    assert (sums.tolist(), sizes.tolist()) == ([2.0, 5.0], [1, 2])


# Correlations


def test_the_rank_correlation_within_a_task_matches_a_manual_calculation():
    """Two neighbours swapped, twice: tau = (4 - 2) / 6. 0.1 + 0.2 and 0.3 tie."""
    found = compare_rewards([(0.1, 0.2), (0.2, 0.1), (0.3, 0.4), (0.4, 0.3)], per_task=4)
    assert found.kendall_within == pytest.approx(1 / 3)
    uneven, even = ([(first, 1.0), (0.3, 2.0), (0.4, 3.0)] for first in (0.1 + 0.2, 0.3))
    assert compare_rewards(uneven, per_task=3).kendall_within == compare_rewards(even, per_task=3).kendall_within


def test_easy_and_hard_tasks_are_no_ranking_within_a_task():
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(size=40), 8)
    a, b = level + 0.4 * rng.normal(size=320), level + 0.4 * rng.normal(size=320)
    found = compare_rewards(list(zip(a.tolist(), b.tolist(), strict=True)), per_task=8)
    each = [stats.kendalltau(x, y).statistic for x, y in zip(a.reshape(-1, 8), b.reshape(-1, 8), strict=True)]
    assert abs(found.kendall_within) < 0.05
    assert (found.kendall_within, found.kendall_tasks) == (pytest.approx(np.mean(each)), 40)


def test_a_task_with_equal_rewards_or_a_single_one_has_no_ranking():
    ranked, constant, single = [(0.1, 0.2), (0.2, 0.3)], [(0.5, 0.1), (0.5, 0.2)], [(0.3, 0.4)]
    found = compare_rewards([*ranked, *constant, *single], per_task=2)
    assert (found.kendall_within, found.kendall_tasks) == (1.0, 1)
    alone = compare_rewards([*constant, *single], per_task=2)
    assert (alone.kendall_within, alone.kendall_tasks) == (None, 0)


# By agent


def by_agent(agents: Sequence[str | None], values: Sequence[float | None]) -> list[Trace]:
    return [trace(f"t{i}", f"r{i}", v, agent=agent) for i, (v, agent) in enumerate(zip(values, agents, strict=True))]


def test_agents_are_listed_by_name():
    agents = ["bob", None, "alice", "bob", "carol"]
    before, after = by_agent(agents, [0.0, 0.5, 1.0, 0.5, None]), by_agent(agents, [1.0, 0.5, 0.5, 1.0, 0.5])
    found = compare(before, after).agents
    assert [(row.agent, row.n, row.tasks, row.mean_a, row.mean_b, row.mean_delta) for row in found] == [
        ("alice", 1, 1, 1.0, 0.5, -0.5),
        ("bob", 2, 2, 0.25, 1.0, 0.75),
        ("carol", 0, 0, None, None, None),
        (None, 1, 1, 0.5, 0.5, 0.0),
    ]


def test_agents_have_intervals_and_tests_adjusted_for_their_number():
    """Six gains of one agent (p = 1/32), and six changes of another of which one is a loss; a third has none."""
    agents = ["alice"] * 6 + ["bob"] * 6 + ["carol"] * 6
    deltas = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6] + [0.1, 0.1, 0.1, 0.1, 0.1, -0.1] + [0.0] * 6
    alice, bob, carol = compare(by_agent(agents, [0.0] * 18), by_agent(agents, deltas)).agents
    theirs = stats.ttest_1samp(deltas[:6], 0.0).confidence_interval(1.0 - 0.05 / 2)
    assert (alice.mean_delta_low, alice.mean_delta_high) == pytest.approx((theirs.low, theirs.high))
    assert (alice.mean_delta_p, alice.holm_p) == (1 / 32, 2 / 32)
    assert (bob.mean_delta_p, bob.holm_p) == (pytest.approx(14 / 64), pytest.approx(14 / 64))
    assert (carol.mean_delta_p, carol.holm_p, carol.mean_delta_low, carol.mean_delta_high) == (None, None, None, None)


def test_a_response_with_another_agent_in_b_counts_for_that_of_a():
    found = compare(run([0.5], agent="alice"), run([0.5], agent="bob"))
    assert [row.agent for row in found.agents] == ["alice"]
    assert any("another one in B; A's is shown" in note for note in found.notes)
