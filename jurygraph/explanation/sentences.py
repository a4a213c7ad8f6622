"""An explanation in plain sentences: the view of `jurygraph explain`."""

from collections.abc import Iterable, Iterator, Sequence

from jurygraph.explanation.notes import (
    UNSUPPORTED,
    contrast_lines,
    discard_reason,
    example_details,
    input_lines,
    judge_lines,
    material_lines,
    origin_lines,
    vote_lines,
)
from jurygraph.explanation.points import Points, PointsLine, describe_losses
from jurygraph.explanation.terms import ExplainedTerm, ExplainedTrace, ExplainedVerdict, Share
from jurygraph.explanation.what_if import Change
from jurygraph.messages import format_factor, format_plain, join_names, shorten
from jurygraph.schema import Adjustment, Decision, GateResult, PrecisionShaping, Trace

_MAX_REASON = 300
_MOST_CHANGES = 10


def to_sentences(explained: ExplainedTrace, points: Points) -> list[str]:
    """Return sentences on a reward: its points in order of cost, missing verdicts, and the range they leave open."""
    trace = explained.trace
    counts = explained.trace.reward.counts
    discarded = explained.with_effect("discarded")
    stopped = explained.with_effect("gated")
    reasons = {one.verdict.reason for one in stopped} - {""}
    materials = [line for line in material_lines(trace) if not any(reason in line for reason in reasons)]
    return [
        *(f"Why: {note}." for note in trace.reward.notes),
        *_point_sentences(explained, points),
        *_adjustment_sentences(explained),
        *(f"{line[0].upper()}{line[1:]}." for line in origin_lines(trace)),
        *(f"{line[0].upper()}{shorten(line[1:], _MAX_REASON)}." for line in materials),
        *(f"{line[0].upper()}{shorten(line[1:], _MAX_REASON)}." for line in judge_lines(trace)),
        *_stopped_sentences(stopped),
        *(f"Discarded: {_name(one)} scored {format_plain(one.score)}, but {discard_reason(one)}." for one in discarded),
        *_unsupported_sentences(explained.verdicts),
        *_missing_sentences(explained.verdicts),
        f"Verdicts: {counts.total} requested; {counts.judged - trace.gated.total()} judged"
        f"{f' ({len(discarded)} of them discarded)' if discarded else ''}, "
        f"{''.join(f'{count} set by {name}, ' for name, count in trace.gated.items())}{counts.abstained} abstained, "
        f"{counts.failed} failed, {counts.not_applicable} not applicable.",
        *(
            f"{_name(one)}: {details}."
            for one in explained.verdicts
            if (details := "; ".join(example_details(one.verdict)))
        ),
        *_range_sentence(explained),
    ]


def reward_sentence(trace: Trace, query: str | None = None) -> str:
    """Return a sentence on the value of the reward, with the first words of the query if they are given."""
    reward = trace.reward
    subject = f"Response {trace.response_id}" + (f" by {trace.agent}" if trace.agent else "")
    subject += f" to task {trace.task_id}" + ("" if query is None else f", “{query}”,")
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} gets {format_plain(reward.value)}{status}."
    counted = [term for term in reward.terms if term.weight and term.value is not None]
    absent = [term.name for term in counted if reward.components[term.name] is None]
    part = "the judged part alone" + (f", without {join_names(absent)}," if absent else "")
    partial = "" if reward.partial is None else f"; {part} would give {format_plain(reward.partial)}"
    return f"{subject} gets no reward: it failed{partial}."


def what_if_sentences(trace: Trace, changes: Sequence[Change]) -> list[str]:
    """Return sentences on the changes that gain most, and the number of those that gain something."""
    useful = [one for one in changes if one.matters]
    lines = []
    groups: dict[tuple[str, str], list[str]] = {}  # changes to the same state with the same effect, as printed
    for one in useful:
        subject, _, state = one.condition.rpartition(" were ")
        groups.setdefault((state, _describe_effect(one, trace.reward.value)), []).append(subject)
    for (state, effect), subjects in list(groups.items())[:_MOST_CHANGES]:
        lines.append(f"If {'any one of ' * (len(subjects) > 1)}{join_names(subjects)} were {state}: {effect}.")
    if hidden := sum(map(len, list(groups.values())[_MOST_CHANGES:])):
        lines.append(f"... and {hidden} more (--json).")
    lines.append(f"{len(useful)} of {len(changes)} single changes would raise it.")
    return lines


def _describe_effect(change: Change, now: float | None) -> str:
    value = format_plain(change.value)
    if change.value is None or now is None:
        return value
    # the difference of the printed numbers, unless these are equal
    gain = round(change.value, 4) - round(now, 4) or change.value - now
    return f"{value} (+{format_factor(gain)})"


def _point_sentences(explained: ExplainedTrace, points: Points) -> Iterator[str]:
    terms = {one.term.name: one for one in explained.terms}
    for line in points.lines:
        yield f"{_describe_line(line)}."
        yield from (f"  {_describe_line(part)}." for part in line.parts)
        one = terms[line.component]
        notes = (*contrast_lines(one), *input_lines(one), *vote_lines(one))
        yield from (f"  {shorten(text, _MAX_REASON)}." for text in notes)
    if points.lines:
        losses = "".join(f" - {format_plain(one.lost)}" for one in points.lines if one.has_loss)
        total = f"{format_plain(points.best)} at best{losses} = {format_plain(points.total)}"
        yield f"Sum: {total}." if explained.trace.reward.value is not None else f"The sum would be {total}."
    absent = [name for name, one in terms.items() if one.term.contribution is None]
    weightless = [one for one in terms.values() if one.term.weight == 0 and one.term.name not in absent]
    if absent:
        yield f"Not applicable, no effect: {', '.join(absent)}."
    if weightless:
        yield f"Weight 0, no points: {', '.join(map(_describe_value, weightless))}."
    for one in weightless:
        yield from (f"{shorten(text, _MAX_REASON)}." for text in contrast_lines(one))


def _describe_value(one: ExplainedTerm) -> str:
    return f"{one.term.name} {format_plain(one.term.value) if one.is_judged else 'not judged'}"


def _describe_line(line: PointsLine) -> str:
    """Describe a line so that its points follow from the numbers in it."""
    points = f"Lost {format_plain(line.lost)}"
    if not line.has_loss and (line.points > 0 or not line.is_penalty):
        points = f"Gained {format_plain(line.points)}"
    answer = {True: " met, P(met)", False: " not met, P(met)", None: ""}[line.met]
    names = f"{'penalty ' if line.is_penalty else ''}{join_names(line.names)}"
    value = format_plain(line.value)
    shown = (
        f"{value}{'' if line.is_penalty or line.value > 1 else ' of 1'}"
        if line.native is None
        else f"{line.native} ({value})"
    )
    weight = " × ".join([format_factor(line.weight), *map(_format_share, line.shares)])
    times = f" × {len(line.names)}" if len(line.names) > 1 else ""
    return (
        f"{points}: {names}{', each' if times else ''}{answer} {shown}, weight {weight}"
        f"{times}{f'; {line.note}' if line.note else ''}{f' ({line.reason})' if line.reason else ''}"
    )


def _format_share(share: Share) -> str:
    weight, total = share
    return format_factor(weight) if total == 1.0 else f"{format_factor(weight)}/{format_factor(total)}"


def _adjustment_sentences(explained: ExplainedTrace) -> Iterator[str]:
    reward = explained.trace.reward
    decision = explained.decision
    terms = {one.term.name: one for one in explained.terms}
    for place, gate in enumerate(reward.gates):
        reason = describe_losses(terms[gate.component].verdicts) if gate.is_reached else ""
        yield f"{_describe_gate(gate, decision, place, terms)}{f' ({reason})' if reason else ''}."
    for change in reward.adjustments:
        if change.name in ("scale", "clip"):
            yield f"{_describe_step(change, decision)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _describe_gate(gate: GateResult, decision: Decision, place: int, terms: dict[str, ExplainedTerm]) -> str:
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


def _describe_step(change: Adjustment, decision: Decision) -> str:
    before = format_plain(change.before)
    after = format_plain(change.after)
    if change.name == "clip" and decision.clip is not None:
        low, high = map(format_plain, decision.clip)
        return f"Clip to {low} to {high}: {before} → {after}"
    return f"Scale: {before} × {format_factor(decision.scale)} = {after}"


def _stopped_sentences(stopped: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each response gate that stopped questions."""
    for gate, reason in dict.fromkeys((one.verdict.gated_by, one.verdict.reason) for one in stopped):
        names = [one.label for one in stopped if (one.verdict.gated_by, one.verdict.reason) == (gate, reason)]
        number = f"{len(names)} verdicts" if len(names) > 1 else "1 verdict"
        yield f"Response gate {gate}: the worst score for {number}, {join_names(names)}{_reason(reason)}."


def _unsupported_sentences(verdicts: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each way in which unsupported verdicts count."""
    for mark, effect in UNSUPPORTED.items():
        names = list(dict.fromkeys(_name(one, sample=False) for one in verdicts if one.verdict.unsupported == mark))
        if names:
            yield f"Unsupported{f' ({len(names)})' if len(names) > 1 else ''}: {join_names(names)}: {effect}."


def _reason(reason: str) -> str:
    """Return a reason for the end of a sentence, if there is one: shortened, without its own full stop."""
    return f": {shorten(reason.rstrip(' .'), _MAX_REASON)}" if reason else ""


def _missing_sentences(verdicts: Iterable[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each reason why verdicts are missing or not applicable, with all of these verdicts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in verdicts:
        verdict = one.verdict
        if one.effect == "not_applicable":
            gate = (
                ""
                if verdict.gated_by is None or verdict.gated_by in verdict.reason
                else f", because of {verdict.gated_by}"
            )
            groups.setdefault(("Not applicable", f"{gate}{_reason(verdict.reason)}"), []).append(
                _name(one, sample=False)
            )
        if one.effect == "unjudged":
            cause = f" ({verdict.failure.cause})" if verdict.failure else ""
            # A reason given before the failure may say something else than the failure.
            reason = verdict.failure.message if verdict.failure and verdict.failure.message else verdict.reason
            key = "Not judged", f" {verdict.status}{cause}{_reason(reason)}"
            groups.setdefault(key, []).append(_name(one, sample=False))
    for (status, why), names in groups.items():
        count = f" ({len(names)})" if len(names) > 1 else ""
        yield f"{status}{count}: {join_names(list(dict.fromkeys(names)))}{why}."


def _range_sentence(explained: ExplainedTrace) -> Iterator[str]:
    reward = explained.trace.reward
    if reward.range is None:
        return
    low, high = map(format_plain, reward.range)
    if reward.range[0] != reward.range[1]:
        yield f"With the missing verdicts the reward would be at most from {low} to {high}."
    elif any(one.effect in ("unjudged", "discarded") for one in explained.verdicts):
        yield "The missing verdicts cannot change the reward."
    elif not explained.with_effect("gated"):
        yield "All verdicts are present."


def _name(one: ExplainedVerdict, sample: bool = True) -> str:
    """Return the name of a verdict with its evaluator, and its sample if its question has several."""
    number = f", sample {one.verdict.sample + 1}" if sample and one.samples > 1 else ""
    judge = f", judge {one.verdict.judge}" if sample and one.verdict.judge else ""
    return f"{one.label} ({one.verdict.evaluator}){judge}{number}"
