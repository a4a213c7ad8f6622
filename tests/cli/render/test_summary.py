"""The lines below a result on calls and costs, by the source of the replies."""

from jurygraph.cli.render.summary import request_lines, result_lines
from jurygraph.runs.reports.summary import CallCosts, Summary
from jurygraph.schema import Call


def test_the_bill_distinguishes_requests_from_other_replies() -> None:
    summary = Summary()
    costs = {"sent": 0.25, "cached": 0.00001, "carried": None, "replayed": 0.0, "unanswered": 0.5}
    for source, cost in costs.items():
        summary.bill.add(Call(id=source, provider="p", model="m", cost=cost), source)
    summary.bill.add(Call(id="dear", provider="p", model="m"), "sent")
    assert result_lines(summary)[-1] == (
        "calls: 2 answered by the model ($0.2500, and 1 of unknown cost), "
        "1 from the cache (originally under $0.0001), 1 reused from another run (cost unknown), "
        "1 replayed (no request), 1 without a reply ($0.5000)"
    )


def test_requests_are_those_of_this_command() -> None:
    assert request_lines(CallCosts(number=2, cost=0.25)) == ["requests: 2 by this command (at most $0.2500)"]
    assert request_lines(CallCosts()) == ["requests: none by this command"]
    assert request_lines(None) == [], "no model could be asked"
