"""An explanation in plain sentences: the view of `jurygraph explain`."""

from collections.abc import Iterator, Sequence
from typing import cast

from jurygraph.cli.render.explanation import WELFARE, ExplainedPart, ExplainedTerm, ExplainedVerdict, Explanation
from jurygraph.cli.render.text import format_plain
from jurygraph.cli.render.trace import (
    contrast_lines,
    describe_rule,
    discard_reason,
    example_details,
    material_lines,
    origin_lines,
)
from jurygraph.messages import shorten
from jurygraph.schema import ComponentSpec, RecordedVerdict, Reward, Trace

_MAX_REASON, _MAX_QUOTE = 300, 120


def sentences(explanation: Explanation) -> list[str]:
    """Return sentences on the reward, its reasons, errors, missing verdicts, and the range that these leave open."""
    trace, counts = explanation.trace, explanation.trace.reward.counts
    return [
        _reward_sentence(trace),
        *(f"Why: {note}." for note in trace.reward.notes),
        *_term_sentences(explanation),
        *_adjustment_sentences(trace.reward),
        *(f"{line[0].upper()}{line[1:]}." for line in origin_lines(trace)),
        *(f"{line[0].upper()}{shorten(line[1:], _MAX_REASON)}." for line in material_lines(trace)),
        *_gate_sentences(explanation.with_effect("gated")),
        *_deduction_sentences(explanation),
        *(
            f"Discarded: {_label(one, sample=True)} scored {format_plain(one.score)}, but {discard_reason(one)}."
            for one in explanation.with_effect("discarded")
        ),
        *filter(None, map(_missing_sentence, explanation.verdicts)),
        f"Verdicts: {counts.total} requested; {counts.judged} judged, {counts.abstained} abstained, "
        f"{counts.failed} failed, {counts.not_applicable} not applicable.",
        *(
            f"{_label(one, sample=True)}: {details}."
            for one in explanation.verdicts
            if (details := "; ".join(example_details(one.verdict)))
        ),
        *_range_sentence(explanation),
    ]


def _reward_sentence(trace: Trace) -> str:
    reward = trace.reward
    subject = f"Response {trace.response_id}" + (f" by {trace.agent}" if trace.agent else "")
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} to task {trace.task_id} gets {format_plain(reward.value)}{status}."
    partial = "" if reward.partial is None else f"; the judged part alone would give {format_plain(reward.partial)}"
    return f"{subject} to task {trace.task_id} gets no reward: it failed{partial}."


def _term_sentences(explanation: Explanation) -> Iterator[str]:
    reward = explanation.trace.reward
    for one in explanation.terms:
        yield _term_sentence(one)
        if one.parts and one.term.contribution is not None:
            yield _parts_sentence(one)
        yield from (f"{shorten(line, _MAX_REASON)}." for line in contrast_lines(one))
    counted = [term.contribution for term in reward.terms if term.contribution is not None and term.weight]
    if len(counted) > 1:
        summands = (f"({shown})" if shown.startswith("-") else shown for shown in map(format_plain, counted))
        total = f"{' + '.join(summands)} = {format_plain(sum(counted))}"
        yield f"Sum: {total}." if reward.value is not None else f"The sum would be {total}."


def _term_sentence(one: ExplainedTerm) -> str:
    """Describe the contribution of a term; a term that was not judged has the value set for missing verdicts."""
    term = one.term
    if term.contribution is None:
        return f"{term.name}: not applicable, no effect."
    if term.weight == 0:
        value = format_plain(term.value) if one.is_judged else "not judged"
        return f"{term.name}: {value} (weight 0, no direct effect)."
    why = "" if one.is_judged else ", because nothing of it was judged"
    weight, value, contribution = map(format_plain, (term.weight, term.value, term.contribution))
    return f"{term.name}: weight {weight} × value {value} = {contribution}{why}."


def _parts_sentence(one: ExplainedTerm) -> str:
    shown = []
    for part in one.parts:
        remarks = ", ".join(_remarks(part))
        shown.append(f"{part.name} {format_plain(part.value)}{f' ({remarks})' if remarks else ''}")
    rule = "" if one.spec is None else _rule_suffix(one, one.spec)
    return f"{one.term.name} consists of {', '.join(shown)}{rule}."


def _rule_suffix(one: ExplainedTerm, spec: ComponentSpec) -> str:
    """Describe how the parts become one number, unless it is their mean or weighted sum."""
    if spec.combiner == "product" and len(one.parts) > 1:
        return "; it is their product"
    if spec.combiner == "consensus":
        return _consensus_suffix(one, spec)
    return f"; it is {describe_rule(spec)}" if spec.combiner in WELFARE and spec.combiner != "stakeholders" else ""


def _consensus_suffix(one: ExplainedTerm, spec: ComponentSpec) -> str:
    """Describe how the judges' votes become one level; the parameter `judges` holds their confusions, if learned."""
    if not one.is_judged:
        return "; no verdict counts"
    levels = " and ".join(map(format_plain, cast(Sequence[float], spec.params["levels"])))
    learned = "the mean level, given how often each judge errs"
    rule = learned if "judges" in spec.params else "the level of the majority"
    missing = ", where missing votes count as the worst level" if one.unjudged else ""
    return f", each rounded to the nearest of {levels}; it is {rule}{missing}"


def _remarks(part: ExplainedPart) -> Iterator[str]:
    """Return remarks on a part: its weight, that it was not judged, or how much of its score was kept."""
    if part.weight is not None:
        yield f"weight {format_plain(part.weight)}"
    if part.cap is not None:
        cap, share = map(format_plain, part.cap)
        yield f"capped at {cap} × {share}, the share of hard constraints met"
    if not part.is_judged:
        yield "discarded" if part.is_discarded else "not judged"
    elif part.own_score is not None:
        parents = (
            f"{k}, not judged" if v is None else f"{k} at {format_plain(v)}" for k, v in part.prerequisites.items()
        )
        kept = f"counts {format_plain(part.value)} of its {format_plain(part.own_score)}"
        yield f"{kept}, because it depends on {' and '.join(parents)}"


def _adjustment_sentences(reward: Reward) -> Iterator[str]:
    for change in reward.adjustments:
        verb = "changed" if reward.value is not None else "would have changed"
        yield f"The {change.name} {verb} it from {format_plain(change.before)} to {format_plain(change.after)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _gate_sentences(stopped: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each gate that stopped questions."""
    for gate, reason in dict.fromkeys((one.verdict.gated_by, one.verdict.reason) for one in stopped):
        names = ", ".join(_label(one) for one in stopped if one.verdict.gated_by == gate)
        yield f"Not judged, with the worst score: {names}, because of {gate}{_reason(reason) or ': '}."


def _deduction_sentences(explanation: Explanation) -> Iterator[str]:
    """Return sentences on verdicts that cost reward: errors in the order of the response, then other deductions.

    Samples with the same answer give one sentence.
    """
    errors = explanation.with_effect("error")
    placed = sorted((one for one in errors if one.evidence_start is not None), key=lambda one: one.evidence_start or 0)
    for place, error in enumerate(dict.fromkeys(map(_describe_error, placed))):
        yield f"{'Next error' if place else 'First error'}: {error}."
    unplaced = (one for one in errors if one.evidence_start is None)
    for place, error in enumerate(dict.fromkeys(map(_describe_error, unplaced))):
        yield f"{'Further error' if place or placed else 'Error'}: {error}."
    for deduction in dict.fromkeys(map(_score_phrase, explanation.with_effect("deduction"))):
        yield f"Deduction: {deduction}."


def _describe_error(one: ExplainedVerdict) -> str:
    """Describe a verdict against the response; a penalty counts against it by a high score."""
    return f"{_score_phrase(one, ' as a penalty' if one.is_penalty else '')}{_quotes(one.verdict)}"


def _score_phrase(one: ExplainedVerdict, manner: str = "") -> str:
    return f"{_label(one)} scored {format_plain(one.score)}{manner}{_reason(one.verdict.reason)}"


def _reason(reason: str) -> str:
    """Return a reason for the end of a sentence, if there is one: shortened, without its own full stop."""
    return f": {shorten(reason.rstrip(' .'), _MAX_REASON)}" if reason else ""


def _quotes(verdict: RecordedVerdict) -> str:
    """Return quotations that the reason does not contain, without those that were not found in the response."""
    true = [shorten(e.quote, _MAX_QUOTE) for e in verdict.evidence if e.verified or e.source != "response"]
    quotes = [f"“{quote}”" for quote in true[:3] if quote not in _reason(verdict.reason)]
    return f", as in {', '.join(quotes)}" if quotes else ""


def _missing_sentence(one: ExplainedVerdict) -> str | None:
    verdict = one.verdict
    if one.effect == "not_applicable":
        gate = f", because of {verdict.gated_by}" if verdict.gated_by else ""
        return f"Not applicable: {_label(one)}{gate}."
    if one.effect != "unjudged":
        return None
    cause = f" ({verdict.failure.cause})" if verdict.failure else ""
    # A reason given before the failure may say something else than the failure.
    reason = verdict.failure.message if verdict.failure and verdict.failure.message else verdict.reason
    return f"Not judged: {_label(one)} {verdict.status}{cause}{_reason(reason)}."


def _range_sentence(explanation: Explanation) -> Iterator[str]:
    reward = explanation.trace.reward
    if reward.range is None:
        return
    low, high = map(format_plain, reward.range)
    is_complete = not any(one.effect in ("unjudged", "discarded") for one in explanation.verdicts)
    if reward.range[0] != reward.range[1]:
        yield f"With the missing verdicts the reward would be between {low} and {high}."
    else:
        yield "All verdicts are present." if is_complete else "The missing verdicts cannot change the reward."


def _label(one: ExplainedVerdict, sample: bool = False) -> str:
    """Return the name of a verdict, on request with the sample number if its question has several."""
    verdict = one.verdict
    member = verdict.stakeholder or verdict.reviewer
    owner = f" of {member}" if member and member != verdict.subject else ""
    against = f" against {one.opponent}" if one.opponent else ""
    number = f", sample {verdict.sample + 1}" if sample and one.samples > 1 else ""
    return f"{verdict.subject}{owner}{against} ({verdict.evaluator}){number}"
