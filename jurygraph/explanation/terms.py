"""Terms of a reward and the effect of every verdict, from the side of the explained response."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose
from statistics import fmean
from typing import Any, Literal

import numpy as np

from jurygraph.agents.registry import BUILTIN_COMBINERS, installed_plugins, load_combiner
from jurygraph.decision.combiners import Combiner, Component, Matrices, ScoreMatrix
from jurygraph.decision.table import OK, Cells, VerdictTable, calibrate, fill_columns, ok_outcome
from jurygraph.display import Displayed, is_filled_in
from jurygraph.messages import format_plain
from jurygraph.schema import ComponentInput, ComponentSpec, Decision, RecordedVerdict, ScoreCalibration, Term, Trace
from jurygraph.schema.frozen_model import PlainParams
from jurygraph.schema.verdict import MET_THRESHOLD, RESPONSE_GATES

Effect = Literal["none", "deduction", "gated", "discarded", "unjudged", "not_applicable"]
"""Effect of a verdict; a `deduction` is a score below the best."""


class UnknownCombiner(Combiner):
    """Stands in for a combiner of which nothing is known."""

    name = "unknown"

    def combine(self, matrices: Matrices, params: PlainParams) -> Component:
        raise NotImplementedError


def combiner_of(spec: ComponentSpec) -> Combiner:
    """Return the combiner of a component; an unknown one if it is not installed.

    A stored run is read without running code that it names by a dotted path.
    """
    is_installed = spec.combiner in BUILTIN_COMBINERS or spec.combiner in installed_plugins("combiner")
    combiner: Combiner | None = spec.implementation
    return combiner or (load_combiner(spec.combiner) if is_installed else UnknownCombiner())


@dataclass(frozen=True, repr=False)
class ExplainedVerdict(Displayed):
    """A verdict from the side of the explained response.

    `score` and `opponent` are those of this response: 1 - score if the verdict is about the other one of a pair.
    `samples` counts the samples of the question. The verdict is discarded below `required_confidence`. `direction` is 1
    if a higher score means more reward, -1 if it means less, and 0 if it has no effect or either one.
    """

    verdict: RecordedVerdict
    score: float | None
    opponent: str | None
    samples: int
    required_confidence: float
    effect: Effect
    direction: int

    @property
    def label(self) -> str:
        """Return the name of the verdict, with its stakeholder or reviewer and its opponent."""
        member = self.verdict.stakeholder or self.verdict.reviewer
        owner = f" of {member}" if member and member != self.verdict.subject else ""
        return f"{self.verdict.subject}{owner}{f' against {self.opponent}' if self.opponent else ''}"

    @property
    def is_mirrored(self) -> bool:
        """Return True if the verdict is about the other response of a pair, so that its score counts as 1 - score."""
        return self.opponent == self.verdict.about

    @property
    def native(self) -> str | None:
        """Return the judge's own value on its scale; None without one."""
        value = self.verdict.native
        scale = self.verdict.scale
        if isinstance(value, bool | str | None) or scale is None or self.is_mirrored:
            return None
        return f"{value:g} on a scale of {scale[0]:g} to {scale[1]:g}"


def describe_vote(
    verdicts: Sequence[RecordedVerdict], scores: Sequence[float | None], use: ComponentInput, rule: str
) -> str | None:
    """Describe the vote on a question in words; None if nobody predicted anything.

    `scores` are those of the verdicts as they count for the response; `rule` is the failure rule, by which a question
    without a majority counts, unless the worst case does: where a prediction is unsupported, or where judges disagree
    and no vote is missing.
    """
    voting = [
        float(bool(verdict.met)) if use.has_judges and verdict.is_binary else score
        for verdict, score in zip(verdicts, scores, strict=True)
        if (score is not None or verdict.status == "not_applicable")
        and not verdict.is_worst_case
        and not is_discarded(verdict, use.min_confidence)
    ]
    discarded = sum(is_discarded(verdict, use.min_confidence) for verdict in verdicts)
    if not voting and not discarded:
        return None
    failed = sum(map(_keeps_seat, verdicts))
    unsupported = sum(verdict.is_worst_case for verdict in verdicts)
    abstained = len(verdicts) - len(voting) - discarded - failed - unsupported
    fates = {"discarded for low confidence": discarded, "abstained": abstained, "failed": failed}
    fates["unsupported"] = unsupported
    shown = ", ".join([f"{len(verdicts)} predictions", *(f"{n} {fate}" for fate, n in fates.items() if n)])
    seats = len(voting) + failed + unsupported if use.vote == "discard-first" else len(verdicts)
    ((leading, votes),) = Counter(voting).most_common(1) or [(0.0, 0)]
    if 2 * votes > seats:
        winner = "not applicable" if leading is None else format_plain(leading)
        return f"{shown}; {votes} of {seats} vote for {winner}"
    is_missing = failed or (use.vote == "all-seats" and discarded + abstained)
    effect = f"the {rule} rule says how it counts"
    if unsupported:
        effect = "the unsupported count: the worst case"
    elif use.has_judges and seats and not is_missing:
        effect = "the worst case counts"
    return f"{shown}; no majority of {seats}, so {effect}"


def _keeps_seat(verdict: RecordedVerdict) -> bool:
    """Return True if a verdict is missing for another reason than that its judge cannot tell."""
    is_infrastructure = verdict.failure is not None and verdict.failure.cause == "infrastructure"
    return verdict.status == "failed" or (verdict.status == "abstained" and is_infrastructure)


def is_discarded(verdict: RecordedVerdict, required_confidence: float) -> bool:
    """Return True if a verdict does not count because of low confidence; verdicts of a gate always count."""
    confidence = 1.0 if verdict.confidence is None else verdict.confidence
    is_answer = verdict.status in ("ok", "not_applicable") and verdict.gated_by not in RESPONSE_GATES
    return is_answer and confidence < required_confidence


def _calibrate(verdict: RecordedVerdict, calibration: ScoreCalibration | None) -> RecordedVerdict:
    """Return a verdict with the score as it counts. A gate's verdict, or one that is the worst case, keeps its own."""
    if calibration is None or verdict.score is None or ok_outcome(verdict.gated_by, verdict.unsupported) != OK:
        return verdict
    score = float(calibrate(np.array(verdict.score), calibration))
    return verdict.model_copy(update={"score": score, "met": score >= MET_THRESHOLD})


Share = tuple[float, float]
"""A signed weight, and the total weight that it is divided by."""


Prerequisite = tuple[float | str, float | None]
"""A prerequisite's value, or the reason why it has none, and its retention λ."""


@dataclass(frozen=True)
class Leaf:
    """A summand of a component: its value in [0, 1] times its `shares` of the component.

    It is a question, or an input whose questions do not add up to its value: `own_value` is set if prerequisites, here
    with their values (or why they have none) and retentions λ (None: all or nothing), reduced it, and `cap` if hard
    constraints limit it; its `verdicts` are then those on them, and `others` the rest. `kind` is that of the constraint
    that it is about.
    """

    shares: tuple[Share, ...]
    value: float
    verdicts: Sequence[ExplainedVerdict]
    name: str
    own_value: float | None = None
    prerequisites: Mapping[str, Prerequisite] = field(default_factory=dict)
    cap: float | None = None
    others: Sequence[ExplainedVerdict] = ()
    kind: str = ""

    @property
    def share(self) -> float:
        """Return the signed share of the component's value."""
        product = 1.0
        for weight, total in self.shares:
            product *= weight / total
        return product


class ExplainedTrace:
    """The terms of a response's reward, and the effect of every verdict."""

    def __init__(self, trace: Trace, decision: Decision) -> None:
        self.trace = trace
        self.decision = decision
        self.by_question: dict[str, list[RecordedVerdict]] = {}
        maps = {
            name: one
            for spec in decision.specs
            for use in spec.inputs.values()
            for name, one in use.calibration.items()
        }
        recorded = [verdict for verdict in trace.verdicts if not verdict.superseded]
        self._counting = [_calibrate(verdict, maps.get(verdict.question)) for verdict in recorded]
        for verdict in self._counting:
            self.by_question.setdefault(verdict.question, []).append(verdict)
        specs = {spec.name: spec for spec in decision.specs}
        self.table = self._build_table(recorded)
        self.verdicts = list(self._explain_verdicts(decision))
        self._explained_by_question: dict[str, list[ExplainedVerdict]] = {}
        for one in self.verdicts:
            self._explained_by_question.setdefault(one.verdict.question, []).append(one)
        self.terms = [ExplainedTerm(self, term, specs.get(term.name)) for term in trace.reward.terms]

    def of_questions(self, questions: Iterable[str]) -> list[ExplainedVerdict]:
        """Return the verdicts of these questions, in their order."""
        return [one for question in questions for one in self._explained_by_question.get(question, ())]

    def with_effect(self, effect: Effect) -> list[ExplainedVerdict]:
        """Return the verdicts with an effect, in the order of the trace."""
        return [one for one in self.verdicts if one.effect == effect]

    def score(self, verdict: RecordedVerdict) -> float | None:
        """Return the score from this response's side; None if there is no score."""
        if verdict.score is None or verdict.about == self.trace.response_id:
            return verdict.score
        return 1.0 - verdict.score

    def _build_table(self, recorded: Iterable[RecordedVerdict]) -> VerdictTable:
        """Return the row of this response in the table from which its reward was decided."""
        counted = (name for spec in self.decision.specs for one in spec.inputs.values() for name in one.questions)
        cells: dict[str, Cells] = {name: {} for name in counted}
        for verdict in recorded:
            row = cells.setdefault(verdict.question, {})
            row[0, len(row)] = verdict, verdict.about != self.trace.response_id
        judges = {name: [verdict.judge for verdict, _ in row.values()] for name, row in cells.items()}
        return VerdictTable(1, {name: fill_columns(1, row) for name, row in cells.items()}, judges=judges)

    def _explain_verdicts(self, decision: Decision) -> Iterator[ExplainedVerdict]:
        confidences = _lowest_confidence(decision.specs) | _lowest_confidence(decision.counting_specs)
        directions = _question_directions(decision)
        samples = {question: 1 + max(one.sample for one in group) for question, group in self.by_question.items()}
        for verdict in self._counting:
            question = verdict.question
            score = self.score(verdict)
            confidence = confidences.get(question, 0.0)
            direction = directions.get(question, 0)
            effect = self._effect(verdict, confidence, direction)
            is_pair = len(verdict.responses) == 2 and verdict.about == verdict.responses[0]
            opponent = verdict.responses[verdict.about == self.trace.response_id] if is_pair else None
            yield ExplainedVerdict(verdict, score, opponent, samples[question], confidence, effect, direction)

    def _effect(self, verdict: RecordedVerdict, required_confidence: float, direction: int) -> Effect:
        if is_discarded(verdict, required_confidence):
            return "discarded"
        if verdict.status != "ok":
            return "not_applicable" if verdict.status == "not_applicable" else "unjudged"
        if verdict.gated_by in RESPONSE_GATES:
            return "gated"
        if verdict.is_worst_case:
            return "deduction" if direction else "none"
        score = self.score(verdict) or 0.0
        loss = 0.0 if direction == 0 else 1.0 - score if direction > 0 else score
        return "deduction" if loss > 0.0 else "none"


class ExplainedTerm:
    """A term of the reward with its component, its parts and contrasts.

    `inapplicable` are the inputs that do not apply, so are no parts; `unjudged` those without a verdict that counts.
    """

    def __init__(self, explained: ExplainedTrace, term: Term, spec: ComponentSpec | None) -> None:
        self.term = term
        self.spec = spec
        self._explained = explained
        self._inputs: Mapping[str, ComponentInput] = {} if spec is None else spec.inputs
        self.params: Mapping[str, Any] = {} if spec is None else spec.params
        self.combiner = UnknownCombiner() if spec is None else combiner_of(spec)
        parts = explained.trace.reward.parts.get(term.name, {})
        self.inapplicable = [name for name in self._inputs if not self._applies(name)]
        self.parts = {name: value for name, value in parts.items() if name not in self.inapplicable}
        self.unjudged = frozenset(filter(self._is_unjudged, self._inputs))

    @property
    def is_judged(self) -> bool:
        """Return True if a verdict of any input counts."""
        return self.spec is None or len(self.unjudged) < len(self.spec.inputs)

    @property
    def is_filled_in(self) -> bool:
        """Return True if the failure rule gave a missing verdict a value."""
        judged = self._explained.trace.reward.components.get(self.term.name)
        value = self.term.value
        if value is None or is_filled_in(judged, value):
            return value is not None
        if self._explained.decision.group_rule == "drop-criterion":
            return False
        folded = [one for one in self._inputs.values() if one.reduce != "majority"]
        missing = (_is_missing(v, one.min_confidence) for one in folded for v in self._weighted_verdicts(one))
        return bool(self.unjudged) or any(missing)

    @property
    def questions(self) -> list[str]:
        """Return the questions of all inputs, each once."""
        return list(dict.fromkeys(question for one in self._inputs.values() for question in one.questions))

    @property
    def verdicts(self) -> list[ExplainedVerdict]:
        """Return the verdicts of all questions."""
        return self._explained.of_questions(self.questions)

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """Return the numbers about the component that have no effect."""
        return self._explained.trace.reward.diagnostics.get(self.term.name, {})

    def _is_unjudged(self, name: str) -> bool:
        """Return True if none of an input's verdicts counts, so that its value only replaces a score."""
        one = self._inputs[name]
        verdicts = self._weighted_verdicts(one)
        return bool(verdicts) and all(_is_missing(verdict, one.min_confidence) for verdict in verdicts)

    def _weighted_verdicts(self, one: ComponentInput) -> list[RecordedVerdict]:
        questions = (name for name, weight in zip(one.questions, one.weights, strict=True) if weight)
        return self._verdicts(questions, one.judge)

    def _verdicts(self, questions: Iterable[str], judge: str | None = None) -> list[RecordedVerdict]:
        """Return the verdicts on these questions; with a `judge` only those of that one."""
        verdicts = (verdict for question in questions for verdict in self._explained.by_question.get(question, ()))
        return [verdict for verdict in verdicts if judge in (None, verdict.judge)]

    @cached_property
    def leaves(self) -> list[Leaf]:
        """Return the summands of the component; empty if it is not a sum of its inputs."""
        if self.spec is None or self.term.value is None or not (self.combiner.is_sum or len(self._inputs) == 1):
            return []
        values = self.parts or dict.fromkeys(self._inputs, self.term.value)
        present = [name for name in values if name in self._inputs and name not in self.inapplicable]
        signs = {name: -1.0 if self._is_penalty(name) else 1.0 for name in present}
        total = _as_total(sum(self._inputs[name].input_weight for name in present if signs[name] > 0))
        leaves = [
            leaf
            for name in present
            if total > 0
            for leaf in self._input_leaves(name, values[name], (signs[name] * self._inputs[name].input_weight, total))
        ]
        value = sum(leaf.share * leaf.value for leaf in leaves)
        best = sum(leaf.share for leaf in leaves if leaf.share > 0)
        is_sum = isclose(value, self.term.value, abs_tol=1e-9) and isclose(best, 1.0, abs_tol=1e-9)
        # of a penalty, a part that lowers it has no place among its points
        return leaves if is_sum and (self.term.weight >= 0 or -1.0 not in signs.values()) else []

    def _is_penalty(self, name: str) -> bool:
        return self.combiner.counts_criteria and self._inputs[name].weights[0] < 0

    def _applies(self, name: str) -> bool:
        """Return True if an input has a value: a verdict that applies, or one that counts 0 because it was skipped."""
        return bool(self._matrix(self._inputs[name]).applicable.any())

    def _matrix(self, one: ComponentInput) -> ScoreMatrix:
        """Return an input as the combiner got it; missing verdicts are filled by the decision's rule."""
        direction = 1 if self.spec is None else self.spec.direction
        return self._explained.table.score_matrix(one, self._explained.decision.rule, direction, "counted")

    def _input_leaves(self, name: str, value: float, share: Share) -> list[Leaf]:
        """Return the questions of an input if their mean is its value, else the whole input."""
        one = self._inputs[name]
        verdicts = [
            each for each in self._explained.of_questions(one.questions) if one.judge in (None, each.verdict.judge)
        ]
        columns = list(self._question_values(one))
        total = _as_total(sum(weight for _, weight, _ in columns))
        own = sum(weight * folded for _, weight, folded in columns) / total if total else value
        parents = self._parents.get(name, {})
        if not isclose(own, value, abs_tol=1e-9):
            hard = self._capping(name, value)
            cap = self.params["cap"] if hard else None
            others = [one for one in verdicts if hard and one not in hard]
            return [Leaf((share,), value, hard or verdicts, name, own if parents else None, parents, cap, others)]
        if len(columns) < 2:
            return [Leaf((share,), value, verdicts, name)]
        kinds = {question: kind for kind in ("soft", "hard") for question in self._constraints(kind, name)}
        return [
            Leaf(
                (share, (weight, total)),
                folded,
                self._explained.of_questions([question]),
                question,
                kind=kinds.get(question, ""),
            )
            for question, weight, folded in columns
        ]

    def _question_values(self, one: ComponentInput) -> Iterator[tuple[str, float, float]]:
        """Yield each question of an input that counts, its weight over all its verdicts, and the mean of its values."""
        for question, weight in zip(one.questions, one.weights, strict=True):
            matrix = self._matrix(one.model_copy(update={"questions": (question,), "weights": (weight,)}))
            cells = matrix.value[matrix.applicable]
            if weight and len(cells):
                yield question, abs(weight) * len(cells), float(cells.mean())

    def is_unjudged_part(self, name: str) -> bool:
        """Return True if no verdict of a part counts: of an input, or of all judges in a reviewer's panel."""
        return self.unjudged.issuperset(self.combiner.part_inputs(self.params).get(name, [name]))

    @property
    def votes(self) -> dict[str, str]:
        """Describe the majority votes in which a prediction was made, by the label of their questions."""
        votes = {}
        for one in self._inputs.values():
            for question in one.questions if one.reduce == "majority" else ():
                named = self._verdicts([question])
                verdicts = [v for v in named if v.status != "not_applicable" or v.gated_by is None]
                scores = [self._explained.score(verdict) for verdict in verdicts]
                text = describe_vote(verdicts, scores, one, self._explained.decision.rule)
                if text is not None and len(verdicts) > 1:
                    votes[self._explained.of_questions([question])[0].label] = text
        return votes

    @cached_property
    def _parents(self) -> Mapping[str, Mapping[str, Prerequisite]]:
        """Return the prerequisites of criteria by name; a rubric's edges name criteria by index."""
        parents: dict[str, dict[str, Prerequisite]] = {}
        names = list(self._inputs)
        for parent, child, kept in sorted(self.combiner.prerequisites(self.params), key=lambda edge: edge[:2]):
            name = names[parent]
            absent = "not applicable" if name in self.inapplicable else "dropped for the group"
            value = "not judged" if name in self.unjudged else self.parts.get(name, absent)
            parents.setdefault(names[child], {})[name] = value, kept
        return parents

    def _constraints(self, kind: str, name: str) -> list[str]:
        return [self._inputs[name].questions[place] for place in self.params.get(kind, {}).get(name, ())]

    def _capping(self, name: str, value: float) -> list[ExplainedVerdict]:
        """Return the verdicts on the hard constraints if û is held at the cap because one of them is not met."""
        if "cap" not in self.params:
            return []
        hard = [one for one in self._explained.of_questions(self._constraints("hard", name)) if one.score is not None]
        scores = [one.score for one in hard if one.score is not None]
        is_capped = bool(scores) and min(scores) < 1
        return hard if is_capped and isclose(value, self.params["cap"] * fmean(scores), abs_tol=1e-9) else []

    @cached_property
    def contrasts(self) -> list[tuple[str, float | None]]:
        """Return each contrast that was compared, and the response's score minus its own; None if not judged."""
        if not self.combiner.ranks_contrasts:
            return []
        trace = self._explained.trace
        edits = {one.response.id: one.edit for material in trace.material for one in material.variants}
        compared = {name for v in self._verdicts(self.questions) for name in v.responses}
        margins = self.diagnostics
        contrasts = []
        for pair, name in enumerate(sorted(compared & edits.keys()), start=1):
            edit = edits[name]
            description = edit.get("says", edit.get("kind", "an edit")) if isinstance(edit, Mapping) else "an edit"
            contrasts.append((f"{name} ({description})", margins.get(f"pair {pair}")))
        return contrasts


def _is_missing(verdict: RecordedVerdict, required_confidence: float) -> bool:
    return verdict.status in ("abstained", "failed") or is_discarded(verdict, required_confidence)


def _lowest_confidence(specs: Sequence[ComponentSpec]) -> dict[str, float]:
    """Return for every question the lowest confidence that an input of these specs requires."""
    lowest: dict[str, float] = {}
    for one in (one for spec in specs for one in spec.inputs.values()):
        for question in one.questions:
            lowest[question] = min(lowest.get(question, 1.0), one.min_confidence)
    return lowest


def _question_directions(decision: Decision) -> dict[str, int]:
    """Return for every question that counts 1 if a higher score means more reward, -1 if it means less.

    Questions of weight 0 have no direction, nor those of an input that has none by its combiner.
    """
    directions: dict[str, int] = {}
    for spec in decision.counting_specs:
        combiner = combiner_of(spec)
        for name, one in spec.inputs.items():
            if not combiner.has_direction(name):
                continue
            for question, weight in zip(one.questions, one.weights, strict=True):
                if weight:
                    directions[question] = max(directions.get(question, -1), spec.direction * (1 if weight > 0 else -1))
    return directions


def _as_total(weight: float) -> float:
    """Return a total weight; 1 if it is only not 1 because of rounding."""
    return 1.0 if isclose(weight, 1.0, abs_tol=1e-9) else weight
