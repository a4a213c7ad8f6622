"""Points of a reward: what every term and each of its parts gained, and lost against its best value.

A penalty is best at 0. `to_sentences` is the view of `jurygraph explain`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, isclose
from typing import NamedTuple

from jurygraph.explanation.terms import ExplainedTerm, ExplainedTrace, ExplainedVerdict
from jurygraph.explanation.what_if import Change
from jurygraph.messages import format_factor, format_plain, join_names, shorten
from jurygraph.schema import FrozenModel, GateResult, PrecisionShaping, RewardGate, Trace
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.verdict import Unsupported

_LEAST = 0.5e-4
"""Points below this are printed as 0."""
_MAX_REASON = 300
_MAX_QUOTE = 120
_MOST_REASONS = 3
_MOST_CHANGES = 10
UNSUPPORTED: Mapping[Unsupported | None, str] = {
    "worst-case": "the worst case counts, because no quotation from the response supports it",
    "tie": "it counts as a tie, because no quotation from a response supports it",
    "stands": "it stands, although no quotation from the response supports it",
}
"""How an unsupported verdict counts."""


class PointsLine(FrozenModel):
    """A summand of a reward or of a component: points = weight × value, once for each of `names`.

    `lost` are the points up to the best value: 1, or 0 for a penalty, whose signed weight is negative, or the value
    itself if it is better than that. `answer` is the judge's own: a value on its scale, or "met" or "not met" where the
    value is its P(met).
    `note` says how the value was computed, and `reason` why it is not the best.
    """

    component: str
    names: tuple[str, ...]
    points: Number
    lost: Number
    value: Number
    weight: Number
    answer: str = ""
    note: str = ""
    reason: str = ""
    parts: tuple["PointsLine", ...] = ()

    @property
    def is_penalty(self) -> bool:
        """Return True if a higher value means less reward."""
        return self.weight < 0

    @property
    def has_loss(self) -> bool:
        """Return True if the points that were lost are printed as more than 0."""
        return self.lost >= _LEAST

    def __str__(self) -> str:
        """Describe the line so that its points follow from the numbers in it."""
        points = f"Lost {format_plain(self.lost)}"
        if not self.has_loss and (self.points > 0 or not self.is_penalty):
            points = f"Gained {format_plain(self.points)}"
        names = f"{'penalty ' if self.is_penalty else ''}{join_names(self.names)}"
        value = format_plain(self.value)
        shown = f"{value}{'' if self.is_penalty or self.value > 1 else ' of 1'}"
        if self.answer in ("met", "not met"):
            shown = f"{self.answer}, P(met) {shown}"
        elif self.answer:
            shown = f"{self.answer} ({value})"
        times = f" × {len(self.names)}" if len(self.names) > 1 else ""
        return (
            f"{points}: {names}{', each' if times else ''} {shown}, weight {format_factor(self.weight)}"
            f"{times}{f'; {self.note}' if self.note else ''}{f' ({self.reason})' if self.reason else ''}"
        )


class _Part(NamedTuple):
    """A summand of a component, a question or an input: its value in [0, 1] times its signed share."""

    name: str
    value: float
    share: float
    verdicts: Sequence[ExplainedVerdict]
    note: str = ""

    @property
    def answer(self) -> str:
        """Return the judge's own answer if the part has the value of its only verdict."""
        one = self.verdicts[0] if len(self.verdicts) == 1 else None
        if one is None or one.effect == "discarded" or self.value != one.score:
            return ""
        is_probability = str(one.verdict.native).startswith("P(met)")
        return ("met" if one.verdict.met else "not met") if is_probability else one.native or ""


def term_line(one: ExplainedTerm, kappa: float | None) -> PointsLine:
    """Return the line of a term that counts, with those of its parts; `kappa` is the κ of a rubric, if known."""
    term = one.term
    parts = _split(one)
    gained = term.contribution or 0.0
    lost = max(term.weight, 0.0, gained) - gained
    has_loss = lost >= _LEAST
    only = parts[0] if len(parts) == 1 else None
    verdicts = one.verdicts if only is None else only.verdicts
    rule = one.combiner.describe_rule(one.params) if one.combiner.counts_criteria else ""
    notes = ["" if one.is_judged else "not judged"]
    notes += [only.note] if only else [] if parts else _rule_notes(one)
    notes += [f"κ {format_plain(kappa)}, {rule}" if rule and kappa is not None else rule]
    is_explained = has_loss and one.is_judged and (only or not parts)
    return PointsLine(
        component=term.name,
        names=(term.name,),
        points=gained,
        lost=lost,
        value=term.value or 0.0,
        weight=term.weight * (only.share if only else 1.0),
        answer=only.answer if only else "",
        note="; ".join(filter(None, notes)),
        reason=describe_losses(verdicts) if is_explained else "",
        parts=() if only else _part_lines(one, parts),
    )


def by_cost(line: PointsLine) -> tuple[float, float, Sequence[str]]:
    """Return the sort key of a line; what is printed alike is ordered by name."""
    return -round(line.lost, 4), -round(line.points, 4), line.names


def _part_lines(one: ExplainedTerm, parts: Sequence[_Part]) -> tuple[PointsLine, ...]:
    """Return a line for each part of a component; parts that are alike in everything but their names share one."""
    groups: dict[PointsLine, list[PointsLine]] = {}
    for part, name in zip(parts, _part_names(parts), strict=True):
        weight = one.term.weight * part.share
        gained = weight * part.value
        line = PointsLine(
            component=one.term.name,
            names=(name,),
            points=gained,
            lost=max(weight, 0.0) - gained,
            value=part.value,
            weight=weight,
            answer=part.answer,
            note=part.note,
            reason=describe_losses(part.verdicts),
        )
        if line.lost < 1e-9 and all(one.effect not in ("unjudged", "discarded") for one in part.verdicts):
            line = line.model_copy(update={"answer": "", "note": "", "reason": ""})  # alike, whatever their scales are
        groups.setdefault(line.model_copy(update={"names": ()}), []).append(line)
    return tuple(sorted((_merge(lines) for lines in groups.values()), key=by_cost))


def _merge(lines: Sequence[PointsLine]) -> PointsLine:
    names = tuple(sorted(line.names[0] for line in lines))
    sums = {"points": fsum(line.points for line in lines), "lost": fsum(line.lost for line in lines)}
    return lines[0].model_copy(update={"names": names, **sums})


def _part_names(parts: Sequence[_Part]) -> list[str]:
    """Return the label of each part's only question, with its evaluator if another has the same; or of its input."""
    labels = [{one.label for one in part.verdicts} for part in parts]
    names = [part.name if len(found) != 1 else min(found) for part, found in zip(parts, labels, strict=True)]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({part.verdicts[0].verdict.evaluator})"
        for name, part in zip(names, parts, strict=True)
    ]


def _split(one: ExplainedTerm) -> list[_Part]:
    """Return the summands of a component; empty if it is not a sum of its inputs."""
    if one.term.value is None or not (one.combiner.is_sum or len(one.inputs) == 1):
        return []
    values = one.parts or dict.fromkeys(one.inputs.keys() - one.inapplicable, one.term.value)
    weights = {name: use.input_weight for name, use in one.inputs.items() if name in values}
    if one.combiner.counts_criteria:
        weights = {name: weight if one.inputs[name].weights[0] > 0 else -weight for name, weight in weights.items()}
    total = sum(weight for weight in weights.values() if weight > 0)
    if total <= 0 or (one.term.weight < 0 and min(weights.values()) < 0):  # nothing may lower a penalty
        return []
    parts = [part for name, weight in weights.items() for part in _split_input(one, name, values[name], weight / total)]
    value = sum(part.share * part.value for part in parts)
    best = sum(part.share for part in parts if part.share > 0)
    return parts if isclose(value, one.term.value, abs_tol=1e-9) and isclose(best, 1.0, abs_tol=1e-9) else []


def _split_input(one: ExplainedTerm, name: str, value: float, share: float) -> list[_Part]:
    """Return the questions of an input if their mean is its value, else the whole input."""
    questions = list(one.questions_of(name))
    verdicts = one.verdicts_of(name)
    total = sum(weight for _, weight, _ in questions)
    own = sum(weight * mean for _, weight, mean in questions) / total if total else value
    if not isclose(own, value, abs_tol=1e-9):
        return [_Part(name, value, share, verdicts, _describe_reduction(one, name, own, value))]
    if len(questions) < 2:
        return [_Part(name, value, share, verdicts)]
    by_question: dict[str, list[ExplainedVerdict]] = {}
    for verdict in verdicts:
        by_question.setdefault(verdict.verdict.question, []).append(verdict)
    return [
        _Part(question, mean, share * weight / total, by_question.get(question, []))
        for question, weight, mean in questions
    ]


def _describe_reduction(one: ExplainedTerm, name: str, own: float, value: float) -> str:
    """Describe what reduced an input's own value: the prerequisites of a criterion, or the cap of a utility."""
    names = list(one.inputs)
    shown = []
    for parent, child, retention in sorted(one.combiner.prerequisites(one.params), key=lambda edge: edge[:2]):
        if names[child] == name:
            held = one.parts.get(names[parent])
            state = "without a value" if held is None else f"at {format_plain(held)}"
            state = "not judged" if names[parent] in one.unjudged else state
            shown.append(f"{names[parent]} {state}{'' if retention is None else f', λ {format_plain(retention)}'}")
    if shown:
        judged = one.verdicts_of(name)
        native = f" ({judged[0].native})" if len(judged) == 1 and judged[0].native else ""
        factor = format_plain(value / own if own else 1.0)
        return f"{format_plain(value)} = {format_plain(own)}{native} × {factor}, by {'; '.join(shown)}"
    cap = one.params.get("cap")
    if not cap or value > own:
        return ""
    questions = [one.inputs[name].questions[place] for place in one.params.get("hard", {}).get(name, ())]
    hard = [each for each in one.verdicts_of(name) if each.verdict.question in questions and each.score is not None]
    scores = ", ".join(f"{each.verdict.subject} {format_plain(each.score)}" for each in hard)
    return f"at most {format_plain(cap)} × {format_plain(value / cap)}, the mean of its hard constraints: {scores}"


def _rule_notes(one: ExplainedTerm) -> Iterator[str]:
    """Describe how a component that is no weighted mean follows from its parts."""
    if not one.parts:
        return
    combiner = one.combiner
    weights = {name: one.diagnostics.get(f"weight of {name}") for name in one.parts}
    if combiner.aggregates_utilities and not combiner.is_product and one.spec is not None:
        own = {name: one.spec.inputs[name].input_weight for name in one.parts}
        weights = {name: weight / sum(own.values()) for name, weight in own.items()}
    shown = []
    for name, value in one.parts.items():
        remarks = [] if weights[name] is None else [f"weight {format_plain(weights[name])}"]
        remarks += ["not judged"] if one.is_unjudged_part(name) else []
        shown.append(f"{name} {format_plain(value)}" + (f" ({', '.join(remarks)})" if remarks else ""))
    yield f"{' × ' if combiner.is_product else ', '}".join(shown)
    if one.inapplicable:
        yield f"{', '.join(one.inapplicable)} not applicable"
    if combiner.aggregates_utilities and not combiner.is_product:
        yield combiner.describe_rule(one.params)
    if one.is_judged:
        yield from combiner.describe_value(one.params, one.diagnostics, one.is_filled_in)


def describe_losses(verdicts: Iterable[ExplainedVerdict]) -> str:
    """Return why these verdicts are not at their best, each different reason once, with its count if there are more."""
    labels: dict[str, list[str]] = {}
    for one in verdicts:
        if text := _describe_loss(one):
            labels.setdefault(text, []).append(one.label)
    several = len({one.label for one in verdicts}) > 1
    shown = []
    for text, found in labels.items():
        names = dict.fromkeys(found)
        times = f", {len(found)} times" if len(found) > len(names) else ""
        shown.append(f"{f'{join_names(list(names))}: ' if several else ''}{text}{times}")
    more = [f"and {len(shown) - _MOST_REASONS} more"] if len(shown) > _MOST_REASONS else []
    return "; ".join([*shown[:_MOST_REASONS], *more])


def _describe_loss(one: ExplainedVerdict) -> str:
    if one.effect in ("unjudged", "discarded"):
        return "not judged" if one.effect == "unjudged" else "discarded"
    if one.effect == "gated":
        return f"stopped by {one.verdict.gated_by}"
    if one.effect != "deduction":
        return ""
    reason = shorten(one.verdict.reason.rstrip(" ."), _MAX_REASON)
    if one.counted != one.score:
        calibrated = f"{format_plain(one.score)}, calibrated to {format_plain(one.counted)}"
        reason = f"{calibrated}: {reason}" if reason else calibrated
    true = [shorten(e.quote, _MAX_QUOTE) for e in one.verdict.evidence if e.verified or e.source != "response"]
    new = [quote for quote in true[:3] if quote not in reason]
    link = ", as in " if len(new) == len(true[:3]) else "; also: "  # a reason that quotes is about its own quotation
    return link.join(filter(None, (reason, ", ".join(f"“{quote}”" for quote in new))))


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
    for gate, rule in zip(reward.gates, decision.gates, strict=True):
        reason = describe_losses(terms[gate.component].verdicts) if gate.is_reached else ""
        yield f"{_describe_gate(gate, rule, terms)}{f' ({reason})' if reason else ''}."
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


def _describe_gate(gate: GateResult, rule: RewardGate, terms: Mapping[str, ExplainedTerm]) -> str:
    name = f"{gate.kind.capitalize()} gate: {gate.component}"
    if gate.value is None:
        return f"{name} not applicable: no effect"
    shown = f"{name} {format_plain(gate.value)}{' at worst (verdicts are missing)' if gate.is_worst_case else ''}"
    threshold = format_factor(gate.threshold)
    if not gate.is_reached:
        return f"{shown} {'≤' if gate.op == '>' else '≥'} {threshold}: no effect"
    before = format_plain(gate.before)
    after = format_plain(gate.after)
    effect = f"reward {after} (before: {before})"
    if gate.kind == "repetition":
        effect = f"{before} × (1 - {format_plain(gate.value)}) = {after}"
    if isinstance(rule, PrecisionShaping):
        auxiliary = sum(terms[name].term.contribution or 0.0 for name in rule.auxiliary)
        lost = (
            f"(1 - {format_factor(rule.fraction)}) × {format_plain(auxiliary)} points of {join_names(rule.auxiliary)}"
        )
        effect = f"{before} - {lost} = {after}"
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
        cause = ": ".join(filter(None, (f"because of {verdict.gated_by}", verdict.reason)))
        yield "Not applicable", verdict.reason if is_named else cause
    if one.effect == "unjudged":
        failure = verdict.failure
        cause = f" ({failure.cause})" if failure else ""
        # a reason given before the failure may say something else than the failure
        yield f"Not judged, {verdict.status}{cause}", (failure and failure.message) or verdict.reason
