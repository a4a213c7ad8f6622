"""Output of a command that scores: rewards, canaries, missed thresholds, requests and cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jurygraph.cli.render.text import format_table, print_json, print_message, print_result, print_result_lines

if TYPE_CHECKING:
    from jurygraph.runs.canary import CanaryTally
    from jurygraph.runs.reports.estimate import Bill, CallCosts, CallEstimate, Forecast, ReplySource
    from jurygraph.runs.reports.gate import FailedThreshold
    from jurygraph.runs.reports.summary import Summary


def result_lines(summary: "Summary") -> list[str]:
    """Return rewards by agent, the counts of verdicts by status, and the sources of replies."""
    rows = [
        [row.agent or "(no agent)", row.responses, row.mean, row.coverage, row.ok, row.degraded, row.failed]
        for row in summary.agents.values()
    ]
    header = ["agent", "responses", "mean reward", "coverage", "ok", "degraded", "failed"]
    verdict_counts = (
        f"verdicts: {summary.judged} judged + {summary.abstained} abstained + {summary.failed_verdicts} failed"
        f" + {summary.not_applicable} not applicable = {summary.verdicts} requested"
    )
    return [*format_table(header, rows), verdict_counts, *_canary_lines(summary.canaries), *_call_lines(summary.bill)]


def _canary_lines(tally: "CanaryTally | None") -> list[str]:
    """Return how often verdicts of a model gave credit to known-bad responses, if there were any."""
    if tally is None:
        return []
    summary = f"canaries: {tally.items} known-bad responses; {tally.fooled} of {tally.judged} verdicts gave them credit"
    share = tally.share
    if share.rate is None:
        return [summary]
    return [f"{summary} ({share.rate:.1%}; 95 % interval {share.low:.1%} to {share.high:.1%})"]


_ORIGINS: dict["ReplySource", tuple[str, str]] = {
    "sent": ("answered by the model", "{}"),
    "cached": ("from the cache", "originally {}"),
    "carried": ("reused from another run", "originally {}"),
    "replayed": ("replayed", "no request"),
}
"""By source of a reply: its label, and the template for its cost."""


def _call_lines(bill: "Bill") -> list[str]:
    """Return where the replies behind the verdicts came from and what they cost, if there are any."""
    sources = [
        f"{bill.tallies[source].number} {origin} ({_format_cost(bill.tallies[source], template)})"
        for source, (origin, template) in _ORIGINS.items()
        if bill.tallies[source].number
    ]
    return [f"calls: {', '.join(sources)}"] if sources else []


def request_lines(requests: "CallCosts | None") -> list[str]:
    """Return the number of requests that this command sent and their maximum cost, if it could send any."""
    if requests is None:
        return []
    cost = f" ({_format_cost(requests, 'at most {}')})" if requests.number else ""
    return [f"requests: {requests.number or 'none'} by this command{cost}"]


def _format_cost(tally: "CallCosts", template: str) -> str:
    """Format a cost in US dollars by a template; replies of unknown cost are counted separately."""
    if tally.unpriced == tally.number:
        return "cost unknown"
    dollars = template.format("under $0.0001" if 0 < tally.cost < 0.0001 else f"${tally.cost:.4f}")
    return f"{dollars}, and {tally.unpriced} of unknown cost" if tally.unpriced else dollars


def print_inconclusive(error_rate: float, most: float) -> None:
    """Print that too many verdicts failed by no fault of the responses."""
    share = f"{error_rate:.1%} of the verdicts failed for infrastructure reasons"
    print_message(f"inconclusive: {share}; failure.max_error_rate is {most:.1%}")


def print_missed_conditions(missed: "Sequence[FailedThreshold]") -> None:
    """Print the conditions that do not hold, with the values found."""
    for miss in missed:
        name = miss.condition.name
        actual = f"there is no {name}" if miss.value is None else f"{name} is {miss.value!r}"
        print_message(f"threshold missed: {miss.condition}, but {actual}")


def print_dry_run_note() -> None:
    """Print that a dry run has no effect."""
    print_message("dry run: nothing was sent or written")


def print_forecast(expected: "Forecast", tasks_needing_model: int, as_json: bool) -> None:
    """Print the remaining work; `tasks_needing_model` first need profiles or roles from the model."""
    print_dry_run_note()
    if as_json:
        print_json(
            {**expected.to_json(), **({"tasks_needing_model": tasks_needing_model} if tasks_needing_model else {})}
        )
        return
    rows: list[list[object]] = [
        ["tasks", expected.tasks],
        ["responses", expected.responses],
        ["questions", expected.questions],
        ["verdicts (maximum)", expected.verdicts],
        [f"... of a model{'' if expected.model else ' (they abstain: model is none)'}", expected.model_verdicts],
    ]
    print_result_lines(format_table(["remaining", ""], rows))
    if expected.model is not None:
        print_estimate(expected.model)
    if tasks_needing_model:
        print_result(
            f"{tasks_needing_model} tasks first need profiles or roles of criteria from the model: these requests are"
        )
        print_result("included, and those that depend on them are not")


def print_estimate(model: "CallEstimate") -> None:
    """Print the estimated calls, tokens and cost of a model, and the assumptions."""
    from jurygraph.runs.reports.estimate import ASSUMPTIONS

    loads = (model.low, model.expected, model.worst)
    rows: list[list[object]] = [
        ["calls", *(load.calls for load in loads)],
        ["input tokens", *(load.tokens_in for load in loads)],
        ["output tokens", *(load.tokens_out for load in loads)],
        ["US dollars", *("unknown" if load.cost is None else load.cost for load in loads)],
    ]
    print_result_lines(["", *format_table(["model requests", "low", "expected", "worst"], rows), ASSUMPTIONS])
