"""One trace in full, as lines of text: the view of `jurygraph show --response`, its verdicts, and the calls behind."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jurygraph.cli.render.text import (
    escape_line,
    format_component_value,
    format_table,
    format_verdict_counts,
)
from jurygraph.decision.decide import explain_notes
from jurygraph.display import format_number
from jurygraph.explanation.predictions import PredictedScore
from jurygraph.explanation.terms import ExplainedVerdict, describe_unsupported
from jurygraph.messages import escape_multiline_text, format_count
from jurygraph.runs.calls import RecordedCall, RecordedLookup, message_text
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.run import has_erased_text
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.schema import Call, Material, RecordedVerdict
from jurygraph.schema.verdict import EMPTY_TURN_GATE, Evidence, Step
from jurygraph.views.terms import StakeholderWeightsView, TermView
from jurygraph.views.trace import TaskAndResponseView, TraceView
from jurygraph.views.verdict import QuestionView

_MAX_LINE_LENGTH = 300


def format_trace_lines(
    view: TraceView, texts: Iterable[str] = (), lookups: Iterable[RecordedLookup] = ()
) -> Iterator[str]:
    """Yield every term, verdict and note of a trace, and every term of the weights that its decision froze.

    `texts` are the lines of `format_query_response_lines`, and `lookups` the calls of tools; those of one investigation
    are told once.
    """
    trace = view.trace
    yield f"response  {escape_line(trace.response_id)}"
    yield f"task      {escape_line(trace.task_id)}"
    if trace.agent is not None:
        yield f"agent     {escape_line(trace.agent)}"
    yield from texts
    yield from _format_reward_lines(view)
    for term in view.terms:
        if term.weights is not None:
            yield from _format_weight_lines(term.name, term.weights)
    yield from (escape_line(note, _MAX_LINE_LENGTH) for note in _format_note_lines(view))
    yield from _format_judge_table(view)
    yield ""
    yield "verdicts"
    summary_by_lookup_id = {record.lookup.id: record.summary for record in lookups}
    question_by_lookups: dict[tuple[str, ...], str] = {}
    for verdict in view.verdicts:
        yield _format_verdict_heading(verdict)
        for detail in _describe_verdict(verdict):
            yield f"      {escape_line(detail, _MAX_LINE_LENGTH)}"
        yield from map(_format_evidence_line, verdict.verdict.evidence)
        names = verdict.verdict.lookups
        if (
            names
            and question_by_lookups.setdefault(names, verdict.verdict.question)
            != verdict.verdict.question
        ):
            yield f"      looked up as for {escape_line(question_by_lookups[names])}"
        elif names:
            found = [summary_by_lookup_id[name] for name in names if name in summary_by_lookup_id]
            yield from (f"      {escape_line(summary, _MAX_LINE_LENGTH)}" for summary in found)
        elif verdict.has_unused_tools:
            yield "      0 lookups: the judge has tools, and called none"
    yield ""
    yield f"plan      {trace.plan_digest}"
    yield f"digest    {trace.digest}"
    yield f"previous  {trace.previous or '-'}"


def format_query_response_lines(
    view: TraceView, task_and_response: TaskAndResponseView, shows_full_texts: bool
) -> Iterator[str]:
    """Return lines on the labels of a trace, the query and the response's text: one each, or paragraphs
    `shows_full_texts`."""
    labels = [f"{name} {json_value_to_text(value)}" for name, value in view.trace.labels.items()]
    if labels:
        yield f"labels    {escape_line(', '.join(labels), _MAX_LINE_LENGTH)}"
    response = None if task_and_response.response is None else task_and_response.response.text
    query = task_and_response.query if shows_full_texts else task_and_response.last_request
    for title, text in (("query", query), ("text", response)):
        content = ERASED_PLACEHOLDER if text is None else text
        if shows_full_texts:
            yield from _format_paragraphs(title, content, "")
        else:
            line = " ".join(content.split())
            yield f"{title:<9} {escape_line(line, _MAX_LINE_LENGTH)}"


def _format_paragraphs(title: str, text: str, indent: str) -> Iterator[str]:
    """Return a text below its title; no line of it can pass for a title, since it is indented further."""
    yield f"{indent}{title}"
    yield from (f"    {line}" for line in escape_multiline_text(text).split("\n"))


def _format_reward_lines(view: TraceView) -> Iterator[str]:
    reward = view.trace.reward
    counts = view.counts
    yield f"reward    {format_number(reward.value)}  ({reward.status}, coverage {format_number(reward.coverage)})"
    if reward.value is None:
        yield f"partial   {format_number(reward.partial)}  (the judged part alone)"
    if reward.range is not None:
        yield f"range     {format_number(reward.range[0])} to {format_number(reward.range[1])}"
    outcomes = format_verdict_counts(
        counts.judged, counts.gated, counts.abstained, counts.failed, counts.not_applicable
    )
    yield f"verdicts  {counts.total} = {outcomes}"
    if counts.discarded:
        yield f"note      judged verdicts that are discarded for low confidence: {counts.discarded}"
    yield from (f"note      {escape_line(note)}" for note in explain_notes(reward.notes))
    if not reward.weights_fixed:
        yield "note      weights not fixed: a judge set them after it saw the response"
    yield ""
    yield from _format_term_table(view.terms)
    for change in reward.adjustments:
        yield f"{escape_line(change.name)}: {format_number(change.before)} -> {format_number(change.after)}"
    for term in view.terms:
        if term.composition:
            yield escape_line(term.composition)
    yield from _format_prediction_table(view.predictions)
    for term in view.terms:
        if term.diagnostics:
            figures = [f"{name} {format_number(value)}" for name, value in term.diagnostics.items()]
            yield f"diagnostics of {escape_line(term.name)}: {escape_line(', '.join(figures))}"


def _format_prediction_table(predictions: Sequence[PredictedScore]) -> Iterator[str]:
    """Return what each reviewer would give on their own scale, a line for each dimension; nothing without one."""
    if not predictions:
        return
    rows = []
    for verdict, predicted_score in predictions:
        low, high = verdict.scale or (0.0, 1.0)
        value = "-" if predicted_score is None else f"{predicted_score:g} of {low:g}–{high:g}"
        rows.append([verdict.reviewer, verdict.subject, verdict.evaluator, value])
    yield ""
    yield from format_table(["reviewer", "dimension", "judge", "predicted"], rows, 3)


def _format_term_table(terms: Sequence[TermView]) -> Iterator[str]:
    rows = []
    for term in terms:
        value = format_component_value(term.value, term.is_filled_in)
        rows.append([term.name, term.weight, value, term.contribution])
    yield from format_table(["term", "weight", "value", "contribution"], rows)
    for term in terms:
        if term.is_filled_in:
            judged_value_text = format_number(term.judged)
            name = escape_line(term.name)
            yield f"* {name}: filled in by the failure rule; the judged part alone is {judged_value_text}"


def _format_weight_lines(name: str, weights: StakeholderWeightsView) -> Iterator[str]:
    """Return a table with each stakeholder's terms of d_i, weight, utility, and share of the full utility given up."""
    yield ""
    yield f"{escape_line(name)} is {weights.rule}"
    rows = []
    for member in weights.stakeholders:
        difficulty = (member.hard, member.soft, member.conflict, member.difficulty)
        terms = map(format_number, difficulty)
        given_up_share_text = (
            "-" if member.forgone_utility is None else f"{100.0 * member.forgone_utility:.4g}%"
        )
        rows.append([member.name, *terms, member.weight, member.utility, given_up_share_text])
    header = ["stakeholder", "hard", "soft", "conflict", "d", "w", "û", "1 - û"]
    yield from format_table(header, rows)
    yield from (escape_line(tension, _MAX_LINE_LENGTH) for tension in weights.tensions)


def _format_judge_table(view: TraceView) -> Iterator[str]:
    """Return what each of several judges answered, a line for each question; nothing without such."""
    if not view.judges:
        return
    header = ["judges on", "counts", *view.judge_names]
    rows = []
    for row in view.judges:
        answers = [row.answers.get(judge, "") for judge in view.judge_names]
        rows.append([row.label, row.counted, *answers])
    yield ""
    yield from format_table(header, rows, len(header))


def _format_note_lines(view: TraceView) -> Iterator[str]:
    """Return remarks and votes of terms, notes on the run, its plan and material."""
    for term in view.terms:
        yield from (f"{term.name}: {remark}" for remark in (*term.remarks, *term.votes))
    yield from view.notes
    for material in view.materials:
        note = material.note if material.failure is None else _describe_failure(material)
        yield f"material {material.name}: {note}"


def _format_verdict_heading(explained_verdict: ExplainedVerdict) -> str:
    verdict = explained_verdict.verdict
    question = escape_line(verdict.question)
    if explained_verdict.opponent:
        question += f" against {escape_line(explained_verdict.opponent)}"
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        # a variant: its quotations refer to that text
        question += f" of {escape_line(verdict.responses[0])}"
    if verdict.turn is not None:
        question += f", turn {verdict.turn}"
    if verdict.judge:
        question += f" by {escape_line(verdict.judge)}"
    if verdict.sample:
        question += f", sample {verdict.sample + 1}"
    answer = format_number(explained_verdict.score) if verdict.status == "ok" else verdict.status
    answer = explained_verdict.prediction or answer
    counted_score = explained_verdict.worst_case_score
    if verdict.gated_by == EMPTY_TURN_GATE and not explained_verdict.direction:
        answer = "left out"
    elif explained_verdict.effect == "gated" and counted_score is not None:
        answer = format_number(counted_score)
    elif counted_score not in (None, explained_verdict.score):
        answer += f", counts {counted_score:g}"
    version = verdict.version.replace(" prompt ", ", prompt ", 1)
    evaluator = escape_line(f"{verdict.evaluator}, version {version}")
    return f"  {question}  {answer}  ({evaluator})"


def _describe_verdict(explained_verdict: ExplainedVerdict) -> Iterator[str]:
    """Yield what is to be said of a verdict below its heading, but for its evidence."""
    verdict = explained_verdict.verdict
    if verdict.reason:
        yield verdict.reason
    if verdict.failure is not None:
        yield _describe_failure(verdict, verdict.reason)
    if verdict.gated_by is not None:
        yield f"gated by {verdict.gated_by}"
    if verdict.unsupported:
        yield f"unsupported: {describe_unsupported(verdict)}"
    if verdict.confidence is not None:
        line = f"confidence {verdict.confidence:.4f}"
        if explained_verdict.effect == "discarded":
            line += f", discarded: it is below min_confidence, {explained_verdict.required_confidence:.4f}"
        yield line
    if verdict.steps:
        yield f"steps: {', '.join(map(_format_step, verdict.steps))}"
    purposes = [use.purpose for use in verdict.calls_with_purpose]
    if purposes not in ([], ["judge"]):
        calls = f"{format_count(len(purposes), 'call')}: {', '.join(purposes)}"
        if verdict.lookups:
            calls += f"; {format_count(len(verdict.lookups), 'lookup')}"
        yield calls
    yield from _format_prediction_details(verdict)


def _format_step(step: Step) -> str:
    duration_text = "unfinished" if step.duration is None else f"{step.duration:.2f} s"
    return f"{step.name} {duration_text}"


def _format_evidence_line(evidence: Evidence) -> str:
    source = escape_line(evidence.source)
    if evidence.start is not None:
        source += f" at {evidence.start}-{evidence.end}"
    if evidence.message is not None:
        source += f", message {evidence.message} of the response"
    if not evidence.verified:
        source += ", not found"
    return f'      "{escape_line(evidence.quote, 200)}"  ({source})'


def _format_prediction_details(verdict: RecordedVerdict) -> Iterator[str]:
    for use in verdict.examples:
        shown_status_text = "shown" if use.dropped is None else f"not shown, because {use.dropped}"
        yield f"example {use.item} ({use.reviewer}: {use.score:g}) {shown_status_text}"
    swap = verdict.swap
    if swap is not None:
        yield f"judged in both orders: ({swap.given:.4f} + 1 - {swap.swapped:.4f}) / 2"


def _describe_failure(failed: RecordedVerdict | Material, reason: str = "") -> str:
    failure = failed.failure
    assert failure is not None, "the caller looks for it"
    message = f": {failure.message}" if failure.message not in ("", reason) else ""
    return f"{failure.describe_cause(bool(failed.calls))}: {failure.kind}{message}"


def format_verdict_lines(view: QuestionView) -> Iterator[str]:
    for number, verdict in enumerate(view.verdicts, start=1):
        yield f"verdict {number} of {len(view.verdicts)}"
        if has_erased_text(verdict):
            yield "  its reason, quotations and other texts were erased"
        yield from _format_field_lines(verdict)
        yield ""


def format_call_lines(view: QuestionView) -> Iterator[str]:
    """Yield the request, reply and bill of calls, or why there is none behind the verdicts on a question."""
    if not view.calls:
        yield from dict.fromkeys(map(_explain_no_call, view.verdicts))
    for number, call in enumerate(view.calls, start=1):
        yield f"call {number} of {len(view.calls)}: {escape_line(call.purpose)}"
        yield from _format_field_lines(call.call)
        for title, text in _list_call_texts(call):
            yield from _format_paragraphs(title, text, "  ")
        for lookup in call.lookups:
            yield from _format_lookup_lines(lookup)
        yield ""


def _format_lookup_lines(record: RecordedLookup) -> Iterator[str]:
    """Yield what a tool was called with, and what became of that."""
    lookup = record.lookup
    duration_text = "" if lookup.duration is None else f", {lookup.duration:.3f} s"
    kind = "deterministic" if lookup.deterministic else "recorded"
    version = f" version {lookup.version}" if lookup.version else ""
    name = lookup.tool or "a tool that is not there"
    yield f"  tool:{record.number} {escape_line(name)}{escape_line(version)}, {kind}: {lookup.outcome}{duration_text}"
    yield from _format_paragraphs("arguments", record.arguments, "    ")
    yield from _format_paragraphs(f"result ({lookup.length:,} characters)", record.result, "    ")


def _format_field_lines(record: RecordedVerdict | Call) -> Iterator[str]:
    """Yield each field: text as it is, no value as a dash, each item of a list in a line, other values as JSON."""
    for name, value in record.model_dump(mode="json").items():
        items = value if isinstance(value, list) and value else [value]
        for number, item in enumerate(items):
            yield f"  {'' if number else name:<15} {escape_line(_format_json_value(item))}"


def _format_json_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")  # no exponent: costs are small
    return "-" if value in (None, []) else json.dumps(value, ensure_ascii=False)


def _explain_no_call(verdict: RecordedVerdict) -> str:
    evaluator = escape_line(verdict.evaluator)
    if verdict.gated_by is not None:
        return f"no call: the question was not put to {evaluator}, because of {escape_line(verdict.gated_by)}"
    if verdict.failure is not None:
        return f"no reply: {escape_line(_describe_failure(verdict))}"
    return f"no call: {evaluator} sent no request to a model for this verdict"


def _list_call_texts(call: RecordedCall) -> Iterator[tuple[str, str]]:
    """Yield the messages, the schema and the reply of a call, each with its title; text instead if they were erased."""
    request = call.request
    reply = call.reply
    if isinstance(request, dict):
        messages = request["messages"]
        if call.repeated:
            yield f"messages 1 to {call.repeated} of {len(messages)}", "those of the call before"
        for number, message in enumerate(messages, start=1):
            if number > call.repeated:
                yield (
                    f"message {number} of {len(messages)}, {message['role']}",
                    message_text(message),
                )
        if "investigation" in request and not call.repeated:
            offered_tool_texts = [
                f"{tool['name']} version {tool['version']}"
                for tool in request["investigation"]["tools"]
            ]
            yield "tools", ", ".join(offered_tool_texts)
        if request["answer"] is not None:
            schema = json.dumps(request["answer"], ensure_ascii=False)
            # "instructed" would read as if the tools were described, too, which may be native
            form = request["form"].replace("instructed", "in the prompt")
            yield f"schema of the reply ({form})", schema
    else:
        yield "messages", request
    if isinstance(reply, dict):
        yield f"reply (finish: {reply['finish'] or 'unknown'})", message_text(reply)
        if reply["refusal"] is not None:
            yield "refusal", reply["refusal"]
    else:
        yield "reply", reply
