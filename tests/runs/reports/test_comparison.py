"""Comparison of two runs."""

import dataclasses
import json
import math
import os
import subprocess
import sys
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import Comparison, ConstructorPair, Flip, compare
from jurygraph.runs.reports.gate import ComparisonStatistics
from jurygraph.schema import Counts, RecordedVerdict, Reward, Trace

ROOT = Path(__file__).parents[3]
unhurried = settings(deadline=None)  # the first call loads scipy
tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)
rewards = st.one_of(st.none(), tenths)
pairs_of_rewards = st.lists(st.tuples(rewards, rewards), min_size=1, max_size=30)
pairs_of_numbers = st.lists(st.tuples(tenths, tenths), min_size=2, max_size=60)


def trace(task: str, response: str, value: float | None = 0.5, **fields) -> Trace:
    status = "failed" if value is None else "ok"
    reward = Reward(
        value=value, status=status, partial=value, coverage=1.0, range=None, components={}, terms=(), counts=Counts()
    )
    defaults = {"agent": "alice", "group": "g", "plan_digest": "p", "reward": reward, "verdicts": ()}
    return Trace(task_id=task, response_id=response, **(defaults | fields))


def run(values: Iterable[float | None], per_task: int = 1, **fields) -> list[Trace]:
    return [trace(f"t{i // per_task:03}", f"r{i:03}", value, **fields) for i, value in enumerate(values)]


def compare_rewards(pairs: Sequence[tuple[float | None, float | None]], per_task: int = 1, **settings) -> Comparison:
    return compare(run((a for a, _ in pairs), per_task), run((b for _, b in pairs), per_task), **settings)


def verdict(question: str, about: str, score: float | None = None, **fields) -> RecordedVerdict:
    status = "abstained" if score is None else "ok"
    return RecordedVerdict(
        **({"question": question, "about": about, "responses": (about,), "status": status} | fields), score=score
    )


def traces_with_verdicts(*verdicts: RecordedVerdict, response: str = "r") -> list[Trace]:
    return [trace("t", response, verdicts=verdicts)]


# Rewards


def test_means_and_their_difference_match_a_manual_calculation():
    found = compare_rewards([(0.25, 0.5), (0.5, 0.5), (0.75, 0.25), (1.0, 0.5)])
    assert (found.n, found.mean_a, found.mean_b) == (4, 0.625, 0.4375)
    assert (found.mean_delta, found.median_delta) == (-0.1875, -0.25)


def test_a_failed_reward_is_counted_as_failed_and_not_as_zero():
    found = compare_rewards([(0.5, 1.0), (None, 1.0), (0.5, None), (0.5, None), (None, None)])
    assert (found.paired, found.n, found.mean_a, found.mean_b) == (5, 1, 0.5, 1.0)
    assert (found.failed_a, found.failed_b, found.failed_both) == (1, 2, 1)


def test_a_response_in_one_run_only_is_counted_and_left_out():
    found = compare(run([0.5, 0.5, 1.0]), run([0.5, 0.25]))
    assert (found.paired, found.only_a, found.only_b, found.mean_a) == (2, 1, 0, 0.5)
    swapped = compare(run([0.5, 0.25]), run([0.5, 0.5, 1.0]))
    assert (swapped.paired, swapped.only_a, swapped.only_b, swapped.mean_b) == (2, 0, 1, 0.5)


@unhurried
@given(pairs_of_rewards)
def test_the_counts_of_responses_add_up(pairs: list[tuple[float | None, float | None]]):
    found = compare_rewards(pairs, resamples=10)
    assert found.n + found.failed_a + found.failed_b + found.failed_both == found.paired == len(pairs)
    assert sum(agent.n for agent in found.agents) == found.n


@unhurried
@given(pairs_of_numbers, st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_order_of_the_traces_changes_nothing(pairs: list[tuple[float, float]], random, per_task: int):
    a, b = run((a for a, _ in pairs), per_task), run((b for _, b in pairs), per_task)
    straight = compare(a, b, resamples=50)
    random.shuffle(a)
    random.shuffle(b)
    assert compare(iter(a), iter(b), resamples=50).digest == straight.digest


@unhurried
@given(pairs_of_numbers)
def test_a_run_compared_with_itself_has_no_differences(pairs: list[tuple[float, float]]):
    same = run(a for a, _ in pairs)
    found = compare(same, same, resamples=50)
    assert (found.mean_delta, found.mean_delta_low, found.mean_delta_high, found.median_delta) == (0, 0, 0, 0)
    assert (found.wilcoxon_p, found.mcnemar_p, found.flips, found.changes, found.flipped_verdicts) == (
        None,
        None,
        0,
        (),
        (),
    )
    varied = len({a for a, _ in pairs}) > 1
    assert (found.spearman, found.kendall) == ((1, 1) if varied else (None, None))
    assert found.notes == ()


@unhurried
@given(pairs_of_numbers)
def test_swapping_the_runs_swaps_every_sign(pairs: list[tuple[float, float]]):
    there, back = compare_rewards(pairs, resamples=50), compare_rewards([(b, a) for a, b in pairs], resamples=50)
    assert back.mean_delta == -there.mean_delta
    assert back.median_delta == -there.median_delta
    assert (back.passed_a_only, back.passed_b_only) == (there.passed_b_only, there.passed_a_only)
    assert back.mcnemar_p == there.mcnemar_p
    assert back.wilcoxon_p == pytest.approx(there.wilcoxon_p)
    assert (back.mean_delta_low, back.mean_delta_high) == pytest.approx((-there.mean_delta_high, -there.mean_delta_low))


# The interval


def test_the_interval_resamples_tasks_with_all_their_responses():
    by_task = compare_rewards([(0.0, 1.0)] * 50 + [(0.0, -1.0)] * 50, per_task=50)
    assert (by_task.mean_delta_low, by_task.mean_delta, by_task.mean_delta_high) == (-1, 0, 1)
    alone = compare_rewards([(0.0, 1.0)] * 50 + [(0.0, -1.0)] * 50)
    assert -0.25 < alone.mean_delta_low < -0.15 < 0.15 < alone.mean_delta_high < 0.25


def test_a_task_counts_by_its_number_of_responses():
    """Two tasks with differences (1, 1) and (-1): a resample has the mean 1, -1 or (1 + 1 - 1) / 3."""
    a, b = run([0.0] * 3, per_task=2), run([1.0, 1.0, -1.0], per_task=2)
    drawn = {compare(a, b, resamples=1, seed=seed).mean_delta_low for seed in range(30)}
    assert drawn == {1.0, -1.0, 1 / 3}


def test_with_one_task_the_interval_resamples_responses_and_a_note_says_so():
    found = compare_rewards([(0.0, 1.0)] * 50 + [(0.0, -1.0)] * 50, per_task=100)
    assert -0.25 < found.mean_delta_low < -0.15 < 0.15 < found.mean_delta_high < 0.25
    assert any("one task" in note for note in found.notes)


def test_the_interval_equals_scipys_percentile_bootstrap():
    deltas = np.random.default_rng(7).normal(0.1, 0.3, size=200)
    found = compare_rewards([(0.0, float(delta)) for delta in deltas], resamples=9_999)
    theirs = stats.bootstrap((deltas,), np.mean, method="percentile", rng=1).confidence_interval
    assert (found.mean_delta_low, found.mean_delta_high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_the_seed_determines_the_interval():
    pairs = [(0.0, i / 20) for i in range(20)]
    assert compare_rewards(pairs, seed=3).mean_delta_low == compare_rewards(pairs, seed=3).mean_delta_low
    assert compare_rewards(pairs, seed=3).mean_delta_low != compare_rewards(pairs, seed=4).mean_delta_low


def test_many_tasks_are_resampled_in_parts(monkeypatch: pytest.MonkeyPatch):
    pairs = [(0.0, i / 20) for i in range(20)]
    at_once = compare_rewards(pairs, resamples=101)
    monkeypatch.setattr("jurygraph.inference.bootstrap.DRAWS_PER_BATCH", 40)
    assert compare_rewards(pairs, resamples=101).mean_delta_low == at_once.mean_delta_low


# Tests and correlations


def test_wilcoxon_matches_a_manual_calculation():
    """Six different gains: two extreme ones of 64 sign combinations."""
    assert compare_rewards([(0.0, i / 10) for i in range(1, 7)]).wilcoxon_p == 2 / 64


def test_wilcoxon_ranks_zeros_and_then_leaves_them_out():
    """Zeros take ranks 1 to 3, the loss has rank 6 of 4 to 7: {}, 4, 5 and 6 are no greater, 4 of 16, twice.

    With the zeros left out first, the loss would have rank 3 of 1 to 4: {}, 1, 2, 3 and 1 + 2, 5 of 16, twice.
    """
    assert compare_rewards([(0.0, d) for d in (0.0, 0.0, 0.0, 0.1, 0.2, -0.3, 0.4)]).wilcoxon_p == pytest.approx(0.5)


def test_differences_within_rounding_errors_are_ties():
    assert 0.3 - 0.2 != 0.2 - 0.1
    uneven = compare_rewards([(0.2, 0.3), (0.1, 0.2), (0.5, 0.25)])
    even = compare_rewards([(0.0, 0.1), (0.0, 0.1), (0.5, 0.25)])
    assert uneven.wilcoxon_p == even.wilcoxon_p
    assert (
        compare_rewards([(0.1 + 0.2, 1.0), (0.3, 2.0), (0.4, 3.0)]).kendall
        == compare_rewards([(0.3, 1.0), (0.3, 2.0), (0.4, 3.0)]).kendall
    )


@unhurried
@given(st.lists(tenths, min_size=2, max_size=7).filter(any))
def test_wilcoxon_with_ties_and_zeros_equals_scipys_permutation_test(deltas: list[float]):
    theirs = stats.wilcoxon(deltas, zero_method="pratt", method=stats.PermutationMethod()).pvalue
    assert compare_rewards([(0.0, delta) for delta in deltas], resamples=1).wilcoxon_p == pytest.approx(theirs)


@unhurried
@given(st.lists(st.integers(1, 99), min_size=1, max_size=50, unique=True), st.integers(0, 2**50 - 1))
def test_wilcoxon_without_ties_or_zeros_equals_scipys_exact_test(sizes: list[int], signs: int):
    deltas = [(-1) ** (signs >> i & 1) * size / 100 for i, size in enumerate(sizes)]
    theirs = stats.wilcoxon(deltas, method="exact").pvalue
    assert compare_rewards([(0.0, delta) for delta in deltas], resamples=1).wilcoxon_p == pytest.approx(theirs)


@unhurried
@given(st.lists(tenths, min_size=51, max_size=60).filter(any))
def test_wilcoxon_of_more_than_fifty_equals_scipys_normal_approximation(deltas: list[float]):
    theirs = stats.wilcoxon(deltas, zero_method="pratt").pvalue
    assert compare_rewards([(0.0, delta) for delta in deltas], resamples=1).wilcoxon_p == theirs


def test_mcnemar_matches_a_manual_calculation():
    """One response passes in A only, five in B only: 2 (1 + 6) / 64. Agreements do not count."""
    found = compare_rewards([(0.5, 0.4), *[(0.4, 0.5)] * 5, *[(0.9, 0.8)] * 7, *[(0.1, 0.2)] * 3])
    assert (found.passed_a_only, found.passed_b_only, found.mcnemar_p) == (1, 5, pytest.approx(14 / 64))


def test_a_response_passes_from_the_given_reward_on():
    pairs = [(0.7, 0.8), (0.9, 0.6)]
    assert [compare_rewards(pairs, passing=at).passed_a_only for at in (0.5, 0.6, 0.7, 0.9, 1.0)] == [0, 0, 1, 1, 0]
    assert compare_rewards(pairs, passing=0.7).pass_threshold == 0.7


def test_rank_correlations_match_a_manual_calculation():
    """Two neighbours swapped, twice: rho = 1 - 6 * 4 / (4 * 15), tau = (4 - 2) / 6."""
    found = compare_rewards([(0.1, 0.2), (0.2, 0.1), (0.3, 0.4), (0.4, 0.3)])
    assert (found.spearman, found.kendall) == (pytest.approx(0.6), pytest.approx(1 / 3))


@unhurried
@given(pairs_of_numbers)
def test_rank_correlations_equal_scipys(pairs: list[tuple[float, float]]):
    a, b = np.array(pairs).T
    found = compare_rewards(pairs, resamples=10)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert (found.spearman, found.kendall) == (None, None)
    else:
        assert found.spearman == pytest.approx(stats.spearmanr(a, b).statistic)
        assert found.kendall == pytest.approx(stats.kendalltau(a, b).statistic)


def test_one_common_reward_gives_no_interval_and_no_correlation():
    found = compare_rewards([(0.25, 0.5)])
    assert (found.n, found.mean_delta, found.median_delta, found.wilcoxon_p) == (1, 0.25, 0.25, 1.0)
    assert (found.mean_delta_low, found.mean_delta_high, found.spearman, found.kendall) == (None, None, None, None)
    assert any("no interval" in note for note in found.notes)


def test_without_a_common_reward_there_are_no_reward_statistics():
    found = compare_rewards([(None, 0.5), (0.5, None)])
    absent = {name for name in ComparisonStatistics.model_fields if getattr(found, name) is None}
    assert absent == {
        "mean_a", "mean_b", "mean_delta", "mean_delta_low", "mean_delta_high", "median_delta", "wilcoxon_p",
        "mcnemar_p", "spearman", "kendall", "flip_rate",
    }  # fmt: skip
    assert (found.n, found.paired, found.changes) == (0, 2, ())


# By agent


def test_agents_are_listed_by_name():
    agents = ["bob", None, "alice", "bob", "carol"]

    def by_agent(values: Sequence[float | None]) -> list[Trace]:
        return [
            trace(f"t{i}", f"r{i}", v, agent=agent) for i, (v, agent) in enumerate(zip(values, agents, strict=True))
        ]

    found = compare(by_agent([0.0, 0.5, 1.0, 0.5, None]), by_agent([1.0, 0.5, 0.5, 1.0, 0.5])).agents
    assert [(row.agent, row.n, row.mean_a, row.mean_b, row.mean_delta) for row in found] == [
        ("alice", 1, 1.0, 0.5, -0.5),
        ("bob", 2, 0.25, 1.0, 0.75),
        ("carol", 0, None, None, None),
        (None, 1, 0.5, 0.5, 0.0),
    ]


def test_a_response_with_another_agent_in_b_counts_for_that_of_a():
    found = compare(run([0.5], agent="alice"), run([0.5], agent="bob"))
    assert [row.agent for row in found.agents] == ["alice"]
    assert any("another one in B; A's is shown" in note for note in found.notes)


# Verdicts


def test_a_flip_is_a_changed_decision():
    a = traces_with_verdicts(verdict("q", "r", 0.4), verdict("q", "r", 0.9, sample=1), verdict("q", "r", 0.6, sample=2))
    b = traces_with_verdicts(verdict("q", "r", 0.5), verdict("q", "r", 0.2, sample=1), verdict("q", "r", 1.0, sample=2))
    found = compare(a, b)
    assert found.flipped_verdicts == (
        Flip("q", "r", ("r",), 0, 0.4, 0.5, True),
        Flip("q", "r", ("r",), 1, 0.9, 0.2, False),
    )
    assert (found.judged_both, found.flips, found.flip_rate) == (3, 2, pytest.approx(2 / 3))
    (row,) = found.questions
    assert (row.question, row.judged_both, row.to_met, row.to_unmet, row.mcnemar_p) == ("q", 3, 1, 1, 1.0)
    assert row.largest_delta == pytest.approx(0.7)


def test_a_judges_own_decision_takes_precedence_over_its_score():
    met, unmet = verdict("q", "r", 0.4, met=True), verdict("q", "r", 0.6, met=False)
    assert compare(traces_with_verdicts(met), traces_with_verdicts(verdict("q", "r", 0.9))).flips == 0
    assert compare(traces_with_verdicts(unmet), traces_with_verdicts(verdict("q", "r", 0.1))).flips == 0
    assert compare(traces_with_verdicts(unmet), traces_with_verdicts(met)).flipped_verdicts == (
        Flip("q", "r", ("r",), 0, 0.6, 0.4, True),
    )


def test_the_mcnemar_test_of_a_question_uses_its_flips():
    names = [f"r{i}" for i in range(8)]
    a = [trace("t", name, verdicts=(verdict("q", name, 1.0 if name == "r0" else 0.0),)) for name in names]
    b = [trace("t", name, verdicts=(verdict("q", name, 1.0 if "r0" < name < "r6" else 0.0),)) for name in names]
    (row,) = compare(a, b).questions
    assert (row.to_unmet, row.to_met, row.mcnemar_p) == (1, 5, pytest.approx(14 / 64))


def test_verdicts_in_one_run_only_are_counted():
    a = traces_with_verdicts(
        verdict("both", "r", 1.0), verdict("old", "r", 1.0), verdict("open", "r"), verdict("neither", "r")
    )
    b = traces_with_verdicts(
        verdict("both", "r", 1.0), verdict("new", "r", 0.0), verdict("open", "r", 0.0), verdict("neither", "r")
    )
    rows = [(row.question, row.judged_both, row.only_a, row.only_b) for row in compare(a, b).questions]
    assert rows == [("both", 1, 0, 0), ("new", 0, 0, 1), ("old", 0, 1, 0), ("open", 0, 0, 1)]


def test_verdicts_on_unpaired_responses_do_not_count():
    gone = traces_with_verdicts(verdict("q", "gone", 1.0), verdict("of its own", "gone", 1.0), response="gone")
    a = traces_with_verdicts(verdict("q", "r", 1.0)) + gone
    (row,) = compare(a, traces_with_verdicts(verdict("q", "r", 1.0))).questions
    assert (row.judged_both, row.only_a, row.only_b) == (1, 0, 0)


def test_a_verdict_on_an_unordered_pair_counts_once():
    def pair(score: float) -> list[Trace]:
        one = verdict("duel", "r", score, responses=("r", "s"))
        return traces_with_verdicts(one) + traces_with_verdicts(one, response="s")

    found = compare(pair(1.0), pair(0.0))
    assert (found.judged_both, found.flipped_verdicts) == (1, (Flip("duel", "r", ("r", "s"), 0, 1.0, 0.0, False),))


def test_ordered_pairs_are_distinguished_by_response_and_opponent():
    def duels(first: float, second: float, third: float) -> list[Trace]:
        mine = verdict("duel", "r", first, responses=("r", "s")), verdict("duel", "r", second, responses=("r", "u"))
        return traces_with_verdicts(*mine) + traces_with_verdicts(
            verdict("duel", "s", third, responses=("s", "r")), response="s"
        )

    flipped = compare(duels(1.0, 1.0, 1.0), duels(1.0, 0.0, 0.0)).flipped_verdicts
    assert [(flip.response_id, flip.responses) for flip in flipped] == [("r", ("r", "u")), ("s", ("s", "r"))]


# Judges of one reviewer


def predicted(evaluator: str, reviewer: str, about: str, score: float | None, sample: int = 0) -> RecordedVerdict:
    question = f"{evaluator}/appeal@{reviewer}"
    fields = {"evaluator": evaluator, "subject": "appeal", "reviewer": reviewer, "sample": sample}
    return verdict(question, about, score, **fields)


def test_two_judges_of_a_reviewer_are_compared_across_runs_that_have_one_each():
    a = traces_with_verdicts(predicted("aggregate", "ann", "r", 0.25), predicted("aggregate", "bob", "r", 0.5))
    b = traces_with_verdicts(predicted("personalized", "ann", "r", 1.0), predicted("personalized", "bob", "r", None))
    expected = ConstructorPair("ann", "appeal", "aggregate", "personalized", ("A", "B"), 1, 0.25, 1.0, 0.75)
    assert compare(a, b).constructors == (expected,)
    (turned,) = compare(b, a).constructors
    assert (turned.first, turned.runs, turned.mean_first) == ("personalized", ("A", "B"), 1.0)


def test_two_judges_of_one_run_are_compared_within_it():
    both = [predicted("personalized", "ann", "r", 0.75), predicted("zero-shot", "ann", "r", 0.5)]
    within = ConstructorPair("ann", "appeal", "personalized", "zero-shot", ("A", "A"), 1, 0.75, 0.5, 0.25)
    same = traces_with_verdicts(*both)
    assert compare(same, same).constructors == (within,)  # equal verdicts once
    later = traces_with_verdicts(both[0], predicted("zero-shot", "ann", "r", 0.75))
    assert [(pair.runs, pair.mean_distance) for pair in compare(same, later).constructors] == [
        (("A", "A"), 0.25),
        (("B", "B"), 0.0),
    ]
    one = traces_with_verdicts(both[0])
    assert compare(one, same).constructors == (dataclasses.replace(within, runs=("B", "B")),)


places = st.tuples(st.sampled_from("AB"), st.sampled_from(["ann", "bob"]), st.sampled_from(["r1", "r2"]))


@unhurried
@given(st.dictionaries(st.tuples(places, st.integers(0, 1), st.booleans()), st.integers(0, 4), min_size=1))
def test_the_pairs_are_of_the_same_reviewer_response_and_sample(scores: dict):
    runs = {
        run: [
            trace("t", response, verdicts=[
                predicted("aggregate" if is_aggregate else "personalized", who, response, score / 4, sample)
                for ((of, who, about), sample, is_aggregate), score in scores.items()
                if (of, about) == (run, response)
            ])
            for response in ("r1", "r2")
        ]
        for run in "AB"
    }  # fmt: skip
    for pair in compare(runs["A"], runs["B"], resamples=1).constructors:
        matched = [
            (scores[first], scores[second])
            for response in ("r1", "r2")
            for sample in (0, 1)
            if (first := ((pair.runs[0], pair.reviewer, response), sample, pair.first == "aggregate")) in scores
            and (second := ((pair.runs[1], pair.reviewer, response), sample, pair.second == "aggregate")) in scores
        ]
        assert pair.n == len(matched) > 0
        assert pair.mean_first == sum(a for a, _ in matched) / 4 / pair.n
        assert pair.mean_distance == sum(abs(a - b) for a, b in matched) / 4 / pair.n


def test_flips_are_sorted_by_question_response_and_sample():
    def scored_as(score: float) -> list[Trace]:
        return [
            trace("t", name, verdicts=tuple(verdict(q, name, score, sample=i) for q in ("z", "a") for i in (1, 0)))
            for name in ("s", "r")
        ]

    found = compare(scored_as(1.0), scored_as(0.0))
    assert [(flip.question, flip.response_id, flip.sample) for flip in found.flipped_verdicts] == [
        (q, name, sample) for q in ("a", "z") for name in ("r", "s") for sample in (0, 1)
    ]


cells = st.dictionaries(
    st.tuples(st.sampled_from("pq"), st.sampled_from("rs"), st.integers(0, 2)),
    st.tuples(st.integers(0, 4).map(lambda quarter: quarter / 4), st.sampled_from([None, True, False])),
)


@unhurried
@given(cells, cells)
def test_every_verdict_is_matched_with_its_counterpart(a: dict, b: dict):
    def traces(cells: dict) -> list[Trace]:
        on = [verdict(q, name, score, sample=i, met=met) for (q, name, i), (score, met) in cells.items()]
        return [trace("t", name, verdicts=tuple(v for v in on if v.about == name)) for name in "rs"]

    def met(cell: tuple[float, bool | None]) -> bool:
        return cell[0] >= 0.5 if cell[1] is None else cell[1]

    found = compare(traces(a), traces(b), resamples=10)
    flipped = sorted(key for key in a.keys() & b.keys() if met(a[key]) != met(b[key]))
    assert [(f.question, f.response_id, f.sample) for f in found.flipped_verdicts] == flipped
    assert all(f.met == met(b[f.question, f.response_id, f.sample]) for f in found.flipped_verdicts)
    for row in found.questions:
        mine, other = ({key for key in cells if key[0] == row.question} for cells in (a, b))
        both = mine & other
        assert (row.judged_both, row.only_a, row.only_b) == (len(both), len(mine - other), len(other - mine))
        assert row.largest_delta == max((abs(b[key][0] - a[key][0]) for key in both), default=None)
    assert {row.question for row in found.questions} == {key[0] for key in a.keys() | b.keys()}


# Special cases and notes


def test_the_largest_changes_come_first_and_ties_by_id():
    found = compare_rewards([(0.5, 0.5), (0.0, 0.5), (1.0, 0.0), (0.5, 0.0), (None, 1.0)])
    assert [(c.response_id, c.a, c.b, c.delta) for c in found.changes] == [
        ("r002", 1.0, 0.0, -1.0),
        ("r001", 0.0, 0.5, 0.5),
        ("r003", 0.5, 0.0, -0.5),
    ]


def test_at_most_twenty_changes_are_listed():
    found = compare_rewards([(0.0, i / 64) for i in range(30)])
    assert [c.response_id for c in found.changes] == [f"r{i:03}" for i in range(29, 9, -1)]


def test_of_equal_changes_the_first_ids_are_listed():
    found = compare_rewards([(0.0, 0.5 * (-1) ** i) for i in range(100)])
    assert [c.response_id for c in found.changes] == [f"r{i:03}" for i in range(20)]


def test_notes_list_other_differences():
    a = [trace("t1", "r1"), trace("t2", "r2"), trace("gone", "r3")]
    b = [trace("t1", "r1", plan_digest="q"), trace("t2", "r2", group="h")]
    assert compare(a, b).notes == (
        "the runs are of different tasks: 2 in both, 1 in A only, 0 in B only",
        "the plans of 1 of the 2 tasks in both runs differ",
        "the groups of responses, by their ids or contents, of 1 of the 2 tasks in both runs differ",
    )


def test_a_comparison_survives_json():
    found = compare_rewards([(0.25, 0.5), (0.5, None), (0.75, 0.25)])
    stored = json.dumps(found.model_dump(mode="json"), allow_nan=False)
    assert Comparison.model_validate_json(stored) == found


def test_a_flip_is_an_object_in_json():
    found = compare(traces_with_verdicts(verdict("q", "r", 1.0)), traces_with_verdicts(verdict("q", "r", 0.25)))
    assert found.model_dump(mode="json")["flipped_verdicts"] == [
        {
            "question": "q",
            "response_id": "r",
            "responses": ["r"],
            "sample": 0,
            "before": 1.0,
            "after": 0.25,
            "met": False,
        }
    ]


# Invalid input


def test_runs_without_a_common_response_are_refused_with_examples():
    with pytest.raises(
        InputError, match=r"no response in common \(A has 'r', B has 's'\); compare two runs of the same"
    ):
        compare([trace("t", "r")], [trace("t", "s")])


@pytest.mark.parametrize(("a", "b", "name"), [([], [trace("t", "r")], "A"), ([trace("t", "r")], [], "B")])
def test_an_empty_run_is_refused(a: list[Trace], b: list[Trace], name: str):
    with pytest.raises(InputError, match=f"run {name} contains no response; score it first"):
        compare(a, b)


def test_a_repeated_response_is_refused():
    with pytest.raises(InputError, match="response 'r' occurs twice in run B"):
        compare([trace("t", "r")], [trace("t", "r"), trace("t", "r")])


def test_a_response_under_another_task_is_refused():
    with pytest.raises(InputError, match="response 'r' belongs to task 't' in A and to 'u' in B; compare two runs"):
        compare([trace("t", "r")], [trace("u", "r")])


@pytest.mark.parametrize("passing", [math.nan, math.inf])
def test_a_pass_threshold_that_is_not_finite_is_refused(passing: float):
    with pytest.raises(InputError, match=r"name a finite number, such as 0\.5"):
        compare_rewards([(0.5, 0.5)], passing=passing)


def test_another_process_gives_the_same_bits():
    code = """if True:
        from jurygraph.runs.reports.comparison import compare
        from tests.runs.reports.test_comparison import run
        values = [i * 7 % 40 / 40 for i in range(40)]
        print(compare(run(values, 2), run(sorted(values), 2), resamples=20).digest)
        """
    values = [i * 7 % 40 / 40 for i in range(40)]
    here = compare(run(values, 2), run(sorted(values), 2), resamples=20).digest
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    there = subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=ROOT, text=True)
    assert there.strip() == str(here)


def test_scipy_is_imported_only_by_comparing():
    code = "import sys, jurygraph, jurygraph.runs.reports.comparison; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


# Large runs


def test_traces_of_the_first_run_are_freed_before_the_second_is_read():
    references = []

    def first():
        for one in run([0.5, 1.0]):
            references.append(weakref.ref(one))
            yield one

    def second():
        assert [one() for one in references] == [None, None]
        yield from run([0.5, 1.0])

    assert compare(first(), second()).paired == 2
