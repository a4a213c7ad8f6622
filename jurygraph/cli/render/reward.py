"""A trace in plain sentences, from its terms and the decision behind them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from jurygraph.cli.pairwise_sides import score_for
from jurygraph.cli.render.contrasts import CONTRAST, contrast_lines
from jurygraph.cli.render.text import format_plain
from jurygraph.cli.render.trace import WELFARE, describe_rule, is_discarded, material_lines, origin_lines
from jurygraph.cli.render.verdicts import verdict_sentences
from jurygraph.messages import shorten
from jurygraph.schema import ComponentInput, ComponentSpec, Decision, RecordedVerdict, Reward, Term, Trace

_MAX_REASON = 300
_GRAPH_COMBINERS = ("gear", "hard-local", "hard-transitive")


class _TraceIndex:
    """A trace with constant-time look-up of verdicts by question and of prerequisites by criterion."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._parents: dict[str, dict[str, list[str]]] = {}

    @cached_property
    def _by_question(self) -> dict[str, list[RecordedVerdict]]:
        verdicts: dict[str, list[RecordedVerdict]] = {}
        for verdict in self.trace.verdicts:
            verdicts.setdefault(verdict.question, []).append(verdict)
        return verdicts

    def verdicts(self, question: str) -> Sequence[RecordedVerdict]:
        """Return the verdicts of one question, in the order of the trace."""
        return self._by_question.get(question, ())

    def verdicts_of_input(self, one: ComponentInput) -> list[RecordedVerdict]:
        """Return the verdicts of all questions of an input."""
        return [verdict for question in one.questions for verdict in self.verdicts(question)]

    def parents(self, spec: ComponentSpec, part: str) -> list[str]:
        """Return the prerequisites of a criterion, in their order."""
        if spec.name not in self._parents:
            self._parents[spec.name] = _parents_by_child(spec)
        return self._parents[spec.name].get(part, [])


def _parents_by_child(spec: ComponentSpec) -> dict[str, list[str]]:
    """Return the prerequisites of every criterion that has some; a rubric's edges name criteria by index."""
    if spec.combiner not in _GRAPH_COMBINERS:
        return {}
    names, params = list(spec.inputs), cast(Mapping[str, Sequence[int]], spec.params)
    parents: dict[str, list[str]] = {}
    for parent, child in sorted(zip(params.get("parents", ()), params.get("children", ()), strict=True)):
        parents.setdefault(names[child], []).append(names[parent])
    return parents


def sentences(trace: Trace, decision: Decision) -> list[str]:
    """Return sentences on the reward, its reasons, errors, missing verdicts, and the range that these leave open."""
    reward = trace.reward
    return [
        _reward_sentence(trace),
        *(f"Why: {note}." for note in reward.notes),
        *_term_sentences(_TraceIndex(trace), {spec.name: spec for spec in decision.specs}),
        *_adjustment_sentences(reward),
        *(f"{line[0].upper()}{line[1:]}." for line in origin_lines(trace)),
        *(f"{line[0].upper()}{shorten(line[1:], _MAX_REASON)}." for line in material_lines(trace)),
        *verdict_sentences(trace, decision),
        *_range_sentence(reward),
    ]


def _reward_sentence(trace: Trace) -> str:
    reward = trace.reward
    subject = f"Response {trace.response_id}" + (f" by {trace.agent}" if trace.agent else "")
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} to task {trace.task_id} gets {format_plain(reward.value)}{status}."
    partial = "" if reward.partial is None else f"; what was judged would alone give {format_plain(reward.partial)}"
    return f"{subject} to task {trace.task_id} gets no reward: it failed{partial}."


def _term_sentences(index: _TraceIndex, specs: Mapping[str, ComponentSpec]) -> Iterator[str]:
    reward = index.trace.reward
    counted = [term.contribution for term in reward.terms if term.contribution is not None and term.weight]
    for term in reward.terms:
        parts, spec = reward.parts.get(term.name), specs.get(term.name)
        is_judged = spec is None or not all(_is_unjudged(index, one) for one in spec.inputs.values())
        yield _term_sentence(term, is_judged)
        if parts and term.contribution is not None:
            yield _parts_sentence(index, term.name, parts, spec)
        if spec is not None and spec.combiner == CONTRAST:
            yield from (f"{shorten(line, _MAX_REASON)}." for line in contrast_lines(index.trace, spec))
    if len(counted) > 1:
        total = f"{' + '.join(map(_parenthesize_negative, counted))} = {format_plain(sum(counted))}"
        yield f"Together: {total}." if reward.value is not None else f"Together it would be {total}."


def _term_sentence(term: Term, is_judged: bool) -> str:
    """Describe the contribution of a term; if not `is_judged`, it has the value set for missing verdicts."""
    if term.contribution is None:
        return f"{term.name}: does not apply here, and counts nothing."
    if term.weight == 0:
        shown = format_plain(term.value) if is_judged else "not judged"
        return f"{term.name}: {shown}, which is shown and does not count by itself."
    why = "" if is_judged else ", since nothing of it was judged"
    weight, value, contribution = map(format_plain, (term.weight, term.value, term.contribution))
    return f"{term.name}: weight {weight} × value {value} = {contribution}{why}."


def _parts_sentence(index: _TraceIndex, name: str, parts: Mapping[str, float], spec: ComponentSpec | None) -> str:
    shown = [f"{part} {format_plain(value)}{_remark_suffix(index, spec, part, value)}" for part, value in parts.items()]
    rule = "" if spec is None else _rule_suffix(index, spec, len(parts))
    return f"{name} is made of {', '.join(shown)}{rule}."


def _rule_suffix(index: _TraceIndex, spec: ComponentSpec, parts: int) -> str:
    """Describe how the parts become one number, unless it is their mean or weighted sum."""
    if spec.combiner == "product" and parts > 1:
        return ", and is their product"
    if spec.combiner == "consensus":
        return _consensus_suffix(index, spec)
    return f", and is {describe_rule(spec)}" if spec.combiner in WELFARE and spec.combiner != "stakeholders" else ""


def _consensus_suffix(index: _TraceIndex, spec: ComponentSpec) -> str:
    """Describe how the judges' votes become one level; the parameter `judges` holds their confusions, if learned."""
    unjudged = [_is_unjudged(index, one) for one in spec.inputs.values()]
    if all(unjudged):
        return ": nobody was heard"
    levels = " and ".join(map(format_plain, cast(Sequence[float], spec.params["levels"])))
    learned = "the mean level that follows from how each of them errs"
    rule = learned if "judges" in spec.params else "what most of them say"
    missing = ", where those who were not heard are taken to say what is worst" if any(unjudged) else ""
    return f", each taken for the nearest of {levels}; it is {rule}{missing}"


def _remark_suffix(index: _TraceIndex, spec: ComponentSpec | None, part: str, value: float) -> str:
    remarks = [] if spec is None or part not in spec.inputs else list(_remarks(index, spec, part, value))
    return f" ({', '.join(remarks)})" if remarks else ""


def _remarks(index: _TraceIndex, spec: ComponentSpec, part: str, value: float) -> Iterator[str]:
    """Return remarks on a part: its weight, that it was not judged, or how much of its score was kept."""
    one = spec.inputs[part]
    if spec.combiner in WELFARE:
        yield f"weight {format_plain(one.total_weight)}"
        yield from _cap_remark(index, spec, part, value)
    if _is_unjudged(index, one):
        yield "discarded" if _is_discarded(index, one) else "not judged"
    elif index.parents(spec, part):
        own = _own_score(index, one)
        if own is not None and format_plain(own) != format_plain(value):
            prerequisites = _prerequisites(index, spec, part)
            yield f"counts {format_plain(value)} of its {format_plain(own)}, for it rests on {prerequisites}"


def _cap_remark(index: _TraceIndex, spec: ComponentSpec, part: str, value: float) -> Iterator[str]:
    """Return a remark if û is held at the cap because something this stakeholder needs does not hold."""
    one, params = spec.inputs[part], cast(Mapping[str, Any], spec.params)
    needs = [one.questions[place] for place in params.get("hard", {}).get(part, ())]
    scores = [v.score for need in needs for v in index.verdicts(need) if v.score is not None]
    if scores and min(scores) < 1 and format_plain(value) == format_plain(params["cap"] * _mean(scores)):
        cap, share = format_plain(params["cap"]), format_plain(_mean(scores))
        yield f"capped at {cap} × {share}, the share of the needs that holds"


def _is_unjudged(index: _TraceIndex, one: ComponentInput) -> bool:
    """Return True if none of an input's verdicts was judged, so that its value only replaces a score."""
    verdicts = index.verdicts_of_input(one)
    missing = (v.status in ("abstained", "failed") or is_discarded(v, one.confident) for v in verdicts)
    return bool(verdicts) and all(missing)


def _is_discarded(index: _TraceIndex, one: ComponentInput) -> bool:
    """Return True if a verdict of an input was discarded for low confidence."""
    return any(is_discarded(v, one.confident) for v in index.verdicts_of_input(one))


def _prerequisites(index: _TraceIndex, spec: ComponentSpec, part: str) -> str:
    """Return the prerequisites of a criterion, each with its value."""
    counts = index.trace.reward.parts[spec.name]
    return " and ".join(
        f"{name}, not judged" if _is_unjudged(index, spec.inputs[name]) else f"{name} at {format_plain(counts[name])}"
        for name in index.parents(spec, part)
    )


def _own_score(index: _TraceIndex, one: ComponentInput) -> float | None:
    """Return the score of an input's verdicts before prerequisites reduce it; None unless all were judged."""
    fold = {"min": min, "max": max}.get(one.reduce or "mean", _mean)
    folded = []
    for question in one.questions:
        verdicts = index.verdicts(question)
        scores = [None if is_discarded(v, one.confident) else score_for(index.trace.response_id, v) for v in verdicts]
        present = [score for score in scores if score is not None]
        if not present or len(present) < len(scores):
            return None
        folded.append(fold(present))
    return _mean(folded)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _adjustment_sentences(reward: Reward) -> Iterator[str]:
    for change in reward.adjustments:
        verb = "changed" if reward.value is not None else "would have changed"
        yield f"The {change.name} {verb} it from {format_plain(change.before)} to {format_plain(change.after)}."
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."


def _range_sentence(reward: Reward) -> Iterator[str]:
    if reward.range is None:
        return
    low, high = reward.range
    if low == high:
        yield "Nothing is left open: no verdict is missing that could change it."
    else:
        least, most = format_plain(low), format_plain(high)
        yield f"Whatever the missing verdicts had been, it would lie between {least} and {most}."


def _parenthesize_negative(value: float) -> str:
    return f"({format_plain(value)})" if format_plain(value).startswith("-") else format_plain(value)
