"""One trace in full, as lines of text: the view of `jurygraph show --response`, its verdicts, and the calls behind."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jurygraph.cli.render.text import (
    escape_line,
    escape_lines,
    format_component,
    format_counts,
    format_table,
)
from jurygraph.decision.table import NOT_APPLICABLE, OK, STOPPED, ScoreArrays
from jurygraph.display import format_number, is_filled_in
from jurygraph.explanation.terms import UNSUPPORTED, ExplainedTerm, ExplainedTrace, ExplainedVerdict
from jurygraph.messages import format_plain, join_names
from jurygraph.runs.run import Run, is_erased
from jurygraph.runs.store.packing import ERASED
from jurygraph.runs.tables import to_text
from jurygraph.runs.writable_run import RecordedCall
from jurygraph.schema import Call, Failure, RecordedVerdict, Trace
from jurygraph.schema.task import READ_FROM_FILE, chat_text

_MAX_LINE = 300


def trace_lines(explained: ExplainedTrace, texts: Iterable[str] = ()) -> list[str]:
    """Return every term, verdict and note of a trace, and every term of the weights that its decision froze.

    `texts` are the lines of `text_lines`.
    """
    trace = explained.trace
    head = [
        f"response  {escape_line(trace.response_id)}",
        f"task      {escape_line(trace.task_id)}",
    ]
    if trace.agent is not None:
        head.append(f"agent     {escape_line(trace.agent)}")
    return [
        *head,
        *texts,
        *_reward_lines(explained),
        *(line for component in explained.terms for line in _weight_lines(component)),
        *(escape_line(line, _MAX_LINE) for line in _note_lines(explained)),
        "",
        "verdicts",
        *(
            line
            for verdict in explained.verdicts
            for line in (_verdict_heading(verdict), *_verdict_details(verdict))
        ),
        "",
        f"plan      {trace.plan_digest}",
        f"digest    {trace.digest}",
        f"previous  {trace.previous or '-'}",
    ]


def text_lines(run: Run, trace: Trace, whole: bool) -> Iterator[str]:
    """Return lines on the labels of a trace, the query and the response's text: one each, or `whole` paragraphs."""
    task = run.task(trace.task_id)
    texts = {
        scored.trace.response_id: scored.response for scored in run.group_with(trace.response_id)
    }
    query = ERASED if task is None else chat_text(task.query)
    response = texts[trace.response_id]
    if trace.labels:
        labels = ", ".join(f"{name} {to_text(value)}" for name, value in trace.labels.items())
        yield f"labels    {escape_line(labels, _MAX_LINE)}"
    for title, content in (
        ("query", query),
        ("text", ERASED if response is None else response.text),
    ):
        if whole:
            yield from _paragraphs(title, content, "")
        else:
            yield f"{title:<9} {escape_line(' '.join(content.split()), _MAX_LINE)}"


def _paragraphs(title: str, text: str, indent: str) -> Iterator[str]:
    """Return a text below its title; no line of it can pass for a title, since it is indented further."""
    yield f"{indent}{title}"
    yield from (f"    {line}" for line in escape_lines(text).split("\n"))


def _reward_lines(explained: ExplainedTrace) -> Iterator[str]:
    trace = explained.trace
    reward = trace.reward
    counts = reward.counts
    yield f"reward    {format_number(reward.value)}  ({reward.status}, coverage {format_number(reward.coverage)})"
    if reward.value is None:
        yield f"partial   {format_number(reward.partial)}  (the judged part alone)"
    if reward.range is not None:
        yield f"range     {format_number(reward.range[0])} to {format_number(reward.range[1])}"
    gated = trace.gated
    rest = (counts.abstained, counts.failed, counts.not_applicable)
    yield f"verdicts  {counts.total} = {format_counts(counts.judged - gated.total(), gated, *rest)}"
    if discarded := sum(verdict.effect == "discarded" for verdict in explained.verdicts):
        yield f"note      judged verdicts that are discarded for low confidence: {discarded}"
    yield from (f"note      {escape_line(note)}" for note in reward.notes)
    if not reward.weights_fixed:
        yield "note      weights not fixed: a judge set them after it saw the response"
    judged = reward.components
    filled_in = [t for t in reward.terms if is_filled_in(judged.get(t.name, t.value), t.value)]
    rows = [
        [t.name, t.weight, format_component(t.value, t in filled_in), t.contribution]
        for t in reward.terms
    ]
    yield ""
    yield from format_table(["term", "weight", "value", "contribution"], rows)
    for term in filled_in:
        alone = format_number(judged[term.name])
        yield f"* {escape_line(term.name)}: filled in by the failure rule; the judged part alone is {alone}"
    for change in reward.adjustments:
        yield f"{escape_line(change.name)}: {format_number(change.before)} -> {format_number(change.after)}"
    for component in explained.terms:
        if component.parts:
            yield _parts_line(component)
    for name, figures in reward.diagnostics.items():
        shown = ", ".join(f"{figure} {format_number(value)}" for figure, value in figures.items())
        yield f"diagnostics of {escape_line(name)}: {escape_line(shown)}"


def _parts_line(component: ExplainedTerm) -> str:
    """Return the parts of a component, with a dash for an input that does not apply, and how its graph was used."""
    rows = sorted({**dict.fromkeys(component.inapplicable), **component.parts}.items())
    shown = ", ".join(
        f"{part} {'*' * component.is_unjudged_part(part)}{format_number(value)}"
        for part, value in rows
    )
    rule = (
        component.combiner.describe_rule(component.params)
        if component.combiner.counts_criteria
        else ""
    )
    return (
        f"{escape_line(component.term.name)} consists of {escape_line(shown)}{rule and f'; {rule}'}"
    )


def _weight_lines(component: ExplainedTerm) -> Iterator[str]:
    """Return a table with each stakeholder's terms of d_i, weight, utility, and share of the full utility given up."""
    spec = component.spec
    if spec is None or not component.combiner.aggregates_utilities:
        return
    terms: Any = spec.params.get("difficulty", {})
    calibration: Any = spec.params.get("calibration")
    suffix = ""
    if calibration is not None:
        gamma, beta, temperature = (
            f"{calibration[name]:g}" for name in ("gamma", "beta", "temperature")
        )
        suffix = f"; d = hard + {gamma} soft + {beta} conflict, w = softmax(d / {temperature})"
        suffix += "; hard and soft are sums of the restrictiveness of the constraints in the task"
    yield ""
    yield f"{escape_line(spec.name)} is {component.combiner.describe_rule(spec.params)}{suffix}"
    rows = []
    for name, entry in spec.inputs.items():
        difficulty = [
            terms.get(name, {}).get(term) for term in ("hard", "soft", "conflict", "difficulty")
        ]
        given_up = (
            f"{100.0 * (1.0 - component.parts[name]):.4g}%" if name in component.parts else "-"
        )
        rows.append(
            [
                name,
                *map(format_number, difficulty),
                entry.input_weight,
                component.parts.get(name),
                given_up,
            ]
        )
    yield from format_table(
        ["stakeholder", "hard", "soft", "conflict", "d", "w", "û", "gives up"], rows
    )
    for name, difficulty in terms.items():
        for other, tension in difficulty.get("tensions", {}).items():
            if name < other:
                why = "; ".join(tension["why"]) or "given by the task"
                strength = format_number(tension["strength"])
                yield escape_line(
                    f"tension between {name} and {other}: {strength}, {why}", _MAX_LINE
                )


def _note_lines(explained: ExplainedTrace) -> Iterator[str]:
    """Return notes on contrasts, votes, judges, the purpose of the run, what the plan was made of, and material."""
    trace = explained.trace
    for term in explained.terms:
        yield from _contrast_lines(trace, term)
        yield from (
            f"{term.term.name}: {text}" for text in term.combiner.describe_inputs(term.params)
        )
        yield from _vote_lines(explained, term)
    yield from _judge_lines(trace)
    if trace.purpose is not None:
        yield f"purpose: {trace.purpose.description}"
    rubric = None if trace.plan is None else trace.plan.rubric
    if rubric is not None:
        models = ", ".join(sorted({edge.model for edge in rubric.edges if edge.model})) or "a model"
        record = rubric.annotation
        missing = 0 if record is None else len(record.unanswered) + len(record.unassigned)
        remainder = f"; {missing} pairs or criteria have no answer" if missing else ""
        yield f"rubric graph: {len(rubric.edges)} edges, annotated by {models}{remainder}"
    profiles = None if trace.plan is None else trace.plan.profiles
    if profiles is not None:
        readers = {f"constraints of {name}": reader for name, reader in profiles.by.items()}
        readers |= {"tensions": profiles.tensions_by} if profiles.tensions_by is not None else {}
        for content, reader in readers.items():
            source = (
                "from a file of profiles"
                if reader == READ_FROM_FILE
                else f"profile parsed by {reader}"
            )
            yield f"{content}: {source}"
    for material in trace.material:
        if material.failure is not None:
            yield f"material {material.name}: {_describe_failure(material.failure)}"
        elif material.note:
            yield f"material {material.name}: {material.note}"


def _contrast_lines(trace: Trace, component: ExplainedTerm) -> Iterator[str]:
    """Return how many contrasts of a term were ranked correctly, and a line for each that was not."""
    if not component.combiner.ranks_contrasts:
        return
    edits: dict[str, Any] = {
        v.response.id: v.edit for material in trace.material for v in material.variants
    }
    compared = {name for verdict in component.verdicts for name in verdict.verdict.responses}
    names = sorted(compared & edits.keys())
    margins = [component.diagnostics.get(f"pair {pair}") for pair in range(1, len(names) + 1)]
    if names:
        correct = sum(margin is not None and margin > 0.0 for margin in margins)
        yield f"{component.term.name}: {correct} of {len(names)} contrasts score less than the response"
    missed = [
        name
        for name, margin in zip(names, margins, strict=True)
        if margin is not None and margin <= 0.0
    ]
    for name in missed:
        edit = edits[name] if isinstance(edits[name], Mapping) else {}
        yield f"ranked incorrectly: {name} ({edit.get('says', edit.get('kind', 'an edit'))})"


def _vote_lines(explained: ExplainedTrace, term: ExplainedTerm) -> Iterator[str]:
    """Return a line for each majority vote: its predictions, and what they amount to; equal ones share a line."""
    groups: dict[str, list[str]] = {}
    for use in term.inputs.values():
        ballots = (
            ballot
            for question in (use.questions if use.reduce == "majority" else ())
            for ballot in explained.ballots(question, use)
        )
        for voting, columns in ballots:
            if len(voting) > 1 and not any(verdict.verdict.gated_by for verdict in voting):
                predictions = Counter(
                    _describe_prediction(verdict, use.has_judges) for verdict in voting
                )
                tally = ", ".join(
                    f"{number} × {prediction}" for prediction, number in predictions.most_common()
                )
                effect = _describe_majority(columns)
                groups.setdefault(f"{tally}; {effect}", []).append(voting[0].label)
    for text, labels in groups.items():
        yield f"{term.term.name}: vote on {join_names(labels)}: {text}"


def _describe_prediction(verdict: ExplainedVerdict, has_judges: bool) -> str:
    if verdict.effect in ("discarded", "not_applicable", "unjudged"):
        return (
            "discarded"
            if verdict.effect == "discarded"
            else verdict.verdict.status.replace("_", " ")
        )
    if verdict.verdict.is_worst_case or verdict.score is None:
        return "unsupported"
    return format_plain(
        float(bool(verdict.verdict.met))
        if has_judges and verdict.verdict.is_binary
        else verdict.score
    )


def _describe_majority(columns: ScoreArrays) -> str:
    """Describe what a vote amounts to, by its only column."""
    outcome = columns.outcome[0, 0]
    if outcome == OK:
        return f"the majority is {format_plain(float(columns.value[0, 0]))}"
    if outcome == STOPPED:
        return "no majority, and no missing vote could make one: the worst case"
    return (
        "the majority is not applicable"
        if outcome == NOT_APPLICABLE
        else "no majority: the failure rule"
    )


def _judge_lines(trace: Trace) -> Iterator[str]:
    answers: dict[str, list[str]] = {}
    for verdict in trace.verdicts:
        if verdict.judge is not None and verdict.about == trace.response_id:
            answer = verdict.status if verdict.score is None else f"{verdict.score:.4f}"
            text = f"{verdict.judge} {answer}{' (superseded)' if verdict.superseded else ''}"
            turn = "" if verdict.turn is None else f" in turn {verdict.turn}"
            answers.setdefault(f"{verdict.question}{turn}", []).append(text)
    yield from (
        f"judges on {question}: {'; '.join(texts)}"
        for question, texts in answers.items()
        if len(texts) > 1
    )


def _verdict_heading(explained: ExplainedVerdict) -> str:
    verdict = explained.verdict
    answer = format_number(explained.score) if verdict.status == "ok" else verdict.status
    question = escape_line(verdict.question) + (
        f" against {escape_line(explained.opponent)}" if explained.opponent else ""
    )
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        question += f" of {escape_line(verdict.responses[0])}"  # a variant: its quotations refer to that text
    turn = "" if verdict.turn is None else f", turn {verdict.turn}"
    sample = f", sample {verdict.sample + 1}" if verdict.sample else ""
    judge = f" by {escape_line(verdict.judge)}" if verdict.judge else ""
    version = verdict.version.replace(" prompt ", ", prompt ", 1)
    return f"  {question}{turn}{judge}{sample}  {answer}  ({escape_line(f'{verdict.evaluator}, version {version}')})"


def _verdict_details(explained: ExplainedVerdict) -> Iterator[str]:
    verdict = explained.verdict
    lines = [verdict.reason] if verdict.reason else []
    if verdict.failure is not None:
        lines.append(_describe_failure(verdict.failure, verdict.reason))
    if verdict.gated_by is not None:
        lines.append(f"gated by {verdict.gated_by}")
    if verdict.unsupported is not None:
        lines.append(f"unsupported: {UNSUPPORTED[verdict.unsupported]}")
    if verdict.confidence is not None:
        low = (
            f", discarded: it is below {explained.required_confidence:.4f}"
            if explained.effect == "discarded"
            else ""
        )
        lines.append(f"confidence {verdict.confidence:.4f}{low}")
    if verdict.steps:
        shown = (
            f"{s.name} {'unfinished' if s.duration is None else f'{s.duration:.2f} s'}"
            for s in verdict.steps
        )
        lines.append(f"steps: {', '.join(shown)}")
    purposes = [use.purpose for use in verdict.named_calls]
    if purposes not in ([], ["judge"]):
        lines.append(f"{len(purposes)} call{'s' * (len(purposes) > 1)}: {', '.join(purposes)}")
    lines += _prediction_details(verdict)
    yield from (f"      {escape_line(line, _MAX_LINE)}" for line in lines)
    for evidence in verdict.evidence:
        place = "" if evidence.start is None else f" at {evidence.start}-{evidence.end}"
        message = "" if evidence.message is None else f", message {evidence.message}"
        missing = "" if evidence.verified else ", not found"
        source = f"{escape_line(evidence.source)}{place}{message}{missing}"
        yield f'      "{escape_line(evidence.quote, 200)}"  ({source})'


def _prediction_details(verdict: RecordedVerdict) -> Iterator[str]:
    for use in verdict.examples:
        effect = "shown" if use.dropped is None else f"not shown, because {use.dropped}"
        yield f"example {use.item} ({use.reviewer}: {use.score:g}) {effect}"
    if verdict.swap is not None:
        yield f"judged in both orders: ({verdict.swap.given:.4f} + 1 - {verdict.swap.swapped:.4f}) / 2"


def _describe_failure(failure: Failure, reason: str = "") -> str:
    message = f": {failure.message}" if failure.message not in ("", reason) else ""
    return f"{failure.cause} failure: {failure.kind}{message}"


def verdict_lines(verdicts: Sequence[RecordedVerdict]) -> Iterator[str]:
    for number, verdict in enumerate(verdicts, start=1):
        yield f"verdict {number} of {len(verdicts)}"
        if is_erased(verdict):
            yield "  its reason, quotations and other texts were erased"
        yield from _field_lines(verdict)
        yield ""


def call_lines(
    calls: Sequence[RecordedCall], verdicts: Sequence[RecordedVerdict] = ()
) -> Iterator[str]:
    """Yield the request, reply and bill of calls, or why there is none behind the verdicts on a question."""
    if not calls:
        yield from dict.fromkeys(map(_explain_no_call, verdicts))
    for number, call in enumerate(calls, start=1):
        yield f"call {number} of {len(calls)}: {escape_line(call.purpose)}"
        yield from _field_lines(call.call)
        for title, text in _texts(call):
            yield from _paragraphs(title, text, "  ")
        yield ""


def _field_lines(record: RecordedVerdict | Call) -> Iterator[str]:
    """Yield each field: text as it is, no value as a dash, each item of a list in a line, other values as JSON."""
    for name, value in record.model_dump(mode="json").items():
        items = value if isinstance(value, list) and value else [value]
        for number, item in enumerate(items):
            yield f"  {'' if number else name:<15} {escape_line(_format(item))}"


def _format(value: Any) -> str:
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
        return f"no reply: {escape_line(_describe_failure(verdict.failure))}"
    return f"no call: {evaluator} sent no request to a model for this verdict"


def _texts(call: RecordedCall) -> Iterator[tuple[str, str]]:
    """Yield the messages, the schema and the reply of a call, each with its title; text instead if they were erased."""
    request = call.request
    reply = call.reply
    if isinstance(request, dict):
        messages = request["messages"]
        for number, message in enumerate(messages, start=1):
            yield f"message {number} of {len(messages)}, {message['role']}", message["content"]
        if request["answer"] is not None:
            yield (
                f"schema of the reply ({request['form']})",
                json.dumps(request["answer"], ensure_ascii=False),
            )
    else:
        yield "messages", request
    if isinstance(reply, dict):
        yield f"reply (finish: {reply['finish'] or 'unknown'})", reply["text"]
        if reply["refusal"] is not None:
            yield "refusal", reply["refusal"]
    else:
        yield "reply", reply
