"""Plain sentences on the verdicts of a response: stopped by a gate, points lost, discarded, not judged."""

from collections.abc import Iterator, Mapping, Set

from jurygraph.cli.pairwise_sides import is_decided_against, opponent, score_for
from jurygraph.cli.render.contrasts import CONTRAST
from jurygraph.cli.render.text import format_plain
from jurygraph.cli.render.trace import discard_reason, example_details, is_discarded, required_confidence, sample_counts
from jurygraph.messages import shorten
from jurygraph.schema import ComponentInput, ComponentSpec, Decision, RecordedVerdict, Reward, Trace
from jurygraph.schema.safety import NO_VARIANT, WORST_CASE_GATES

_REASON, _QUOTE = 300, 120
_WITHOUT_DIRECTION = (CONTRAST, "consensus")
_WEIGHT_INPUT = ("adaptive", "weight")
"""The combiner and its input whose verdicts set weights: a higher score there does not mean a higher reward."""


def verdict_sentences(trace: Trace, decision: Decision) -> Iterator[str]:
    """Return sentences on questions that a gate stopped, on errors in the order of the response, and on verdicts that
    were discarded or are missing.
    """
    confident = required_confidence(decision)
    yield from _stopped_sentences(trace)
    yield from dict.fromkeys(
        _loss_sentences(
            _without_discarded(trace, confident),
            _question_directions(decision),
            _questions_that_can_rise(decision, trace.reward),
        )
    )
    yield from _discarded_sentences(trace, confident)
    yield from _unjudged_sentences(trace)
    yield from _example_sentences(trace)


def _stopped_sentences(trace: Trace) -> Iterator[str]:
    """Return a sentence for each gate that stopped questions."""
    stopped = [verdict for verdict in trace.verdicts if _is_stopped(verdict)]
    for gate, reason in dict.fromkeys((verdict.gated_by, verdict.reason) for verdict in stopped):
        names = [_label(trace.response_id, verdict) for verdict in stopped if verdict.gated_by == gate]
        consequence = "it counts as badly as it can" if len(names) == 1 else "each counts as badly as it can"
        addressee = "Nobody" if gate == NO_VARIANT else "No model"
        yield f"{addressee} was asked about {', '.join(names)}, and {consequence}: {gate}, {_inline_reason(reason)}."


def _is_stopped(verdict: RecordedVerdict) -> bool:
    return verdict.gated_by in WORST_CASE_GATES and verdict.status == "ok"


def _without_discarded(trace: Trace, confident: Mapping[str, float]) -> Trace:
    """Return the trace without discarded verdicts."""
    kept = (v for v in trace.verdicts if not is_discarded(v, confident.get(v.question, 0.0)))
    return trace.model_copy(update={"verdicts": tuple(kept)})


def _loss_sentences(trace: Trace, directions: Mapping[str, int], can_rise: frozenset[str]) -> Iterator[str]:
    """Return sentences on verdicts that cost reward: errors in the order of the response, then scores a little below
    the best.

    Samples with the same answer give the same sentence.
    """
    response_id = trace.response_id
    costs = [
        (v, _score_deficit(response_id, v, directions))
        for v in trace.verdicts
        if v.status == "ok" and not _is_stopped(v)
    ]
    costly = [(v, cost == 1 or _is_error(response_id, v, directions)) for v, cost in costs if cost > 0]
    errors = [v for v, is_wrong in costly if is_wrong]
    placed = sorted((v for v in errors if _evidence_start(v) is not None), key=_evidence_start)  # type: ignore[arg-type]
    for place, verdict in enumerate(placed):
        yield f"{'Then' if place else 'What was wrong first'}: {_describe_error(response_id, verdict, directions)}."
    for place, verdict in enumerate(v for v in errors if _evidence_start(v) is None):
        yield f"{'Also wrong' if place or placed else 'Wrong'}: {_describe_error(response_id, verdict, directions)}."
    for verdict, is_wrong in costly:
        if not is_wrong and verdict.question in can_rise:
            yield f"Short of the best: {_score_phrase(response_id, verdict)}."


def _describe_error(response_id: str, verdict: RecordedVerdict, directions: Mapping[str, int]) -> str:
    """Describe a verdict against a response; a penalty counts against it by a high score."""
    penalty = " as a penalty" if directions.get(verdict.question, 0) < 0 else ""
    return f"{_score_phrase(response_id, verdict, penalty)}{_quotes(verdict)}"


def _is_error(response_id: str, verdict: RecordedVerdict, directions: Mapping[str, int]) -> bool:
    """Return True if the judge decided that a merit is missing, or that a fault is present."""
    if directions.get(verdict.question, 0) < 0:
        return verdict.met is True
    return is_decided_against(response_id, verdict)


def _question_directions(decision: Decision) -> dict[str, int]:
    """Return for every question that counts 1 if a higher score means more reward, -1 if it means less.

    Questions of a consensus have no direction: the effect of a verdict depends on how its judge errs.
    """
    directions: dict[str, int] = {}
    for spec in decision.counting_specs:
        for name, one in spec.inputs.items():
            if (spec.combiner, name) == _WEIGHT_INPUT or spec.combiner in _WITHOUT_DIRECTION:
                continue
            for question, weight in zip(one.questions, one.weights, strict=True):
                directions[question] = max(directions.get(question, -1), spec.direction * (1 if weight > 0 else -1))
    return directions


def _questions_that_can_rise(decision: Decision, reward: Reward) -> frozenset[str]:
    """Return the questions that could still raise a term that counts."""
    absent = {term.name for term in reward.terms if term.contribution is None}
    return frozenset(
        question
        for spec in decision.specs
        if spec.weight and spec.name not in absent
        for one in _inputs_that_can_rise(spec, reward.parts.get(spec.name, {}))
        for question in one.questions
    )


def _inputs_that_can_rise(spec: ComponentSpec, parts: Mapping[str, float]) -> list[ComponentInput]:
    """Return the inputs of a component, without those that are worth nothing because another makes the product 0."""
    if spec.combiner != "product" or 0 not in parts.values():
        return list(spec.inputs.values())
    return [one for name, one in spec.inputs.items() if parts.get(name) == 0]


def _score_deficit(response_id: str, verdict: RecordedVerdict, directions: Mapping[str, int]) -> float:
    """Return how far the score is from the best one for this response, in [0, 1]; 0 if it does not count."""
    score = score_for(response_id, verdict)
    assert score is not None
    direction = directions.get(verdict.question, 0)
    return 0.0 if direction == 0 else 1 - score if direction > 0 else score


def _score_phrase(response_id: str, verdict: RecordedVerdict, manner: str = "") -> str:
    score = format_plain(score_for(response_id, verdict))
    return f"{_label(response_id, verdict)} scored {score}{manner}{_reason(verdict)}"


def _reason(verdict: RecordedVerdict) -> str:
    return f": {_inline_reason(verdict.reason)}" if verdict.reason else ""


def _inline_reason(reason: str) -> str:
    """Return a reason for use inside a sentence: shortened, without its own full stop."""
    return shorten(reason.rstrip(" ."), _REASON)


def _evidence_start(verdict: RecordedVerdict) -> int | None:
    """Return where in the response the evidence begins; None if it has no position there."""
    return min((e.start for e in verdict.evidence if e.start is not None), default=None)


def _quotes(verdict: RecordedVerdict) -> str:
    """Quotations that the reason does not hold; none that is said to stand in the response and does not."""
    true = [shorten(e.quote, _QUOTE) for e in verdict.evidence if e.verified or e.source != "response"]
    quotes = [f"“{quote}”" for quote in true[:3] if quote not in _reason(verdict)]
    return f", as in {', '.join(quotes)}" if quotes else ""


def _discarded_sentences(trace: Trace, confident: Mapping[str, float]) -> Iterator[str]:
    """Return sentences on verdicts below the required confidence, which count as abstentions."""
    several = _questions_with_samples(trace)
    for verdict in trace.verdicts:
        needed = confident.get(verdict.question, 0.0)
        if is_discarded(verdict, needed):
            score = format_plain(score_for(trace.response_id, verdict))
            why = discard_reason(verdict, needed)
            yield f"Discarded: {_sample_label(trace, verdict, several)}: it scored {score}, but {why}."


def _example_sentences(trace: Trace) -> Iterator[str]:
    """Return for each sample of a reviewer's judge the past examples that it was shown or not shown."""
    several = _questions_with_samples(trace)
    for verdict in trace.verdicts:
        if parts := list(example_details(verdict)):
            yield f"{_sample_label(trace, verdict, several)}: {'; '.join(parts)}."


def _questions_with_samples(trace: Trace) -> frozenset[str]:
    """Return the questions that have several samples."""
    return frozenset(question for question, samples in sample_counts(trace).items() if samples > 1)


def _unjudged_sentences(trace: Trace) -> Iterator[str]:
    response_id, counts = trace.response_id, trace.reward.counts
    for verdict in trace.verdicts:
        if verdict.status in ("abstained", "failed"):
            cause = f" ({verdict.failure.cause})" if verdict.failure else ""
            yield f"Not judged: {_label(response_id, verdict)} {verdict.status}{cause}{_unjudged_reason(verdict)}."
        elif verdict.status == "not_applicable":
            gate = f", because of {verdict.gated_by}" if verdict.gated_by else ""
            yield f"Not asked: {_label(response_id, verdict)}{gate}."
    yield (
        f"Verdicts asked for: {counts.total}; judged {counts.judged}, abstained {counts.abstained}, "
        f"failed {counts.failed}, not applicable {counts.not_applicable}."
    )


def _unjudged_reason(verdict: RecordedVerdict) -> str:
    """Return the failure message, else the reason: a reason given before the failure may say something else."""
    text = verdict.failure.message if verdict.failure and verdict.failure.message else verdict.reason
    return f": {_inline_reason(text)}" if text else ""


def _sample_label(trace: Trace, verdict: RecordedVerdict, several: Set[str]) -> str:
    """Return the name of a verdict, with the sample number if its question has several."""
    sample = f", sample {verdict.sample + 1}" if verdict.question in several else ""
    return f"{_label(trace.response_id, verdict)}{sample}"


def _label(response_id: str, verdict: RecordedVerdict) -> str:
    member, other = verdict.stakeholder or verdict.reviewer, opponent(response_id, verdict)
    owner = f" of {member}" if member and member != verdict.subject else ""
    against = f" against {other}" if other else ""
    return f"{verdict.subject}{owner}{against} ({verdict.evaluator})"
