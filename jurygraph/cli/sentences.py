"""A trace in plain sentences, made from its terms and the decision that they come from."""

from collections.abc import Iterator, Mapping, Set

from jurygraph.cli.contrasts import CONTRAST, contrast_lines
from jurygraph.cli.sides import decided_against, opponent, score_for
from jurygraph.cli.traces import (
    WELFARE,
    confidence_needed,
    made_of,
    read_from,
    rule_of,
    samples_of,
    told_of_examples,
    too_unsure,
    was_discarded,
)
from jurygraph.schema import Decision, Input, Reward, Spec, Term, Trace, Verdict
from jurygraph.schema.safety import NO_VARIANT, STOPS

_REASON = 300
_NEITHER_WAY = (CONTRAST, "consensus")
_WEIGHING = ("adaptive", "weight")
"""The combiner and its input whose verdicts say what counts how much: more of that is no more reward."""
_RUBRICS = ("gear", "hard-local", "hard-transitive")


def sentences(trace: Trace, decision: Decision) -> list[str]:
    """What the reward is, why, what was wrong, what could not be judged, and what that leaves open."""
    reward, confident = trace.reward, confidence_needed(decision)
    return [
        _verdict_on(trace),
        *(f"Why: {note}." for note in reward.notes),
        *_sum(trace, {spec.name: spec for spec in decision.specs}),
        *_changes(reward),
        *(f"{said[0].upper()}{said[1:]}." for said in read_from(trace)),
        *(f"{said[0].upper()}{_short(said[1:], _REASON)}." for said in made_of(trace)),
        *_stopped(trace),
        *dict.fromkeys(_losses(_heard(trace, confident), _directions(decision), _rising(decision, reward))),
        *_discarded(trace, confident),
        *_unjudged(trace),
        *_examples(trace),
        *_openness(reward),
    ]


def _verdict_on(trace: Trace) -> str:
    reward = trace.reward
    who = f"Response {trace.response_id}" + (f" by {trace.agent}" if trace.agent else "")
    if reward.value is not None:
        manner = "" if reward.status == "ok" else ", a degraded reward"
        return f"{who} to task {trace.task_id} gets {_n(reward.value)}{manner}."
    partial = "" if reward.partial is None else f"; what was judged would alone give {_n(reward.partial)}"
    return f"{who} to task {trace.task_id} gets no reward: it failed{partial}."


def _sum(trace: Trace, specs: Mapping[str, Spec]) -> Iterator[str]:
    reward = trace.reward
    counted = [term.contribution for term in reward.terms if term.contribution is not None and term.weight]
    for term in reward.terms:
        yield _term(term)
        parts = reward.parts.get(term.name)
        spec = specs.get(term.name)
        if parts and term.contribution is not None:
            yield _made_of(trace, term.name, parts, spec)
        if spec is not None and spec.combiner == CONTRAST:
            yield from (f"{_short(line, _REASON)}." for line in contrast_lines(trace, spec))
    if len(counted) > 1:
        total = f"{' + '.join(map(_signed, counted))} = {_n(sum(counted))}"
        yield f"Together: {total}." if reward.value is not None else f"Together it would be {total}."


def _term(term: Term) -> str:
    if term.contribution is None:
        return f"{term.name}: does not apply here, and counts nothing."
    if term.weight == 0:
        return f"{term.name}: {_n(term.value)}, which is shown and does not count."
    return f"{term.name}: weight {_n(term.weight)} × value {_n(term.value)} = {_n(term.contribution)}."


def _made_of(trace: Trace, name: str, parts: Mapping[str, float], spec: Spec | None) -> str:
    shown = [f"{part} {_n(value)}{_remark(trace, spec, part, value)}" for part, value in parts.items()]
    usual = spec is None or spec.combiner not in WELFARE or spec.combiner == "stakeholders"
    rule = "" if spec is None or usual else f", and is {rule_of(spec)}"
    return f"{name} is made of {', '.join(shown)}{rule}."


def _remark(trace: Trace, spec: Spec | None, part: str, value: float) -> str:
    """What must be known of a part beside its value: its weight, or how much of what was judged it kept."""
    if spec is None or part not in spec.inputs:
        return ""
    if spec.combiner in WELFARE:
        return f" (weight {_n(spec.inputs[part].mass)})"
    judged = _judged(trace, spec.inputs[part]) if _depends(spec, part) else None
    if judged is None or _n(judged) == _n(value):
        return ""
    return f" (counts {_n(value)} of its {_n(judged)}: held back by a prerequisite that is unmet or was not judged)"


def _depends(spec: Spec, part: str) -> bool:
    """Whether a criterion has a prerequisite; a rubric's edges name criteria by their places."""
    children = spec.params.get("children")
    return spec.combiner in _RUBRICS and isinstance(children, list) and list(spec.inputs).index(part) in children


def _judged(trace: Trace, one: Input) -> float | None:
    """What an input's verdicts say before anything holds it back; None where not all of them were judged."""
    fold = {"min": min, "max": max}.get(one.reduce or "mean", _mean)
    folded = []
    for question in one.questions:
        verdicts = [v for v in trace.verdicts if v.question == question]
        scores = [None if was_discarded(v, one.confident) else score_for(trace.response_id, v) for v in verdicts]
        known = [score for score in scores if score is not None]
        if not known or len(known) < len(scores):
            return None
        folded.append(fold(known))
    return _mean(folded)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _changes(reward: Reward) -> Iterator[str]:
    for change in reward.adjustments:
        verb = "changed" if reward.value is not None else "would have changed"
        yield f"The {change.name} {verb} it from {_n(change.before)} to {_n(change.after)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _directions(decision: Decision) -> dict[str, int]:
    """For every question that counts: 1 where a higher score means more reward, -1 where it means less.

    What a judge's verdict means to a consensus hangs on how that judge errs: such a question is in no direction.
    """
    directions: dict[str, int] = {}
    for spec in decision.counting:
        for name, one in spec.inputs.items():
            if (spec.combiner, name) == _WEIGHING or spec.combiner in _NEITHER_WAY:
                continue
            for question, weight in zip(one.questions, one.weights, strict=True):
                directions[question] = max(directions.get(question, -1), spec.direction * (1 if weight > 0 else -1))
    return directions


def _rising(decision: Decision, reward: Reward) -> frozenset[str]:
    """The questions with which a term that counts could still rise."""
    absent = {term.name for term in reward.terms if term.contribution is None}
    return frozenset(
        question
        for spec in decision.specs
        if spec.weight and spec.name not in absent
        for name, one in spec.inputs.items()
        if not _annulled(spec, name, reward.parts.get(spec.name, {}))
        for question in one.questions
    )


def _annulled(spec: Spec, name: str, parts: Mapping[str, float]) -> bool:
    """Whether an input is worth nothing, whatever it is, because another one makes the product 0."""
    others = (value for part, value in parts.items() if part != name)
    return spec.combiner == "product" and parts.get(name) != 0 and 0 in others


def _stopped(trace: Trace) -> Iterator[str]:
    """Why nobody was asked."""
    stopped = [verdict for verdict in trace.verdicts if _was_stopped(verdict)]
    for gate, reason in dict.fromkeys((verdict.gated_by, verdict.reason) for verdict in stopped):
        names = [_name(trace.response_id, verdict) for verdict in stopped if verdict.gated_by == gate]
        worst = "it counts as badly as it can" if len(names) == 1 else "each counts as badly as it can"
        asked = "Nobody" if gate == NO_VARIANT else "No model"
        yield f"{asked} was asked about {', '.join(names)}, and {worst}: {gate}, {_short(reason, _REASON)}."


def _was_stopped(verdict: Verdict) -> bool:
    return verdict.gated_by in STOPS and verdict.status == "ok"


def _heard(trace: Trace, confident: Mapping[str, float]) -> Trace:
    """The trace without the verdicts that were discarded."""
    heard = (v for v in trace.verdicts if not was_discarded(v, confident.get(v.question, 0.0)))
    return trace.model_copy(update={"verdicts": tuple(heard)})


def _losses(trace: Trace, directions: Mapping[str, int], rising: frozenset[str]) -> Iterator[str]:
    """The verdicts that cost something: what was wrong, in the order of the response, then what fell a little short.

    Samples that say the same give the same sentence.
    """
    me = trace.response_id
    costs = [(v, _cost(me, v, directions)) for v in trace.verdicts if v.status == "ok" and not _was_stopped(v)]
    wrong = [v for v, cost in costs if cost > 0 and (decided_against(me, v) or cost == 1)]
    for place, verdict in enumerate(sorted(wrong, key=_start)):
        yield f"{'Then' if place else 'What was wrong first'}: {_scored(me, verdict)}{_quotes(verdict)}."
    for verdict, cost in costs:
        if cost > 0 and verdict not in wrong and verdict.question in rising:
            yield f"Short of the best: {_scored(me, verdict)}."


def _cost(response_id: str, verdict: Verdict, directions: Mapping[str, int]) -> float:
    """How far the verdict lies from the best that it could be for this response, in [0, 1]; 0 if it does not count."""
    score = score_for(response_id, verdict)
    assert score is not None
    direction = directions.get(verdict.question, 0)
    return 0.0 if direction == 0 else 1 - score if direction > 0 else score


def _scored(response_id: str, verdict: Verdict) -> str:
    return f"{_name(response_id, verdict)} scored {_n(score_for(response_id, verdict))}{_reason(verdict)}"


def _reason(verdict: Verdict) -> str:
    return f": {_short(verdict.reason, _REASON)}" if verdict.reason else ""


def _start(verdict: Verdict) -> tuple[bool, int]:
    starts = [e.start for e in verdict.evidence if e.start is not None]
    return (not starts, min(starts, default=0))


def _quotes(verdict: Verdict) -> str:
    """Quotations that the reason does not hold; none that is said to stand in the response and does not."""
    true = [_short(e.quote) for e in verdict.evidence if e.verified or e.source != "response"]
    quotes = [f"“{quote}”" for quote in true[:3] if quote not in _reason(verdict)]
    return f", as in {', '.join(quotes)}" if quotes else ""


def _unjudged(trace: Trace) -> Iterator[str]:
    me, counts = trace.response_id, trace.reward.counts
    for verdict in trace.verdicts:
        if verdict.status in ("abstained", "failed"):
            cause = f" ({verdict.failure.cause})" if verdict.failure else ""
            yield f"Not judged: {_name(me, verdict)} {verdict.status}{cause}{_why_unjudged(verdict)}."
        elif verdict.status == "not_applicable":
            gate = f", because of {verdict.gated_by}" if verdict.gated_by else ""
            yield f"Not asked: {_name(me, verdict)}{gate}."
    yield (
        f"Verdicts asked for: {counts.asked}; judged {counts.judged}, abstained {counts.abstained}, "
        f"failed {counts.failed}, not applicable {counts.not_applicable}."
    )


def _discarded(trace: Trace, confident: Mapping[str, float]) -> Iterator[str]:
    """The verdicts that count as if their judges had abstained, since these were not sure enough."""
    several = _asked_repeatedly(trace)
    for verdict in trace.verdicts:
        needed = confident.get(verdict.question, 0.0)
        if was_discarded(verdict, needed):
            score = _n(score_for(trace.response_id, verdict))
            why = too_unsure(verdict, needed)
            yield f"Discarded: {_sample(trace, verdict, several)}: it scored {score}, but {why}."


def _examples(trace: Trace) -> Iterator[str]:
    """For each sample of each reviewer's judge, what it was shown of the past, and what not."""
    several = _asked_repeatedly(trace)
    for verdict in trace.verdicts:
        if said := list(told_of_examples(verdict)):
            yield f"{_sample(trace, verdict, several)}: {'; '.join(said)}."


def _asked_repeatedly(trace: Trace) -> frozenset[str]:
    """The questions of which there are several samples."""
    return frozenset(question for question, samples in samples_of(trace).items() if samples > 1)


def _why_unjudged(verdict: Verdict) -> str:
    """What its failure says, else its reason: that may have been given before it failed, and say something else."""
    told = verdict.failure.message if verdict.failure and verdict.failure.message else verdict.reason
    return f": {_short(told, _REASON)}" if told else ""


def _openness(reward: Reward) -> Iterator[str]:
    if reward.range is None:
        return
    low, high = reward.range
    if low == high:
        yield "Nothing is left open: no verdict is missing that could change it."
    else:
        yield f"Whatever had been judged there, it would lie within {_n(low)} and {_n(high)}."


def _sample(trace: Trace, verdict: Verdict, several: Set[str]) -> str:
    """A verdict by its name, and by its sample where its question has several."""
    sample = f", sample {verdict.sample + 1}" if verdict.question in several else ""
    return f"{_name(trace.response_id, verdict)}{sample}"


def _name(response_id: str, verdict: Verdict) -> str:
    member, other = verdict.stakeholder or verdict.reviewer, opponent(response_id, verdict)
    of = f" of {member}" if member and member != verdict.subject else ""
    against = f" against {other}" if other else ""
    return f"{verdict.subject}{of}{against} ({verdict.evaluator})"


def _n(value: float | None) -> str:
    """Four decimals at most; never minus zero."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def _signed(value: float) -> str:
    return f"({_n(value)})" if _n(value).startswith("-") else _n(value)


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
