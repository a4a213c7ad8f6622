"""Output of a command that scores: rewards, missed thresholds, requests and cost."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jurygraph.cli.render.text import (
    escape_line,
    format_counts,
    format_table,
    print_message,
    print_report,
)
from jurygraph.display import format_number

if TYPE_CHECKING:
    from pathlib import Path

    from jurygraph.runs.reports.bill import Bill, CallCosts, ReplySource
    from jurygraph.runs.reports.estimate import CallEstimate, CallLoad, Forecast
    from jurygraph.runs.reports.gate import Threshold
    from jurygraph.runs.reports.summary import AgentRow, FailedRewards, Summary


def result_lines(summary: "Summary") -> list[str]:
    lines = _agent_table(summary)
    outcomes = format_counts(
        summary.judged,
        summary.gated,
        summary.abstained,
        summary.failed_verdicts,
        summary.not_applicable,
    )
    lines.append(f"verdicts: {outcomes} = {summary.verdicts} requested")
    if summary.unsupported:
        marks = [f"{number} {mark}" for mark, number in sorted(summary.unsupported.items())]
        unsupported_text = f"{summary.unsupported.total()} of {summary.quotable}"
        lines.append(f"unsupported: {unsupported_text} that need a quotation ({', '.join(marks)})")
    if summary.discarded:
        counts = _join_counts(summary.discarded.items())
        lines.append(escape_line(f"discarded for low confidence: {counts}"))
    if summary.unseen:
        responses = f"{summary.unseen} of {summary.investigated} responses"
        names = ", ".join(summary.unseen_responses)
        ellipsis = ", …" if summary.unseen > len(summary.unseen_responses) else ""
        lines.append(
            escape_line(f"looked nothing up: a judge with tools, in {responses}: {names}{ellipsis}")
        )
    if summary.not_applicable and len(summary.agents) > 1:
        lines.append(
            "not applicable: adds nothing to a reward, so that means of agents may rest on different components"
        )
    lines += map(escape_line, summary.unanswered)
    models = sorted(summary.bill.models.items())
    bills = {} if len(models) == 1 else {"calls": summary.bill}  # which would say the same
    for name, bill in models:
        bills[f"calls of {name}"] = bill
    for label, bill in bills.items():
        text = _format_bill(bill)
        if text:
            lines.append(escape_line(f"{label}: {text}"))
    return lines


def _agent_table(summary: "Summary") -> list[str]:
    rows = []
    for row in summary.agents.values():
        name = row.agent or "(no agent)"
        outcomes = [row.ok, row.degraded, row.failed]
        rows.append([name, row.responses, _format_mean(row), row.coverage, *outcomes])
    header = ["agent", "responses", "mean reward", "coverage", "ok", "degraded", "failed"]
    return format_table(header, rows)


def _join_counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts)


def _format_bill(bill: "Bill") -> str:
    """Return the numbers of calls by the source of their replies, with their costs; empty without any."""
    parts = []
    for source, (origin, template) in _REPLY_SOURCES.items():
        tally = bill.tallies[source]
        if tally.number:
            parts.append(f"{tally.number} {origin} ({_format_cost(tally, template)})")
    return ", ".join(parts)


LEGEND = "coverage: judged share of the weight; degraded: some is not judged; failed: no reward, left out of the mean"


def _format_mean(row: "AgentRow") -> float | str | None:
    left_out = row.responses - row.scored
    return row.mean if left_out == 0 else f"{format_number(row.mean)} ({left_out} left out)"


_REPLY_SOURCES: dict["ReplySource", tuple[str, str]] = {
    "sent": ("answered by the model", "{}"),
    "cached": ("from the cache", "originally {}"),
    "carried": ("reused from another run", "originally {}"),
    "replayed": ("replayed", "no request"),
    "unanswered": ("without a reply", "{}"),
}
"""By source of a reply: its label, and the template for its cost."""


def request_lines(requests: "CallCosts | None") -> list[str]:
    """Return the number of requests that this command sent and their maximum cost, if it could send any."""
    if requests is None:
        return []
    cost = f" ({_format_cost(requests, 'at most {}')})" if requests.number else ""
    faults = _join_counts(sorted(requests.faults.items()))
    failed = f"; of these failed, and were repeated if that may help: {faults}" if faults else ""
    return [f"requests: {requests.number or 'none'} by this command{cost}{failed}"]


def _format_cost(tally: "CallCosts", template: str) -> str:
    """Format a cost in US dollars by a template; replies of unknown cost are counted separately."""
    if tally.unpriced == tally.number:
        return "cost unknown"
    if tally.unpriced and not tally.cost:
        return f"{tally.unpriced} of unknown cost"
    amount = "under $0.0001" if 0 < tally.cost < 0.0001 else f"${tally.cost:.4f}"
    text = template.format(amount)
    if tally.unpriced:
        text += f", and {tally.unpriced} of unknown cost"
    return text


def print_left_out(left_out: "FailedRewards") -> None:
    """Print that failed rewards, which the means leave out, differ from the others in what was judged of them."""
    if left_out.differ:
        failed_text = f"{left_out.judged} of the {left_out.failed} rewards that failed"
        mean_failed = format_number(left_out.mean_failed)
        mean_others = format_number(left_out.mean_others)
        means = f"with a mean of {mean_failed}, and the others have one of {mean_others}"
        print_message(f"means mislead: {failed_text} were judged on {left_out.component}, {means}")


def print_inconclusive(error_rate: float, max_error_rate: float) -> None:
    share = f"{error_rate:.1%} of the verdicts failed for infrastructure reasons"
    print_message(f"inconclusive: {share}; failure.max_error_rate is {max_error_rate:.1%}")


def print_missed_conditions(
    missed_conditions: "Sequence[tuple[Threshold, float | None]]", owner: str = ""
) -> None:
    """Print the conditions that do not hold, with the values found; `owner` is whose they are, of several."""
    prefix = f"{owner}: " if owner else ""
    for condition, value in missed_conditions:
        actual_value = f"{condition.name} is {value!r}"
        if value is None:
            actual_value = f"there is no {condition.name}"
        print_message(f"{prefix}threshold missed: {condition}, but {actual_value}")


def print_dry_run(as_json: bool, content: dict[str, object], lines: Iterable[str]) -> None:
    print_message("dry run: nothing was sent or written")
    print_report(as_json, content, lines)


def print_forecast(expected: "Forecast", as_json: bool, branch: "Path | None" = None) -> None:
    """Print the remaining work; of a run that reuses verdicts of the `branch`, also what is requested again."""
    remark = "" if expected.model else " (they abstain: model is none)"
    counts = {
        "tasks": expected.tasks,
        "responses": expected.responses,
        "questions about the responses of a task": expected.questions,
        "verdicts on them (maximum)": expected.verdicts,
        f"... of a model{remark}": expected.model_verdicts,
    }
    lines = format_table(["to score", ""], list(counts.items()))
    if branch is not None:
        lines += _reuse_lines(expected, branch)
    if expected.model is not None:
        lines += estimate_lines(expected.model)
    content = expected.to_json(has_branch=branch is not None)
    print_dry_run(as_json, content, lines)


_MAX_SUBJECTS = 6
"""The number of criteria that are named of each evaluator that is requested again."""


def _reuse_lines(expected: "Forecast", branch: "Path") -> list[str]:
    """Return how many verdicts of another run are reused, and the evaluators and criteria that are requested again."""
    lines = ["", escape_line(f"verdicts reused from {branch}: {expected.reused}")]
    if not expected.requested:
        return [*lines, "requested again: nothing"]
    for evaluator, numbers in expected.requested.items():
        largest_counts = sorted(numbers.items(), key=lambda item: -item[1])[:_MAX_SUBJECTS]
        subjects = _join_counts(largest_counts)
        if len(numbers) > len(largest_counts):
            subjects += f", and {len(numbers) - len(largest_counts)} more"
        repeat_line = f"requested again: {sum(numbers.values())} of {evaluator} ({subjects})"
        lines.append(escape_line(repeat_line))
    if expected.with_tools:
        lines.append(
            f"{expected.with_tools} of them are by judges with tools: they look again, and are asked only where they "
            "see something else"
        )
    return lines


def estimate_lines(model: "CallEstimate") -> list[str]:
    from jurygraph.runs.reports.estimate import ASSUMPTIONS

    loads = (model.low, model.expected, model.worst)
    rows: list[list[object]] = [
        ["calls", *(load.calls for load in loads)],
        ["input tokens", *(load.tokens_in for load in loads)],
        ["output tokens", *(load.tokens_out for load in loads)],
        ["US dollars", *map(_cost_cell, loads)],
    ]
    is_escalated = False
    for name, cases in model.by_model.items():
        owner = "model" if name is None else f"judge {name}"
        rows.append([f"{owner}: calls", *(load.calls for load in cases)])
        rows.append([f"{owner}: US dollars", *map(_cost_cell, cases)])
        low, expected, _ = cases
        if expected.calls and not low.calls:
            is_escalated = True
    lines = ["", *format_table(["model requests", "low", "expected", "worst"], rows)]
    if is_escalated:
        lines.append("low: no question is escalated; expected and worst: all are")
    cache_note = f"answered without a request: {model.from_cache} from the cache"
    if model.from_run:
        cache_note += f", {model.from_run} from recorded calls"
    return [*lines, cache_note, ASSUMPTIONS]


def _cost_cell(load: "CallLoad") -> float | str:
    return "unknown" if load.cost is None else load.cost
