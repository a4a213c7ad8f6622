"""Notes: other differences of the runs, and limits of the figures."""

import pytest

from jurygraph.runs.reports.comparison import compare
from tests.runs.reports.comparison.traces import compare_deltas, compare_rewards, trace


def test_notes_list_other_differences():
    a = [trace("t1", "r1"), trace("t2", "r2"), trace("gone", "r3")]
    b = [trace("t1", "r1", plan_digest="q"), trace("t2", "r2", group="h")]
    assert compare(a, b).notes[:3] == (
        "the runs are of different tasks: 2 in both, 1 in A only, 0 in B only",
        "the plans of 1 of the 2 tasks in both runs differ",
        "the groups of responses, by their ids or contents, of 1 of the 2 tasks in both runs differ",
    )


def test_fewer_than_twenty_tasks_have_a_note():
    (note,) = compare_deltas([0.1 * (i % 3 - 0.5) for i in range(19)]).notes
    assert note == "only 19 tasks: with fewer than 20, intervals rely on task means that are nearly normal"


@pytest.mark.parametrize(
    ("deltas", "note"),
    [
        ([0.1, 0.2, 0.3], "3 of the 3 tasks changed, so the least p is 2^(1 - 3) = 0.25"),
        ([0.1] * 5 + [0.0] * 20, "5 of the 25 tasks changed, so the least p is 2^(1 - 5) = 0.0625"),
        ([0.1] + [0.0] * 5, "1 of the 6 tasks changed, so the least p is 2^(1 - 1) = 1"),
    ],
)
def test_fewer_than_six_tasks_that_changed_reach_no_small_p(deltas: list[float], note: str):
    found = compare_deltas(deltas)
    assert found.notes[-1] == f"mean_delta_p cannot fall below .05: {note}"
    assert found.mean_delta_p == float(note.rpartition("= ")[2])  # all differ in one direction: it is reached
    assert not any("cannot" in note for note in compare_deltas([0.1] * 6).notes)


def test_responses_that_failed_in_one_run_and_are_others_than_the_rest_have_a_note():
    """A judge of B failed on the good responses alone; by chance, means of as many differ, too, but not by so much."""
    good = [(0.9 + i / 100, None) for i in range(5)]
    bad = [(0.1 + i / 100, 0.1 + i / 100) for i in range(10)]
    note = "means and tests mislead: the 5 responses that failed in B alone have a mean of 0.9200 in A, and the others "
    assert compare_rewards(good + bad).notes[0] == f"{note}one of 0.1450"
    like_the_others = [(0.1, None), (0.19, None), (None, 0.12)]
    assert not any("mislead" in text for text in compare_rewards(like_the_others + bad).notes)


@pytest.mark.parametrize(
    ("deltas", "per_task", "problem"),
    [
        ([0.1, 0.3], 2, "all rewards are of one task, and responses to one task are not independent draws"),
        ([0.1], 1, "all rewards are of one task, and responses to one task are not independent draws"),
        ([0.1] * 5, 1, "all tasks differ equally, but up to 45.1% of all tasks may differ otherwise (95 %)"),
        ([0.0] * 30, 1, "no task differs, but up to 9.5% of all tasks may differ otherwise (95 %)"),
    ],
)
def test_without_an_interval_a_note_says_why(deltas: list[float], per_task: int, problem: str):
    found = compare_deltas(deltas, per_task)
    assert found.mean_delta_low is None
    assert f"the mean difference has no interval: {problem}" in found.notes


def test_without_a_common_reward_a_note_says_so():
    assert compare_rewards([(None, None)]).notes == (
        "the mean difference has no interval: no response has a reward in both runs",
    )
