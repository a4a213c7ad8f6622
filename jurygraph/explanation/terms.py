"""Terms of a reward and the effect of every verdict, from the side of the explained response."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.agents.registry import BUILTIN_COMBINER_PATHS, find_plugin_paths, load_combiner
from jurygraph.agents.roles import QUOTE_TOO_WEAK_REASON
from jurygraph.decision.combiners import Combiner, Component, InputMatrices, ScoreMatrix
from jurygraph.decision.table import (
    ABSENT_CODE,
    NOT_APPLICABLE_CODE,
    OK_CODE,
    WORST_CASE_CODE,
    ScoreArrays,
    UnjudgedFillMode,
    VerdictTable,
    apply_calibration,
    build_verdict_table,
    deciding_turns,
    ok_verdict_code,
)
from jurygraph.messages import format_number_for_sentence, join_names
from jurygraph.schema import (
    ComponentInput,
    ComponentSpec,
    Decision,
    Question,
    RecordedVerdict,
    ScoreCalibration,
    Term,
    Trace,
)
from jurygraph.schema.frozen_model import RawParams
from jurygraph.schema.verdict import RESPONSE_GATES, UnsupportedTreatment

VerdictEffect = Literal["none", "deduction", "gated", "discarded", "unjudged", "not_applicable"]
"""Effect of a verdict; a `deduction` is a score below the best."""

_SOURCES_OF_QUOTATIONS = "from the response, or from the context where it is about that,"
_TEXT_BY_UNSUPPORTED_TREATMENT: Mapping[UnsupportedTreatment | None, str] = {
    "worst-case": f"the worst case counts, because no quotation {_SOURCES_OF_QUOTATIONS} supports it",
    "tie": "it counts as a tie, because no quotation from a response supports it",
    "stands": f"it stands, although no quotation {_SOURCES_OF_QUOTATIONS} supports it",
}


def describe_unsupported(verdict: RecordedVerdict) -> str:
    """Return how an unsupported verdict counts, and what a quotation needs if one was too weak."""
    text = _TEXT_BY_UNSUPPORTED_TREATMENT[verdict.unsupported]
    if QUOTE_TOO_WEAK_REASON not in verdict.reason:
        return text
    return f"{text}; a quotation has eight letters or digits at least, or is a line, and cuts no word or number"


class UnknownCombiner(Combiner):
    """Stands in for a combiner of which nothing is known."""

    name = "unknown"

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        raise NotImplementedError


def find_combiner(spec: ComponentSpec) -> Combiner:
    """Return the combiner of a component; an unknown one if it is not installed.

    A stored run is read without running code that it names by a dotted path.
    """
    combiner: Combiner | None = spec.implementation
    if combiner is not None:
        return combiner
    # The plugins are looked up only for a name that is not built in.
    if spec.combiner in BUILTIN_COMBINER_PATHS or spec.combiner in find_plugin_paths("combiner"):
        return load_combiner(spec.combiner)
    return UnknownCombiner()


@dataclass(frozen=True)
class ExplainedVerdict:
    """A verdict from the side of the explained response.

    `score` and `opponent` are those of this response: 1 - score if the verdict is about the other one of a pair.
    `counted` is the score as it counts: by the calibration of its question, if there is one. The verdict is discarded
    below `required_confidence`. `direction` is 1 if a higher score means more reward, -1 if it means less, and 0 if it
    has no effect or either one. If it `has_tools`, its judge may look things up.
    """

    verdict: RecordedVerdict
    score: float | None
    counted: float | None
    opponent: str | None
    required_confidence: float
    direction: int
    has_tools: bool

    @property
    def has_unused_tools(self) -> bool:
        return self.has_tools and bool(self.verdict.calls) and not self.verdict.lookups

    @property
    def effect(self) -> VerdictEffect:
        """Return the effect of the verdict on the reward; one of a gate counts at any confidence."""
        verdict = self.verdict
        is_gated = verdict.gated_by in RESPONSE_GATES
        has_ungated_answer = verdict.status in ("ok", "not_applicable") and not is_gated
        confidence = 1.0 if verdict.confidence is None else verdict.confidence
        if has_ungated_answer and confidence < self.required_confidence:
            return "discarded"
        if verdict.status == "not_applicable":
            return "not_applicable"
        if self.score is None:
            return "unjudged"
        if is_gated:
            return "gated"
        best = 0.0 if self.direction < 0 else 1.0
        is_best_score = self.counted == best and not verdict.is_worst_case
        return "none" if is_best_score or not self.direction else "deduction"

    @property
    def has_best_decision(self) -> bool:
        """Return True for a yes or no that is the better one for the response, however sure its judge is."""
        is_binary_deduction = self.effect == "deduction" and self.verdict.is_binary_verdict
        if not is_binary_deduction or self.verdict.is_worst_case:
            return False
        return self.verdict.met is (self.direction > 0)

    @property
    def score_shortfall(self) -> float:
        """Return how far the verdict is from its best, in [0, 1]; 1 where it was not judged, or does not count."""
        if self.effect == "none":
            return 0.0
        if self.effect != "deduction" or self.counted is None or self.verdict.is_worst_case:
            return 1.0
        return self.counted if self.direction < 0 else 1.0 - self.counted

    @property
    def worst_case_score(self) -> float | None:
        """Return the score that counts of an unsupported finding, or where a gate stopped; None of any other."""
        is_worst_case = self.verdict.is_worst_case or self.effect == "gated"
        return float(self.direction < 0) if is_worst_case and self.direction else None

    @property
    def label(self) -> str:
        """Return the name of the verdict, with its stakeholder or reviewer, its opponent and its turn."""
        turn = self.verdict.turn
        return self.name if turn is None else f"{self.name} in turn {turn}"

    @property
    def name(self) -> str:
        """Return the label without the turn."""
        member = self.verdict.stakeholder or self.verdict.reviewer
        name = self.verdict.subject
        if member and member != self.verdict.subject:
            name += f" of {member}"
        if self.opponent:
            name += f" against {self.opponent}"
        return name

    @property
    def is_mirrored(self) -> bool:
        """Return True if the verdict is about the other response of a pair, so that its score counts as 1 - score."""
        return self.opponent == self.verdict.about

    @property
    def prediction(self) -> str | None:
        """Return what a reviewer is predicted to give, such as "4 of 1–5"; None of any other verdict."""
        verdict = self.verdict
        if verdict.reviewer is None or verdict.status != "ok" or verdict.gated_by is not None:
            return None
        if self.native is None or verdict.scale is None:
            return None
        return f"{verdict.native:g} of {verdict.scale[0]:g}–{verdict.scale[1]:g}"

    @property
    def native(self) -> str | None:
        """Return the judge's own value on its scale; None without one."""
        value = self.verdict.native
        scale = self.verdict.scale
        if isinstance(value, bool | str | None) or scale is None or self.is_mirrored:
            return None
        return f"{value:g} on a scale of {scale[0]:g} to {scale[1]:g}"


class Ballot(NamedTuple):
    """The votes on a question of an input that is reduced by majority, and their result, in one column."""

    voting_verdicts: Sequence[ExplainedVerdict]
    columns: ScoreArrays
    has_judges: bool

    @property
    def votes(self) -> str:
        """Return what was voted for, the most frequent first: `2 × 0.5, 1 × abstained`."""
        counts = Counter(
            describe_vote(verdict, self.has_judges) for verdict in self.voting_verdicts
        )
        return ", ".join(f"{number} × {vote}" for vote, number in counts.most_common())

    @property
    def answers(self) -> str:
        """Return the answer of each judge, on its scale if it has one: `mini 4 of 5, strong 5 of 5`."""
        return join_names(
            f"{vote.verdict.judge or ''} {describe_judge_answer(vote.verdict)}".lstrip()
            for vote in self.voting_verdicts
        )

    @property
    def is_undecided(self) -> bool:
        """Return whether there is no majority; findings of which none is quoted agree, on the worst case."""
        has_only_unsupported = all(vote.verdict.is_worst_case for vote in self.voting_verdicts)
        is_decided = self.columns.verdict_code[0, 0] in (OK_CODE, NOT_APPLICABLE_CODE)
        return not is_decided and not has_only_unsupported

    @property
    def is_worst_case(self) -> bool:
        return bool(self.columns.verdict_code[0, 0] == WORST_CASE_CODE)


def describe_judge_answer(verdict: RecordedVerdict) -> str:
    """Return what a judge says, in its own terms: met or not with its probability, or its value on a scale."""
    if verdict.score is None:
        answer = verdict.status.replace("_", " ")
    elif verdict.unsupported:
        answer = "unsupported"
    elif verdict.is_binary_verdict:
        answer = f"{'met' if verdict.met else 'not met'} ({verdict.score:.4g})"
    elif isinstance(verdict.native, int | float) and verdict.scale is not None:
        answer = f"{verdict.native:.4g} of {verdict.scale[1]:g}"
    else:
        answer = f"{verdict.score:.4f}"
    return f"{answer} (superseded)" if verdict.superseded else answer


def missing_vote(verdict: ExplainedVerdict) -> str:
    """Return why a verdict votes for nothing; empty if it votes."""
    if verdict.effect == "discarded":
        return "discarded"
    if verdict.verdict.status != "ok":
        return verdict.verdict.status.replace("_", " ")
    return "unsupported" if verdict.verdict.is_worst_case or verdict.score is None else ""


def describe_vote(verdict: ExplainedVerdict, has_judges: bool) -> str:
    """Return what a verdict votes for, or why it counts for nothing: met or not where several judges vote."""
    missing = missing_vote(verdict)
    if missing:
        return missing
    if has_judges and verdict.verdict.is_binary_verdict:
        return "met" if verdict.verdict.met else "not met"
    return verdict.prediction or format_number_for_sentence(verdict.score or 0.0)


@dataclass(frozen=True, kw_only=True)
class VerdictCounts:
    """The numbers of verdicts by outcome; the first five add up to `total`, and `discarded` ones are judged.

    `gated` has the numbers of verdicts that a response gate set, by gate.
    """

    judged: int
    gated: Mapping[str, int]
    abstained: int
    failed: int
    not_applicable: int
    discarded: int
    total: int


class ExplainedTrace:
    """The terms of a response's reward, and its verdicts with their effects; superseded ones have none."""

    def __init__(self, trace: Trace, decision: Decision, questions: Sequence[Question]) -> None:
        self.trace = trace
        self.decision = decision
        self._with_tools = {question.id for question in questions if question.tools}
        recorded_verdicts = [verdict for verdict in trace.verdicts if not verdict.superseded]
        self._turns = _count_verdicts_by_turn(recorded_verdicts)
        self.table = _build_verdict_table(trace, questions, recorded_verdicts)
        self.verdicts = list(self._to_explained_verdicts(recorded_verdicts))
        self._by_question = defaultdict(list)
        for verdict in self.verdicts:
            self._by_question[verdict.verdict.question].append(verdict)
        specs = {spec.name: spec for spec in decision.specs}
        self.terms = [
            ExplainedTerm(self, term, specs.get(term.name)) for term in trace.reward.terms
        ]

    @property
    def counts(self) -> VerdictCounts:
        counts = self.trace.reward.counts
        gated = self.trace.gated
        return VerdictCounts(
            judged=counts.judged - gated.total(),
            gated=gated,
            abstained=counts.abstained,
            failed=counts.failed,
            not_applicable=counts.not_applicable,
            discarded=sum(verdict.effect == "discarded" for verdict in self.verdicts),
            total=counts.total,
        )

    def verdicts_of_questions(
        self, questions: Iterable[str], judge: str | None = None
    ) -> list[ExplainedVerdict]:
        """Return the verdicts on these questions, in their order; with a `judge` only those of that one."""
        found = []
        for question in questions:
            for explained_verdict in self._by_question.get(question, ()):
                if judge in (None, explained_verdict.verdict.judge):
                    found.append(explained_verdict)
        return found

    def ballots(self, question: str, use: ComponentInput) -> Iterator[Ballot]:
        """Yield the votes on a question, those on each turn for themselves; gates leave nothing to vote on."""
        voting_verdicts = self.verdicts_of_questions([question], use.judge)
        turns = self._turns.get(question, {None: 0})
        results = self.table.effective_columns_by_turn(question, use)
        for turn, columns in zip(turns, results, strict=True):
            votes = [vote for vote in voting_verdicts if vote.verdict.turn == turn]
            is_gated = any(vote.verdict.gated_by for vote in votes)
            # where another turn counts alone, all cells are ABSENT
            if len(votes) > 1 and not is_gated and (columns.verdict_code != ABSENT_CODE).any():
                yield Ballot(votes, columns, use.has_judges)

    def _to_explained_verdicts(
        self, recorded_verdicts: Iterable[RecordedVerdict]
    ) -> Iterator[ExplainedVerdict]:
        required_confidences, directions = _required_confidences_and_directions(self.decision)
        maps = {}
        for spec in self.decision.specs:
            for use in spec.inputs.values():
                maps.update(use.calibration)
        irrelevant_turns = self._irrelevant_turns()
        for verdict in recorded_verdicts:
            is_about_this_response = verdict.about == self.trace.response_id
            score = verdict.score
            if score is not None and not is_about_this_response:
                score = 1.0 - score
            opponent = None
            if len(verdict.responses) == 2 and verdict.about == verdict.responses[0]:
                first, second = verdict.responses
                opponent = second if is_about_this_response else first
            confidence = required_confidences.get(verdict.question, 0.0)
            counted_score = _calibrate(verdict, score, maps.get(verdict.question))
            direction = directions.get(verdict.question, 0)
            if (verdict.question, verdict.turn) in irrelevant_turns:
                direction = 0
            has_tools = verdict.question in self._with_tools
            yield ExplainedVerdict(
                verdict, score, counted_score, opponent, confidence, direction, has_tools
            )

    def _irrelevant_turns(self) -> set[tuple[str, int | None]]:
        """Return the turns of questions whose verdicts do not decide the value of the response."""
        irrelevant_turns = set()
        for question, turns in self._turns.items():
            irrelevant_turns |= {(question, turn) for turn in turns}
        for spec in self.decision.effective_specs:
            for use in spec.inputs.values():
                for question, weight in zip(use.questions, use.weights, strict=True):
                    if question in use.turns and question in self._turns:
                        is_penalty = weight * spec.direction < 0
                        filled_cells_by_turn = self.table.fill_turn_cells(
                            question, use, is_penalty, self.decision.rule, "counted", spec.met_from
                        )
                        # [T]: the table has one row, that of this response.
                        mask = deciding_turns(
                            filled_cells_by_turn, use.turns[question], is_penalty
                        )[:, 0]
                        for turn, is_deciding_turn in zip(self._turns[question], mask, strict=True):
                            if is_deciding_turn:
                                irrelevant_turns.discard((question, turn))
        return irrelevant_turns


class ExplainedTerm:
    """A term of the reward with its component.

    `inapplicable` are the inputs that do not apply, `unjudged` those without a verdict that counts; `is_filled_in` if
    the failure rule gave a missing verdict a value. `parts` are the values of the parts that have one.
    """

    def __init__(
        self, explained_trace: ExplainedTrace, term: Term, spec: ComponentSpec | None
    ) -> None:
        self.term = term
        self.spec = spec
        self.inputs: Mapping[str, ComponentInput] = {} if spec is None else spec.inputs
        self.params: RawParams = {} if spec is None else spec.params
        self.combiner = UnknownCombiner() if spec is None else find_combiner(spec)
        self.diagnostics = explained_trace.trace.reward.diagnostics.get(term.name, {})
        self._explained_trace = explained_trace
        self._counted_input_means = {
            name: self._mean_cell_value(use, "counted") for name, use in self.inputs.items()
        }
        judged_input_means = {
            name: self._mean_cell_value(use, "partial") for name, use in self.inputs.items()
        }
        self.inapplicable = [
            name for name, mean in self._counted_input_means.items() if mean is None
        ]
        unjudged_inputs = {name for name, mean in judged_input_means.items() if mean is None}
        self.unjudged = unjudged_inputs.difference(self.inapplicable)
        self.is_filled_in = self._counted_input_means != judged_input_means
        parts = explained_trace.trace.reward.parts.get(term.name, {})
        self.parts = {name: value for name, value in parts.items() if name not in self.inapplicable}

    @property
    def is_judged(self) -> bool:
        return self.spec is None or len(self.unjudged) + len(self.inapplicable) < len(self.inputs)

    @cached_property
    def verdicts(self) -> list[ExplainedVerdict]:
        names = chain.from_iterable(use.questions for use in self.inputs.values())
        return self._explained_trace.verdicts_of_questions(dict.fromkeys(names))

    @cached_property
    def majority_votes(self) -> Sequence[Ballot]:
        """The votes on its questions."""
        votes: list[Ballot] = []
        for use in self.inputs.values():
            for question in use.questions if use.reduce == "majority" else ():
                votes += self._explained_trace.ballots(question, use)
        return votes

    def undecided_juries_of(self, verdicts: Iterable[ExplainedVerdict]) -> list[Ballot]:
        """Return the votes on the questions of these verdicts in which answers were given without a majority."""
        questions = {verdict.verdict.question for verdict in verdicts if verdict.score is not None}
        return [
            vote
            for vote in self.majority_votes
            if vote.is_undecided and vote.voting_verdicts[0].verdict.question in questions
        ]

    @property
    def is_counted_elsewhere(self) -> bool:
        """Return True for a term of weight 0 whose verdicts count in another component, or in a gate."""
        return any(verdict.direction for verdict in self.verdicts)

    def input_mean(self, name: str) -> float | None:
        """Return the mean of an input as the combiner got it, before prerequisites or caps; None if not applicable."""
        mean_and_cell_count = self._counted_input_means[name]
        return None if mean_and_cell_count is None else mean_and_cell_count[0]

    def is_unjudged_part(self, name: str) -> bool:
        """Return True if no verdict of a part counts: of an input, or of all judges in a reviewer's panel."""
        inputs = self.combiner.input_names_by_part(self.params).get(name, [name])
        return self.unjudged.issuperset(inputs)

    def describe_missing_judgement(self, name: str) -> str:
        """Return why a criterion does not count as judged for those that depend on it (`are_criteria_judged`), such as
        "unsupported in 1 of 3 verdicts"; empty if it does, or if a gate stopped the response."""
        use = self.inputs[name]
        matrix = self._score_matrix(use, "counted")
        verdicts = self.verdicts_of(name)
        is_gated = any(verdict.effect == "gated" for verdict in verdicts)
        if is_gated or (matrix.judged | ~matrix.applicable).all():
            return ""
        votes = [
            missing_vote(verdict) for verdict in verdicts if verdict.effect != "not_applicable"
        ]
        reasons = sorted(set(filter(None, votes)))
        share = (
            f" in {len(votes) - votes.count('')} of {len(votes)} verdicts" if "" in votes else ""
        )
        is_undecided = share and use.reduce == "majority"
        return "without a majority" if is_undecided else f"{' or '.join(reasons)}{share}"

    def verdicts_of(self, name: str, question: str | None = None) -> list[ExplainedVerdict]:
        """Return the verdicts of an input, or on one of its questions."""
        use = self.inputs[name]
        questions = use.questions if question is None else (question,)
        return self._explained_trace.verdicts_of_questions(questions, use.judge)

    def question_means_of_input(self, name: str) -> Iterator[tuple[str, float, float]]:
        """Yield each question of an input that counts, its weight over all its verdicts, and the mean of its values."""
        use = self.inputs[name]
        for question, weight in zip(use.questions, use.weights, strict=True):
            single_question_input = use.model_copy(
                update={"questions": (question,), "weights": (weight,)}
            )
            mean_and_cell_count = self._mean_cell_value(single_question_input, "counted")
            if mean_and_cell_count is not None:
                mean, cells = mean_and_cell_count
                yield question, abs(weight) * cells, mean

    def _mean_cell_value(
        self, use: ComponentInput, fill_mode: UnjudgedFillMode
    ) -> tuple[float, int] | None:
        """Return the mean value of an input's cells, as the combiner got them, and their number; None without any."""
        matrix = self._score_matrix(use, fill_mode)
        cells = matrix.value[matrix.applicable & (matrix.weight != 0.0)]
        return (float(cells.mean()), len(cells)) if len(cells) else None

    def _score_matrix(self, use: ComponentInput, fill_mode: UnjudgedFillMode) -> ScoreMatrix:
        direction = 1 if self.spec is None else self.spec.direction
        rule = self._explained_trace.decision.rule
        return self._explained_trace.table.score_matrix(use, rule, direction, fill_mode)


def _build_verdict_table(
    trace: Trace, questions: Sequence[Question], recorded_verdicts: Sequence[RecordedVerdict]
) -> VerdictTable:
    """Return the row of a response in the table from which its reward was decided."""
    names = [trace.response_id]
    for verdict in recorded_verdicts:
        names += verdict.about, *verdict.responses
    table = build_verdict_table(questions, list(dict.fromkeys(names)), recorded_verdicts)
    columns = {
        name: ScoreArrays._make(array[:1] for array in arrays)
        for name, arrays in table.columns.items()
    }
    return replace(table, rows=1, columns=columns)


def _count_verdicts_by_turn(
    recorded_verdicts: Iterable[RecordedVerdict],
) -> dict[str, Counter[int | None]]:
    """Return the turns of each question about turns, in their order, with the number of their verdicts."""
    turns: dict[str, Counter[int | None]] = defaultdict(Counter)
    turn_verdicts = [verdict for verdict in recorded_verdicts if verdict.turn is not None]
    for verdict in sorted(turn_verdicts, key=lambda verdict: verdict.turn or 0):
        turns[verdict.question][verdict.turn] += 1
    return turns


def _calibrate(
    verdict: RecordedVerdict, score: float | None, calibration: ScoreCalibration | None
) -> float | None:
    """Return the score as it counts. What a gate or a missing quotation has decided is not calibrated."""
    if calibration is None or score is None:
        return score
    if ok_verdict_code(verdict.gated_by, verdict.unsupported) != OK_CODE:
        return score
    return float(apply_calibration(np.array(score), calibration))


def _required_confidences_and_directions(
    decision: Decision,
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the lowest confidence that an input requires of each question that counts, and each question's direction.

    Questions of weight 0 have no direction, nor those of an input that has none by its combiner.
    """
    required_confidences: dict[str, float] = {}
    directions: dict[str, int] = {}
    for spec in decision.effective_specs:
        combiner = find_combiner(spec)
        for name, use in spec.inputs.items():
            for question, weight in zip(use.questions, use.weights, strict=True):
                required_confidences[question] = min(
                    required_confidences.get(question, 1.0), use.min_confidence
                )
                if weight and combiner.is_monotone_input(name):
                    direction = spec.direction if weight > 0 else -spec.direction
                    # A question that raises the reward anywhere is at its best at 1.
                    directions[question] = max(directions.get(question, -1), direction)
    return required_confidences, directions
