"""An explanation in plain sentences: the view of `jurygraph explain`."""

from collections.abc import Iterator, Mapping, Sequence

from jurygraph.explanation.points import PointsLine, describe_losses
from jurygraph.explanation.terms import ExplainedTerm, ExplainedTrace, ExplainedVerdict
from jurygraph.explanation.what_if import Change
from jurygraph.messages import format_factor, format_plain, join_names, shorten
from jurygraph.schema import Decision, GateResult, PrecisionShaping, Trace
from jurygraph.schema.verdict import Unsupported

_MAX_REASON = 300
_MOST_CHANGES = 10
UNSUPPORTED: Mapping[Unsupported | None, str] = {
    "worst-case": "the worst case counts, because no quotation from the response supports it",
    "tie": "it counts as a tie, because no quotation from a response supports it",
    "stands": "it stands, although no quotation from the response supports it",
}
"""How an unsupported verdict counts."""


def to_sentences(explained: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    """Return sentences on a reward: its points in order of cost, missing verdicts, and the range they leave open."""
    reward = explained.trace.reward
    yield from (f"Why: {note}." for note in reward.notes)
    yield from _point_sentences(explained, lines)
    yield from _adjustment_sentences(explained)
    yield from _verdict_sentences(explained.verdicts)
    counts = reward.counts
    gated = explained.trace.gated
    discarded = sum(one.effect == "discarded" for one in explained.verdicts)
    yield (
        f"Verdicts: {counts.total} requested; {counts.judged - gated.total()} judged"
        f"{f' ({discarded} of them discarded)' if discarded else ''}, "
        f"{''.join(f'{count} set by {name}, ' for name, count in gated.items())}{counts.abstained} abstained, "
        f"{counts.failed} failed, {counts.not_applicable} not applicable."
    )
    effects = {one.effect for one in explained.verdicts}
    if reward.range is None:
        return
    low, high = reward.range
    if low != high:
        bounds = f"from {format_plain(low)} to {format_plain(high)}"
        yield f"With the missing verdicts the reward would be at most {bounds}."
    elif effects & {"unjudged", "discarded"}:
        yield "The missing verdicts cannot change the reward."
    elif "gated" not in effects:
        yield "All verdicts are present."


def reward_sentence(trace: Trace) -> str:
    """Return a sentence on the value of the reward."""
    reward = trace.reward
    subject = f"Response {trace.response_id}{f' by {trace.agent}' if trace.agent else ''} to task {trace.task_id}"
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} gets {format_plain(reward.value)}{status}."
    absent = [one.name for one in reward.terms if one.weight and one.value is not None]
    absent = [name for name in absent if reward.components[name] is None]
    part = "the judged part alone" + (f", without {join_names(absent)}," if absent else "")
    partial = "" if reward.partial is None else f"; {part} would give {format_plain(reward.partial)}"
    return f"{subject} gets no reward: it failed{partial}."


def what_if_sentences(trace: Trace, changes: Sequence[Change]) -> Iterator[str]:
    """Return sentences on the changes that gain most, and the number of those that gain something."""
    useful = [one for one in changes if one.matters]
    groups: dict[tuple[str, str], list[str]] = {}  # changes to the same state with the same effect, as printed
    for one in useful:
        subject, _, state = one.condition.rpartition(" were ")
        groups.setdefault((state, _describe_effect(one, trace.reward.value)), []).append(subject)
    for (state, effect), subjects in list(groups.items())[:_MOST_CHANGES]:
        yield f"If {'any one of ' * (len(subjects) > 1)}{join_names(subjects)} were {state}: {effect}."
    if hidden := sum(map(len, list(groups.values())[_MOST_CHANGES:])):
        yield f"... and {hidden} more (--json)."
    yield f"{len(useful)} of {len(changes)} single changes would raise it."


def _describe_effect(change: Change, now: float | None) -> str:
    value = format_plain(change.value)
    if change.value is None or now is None:
        return value
    # the difference of the printed numbers, unless these are equal
    gain = round(change.value, 4) - round(now, 4) or change.value - now
    return f"{value} (+{format_factor(gain)})"


def _point_sentences(explained: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    for line in lines:
        yield f"{line}."
        yield from (f"  {part}." for part in line.parts)
    if lines:
        best = format_plain(sum(line.points + line.lost for line in lines))
        losses = "".join(f" - {format_plain(one.lost)}" for one in lines if one.has_loss)
        total = f"{best} at best{losses} = {format_plain(sum(line.points for line in lines))}"
        yield f"Sum: {total}." if explained.trace.reward.value is not None else f"The sum would be {total}."
    absent = [one.term.name for one in explained.terms if one.term.contribution is None]
    if absent:
        yield f"Not applicable, no effect: {', '.join(absent)}."
    weightless = [
        f"{one.term.name} {format_plain(one.term.value) if one.is_judged else 'not judged'}"
        for one in explained.terms
        if one.term.weight == 0 and one.term.name not in absent
    ]
    if weightless:
        yield f"Weight 0, no points: {', '.join(weightless)}."


def _adjustment_sentences(explained: ExplainedTrace) -> Iterator[str]:
    reward = explained.trace.reward
    decision = explained.decision
    terms = {one.term.name: one for one in explained.terms}
    for place, gate in enumerate(reward.gates):
        reason = describe_losses(terms[gate.component].verdicts) if gate.is_reached else ""
        yield f"{_describe_gate(gate, decision, place, terms)}{f' ({reason})' if reason else ''}."
    for change in reward.adjustments:
        before = format_plain(change.before)
        after = format_plain(change.after)
        if change.name == "scale":
            yield f"Scale: {before} × {format_factor(decision.scale)} = {after}."
        if change.name == "clip" and decision.clip is not None:
            low, high = map(format_plain, decision.clip)
            yield f"Clip to {low} to {high}: {before} → {after}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _describe_gate(gate: GateResult, decision: Decision, place: int, terms: Mapping[str, ExplainedTerm]) -> str:
    name = f"{gate.kind.capitalize()} gate: {gate.component}"
    threshold = format_factor(gate.threshold)
    if gate.value is None:
        return f"{name} not applicable: no effect"
    before, after, value = map(format_plain, (gate.before, gate.after, gate.value))
    shown = f"{name} {value}{' at worst (verdicts are missing)' if gate.is_worst_case else ''}"
    if not gate.is_reached:
        return f"{shown} {'≤' if gate.op == '>' else '≥'} {threshold}: no effect"
    effect = f"reward {after} (before: {before})"
    rule = decision.gates[place]
    if gate.kind == "repetition":
        effect = f"{before} × (1 - {value}) = {after}"
    if isinstance(rule, PrecisionShaping):
        auxiliary = sum(terms[each].term.contribution or 0.0 for each in rule.auxiliary)
        lost = f"(1 - {format_factor(rule.fraction)}) × {format_plain(auxiliary)} points"
        effect = f"{before} - {lost} of {join_names(rule.auxiliary)} = {after}"
    return f"{shown} {gate.op} {threshold} → {effect}"


def _verdict_sentences(verdicts: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each reason why verdicts do not count as they were judged, with all of these verdicts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in verdicts:
        for heading, detail in _describe_effects(one):
            names = groups.setdefault((heading, shorten(detail.rstrip(" ."), _MAX_REASON)), [])
            names.append(f"{one.label} ({one.verdict.evaluator})")
    for (heading, detail), names in groups.items():
        count = f" ({len(names)})" if len(names) > 1 else ""
        yield f"{heading}{count}: {join_names(list(dict.fromkeys(names)))}{f': {detail}' if detail else ''}."


def _describe_effects(one: ExplainedVerdict) -> Iterator[tuple[str, str]]:
    """Return what kept a verdict from counting as it was judged, with the reason."""
    verdict = one.verdict
    if one.effect == "gated":
        yield f"Response gate {verdict.gated_by}, the worst score", verdict.reason
    if one.effect == "discarded":
        yield "Discarded", f"confidence {verdict.confidence:.4f} is below {one.required_confidence:.4f}"
    if verdict.unsupported is not None:
        yield "Unsupported", UNSUPPORTED[verdict.unsupported]
    if one.effect == "not_applicable":
        is_named = verdict.gated_by is None or verdict.gated_by in verdict.reason
        yield "Not applicable", verdict.reason if is_named else f"because of {verdict.gated_by} {verdict.reason}"
    if one.effect == "unjudged":
        failure = verdict.failure
        cause = f" ({failure.cause})" if failure else ""
        # a reason given before the failure may say something else than the failure
        yield f"Not judged, {verdict.status}{cause}", (failure and failure.message) or verdict.reason
