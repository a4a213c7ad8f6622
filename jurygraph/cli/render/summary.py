"""Output of a command that scores: rewards, missed thresholds, requests and cost."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jurygraph.cli.render.text import (
    escape_line,
    format_table,
    format_verdict_counts,
    print_message,
    print_report,
)
from jurygraph.display import format_cost, format_number
from jurygraph.messages import format_count, list_first, shell_quote
from jurygraph.schema.frozen_model import JsonMapping

if TYPE_CHECKING:
    from pathlib import Path

    from jurygraph.runs.reports.bill import CallBill, CallCosts, ReplySource
    from jurygraph.runs.reports.estimate import CallEstimate, ModelUsage, RemainingWork
    from jurygraph.runs.reports.gate import CiThreshold
    from jurygraph.runs.reports.summary import LowestReward, Summary


_MAX_RESPONSES_LISTED = 3


def format_lowest_reward_lines(folder: "Path", lowest: "LowestReward") -> list[str]:
    """Return the commands that show the lowest reward of a run, and explain it."""
    title = f"{lowest.name}:"
    response = f"{shell_quote(folder)} --response {shell_quote(lowest.response_id)}"
    tie = f"  # {lowest.tie}" if lowest.tie else ""
    return [
        f"{title:16} jurygraph show {response}{tie}",
        f"in sentences:    jurygraph explain {response}",
    ]


def format_result_lines(summary: "Summary") -> list[str]:
    lines = _format_agent_table(summary)
    outcomes = format_verdict_counts(
        summary.judged,
        summary.gated,
        summary.abstained,
        summary.failed_verdicts,
        summary.not_applicable,
    )
    lines.append(f"verdicts: {outcomes} = {summary.verdicts} requested")
    unsupported = []
    if summary.unsupported:
        marks = [f"{number} {mark}" for mark, number in sorted(summary.unsupported.items())]
        unsupported.append(
            f"{summary.unsupported.total()} of {summary.quotable} that need a quotation ({', '.join(marks)})"
        )
    if summary.misquoting:
        verdicts = format_count(summary.misquoting, "verdict")
        unsupported.append(f"{verdicts} with a quotation that is not in the response")
    if unsupported:
        lines.append(f"unsupported: {', '.join(unsupported)}")
    if summary.discarded:
        counts = _join_counts(summary.discarded.items())
        lines.append(escape_line(f"discarded for low confidence: {counts}"))
    if summary.leaking_examples:
        lines.append(
            f"examples not shown, as they would give a response away: {summary.leaking_examples}, "
            "with the reasons in `show --response`"
        )
    lines += map(escape_line, _lookup_lines(summary))
    lines += map(escape_line, summary.unanswered)
    models = sorted(summary.bill.models.items())
    bill_by_label = {} if len(models) == 1 else {"calls": summary.bill}  # which would say the same
    for name, bill in models:
        bill_by_label[f"calls of {name}"] = bill
    for label, bill in bill_by_label.items():
        text = _format_request_bill(bill)
        if text:
            lines.append(escape_line(f"{label}: {text}"))
    return lines


def _format_agent_table(summary: "Summary") -> list[str]:
    rows = []
    for row in summary.agents.values():
        name = row.agent or "(no agent)"
        outcomes = [row.ok, row.degraded, row.failed]
        left_out = row.responses - row.scored
        mean = f"{format_number(row.mean)} ({left_out} left out)" if left_out else row.mean
        rows.append([name, row.responses, mean, row.coverage, *outcomes])
    header = ["agent", "responses", "mean reward", "coverage", "ok", "degraded", "failed"]
    return format_table(header, rows)


def _lookup_lines(summary: "Summary") -> Iterator[str]:
    """Yield what was not looked up, with the first responses that it was not looked up for."""
    ids_by_problem = {
        f"looked nothing up: a judge with tools, in {len(summary.unseen)} of "
        f"{summary.investigated} responses:": summary.unseen
    }
    for tool, ids in sorted(summary.unmade_lookups.items()):
        ids_by_problem[f"not looked up, as earlier calls of tool {tool} hang: {len(ids)}, for"] = (
            ids
        )
    for problem, ids in ids_by_problem.items():
        if ids:
            yield f"{problem} {', '.join(list_first(sorted(set(ids)), _MAX_RESPONSES_LISTED))}"


def _join_counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts)


def _format_request_bill(bill: "CallBill") -> str:
    """Return the numbers of calls by the source of their replies, with their costs; empty without any."""
    parts = []
    for source, (origin, template) in _TEXTS_BY_REPLY_SOURCE.items():
        call_costs = bill.costs_by_source[source]
        if call_costs.number:
            parts.append(f"{call_costs.number} {origin} ({_format_cost(call_costs, template)})")
    return ", ".join(parts)


COVERAGE_LEGEND = (
    "coverage: share of the weight judged, or set by a gate; degraded: some is not judged; "
    "failed: no reward, left out of the mean"
)


_TEXTS_BY_REPLY_SOURCE: dict["ReplySource", tuple[str, str]] = {
    "sent": ("answered by the model", "{}"),
    "cached": ("from the cache", "originally {}"),
    "carried": ("reused from another run", "originally {}"),
    "replayed": ("replayed", "no request"),
    "unanswered": ("without a reply", "{}"),
}
"""By source of a reply: its label, and the template for its cost."""


def format_request_lines(requests: "CallCosts | None") -> list[str]:
    """Return the number of requests that this command sent and their maximum cost, if it could send any."""
    if requests is None:
        return []
    cost_text = f" ({_format_cost(requests, 'at most {}')})" if requests.number else ""
    faults = _join_counts(sorted(requests.faults.items()))
    failed = f"; of these failed, and were repeated if that may help: {faults}" if faults else ""
    return [f"requests: {requests.number or 'none'} by this command{cost_text}{failed}"]


def _format_cost(call_costs: "CallCosts", template: str) -> str:
    """Format a cost in US dollars by a template; replies of unknown cost are counted separately."""
    if call_costs.unpriced == call_costs.number:
        return "cost unknown"
    if call_costs.unpriced and not call_costs.cost:
        return f"{call_costs.unpriced} of unknown cost"
    text = template.format(format_cost(call_costs.cost))
    if call_costs.unpriced:
        text += f", and {call_costs.unpriced} of unknown cost"
    return text


def print_inconclusive_run(error_rate: float, max_error_rate: float) -> None:
    print_message(
        f"inconclusive: {error_rate:.1%} of the verdicts failed for infrastructure reasons; "
        f"failure.max_error_rate is {max_error_rate:.1%}"
    )


def print_missed_conditions(
    thresholds: "Iterable[CiThreshold]", figures: JsonMapping, owner: str = ""
) -> bool:
    """Print the conditions that figures do not meet, with the values found; return whether there are any.

    `owner` is whose they are, of several.
    """
    from jurygraph.runs.reports.gate import failed_thresholds

    prefix = f"{owner}: " if owner else ""
    missed_conditions = failed_thresholds(thresholds, figures)
    for condition, value in missed_conditions:
        actual_value_text = f"{condition.name} is {value!r}"
        if value is None:
            actual_value_text = f"there is no {condition.name}"
        print_message(f"{prefix}threshold missed: {condition}, but {actual_value_text}")
    return bool(missed_conditions)


def print_dry_run(as_json: bool, content: dict[str, object], lines: Iterable[str]) -> None:
    print_message("dry run: nothing was sent or written")
    print_report(as_json, content, lines)


def print_forecast(expected: "RemainingWork", as_json: bool, branch: "Path | None" = None) -> None:
    """Print the remaining work; of a run that reuses verdicts of the `branch`, also what is requested again."""
    abstention_text = "" if expected.model else " (they abstain: model is none)"
    counts = {
        "tasks": expected.tasks,
        "responses": expected.responses,
        "questions about the responses of a task": expected.questions,
        "verdicts on them (maximum)": expected.verdicts,
        f"... of a model{abstention_text}": expected.model_verdicts,
    }
    lines = format_table(["to score", ""], list(counts.items()))
    if branch is not None:
        lines += _format_reuse_lines(expected, branch)
    if expected.model is not None:
        lines += format_estimate_lines(expected.model)
    content = expected.to_json(is_branched_run=branch is not None)
    print_dry_run(as_json, content, lines)


_MAX_NAMED_CRITERIA = 6
"""The number of criteria that are named of each evaluator that is requested again."""


def _format_reuse_lines(expected: "RemainingWork", branch: "Path") -> list[str]:
    """Return how many verdicts of another run are reused, and the evaluators and criteria that are requested again."""
    lines = ["", escape_line(f"verdicts reused from {branch}: {expected.reused}")]
    if not expected.requested:
        return [*lines, "decided anew: nothing"]
    for evaluator, numbers in expected.requested.items():
        largest_counts = sorted(numbers.items(), key=lambda item: -item[1])[:_MAX_NAMED_CRITERIA]
        subjects = _join_counts(largest_counts)
        if len(numbers) > len(largest_counts):
            subjects += f", and {len(numbers) - len(largest_counts)} more"
        new_verdicts_line = f"decided anew: {sum(numbers.values())} of {evaluator} ({subjects})"
        lines.append(escape_line(new_verdicts_line))
    if expected.with_tools:
        lines.append(
            f"{expected.with_tools} of them are by judges with tools: they look again, and are asked only where they "
            "see something else (low, expected: where deterministic tools now do; worst: everywhere)"
        )
    return lines


def format_estimate_lines(model: "CallEstimate") -> list[str]:
    from jurygraph.runs.reports.estimate import ESTIMATE_ASSUMPTIONS

    usages = (model.low, model.expected, model.worst)
    rows: list[list[object]] = [
        ["calls", *(usage.calls for usage in usages)],
        ["input tokens", *(usage.tokens_in for usage in usages)],
        ["output tokens", *(usage.tokens_out for usage in usages)],
        ["US dollars", *map(_format_cost_cell, usages)],
    ]
    has_escalated_calls = False
    for name, model_usages in model.by_model.items():
        owner = "model" if name is None else f"judge {name}"
        rows.append([f"{owner}: calls", *(usage.calls for usage in model_usages)])
        rows.append([f"{owner}: US dollars", *map(_format_cost_cell, model_usages)])
        low, expected, _ = model_usages
        if expected.calls and not low.calls:
            has_escalated_calls = True
    lines = ["", *format_table(["model requests", "low", "expected", "worst"], rows)]
    if has_escalated_calls:
        lines.append("low: no question is escalated; expected and worst: all are")
    cache_note = f"answered without a request: {model.from_cache} from the cache"
    if model.from_run:
        cache_note += f", {model.from_run} from recorded calls"
    return [*lines, cache_note, ESTIMATE_ASSUMPTIONS]


def _format_cost_cell(usage: "ModelUsage") -> float | str:
    return "unknown" if usage.cost is None else usage.cost
