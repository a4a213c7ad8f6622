"""The summary of a run."""

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any

import pytest

from jurygraph.cli.render.summary import format_result_lines
from jurygraph.decision.decide import RewardRow
from jurygraph.runs.reports.gate import failed_thresholds, parse_ci_thresholds
from jurygraph.runs.reports.summary import (
    THRESHOLD_FIGURE_NAMES,
    FailedRewards,
    FindingCounts,
    LowestReward,
    Summary,
)
from jurygraph.runs.store.packing import pack_reward, pack_trace
from jurygraph.schema import (
    Counts,
    Failure,
    Question,
    RecordedVerdict,
    Response,
    Reward,
    SurveyWithoutTexts,
    Term,
    Trace,
)


def reward(value: float | None, status: str = "ok", coverage: float = 1.0) -> Reward:
    return Reward.model_validate(
        {
            "value": value,
            "status": status,
            "partial": value,
            "coverage": coverage,
            "range": None,
            "components": {"tone": value},
            "terms": (Term(name="tone", weight=1.0, value=value, contribution=value),),
            "counts": Counts(judged=1),
        }
    )


def trace(
    task: str, response: str, value: float | None, *verdicts: RecordedVerdict, **fields: Any
) -> Trace:
    defaults = {
        "reward": reward(value, "ok" if value is not None else "failed"),
        "agent": "alice",
    } | fields
    return Trace.model_validate(
        {
            "task_id": task,
            "response_id": response,
            "group": "g",
            "plan_digest": "p",
            "verdicts": verdicts,
            **defaults,
        }
    )


def verdict(about: str, **fields: Any) -> RecordedVerdict:
    return RecordedVerdict.model_validate(
        {"question": "tone", "about": about, "responses": (about,), **fields}
    )


def failed_verdict(about: str, cause: Any, status: str = "failed") -> RecordedVerdict:
    return verdict(about, status=status, failure=Failure(cause=cause, kind="Timeout"))


EVALUATORS = (("tone", "tone"), ("tone/late", "tone"), ("wit", "wit"))
SHAPE = SurveyWithoutTexts(
    members=(("task", None),),
    derivations=(),
    questions=tuple(
        Question(id=q, evaluator=name, version="", subject="tone", view="0")
        for q, name in EVALUATORS
    ),
    waves=(),
)


def add(summary: Summary, trace: Trace, questions: Sequence[Question] = SHAPE.questions) -> None:
    """Add a trace in its stored form."""
    response = Response(id=trace.response_id, text="")
    packed_reward = pack_reward(RewardRow.from_reward(trace.reward))
    body, texts = pack_trace(trace, response, SHAPE, packed_reward, 1, {})
    read_texts = partial(dict, enumerate(texts))
    names = [term.name for term in trace.reward.terms]
    summary.add(trace.task_id, trace.response_id, questions, body, packed_reward, read_texts, names)


def test_means_leave_out_failures_and_counts_include_them() -> None:
    summary = Summary()
    for one in (
        trace("t", "a", 1.0, verdict("a", score=0.5)),
        trace(
            "t",
            "b",
            0.5,
            verdict("b", score=0.5),
            verdict("b", status="abstained"),
            reward=reward(0.5, "degraded", 0.9),
        ),
        trace(
            "t",
            "c",
            None,
            failed_verdict("c", "infrastructure"),
            failed_verdict("c", "response"),
            agent="bob",
        ),
        trace("u", "d", 0.0, verdict("d", status="not_applicable", gated_by="x"), agent=None),
        trace("u", "e", 0.0, verdict("e", score=0.0, gated_by="empty-response"), agent=None),
    ):
        add(summary, one)
    alice, bob, nobody = summary.agents.values()
    assert (alice.mean, alice.coverage, alice.ok, alice.degraded, alice.failed) == (
        0.75,
        0.95,
        1,
        1,
        0,
    )
    assert (bob.mean, bob.failed, nobody.mean, nobody.agent) == (None, 1, 0.0, None)
    counts = {
        "judged": 2,
        "gated": 1,
        "abstained": 1,
        "failed": 2,
        "not_applicable": 1,
        "requested": 7,
    }
    assert (summary.to_json()["verdicts"], summary.to_json()["gated_by"]) == (
        counts,
        {"empty-response": 1},
    )
    assert (summary.tasks, summary.responses, summary.failed) == (2, 5, 1)
    assert summary.lowest == LowestReward(-inf, "c", 1)
    assert (summary.infrastructure_failures, summary.error_rate) == (1, 1 / 7)


def test_a_verdict_on_an_unordered_pair_counts_once() -> None:
    timeout = failed_verdict("a", "infrastructure").model_copy(update={"responses": ("a", "b")})
    summary = Summary()
    for name in "ab":
        add(summary, trace("t", name, 0.5, timeout, verdict(name, score=0.5)))
    assert (summary.failed_verdicts, summary.judged, summary.verdicts) == (1, 2, 3)
    assert summary.error_rate == 1 / 3


def test_an_abstention_with_a_cause_is_no_failure() -> None:
    summary = Summary()
    add(summary, trace("t", "a", 0.5, failed_verdict("a", "infrastructure", status="abstained")))
    assert summary.infrastructure_failures == 0


def test_failures_are_listed_by_frequency() -> None:
    def verdict_with_failure(about: str, cause: Any, kind: str, message: str) -> RecordedVerdict:
        return verdict(
            about, status="failed", failure=Failure(cause=cause, kind=kind, message=message)
        )

    summary = Summary()
    add(
        summary,
        trace(
            "t",
            "a",
            None,
            verdict_with_failure("a", "infrastructure", "timeout", "5 s"),
            verdict("a", status="abstained"),
        ),
    )
    add(
        summary,
        trace(
            "t",
            "b",
            None,
            *[
                verdict_with_failure("b", "response", "truncated", f"{n}").model_copy(
                    update={"judge": "moody"}
                )
                for n in range(2)
            ],
        ),
    )
    assert summary.to_json()["failures"] == [
        {
            "cause": "response",
            "kind": "truncated",
            "message": "0",
            "response": "b",
            "task": "t",
            "verdicts": 2,
            "evaluators": {"tone": 2},
            "judges": {"moody": 2},
        },
        {
            "cause": "infrastructure",
            "kind": "timeout",
            "message": "5 s",
            "response": "a",
            "task": "t",
            "verdicts": 1,
            "evaluators": {"tone": 1},
            "judges": {},
        },
    ]
    add(
        summary,
        trace(
            "t",
            "c",
            None,
            *[verdict_with_failure("c", "infrastructure", "timeout", "6 s") for _ in range(2)],
        ),
    )
    assert [(row.kind, row.verdicts, row.message) for row in summary.failures] == [
        ("timeout", 3, "5 s"),
        ("truncated", 2, "0"),
    ]
    assert summary.infrastructure_failures == 3


def test_a_figure_without_evidence_is_missing_and_fails_its_threshold() -> None:
    """Every verdict failed: then none is unsupported, and that is no reason to pass."""
    summary = Summary()
    add(summary, trace("t", "a", None, failed_verdict("a", "response")))
    gate = parse_ci_thresholds(["unsupported<=0.1, error_rate<=0.1"], THRESHOLD_FIGURE_NAMES, "")
    assert [
        (threshold.name, value) for threshold, value in failed_thresholds(gate, summary.figures)
    ] == [("unsupported", None)]
    gate = parse_ci_thresholds(["error_rate<=0.1"], THRESHOLD_FIGURE_NAMES, "")
    assert [value for _, value in failed_thresholds(gate, Summary().figures)] == [None]


def test_failures_of_one_kind_are_counted_for_each_evaluator() -> None:
    failed = [
        failed_verdict("a", "infrastructure").model_copy(update={"question": q})
        for q, _ in EVALUATORS
    ]
    summary = Summary()
    add(summary, trace("t", "a", None, *failed, failed[-1]))
    assert [row.evaluators for row in summary.failures] == [{"tone": 2, "wit": 2}]


def test_tasks_on_which_an_evaluator_of_checks_always_abstained_are_counted() -> None:
    """Not of a judge that cannot tell, and not where only some responses have no verdict."""
    summary = Summary()
    for task, response, status in (
        ("t", "a", "abstained"),
        ("t", "b", "ok"),
        ("u", "c", "abstained"),
    ):
        add(
            summary,
            trace(
                task,
                response,
                0.0,
                verdict(response, status=status, score=None if status != "ok" else 1.0),
            ),
        )
    add(
        summary,
        trace(
            "v",
            "d",
            0.0,
            verdict("d", status="abstained"),
            failed_verdict("d", "response", "abstained"),
        ),
    )
    assert summary.to_json()["unanswered_tasks"] == {"tone": 1}
    lines = "".join(format_result_lines(summary))
    assert (
        "tone: abstained on 1 of 3 tasks; give them what it needs, or let it not apply where they lack "
        "that (" in lines
    )
    assert "a function returns jg.Verdict.not_applicable(…)), or take tone out" in lines


def test_tasks_of_which_a_model_judged_something_are_not_counted() -> None:
    """Its tasks may lack what some questions need; a model that was asked and is unsure says nothing of that."""
    lacking = verdict("a", status="abstained")
    for other, number in (
        (verdict("a", score=1.0, call="c"), 0),
        (failed_verdict("a", "infrastructure"), 0),
        (verdict("a", status="abstained", call="c"), 1),
        (verdict("a", score=0.0, gated_by="empty-response"), 1),
    ):
        for verdicts in ((other, lacking), (lacking, other)):
            summary = Summary(optional_evaluators=("tone",))
            of_model = SHAPE.questions[0].model_copy(update={"layer": "model"})
            add(summary, trace("t", "a", 1.0, *verdicts), (of_model, *SHAPE.questions[1:]))
            assert summary.unanswered_tasks.total() == number


def test_the_first_abstention_is_named_of_the_tasks_that_are_counted() -> None:
    """Response `a` is judged in part, in whatever order its task comes."""
    judged_in_part = trace("t", "a", 0.5, verdict("a", status="abstained"), verdict("a", score=1.0))
    unanswered = trace("u", "b", None, verdict("b", status="abstained", reason="no text"))
    for traces in ((judged_in_part, unanswered), (unanswered, judged_in_part)):
        summary = Summary()
        add(summary, traces[0])
        add(summary, traces[1])
        (sentence,) = summary.unanswered
        assert sentence.startswith("tone: abstained on 1 of 2 tasks (first b: no text); ")


def test_an_evaluator_that_abstained_beside_its_answers_says_how_often_and_why() -> None:
    """It may have answers to all responses, and abstain on a question about each."""
    summary = Summary()
    for response in ("b", "a"):
        slip = verdict(response, status="abstained", reason=f"none of {response}")
        add(summary, trace("t", response, 0.5, slip, verdict(response, score=1.0)))
    assert summary.unanswered == ["tone: abstained 2 times (first a: none of a)"]


def test_discarded_verdicts_are_counted_for_each_component() -> None:
    summary = Summary()
    for name, number in (("a", 2.0), ("b", 0.0), ("c", 1.0)):
        found = reward(0.5).model_copy(
            update={"diagnostics": {"tone": {"discarded": number, "lowest": 0.5}, "wit": {}}}
        )
        add(summary, trace("t", name, 0.5, reward=found))
    assert summary.to_json()["discarded"] == {"tone": 3}


def judged(task: str, name: str, has_failed: bool = False, **components: float | None) -> Trace:
    """Return a trace with these values of components as they were judged; None where one was not."""
    terms = tuple(
        Term(name=each, weight=1.0, value=value, contribution=value)
        for each, value in components.items()
    )
    known = [value for value in components.values() if value is not None]
    fields = {
        "value": None if has_failed else sum(known),
        "status": "failed" if has_failed else "ok",
    }
    rest = {
        "partial": sum(known) if known else None,
        "coverage": 0.5,
        "range": None,
        "counts": Counts(judged=1),
    }
    made = Reward.model_validate({**fields, **rest, "components": components, "terms": terms})
    return trace(task, name, None, reward=made)


def test_failed_rewards_are_told_that_differ_in_what_was_judged_of_them() -> None:
    """Wit failed where tone is high; of one response nothing was judged."""
    summary = Summary()
    for place, tone in enumerate([0.1, 0.2, 0.15, 0.12]):
        add(summary, judged("t", f"bad-{place}", tone=tone, wit=0.5))
    for place, tone in enumerate([0.9, 0.8, 0.95]):
        add(summary, judged("t", f"good-{place}", has_failed=True, tone=tone, wit=None))
    add(summary, judged("t", "unjudged", has_failed=True, tone=None, wit=None))
    left_out = FailedRewards(4, True, "tone", 3, pytest.approx(2.65 / 3), pytest.approx(0.57 / 4))
    assert summary.left_out == left_out
    assert summary.to_json()["left_out"]["failed"] == 4
    assert (summary.figures["mean"], summary.figures["failed"], summary.figures["responses"]) == (
        pytest.approx(0.6425),
        4,
        8,
    )


def test_failed_rewards_that_are_like_the_others_are_not_said_to_mislead() -> None:
    """Tone is as it is in the others; that a part is less than the whole says nothing."""
    summary = Summary()
    for place in range(20):
        tone = (0.8, 0.9)[place % 2]
        add(
            summary,
            judged(
                "t",
                f"r{place}",
                has_failed=place % 4 > 1,
                tone=tone,
                wit=None if place % 4 > 1 else 0.7,
            ),
        )
    assert summary.left_out == FailedRewards(10, False)


def test_a_quarter_of_findings_without_a_quotation_brings_the_advice() -> None:
    assert "safety: {evidence: preferred}" in str(FindingCounts(46, 12).warning)
    assert FindingCounts(46, 9).warning is None
