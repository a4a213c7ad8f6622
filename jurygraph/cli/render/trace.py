"""One trace in full, as lines of text: the view of `jurygraph show --response`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jurygraph.cli.render.text import escape_line, escape_lines, format_component, format_counts, format_table
from jurygraph.display import format_number
from jurygraph.explanation.notes import (
    UNSUPPORTED,
    contrast_lines,
    describe_failure,
    discard_reason,
    example_details,
    input_lines,
    judge_lines,
    material_lines,
    origin_lines,
    vote_lines,
)
from jurygraph.explanation.terms import ExplainedTerm, ExplainedTrace, ExplainedVerdict
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import ERASED
from jurygraph.runs.tables import to_text
from jurygraph.schema import Trace
from jurygraph.schema.task import Stakeholder, chat_text

_MAX_LINE = 300


def trace_lines(
    explanation: ExplainedTrace, texts: Iterable[str] = (), people: Sequence[Stakeholder] = ()
) -> list[str]:
    """Return every term, verdict and note of a trace, and every term of the weights that its decision froze.

    `texts` are the lines of `text_lines`, and `people` the stakeholders of the task.
    """
    trace = explanation.trace
    head = [f"response  {escape_line(trace.response_id)}", f"task      {escape_line(trace.task_id)}"]
    if trace.agent is not None:
        head.append(f"agent     {escape_line(trace.agent)}")
    return [
        *head,
        *texts,
        *_reward_lines(explanation),
        *(line for one in explanation.terms for line in _weight_lines(one, people)),
        *(escape_line(line, _MAX_LINE) for one in explanation.terms for line in contrast_lines(one)),
        *(escape_line(text, _MAX_LINE) for one in explanation.terms for text in input_lines(one)),
        *(escape_line(text, _MAX_LINE) for one in explanation.terms for text in vote_lines(one)),
        *(escape_line(text, _MAX_LINE) for text in judge_lines(trace)),
        *map(escape_line, origin_lines(trace)),
        *(escape_line(line, _MAX_LINE) for line in material_lines(trace)),
        "",
        "verdicts",
        *(line for one in explanation.verdicts for line in (_verdict_heading(one), *_verdict_details(one))),
        "",
        f"plan      {trace.plan_digest}",
        f"digest    {trace.digest}",
        f"previous  {trace.previous or '-'}",
    ]


def text_lines(run: Run, trace: Trace, whole: bool) -> Iterator[str]:
    """Return lines on the labels of a trace, the query and the response's text: one each, or `whole` paragraphs."""
    task = run.task(trace.task_id)
    texts = {one.trace.response_id: one.response for one in run.group_of(trace.task_id)}
    query = ERASED if task is None else chat_text(task.query)
    response = texts[trace.response_id]
    if trace.labels:
        labels = ", ".join(f"{name} {to_text(value)}" for name, value in trace.labels.items())
        yield f"labels    {escape_line(labels, _MAX_LINE)}"
    for title, content in (("query", query), ("text", ERASED if response is None else response.text)):
        if whole:
            yield title
            yield from (f"    {line}" for line in escape_lines(content).split("\n"))
        else:
            yield f"{title:<9} {escape_line(' '.join(content.split()), _MAX_LINE)}"


def _reward_lines(explanation: ExplainedTrace) -> list[str]:
    trace = explanation.trace
    reward = explanation.trace.reward
    counts = explanation.trace.reward.counts
    terms = {one.term.name: one for one in explanation.terms}
    lines = [f"reward    {format_number(reward.value)}  ({reward.status}, coverage {format_number(reward.coverage)})"]
    if reward.value is None:
        lines.append(f"partial   {format_number(reward.partial)}  (the judged part alone)")
    if reward.range is not None:
        lines.append(f"range     {format_number(reward.range[0])} to {format_number(reward.range[1])}")
    gated = trace.gated
    rest = (counts.abstained, counts.failed, counts.not_applicable)
    lines.append(f"verdicts  {counts.total} = {format_counts(counts.judged - gated.total(), gated, *rest)}")
    if discarded := explanation.with_effect("discarded"):
        lines.append(f"note      judged verdicts that are discarded for low confidence: {len(discarded)}")
    lines += [f"note      {escape_line(note)}" for note in reward.notes]
    if not reward.weights_fixed:
        lines.append("note      weights not fixed: a judge set them after it saw the response")
    rows = [
        [t.name, t.weight, format_component(t.value, terms[t.name].is_filled_in), t.contribution] for t in reward.terms
    ]
    lines += ["", *format_table(["term", "weight", "value", "contribution"], rows)]
    for term in reward.terms:
        if terms[term.name].is_filled_in:
            alone = reward.components[term.name]
            part = "the judged part alone has no value" if terms[term.name].is_judged else "nothing was judged"
            part = part if alone is None else f"the judged part alone is {format_number(alone)}"
            lines.append(f"* {escape_line(term.name)}: filled in by the failure rule; {part}")
    lines += [
        f"{escape_line(a.name)}: {format_number(a.before)} -> {format_number(a.after)}" for a in reward.adjustments
    ]
    lines += [_parts_line(one) for one in explanation.terms if one.parts]
    for name, figures in reward.diagnostics.items():
        shown = ", ".join(f"{figure} {format_number(value)}" for figure, value in figures.items())
        lines.append(f"diagnostics of {escape_line(name)}: {escape_line(shown)}")
    return lines


def _parts_line(one: ExplainedTerm) -> str:
    """Return the parts of a component, with a dash for an input that does not apply, and how its graph was used."""
    rows = sorted({**dict.fromkeys(one.inapplicable), **one.parts}.items())
    shown = ", ".join(f"{part} {'*' * one.is_unjudged_part(part)}{format_number(value)}" for part, value in rows)
    rule = one.combiner.describe_rule(one.params) if one.combiner.counts_criteria else ""
    return f"{escape_line(one.term.name)} consists of {escape_line(shown)}{rule and f'; {rule}'}"


def _weight_lines(one: ExplainedTerm, people: Sequence[Stakeholder]) -> Iterator[str]:
    """Return a table with each stakeholder's terms of d_i, weight, utility, and share of the full utility given up."""
    spec = one.spec
    if spec is None or not one.combiner.aggregates_utilities:
        return
    terms: Any = spec.params.get("difficulty", {})
    yield ""
    calibration: Any = spec.params.get("calibration")
    suffix = ""
    if calibration is not None:
        gamma, beta, temperature = (f"{calibration[name]:g}" for name in ("gamma", "beta", "temperature"))
        suffix = f"; d = hard + {gamma} soft + {beta} conflict, w = softmax(d / {temperature})"
        suffix += "; hard and soft are sums of the restrictiveness of the constraints in the task"
    yield f"{escape_line(spec.name)} is {one.combiner.describe_rule(spec.params)}{suffix}"
    rows = []
    for name, entry in spec.inputs.items():
        difficulty = [terms.get(name, {}).get(term) for term in ("hard", "soft", "conflict", "difficulty")]
        given_up = f"{100.0 * (1.0 - one.parts[name]):.4g}%" if name in one.parts else "-"
        rows.append([name, *map(format_number, difficulty), entry.input_weight, one.parts.get(name), given_up])
    yield from format_table(["stakeholder", "hard", "soft", "conflict", "d", "w", "û", "gives up"], rows)
    for person in people if calibration is not None else ():
        kinds = {kind: [c for c in person.constraints if c.kind == kind] for kind in ("hard", "soft")}
        listed = (
            f"{kind} {', '.join(f'{c.id} {c.restrictiveness:g}' for c in of)}" for kind, of in kinds.items() if of
        )
        yield escape_line(f"restrictiveness for {person.id}: {'; '.join(listed) or 'no constraint'}")
    yield from _tension_lines(terms)


def _tension_lines(terms: Mapping[str, Any]) -> Iterator[str]:
    for name, difficulty in terms.items():
        for other, tension in difficulty.get("tensions", {}).items():
            if name < other:
                why = escape_line("; ".join(tension["why"]), _MAX_LINE) if tension["why"] else "given by the task"
                strength = format_number(tension["strength"])
                yield f"tension between {escape_line(name)} and {escape_line(other)}: {strength}, {why}"


def _verdict_heading(one: ExplainedVerdict) -> str:
    verdict = one.verdict
    answer = format_number(one.score) if verdict.status == "ok" else verdict.status
    question = escape_line(verdict.question) + (f" against {escape_line(one.opponent)}" if one.opponent else "")
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        question += f" of {escape_line(verdict.responses[0])}"  # a variant: its quotations refer to that text
    sample = f", sample {verdict.sample + 1} of {one.samples}" if one.samples > 1 else ""
    judge = f" by {escape_line(verdict.judge)}" if verdict.judge else ""
    version = verdict.version.replace(" prompt ", ", prompt ", 1)
    return f"  {question}{judge}{sample}  {answer}  ({escape_line(f'{verdict.evaluator}, version {version}')})"


def _verdict_details(one: ExplainedVerdict) -> Iterator[str]:
    verdict = one.verdict
    lines = [verdict.reason] if verdict.reason else []
    if verdict.failure is not None:
        lines.append(describe_failure(verdict.failure, verdict.reason))
    if verdict.gated_by is not None:
        lines.append(f"gated by {verdict.gated_by}")
    if verdict.unsupported is not None:
        lines.append(f"unsupported: {UNSUPPORTED[verdict.unsupported]}")
    if verdict.confidence is not None:
        lines.append(f"confidence {format_number(verdict.confidence)}")
    if verdict.steps:
        shown = (f"{s.name} {'unfinished' if s.duration is None else f'{s.duration:.2f} s'}" for s in verdict.steps)
        lines.append(f"steps: {', '.join(shown)}")
    purposes = [use.purpose for use in verdict.named_calls]
    if purposes not in ([], ["judge"]):
        lines.append(f"{len(purposes)} call{'s' * (len(purposes) > 1)}: {', '.join(purposes)}")
    if one.effect == "discarded":
        lines.append(f"discarded: {discard_reason(one)}")
    yield from (f"      {escape_line(line, _MAX_LINE)}" for line in (*lines, *example_details(verdict)))
    for evidence in verdict.evidence:
        place = "" if evidence.start is None else f" at {evidence.start}-{evidence.end}"
        source = f"{escape_line(evidence.source)}{place}{'' if evidence.verified else ', not found'}"
        yield f'      "{escape_line(evidence.quote, 200)}"  ({source})'
