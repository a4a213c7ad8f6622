"""Comparison of two runs: whole tasks are the independent units."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.models.request import Request
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.schema import RecordedVerdict
from jurygraph.studies.changed_inputs import ChangedInputs, find_changed_inputs
from jurygraph.studies.compared_responses import (
    ComparedResponse,
    iter_compared_responses,
    mean_verdicts_by_key,
)
from jurygraph.studies.comparison import (
    STATISTIC_DESCRIPTIONS,
    compare,
    decide_under_other_settings,
    missing_evidence_messages,
)
from jurygraph.studies.report import Report, ReportTable
from tests.command import run_command
from tests.rows import all_rows
from tests.runs.investigations import PRICE, Investigator, judge
from tests.runs.sample_runs import FULL_CONFIG, SIMPLE_CONFIG, make_tasks, score, write_tasks

unhurried = settings(deadline=None)  # the first call loads scipy
tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)
rewards = st.one_of(st.none(), tenths)
lists_of_deltas = st.lists(tenths, min_size=2, max_size=12)
Pairs = Sequence[tuple[float | None, float | None]]


def response(
    name: str,
    task: str = "t",
    reward: float | None = 0.5,
    agent: str | None = None,
    *verdicts: RecordedVerdict,
) -> ComparedResponse:
    return ComparedResponse(
        name, task, agent, math.nan if reward is None else reward, mean_verdicts_by_key(verdicts)
    )


def run(values: Iterable[float | None], per_task: int = 1) -> list[ComparedResponse]:
    return [response(f"r{i:03}", f"t{i // per_task:03}", value) for i, value in enumerate(values)]


def report_of(pairs: Pairs, per_task: int = 1, **arguments: Any) -> Report:
    return compare(
        run((a for a, _ in pairs), per_task), run((b for _, b in pairs), per_task), **arguments
    )


def compare_rewards(pairs: Pairs, per_task: int = 1, **arguments: Any) -> Mapping[str, Any]:
    return report_of(pairs, per_task, **arguments).figures


def compare_deltas(
    deltas: Iterable[float], per_task: int = 1, **arguments: Any
) -> Mapping[str, Any]:
    return compare_rewards([(0.0, float(delta)) for delta in deltas], per_task, **arguments)


def verdict(question: str, score: float | None, about: str = "r", **fields: Any) -> RecordedVerdict:
    status = "abstained" if score is None else "ok"
    given = {"question": question, "about": about, "responses": (about,), "status": status} | fields
    return RecordedVerdict.model_validate(given | {"score": score})


def compare_verdicts(
    a: Sequence[RecordedVerdict], b: Sequence[RecordedVerdict]
) -> Mapping[str, Any]:
    """Compare runs of one response with these verdicts."""
    return compare([response("r", "t", 0.5, None, *a)], [response("r", "t", 0.5, None, *b)]).figures


def compare_samples(a: Sequence[float], b: Sequence[float]) -> Mapping[str, Any]:
    sides = ([verdict("q", score, sample=i) for i, score in enumerate(scores)] for scores in (a, b))
    return compare_verdicts(*sides)


# Rewards


def test_means_and_their_difference_match_a_manual_calculation():
    found = compare_rewards(
        [(0.25, 0.5), (0.5, 0.5), (0.75, 0.25), (1.0, 0.5), (None, 1.0), (0.5, None), (None, None)]
    )
    assert [found[name] for name in ("paired", "n", "tasks", "changed_tasks")] == [7, 4, 4, 3]
    assert [found[name] for name in ("mean_a", "mean_b", "mean_delta")] == [0.625, 0.4375, -0.1875]
    assert [found[name] for name in ("failed_a", "failed_b", "failed_both")] == [1, 1, 1]


def test_the_first_sentence_says_how_much_how_certain_of_what_and_what_was_left_out():
    def first_sentence(pairs: Pairs) -> str:
        return str(report_of(pairs).conclusion[0])

    assert first_sentence([(0.5, 0.5), (0.25, 0.25), (None, 0.5)]) == (
        "A and B have the same mean; 0 of 2 tasks changed; n = 2 responses, left out: 1 failed in A"
    )
    assert first_sentence([(0.5, None), (0.5, None), (None, None)]) == (
        "no response has a reward in both A and B; n = 0 responses, left out: 2 failed in B, 1 failed in both"
    )
    assert first_sentence([(0.5, 0.6), (0.5, 0.7), (0.5, 0.8)]) == (
        "B is 0.2000 higher (95 % interval: 0.0484 lower to 0.4484 higher, not certain); 3 of 3 tasks changed; "
        "n = 3 responses"
    )
    assert first_sentence([(0.5, 0.3), (0.5, 0.3), (0.5, 0.35)]) == (
        "B is 0.1833 lower (95 % interval: 0.2550 lower to 0.1116 lower, not certain: p 0.2500 in the sign-flip "
        "test); 3 of 3 tasks changed; n = 3 responses"
    )
    assert " lower, certain); 6 of 6 tasks" in first_sentence([(0.5, 0.3), (0.5, 0.35)] * 3)
    assert "higher (no interval, but p 0.0312 in the sign-flip test)" in first_sentence(
        [(0.25, 0.5)] * 6
    )
    assert first_sentence([(0.5, 0.6)]) == (
        "B is 0.1000 higher (no interval, so not certain); 1 of 1 tasks changed; n = 1 response"
    )
    assert first_sentence([(0.1, 0.3), (0.4, 0.2)]).startswith(
        "A and B have the same mean (95 % interval: 2.5412 lower to 2.5412 higher, not certain); 2 of 2 tasks changed"
    ), "an error of rounding is no change"
    (one_run_alone,) = compare(run([0.5, 0.5]), run([0.5])).conclusion
    assert str(one_run_alone).endswith("n = 1 response, left out: 1 only in A")


def test_a_response_in_one_run_only_is_counted_and_left_out():
    found = compare(run([0.5, 0.5, 1.0]), run([0.5, 0.25])).figures
    assert (found["paired"], found["only_a"], found["only_b"], found["mean_a"]) == (2, 1, 0, 0.5)


@unhurried
@given(
    st.lists(st.tuples(rewards, rewards), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
    st.integers(1, 5),
)
def test_counts_add_up_swapping_runs_swaps_signs_and_order_changes_nothing(
    pairs: Pairs, random: Any, per_task: int
):
    a = run((a for a, _ in pairs), per_task)
    b = run((b for _, b in pairs), per_task)
    there = compare(a, b).figures
    back = compare(b, a).figures
    assert (
        there["n"] + there["failed_a"] + there["failed_b"] + there["failed_both"]
        == there["paired"]
        == len(pairs)
    )
    assert sum(agent["n"] for agent in there["agents"]) == there["n"]
    for name, opposite in (("mean_delta_low", "mean_delta_high"), ("mean_delta", "mean_delta")):
        assert back[name] == (None if there[opposite] is None else pytest.approx(-there[opposite]))
    for name in ("mean_delta_p", "detectable_difference", "kendall_within"):
        assert back[name] == (None if there[name] is None else pytest.approx(there[name]))
    random.shuffle(a)
    random.shuffle(b)
    assert compare(iter(a), iter(b)).to_json() == compare(sorted(a), sorted(b)).to_json()
    same = compare(a, a).figures
    changed = 0 if same["n"] else None
    assert (same["changed_tasks"], same["mean_delta_p"], same["changes"]) == (changed, None, [])


@unhurried
@given(lists_of_deltas.filter(lambda deltas: len(set(deltas)) > 1), st.integers(1, 4))
def test_with_tasks_of_one_size_the_interval_is_students_of_the_task_means(
    deltas: list[float], per_task: int
):
    values = [delta + change for delta in deltas for change in np.linspace(-0.5, 0.5, per_task)]
    found = compare_deltas(values, per_task)
    means = np.reshape(values, (-1, per_task)).mean(axis=1)
    theirs = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (found["mean_delta_low"], found["mean_delta_high"]) == pytest.approx(
        (theirs.low, theirs.high)
    )
    freedom = len(deltas) - 1
    if len(deltas) < 10:
        assert found["detectable_difference"] is None
        return
    effect = found["detectable_difference"] / stats.sem(means)
    assert stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, effect) == pytest.approx(
        0.8, abs=1e-6
    )


@unhurried
@given(lists_of_deltas, st.integers(2, 5))
def test_copies_of_a_response_add_no_evidence(deltas: list[float], copies: int):
    alone = compare_deltas(deltas)
    copied = compare_deltas([delta for delta in deltas for _ in range(copies)], copies)
    for name in ("tasks", "mean_delta", "mean_delta_low", "mean_delta_p", "detectable_difference"):
        assert copied[name] == (None if alone[name] is None else pytest.approx(alone[name]))


def test_what_cannot_be_computed_is_none():
    """So that a gate on it fails: that nothing flipped says nothing where no verdict is in both runs."""
    absent = {
        name
        for name in STATISTIC_DESCRIPTIONS
        if compare_rewards([(None, 0.5), (0.5, None)])[name] is None
    }
    assert absent == {
        "mean_a", "mean_b", "mean_delta", "mean_delta_low", "mean_delta_high", "mean_delta_p",
        "detectable_difference", "kendall_within", "flip_rate", "flips", "changed_tasks",
    }  # fmt: skip
    one_task = compare_deltas([0.1, 0.2, -0.3, 0.4], per_task=4)
    assert (one_task["tasks"], one_task["mean_delta_low"], one_task["mean_delta_p"]) == (
        1,
        None,
        1.0,
    )
    # tasks that agree do not show how much others vary
    assert compare_deltas([0.1] * 60)["mean_delta_low"] is None


@all_rows(
    ("pairs", "per_task", "p"),
    [
        # Four gains of four: 2 of 16 combinations of signs, however many tasks do not differ.
        ([(0.4, 0.6)] * 4 + [(0.4, 0.4)] * 47, 1, 0.125),
        # 0.1 + 0.2 - 0.3 is not 0 in binary, but it is no change.
        ([(0.0, delta) for delta in [0.1, 0.2, -0.3] * 40 + [0.1, 0.2, 0.4] * 4], 3, 0.125),
        # No response changed: 0.1 + 0.2 is above 0.3 in binary.
        ([(0.1 + 0.2, 0.3)] * 6 + [(1.0, 1.0 - 7e-13)], 1, None),
    ],
)
def test_tests_are_exact_and_ignore_rounding_errors(pairs: Pairs, per_task: int, p: float | None):
    assert compare_rewards(pairs, per_task)["mean_delta_p"] == p


@unhurried
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_with_one_response_a_task_decisions_are_tested_as_by_mcnemar(
    passes: list[tuple[bool, bool]],
):
    found = compare_rewards([(float(a), float(b)) for a, b in passes])
    lost = passes.count((True, False))
    gained = passes.count((False, True))
    assert found["mean_delta_p"] == (
        stats.binomtest(lost, lost + gained).pvalue if lost + gained else None
    )


def test_easy_and_hard_tasks_are_no_ranking_within_a_task():
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(size=40), 8)
    a = level + 0.4 * rng.normal(size=320)
    b = level + 0.4 * rng.normal(size=320)
    found = compare_rewards(list(zip(a.tolist(), b.tolist(), strict=True)), per_task=8)
    each = [
        stats.kendalltau(x, y).statistic
        for x, y in zip(a.reshape(-1, 8), b.reshape(-1, 8), strict=True)
    ]
    assert found["kendall_within"] == pytest.approx(np.mean(each))
    assert (
        compare_rewards([(0.5, 0.1), (0.5, 0.2), (0.3, 0.4)], per_task=2)["kendall_within"] is None
    )
    tied = [(0.1 + 0.2, 1.0), (0.3, 2.0), (0.4, 3.0)]
    assert compare_rewards(tied, per_task=3)["kendall_within"] == pytest.approx(2 / math.sqrt(6))


def test_the_largest_changes_come_first_and_ties_by_id():
    found = compare_rewards([(0.5, 0.5), (0.0, 0.5), (1.0, 0.0), (0.5, 0.0), (None, 1.0)])[
        "changes"
    ]
    assert [(row["response_id"], row["delta"]) for row in found] == [
        ("r002", -1.0),
        ("r001", 0.5),
        ("r003", -0.5),
    ]
    assert len(compare_deltas([0.1] * 30)["changes"]) == 20


# Agents


def by_agent(
    agents: Sequence[str | None], values: Sequence[float | None]
) -> list[ComparedResponse]:
    return [
        response(f"r{i}", f"t{i}", v, agent)
        for i, (v, agent) in enumerate(zip(values, agents, strict=True))
    ]


def test_agents_are_listed_by_name_with_what_was_left_out():
    agents = ["bob", None, "alice", "bob", "carol"]
    found = compare(
        by_agent(agents, [0.0, 0.5, 1.0, 0.5, None]), by_agent(agents, [1.0, 0.5, 0.5, 1.0, 0.5])
    )
    assert [
        (row["agent"], row["n"], row["mean_delta"], row["left_out"])
        for row in found.figures["agents"]
    ] == [
        ("alice", 1, -0.5, 0),
        ("bob", 2, 0.75, 0),
        ("carol", 0, None, 1),
        (None, 1, 0.0, 0),
    ]


def test_the_first_sentence_has_the_order_of_the_agents():
    def sentence(*pairs: tuple[float, float]) -> str:
        sides = [
            [response(f"r{n}", f"t{n}", pair[side], "xyz"[n]) for n, pair in enumerate(pairs)]
            for side in (0, 1)
        ]
        return str(compare(*sides).conclusion[0])

    leads = "; the first leads by 0.2500 in A, 0.{} in B"
    assert sentence((0.5, 0.25), (0.25, 0.125)).endswith(
        f"; agents are in the same order{leads.format(1250)}"
    )
    assert sentence((0.5, 0.25), (0.25, 0.5)).endswith(
        f"; agents are in another order: by mean x > y in A, y > x in B{leads.format(2500)}"
    )
    tied = sentence((0.5, 0.1 + 0.2), (0.5, 0.3), (0.75, 0.0))
    assert "; agents are in another order: by mean z > x = y in A, x = y > z in B" in tied
    # the one of two that changed comes first, in the words of the runs, and apart by a label of theirs
    last, this = by_agent(["x", "y"] * 2, [0.5] * 4), by_agent(["x", "y"] * 2, [0.5, 0.25] * 2)
    values = {response.id: "bill" for response in last[:2]}
    found = compare(last, this, names=("last", "this"), by=("topic", values))
    assert found.conclusion[0].startswith(
        "of the agents only y (0.2500 lower) changed; this is 0.1250 lower (95 % interval: "
    )
    assert "; the first leads" not in found.conclusion[0]
    assert [row["agent"] for row in found.figures["agents"]] == ["y", "x"]
    assert [(row["value"], row["mean_delta"], row["n"]) for row in found.figures["by"]] == [
        ("bill", -0.125, 2),
        (None, -0.125, 2),
    ]
    assert any(table.header[0] == "topic" for table in found.tables)
    assert "the first leads" not in tied + sentence((0.5, 0.25))  # level with another, or alone
    assert "by mean" not in sentence((0.5, 0.5), (0.25, 0.25)) + sentence((0.5, 0.25))


def test_agents_have_intervals_and_tests_adjusted_for_their_number():
    """Six gains of one agent (p = 1/32), and six changes of another of which one is a loss; a third has none."""
    agents = ["alice"] * 6 + ["bob"] * 6 + ["carol"] * 6
    deltas = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6] + [0.1, 0.1, 0.1, 0.1, 0.1, -0.1] + [0.0] * 6
    alice, bob, carol = compare(by_agent(agents, [0.0] * 18), by_agent(agents, deltas)).figures[
        "agents"
    ]
    theirs = stats.ttest_1samp(deltas[:6], 0.0).confidence_interval(1.0 - 0.05 / 2)
    assert (alice["mean_delta_low"], alice["mean_delta_high"]) == pytest.approx(
        (theirs.low, theirs.high)
    )
    assert (alice["mean_delta_p"], alice["holm_p"]) == (1 / 32, 2 / 32)
    assert bob["holm_p"] == pytest.approx(14 / 64)
    assert (carol["mean_delta_p"], carol["holm_p"], carol["mean_delta_low"]) == (None, None, None)


# Verdicts


def test_a_flip_is_a_changed_decision_and_a_judges_own_one_takes_precedence_over_its_score():
    found = compare_verdicts(
        [
            verdict("p", 0.25, native=2, scale=(1, 5)),
            verdict("q", 0.9),
            verdict("s", 0.6),
            verdict("u", 0.4, met=True),
        ],
        [
            verdict("p", 0.5, native=3, scale=(1, 5)),
            verdict("q", 0.2),
            verdict("s", 1.0),
            verdict("u", 0.9),
        ],
    )
    marks = dict.fromkeys(("unsupported_in", "gated_in", "undecided_in"))
    flip = {"response_id": "r", "responses": ("r",), **marks}
    assert found["flipped_verdicts"] == [
        {"question": "p", **flip, "before": 0.25, "after": 0.5, "met": True, "is_graded": True},
        {"question": "q", **flip, "before": 0.9, "after": 0.2, "met": False, "is_graded": False},
    ]
    assert (found["judged_both"], found["flips"], found["flip_rate"]) == (4, 2, 0.5)
    rows = [
        (row["question"], row["to_met"], row["to_unmet"], row["largest_delta"])
        for row in found["questions"]
    ]
    assert rows == [
        ("p", 1, 0, 0.25),
        ("q", 0, 1, 0.7),
        ("s", 0, 0, 0.4),
        ("u", 0, 0, 0.5),
    ]


def test_a_change_that_an_unsupported_finding_makes_is_marked():
    """An invented quotation makes a verdict the worst case: that is no effect of what differs between the runs."""
    supported = response("r", "t", 1.0, None, verdict("q", 0.8, met=True))
    invented = response("r", "t", 0.0, None, verdict("q", 0.0, met=False, unsupported="worst-case"))
    report = compare([supported], [invented])
    (flip,) = report.figures["flipped_verdicts"]
    (change,) = report.figures["changes"]
    assert (flip["unsupported_in"], change["unsupported_in"]) == ("B", "B")
    assert "| met -\\> unmet, unsupported in B |" in report.to_markdown()
    assert "| flipped | response | A | B | decision |" in report.to_markdown()
    assert "| unsupported in |" in report.to_markdown()
    for alike in (supported, invented):
        plain = compare([alike._replace(reward=1.0)], [alike._replace(reward=0.5)])
        assert "unsupported" not in plain.to_markdown()


def test_a_verdict_that_failed_is_named_apart_from_those_that_flipped():
    """The failure rule fills it, so that the reward changes: that is no change of a judge's mind."""
    judged = response("r", "t", 1.0, None, verdict("q", 1.0), verdict("p", 1.0))
    failure = {"cause": "infrastructure", "kind": "connection"}
    unanswered = [
        verdict("q", None, status="failed", failure=failure),
        verdict("p", 0.0, gated_by="empty-response"),
    ]
    report = compare([judged], [response("r", "t", 0.0, None, *unanswered)])
    outcomes = [
        (count["before"], count["after"], count["n"]) for count in report.figures["outcomes"]
    ]
    assert outcomes == [("judged", "failed", 1), ("judged", "gated", 1)]
    assert [flip["question"] for flip in report.figures["flipped_verdicts"]] == ["p"]
    text = report.to_markdown()
    (first,) = report.conclusion
    assert first.endswith(
        "; n = 1 response; 1 verdict judged in A, failed in B; 1 verdict judged in A, gated in B"
    )
    unanswered.append(verdict("z", None, status="abstained"))
    judged = response("r", "t", 1.0, None, *(verdict(name, 1.0) for name in "qpz"))
    (first,) = compare([judged], [response("r", "t", 0.0, None, *unanswered)]).conclusion
    assert first.endswith("; 3 verdicts ended otherwise, in 3 ways")
    assert "| q | r | judged | failed | 1.0000 | 0.0000 |" in text
    assert "| met -\\> unmet, gated in B |" in text
    assert "| largest changes | A | B | B - A | failed in | gated in |" in text
    assert compare([judged], [judged]).figures["outcomes"] == []
    abstained = response("r", "t", 1.0, None, verdict("q", None), verdict("p", 1.0))
    (row,) = compare([abstained], [judged]).figures["outcome_changes"]
    assert (row["question"], row["before"], row["after"]) == ("q", "abstained", "judged")


def test_a_certain_difference_says_what_was_filled_in_and_that_other_things_were_judged():
    failure = {"cause": "infrastructure", "kind": "connection"}
    failed = verdict("q", None, status="failed", failure=failure)
    rewards = (1.0, 0.9, 0.95, 1.0, 0.9, 1.0)
    a = [response(f"r{i}", f"t{i}", one, None, verdict("q", 1.0)) for i, one in enumerate(rewards)]
    b = [one._replace(reward=0.0) for one in a]
    for filled in (0, 2):
        b[:filled] = [response(f"r{i}", f"t{i}", 0.0, None, failed) for i in range(filled)]
        (sentence,) = compare(a, b).conclusion
        reserve = (
            " but for 2 verdicts that failed in one run, filled in or left out" if filled else ""
        )
        assert f" lower, certain{reserve}); 6 of 6 tasks changed" in sentence
    changed_inputs = ChangedInputs([("rubric.kappa", 1.0, None)], 5, answered_anew=2)
    report = compare(a, b[::-1], changed_inputs=changed_inputs)
    assert "or left out, with other responses); " in report.conclusion[0]
    table, note, *_ = report.sections
    assert isinstance(table, ReportTable)
    assert table.header[0] == "changed between the runs"
    assert table.rows == [["rubric.kappa", "A", "1.0"], ["", "B", "none"]]
    assert str(note).startswith(
        "5 tasks with another content in B, which the config may give, such as a rubric; 2 of them with other "
        "responses; if the rows"
    )


def test_of_many_flips_the_first_are_returned_and_all_are_counted():
    opponents = [f"o{number}" for number in range(8)]

    def run_of(score: float) -> list[ComparedResponse]:
        verdicts = [verdict("pair", score, responses=("r", name)) for name in opponents]
        return [response("r", "t", 0.5, None, *verdicts)]

    found = compare(run_of(0.0), run_of(1.0), max_flips_listed=2).figures
    first = [flip["responses"] for flip in found["flipped_verdicts"]]
    assert (found["flips"], first) == (8, [("r", "o0"), ("r", "o1")])


@all_rows(
    ("a", "b", "delta", "flips"),
    [
        ([1.0, 0.0, 0.7], [0.7, 1.0, 0.0], 0.0, 0),  # samples of two runs are unrelated draws
        ([0.1, 0.2], [0.15, 0.15], 0.0, 0),  # (0.1 + 0.2) / 2 is not 0.15 in binary
        ([1.0, 1.0, 0.0], [0.0, 1.0, 0.0], pytest.approx(1 / 3), 1),  # the majority decides
        ([1.0, 0.0], [0.0], 0.5, 0),  # a tie is no decision
        ([1.0, 0.0], [1.0], 0.5, 0),
    ],
)
def test_samples_are_averaged_before_verdicts_are_paired(
    a: list[float], b: list[float], delta: float, flips: int
):
    found = compare_samples(a, b)
    assert (found["judged_both"], found["questions"][0]["largest_delta"], found["flips"]) == (
        1,
        delta,
        flips,
    )


def test_verdicts_in_one_run_only_are_counted_and_those_without_a_score_are_none():
    a = [verdict("both", 1.0), verdict("old", 1.0), verdict("open", None), verdict("neither", None)]
    b = [verdict("both", 1.0), verdict("new", 0.0), verdict("open", 0.0), verdict("neither", None)]
    rows = [
        (row["question"], row["n"], row["only_a"], row["only_b"])
        for row in compare_verdicts(a, b)["questions"]
    ]
    assert rows == [("both", 1, 0, 0), ("new", 0, 0, 1), ("old", 0, 1, 0), ("open", 0, 0, 1)]


def test_runs_of_other_judges_say_that_they_have_no_verdict_in_common():
    a, b = (
        [response("r", "t", 0.5, None, verdict("q", 1.0, judge=judge))]
        for judge in ("mild", "strict")
    )
    lacking = "the runs have no verdict in common to compare"
    assert any(note.startswith(lacking) for note in compare(a, b).notes)
    assert not any(note.startswith(lacking) for note in compare(a, a).notes)


def test_pairs_are_distinguished_by_opponent_and_votes_by_judge_and_superseded_ones_do_not_count():
    def side(first: float, second: float) -> list[RecordedVerdict]:
        duels = [
            verdict("duel", first, responses=("r", "s")),
            verdict("duel", second, responses=("r", "u")),
        ]
        votes = [
            verdict("q", first, judge="mini"),
            verdict("q", second, judge="tiny"),
            verdict("q", 0.0),
        ]
        return [*duels, *votes, verdict("q", second, judge="mini", sample=1, superseded=True)]

    flips = compare_verdicts(side(1.0, 1.0), side(1.0, 0.0))["flipped_verdicts"]
    assert [(flip["question"], flip["responses"]) for flip in flips] == [
        ("duel", ("r", "u")),
        ("q by tiny", ("r",)),
    ]


def test_the_tests_of_questions_flip_whole_tasks_and_are_adjusted():
    """Task 1 gains three verdicts, tasks 2 to 6 one each: 2 of 64. Eight responses for themselves: 2 of 256."""

    def judged(scores: Sequence[float]) -> list[ComparedResponse]:
        return [
            response(
                f"r{i}",
                f"t{i // 3}",
                0.5,
                None,
                verdict("q", one, f"r{i}"),
                verdict("same", 0.0, f"r{i}"),
            )
            for i, one in enumerate(scores)
        ]

    report = compare(judged([0.0] * 18), judged([1.0, 1.0, 1.0] + [1.0, 0.0, 0.0] * 5))
    question, same = report.figures["questions"]
    assert (question["n"], question["tasks"], question["to_met"]) == (18, 6, 8)
    assert (question["mean_delta_p"], question["holm_p"], same["holm_p"]) == (2 / 64, 2 / 64, None)
    assert "no verdict differs in 1 other question" in report.sections


# Conditions


def test_variants_of_one_prompt_are_one_unit() -> None:
    """A difference that all tasks of a group share is one piece of evidence, not ten."""
    deltas = np.random.default_rng(1).normal(size=8)

    def grouped(side: int) -> list[ComparedResponse]:
        return [
            response(f"r{i:02}", f"t{i:02}", float(side * deltas[i // 10]))._replace(
                group=f"g{i // 10}" if i else None
            )
            for i in range(80)
        ]

    in_a = grouped(0)
    in_a[0] = in_a[0]._replace(group="g0")  # erased in B alone
    report = compare(in_a, grouped(1), margins=[0.1], largest_loss=1.0)
    by_group = compare_deltas(deltas, margins=[0.1])
    names = (
        "mean_delta",
        "mean_delta_low",
        "mean_delta_high",
        "mean_delta_p",
        "tasks",
        "changed_tasks",
    )
    assert [report.figures[name] for name in names] == pytest.approx(
        [by_group[name] for name in names]
    )
    assert report.figures["margins"][0]["p"] == pytest.approx(by_group["margins"][0]["p"])
    assert (report.figures["units"], report.figures["n"]) == ("groups of tasks", 80)
    text = str(report)
    assert "8 of 8 groups of tasks changed" in text
    assert "sign-flip test of whole groups of tasks" in text
    assert report.notes[0].startswith("only 8 groups of tasks: with fewer than 20, ")


def test_no_margin_holds_for_lack_of_evidence():
    """Ten unchanged tasks do not show that no other task loses all of its reward."""
    found = compare_deltas([0.0] * 10, margins=[0.02])
    (tested,) = found["margins"]
    assert (tested["holds"], tested["needed_tasks"]) == (False, 183)
    assert tested["p"] == pytest.approx(0.98**10)
    assert tested["lowest"] == pytest.approx(-(1.0 - 0.025**0.1))
    assert [
        compare_deltas([0.0] * n, margins=[0.02])["margins"][0]["holds"] for n in (182, 183)
    ] == [False, True]
    assert list(missing_evidence_messages(found)) == [
        "threshold missed: no_worse_than = 0.02, but 10 tasks leave a mean difference of -0.3085 possible "
        "(p = 0.8171), as a rare task may lose 1; about 183 tasks like these would do with a chance "
        "of 80%",
    ]
    single = compare_deltas([0.5], margins=[0.5])
    assert single["margins"][0]["holds"] is False
    assert "show nothing of others" in next(missing_evidence_messages(single))


def test_a_task_can_lose_what_the_rewards_allow_or_more_where_it_did():
    (tested,) = compare_deltas([0.0] * 40, margins=[0.1], largest_loss=4.0)["margins"]
    assert (tested["holds"], tested["largest_loss"], tested["needed_tasks"]) == (False, 4.0, 146)
    assert compare_deltas([0.0] * 39 + [-2.0], margins=[0.1])["margins"][0]["largest_loss"] == 2.0


# Notes and wrong input


@all_rows(
    ("pairs", "per_task", "notes"),
    [
        ([(None, None)], 1, ["has no interval: no response has a reward in both runs"]),
        ([(0.0, 0.1)], 1, ["has no interval: all rewards are of one task"]),
        ([(0.0, 0.0)] * 30, 1, ["has no interval: no task differs, but up to 9.5%"]),
        ([(0.0, 0.1 * (i % 3)) for i in range(19)], 1, ["only 19 tasks: with fewer than 20"]),
        # A judge of B failed on the good responses alone.
        (
            [(0.9 + i / 100, None) for i in range(5)]
            + [(0.1 + i / 100, 0.1 + i / 99) for i in range(30)],
            1,
            [
                "mislead: 5 responses failed in B alone, with a mean of 0.9200 in A, where the others have one"
            ],
        ),
        ([(0.1, None), (0.19, None)] + [(0.1 + i / 100, 0.1 + i / 99) for i in range(30)], 1, []),
    ],
)
def test_notes_say_what_limits_the_figures(pairs: Pairs, per_task: int, notes: list[str]):
    found = report_of(pairs, per_task).notes
    assert len(found) == len(notes), found
    assert all(part in note for part, note in zip(notes, found, strict=True)), found


@all_rows(
    ("a", "b", "message"),
    [
        (
            [response("r")],
            [response("s")],
            "no response in common (A has 'r', B has 's'); compare two runs of the same",
        ),
        ([], [response("r")], "run A contains no response; score it first"),
        ([response("r")], [response("r"), response("r")], "response 'r' occurs twice in run B"),
        (
            [response("r")],
            [response("r", "u")],
            "response 'r' belongs to task 't' in A and to 'u' in B",
        ),
    ],
)
def test_runs_that_cannot_be_paired_are_refused(
    a: list[ComparedResponse], b: list[ComparedResponse], message: str
):
    with pytest.raises(InputError) as caught:
        compare(a, b)
    assert message in str(caught.value)


def test_agents_of_one_run_are_referred_to_the_ranking():
    a = [response("r", agent="v1")]
    with pytest.raises(InputError, match="of agents in one run, `jurygraph study ranking` says"):
        compare(a, [response("s", agent="v2")])


def test_the_intervals_of_several_rows_are_said_to_hold_together():
    several = [response(name, agent=name) for name in ("v1", "v2")]
    told = "intervals by agent and by question allow for the rows compared: those of a table hold together with 95 %"
    assert told in compare(several, several).notes
    assert told not in compare(several[:1], several[:1]).notes


def test_stored_responses_equal_those_of_the_traces(tmp_path: Path):
    """A run with pairs, lists, several samples, a failed verdict and one that a judge abstained from."""
    given = make_tasks()
    given[1]["responses"][0]["data"]["same"] = "infrastructure"
    score(tmp_path / "run", write_tasks(tmp_path, given), FULL_CONFIG)
    with closing(Run.open(tmp_path / "run")) as stored:
        found = list(iter_compared_responses(stored))
        for one, trace in zip(found, stored.traces(), strict=True):
            own = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
            assert (one.id, one.task, one.agent) == (trace.response_id, trace.task_id, trace.agent)
            assert one.reward == (
                trace.reward.value
                if trace.reward.value is not None
                else pytest.approx(math.nan, nan_ok=True)
            )
            assert one.verdicts == mean_verdicts_by_key(own)
        assert {len(key.responses) for one in found for key in one.verdicts} >= {0, 2}
        # The chain proves that a record is what was written, but not that it was written by jurygraph.
        for changed in ({"question": 99}, {"question": 0, "score": "high"}, {"score": 1.0}, None):
            group = next(read_stored_groups(stored))
            group.traces[0].body["verdicts"].append(changed)
            with pytest.raises(
                TraceMismatch, match=r"group 't0'\) and those of its traces: cannot be read"
            ):
                group.verdicts(stored.source.survey_without_texts(group.survey))


def test_a_row_for_responses_of_two_agents_names_both() -> None:
    before = [response("r1", "t", 0.5, "ada"), response("r2", "t", 0.5, "bo")]
    after = [response("r1", "t", 0.7, "bert"), response("r2", "t", 0.9, "bo")]
    rows = compare(before, after).figures["agents"]
    assert [row["agent"] for row in rows] == ["ada in A, bert in B", "bo"]


def test_the_turns_of_a_response_are_one_verdict_with_the_value_that_counts(tmp_path: Path) -> None:
    """A message of one conversation and the one of its index in another have nothing in common."""
    (tmp_path / "manners.py").write_text(
        "import jurygraph as jg\n\n\n@jg.evaluator\ndef kind(task, response):\n"
        "    met = 'no' not in response.text\n"
        "    return jg.Verdict(score=float(met), met=met)\n"
    )
    use = {"use": "manners.kind", "scope": "turn", "turns": "min"}
    (tmp_path / "jury.yaml").write_text(json.dumps({"evaluators": [use]}))
    say = [{"role": "assistant", "content": text} for text in ("yes", "no")]
    ask = {"role": "user", "content": "More!"}
    for name, chat in (("a", [say[0], ask, say[0]]), ("b", [ask, say[0], ask, say[1]])):
        task = {"id": "t", "query": "Salt!", "responses": [{"id": "r", "messages": chat}]}
        (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
        config = str(tmp_path / "jury.yaml")
        scored = run_command(
            "score", str(tmp_path / "tasks.jsonl"), "--config", config, "-o", str(tmp_path / name)
        )
        assert scored.code == 0, scored.err
    with closing(Run.open(tmp_path / "a")) as a, closing(Run.open(tmp_path / "b")) as b:
        (row,) = compare(iter_compared_responses(a), iter_compared_responses(b)).figures[
            "questions"
        ]
    assert (row["question"], row["n"], row["mean_a"], row["mean_b"]) == (
        "manners.kind",
        1,
        1.0,
        0.0,
    )


def compare_folders(folder_a: Path, folder_b: Path) -> Report:
    with Run.open(folder_a) as a, Run.open(folder_b) as b:
        return compare(
            iter_compared_responses(a),
            iter_compared_responses(b),
            under_b=decide_under_other_settings(a, b.config),
        )


def test_what_the_settings_change_by_themselves_is_what_rescoring_changes(tmp_path: Path) -> None:
    weights = {**FULL_CONFIG["reward"], "same": 1.5, "late": -1.0}
    config = {**FULL_CONFIG, "reward": weights, "clip": None}
    score(tmp_path / "a", write_tasks(tmp_path, make_tasks()), FULL_CONFIG)
    score(tmp_path / "b", write_tasks(tmp_path, make_tasks(seed=1)), config)
    with Run.open(tmp_path / "a") as a, Run.open(tmp_path / "b") as b:
        rescore(a, tmp_path / "rescored", b.config, lambda count: None)
    by_settings = compare_folders(tmp_path / "a", tmp_path / "rescored")
    report = compare_folders(tmp_path / "a", tmp_path / "b")
    mean = by_settings.figures["mean_delta"]
    assert abs(mean) > 0.1
    assert by_settings.figures["mean_delta_by_settings"] == pytest.approx(mean)
    assert report.figures["mean_delta_by_settings"] == pytest.approx(mean)
    rest = report.figures["mean_delta"] - report.figures["mean_delta_by_settings"]
    (first,) = report.conclusion
    # other weights alone are another scale: what became of the order comes before the mean
    (by_settings_alone,) = by_settings.conclusion
    assert re.match(
        r"agents are in (the same|another) order.*; the first leads by \S+ in A, \S+ in B; B is ",
        by_settings_alone,
    )
    assert first.startswith("B is ")
    assert (
        f"), of which {mean:+.4f} by the settings (A's verdicts under B's settings), {rest:+.4f} by what was asked and "
        "judged; 4 of 4 tasks changed"
    ) in first
    same = compare_folders(tmp_path / "b", tmp_path / "b")
    assert same.figures["mean_delta_by_settings"] is None
    assert not any("settings" in note for note in same.notes)


def test_what_the_settings_change_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = write_tasks(tmp_path, make_tasks())
    more = {**SIMPLE_CONFIG["reward"], "reads": 1.0}
    evaluators = [evaluator for evaluator in FULL_CONFIG["evaluators"] if "rank" not in evaluator]
    score(tmp_path / "a", tasks, SIMPLE_CONFIG)
    score(tmp_path / "b", tasks, {**FULL_CONFIG, "evaluators": evaluators, "reward": more})
    score(tmp_path / "c", tasks, {**SIMPLE_CONFIG, "failure": {"min_coverage": 1.0}})
    left_out = "what B's settings change by themselves is left out: "

    def find_reason(folder_a: str, folder_b: str) -> str:
        report = compare_folders(tmp_path / folder_a, tmp_path / folder_b)
        assert report.figures["mean_delta_by_settings"] is None
        (note,) = (note for note in report.notes if note.startswith(left_out))
        return note.removeprefix(left_out)

    assert find_reason("a", "b").startswith("A's verdicts do not fit them: reward.reads: ")
    monkeypatch.setattr("jurygraph.studies.comparison._MAX_RESPONSES_DECIDED", 11)
    assert find_reason("a", "c") == "A has more than 11 responses"


def test_below_the_flips_stands_what_only_the_judge_of_b_found(tmp_path: Path) -> None:
    """A quotation of a result, or the call of a tool where nothing of it is quoted; and tools are named."""

    def look_up(request: Request, step: int) -> Any:
        if request.investigation is None:
            return {"quotes": ["The room is 90 euros a night", "It is 49 euros each way"]}
        item = "room" if "Sole" in request.messages[1].content else "train"
        if step == 0:
            return [("price", {"item": item})]
        return {"met": False, "quotes": ["is 120 euros a night"] if item == "room" else []}

    judge(Investigator(look_up), tmp_path / "a", tools=[])
    judge(Investigator(look_up), tmp_path / "b", tools=[PRICE, "calculate"])
    with Run.open(tmp_path / "a") as a, Run.open(tmp_path / "b") as b:
        responses = iter_compared_responses(a), iter_compared_responses(b)
        report = compare(*responses, changed_inputs=find_changed_inputs(a, b), runs=(a, b))
        same = compare(iter_compared_responses(b), iter_compared_responses(b), runs=(b, b))
    assert [flip["found_in_b"] for flip in report.figures["flipped_verdicts"]] == [
        "tool:1: “is 120 euros a night”",
        'tool:1 price {"item": "train"} → The train is 49 euros each way.',
    ]
    text = report.to_markdown()
    assert text.index("| flipped |") < text.index("| found in B alone |")
    changed, *_ = report.sections
    assert isinstance(changed, ReportTable)
    assert changed.rows[1] == ["", "B", '["tests.runs.investigations:price", "calculate"]']
    assert "found in B alone" not in same.to_markdown()
