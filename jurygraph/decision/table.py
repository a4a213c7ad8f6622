"""The table of verdicts: outcomes and scores as arrays, and the rules that fill unjudged cells.

A `VerdictTable` has, for every question, one row for each response of the group and one column for each sample,
opponent or variant. `score_matrix` turns an input of a spec into a `ScoreMatrix` for a combiner, filled by the
decision's rule.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.aggregation.agreement import strict_majority
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import ScoreMatrix
from jurygraph.schema import (
    Cause,
    ComponentInput,
    Decision,
    Question,
    RecordedVerdict,
    ScoreCalibration,
)
from jurygraph.schema.plan import SUBMITTED, VoteRule
from jurygraph.schema.verdict import MET_THRESHOLD, NO_VARIANT, RESPONSE_GATES, Status, Unsupported

ABSENT, OK, ABSTAINED, NO_MODEL, FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE = range(6)
NOT_APPLICABLE, STOPPED, NO_VARIANTS, EXCLUDED = range(6, 10)
SCORED = (OK, STOPPED)
"""Outcomes with a verdict: from an evaluator, or STOPPED, the worst case: from a gate that stopped the response before,
or where the evaluator's finding lacks the quotation that it needs.

NO_VARIANTS is a question about variants of a response that has none: not applicable, or the worst case where an input
counts questions that do not apply as zero. So it is no advantage to have none. EXCLUDED is an answer of the evaluator:
that its question does not apply. It may be discarded, and is a vote of a majority; else it is NOT_APPLICABLE.
"""

_DOES_NOT_APPLY = -1.0
"""The value of a vote that a question does not apply; scores are in [0, 1]."""

Variants = Mapping[str, Mapping[str, int]]
"""{response id: {variant id: column}}."""

Cells = dict[tuple[int, int], tuple[RecordedVerdict, bool]]
"""The verdict of each cell [R,K], and whether it is mirrored for the second response of a pair."""

Scenario = Literal["counted", "low", "high", "partial"]
"""How unjudged cells are filled: by the rule, all by 0, all by 1, or not at all (they leave the denominator)."""


class ScoreArrays(NamedTuple):
    """Verdicts as arrays [R,K]: a row for each response; columns of one question, or of all in their order.

    `value` is the score, 0 where there is none; `met` the judge's own answer; `outcome` a code of this module, ABSENT
    where no verdict was requested; `confidence` the judge's confidence, 1 where there is none; `binary` where `met` is
    all that the verdict says (see `Verdict.is_binary`); `decided` where `met` is the judge's own, and not read from the
    score.
    """

    value: Floats
    met: Bools
    outcome: NDArray[np.int8]
    confidence: Floats
    binary: Bools
    decided: Bools

    @classmethod
    def absent(cls, *shape: int) -> "ScoreArrays":
        codes = np.zeros(shape, dtype=np.int8)
        nowhere = np.zeros(shape, dtype=np.bool_)
        return cls(np.zeros(shape), nowhere, codes, np.ones(shape), nowhere.copy(), nowhere.copy())

    def fill(self, cell: tuple[int, int], verdict: RecordedVerdict) -> None:
        self.value[cell], self.met[cell], self.outcome[cell] = score_entry(verdict)
        self.confidence[cell] = 1.0 if verdict.confidence is None else verdict.confidence
        self.binary[cell] = verdict.is_binary
        self.decided[cell] = verdict.met is not None


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """Verdicts as arrays by question; the rows are the responses, of a group in canonical order.

    The columns of the `sampled` questions are the samples of one judgement. The seats of a question with several judges
    have those in `judges`, and repeat for each opponent or variant.
    """

    rows: int
    columns: Mapping[str, ScoreArrays]
    sampled: frozenset[str] = frozenset()
    judges: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    def score_matrix(
        self,
        spec_input: ComponentInput,
        rule: str,
        direction: int,
        scenario: Scenario,
        met_from: float = MET_THRESHOLD,
    ) -> ScoreMatrix:
        """Return one input of a spec, filled; `direction` is -1 where a larger component means a lower reward.

        A score of `met_from` or more is met, in [0, 1], where its judge has not decided itself.
        """
        pieces = []
        for name, weight in zip(spec_input.questions, spec_input.weights, strict=True):
            columns = self.effective_columns(name, spec_input, met_from)
            pieces.append(_fill_cells(columns, weight * direction < 0, spec_input, rule, scenario))
        weights = [
            np.full(piece[0].shape[1], weight)
            for piece, weight in zip(pieces, spec_input.weights, strict=True)
        ]
        filled: Sequence[Any] = pieces[0]
        if len(pieces) > 1:
            filled = [np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True)]
        value, met, judged, applicable = filled
        return ScoreMatrix(
            value, met, judged, applicable, np.concatenate(weights), spec_input.input_weight
        )

    def effective_columns(
        self, name: str, spec_input: ComponentInput, met_from: float = MET_THRESHOLD
    ) -> ScoreArrays:
        """Return a question's verdicts as an input uses them: confident enough, and reduced to a majority if required.

        A discarded verdict counts as an abstention, and so does a missing majority, except of judges; a failure among
        the votes counts as that failure.
        """
        columns = self._columns_of(name, spec_input.judge)
        if met_from != MET_THRESHOLD:
            columns = columns._replace(
                met=np.where(columns.decided, columns.met, columns.value >= met_from)
            )
        if (
            name in spec_input.calibration
        ):  # the value of any other cell than a judged one follows from its outcome
            calibrated = calibrate(columns.value, spec_input.calibration[name])
            value = np.where(columns.outcome == OK, calibrated, columns.value)
            columns = columns._replace(value=value, met=value >= met_from)
        if (columns.outcome == NO_VARIANTS).any():
            counted = STOPPED if spec_input.if_skipped == "zero" else NOT_APPLICABLE
            outcome = np.where(columns.outcome == NO_VARIANTS, counted, columns.outcome).astype(
                np.int8
            )
            columns = columns._replace(outcome=outcome)
        if spec_input.min_confidence > 0.0:  # verdicts of gates are never discarded
            is_unsure = _is_answered(columns.outcome) & (
                columns.confidence < spec_input.min_confidence
            )
            columns = columns._replace(
                outcome=np.where(is_unsure, ABSTAINED, columns.outcome).astype(np.int8)
            )
        if spec_input.reduce == "majority" and columns.value.shape[1] > 1:
            columns = _reduce_to_majority(columns, spec_input.vote, spec_input.has_judges)
        if (columns.outcome == EXCLUDED).any():
            outcome = np.where(columns.outcome == EXCLUDED, NOT_APPLICABLE, columns.outcome).astype(
                np.int8
            )
            columns = columns._replace(outcome=outcome)
        return columns

    def _columns_of(self, name: str, judge: str | None) -> ScoreArrays:
        """Return a question's verdicts, or those of one of its judges."""
        columns = self.columns[name]
        if judge is None:
            return columns
        seats = self.judges.get(name, ())
        own = [
            place
            for place in range(columns.value.shape[1])
            if seats and seats[place % len(seats)] == judge
        ]
        return (
            ScoreArrays._make(array[:, own] for array in columns)
            if own
            else ScoreArrays.absent(self.rows, 1)
        )

    def count_discarded(self, spec_input: ComponentInput) -> tuple[Floats, Floats]:
        """Return the number of an input's discarded verdicts, and of its questions without a majority, [R] each."""
        discarded = []
        undecided = []
        for name in spec_input.questions:
            columns = self._columns_of(name, spec_input.judge)
            effective = self.effective_columns(name, spec_input)
            is_discarded = _is_answered(columns.outcome) & (
                columns.confidence < spec_input.min_confidence
            )
            discarded.append(aggregation.total(np.where(is_discarded, 1.0, 0.0)))
            has_vote = _is_answered(columns.outcome) | (columns.outcome == STOPPED)
            is_undecided = has_vote.any(axis=1) & lacks_score(effective.outcome).any(axis=1)
            needs_majority = spec_input.reduce == "majority" and columns.value.shape[1] > 1
            undecided.append(np.where(is_undecided & needs_majority, 1.0, 0.0))
        return np.asarray(aggregation.total(discarded, axis=0)), np.asarray(
            aggregation.total(undecided, axis=0)
        )

    def sample_spread(self, spec_inputs: Iterable[ComponentInput]) -> Floats | None:
        """Return the largest difference between two samples' scores on one of the inputs' questions, [R].

        Only scores of the judge count, whatever its confidence; a row without two on any question is NaN. None if no
        question has samples.
        """
        if not self.sampled:
            return None
        names = sorted(
            self.sampled.intersection(name for one in spec_inputs for name in one.questions)
        )
        spread = np.full(self.rows, np.nan)
        for value, _, outcome, *_ in (self.columns[name] for name in names):
            is_judged = outcome == OK
            highest = np.where(is_judged, value, 0.0).max(axis=1)
            lowest = np.where(is_judged, value, 1.0).min(axis=1)
            has_two = np.count_nonzero(is_judged, axis=1) > 1
            spread = np.fmax(spread, np.where(has_two, highest - lowest, np.nan))
        return spread if names else None

    def with_outcome(
        self, questions: Iterable[str], outcome: int, kept: Collection[int] = ()
    ) -> "VerdictTable":
        """Return the table with all requested cells of these questions set to one outcome, except those to keep."""
        columns = dict(self.columns)
        for name in questions:
            before = columns[name].outcome
            changed = np.where(np.isin(before, [ABSENT, *kept]), before, outcome).astype(np.int8)
            columns[name] = columns[name]._replace(outcome=changed)
        return replace(self, columns=columns)

    def settled_weight(self, spec_input: ComponentInput) -> tuple[Floats, Floats]:
        """Return the judged and the requested weight of an input, [R] each; a folded question counts once."""
        settled = (*SCORED, NOT_APPLICABLE) if spec_input.if_skipped == "zero" else SCORED
        judged_weights = []
        requested = []
        for name, weight in zip(spec_input.questions, spec_input.weights, strict=True):
            outcome = self.effective_columns(name, spec_input).outcome
            judged_count = np.asarray(
                aggregation.total(np.where(np.isin(outcome, settled), 1.0, 0.0))
            )
            requested_count = judged_count + aggregation.total(
                np.where(lacks_score(outcome), 1.0, 0.0)
            )
            if spec_input.reduce is not None:
                judged_count = judged_count / np.maximum(requested_count, 1.0)
                requested_count = np.minimum(requested_count, 1.0)
            judged_weights.append(abs(weight) * judged_count)
            requested.append(abs(weight) * requested_count)
        return np.asarray(aggregation.total(judged_weights, axis=0)), np.asarray(
            aggregation.total(requested, axis=0)
        )

    def outcomes(self, spec_input: ComponentInput) -> tuple[NDArray[np.int8], Floats]:
        """Return the outcome of every cell of an input, [R,K], and the cells' weights, [K]."""
        outcomes = [
            self.effective_columns(name, spec_input).outcome for name in spec_input.questions
        ]
        weights = [
            np.full(o.shape[1], w) for o, w in zip(outcomes, spec_input.weights, strict=True)
        ]
        return np.concatenate(outcomes, axis=1), np.concatenate(weights)


def build_table(
    questions: Sequence[Question], responses: Sequence[str], verdicts: Sequence[RecordedVerdict]
) -> VerdictTable:
    """Return the table of a group's verdicts, in any order. `responses` are ids in canonical order."""
    return stack_groups(questions, [(responses, verdicts)])


def stack_groups(
    questions: Sequence[Question], groups: Iterable[tuple[Sequence[str], Sequence[RecordedVerdict]]]
) -> VerdictTable:
    """Return the table of groups, each given by the ids of its responses and their verdicts: a row for each response.

    Several groups need questions that look at one response.
    """
    cells: dict[str, Cells] = {question.id: {} for question in questions}
    materials = sorted({question.material for question in questions})
    rows = 0
    for names, verdicts in groups:
        row = {name: place for place, name in enumerate(names, start=rows)}
        rows += len(names)
        by_question: dict[str, list[RecordedVerdict]] = defaultdict(list)
        for verdict in verdicts:
            by_question[verdict.question].append(verdict)
        shown = {
            material: _variant_columns(material, questions, by_question) for material in materials
        }
        for question in questions:
            _place_verdicts(
                question,
                row,
                by_question[question.id],
                shown[question.material],
                cells[question.id],
            )
    columns = {question.id: fill_columns(rows, cells[question.id]) for question in questions}
    # Several samples, by any judge, of one response as it was submitted.
    sampled = (
        q.id for q in questions if q.seats > 1 and q.scope == "response" and q.material == SUBMITTED
    )
    judges_of_seats = {
        q.id: [judge for judge in q.judges for _ in range(q.samples)] for q in questions if q.judges
    }
    return VerdictTable(rows, columns, frozenset(sampled), judges_of_seats)


def fill_columns(rows: int, cells: Cells) -> ScoreArrays:
    """Return the columns of one question from its cells; others are ABSENT."""
    width = 1 + max((column for _, column in cells), default=0)
    scores = ScoreArrays.absent(rows, width)
    value, met, outcome, *_ = scores
    for cell, (verdict, is_mirrored) in cells.items():
        scores.fill(cell, verdict)
        if is_mirrored and verdict.score is not None:
            mirrored = 1.0 - verdict.score
            value[cell] = mirrored
            met[cell] = mirrored >= MET_THRESHOLD
            outcome[cell] = OK
            scores.binary[cell] = False
            scores.decided[cell] = False
    return scores


def calibrate(scores: Floats, calibration: ScoreCalibration) -> Floats:
    """Return the calibrated value of each score, of any shape."""
    knots = np.array(calibration.scores)
    values = np.array(calibration.calibrated)
    left = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 0)
    right = np.minimum(left + 1, len(knots) - 1)
    width = np.where(right > left, knots[right] - knots[left], 1.0)
    share = np.clip((scores - knots[left]) / width, 0.0, 1.0)
    # rounding must not lead above the next knot, so that the map never falls
    calibrated: Floats = np.minimum(
        values[left] + share * (values[right] - values[left]), values[right]
    )
    return calibrated


def _reduce_to_majority(columns: ScoreArrays, vote: VoteRule, has_judges: bool) -> ScoreArrays:
    """Return the value that more than half of the seats have voted for, as one column.

    Under `discard-first`, a vote that abstained or was discarded leaves its seat ("Aggregate vs. Personalized Judges").
    A failed one keeps it, so that an outage never turns the votes that are left into a majority. So does one that is
    the worst case: its value depends on the direction, so it votes for none, and decides where the others do not. Where
    no vote was requested, the outcome is NOT_APPLICABLE if a `when` skipped the question, else ABSENT.

    Judges vote by `met` where this is all that they say. If they disagree, and no vote is missing that could decide,
    the outcome is the worst case: it was judged, and gives no credit.
    """
    has_vote = _is_answered(columns.outcome)
    is_stopped = columns.outcome == STOPPED
    value = np.where(columns.binary, columns.met, columns.value) if has_judges else columns.value
    value = np.where(columns.outcome == EXCLUDED, _DOES_NOT_APPLY, value)
    is_requested = has_vote | is_stopped | lacks_score(columns.outcome)
    seats = (
        is_requested & (columns.outcome != ABSTAINED) if vote == "discard-first" else is_requested
    )
    majority = strict_majority(value, has_vote, seats)
    is_excluded = majority.decided & (majority.value == _DOES_NOT_APPLY)
    agrees = has_vote & (value == majority.value[:, None])
    votes = aggregation.total(np.where(agrees, 1.0, 0.0))
    votes_met = aggregation.total(np.where(agrees & columns.met, 1.0, 0.0))
    worst = np.where(lacks_score(columns.outcome), columns.outcome, ABSTAINED).max(axis=1)
    is_left_out = (columns.outcome == NOT_APPLICABLE).any(axis=1)
    unrequested = np.where(is_left_out, NOT_APPLICABLE, ABSENT)
    undecided = np.where(is_requested.any(axis=1), worst, unrequested)
    if has_judges:
        is_disputed = seats.any(axis=1) & ~(seats & lacks_score(columns.outcome)).any(axis=1)
        undecided = np.where(is_disputed, STOPPED, undecided)
    undecided = np.where(is_stopped.any(axis=1), STOPPED, undecided)
    decided = np.where(is_excluded, EXCLUDED, OK)
    outcome = np.where(majority.decided, decided, undecided).astype(np.int8)
    met = majority.decided & ~is_excluded & (np.asarray(votes_met) * 2 >= votes)
    winner = np.where(is_excluded, 0.0, majority.value)
    one_column = ScoreArrays.absent(len(outcome), 1)
    return one_column._replace(value=winner[:, None], met=met[:, None], outcome=outcome[:, None])


def score_entry(verdict: RecordedVerdict) -> tuple[float, bool, int]:
    """Return a verdict as numbers: its score, whether it is met, and its outcome (a code of this module).

    If the judge gave no answer of its own (`met`), a score of 0.5 or more is met; without a score: 0.0 and not met.
    """
    if verdict.score is None:
        cause = verdict.failure.cause if verdict.failure else None
        return 0.0, False, outcome_of(verdict.status, cause, verdict.gated_by)
    score = (
        verdict.score + 0.0
    )  # never -0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU
    return score, verdict.counts_as_met, ok_outcome(verdict.gated_by, verdict.unsupported)


def ok_outcome(gated_by: str | None, unsupported: Unsupported | None) -> int:
    """Return the outcome of a verdict that is ok: STOPPED if it counts as the worst case, else OK."""
    return STOPPED if gated_by in RESPONSE_GATES or unsupported == "worst-case" else OK


def _place_verdicts(
    question: Question,
    row: Mapping[str, int],
    verdicts: Iterable[RecordedVerdict],
    variants: Variants,
    cells: Cells,
) -> None:
    """Put the verdicts of a group on a question into their cells.

    A verdict without a judgement (of a gate, say) fills the cells of every variant of its response.
    """
    for verdict in verdicts:
        if verdict.superseded:
            continue
        own_row = row[verdict.about]
        shown_variants = variants.get(verdict.about, {})
        if not verdict.responses:
            columns: Iterable[int] = range(max(1, len(shown_variants)))
        elif question.scope == "pair":
            columns = (row[verdict.responses[1]],)
        else:
            columns = (
                shown_variants.get(verdict.responses[0], 0),
            )  # a whole group is shown no variants: 0
        for column in columns:
            seat = question.seat(verdict.judge, verdict.sample)
            cells[own_row, column * question.seats + seat] = (verdict, False)
            if question.scope == "pair" and question.pairs == "unordered" and verdict.responses:
                cells[column, own_row * question.seats + seat] = (verdict, True)


def _variant_columns(
    material: str, questions: Iterable[Question], verdicts: Mapping[str, Sequence[RecordedVerdict]]
) -> Variants:
    """Return the column of every variant that was shown: its position, by id, among those of its parent."""
    if material == SUBMITTED:
        return {}
    shown: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        for verdict in verdicts[question.id] if question.material == material else ():
            shown[verdict.about].update(verdict.responses)
    return {
        about: {name: column for column, name in enumerate(sorted(names))}
        for about, names in shown.items()
    }


def outcome_of(status: Status, cause: Cause | None, gated_by: str | None) -> int:
    """Return the outcome of a verdict that is not ok, as a code; `cause` is that of its failure, if any."""
    if status == "not_applicable":
        return (
            EXCLUDED
            if gated_by is None
            else NO_VARIANTS
            if gated_by == NO_VARIANT
            else NOT_APPLICABLE
        )
    if status == "abstained":
        return NO_MODEL if cause == "infrastructure" else ABSTAINED
    return FAILED_BY_RESPONSE if cause == "response" else FAILED_BY_INFRASTRUCTURE


def _fill_cells(
    columns: ScoreArrays,
    is_penalty: bool,
    spec_input: ComponentInput,
    rule: str,
    scenario: Scenario,
) -> tuple[Floats, Bools, Bools, Bools]:
    """Return one question's values, own answers (`met`), and masks of judged and of applicable cells, [R,K] each.

    They are folded into one column if the input requires it. Under the rule, an unjudged cell is 0, and 1 for a penalty
    unless the rule is `gear`.
    """
    if (
        columns.value.shape[1] == 1 and (columns.outcome == OK).all()
    ):  # most tables are only of such columns
        return (
            columns.value.copy(),
            columns.met.copy(),
            np.ones_like(columns.met),
            np.ones_like(columns.met),
        )
    applies = (columns.outcome != ABSENT) & (columns.outcome != NOT_APPLICABLE)
    is_applicable = columns.outcome != ABSENT if spec_input.if_skipped == "zero" else applies
    is_stopped = columns.outcome == STOPPED
    is_settled = ~applies | has_score(columns.outcome)
    if scenario == "partial":
        is_applicable = is_applicable & is_settled
    is_one = is_penalty and rule != "gear" if scenario == "counted" else scenario == "high"
    value = np.where(
        is_settled, np.where(is_stopped, float(is_penalty), columns.value), float(is_one)
    )
    met = np.where(is_settled, np.where(is_stopped, is_penalty, columns.met), is_one)
    is_answered = (
        is_settled & ~is_stopped
    )  # a stopped response supports no gain and reduces no penalty
    if spec_input.reduce is not None and value.shape[1] > 1:
        return _fold_columns(value, met, is_answered, is_applicable, spec_input.reduce)
    return value, met, is_answered, is_applicable


def _fold_columns(
    value: Floats, met: Bools, answered: Bools, applicable: Bools, reduce: str
) -> tuple[Floats, Bools, Bools, Bools]:
    """Return the applicable columns of a question as one; a row without any gets a cell that does not apply."""
    count = np.asarray(aggregation.total(np.where(applicable, 1.0, 0.0)))
    has_applicable = np.greater(count, 0.0)
    divisor = np.where(has_applicable, count, 1.0)
    if reduce == "mean":
        folded = aggregation.total(np.where(applicable, value, 0.0)) / divisor
    elif reduce == "median":
        folded = _median(np.where(applicable, value, np.inf), count)
    elif reduce == "min":
        folded = np.where(has_applicable, np.min(np.where(applicable, value, 1.0), axis=1), 0.0)
    else:
        folded = np.max(np.where(applicable, value, 0.0), axis=1)
    agreed = aggregation.total(np.where(applicable & met, 1.0, 0.0))
    is_met = np.asarray(agreed * 2 >= divisor)
    complete = np.where(has_applicable, (answered | ~applicable).all(axis=1), answered.all(axis=1))
    return folded[:, None], is_met[:, None], complete[:, None], has_applicable[:, None]


def _median(value: Floats, count: Floats) -> Floats:
    """Return the median of the first `count` [R] of each row's sorted values [R,K], 0 where there are none."""
    ordered = np.sort(value, axis=1)
    lower = np.maximum(count - 1, 0).astype(np.int64) // 2
    upper = np.maximum(count.astype(np.int64) // 2, lower)
    rows = np.arange(len(value))
    return np.where(count > 0, (ordered[rows, lower] + ordered[rows, upper]) / 2.0, 0.0)


def dropped_questions(decision: Decision, table: VerdictTable) -> frozenset[str]:
    """Return the questions dropped for the group under `drop-criterion`: they count, and a response lacks a verdict."""
    if decision.group_rule != "drop-criterion":
        return frozenset()
    inputs = [spec_input for spec in decision.counting_specs for spec_input in spec.inputs.values()]
    return frozenset(
        name
        for spec_input in inputs
        for name in spec_input.questions
        if lacks_score(table.effective_columns(name, spec_input).outcome).any()
    )


def _is_answered(outcome: NDArray[np.int8]) -> Bools:
    """Return which cells hold an answer of the evaluator: a score, or that the question does not apply."""
    return np.asarray((outcome == OK) | (outcome == EXCLUDED))


def has_score(outcome: NDArray[np.int8]) -> Bools:
    """Return which cells have a score: a verdict, or the one that a gate gives."""
    return np.asarray((outcome == OK) | (outcome == STOPPED))


def lacks_score(outcome: NDArray[np.int8]) -> Bools:
    """Return which cells were requested and have no score."""
    return (outcome >= ABSTAINED) & (outcome <= FAILED_BY_INFRASTRUCTURE)
