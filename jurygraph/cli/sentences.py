"""A trace in plain sentences, made from its terms and the decision that they come from."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from jurygraph.cli.contrasts import CONTRAST, contrast_lines
from jurygraph.cli.judged import judged
from jurygraph.cli.sides import score_for
from jurygraph.cli.text import plain, short
from jurygraph.cli.traces import (
    WELFARE,
    made_of,
    read_from,
    rule_of,
    was_discarded,
)
from jurygraph.schema import Decision, Input, Reward, Spec, Term, Trace, Verdict

_REASON = 300
_RUBRICS = ("gear", "hard-local", "hard-transitive")


class _TraceIndex:
    """A trace whose verdicts are found by question, and whose prerequisites by criterion, in constant time."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._parents: dict[str, dict[str, list[str]]] = {}

    @cached_property
    def _by_question(self) -> dict[str, list[Verdict]]:
        found: dict[str, list[Verdict]] = {}
        for verdict in self.trace.verdicts:
            found.setdefault(verdict.question, []).append(verdict)
        return found

    def verdicts(self, question: str) -> Sequence[Verdict]:
        """Return the verdicts of one question, in the order of the trace."""
        return self._by_question.get(question, ())

    def verdicts_of_input(self, one: Input) -> list[Verdict]:
        """Return the verdicts of all questions of an input."""
        return [verdict for question in one.questions for verdict in self.verdicts(question)]

    def parents(self, spec: Spec, part: str) -> list[str]:
        """Return the prerequisites of a criterion, in their order."""
        if spec.name not in self._parents:
            self._parents[spec.name] = _parents_by_child(spec)
        return self._parents[spec.name].get(part, [])


def _parents_by_child(spec: Spec) -> dict[str, list[str]]:
    """Return the prerequisites of every criterion that has some; a rubric's edges name criteria by their places."""
    if spec.combiner not in _RUBRICS:
        return {}
    names, params = list(spec.inputs), cast(Mapping[str, Sequence[int]], spec.params)
    found: dict[str, list[str]] = {}
    for parent, child in sorted(zip(params.get("parents", ()), params.get("children", ()), strict=True)):
        found.setdefault(names[child], []).append(names[parent])
    return found


def sentences(trace: Trace, decision: Decision) -> list[str]:
    """What the reward is, why, what was wrong, what could not be judged, and what that leaves open."""
    reward = trace.reward
    return [
        _verdict_on(trace),
        *(f"Why: {note}." for note in reward.notes),
        *_sum(_TraceIndex(trace), {spec.name: spec for spec in decision.specs}),
        *_changes(reward),
        *(f"{said[0].upper()}{said[1:]}." for said in read_from(trace)),
        *(f"{said[0].upper()}{short(said[1:], _REASON)}." for said in made_of(trace)),
        *judged(trace, decision),
        *_openness(reward),
    ]


def _verdict_on(trace: Trace) -> str:
    reward = trace.reward
    who = f"Response {trace.response_id}" + (f" by {trace.agent}" if trace.agent else "")
    if reward.value is not None:
        manner = "" if reward.status == "ok" else ", a degraded reward"
        return f"{who} to task {trace.task_id} gets {plain(reward.value)}{manner}."
    partial = "" if reward.partial is None else f"; what was judged would alone give {plain(reward.partial)}"
    return f"{who} to task {trace.task_id} gets no reward: it failed{partial}."


def _sum(index: _TraceIndex, specs: Mapping[str, Spec]) -> Iterator[str]:
    reward = index.trace.reward
    counted = [term.contribution for term in reward.terms if term.contribution is not None and term.weight]
    for term in reward.terms:
        parts, spec = reward.parts.get(term.name), specs.get(term.name)
        judged = spec is None or not all(_unjudged(index, one) for one in spec.inputs.values())
        yield _term(term, judged)
        if parts and term.contribution is not None:
            yield _made_of(index, term.name, parts, spec)
        if spec is not None and spec.combiner == CONTRAST:
            yield from (f"{short(line, _REASON)}." for line in contrast_lines(index.trace, spec))
    if len(counted) > 1:
        total = f"{' + '.join(map(_signed, counted))} = {plain(sum(counted))}"
        yield f"Together: {total}." if reward.value is not None else f"Together it would be {total}."


def _term(term: Term, judged: bool) -> str:
    """What a term comes to; one of which nothing was `judged` stands at what an unjudged one counts."""
    if term.contribution is None:
        return f"{term.name}: does not apply here, and counts nothing."
    if term.weight == 0:
        shown = plain(term.value) if judged else "not judged"
        return f"{term.name}: {shown}, which is shown and does not count by itself."
    why = "" if judged else ", since nothing of it was judged"
    return f"{term.name}: weight {plain(term.weight)} × value {plain(term.value)} = {plain(term.contribution)}{why}."


def _made_of(index: _TraceIndex, name: str, parts: Mapping[str, float], spec: Spec | None) -> str:
    shown = [f"{part} {plain(value)}{_beside(index, spec, part, value)}" for part, value in parts.items()]
    rule = "" if spec is None else _rule(index, spec, len(parts))
    return f"{name} is made of {', '.join(shown)}{rule}."


def _rule(index: _TraceIndex, spec: Spec, parts: int) -> str:
    """How the parts become one number, where that is not their mean or weighted sum."""
    if spec.combiner == "product" and parts > 1:
        return ", and is their product"
    if spec.combiner == "consensus":
        return _consensus(index, spec)
    return f", and is {rule_of(spec)}" if spec.combiner in WELFARE and spec.combiner != "stakeholders" else ""


def _consensus(index: _TraceIndex, spec: Spec) -> str:
    """What makes one level of the judges' votes; `judges` are their confusions, where these were learned."""
    unheard = [_unjudged(index, one) for one in spec.inputs.values()]
    if all(unheard):
        return ": nobody was heard"
    levels = " and ".join(map(plain, cast(Sequence[float], spec.params["levels"])))
    learned = "the mean level that follows from how each of them errs"
    rule = learned if "judges" in spec.params else "what most of them say"
    missing = ", where those who were not heard are taken to say what is worst" if any(unheard) else ""
    return f", each taken for the nearest of {levels}; it is {rule}{missing}"


def _beside(index: _TraceIndex, spec: Spec | None, part: str, value: float) -> str:
    remarks = [] if spec is None or part not in spec.inputs else list(_remarks(index, spec, part, value))
    return f" ({', '.join(remarks)})" if remarks else ""


def _remarks(index: _TraceIndex, spec: Spec, part: str, value: float) -> Iterator[str]:
    """What must be known of a part beside its value: its weight, that it was not judged, or how much of it was kept."""
    one = spec.inputs[part]
    if spec.combiner in WELFARE:
        yield f"weight {plain(one.mass)}"
        yield from _capped(index, spec, part, value)
    if _unjudged(index, one):
        yield "discarded" if _was_discarded(index, one) else "not judged"
    elif index.parents(spec, part):
        own = _own_score(index, one)
        if own is not None and plain(own) != plain(value):
            yield f"counts {plain(value)} of its {plain(own)}, for it rests on {_prerequisites(index, spec, part)}"


def _capped(index: _TraceIndex, spec: Spec, part: str, value: float) -> Iterator[str]:
    """That û is no more than the cap lets it be, since something that this one needs does not hold."""
    one, params = spec.inputs[part], cast(Mapping[str, Any], spec.params)
    needs = [one.questions[place] for place in params.get("hard", {}).get(part, ())]
    held = [v.score for need in needs for v in index.verdicts(need) if v.score is not None]
    if held and min(held) < 1 and plain(value) == plain(params["cap"] * _mean(held)):
        yield f"capped at {plain(params['cap'])} × {plain(_mean(held))}, the share of the needs that holds"


def _unjudged(index: _TraceIndex, one: Input) -> bool:
    """Whether nothing that an input rests on was judged, so that its value only stands in for a score."""
    verdicts = index.verdicts_of_input(one)
    lacking = (v.status in ("abstained", "failed") or was_discarded(v, one.confident) for v in verdicts)
    return bool(verdicts) and all(lacking)


def _was_discarded(index: _TraceIndex, one: Input) -> bool:
    """Whether judges said something of it, and none of them was sure enough to be heard."""
    return any(was_discarded(v, one.confident) for v in index.verdicts_of_input(one))


def _prerequisites(index: _TraceIndex, spec: Spec, part: str) -> str:
    """What a criterion rests on, each with what it counts."""
    counts = index.trace.reward.parts[spec.name]
    return " and ".join(
        f"{name}, not judged" if _unjudged(index, spec.inputs[name]) else f"{name} at {plain(counts[name])}"
        for name in index.parents(spec, part)
    )


def _own_score(index: _TraceIndex, one: Input) -> float | None:
    """What an input's verdicts say before anything holds it back; None where not all of them were judged."""
    fold = {"min": min, "max": max}.get(one.reduce or "mean", _mean)
    folded = []
    for question in one.questions:
        verdicts = index.verdicts(question)
        scores = [None if was_discarded(v, one.confident) else score_for(index.trace.response_id, v) for v in verdicts]
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
        yield f"The {change.name} {verb} it from {plain(change.before)} to {plain(change.after)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _openness(reward: Reward) -> Iterator[str]:
    if reward.range is None:
        return
    low, high = reward.range
    if low == high:
        yield "Nothing is left open: no verdict is missing that could change it."
    else:
        yield f"Whatever the missing verdicts had been, it would lie between {plain(low)} and {plain(high)}."


def _signed(value: float) -> str:
    return f"({plain(value)})" if plain(value).startswith("-") else plain(value)
