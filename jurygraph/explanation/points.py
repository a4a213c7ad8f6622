"""Points of a reward: what every term and each of its parts gained and lost; and the changes that would matter.

A penalty is best at 0. A change is decided again, with one verdict at its best value, or one gate passed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isclose
from typing import Literal, NamedTuple

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import ROUNDING, compute_rewards, has_independent_rows
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.terms import UNSUPPORTED, ExplainedTerm, ExplainedTrace, ExplainedVerdict
from jurygraph.messages import format_factor, format_plain, join_names, shorten
from jurygraph.schema import Decision, FrozenModel, GateResult, Question, RecordedVerdict, Trace
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.plan import SUBMITTED, TurnReduction
from jurygraph.schema.verdict import RESPONSE_GATES

_LEAST = 0.5e-4
"""Points below this are printed as 0."""
_MAX_REASON = 300
_MAX_QUOTE = 120
_MOST_REASONS = 3


class PointsLine(FrozenModel):
    """A summand of a reward or of a component: points = weight × value, once for each of `names`.

    `lost` are the points up to the best value: 1, or 0 for a penalty, whose signed weight is negative, or the value
    itself if it is better than that. `answer` is the judge's own value on its scale.
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
    def has_loss(self) -> bool:
        """Return True if the points that were lost are printed as more than 0."""
        return self.lost >= _LEAST

    def __str__(self) -> str:
        """Describe the line so that its points follow from the numbers in it."""
        is_penalty = self.weight < 0
        is_gain = not self.has_loss and (self.points > 0 or not is_penalty)
        points = (
            f"Gained {format_plain(self.points)}" if is_gain else f"Lost {format_plain(self.lost)}"
        )
        names = f"{'penalty ' if is_penalty else ''}{join_names(self.names)}"
        value = format_plain(self.value)
        shown = f"{value}{'' if is_penalty or self.value > 1 else ' of 1'}"
        if self.answer:
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


def term_line(component: ExplainedTerm) -> PointsLine:
    term = component.term
    parts = _split(component)
    only = parts[0] if len(parts) == 1 else None
    notes = [] if component.is_judged else ["not judged"]
    notes += [only.note] if only else [] if parts else _rule_notes(component)
    notes += (
        [component.combiner.describe_rule(component.params)]
        if component.combiner.counts_criteria
        else []
    )
    verdicts = only.verdicts if only else () if parts else component.verdicts
    whole = _Part(
        term.name,
        term.value or 0.0,
        1.0,
        verdicts if component.is_judged else (),
        "; ".join(filter(None, notes)),
    )
    line = _line(component, whole, (term.name,))
    return line if only else line.model_copy(update={"parts": _part_lines(component, parts)})


def by_cost(line: PointsLine) -> tuple[float, float, Sequence[str]]:
    """Return the sort key of a line; what is printed alike is ordered by name."""
    return -round(line.lost, 4), -round(line.points, 4), line.names


def _line(component: ExplainedTerm, part: _Part, names: tuple[str, ...]) -> PointsLine:
    weight = component.term.weight * part.share
    points = weight * part.value
    lost = max(weight, 0.0, points) - points
    # Without a loss nothing is explained, so that lossless parts are alike, whatever their scales are.
    is_explained = lost >= _LEAST or any(
        verdict.effect in ("unjudged", "discarded") for verdict in part.verdicts
    )
    return PointsLine(
        component=component.term.name,
        names=names,
        points=points,
        lost=lost,
        value=part.value,
        weight=weight,
        answer=_answer(part) if is_explained else "",
        note=part.note,
        reason=describe_losses(part.verdicts) if is_explained else "",
    )


def _answer(part: _Part) -> str:
    """Return the judge's own answer if the part has the value of its only verdict."""
    verdict = part.verdicts[0] if len(part.verdicts) == 1 else None
    return (
        verdict.native or ""
        if verdict and verdict.effect != "discarded" and part.value == verdict.score
        else ""
    )


def _part_lines(component: ExplainedTerm, parts: Sequence[_Part]) -> tuple[PointsLine, ...]:
    """Return a line for each part of a component; parts that are alike in everything but their names share one."""
    labels = [{verdict.name for verdict in part.verdicts} for part in parts]
    names = [
        part.name if len(own) != 1 else min(own) for part, own in zip(parts, labels, strict=True)
    ]
    counts = Counter(names)
    groups: dict[PointsLine, list[str]] = {}
    for part, name in zip(parts, names, strict=True):
        groups.setdefault(_line(component, part, ()), []).append(
            name if counts[name] == 1 else part.name
        )
    lines = [
        line.model_copy(
            update={
                "names": tuple(sorted(alike)),
                "points": line.points * len(alike),
                "lost": line.lost * len(alike),
            }
        )
        for line, alike in groups.items()
    ]
    return tuple(sorted(lines, key=by_cost))


def _split(component: ExplainedTerm) -> list[_Part]:
    """Return the summands of a component; empty if it is not a sum of its inputs."""
    if component.term.value is None or not (
        component.combiner.is_sum or len(component.inputs) == 1
    ):
        return []
    values = component.parts or dict.fromkeys(
        component.inputs.keys() - component.inapplicable, component.term.value
    )
    weights = {name: use.input_weight for name, use in component.inputs.items() if name in values}
    if component.combiner.counts_criteria:
        weights = {
            name: weight if component.inputs[name].weights[0] > 0 else -weight
            for name, weight in weights.items()
        }
    total = sum(weight for weight in weights.values() if weight > 0)
    if total <= 0 or (
        component.term.weight < 0 and min(weights.values()) < 0
    ):  # nothing may lower a penalty
        return []
    parts = [
        part
        for name, weight in weights.items()
        for part in _split_input(component, name, values[name], weight / total)
    ]
    value = sum(part.share * part.value for part in parts)
    best = sum(part.share for part in parts if part.share > 0)
    return (
        parts
        if isclose(value, component.term.value, abs_tol=1e-9) and isclose(best, 1.0, abs_tol=1e-9)
        else []
    )


def _split_input(component: ExplainedTerm, name: str, value: float, share: float) -> list[_Part]:
    """Return the questions of an input if their mean is its value, else the whole input."""
    questions = list(component.questions_of(name))
    verdicts = component.verdicts_of(name)
    total = sum(weight for _, weight, _ in questions)
    own = sum(weight * mean for _, weight, mean in questions) / total if total else value
    if not isclose(own, value, abs_tol=1e-9):
        return [
            _Part(name, value, share, verdicts, _describe_reduction(component, name, own, value))
        ]
    if len(questions) < 2:
        return [_Part(name, value, share, verdicts, _describe_turns(component, name))]
    return [
        _Part(
            question,
            mean,
            share * weight / total,
            component.verdicts_of(name, question),
            _describe_turns(component, name, question),
        )
        for question, weight, mean in questions
    ]


_TURNS: Mapping[TurnReduction, str] = {
    "mean": "the mean of its turns",
    "min": "the worst of its turns",
    "last": "its last turn",
    "first_failure": "the share of its turns before the first that fails",
}


def _describe_turns(component: ExplainedTerm, name: str, question: str | None = None) -> str:
    """Return how the turns of a conversation gave an input, or one of its questions, its value."""
    turns = component.inputs[name].turns
    reductions = {reduction for judged, reduction in turns.items() if question in (None, judged)}
    return _TURNS[reductions.pop()] if len(reductions) == 1 else ""


def _describe_reduction(component: ExplainedTerm, name: str, own: float, value: float) -> str:
    """Describe what reduced an input's own value: the prerequisites of a criterion, or the cap of a utility."""
    names = list(component.inputs)
    shown = []
    for parent, child, retention in sorted(
        component.combiner.prerequisites(component.params), key=lambda edge: edge[:2]
    ):
        if names[child] == name:
            held = component.parts.get(names[parent])
            state = "without a value" if held is None else f"at {format_plain(held)}"
            state = "not judged" if names[parent] in component.unjudged else state
            shown.append(
                f"{names[parent]} {state}{'' if retention is None else f', λ {format_plain(retention)}'}"
            )
    if shown:
        factor = format_plain(value / own if own else 1.0)
        judged = component.verdicts_of(name)
        native = f" ({judged[0].native})" if len(judged) == 1 and judged[0].native else ""
        return (
            f"{format_plain(value)} = {format_plain(own)}{native} × {factor}, by {'; '.join(shown)}"
        )
    is_capped = component.params.get("cap") and value < own
    return f"{format_plain(own)}, capped by its hard constraints" if is_capped else ""


def _rule_notes(component: ExplainedTerm) -> Iterator[str]:
    """Describe how a component that is no weighted mean follows from its parts."""
    if not component.parts:
        return
    combiner = component.combiner
    is_weighted = combiner.aggregates_utilities and not combiner.is_product
    total = (
        sum(component.inputs[name].input_weight for name in component.parts) if is_weighted else 1.0
    )
    shown = []
    for name, value in component.parts.items():
        weight = (
            component.inputs[name].input_weight / total
            if is_weighted
            else component.diagnostics.get(f"weight of {name}")
        )
        remarks = [] if weight is None else [f"weight {format_plain(weight)}"]
        remarks += ["not judged"] if component.is_unjudged_part(name) else []
        shown.append(
            f"{name} {format_plain(value)}" + (f" ({', '.join(remarks)})" if remarks else "")
        )
    yield f"{' × ' if combiner.is_product else ', '}".join(shown)
    if component.inapplicable:
        yield f"{', '.join(component.inapplicable)} not applicable"
    if is_weighted:
        yield combiner.describe_rule(component.params)
    if component.is_judged:
        yield from combiner.describe_value(
            component.params, component.diagnostics, component.is_filled_in
        )


def describe_losses(verdicts: Sequence[ExplainedVerdict]) -> str:
    """Return why these verdicts are not at their best, each different reason once, with its count if there are more."""
    labels: dict[str, list[str]] = {}
    for verdict in verdicts:
        if text := _describe_loss(verdict):
            labels.setdefault(text, []).append(verdict.label)
    several = len({verdict.label for verdict in verdicts}) > 1
    shown = []
    for text, concerned in labels.items():
        names = dict.fromkeys(concerned)
        times = f", {len(concerned)} times" if len(concerned) > len(names) else ""
        shown.append(f"{f'{join_names(list(names))}: ' if several else ''}{text}{times}")
    more = [f"and {len(shown) - _MOST_REASONS} more"] if len(shown) > _MOST_REASONS else []
    return "; ".join([*shown[:_MOST_REASONS], *more])


def _describe_loss(verdict: ExplainedVerdict) -> str:
    if verdict.effect in ("unjudged", "discarded"):
        return "not judged" if verdict.effect == "unjudged" else "discarded"
    if verdict.effect == "gated":
        return f"stopped by {verdict.verdict.gated_by}"
    if verdict.effect != "deduction":
        return ""
    calibrated = f"{format_plain(verdict.score)}, calibrated to {format_plain(verdict.counted)}"
    reason = shorten(verdict.verdict.reason.rstrip(" ."), _MAX_REASON)
    quotes = [
        shorten(e.quote, _MAX_QUOTE)
        for e in verdict.verdict.evidence
        if e.verified or e.source != "response"
    ]
    new = ", ".join(f"“{quote}”" for quote in quotes[:3] if quote not in reason)
    quoted = ", as in ".join(filter(None, (reason, new)))
    return ": ".join(filter(None, (calibrated if verdict.counted != verdict.score else "", quoted)))


def to_sentences(explained: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    """Return sentences on a reward: its points in order of cost, missing verdicts, and the range they leave open."""
    reward = explained.trace.reward
    yield _reward_sentence(explained.trace)
    yield from (f"Why: {note}." for note in reward.notes)
    yield from _point_sentences(explained, lines)
    yield from _adjustment_sentences(explained)
    yield from _verdict_sentences(explained.verdicts)
    counts = reward.counts
    gated = explained.trace.gated
    discarded = sum(verdict.effect == "discarded" for verdict in explained.verdicts)
    yield (
        f"Verdicts: {counts.total} requested; {counts.judged - gated.total()} judged"
        f"{f' ({discarded} of them discarded)' if discarded else ''}, "
        f"{''.join(f'{count} set by {name}, ' for name, count in gated.items())}{counts.abstained} abstained, "
        f"{counts.failed} failed, {counts.not_applicable} not applicable."
    )
    effects = {verdict.effect for verdict in explained.verdicts}
    if reward.range is None:
        return
    low, high = reward.range
    if low != high:
        yield f"With the missing verdicts the reward would be between {format_plain(low)} and {format_plain(high)}."
    elif effects & {"unjudged", "discarded"}:
        yield "The missing verdicts cannot change the reward."
    elif "gated" not in effects:
        yield "All verdicts are present."


def _reward_sentence(trace: Trace) -> str:
    reward = trace.reward
    subject = f"Response {trace.response_id}{f' by {trace.agent}' if trace.agent else ''} to task {trace.task_id}"
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} gets {format_plain(reward.value)}{status}."
    partial = (
        ""
        if reward.partial is None
        else f"; the judged part alone would give {format_plain(reward.partial)}"
    )
    return f"{subject} gets no reward: it failed{partial}."


def _point_sentences(explained: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    for line in lines:
        yield f"{line}."
        yield from (f"  {part}." for part in line.parts)
    if lines:
        best = format_plain(sum(line.points + line.lost for line in lines))
        losses = "".join(f" - {format_plain(line.lost)}" for line in lines if line.has_loss)
        total = f"{best} at best{losses} = {format_plain(sum(line.points for line in lines))}"
        yield (
            f"Sum: {total}."
            if explained.trace.reward.value is not None
            else f"The sum would be {total}."
        )
    absent = [
        component.term.name for component in explained.terms if component.term.contribution is None
    ]
    if absent:
        yield f"Not applicable, no effect: {', '.join(absent)}."
    weightless = [
        f"{component.term.name} {format_plain(component.term.value) if component.is_judged else 'not judged'}"
        for component in explained.terms
        if component.term.weight == 0 and component.term.name not in absent
    ]
    if weightless:
        yield f"Weight 0, no points: {', '.join(weightless)}."


def _adjustment_sentences(explained: ExplainedTrace) -> Iterator[str]:
    reward = explained.trace.reward
    decision = explained.decision
    terms = {component.term.name: component for component in explained.terms}
    for gate in reward.gates:
        yield _describe_gate(gate, terms)
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


def _describe_gate(gate: GateResult, terms: Mapping[str, ExplainedTerm]) -> str:
    name = f"{gate.kind.capitalize()} gate: {gate.component}"
    if gate.value is None:
        return f"{name} not applicable: no effect."
    shown = f"{name} {format_plain(gate.value)}{' at worst (verdicts are missing)' if gate.is_worst_case else ''}"
    threshold = format_factor(gate.threshold)
    is_reached = gate.value < gate.threshold if gate.op == "<" else gate.value > gate.threshold
    if not is_reached:
        return f"{shown} {'≤' if gate.op == '>' else '≥'} {threshold}: no effect."
    reason = describe_losses(terms[gate.component].verdicts)
    effect = f"reward {format_plain(gate.after)} (before: {format_plain(gate.before)})"
    return f"{shown} {gate.op} {threshold} → {effect}{f' ({reason})' if reason else ''}."


def _verdict_sentences(verdicts: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each reason why verdicts do not count as they were judged, with all of these verdicts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        for heading, detail in _describe_effects(verdict):
            names = groups.setdefault((heading, shorten(detail.rstrip(" ."), _MAX_REASON)), [])
            names.append(f"{verdict.label} ({verdict.verdict.evaluator})")
    for (heading, detail), names in groups.items():
        count = f" ({len(names)})" if len(names) > 1 else ""
        yield f"{heading}{count}: {join_names(list(dict.fromkeys(names)))}{f': {detail}' if detail else ''}."


def _describe_effects(explained: ExplainedVerdict) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    if explained.effect == "gated":
        yield f"Response gate {verdict.gated_by}, the worst score", verdict.reason
    if explained.effect == "discarded":
        yield (
            "Discarded",
            f"confidence {verdict.confidence:.4f} is below {explained.required_confidence:.4f}",
        )
    if verdict.unsupported is not None:
        yield "Unsupported", UNSUPPORTED[verdict.unsupported]
    if explained.effect == "not_applicable":
        is_named = verdict.gated_by is None or verdict.gated_by in verdict.reason
        cause = ": ".join(filter(None, (f"because of {verdict.gated_by}", verdict.reason)))
        yield "Not applicable", verdict.reason if is_named else cause
    if explained.effect == "unjudged":
        failure = verdict.failure
        cause = f" ({failure.cause})" if failure else ""
        # a reason given before the failure may say something else than the failure
        yield (
            f"Not judged, {verdict.status}{cause}",
            (failure and failure.message) or verdict.reason,
        )


ChangeKind = Literal["verdict", "response gate", "reward gate"]
_MOST_CHANGES = 10
_Key = tuple[str, ...]
_Scores = Mapping[str, float]
"""Scores to try, by question."""


class Change(FrozenModel):
    """A change of one verdict (with all its samples) or of one gate, and the reward that the decision then gives.

    `value` is None if the reward then fails, and `gain` if it fails with or without the change. `question` is that of
    the verdict, empty for a gate. `condition` has it too where several changes have the same `name`.
    """

    kind: ChangeKind
    name: str
    question: str = ""
    condition: str
    value: Number | None
    gain: Number | None

    @property
    def matters(self) -> bool:
        """Return True if the change leads to a higher reward, or to a reward where there is none."""
        return self.value is not None if self.gain is None else self.gain > ROUNDING


def find_changes(
    explained: ExplainedTrace,
    questions: Sequence[Question],
    read_group: Callable[[], Sequence[Trace]],
    combiners: Combiners,
) -> list[Change]:
    """Return all single changes, those that gain most first.

    Raises InputError if other responses of the group are needed, and TraceMismatch if the verdicts do not give the
    reward of the trace.
    """
    trace = explained.trace
    is_independent = has_independent_rows(explained.decision, questions, combiners)
    group = (trace,) if is_independent else read_group()
    if not is_independent:
        _require_group(trace, group, questions)
    names = [member.response_id for member in group]
    own = [
        verdict
        for member in group
        for verdict in member.verdicts
        if verdict.about == member.response_id
    ]

    def decide(decision: Decision, key: _Key = (), scores: _Scores | None = None) -> float | None:
        verdicts = (
            own
            if scores is None
            else [_revise(one, scores) if _key(one) == key else one for one in own]
        )
        return compute_rewards(decision, questions, names, verdicts, combiners)[
            names.index(trace.response_id)
        ].value

    now = decide(explained.decision)
    if now != trace.reward.value:
        expected = f"has reward {format_plain(trace.reward.value)}, and its verdicts give {format_plain(now)}"
        problem = f"the trace of response {trace.response_id!r} {expected}"
        raise TraceMismatch(f"{problem} under this decision; give the plan of its run")
    groups: dict[_Key, list[ExplainedVerdict]] = defaultdict(list)
    for verdict in explained.verdicts:
        if verdict.verdict.status != "not_applicable":
            groups[_key(verdict.verdict)].append(verdict)
    labels = Counter(verdicts[0].label for verdicts in groups.values())
    changes: list[Change] = []

    def add(
        kind: ChangeKind, name: str, condition: str, value: float | None, question: str = ""
    ) -> None:
        gain = None if value is None or now is None else value - now
        changes.append(
            Change(
                kind=kind, name=name, question=question, condition=condition, value=value, gain=gain
            )
        )

    for key, verdicts in groups.items():
        tried = [(decide(explained.decision, key, scores), scores) for scores in _options(verdicts)]
        value, scores = max(tried, key=lambda option: (option[0] is not None, option[0] or 0.0))
        first = verdicts[0]
        question = first.verdict.question
        if first.verdict.gated_by in RESPONSE_GATES:
            text = f"{key[1]} had not stopped it, and all {len(verdicts)} verdicts that it settled were at their best"
            add("response gate", key[1], text, value)
        else:
            shown = first.verdict.responses
            where = (
                question if len(shown) != 1 or shown[0] == key[0] else f"{question} of {shown[0]}"
            )  # of a variant
            label = first.label if labels[first.label] == 1 else f"{first.label} ({where})"
            add(
                "verdict",
                first.label,
                f"{label} were {_describe_score(first, scores[question])}",
                value,
                question,
            )
    for gate, result in zip(explained.decision.gates, trace.reward.gates, strict=True):
        rest = tuple(other for other in explained.decision.gates if other is not gate)
        value = decide(explained.decision.model_copy(update={"gates": rest}))
        limit = f"{'≤' if result.op == '>' else '≥'} {format_plain(result.threshold)}"
        text = f"the {gate.kind} gate were passed ({result.component} {limit})"
        add("reward gate", f"{gate.kind} gate", text, value)
    return sorted(
        changes,
        key=lambda change: (-(change.gain or 0.0), -(change.value or 0.0), change.condition),
    )


def change_sentences(changes: Sequence[Change]) -> Iterator[str]:
    useful = [change for change in changes if change.matters]
    for change in useful[:_MOST_CHANGES]:
        gain = "" if change.gain is None else f" (+{format_factor(change.gain)})"
        yield f"If {change.condition}: {format_plain(change.value)}{gain}."
    if len(useful) > _MOST_CHANGES:
        yield f"... and {len(useful) - _MOST_CHANGES} more (--json)."
    yield f"{len(useful)} of {len(changes)} single changes would raise it."


def _require_group(trace: Trace, group: Sequence[Trace], questions: Sequence[Question]) -> None:
    submitted = {
        question.id for question in questions if question.material == SUBMITTED
    }  # not on variants
    compared = {
        name
        for one in trace.verdicts
        if one.question in submitted
        for name in (one.about, *one.responses)
    }
    if not {trace.response_id, *compared} <= {member.response_id for member in group}:
        raise InputError(
            f"the reward of response {trace.response_id!r} depends on the other responses of its group; "
            "write `trace.explain(group=traces)` with the traces of all of them"
        )


def _key(verdict: RecordedVerdict) -> _Key:
    """Return the identity of a verdict without its sample; all verdicts that one gate settled share theirs."""
    if verdict.gated_by in RESPONSE_GATES:
        return verdict.about, verdict.gated_by or ""
    turn = () if verdict.turn is None else (str(verdict.turn),)
    return verdict.about, verdict.question, *verdict.responses, *turn


def _options(verdicts: Sequence[ExplainedVerdict]) -> Iterator[_Scores]:
    """Return the scores to try: the best for the response, and unless a gate settled them the other end.

    That may be the better one where it depends on the judge, or where a question counts in two components.
    """
    best = {
        verdict.verdict.question: float((verdict.direction >= 0) != verdict.is_mirrored)
        for verdict in verdicts
    }
    yield best
    if verdicts[0].verdict.gated_by not in RESPONSE_GATES:
        yield {question: 1.0 - score for question, score in best.items()}


def _revise(verdict: RecordedVerdict, scores: _Scores) -> RecordedVerdict:
    score = scores[verdict.question]
    unset = dict.fromkeys(("failure", "gated_by", "unsupported", "confidence"))
    return verdict.model_copy(update={"score": score, "met": score == 1.0, "status": "ok", **unset})


def _describe_score(verdict: ExplainedVerdict, score: float) -> str:
    best = int(1.0 - score if verdict.is_mirrored else score)
    scale = verdict.verdict.scale
    if verdict.native is not None and scale is not None:
        return f"{scale[best]:g} on a scale of {scale[0]:g} to {scale[1]:g}"
    return ("not met", "met")[best] if verdict.verdict.met is not None else str(best)
