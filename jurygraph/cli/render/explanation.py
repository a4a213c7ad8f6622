"""Explanation of a reward: its terms, their parts, and the effect of every verdict, computed once for all views."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal, get_args

from jurygraph.schema import ComponentInput, ComponentSpec, Decision, RecordedVerdict, Term, Trace
from jurygraph.schema.config import Welfare
from jurygraph.schema.verdict import WORST_CASE_REASONS

WELFARE: tuple[str, ...] = get_args(Welfare)
"""Combiners whose inputs are stakeholders."""

Effect = Literal["none", "error", "deduction", "gated", "discarded", "unjudged", "not_applicable"]
"""Effect of a verdict: an `error` is decided against the response, a `deduction` is a score below the best."""

_GRAPH_COMBINERS = ("gear", "hard-local", "hard-transitive")


@dataclass(frozen=True)
class ExplainedVerdict:
    """A verdict from the side of the explained response.

    `score` and `opponent` are those of this response: 1 - score if the verdict is about the other one of a pair.
    `samples` counts the samples of the question. The verdict is discarded below `required_confidence`. It is a penalty
    if a higher score means less reward.
    """

    verdict: RecordedVerdict
    score: float | None
    opponent: str | None
    samples: int
    required_confidence: float
    effect: Effect
    is_penalty: bool

    @property
    def evidence_start(self) -> int | None:
        """Return where in the response the evidence begins; None if it has no position there."""
        return min((e.start for e in self.verdict.evidence if e.start is not None), default=None)


@dataclass(frozen=True)
class ExplainedPart:
    """One part of a component's value: a criterion, stakeholder, judge or other input.

    A stakeholder has a `weight`, and a `cap` with the share of hard constraints met if these limit its value. The value
    of a part that is not judged replaces the missing verdicts. `own_score` is set if unmet prerequisites, here with
    their values (None: not judged), reduced it.
    """

    name: str
    value: float
    weight: float | None = None
    cap: tuple[float, float] | None = None
    is_judged: bool = True
    is_discarded: bool = False
    own_score: float | None = None
    prerequisites: Mapping[str, float | None] = field(default_factory=dict)


class Explanation:
    """Everything that led to the reward of a response: its terms, and the effect of every verdict."""

    def __init__(self, trace: Trace, decision: Decision) -> None:
        self.trace = trace
        self.by_question: dict[str, list[RecordedVerdict]] = {}
        for verdict in trace.verdicts:
            self.by_question.setdefault(verdict.question, []).append(verdict)
        specs = {spec.name: spec for spec in decision.specs}
        self.terms = [ExplainedTerm(self, term, specs.get(term.name)) for term in trace.reward.terms]
        self._can_rise = _questions_that_can_rise(trace, decision)
        self.verdicts = list(self._explain_verdicts(decision))

    def with_effect(self, effect: Effect) -> list[ExplainedVerdict]:
        """Return the verdicts with an effect, in the order of the trace."""
        return [one for one in self.verdicts if one.effect == effect]

    def score(self, verdict: RecordedVerdict) -> float | None:
        """Return the score from this response's side; None if there is no score."""
        if verdict.score is None or verdict.about == self.trace.response_id:
            return verdict.score
        return 1.0 - verdict.score

    def _explain_verdicts(self, decision: Decision) -> Iterator[ExplainedVerdict]:
        confidences = _lowest_confidence(decision.specs) | _lowest_confidence(decision.counting_specs)
        directions = _question_directions(decision)
        samples = {question: 1 + max(one.sample for one in group) for question, group in self.by_question.items()}
        for verdict in self.trace.verdicts:
            question, score = verdict.question, self.score(verdict)
            confidence, direction = confidences.get(question, 0.0), directions.get(question, 0)
            effect = self._effect(verdict, confidence, direction)
            is_pair = len(verdict.responses) == 2 and verdict.about == verdict.responses[0]
            opponent = verdict.responses[verdict.about == self.trace.response_id] if is_pair else None
            yield ExplainedVerdict(verdict, score, opponent, samples[question], confidence, effect, direction < 0)

    def _effect(self, verdict: RecordedVerdict, required_confidence: float, direction: int) -> Effect:
        if verdict.status != "ok":
            return "not_applicable" if verdict.status == "not_applicable" else "unjudged"
        if verdict.gated_by in WORST_CASE_REASONS:
            return "gated"
        if _is_discarded(verdict, required_confidence):
            return "discarded"
        score = self.score(verdict) or 0.0
        loss = 0.0 if direction == 0 else 1.0 - score if direction > 0 else score
        if loss > 0.0 and (loss == 1.0 or self._is_decided_against(verdict, direction)):
            return "error"
        return "deduction" if loss > 0.0 and verdict.question in self._can_rise else "none"

    def _is_decided_against(self, verdict: RecordedVerdict, direction: int) -> bool:
        """Return True if the judge's own decision is that a merit is missing or a fault is present."""
        if direction < 0:
            return verdict.met is True
        if verdict.met is None or verdict.about == self.trace.response_id:
            return verdict.met is False
        return verdict.score is not None and verdict.score > 0.5


class ExplainedTerm:
    """A term of the reward with its component, the inputs without a verdict that counts, its parts and contrasts."""

    def __init__(self, explanation: Explanation, term: Term, spec: ComponentSpec | None) -> None:
        self.term, self.spec = term, spec
        self._explanation = explanation
        self._inputs: Mapping[str, ComponentInput] = {} if spec is None else spec.inputs
        self._params: Mapping[str, Any] = {} if spec is None else spec.params
        self._combiner = "" if spec is None else spec.combiner
        self._values = explanation.trace.reward.parts.get(term.name, {})
        self.unjudged = frozenset(filter(self._is_unjudged, self._inputs))

    @property
    def is_judged(self) -> bool:
        """Return True if a verdict of any input counts."""
        return self.spec is None or len(self.unjudged) < len(self.spec.inputs)

    def _is_unjudged(self, name: str) -> bool:
        """Return True if none of an input's verdicts counts, so that its value only replaces a score."""
        one = self._inputs[name]
        verdicts = self._verdicts(one.questions)
        return bool(verdicts) and all(
            v.status in ("abstained", "failed") or _is_discarded(v, one.min_confidence) for v in verdicts
        )

    def _verdicts(self, questions: Iterable[str]) -> list[RecordedVerdict]:
        return [verdict for question in questions for verdict in self._explanation.by_question.get(question, ())]

    @cached_property
    def parts(self) -> list[ExplainedPart]:
        """Return the parts of the component's value."""
        return [self._part(name, value) for name, value in self._values.items()]

    def _part(self, name: str, value: float) -> ExplainedPart:
        if name not in self._inputs:
            return ExplainedPart(name, value)
        one, is_judged = self._inputs[name], name not in self.unjudged
        own = self._own_score(one) if is_judged and name in self._parents else None
        is_reduced = own is not None and not _are_shown_equal(own, value)
        parents = self._parents[name] if is_reduced else ()
        return ExplainedPart(
            name,
            value,
            weight=one.input_weight if self._combiner in WELFARE else None,
            cap=self._cap(name, value) if self._combiner in WELFARE else None,
            is_judged=is_judged,
            is_discarded=any(_is_discarded(v, one.min_confidence) for v in self._verdicts(one.questions)),
            own_score=own if is_reduced else None,
            prerequisites={each: None if each in self.unjudged else self._values[each] for each in parents},
        )

    @cached_property
    def _parents(self) -> Mapping[str, Sequence[str]]:
        """Return the prerequisites of every criterion that has some; a rubric's edges name criteria by index."""
        parents: dict[str, list[str]] = {}
        if self._combiner in _GRAPH_COMBINERS:
            names, params = list(self._inputs), self._params
            for parent, child in sorted(zip(params.get("parents", ()), params.get("children", ()), strict=True)):
                parents.setdefault(names[child], []).append(names[parent])
        return parents

    def _cap(self, name: str, value: float) -> tuple[float, float] | None:
        """Return the cap and the share of hard constraints met, if û is held there because one is not met."""
        needs = [self._inputs[name].questions[place] for place in self._params.get("hard", {}).get(name, ())]
        scores = [verdict.score for verdict in self._verdicts(needs) if verdict.score is not None]
        if not scores or min(scores) >= 1 or not _are_shown_equal(value, self._params["cap"] * fmean(scores)):
            return None
        return self._params["cap"], fmean(scores)

    def _own_score(self, one: ComponentInput) -> float | None:
        """Return the score of an input's verdicts before prerequisites reduce it; None unless all were judged."""
        fold = {"min": min, "max": max}.get(one.reduce or "mean", fmean)
        folded = []
        for question in one.questions:
            verdicts = self._verdicts([question])
            scores = [None if _is_discarded(v, one.min_confidence) else self._explanation.score(v) for v in verdicts]
            present = [score for score in scores if score is not None]
            if not present or len(present) < len(scores):
                return None
            folded.append(fold(present))
        return fmean(folded)

    @cached_property
    def contrasts(self) -> list[tuple[str, float | None]]:
        """Return each contrast that was compared, and the response's score minus its own; None if not judged."""
        if self._combiner != "contrast":
            return []
        trace, questions = self._explanation.trace, {name for one in self._inputs.values() for name in one.questions}
        edits = {one.response.id: one.edit for material in trace.material for one in material.variants}
        compared = {name for v in self._verdicts(questions) for name in v.responses}
        margins, contrasts = trace.reward.diagnostics.get(self.term.name, {}), []
        for pair, name in enumerate(sorted(compared & edits.keys()), start=1):
            edit = edits[name]
            description = edit.get("says", edit.get("kind", "an edit")) if isinstance(edit, Mapping) else "an edit"
            contrasts.append((f"{name} ({description})", margins.get(f"pair {pair}")))
        return contrasts


def _is_discarded(verdict: RecordedVerdict, required_confidence: float) -> bool:
    """Return True if a verdict does not count because of low confidence; verdicts of a gate always count."""
    confidence = 1.0 if verdict.confidence is None else verdict.confidence
    return verdict.status == "ok" and verdict.gated_by not in WORST_CASE_REASONS and confidence < required_confidence


def _lowest_confidence(specs: Sequence[ComponentSpec]) -> dict[str, float]:
    """Return for every question the lowest confidence that an input of these specs requires."""
    lowest: dict[str, float] = {}
    for one in (one for spec in specs for one in spec.inputs.values()):
        for question in one.questions:
            lowest[question] = min(lowest.get(question, 1.0), one.min_confidence)
    return lowest


def _question_directions(decision: Decision) -> dict[str, int]:
    """Return for every question that counts 1 if a higher score means more reward, -1 if it means less.

    Questions of a contrast have no direction, nor those of a consensus: the effect of a verdict there depends on how
    its judge errs. The input `weight` of an adaptive component sets a weight, and has none either.
    """
    directions: dict[str, int] = {}
    for spec in decision.counting_specs:
        for name, one in spec.inputs.items():
            if spec.combiner in ("contrast", "consensus") or (spec.combiner, name) == ("adaptive", "weight"):
                continue
            for question, weight in zip(one.questions, one.weights, strict=True):
                directions[question] = max(directions.get(question, -1), spec.direction * (1 if weight > 0 else -1))
    return directions


def _questions_that_can_rise(trace: Trace, decision: Decision) -> frozenset[str]:
    """Return the questions that could still raise a term that counts: in a product that is 0, those of its zeros."""
    absent = {term.name for term in trace.reward.terms if term.contribution is None}
    return frozenset(
        question
        for spec in decision.specs
        if spec.weight and spec.name not in absent
        for parts in [trace.reward.parts.get(spec.name, {}) if spec.combiner == "product" else {}]
        for name, one in spec.inputs.items()
        if 0 not in parts.values() or parts.get(name) == 0
        for question in one.questions
    )


def _are_shown_equal(first: float, second: float) -> bool:
    """Return True if two numbers are equal to the four decimals that are printed."""
    return round(first, 4) == round(second, 4)
