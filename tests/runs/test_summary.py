"""What a run came to."""

from typing import Any

from jurygraph.runs.summary import Bill, Summary
from jurygraph.schema import Call, Counts, Failure, Reward, Term, Trace, Verdict


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


def trace(task: str, response: str, value: float | None, *verdicts: Verdict, **fields: Any) -> Trace:
    stated = {"reward": reward(value, "ok" if value is not None else "failed"), "agent": "alice"} | fields
    return Trace.model_validate(
        {"task_id": task, "response_id": response, "group": "g", "plan_digest": "p", "verdicts": verdicts, **stated}
    )


def verdict(about: str, **fields: Any) -> Verdict:
    return Verdict.model_validate({"question": "tone", "about": about, "responses": (about,), **fields})


def failed(about: str, cause: Any, status: str = "failed") -> Verdict:
    return verdict(about, status=status, failure=Failure(cause=cause, kind="Timeout"))


def test_it_means_over_numbers_and_counts_everything() -> None:
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
        trace("t", "c", None, failed("c", "infrastructure"), failed("c", "response"), agent="bob"),
        trace("u", "d", 0.0, verdict("d", status="not_applicable", gated_by="x"), agent=None),
    ):
        summary.add(one)
    alice, bob, nobody = summary.agents.values()
    assert (alice.mean, alice.coverage, alice.ok, alice.degraded, alice.failed) == (0.75, 0.95, 1, 1, 0)
    assert (bob.mean, bob.failed, nobody.mean, nobody.agent) == (None, 1, 0.0, None)
    counts = {"judged": 2, "abstained": 1, "failed": 2, "not_applicable": 1, "asked": 6}
    assert summary.plain()["verdicts"] == counts
    assert (summary.tasks, summary.responses, summary.failed, summary.lowest) == (2, 4, 1, "c")
    assert (summary.infrastructure, summary.error_rate) == (1, 1 / 6)


def test_a_verdict_on_an_unordered_pair_stands_in_two_traces_and_counts_once() -> None:
    timeout = failed("a", "infrastructure").model_copy(update={"responses": ("a", "b")})
    summary = Summary()
    for name in "ab":
        summary.add(trace("t", name, 0.5, timeout, verdict(name, score=0.5)))
    assert (summary.unanswered, summary.judged, summary.asked) == (1, 2, 3)
    assert summary.error_rate == 1 / 3


def test_an_abstention_is_no_failure_even_where_a_cause_is_given() -> None:
    summary = Summary()
    summary.add(trace("t", "a", 0.5, failed("a", "infrastructure", status="abstained")))
    assert summary.infrastructure == 0


def call(name: str, cost: float | None, **more: Any) -> Call:
    return Call(id=name, provider="p", model="m", cost=cost, **more)


def test_every_call_is_billed_once_and_what_the_cache_answered_is_told_apart() -> None:
    bill = Bill()
    for one in (call("a", 0.25), call("b", 0.5, cache_hit=True), call("a", 0.25), call("c", None)):
        bill.add(one)
    assert bill.plain() == {"sent": 2, "cached": 1, "unpriced": 1, "billed": 0.25, "saved": 0.5}
