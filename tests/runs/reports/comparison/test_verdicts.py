"""Differences of verdicts by question, and decisions that flipped."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jurygraph.runs.reports.comparison import Comparison, compare
from jurygraph.runs.reports.comparison.figures import Flip
from jurygraph.schema import Trace
from tests.runs.reports.comparison.traces import trace, traces_with_verdicts, unhurried, verdict


def judged_tasks(question_scores: Mapping[str, Sequence[float]], per_task: int = 1) -> list[Trace]:
    """Return a trace for each place of the scores, with a verdict on each of the questions."""
    names = [f"r{i:03}" for i in range(len(next(iter(question_scores.values()))))]
    return [
        trace(f"t{i // per_task}", name, verdicts=tuple(verdict(q, name, s[i]) for q, s in question_scores.items()))
        for i, name in enumerate(names)
    ]


def compare_samples(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Compare runs that judged one response with these scores of its samples."""
    one, other = (
        traces_with_verdicts(*(verdict("q", "r", score, sample=i) for i, score in enumerate(scores)))
        for scores in (a, b)
    )
    return compare(one, other)


# Flips


def test_a_flip_is_a_changed_decision():
    a = traces_with_verdicts(verdict("p", "r", 0.4), verdict("q", "r", 0.9), verdict("s", "r", 0.6))
    b = traces_with_verdicts(verdict("p", "r", 0.5), verdict("q", "r", 0.2), verdict("s", "r", 1.0))
    found = compare(a, b)
    assert found.flipped_verdicts == (Flip("p", "r", ("r",), 0.4, 0.5, True), Flip("q", "r", ("r",), 0.9, 0.2, False))
    assert (found.judged_both, found.flips, found.flip_rate) == (3, 2, pytest.approx(2 / 3))
    rows = [(row.question, row.n, row.to_met, row.to_unmet, row.largest_delta) for row in found.questions]
    assert rows == [("p", 1, 1, 0, pytest.approx(0.1)), ("q", 1, 0, 1, 0.7), ("s", 1, 0, 0, 0.4)]


def test_a_judges_own_decision_takes_precedence_over_its_score():
    met, unmet = verdict("q", "r", 0.4, met=True), verdict("q", "r", 0.6, met=False)
    assert compare(traces_with_verdicts(met), traces_with_verdicts(verdict("q", "r", 0.9))).flips == 0
    assert compare(traces_with_verdicts(unmet), traces_with_verdicts(verdict("q", "r", 0.1))).flips == 0
    assert compare(traces_with_verdicts(unmet), traces_with_verdicts(met)).flipped_verdicts == (
        Flip("q", "r", ("r",), 0.6, 0.4, True),
    )


# Samples


def test_samples_in_another_order_are_no_difference():
    """Sample k of one run and sample k of the other are unrelated draws."""
    found = compare_samples([1.0, 0.0, 0.7], [0.7, 1.0, 0.0])
    assert (found.judged_both, found.flips, found.questions[0].largest_delta) == (1, 0, 0.0)
    assert (found.questions[0].mean_delta, found.questions[0].mean_delta_p) == (0.0, None)


def test_equal_means_of_other_samples_are_no_difference():
    assert (0.1 + 0.2) / 2 != 0.15
    (row,) = compare_samples([0.1, 0.2], [0.15, 0.15]).questions
    assert (row.mean_delta, row.mean_delta_p, row.largest_delta) == (0.0, None, 0.0)


def test_the_majority_of_the_samples_decides():
    (flip,) = compare_samples([1.0, 1.0, 0.0], [0.0, 1.0, 0.0]).flipped_verdicts
    assert flip == Flip("q", "r", ("r",), pytest.approx(2 / 3), pytest.approx(1 / 3), False)
    assert compare_samples([1.0, 1.0, 1.0], [0.0, 1.0, 1.0]).flips == 0


def test_a_tie_of_the_samples_is_no_decision():
    tied = [1.0, 0.0]
    assert [compare_samples(a, b).flips for a, b in [(tied, [0.0]), (tied, [1.0]), ([1.0], tied), ([0.0], tied)]] == [
        0, 0, 0, 0,
    ]  # fmt: skip


def test_other_numbers_of_samples_are_compared_by_their_means_and_a_note_says_so():
    found = compare_samples([0.0, 1.0, 0.5, 0.5], [1.0])
    (row,) = found.questions
    assert (row.n, row.mean_a, row.mean_b, row.only_a, row.only_b) == (1, 0.5, 1.0, 0, 0)
    assert "1 of the 1 verdicts in both runs have more samples in one of them" in found.notes
    assert not any("more samples" in note for note in compare_samples([0.0, 1.0], [1.0, 1.0]).notes)


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

    def samples(cells: dict) -> dict[tuple[str, str], list[tuple[float, int]]]:
        by_verdict: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for (q, name, _), (score, met) in cells.items():
            decision = score >= 0.5 if met is None else met
            by_verdict.setdefault((q, name), []).append((score, 1 if decision else -1))
        return by_verdict

    def votes(samples: list[tuple[float, int]]) -> int:
        return sum(vote for _, vote in samples)

    def mean(samples: list[tuple[float, int]]) -> float:
        return sum(score for score, _ in samples) / len(samples)

    found, one, other = compare(traces(a), traces(b)), samples(a), samples(b)
    flipped = sorted(key for key in one.keys() & other.keys() if votes(one[key]) * votes(other[key]) < 0)
    assert [(f.question, f.response_id) for f in found.flipped_verdicts] == flipped
    assert all(f.met == (votes(other[f.question, f.response_id]) > 0) for f in found.flipped_verdicts)
    for row in found.questions:
        mine, theirs = ({key for key in cells if key[0] == row.question} for cells in (one, other))
        both = mine & theirs
        assert (row.n, row.only_a, row.only_b) == (len(both), len(mine - theirs), len(theirs - mine))
        largest = max((abs(mean(other[key]) - mean(one[key])) for key in both), default=None)
        assert row.largest_delta == pytest.approx(largest)
    assert {row.question for row in found.questions} == {key[0] for key in one.keys() | other.keys()}


# Tests and intervals


def test_the_test_of_a_question_flips_whole_tasks():
    """Task 1 gains three verdicts, tasks 2 to 6 one each: 2 of 64. Eight responses for themselves: 2 of 256."""
    after = [1.0, 1.0, 1.0] + [1.0, 0.0, 0.0] * 5
    (row,) = compare(judged_tasks({"q": [0.0] * 18}, 3), judged_tasks({"q": after}, 3)).questions
    assert (row.n, row.tasks, row.to_met, row.mean_delta_p) == (18, 6, 8, 2 / 64)


def test_the_interval_of_a_question_is_of_its_mean_score():
    deltas = [0.1, 0.2, -0.1, 0.3]
    (row,) = compare(judged_tasks({"q": [0.5] * 4}), judged_tasks({"q": [0.5 + d for d in deltas]})).questions
    theirs = stats.ttest_1samp(deltas, 0.0).confidence_interval(0.95)
    assert (row.mean_a, row.mean_delta) == (0.5, pytest.approx(0.125))
    assert (row.mean_delta_low, row.mean_delta_high) == pytest.approx((theirs.low, theirs.high))


def test_the_p_values_of_questions_are_adjusted_for_the_questions_that_differ():
    before = {"always": [0.0] * 6, "mostly": [0.0] * 6, "never": [0.0] * 6}
    after = {"always": [1.0] * 6, "mostly": [1.0] * 5 + [0.0], "never": [0.0] * 6}
    rows = compare(judged_tasks(before), judged_tasks(after)).questions
    assert [(row.question, row.mean_delta_p, row.holm_p) for row in rows] == [
        ("always", 2 / 64, 4 / 64),
        ("mostly", 2 / 32, 2 / 32),
        ("never", None, None),
    ]


# Pairing


def test_verdicts_in_one_run_only_are_counted():
    a = traces_with_verdicts(
        verdict("both", "r", 1.0), verdict("old", "r", 1.0), verdict("open", "r"), verdict("neither", "r")
    )
    b = traces_with_verdicts(
        verdict("both", "r", 1.0), verdict("new", "r", 0.0), verdict("open", "r", 0.0), verdict("neither", "r")
    )
    rows = [(row.question, row.n, row.only_a, row.only_b) for row in compare(a, b).questions]
    assert rows == [("both", 1, 0, 0), ("new", 0, 0, 1), ("old", 0, 1, 0), ("open", 0, 0, 1)]


def test_verdicts_on_unpaired_responses_do_not_count():
    gone = traces_with_verdicts(verdict("q", "gone", 1.0), verdict("of its own", "gone", 1.0), response="gone")
    a = traces_with_verdicts(verdict("q", "r", 1.0)) + gone
    (row,) = compare(a, traces_with_verdicts(verdict("q", "r", 1.0))).questions
    assert (row.n, row.only_a, row.only_b) == (1, 0, 0)


def test_a_verdict_on_an_unordered_pair_counts_once():
    def pair(score: float) -> list[Trace]:
        one = verdict("duel", "r", score, responses=("r", "s"))
        return traces_with_verdicts(one) + traces_with_verdicts(one, response="s")

    found = compare(pair(1.0), pair(0.0))
    assert (found.judged_both, found.flipped_verdicts) == (1, (Flip("duel", "r", ("r", "s"), 1.0, 0.0, False),))


def test_ordered_pairs_are_distinguished_by_response_and_opponent():
    def duels(first: float, second: float, third: float) -> list[Trace]:
        mine = verdict("duel", "r", first, responses=("r", "s")), verdict("duel", "r", second, responses=("r", "u"))
        return traces_with_verdicts(*mine) + traces_with_verdicts(
            verdict("duel", "s", third, responses=("s", "r")), response="s"
        )

    flipped = compare(duels(1.0, 1.0, 1.0), duels(1.0, 0.0, 0.0)).flipped_verdicts
    assert [(flip.response_id, flip.responses) for flip in flipped] == [("r", ("r", "u")), ("s", ("s", "r"))]


def test_flips_are_sorted_by_question_response_and_opponents():
    def scored_as(score: float) -> list[Trace]:
        return [
            trace(
                "t",
                name,
                verdicts=tuple(verdict(q, name, score, responses=(name, o)) for q in ("z", "a") for o in "vu"),
            )
            for name in ("s", "r")
        ]

    found = compare(scored_as(1.0), scored_as(0.0))
    assert [(flip.question, flip.response_id, flip.responses[1]) for flip in found.flipped_verdicts] == [
        (q, name, opponent) for q in ("a", "z") for name in ("r", "s") for opponent in "uv"
    ]
