"""What was judged of a response, in plain sentences: what stopped it, what cost something, what was not judged."""

from collections.abc import Iterator, Mapping, Set

from jurygraph.cli.contrasts import CONTRAST
from jurygraph.cli.sides import decided_against, opponent, score_for
from jurygraph.cli.text import plain, short
from jurygraph.cli.traces import confidence_needed, samples_of, told_of_examples, too_unsure, was_discarded
from jurygraph.schema import Decision, Input, Reward, Spec, Trace, Verdict
from jurygraph.schema.safety import NO_VARIANT, STOPS

_REASON, _QUOTE = 300, 120
_NEITHER_WAY = (CONTRAST, "consensus")
_WEIGHING = ("adaptive", "weight")
"""The combiner and its input whose verdicts say what counts how much: more of that is no more reward."""


def judged(trace: Trace, decision: Decision) -> Iterator[str]:
    """Why nobody was asked, what was wrong in the order of the response, and what was discarded or not judged."""
    confident = confidence_needed(decision)
    yield from _stopped(trace)
    yield from dict.fromkeys(_losses(_heard(trace, confident), _directions(decision), _rising(decision, trace.reward)))
    yield from _discarded(trace, confident)
    yield from _unjudged(trace)
    yield from _examples(trace)


def _stopped(trace: Trace) -> Iterator[str]:
    """Why nobody was asked."""
    stopped = [verdict for verdict in trace.verdicts if _was_stopped(verdict)]
    for gate, reason in dict.fromkeys((verdict.gated_by, verdict.reason) for verdict in stopped):
        names = [_name(trace.response_id, verdict) for verdict in stopped if verdict.gated_by == gate]
        worst = "it counts as badly as it can" if len(names) == 1 else "each counts as badly as it can"
        asked = "Nobody" if gate == NO_VARIANT else "No model"
        yield f"{asked} was asked about {', '.join(names)}, and {worst}: {gate}, {_said(reason)}."


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
    lost = [(v, cost == 1 or _went_wrong(me, v, directions)) for v, cost in costs if cost > 0]
    wrong = [v for v, is_wrong in lost if is_wrong]
    placed = sorted((v for v in wrong if _start(v) is not None), key=_start)  # type: ignore[arg-type]
    for place, verdict in enumerate(placed):
        yield f"{'Then' if place else 'What was wrong first'}: {_wrong(me, verdict, directions)}."
    for place, verdict in enumerate(v for v in wrong if _start(v) is None):
        yield f"{'Also wrong' if place or placed else 'Wrong'}: {_wrong(me, verdict, directions)}."
    for verdict, is_wrong in lost:
        if not is_wrong and verdict.question in rising:
            yield f"Short of the best: {_scored(me, verdict)}."


def _wrong(response_id: str, verdict: Verdict, directions: Mapping[str, int]) -> str:
    """What a verdict says against a response; a penalty is wrong by scoring high."""
    penalty = " as a penalty" if directions.get(verdict.question, 0) < 0 else ""
    return f"{_scored(response_id, verdict, penalty)}{_quotes(verdict)}"


def _went_wrong(response_id: str, verdict: Verdict, directions: Mapping[str, int]) -> bool:
    """Whether the judge decided that a gain is not there, or that something bad is."""
    if directions.get(verdict.question, 0) < 0:
        return verdict.met is True
    return decided_against(response_id, verdict)


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
        for one in _inputs_that_can_rise(spec, reward.parts.get(spec.name, {}))
        for question in one.questions
    )


def _inputs_that_can_rise(spec: Spec, parts: Mapping[str, float]) -> list[Input]:
    """Return the inputs of a component, without those that are worth nothing because another makes the product 0."""
    if spec.combiner != "product" or 0 not in parts.values():
        return list(spec.inputs.values())
    return [one for name, one in spec.inputs.items() if parts.get(name) == 0]


def _cost(response_id: str, verdict: Verdict, directions: Mapping[str, int]) -> float:
    """How far the verdict lies from the best that it could be for this response, in [0, 1]; 0 if it does not count."""
    score = score_for(response_id, verdict)
    assert score is not None
    direction = directions.get(verdict.question, 0)
    return 0.0 if direction == 0 else 1 - score if direction > 0 else score


def _scored(response_id: str, verdict: Verdict, manner: str = "") -> str:
    return f"{_name(response_id, verdict)} scored {plain(score_for(response_id, verdict))}{manner}{_reason(verdict)}"


def _reason(verdict: Verdict) -> str:
    return f": {_said(verdict.reason)}" if verdict.reason else ""


def _said(reason: str) -> str:
    """A reason as a part of a sentence: the sentence has its own full stop."""
    return short(reason.rstrip(" ."), _REASON)


def _start(verdict: Verdict) -> int | None:
    """Where in the response its evidence begins; None where it has no place there."""
    return min((e.start for e in verdict.evidence if e.start is not None), default=None)


def _quotes(verdict: Verdict) -> str:
    """Quotations that the reason does not hold; none that is said to stand in the response and does not."""
    true = [short(e.quote, _QUOTE) for e in verdict.evidence if e.verified or e.source != "response"]
    quotes = [f"“{quote}”" for quote in true[:3] if quote not in _reason(verdict)]
    return f", as in {', '.join(quotes)}" if quotes else ""


def _discarded(trace: Trace, confident: Mapping[str, float]) -> Iterator[str]:
    """The verdicts that count as if their judges had abstained, since these were not sure enough."""
    several = _asked_repeatedly(trace)
    for verdict in trace.verdicts:
        needed = confident.get(verdict.question, 0.0)
        if was_discarded(verdict, needed):
            score = plain(score_for(trace.response_id, verdict))
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


def _why_unjudged(verdict: Verdict) -> str:
    """What its failure says, else its reason: that may have been given before it failed, and say something else."""
    told = verdict.failure.message if verdict.failure and verdict.failure.message else verdict.reason
    return f": {_said(told)}" if told else ""


def _sample(trace: Trace, verdict: Verdict, several: Set[str]) -> str:
    """A verdict by its name, and by its sample where its question has several."""
    sample = f", sample {verdict.sample + 1}" if verdict.question in several else ""
    return f"{_name(trace.response_id, verdict)}{sample}"


def _name(response_id: str, verdict: Verdict) -> str:
    member, other = verdict.stakeholder or verdict.reviewer, opponent(response_id, verdict)
    of = f" of {member}" if member and member != verdict.subject else ""
    against = f" against {other}" if other else ""
    return f"{verdict.subject}{of}{against} ({verdict.evaluator})"
