"""A panel of reviewers' judges: effective verdicts, their combination, and their disagreement."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Plan, Reward, ScoreMatrix, Trace, Verdict
from jurygraph.cli.render.trace import format_trace_lines
from jurygraph.decision.decide import compute_rewards
from jurygraph.explanation import Explanation
from jurygraph.graphs.routing import make_stamp
from jurygraph.judges.panel import ConsensusOfJudges, Panel
from jurygraph.schema import RecordedVerdict
from jurygraph.schema.verdict import VerdictKey
from jurygraph.views.trace import build_trace_view
from tests.graphs.scripted import ABSTENTION, INFRASTRUCTURE_FAILURE, RESPONSE_FAILURE
from tests.judges.few_shot.reviewers import QUALITY, task
from tests.rows import all_rows

JUDGE = "zero-shot"
COMBINERS = {"panel": Panel(), "consensus": ConsensusOfJudges()}
OUT = RecordedVerdict(status="not_applicable", gated_by="gate")
EXCLUDED = Verdict(status="not_applicable", native=0.0, confidence=0.9)
STAGED: Mapping[str, Any] = {
    "depth": {"text": "How deep it is.", "scale": [1, 4]},
    "reach": {"text": "How far it reaches.", "scale": [1, 4], "above": {"depth": 2}},
}

# A panel, and what its judges say


def plan(
    *reviewers: str, samples: int = 3, dimensions: Mapping[str, Any] = QUALITY, **settings: Any
) -> Plan:
    """Return the plan of a judge for each of these reviewers, without model calls."""
    judge = {"use": JUDGE, "params": {"dimensions": dimensions, "samples": samples}}
    config = {
        "model": "openai-compatible:http://127.0.0.1:9/v1#tiny",
        "evaluators": [judge],
        **settings,
    }
    with Jury.from_config(config) as jury:
        return jury.prepare(task(*reviewers))


def make_verdict(score: float, confidence: float | None = 0.9) -> Verdict:
    return Verdict(score=score, confidence=confidence)


def compute_reward(of: Plan, verdicts: Mapping[str, Sequence[Verdict]]) -> Reward:
    """The reward of one response; verdicts by question, one for each sample, or one for a question left out."""
    (reward,) = compute_rewards(
        of.decision, of.survey.questions, ["r"], stamp(of, verdicts), COMBINERS
    )
    return reward


def explained_trace(of: Plan, verdicts: Mapping[str, Sequence[Verdict]]) -> Trace:
    """The trace of one response with these verdicts."""
    reward, stamped = compute_reward(of, verdicts), stamp(of, verdicts)
    return Trace(
        task_id="t",
        response_id="r",
        group="g",
        plan_digest=of.digest,
        reward=reward,
        verdicts=tuple(stamped),
        plan=of,
    )


def stamp(of: Plan, verdicts: Mapping[str, Sequence[Verdict]]) -> list[RecordedVerdict]:
    by_id = {question.id: question for question in of.survey.questions}
    return [
        make_stamp(by_id[name], of.survey.views[by_id[name].view])(
            verdict, VerdictKey(name, "r", () if verdict is OUT else ("r",), sample)
        )
        for name, given in verdicts.items()
        for sample, verdict in enumerate(given)
    ]


def question_id(who: str, dimension: str = "quality") -> str:
    return f"{JUDGE}/{dimension}@{who}"


def reward_of_samples(*given: Verdict, **panel: Any) -> Reward:
    """Return the reward by the samples of one judge, whatever their coverage."""
    of = plan("ann", samples=len(given), panel=panel, failure={"min_coverage": 0.0})
    return compute_reward(of, {question_id("ann"): given})


def diagnostics(reward: Reward) -> Mapping[str, float]:
    return reward.diagnostics[JUDGE]


# Discard, then vote


UNSURE = make_verdict(1.0, 0.5)
VOTES: Mapping[str, tuple[Sequence[Verdict], float | None]] = {
    "all agree": ([make_verdict(0.5)] * 3, 0.5),
    "two of three": ([make_verdict(0.5), make_verdict(1.0), make_verdict(0.5)], 0.5),
    "all differ": ([make_verdict(0.0), make_verdict(0.5), make_verdict(1.0)], None),
    "two of two left": ([make_verdict(0.5), UNSURE, make_verdict(0.5)], 0.5),
    "one against one is left": ([make_verdict(0.5), make_verdict(0.75), UNSURE], None),
    "one alone is left": ([make_verdict(0.5), UNSURE, UNSURE], 0.5),
    "all are discarded": ([UNSURE, UNSURE, UNSURE], None),
    "half of those left is no majority": (
        [make_verdict(0.5), make_verdict(0.5), make_verdict(0), make_verdict(1), UNSURE],
        None,
    ),
    "three of five, two fail": (
        [
            make_verdict(0.5),
            INFRASTRUCTURE_FAILURE,
            make_verdict(0.5),
            RESPONSE_FAILURE,
            make_verdict(0.5),
        ],
        0.5,
    ),
    "a failure keeps its seat": (
        [make_verdict(0.5), make_verdict(0.5), INFRASTRUCTURE_FAILURE, INFRASTRUCTURE_FAILURE],
        None,
    ),
    "an outage makes no majority of the one left": (
        [make_verdict(0.5), UNSURE, INFRASTRUCTURE_FAILURE],
        None,
    ),
    "nobody votes": ([ABSTENTION] * 3, None),
    "one alone": ([make_verdict(0.25)], 0.25),
}


@all_rows(("given", "value"), VOTES.values())
def test_more_than_half_of_the_predictions_left_must_agree(
    given: Sequence[Verdict], value: float | None
) -> None:
    reward = reward_of_samples(*given)
    assert reward.value == value
    assert reward.coverage == (0.0 if value is None else 1.0)
    divided = value is None and any(one.status == "ok" for one in given)
    assert diagnostics(reward)["without a majority"] == float(divided)


OF_ALL: Mapping[str, float | None] = {
    "all agree": 0.5,
    "two of three": 0.5,
    "two of two left": 0.5,
    "one alone is left": None,
    "three of five, two fail": 0.5,
    "a failure keeps its seat": None,
    "one alone": 0.25,
}


@all_rows(("case", "value"), OF_ALL.items())
def test_by_the_vote_of_all_seats_they_must_be_more_than_half_of_all(
    case: str, value: float | None
) -> None:
    assert reward_of_samples(*VOTES[case][0], vote="all-seats").value == value


votes = st.sampled_from(
    [
        make_verdict(0.0),
        make_verdict(0.5),
        make_verdict(1.0),
        make_verdict(1.0, 0.3),
        ABSTENTION,
        INFRASTRUCTURE_FAILURE,
    ]
)


@given(
    st.sampled_from(["discard-first", "all-seats"]),
    st.lists(votes, min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_the_majority_is_of_confident_judges_in_any_order(
    vote: str, given: list[Verdict], random: Any
) -> None:
    of = PLANS[vote, len(given)]
    reward = compute_reward(of, {question_id("ann"): given})
    counted = [one.score for one in given if one.status == "ok" and (one.confidence or 0) >= 0.8]
    failed = sum(one.status == "failed" for one in given)
    seats = {"discard-first": len(counted) + failed, "all-seats": len(given)}[vote]
    winners = [score for score in set(counted) if 2 * counted.count(score) > seats]
    assert reward.value == (winners[0] if winners else None)
    turned = list(given)
    random.shuffle(turned)
    assert compute_reward(of, {question_id("ann"): turned}).value == reward.value


PLANS = {
    (vote, size): plan("ann", samples=size, panel={"vote": vote}, failure={"min_coverage": 0.0})
    for vote in ("discard-first", "all-seats")
    for size in range(2, 6)
}


def test_without_a_majority_there_is_no_credit_but_a_wider_range() -> None:
    reward = reward_of_samples(make_verdict(0.5), make_verdict(1.0), make_verdict(0.0))
    assert (reward.value, reward.status, reward.range) == (None, "failed", (0.0, 1.0))
    assert reward.counts.judged == 3


# Confidence


def test_a_reviewer_whose_predictions_are_all_discarded_is_missing_by_the_failure_rule() -> None:
    of = plan("ann", "bob", failure={"min_coverage": 0.5})
    verdicts = {question_id("ann"): [UNSURE] * 3, question_id("bob"): [make_verdict(0.5)] * 3}
    reward = compute_reward(of, verdicts)
    assert (reward.value, reward.status, reward.coverage, reward.range) == (
        0.25,
        "degraded",
        0.5,
        (0.25, 0.75),
    )
    assert reward.notes == (
        "0.5 of the weight was judged; the rest counts as the conservative rule says",
    )


def test_a_majority_for_exclusion_leaves_the_reviewer_out_and_says_so() -> None:
    verdicts = {
        question_id("ann"): (EXCLUDED, EXCLUDED, make_verdict(0.5)),
        question_id("bob"): (make_verdict(0.75), make_verdict(0.75), EXCLUDED),
    }
    of = plan("ann", "bob")
    trace = explained_trace(of, verdicts)
    assert (trace.reward.value, trace.reward.coverage, trace.reward.parts[JUDGE]) == (
        0.75,
        1.0,
        {"bob": 0.75},
    )
    lines = [
        line
        for line in format_trace_lines(
            build_trace_view(Explanation(trace, of.decision, of.survey.questions))
        )
        if "vote on" in line
    ]
    assert any("quality of ann: 2 × not applicable, 1 × 0.5" in line for line in lines)
    assert any("quality of bob: 2 × 0.75, 1 × not applicable" in line for line in lines)


def test_what_a_reviewer_is_predicted_to_give_stands_in_the_reviewers_scale() -> None:
    fours, three = [
        Verdict(score=(native - 1) / 4, native=native, scale=(1, 5), confidence=0.9)
        for native in (4.0, 3.0)
    ]
    of = plan("ann")
    trace = explained_trace(of, {question_id("ann"): (fours, fours, three)})
    explanation = Explanation(trace, of.decision, of.survey.questions)
    lines = "\n".join(format_trace_lines(build_trace_view(explanation)))
    assert "quality of ann: 2 × 4 of 1–5, 1 × 3 of 1–5" in lines
    assert f"  {question_id('ann')}  4 of 1–5  (" in lines
    assert f"  {question_id('ann')}, sample 3  3 of 1–5  (" in lines
    assert any("4 on a scale of 1 to 5 (0.75)" in line for line in explanation.sentences())


@pytest.mark.parametrize(
    ("confidence", "value"), [(0.8, 0.5), (0.7999, None), (1.0, 0.5), (0.0, None), (None, 0.5)]
)
def test_a_confidence_at_the_threshold_suffices_and_none_counts_as_sure(
    confidence: float | None, value: float | None
) -> None:
    assert reward_of_samples(make_verdict(0.5, confidence)).value == value


# What else the config says


@pytest.mark.parametrize(
    ("reduce", "value"),
    [("mean", 0.5), ("median", 0.5), ("min", 0.0), ("max", 1.0), ("majority", None)],
)
def test_samples_may_be_combined_by_another_rule(reduce: str, value: float | None) -> None:
    assert (
        reward_of_samples(
            make_verdict(0.0), make_verdict(0.5), make_verdict(1.0), reduce=reduce
        ).value
        == value
    )


# Staged screening


def screened_plan(*reviewers: str, **panel: Any) -> Plan:
    return plan(*reviewers, samples=1, dimensions=STAGED, panel=panel)


@pytest.mark.parametrize(("gated", "value"), [("left-out", 0.25), ("zero", 0.125)])
def test_an_omitted_verdict_is_missing_or_zero_as_configured(gated: str, value: float) -> None:
    reward = compute_reward(
        screened_plan("ann", if_skipped=gated),
        {question_id("ann", "depth"): [make_verdict(0.25)], question_id("ann", "reach"): [OUT]},
    )
    assert (reward.value, reward.coverage, reward.status) == (value, 1.0, "ok")
    assert reward.counts.not_applicable == 1
    assert diagnostics(reward)["without a majority"] == 0.0


# Disagreement


def reward_of_panel(**given: float | Verdict | None) -> Reward:
    """Return the reward of a panel with one verdict per judge; None is below the confidence threshold."""
    of = plan(*given, samples=1, failure={"min_coverage": 0.0})
    uncertain = make_verdict(1.0, 0.1)
    verdicts = {
        who: uncertain if one is None else one if isinstance(one, Verdict) else make_verdict(one)
        for who, one in given.items()
    }
    return compute_reward(of, {question_id(who): [verdict] for who, verdict in verdicts.items()})


def test_the_diagnostics_contain_the_differences() -> None:
    found = diagnostics(reward_of_panel(ann=0.0, bob=0.5, cyd=1.0))
    assert found["disagreement"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert (found["lowest"], found["highest"]) == (0.0, 1.0)


# The arithmetic


@st.composite
def draw_panels(
    draw: st.DrawFn,
) -> tuple[dict[str, ScoreMatrix], dict[str, ScoreMatrix], dict[str, ScoreMatrix]]:
    """Cells of up to four judges for up to three responses: filled in some way, by 0 and by 1."""
    rows, made = draw(st.integers(1, 3)), ({}, {}, {})
    for name in "abcd"[: draw(st.integers(1, 4))]:
        size = draw(st.integers(1, 2))
        value = np.array(
            draw(st.lists(st.floats(0, 1), min_size=rows * size, max_size=rows * size))
        )
        live, judged = (
            np.array(draw(st.lists(st.booleans(), min_size=rows * size, max_size=rows * size)))
            for _ in range(2)
        )
        weight = np.array(
            draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=size, max_size=size))
        )
        value, live, judged = (one.reshape(rows, size) for one in (value, live, judged))
        for cells, fill in zip(made, (value, 0.0, 1.0), strict=True):
            filled = np.where(judged, value, fill)
            cells[name] = ScoreMatrix(filled, filled >= 0.5, judged, live, weight)
    return made


@given(draw_panels())
def test_a_panel_lies_between_its_bounds_and_those_between_0_and_1(made: Any) -> None:
    cells, low, high = made
    least, most = Panel().bounds(low, high, {})
    value = Panel().combine(cells, {}).value
    assert (least <= value + 1e-12).all()
    assert (value <= most + 1e-12).all()
    assert ((least >= 0.0) & (most <= 1.0 + 1e-12)).all()
