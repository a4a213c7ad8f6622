"""A trace in plain sentences, made from its terms and the decision that they come from."""

from collections.abc import Iterator, Mapping

from jurygraph.schema import Decision, Reward, Term, Trace, Verdict


def sentences(trace: Trace, decision: Decision) -> list[str]:
    """What the reward is, why, what was wrong, what could not be judged, and what that leaves open."""
    reward = trace.reward
    return [
        _verdict_on(trace),
        *(f"Why: {note}." for note in reward.notes),
        *_sum(reward),
        *_changes(reward),
        *_losses(trace, _directions(decision)),
        *_unjudged(trace),
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


def _sum(reward: Reward) -> Iterator[str]:
    counted = [term.contribution for term in reward.terms if term.contribution is not None and term.weight]
    yield from map(_term, reward.terms)
    if len(counted) > 1:
        total = f"{' + '.join(map(_signed, counted))} = {_n(sum(counted))}"
        yield f"Together: {total}." if reward.value is not None else f"Together it would be {total}."


def _term(term: Term) -> str:
    if term.contribution is None:
        return f"{term.name}: does not apply here, and counts nothing."
    if term.weight == 0:
        return f"{term.name}: {_n(term.value)}, which is shown and does not count."
    return f"{term.name}: weight {_n(term.weight)} × value {_n(term.value)} = {_n(term.contribution)}."


def _changes(reward: Reward) -> Iterator[str]:
    for change in reward.adjustments:
        yield f"The {change.name} changed it from {_n(change.before)} to {_n(change.after)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _directions(decision: Decision) -> dict[str, int]:
    """For every question that counts: 1 where a higher score means more reward, -1 where it means less."""
    gates = {gate.component for gate in decision.gates}
    directions: dict[str, int] = {}
    for spec in decision.specs:
        if spec.weight == 0 and spec.name not in gates:
            continue
        for one in spec.inputs.values():
            for question, weight in zip(one.questions, one.weights, strict=True):
                directions[question] = max(directions.get(question, -1), spec.direction * (1 if weight > 0 else -1))
    return directions


def _losses(trace: Trace, directions: Mapping[str, int]) -> Iterator[str]:
    """The verdicts that cost something: what was wrong, in the order of the response, then what fell a little short."""
    costs = [(v, _cost(trace, v, directions)) for v in trace.verdicts if v.status == "ok"]
    wrong = [v for v, cost in costs if cost > 0 and (v.met is False or cost == 1)]
    for place, verdict in enumerate(sorted(wrong, key=_start)):
        yield f"{'Then' if place else 'What was wrong first'}: {_scored(verdict)}{_quotes(verdict)}."
    for verdict, cost in costs:
        if cost > 0 and verdict not in wrong:
            yield f"Short of the best: {_scored(verdict)}."


def _cost(trace: Trace, verdict: Verdict, directions: Mapping[str, int]) -> float:
    """How far the verdict lies from the best that it could be for this response, in [0, 1]; 0 if it does not count."""
    assert verdict.score is not None
    direction = directions.get(verdict.question, 0)
    if verdict.about != trace.response_id:  # a pair's verdict, seen from the other side
        direction = -direction
    return 0.0 if direction == 0 else 1 - verdict.score if direction > 0 else verdict.score


def _scored(verdict: Verdict) -> str:
    reason = f": {verdict.reason}" if verdict.reason else ""
    return f"{_name(verdict)} scored {_n(verdict.score)}{reason}"


def _start(verdict: Verdict) -> tuple[bool, int]:
    starts = [e.start for e in verdict.evidence if e.start is not None]
    return (not starts, min(starts, default=0))


def _quotes(verdict: Verdict) -> str:
    quotes = [f"“{_short(e.quote)}”" for e in verdict.evidence[:3] if _short(e.quote) not in verdict.reason]
    return f", as in {', '.join(quotes)}" if quotes else ""


def _unjudged(trace: Trace) -> Iterator[str]:
    counts = trace.reward.counts
    for verdict in trace.verdicts:
        if verdict.status in ("abstained", "failed"):
            cause = f" ({verdict.failure.cause})" if verdict.failure else ""
            reason = f": {verdict.reason}" if verdict.reason else ""
            yield f"Not judged: {_name(verdict)} {verdict.status}{cause}{reason}."
        elif verdict.status == "not_applicable":
            gate = f", because of {verdict.gated_by}" if verdict.gated_by else ""
            yield f"Not asked: {_name(verdict)}{gate}."
    yield (
        f"Verdicts asked for: {counts.asked}; judged {counts.judged}, abstained {counts.abstained}, "
        f"failed {counts.failed}, not applicable {counts.not_applicable}."
    )


def _openness(reward: Reward) -> Iterator[str]:
    if reward.range is None:
        return
    low, high = reward.range
    if low == high:
        yield "Nothing is left open: no verdict is missing that could change it."
    else:
        yield f"What was not judged could make it anything from {_n(low)} to {_n(high)}."


def _name(verdict: Verdict) -> str:
    about = f" of {verdict.stakeholder or verdict.reviewer}" if verdict.stakeholder or verdict.reviewer else ""
    return f"{verdict.subject}{about} ({verdict.evaluator})"


def _n(value: float | None) -> str:
    """Four decimals at most; never minus zero."""
    return "none" if value is None else f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


def _signed(value: float) -> str:
    return f"({_n(value)})" if _n(value).startswith("-") else _n(value)


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
