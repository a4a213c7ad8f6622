"""The table of verdicts: their codes and scores as arrays, and the rules that fill unjudged cells.

A `VerdictTable` has, for every question, one row for each response of the group and one column for each sample,
opponent or variant. `score_matrix` turns an input of a spec into a `ScoreMatrix` for a combiner, filled by the
decision's rule.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.aggregation.agreement import strict_majority
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import ScoreMatrix, count_true, totals
from jurygraph.schema import (
    ComponentInput,
    Decision,
    FailureCause,
    Question,
    RecordedVerdict,
    ScoreCalibration,
)
from jurygraph.schema.plan import TurnReduction, VoteRule
from jurygraph.schema.verdict import (
    EMPTY_TURN_GATE,
    MET_THRESHOLD,
    NO_VARIANT_GATE,
    RESPONSE_GATES,
    UnsupportedTreatment,
    VerdictStatus,
)

(
    ABSENT_CODE,
    OK_CODE,
    ABSTAINED_CODE,
    NO_MODEL_CODE,
    FAILED_BY_RESPONSE_CODE,
    FAILED_BY_INFRASTRUCTURE_CODE,
) = range(6)
NOT_APPLICABLE_CODE, WORST_CASE_CODE, NO_VARIANTS_CODE, JUDGED_NOT_APPLICABLE_CODE = range(6, 10)
EMPTY_TURN_CODE = 10
SCORED_VERDICT_CODES = (OK_CODE, WORST_CASE_CODE)
"""Outcomes with a verdict: from an evaluator, or STOPPED, the worst case: from a gate that stopped the response before,
or where the evaluator's finding lacks the quotation that it needs.

NO_VARIANTS is a question about variants of a response that has none: not applicable, or the worst case where an input
counts questions that do not apply as zero. So it is no advantage to have none. JUDGED_NOT_APPLICABLE is an answer of
the evaluator: its question does not apply. It may be discarded, and is a vote of a majority; else it is NOT_APPLICABLE.
EMPTY_TURN is not applicable to a penalty, and the worst case of a gain.
"""

_NOT_APPLICABLE_VOTE = -1.0
"""The value of a vote that a question does not apply; scores are in [0, 1]."""

VariantColumnsByResponse = Mapping[str, Mapping[str, int]]
"""{response id: {variant id: column}}."""

VerdictByCell = dict[tuple[int, int], tuple[RecordedVerdict, bool]]
"""The verdict of each cell [R,K], and whether it is mirrored for the second response of a pair."""

UnjudgedFillMode = Literal["counted", "low", "high", "partial"]
"""How unjudged cells are filled: by the rule, all by 0, all by 1, or not at all (they leave the denominator)."""


class FilledCells(NamedTuple):
    """The values of cells, the own answers (`met`), and masks of judged and of applicable cells, [R,K] each."""

    value: Floats
    met: Bools
    judged: Bools
    applicable: Bools


class ScoreArrays(NamedTuple):
    """Verdicts as arrays [R,K]: a row for each response; columns of one question, or of all in their order.

    `value` is the score, 0 where there is none; `met` the judge's own answer; `verdict_code` how the verdict ended,
    a code of this module, ABSENT where none was requested; `confidence` the judge's confidence, 1 where there is none;
    `binary` where `met` is all that the verdict says (see `Verdict.is_binary_verdict`); `decided` where `met` is the
    judge's own, and not read from the score.
    """

    value: Floats
    met: Bools
    verdict_code: NDArray[np.int8]
    confidence: Floats
    binary: Bools
    decided: Bools

    @classmethod
    def absent(cls, *shape: int) -> "ScoreArrays":
        codes = np.zeros(shape, dtype=np.int8)
        all_false = np.zeros(shape, dtype=np.bool_)
        return cls(
            np.zeros(shape), all_false, codes, np.ones(shape), all_false.copy(), all_false.copy()
        )

    def replace_verdict_code(self, cells: Bools, code: int) -> "ScoreArrays":
        """Return the arrays with this code in some cells, [R,K]."""
        if not cells.any():  # as in most tables: 3 µs instead of 12, thousands of times for a panel
            return self
        return self._replace(verdict_code=np.where(cells, code, self.verdict_code).astype(np.int8))

    def fill(self, cell: tuple[int, int], verdict: RecordedVerdict) -> None:
        """Put a verdict into a cell: its score, whether it is met, and how it ended (a code of this module).

        If the judge gave no answer of its own (`met`), a score of 0.5 or more is met; without a score: 0.0 and not met.
        """
        if verdict.score is None:
            cause = verdict.failure.cause if verdict.failure else None
            code = code_of_missing_verdict(verdict.status, cause, verdict.gated_by)
        else:
            code = ok_verdict_code(verdict.gated_by, verdict.unsupported)
        # Never -0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU.
        self.value[cell] = (verdict.score or 0.0) + 0.0
        self.met[cell] = verdict.score is not None and verdict.counts_as_met
        self.verdict_code[cell] = code
        self.confidence[cell] = 1.0 if verdict.confidence is None else verdict.confidence
        self.binary[cell] = verdict.is_binary_verdict
        self.decided[cell] = verdict.met is not None


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """Verdicts as arrays by question; the rows are the responses, of a group in canonical order.

    The columns of the `sampled` questions are the samples of one judgement. The seats of a question with several judges
    have those in `judges`, and repeat for each opponent or variant. A question about `turns` has there the number of
    columns of each turn; its turns follow each other.
    """

    rows: int
    columns: Mapping[str, ScoreArrays]
    sampled: frozenset[str] = frozenset()
    judges: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    turns: Mapping[str, int] = field(default_factory=dict)

    def score_matrix(
        self,
        spec_input: ComponentInput,
        rule: str,
        direction: int,
        fill_mode: UnjudgedFillMode,
        met_from: float = MET_THRESHOLD,
    ) -> ScoreMatrix:
        """Return one input of a spec, filled; `direction` is -1 where a larger component means a lower reward.

        A score of `met_from` or more is met, in [0, 1], where its judge has not decided itself.
        """
        pieces = []
        weights = []
        for name, weight in spec_input.weighted_questions:
            is_penalty = weight * direction < 0
            turns = self.fill_turn_cells(name, spec_input, is_penalty, rule, fill_mode, met_from)
            reduction = spec_input.turns.get(name)
            piece = turns[0]
            if reduction is not None:
                piece = _reduce_turn_scores(turns, reduction, is_penalty)
            pieces.append(piece)
            # Every column of a question has the question's weight.
            weights.append(np.full(piece.value.shape[1], weight))
        joined_cell_arrays: Sequence[Any] = pieces[0]
        if len(pieces) > 1:
            joined_cell_arrays = [
                np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True)
            ]
        value, met, judged, applicable = joined_cell_arrays
        return ScoreMatrix(
            value, met, judged, applicable, np.concatenate(weights), spec_input.input_weight
        )

    def fill_turn_cells(
        self,
        name: str,
        spec_input: ComponentInput,
        is_penalty: bool,
        rule: str,
        fill_mode: UnjudgedFillMode,
        met_from: float,
    ) -> list[FilledCells]:
        """Return the filled cells of each turn of a question; of all of it for one about whole responses."""
        return [
            _fill_cells(columns, is_penalty, spec_input, rule, fill_mode)
            for columns in self.effective_columns_by_turn(name, spec_input, is_penalty, met_from)
        ]

    def effective_columns(
        self, name: str, spec_input: ComponentInput, is_penalty: bool
    ) -> ScoreArrays:
        """Return a question's verdicts as an input uses them: confident enough, and reduced to a majority if required.

        A discarded verdict counts as an abstention, and so does a missing majority, except of judges; a failure among
        the votes counts as that failure.
        """
        turns = self.effective_columns_by_turn(name, spec_input, is_penalty)
        if len(turns) == 1:
            return turns[0]
        return ScoreArrays._make(
            np.concatenate(arrays, axis=1) for arrays in zip(*turns, strict=True)
        )

    def weighted_columns(
        self, spec_input: ComponentInput, direction: int
    ) -> Iterator[tuple[str, float, ScoreArrays]]:
        """Yield each question of an input, its weight and its `effective_columns`; `direction` is that of the spec."""
        for name, weight in spec_input.weighted_questions:
            yield name, weight, self.effective_columns(name, spec_input, weight * direction < 0)

    def effective_columns_by_turn(
        self,
        name: str,
        spec_input: ComponentInput,
        is_penalty: bool = False,
        met_from: float = MET_THRESHOLD,
    ) -> list[ScoreArrays]:
        """Return what `effective_columns` does, apart for each turn; all of it for a question about whole responses.

        Where the last turn counts, the verdicts on the turns before it are ABSENT.
        """
        turns = [
            self._adjust_turn_columns(columns, name, spec_input, met_from, is_penalty)
            for columns in self._split_columns_by_turn(name, spec_input.judge)
        ]
        if spec_input.turns.get(name) == "last":
            return _keep_last_applicable_turn(turns, spec_input.if_skipped == "zero")
        return turns

    def _adjust_turn_columns(
        self,
        columns: ScoreArrays,
        name: str,
        spec_input: ComponentInput,
        met_from: float,
        is_penalty: bool,
    ) -> ScoreArrays:
        if met_from != MET_THRESHOLD:
            met = np.where(columns.decided, columns.met, columns.value >= met_from)
            columns = columns._replace(met=met)
        if name in spec_input.calibration:
            # The value of any other cell than a judged one follows from its code.
            calibrated = apply_calibration(columns.value, spec_input.calibration[name])
            value = np.where(columns.verdict_code == OK_CODE, calibrated, columns.value)
            columns = columns._replace(value=value, met=value >= met_from)
        columns = columns.replace_verdict_code(
            columns.verdict_code == NO_VARIANTS_CODE,
            WORST_CASE_CODE if spec_input.if_skipped == "zero" else NOT_APPLICABLE_CODE,
        )
        columns = columns.replace_verdict_code(
            columns.verdict_code == EMPTY_TURN_CODE,
            NOT_APPLICABLE_CODE if is_penalty else WORST_CASE_CODE,
        )
        if spec_input.min_confidence > 0.0:  # verdicts of gates are never discarded
            columns = columns.replace_verdict_code(
                _is_below_min_confidence(columns, spec_input), ABSTAINED_CODE
            )
        if spec_input.reduce == "majority" and columns.value.shape[1] > 1:
            columns = _reduce_to_majority(columns, spec_input.vote, spec_input.has_judges)
        # Only now: in a majority JUDGED_NOT_APPLICABLE is a vote.
        return columns.replace_verdict_code(
            columns.verdict_code == JUDGED_NOT_APPLICABLE_CODE, NOT_APPLICABLE_CODE
        )

    def _split_columns_by_turn(self, name: str, judge: str | None) -> list[ScoreArrays]:
        """Return a question's verdicts on each turn, or those of one of its judges."""
        columns = self.columns[name]
        width = columns.value.shape[1]
        size = self.turns.get(name, width)
        if judge is None and size == width:
            return [columns]
        seats: Sequence[str | None] = [None] if judge is None else self.judges.get(name, ())
        # The seats repeat for each opponent or variant.
        is_selected = np.resize([seat == judge for seat in seats], width)
        turns = []
        for start in range(0, width, size):
            indices = start + np.flatnonzero(is_selected[start : start + size])
            turn = ScoreArrays._make(array[:, indices] for array in columns)
            turns.append(turn if len(indices) else ScoreArrays.absent(self.rows, 1))
        return turns

    def select(self, rows: slice) -> "VerdictTable":
        columns = {
            name: ScoreArrays._make(array[rows] for array in arrays)
            for name, arrays in self.columns.items()
        }
        return replace(self, rows=rows.stop - rows.start, columns=columns)

    def count_discarded(self, spec_input: ComponentInput) -> tuple[Floats, Floats]:
        """Return the number of an input's discarded verdicts, and of its questions without a majority, [R] each."""
        discarded_verdict_counts = []
        undecided_flags = []
        for name in spec_input.questions:
            stored_columns_by_turn = self._split_columns_by_turn(name, spec_input.judge)
            effective_columns_by_turn = self.effective_columns_by_turn(name, spec_input)
            for columns, effective_columns in zip(
                stored_columns_by_turn, effective_columns_by_turn, strict=True
            ):
                discarded_verdict_counts.append(
                    count_true(_is_below_min_confidence(columns, spec_input))
                )
                has_vote = _is_answered(columns.verdict_code) | (
                    columns.verdict_code == WORST_CASE_CODE
                )
                is_undecided = has_vote.any(axis=1) & lacks_score(
                    effective_columns.verdict_code
                ).any(axis=1)
                needs_majority = spec_input.reduce == "majority" and columns.value.shape[1] > 1
                undecided_flags.append(np.where(is_undecided & needs_majority, 1.0, 0.0))
        return totals(discarded_verdict_counts, axis=0), totals(undecided_flags, axis=0)

    def sample_spread(self, spec_inputs: Iterable[ComponentInput]) -> Floats | None:
        """Return the largest difference between two samples' scores on one of the inputs' questions, [R].

        Only scores of the judge count, whatever its confidence; a row without two on any question is NaN. None if no
        question has samples.
        """
        if not self.sampled:
            return None
        questions = chain.from_iterable(spec_input.questions for spec_input in spec_inputs)
        names = sorted(self.sampled.intersection(questions))
        spread = np.full(self.rows, np.nan)
        for name in names:
            value = self.columns[name].value
            is_judged = self.columns[name].verdict_code == OK_CODE
            # A cell that was not judged is replaced by the score that can change no maximum, or no minimum.
            highest = np.where(is_judged, value, 0.0).max(axis=1)
            lowest = np.where(is_judged, value, 1.0).min(axis=1)
            has_two_samples = np.count_nonzero(is_judged, axis=1) > 1
            spread = np.fmax(spread, np.where(has_two_samples, highest - lowest, np.nan))
        return spread if names else None

    def with_verdict_code(
        self, questions: Iterable[str], code: int, kept: Collection[int] = ()
    ) -> "VerdictTable":
        """Return the table with all requested cells of these questions set to one code, except those to keep."""
        columns = dict(self.columns)
        for name in questions:
            is_kept = np.isin(columns[name].verdict_code, [ABSENT_CODE, *kept])
            columns[name] = columns[name].replace_verdict_code(~is_kept, code)
        return replace(self, columns=columns)

    def judged_and_requested_weight(
        self, spec_input: ComponentInput, direction: int
    ) -> tuple[Floats, Floats]:
        """Return the judged and the requested weight of an input, [R] each; a folded question counts once."""
        settled_codes = (
            (*SCORED_VERDICT_CODES, NOT_APPLICABLE_CODE)
            if spec_input.if_skipped == "zero"
            else SCORED_VERDICT_CODES
        )
        judged_weights = []
        requested_weights = []
        for _, weight, columns in self.weighted_columns(spec_input, direction):
            verdict_code = columns.verdict_code
            judged_count = count_true(np.isin(verdict_code, settled_codes))
            requested_count = judged_count + count_true(lacks_score(verdict_code))
            if spec_input.reduce is not None:
                judged_count = judged_count / np.maximum(requested_count, 1.0)
                requested_count = np.minimum(requested_count, 1.0)
            judged_weights.append(abs(weight) * judged_count)
            requested_weights.append(abs(weight) * requested_count)
        return totals(judged_weights, axis=0), totals(requested_weights, axis=0)

    def verdict_codes(
        self, spec_input: ComponentInput, direction: int
    ) -> tuple[NDArray[np.int8], Floats]:
        """Return the code of every cell of an input, [R,K], and the cells' weights, [K]."""
        verdict_codes = []
        weights = []
        for _, weight, columns in self.weighted_columns(spec_input, direction):
            verdict_codes.append(columns.verdict_code)
            weights.append(np.full(columns.verdict_code.shape[1], weight))
        return np.concatenate(verdict_codes, axis=1), np.concatenate(weights)


def build_verdict_table(
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
    cells: dict[str, VerdictByCell] = {question.id: {} for question in questions}
    rows = 0
    for names, verdicts in groups:
        row_by_response = {name: row for row, name in enumerate(names, start=rows)}
        rows += len(names)
        verdicts_by_question = defaultdict(list)
        for verdict in verdicts:
            verdicts_by_question[verdict.question].append(verdict)
        # All questions about a material have the same columns: the variants that were shown, sorted.
        shown_variants = defaultdict(list)
        for question in questions:
            if question.is_about_variants:
                for verdict in verdicts_by_question[question.id]:
                    for name in verdict.responses:
                        shown_variants[question.material].append((verdict.about, name))
        variants = {name: _columns_by_response(shown) for name, shown in shown_variants.items()}
        for question in questions:
            _place_verdicts_in_cells(
                question,
                row_by_response,
                verdicts_by_question[question.id],
                variants.get(question.material, {}),
                cells[question.id],
            )
    columns = {}
    for question in questions:
        # All seats, also where escalation leaves the verdict of the first one alone: other rows must not widen a table.
        columns[question.id] = build_question_columns(rows, cells[question.id], question.seats)
    return verdict_table_from_columns(questions, rows, columns)


def verdict_table_from_columns(
    questions: Sequence[Question], rows: int, columns: Mapping[str, ScoreArrays]
) -> VerdictTable:
    """Return the table of some columns of each question."""
    turns = {question.id: question.seats for question in questions if question.scope == "turn"}
    sampled_question_ids = set()
    judges_by_question = {}
    for question in questions:
        # Several samples, by any judge, of one response as it was submitted.
        is_about_submitted_response = (
            question.scope == "response" and not question.is_about_variants
        )
        if question.seats > 1 and is_about_submitted_response:
            sampled_question_ids.add(question.id)
        if question.judges:
            # The samples of a judge follow each other.
            repeated_judges = [[judge] * question.samples for judge in question.judges]
            judges_by_question[question.id] = list(chain.from_iterable(repeated_judges))
    return VerdictTable(rows, columns, frozenset(sampled_question_ids), judges_by_question, turns)


def build_question_columns(rows: int, cells: VerdictByCell, seats: int) -> ScoreArrays:
    """Return the columns of one question from its cells; others are ABSENT. Each turn, opponent or variant has a column
    for each of the `seats`."""
    last = max((column for _, column in cells), default=0)
    width = seats * (last // seats + 1)
    scores = ScoreArrays.absent(rows, width)
    value, met, verdict_code, *_ = scores
    for cell, (verdict, is_mirrored) in cells.items():
        scores.fill(cell, verdict)
        if is_mirrored and verdict.score is not None:
            mirrored_score = 1.0 - verdict.score
            value[cell] = mirrored_score
            met[cell] = mirrored_score >= MET_THRESHOLD
            verdict_code[cell] = OK_CODE
            scores.binary[cell] = False
            scores.decided[cell] = False
    return scores


def apply_calibration(scores: Floats, calibration: ScoreCalibration) -> Floats:
    """Return the calibrated value of each score, of any shape."""
    knots = np.array(calibration.scores)
    values = np.array(calibration.calibrated)
    left_knot = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 0)
    right_knot = np.minimum(left_knot + 1, len(knots) - 1)
    width = np.where(right_knot > left_knot, knots[right_knot] - knots[left_knot], 1.0)
    share = np.clip((scores - knots[left_knot]) / width, 0.0, 1.0)
    interpolated_value = values[left_knot] + share * (values[right_knot] - values[left_knot])
    # rounding must not lead above the next knot, so that the map never falls
    calibrated: Floats = np.minimum(interpolated_value, values[right_knot])
    return calibrated


def _reduce_to_majority(
    columns: ScoreArrays, vote: VoteRule, has_several_judges: bool
) -> ScoreArrays:
    """Return the value that more than half of the seats have voted for, as one column.

    Under `discard-first`, a vote that abstained or was discarded leaves its seat ("Aggregate vs. Personalized Judges").
    A failed one keeps it, so that an outage never turns the votes that are left into a majority. So does one that is
    the worst case: its value depends on the direction, so it votes for none, and decides where the others do not. Where
    no vote was requested, the code is NOT_APPLICABLE if a `when` skipped the question, else ABSENT.

    Judges vote by `met` where this is all that they say. If they disagree, and no vote is missing that could decide,
    the verdict is the worst case: it was judged, and gives no credit.
    """
    codes = columns.verdict_code
    has_vote = _is_answered(codes)
    is_stopped_by_gate = codes == WORST_CASE_CODE
    is_missing = lacks_score(codes)
    value = (
        np.where(columns.binary, columns.met, columns.value)
        if has_several_judges
        else columns.value
    )
    value = np.where(codes == JUDGED_NOT_APPLICABLE_CODE, _NOT_APPLICABLE_VOTE, value)
    is_requested = has_vote | is_stopped_by_gate | is_missing
    is_voting_seat = is_requested
    if vote == "discard-first":
        is_voting_seat = is_requested & (codes != ABSTAINED_CODE)
    majority = strict_majority(value, has_vote, is_voting_seat)
    is_not_applicable = majority.decided & (majority.value == _NOT_APPLICABLE_VOTE)
    agrees_with_majority = has_vote & (value == majority.value[:, None])
    votes = count_true(agrees_with_majority)
    met_vote_count = count_true(agrees_with_majority & columns.met)
    worst_code = np.where(is_missing, codes, ABSTAINED_CODE).max(axis=1)
    has_not_applicable_vote = (codes == NOT_APPLICABLE_CODE).any(axis=1)
    code_without_verdict = np.where(has_not_applicable_vote, NOT_APPLICABLE_CODE, ABSENT_CODE)
    undecided_code = np.where(is_requested.any(axis=1), worst_code, code_without_verdict)
    is_worst_case = is_stopped_by_gate.any(axis=1)
    if has_several_judges:
        is_split_vote = is_voting_seat.any(axis=1) & ~(is_voting_seat & is_missing).any(axis=1)
        is_worst_case = is_worst_case | is_split_vote
    undecided_code = np.where(is_worst_case, WORST_CASE_CODE, undecided_code)
    decided_code = np.where(is_not_applicable, JUDGED_NOT_APPLICABLE_CODE, OK_CODE)
    verdict_code = np.where(majority.decided, decided_code, undecided_code).astype(np.int8)
    met = majority.decided & ~is_not_applicable & (met_vote_count * 2 >= votes)
    winner = np.where(is_not_applicable, 0.0, majority.value)
    majority_column = ScoreArrays.absent(len(codes), 1)
    return majority_column._replace(
        value=winner[:, None],
        met=met[:, None],
        verdict_code=verdict_code[:, None],
    )


def ok_verdict_code(gated_by: str | None, unsupported: UnsupportedTreatment | None) -> int:
    """Return the code of a verdict that is ok: STOPPED if it counts as the worst case, EMPTY_TURN, else OK."""
    if gated_by == EMPTY_TURN_GATE:
        return EMPTY_TURN_CODE
    return WORST_CASE_CODE if gated_by in RESPONSE_GATES or unsupported == "worst-case" else OK_CODE


def _place_verdicts_in_cells(
    question: Question,
    row_by_response: Mapping[str, int],
    verdicts: Sequence[RecordedVerdict],
    variants: VariantColumnsByResponse,
    cells: VerdictByCell,
) -> None:
    """Put the verdicts of a group on a question into their cells.

    A verdict without a judgement (of a gate, say) fills the cells of every variant of its response.
    """
    if question.scope == "turn":
        turns = _columns_by_response((verdict.about, verdict.turn) for verdict in verdicts)
    is_about_unordered_pairs = question.is_about_unordered_pairs
    for verdict in verdicts:
        if verdict.superseded:
            continue
        row = row_by_response[verdict.about]
        column_index_by_variant = variants.get(verdict.about, {})
        if question.scope == "turn":
            columns: Iterable[int] = (turns[verdict.about][verdict.turn],)
        elif not verdict.responses:
            columns = range(max(1, len(column_index_by_variant)))
        elif question.scope == "pair":
            columns = (row_by_response[verdict.responses[1]],)
        else:
            # A question about a whole group has no variants: 0.
            columns = (column_index_by_variant.get(verdict.responses[0], 0),)
        for column in columns:
            seat = question.seat(verdict.judge, verdict.sample)
            cells[row, column * question.seats + seat] = (verdict, False)
            if is_about_unordered_pairs and verdict.responses:
                # The opponent's row has the same verdict, in the column of this response.
                cells[column, row * question.seats + seat] = (verdict, True)


def _columns_by_response(entries: Iterable[tuple[str, Any]]) -> dict[str, dict[Any, int]]:
    """Return the columns of each response, by its id: the positions of its variants by id, or of its turns.

    Each of the `entries` is the id of a response, and a variant or turn of it. One without a turn has None, which comes
    first where a foreign record has numbers, too.
    """
    found = defaultdict(set)
    for about, entry in entries:
        found[about].add(entry)
    columns = {}
    for about, column_entries in found.items():
        entries_in_order = sorted(column_entries, key=lambda entry: (entry is not None, entry))
        columns[about] = {entry: column for column, entry in enumerate(entries_in_order)}
    return columns


def code_of_missing_verdict(
    status: VerdictStatus, cause: FailureCause | None, gated_by: str | None
) -> int:
    """Return the code of a verdict that is not ok; `cause` is that of its failure, if any."""
    if status == "not_applicable":
        if gated_by is None:
            return JUDGED_NOT_APPLICABLE_CODE
        return NO_VARIANTS_CODE if gated_by == NO_VARIANT_GATE else NOT_APPLICABLE_CODE
    if status == "abstained":
        return NO_MODEL_CODE if cause == "infrastructure" else ABSTAINED_CODE
    return FAILED_BY_RESPONSE_CODE if cause == "response" else FAILED_BY_INFRASTRUCTURE_CODE


def _fill_cells(
    columns: ScoreArrays,
    is_penalty: bool,
    spec_input: ComponentInput,
    rule: str,
    fill_mode: UnjudgedFillMode,
) -> FilledCells:
    """Return the cells of one question, or of one of its turns.

    They are folded into one column if the input requires it. Under the rule, an unjudged cell is 0, and 1 for a penalty
    unless the rule is `gear`.
    """
    # Most tables are only of such columns, which take 5 µs instead of 10, for each question of a group.
    if columns.value.shape[1] == 1 and (columns.verdict_code == OK_CODE).all():
        return FilledCells(
            value=columns.value.copy(),
            met=columns.met.copy(),
            judged=np.ones_like(columns.met),
            applicable=np.ones_like(columns.met),
        )
    is_cell_requested = (columns.verdict_code != ABSENT_CODE) & (
        columns.verdict_code != NOT_APPLICABLE_CODE
    )
    is_applicable = is_cell_requested
    if spec_input.if_skipped == "zero":
        is_applicable = columns.verdict_code != ABSENT_CODE
    is_stopped_by_gate = columns.verdict_code == WORST_CASE_CODE
    is_settled_cell = ~is_cell_requested | has_score(columns.verdict_code)
    if fill_mode == "partial":
        is_applicable = is_applicable & is_settled_cell
    # Whether an unjudged cell is filled by 1.
    is_filled_with_one = fill_mode == "high"
    if fill_mode == "counted":
        is_filled_with_one = is_penalty and rule != "gear"
    # A stopped cell is the worst case: no gain, and the full penalty.
    filled_value = np.where(is_stopped_by_gate, float(is_penalty), columns.value)
    filled_met = np.where(is_stopped_by_gate, is_penalty, columns.met)
    value = np.where(is_settled_cell, filled_value, float(is_filled_with_one))
    met = np.where(is_settled_cell, filled_met, is_filled_with_one)
    # A stopped response supports no gain and reduces no penalty.
    is_answered = is_settled_cell & ~is_stopped_by_gate
    cells = FilledCells(value, met, is_answered, is_applicable)
    if spec_input.reduce is not None and value.shape[1] > 1:
        return _reduce_question_columns(cells, spec_input.reduce)
    return cells


def _keep_last_applicable_turn(
    turns: Sequence[ScoreArrays], counts_skipped_turns: bool
) -> list[ScoreArrays]:
    """Return the turns; those before the last one to which the question applies are ABSENT."""
    skipped_codes = (ABSENT_CODE,) if counts_skipped_turns else (ABSENT_CODE, NOT_APPLICABLE_CODE)
    is_unresolved = np.ones((len(turns[0].verdict_code), 1), dtype=np.bool_)
    kept = []
    for turn in reversed(turns):
        verdict_code = np.where(is_unresolved, turn.verdict_code, ABSENT_CODE).astype(np.int8)
        kept.append(turn._replace(verdict_code=verdict_code))
        is_unresolved = is_unresolved & np.isin(verdict_code, skipped_codes).all(
            axis=1, keepdims=True
        )
    return kept[::-1]


def _reduce_turn_scores(
    turns: Sequence[FilledCells], reduction: TurnReduction, is_penalty: bool
) -> FilledCells:
    """Return the value of each response from those of its turns, [R,K] each; turns that do not apply are left out.

    A penalty is the worse the higher it is, and a turn fails by it where it is met. `min` and `first_failure` are met
    only if no turn fails, the others if at least half of the turns are met.
    """
    # Each is [T,R,K].
    cells = FilledCells._make(map(np.stack, zip(*turns, strict=True)))
    count = count_true(cells.applicable, axis=0)
    is_failed_turn = cells.applicable & (cells.met == is_penalty)
    is_met = is_failed_turn.any(axis=0) == is_penalty
    if reduction == "first_failure":
        before = cells.applicable & ~_has_failed_by_turn(is_failed_turn)
        share = count_true(before, axis=0) / np.maximum(count, 1.0)
        reduced_value = 1.0 - share if is_penalty else share
    elif reduction == "min":
        reduced_value = _worst_value(cells.value, cells.applicable, is_penalty, axis=0)
    else:
        reduced_value = _mean_of_cells(cells, count, axis=0)
        is_met = _are_half_met(cells, count, axis=0)
    return _make_reduced_cells(cells, count, reduced_value, is_met, axis=0)


def deciding_turns(
    turns: Sequence[FilledCells], reduction: TurnReduction, is_penalty: bool
) -> Bools:
    """Return which turns' verdicts give a response its value, [T,R]: all of a mean, else those of the worst value, the
    last one that applies, or the turns up to the first failure."""
    value, met, _, applicable = map(np.stack, zip(*turns, strict=True))
    is_deciding_turn = applicable
    if reduction == "min":
        worst_value = _worst_value(value, applicable, is_penalty, axis=0)
        is_deciding_turn = applicable & (value == worst_value)
    elif reduction == "first_failure":
        has_failed = _has_failed_by_turn(applicable & (met == is_penalty))
        is_after_failure = np.concatenate([np.zeros_like(has_failed[:1]), has_failed[:-1]])
        is_deciding_turn = applicable & ~is_after_failure
    return np.asarray(is_deciding_turn.any(axis=2))


def _worst_value(value: Floats, applicable: Bools, is_penalty: bool, axis: int) -> Floats:
    """Return the worst value along an axis of the cells that apply: the lowest, of a penalty the highest."""
    if is_penalty:
        return np.asarray(np.where(applicable, value, 0.0).max(axis))
    return np.asarray(np.where(applicable, value, 1.0).min(axis))


def _has_failed_by_turn(is_failed_turn: Bools) -> Bools:
    """Return for each turn whether it or one before it fails, from which turns fail, [T,R,K] each."""
    has_failed = np.zeros_like(is_failed_turn[0])
    failed_by_turn = []
    for turn in is_failed_turn:
        has_failed = has_failed | turn
        failed_by_turn.append(has_failed)
    return np.stack(failed_by_turn)


def _reduce_question_columns(cells: FilledCells, reduce: str) -> FilledCells:
    """Return the applicable columns of a question as one; a row without any gets a cell that does not apply."""
    count = count_true(cells.applicable)
    if reduce == "mean":
        reduced_value = _mean_of_cells(cells, count, axis=-1)
    elif reduce == "median":
        # Sorted behind all scores, a cell that does not apply is beyond the count.
        reduced_value = _median(np.where(cells.applicable, cells.value, np.inf), count)
    else:
        is_highest = reduce == "max"
        reduced_value = _worst_value(cells.value, cells.applicable, is_highest, axis=-1)
    is_met = _are_half_met(cells, count, axis=-1)
    reduced_cells = _make_reduced_cells(cells, count, reduced_value, is_met, axis=-1)
    return FilledCells._make(array[:, None] for array in reduced_cells)


def _make_reduced_cells(
    cells: FilledCells, count: Floats, value: Floats, met: Bools, axis: int
) -> FilledCells:
    """Return what the cells along an axis become, of which `count` apply.

    Where none applies, neither does what they become; its value is 0, and it is judged if all of them are.
    """
    has_applicable_cell = np.greater(count, 0.0)
    is_settled = cells.judged | ~cells.applicable
    return FilledCells(
        value=np.where(has_applicable_cell, value, 0.0),
        met=met & has_applicable_cell,
        judged=np.where(has_applicable_cell, is_settled.all(axis), cells.judged.all(axis)),
        applicable=has_applicable_cell,
    )


def _mean_of_cells(cells: FilledCells, count: Floats, axis: int) -> Floats:
    """Return the mean along an axis of the cells that apply, whose `count` is given; 0 where none applies."""
    return totals(np.where(cells.applicable, cells.value, 0.0), axis) / np.maximum(count, 1.0)


def _are_half_met(cells: FilledCells, count: Floats, axis: int) -> Bools:
    """Return where at least half of the cells that apply, whose `count` is given, are met; nowhere without any."""
    met_count = count_true(cells.applicable & cells.met, axis)
    return np.asarray(met_count * 2 >= np.maximum(count, 1.0))


def _median(value: Floats, count: Floats) -> Floats:
    """Return the median of the first `count` [R] of each row's sorted values [R,K]; the first where there are none."""
    sorted_values = np.sort(value, axis=1)
    rows = np.arange(len(value))
    lower = sorted_values[rows, np.maximum(count - 1, 0).astype(np.int64) // 2]
    upper = sorted_values[rows, count.astype(np.int64) // 2]
    return np.asarray((lower + upper) / 2.0)


def dropped_questions(decision: Decision, table: VerdictTable) -> frozenset[str]:
    """Return the questions dropped for the group under `drop-criterion`: they count, and a response lacks a verdict.

    Those of a must are not: it would be met by all where it was not judged for one.
    """
    if decision.group_rule != "drop-criterion":
        return frozenset()
    dropped_question_ids = set()
    kept_question_ids: set[str] = set()
    musts = {gate.component for gate in decision.gates if gate.kind == "must"}
    for spec in decision.effective_specs:
        for spec_input in spec.inputs.values():
            if spec.name in musts:
                kept_question_ids.update(spec_input.questions)
            for name, _, columns in table.weighted_columns(spec_input, spec.direction):
                if lacks_score(columns.verdict_code).any():
                    dropped_question_ids.add(name)
    return frozenset(dropped_question_ids - kept_question_ids)


def _is_below_min_confidence(columns: ScoreArrays, spec_input: ComponentInput) -> Bools:
    """Return which answers, [R,K], are less confident than an input requires."""
    return _is_answered(columns.verdict_code) & (columns.confidence < spec_input.min_confidence)


def _is_answered(verdict_code: NDArray[np.int8]) -> Bools:
    """Return which cells hold an answer of the evaluator: a score, or that the question does not apply."""
    return np.asarray((verdict_code == OK_CODE) | (verdict_code == JUDGED_NOT_APPLICABLE_CODE))


def has_score(verdict_code: NDArray[np.int8]) -> Bools:
    """Return which cells have a score: a verdict, or the one that a gate gives."""
    return np.asarray((verdict_code == OK_CODE) | (verdict_code == WORST_CASE_CODE))


def lacks_score(verdict_code: NDArray[np.int8]) -> Bools:
    """Return which cells were requested and have no score."""
    return (verdict_code >= ABSTAINED_CODE) & (verdict_code <= FAILED_BY_INFRASTRUCTURE_CODE)
