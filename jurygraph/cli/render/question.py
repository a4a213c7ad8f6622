"""One question about a response: its verdicts in full, and the exact calls behind them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jurygraph.cli.render.text import escape_line, escape_lines, fit_table, print_result_lines, terminal_width
from jurygraph.explanation.notes import describe_failure
from jurygraph.runs.calls import ListedCall, RecordedCall
from jurygraph.runs.run import is_erased
from jurygraph.schema import Call, RecordedVerdict


def verdict_lines(verdicts: Sequence[RecordedVerdict]) -> Iterator[str]:
    """Yield every field of the verdicts on a question."""
    for number, verdict in enumerate(verdicts, start=1):
        yield f"verdict {number} of {len(verdicts)}"
        if is_erased(verdict):
            yield "  its reason, quotations and other texts were erased"
        yield from _field_lines(verdict)
        yield ""


def call_lines(calls: Sequence[RecordedCall], verdicts: Sequence[RecordedVerdict] = ()) -> Iterator[str]:
    """Yield the request, reply and bill of calls, or why there is none behind the verdicts on a question."""
    if not calls:
        yield from dict.fromkeys(map(_explain_no_call, verdicts))
    for number, one in enumerate(calls, start=1):
        yield f"call {number} of {len(calls)}: {escape_line(one.purpose)}"
        yield from _field_lines(one.call)
        for title, text in _texts(one):
            yield f"  {title}"  # no line of a text can pass for a title: it is indented further
            yield from (f"    {line}" for line in escape_lines(text).split("\n"))
        yield ""


def print_call_table(calls: Iterable[ListedCall]) -> None:
    """Print a row for each call; its id is shortened to its beginning, and only the first of several users is named."""
    head = ["call", "task", "response", "used by", "purpose", "model", "in", "out", "dollars", "reply"]
    rows = []
    for task, response, used_by, purpose, call in calls:
        user = f"{used_by[0]} +{len(used_by) - 1}" if len(used_by) > 1 else "".join(used_by) or "-"
        texts = call.id[:12], task or "-", response or "-", user, purpose, call.served or call.model
        reply = call.fault or ("cache" if call.cache_hit else "model")
        rows.append([*texts, *map(_format, (call.tokens_in, call.tokens_out, call.cost)), reply])
    lines, _ = fit_table(head, rows, 6, terminal_width())
    print_result_lines(lines)


def _field_lines(record: RecordedVerdict | Call) -> Iterator[str]:
    """Yield each field: text as it is, no value as a dash, each item of a list in a line, other values as JSON."""
    for name, value in record.model_dump(mode="json").items():
        items = value if isinstance(value, list) and value else [value]
        for number, item in enumerate(items):
            unit = "" if item is None else _UNITS.get(name, "")
            yield f"  {'' if number else name:<15} {escape_line(_format(item))}{unit}"


_UNITS = {"cost": " US dollars", "latency": " s"}


def _format(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")  # no exponent: costs are small
    return "-" if value in (None, []) else json.dumps(value, ensure_ascii=False)


def _explain_no_call(verdict: RecordedVerdict) -> str:
    """Explain why there is no call behind a verdict."""
    evaluator = escape_line(verdict.evaluator)
    if verdict.gated_by is not None:
        return f"no call: the question was not put to {evaluator}, because of {escape_line(verdict.gated_by)}"
    if verdict.call is not None:
        return f"no call: the verdict names the call {escape_line(verdict.call)}, which is not in its trace"
    if verdict.failure is not None:
        return f"no reply: {escape_line(describe_failure(verdict.failure))}"
    return f"no call: {evaluator} sent no request to a model for this verdict"


def _texts(one: RecordedCall) -> Iterator[tuple[str, str]]:
    """Yield the messages, the schema and the reply of a call, each with its title."""
    request = one.request
    reply = one.reply
    if isinstance(request, dict):
        messages = request["messages"]
        for number, message in enumerate(messages, start=1):
            yield f"message {number} of {len(messages)}, {message['role']}", message["content"]
        if request["answer"] is not None:
            yield f"schema of the reply ({request['form']})", json.dumps(request["answer"], ensure_ascii=False)
    else:
        yield "messages", request
    if isinstance(reply, dict):
        yield f"reply (finish: {reply['finish'] or 'unknown'})", reply["text"]
        if reply["refusal"] is not None:
            yield "refusal", reply["refusal"]
    else:
        yield "reply", reply
