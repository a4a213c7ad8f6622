"""The lines below a result: calls and costs by the source of the replies, and what failed rewards leave out."""

from jurygraph.cli.render.summary import format_request_lines, format_result_lines
from jurygraph.runs.reports.bill import CallCosts
from jurygraph.runs.reports.summary import FailedRewards, Summary
from jurygraph.schema import Call


def test_the_bill_distinguishes_requests_from_other_replies() -> None:
    summary = Summary()
    costs = {"sent": 0.25, "cached": 0.00001, "carried": None, "replayed": 0.0, "unanswered": 0.5}
    for source, cost in costs.items():
        summary.bill.add(Call(id=source, provider="p", model="m", cost=cost), source)
    summary.bill.add(Call(id="dear", provider="p", model="m"), "sent")
    assert format_result_lines(summary)[-1] == (
        "calls: 2 answered by the model ($0.2500, and 1 of unknown cost), "
        "1 from the cache (originally under $0.0001), 1 reused from another run (cost unknown), "
        "1 replayed (no request), 1 without a reply ($0.5000)"
    )


def test_discarded_verdicts_are_counted_by_component() -> None:
    summary = Summary()
    summary._discarded_counts.update(own=2, personalized=3)
    assert "discarded for low confidence: own 2, personalized 3" in format_result_lines(summary)
    assert not any("discarded" in line for line in format_result_lines(Summary()))


def test_failed_rewards_that_differ_from_the_others_are_said_to_mislead() -> None:
    assert FailedRewards(4, True, "tone", 3, 0.875, 0.125).warning == (
        "means mislead: they leave out 4 failed rewards, whose mean on tone is 0.8750 (3 judged), "
        "against 0.1250 of the others"
    )
    alone = FailedRewards(1, True, "tone", 1, 1.0, 0.125).warning
    assert alone is not None
    assert "leave out 1 failed reward, whose mean on tone is" in alone
    assert FailedRewards(4, False).warning is None


def test_requests_are_those_of_this_command() -> None:
    assert format_request_lines(CallCosts(number=2, cost=0.25)) == [
        "requests: 2 by this command (at most $0.2500)"
    ]
    assert format_request_lines(
        CallCosts(number=5, cost=0.25, faults={"timeout": 1, "connection": 2})
    ) == [
        "requests: 5 by this command (at most $0.2500); of these failed, and were repeated if that may help: "
        "connection 2, timeout 1"
    ]
    assert format_request_lines(CallCosts()) == ["requests: none by this command"]
    assert format_request_lines(None) == [], "no model could be asked"
