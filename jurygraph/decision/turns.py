"""The value that a reward counts of several verdicts on a question (judges, samples, turns): for tables and studies."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.decision.combiners import HardLocal, HardTransitive, ScoreMatrix, weighted_mean
from jurygraph.decision.table import WORST_CASE_CODE, build_verdict_table
from jurygraph.schema import ComponentInput, Decision, Question, RecordedVerdict
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.verdict import MET_THRESHOLD


class QuestionUse(NamedTuple):
    """The `direction` and `met_from` of a component that gets a question, and its inputs with it: a panel has one for
    each judge."""

    direction: int
    met_from: float
    inputs: Sequence[ComponentInput]

    def is_penalty(self, question: str) -> bool:
        """Return whether the reward is the lower the more a question is met."""
        return self.inputs[0].of_question(question).weights[0] * self.direction < 0


def fold_turns(
    verdicts: Sequence[RecordedVerdict],
    decision: Decision,
    questions: Iterable[Question],
    get_seat: Callable[[RecordedVerdict], object],
) -> Iterator[RecordedVerdict]:
    """Yield the verdicts about a response; those on turns become one for each seat, such as a judge.

    A verdict that no evaluator gave, as a gate stopped the turn, is part of every seat. A component
    that counts decides whether a question is a penalty. A mean is met by its value, unless the reward counts what is
    met (`questions_counted_as_met`); other values by their turns: the last, or whether one fails.
    """
    uses = read_uses(decision)
    counted_as_met = questions_counted_as_met(decision)
    for question in questions:
        question_verdicts = [verdict for verdict in verdicts if verdict.question == question.id]
        direction, met_from, inputs = uses.get(question.id, (1, MET_THRESHOLD, []))
        if question.scope != "turn" or not inputs:
            yield from question_verdicts
            continue
        use = inputs[-1].of_question(question.id).model_copy(update={"judge": None})
        verdicts_with_responses = [verdict for verdict in question_verdicts if verdict.responses]
        for seat in dict.fromkeys(map(get_seat, verdicts_with_responses or question_verdicts)):
            seat_verdicts = [v for v in question_verdicts if not v.responses or get_seat(v) == seat]
            has_all_turns = {v.turn for v in seat_verdicts} == {v.turn for v in question_verdicts}
            counted_verdicts = [v.model_copy(update={"superseded": False}) for v in seat_verdicts]
            table = build_verdict_table([question], [seat_verdicts[0].about], counted_verdicts)
            cells = table.score_matrix(use, decision.rule, direction, "counted", met_from)
            verdict = fold_verdicts(seat_verdicts, cells, 0, has_all_turns)
            if use.turns.get(question.id) == "mean" and question.id not in counted_as_met:
                verdict = _meet_by_score(verdict, met_from)
            yield verdict


def read_uses(decision: Decision) -> dict[str, QuestionUse]:
    """Return how the reward uses each question that a component gets; one that counts goes before others."""
    uses = {}
    for spec in (*decision.specs, *decision.effective_specs):
        inputs_by_question = defaultdict(list)
        for use in spec.inputs.values():
            for name in use.questions:
                inputs_by_question[name].append(use)
        for name, inputs in inputs_by_question.items():
            uses[name] = QuestionUse(spec.direction, spec.met_from, inputs)
    return uses


def questions_counted_as_met(decision: Decision) -> set[str]:
    """Return the questions of which the reward counts most judges' `met`, not only a folded score.

    They are those of rubrics with hard gating, and hard constraints that cap a stakeholder's utility.
    """
    names: set[str] = set()
    for spec in decision.specs:
        if spec.combiner in (HardLocal.name, HardTransitive.name):
            names.update(spec.questions)
        params: Mapping[str, Any] = spec.params
        if "cap" in params:
            for input_name, positions in params["hard"].items():
                names.update(spec.inputs[input_name].questions[index] for index in positions)
    return names


def fold_verdicts(
    verdicts: Sequence[RecordedVerdict],
    cells: ScoreMatrix,
    row: int,
    has_all_turns: bool = True,
) -> RecordedVerdict:
    """Return one verdict with the value that counts, from the cells of the response in a row; its status is `ok` only
    if every turn that counts was judged.

    Who answered some of the turns alone, as judges that escalate do, abstains: that is no value of the response. So do
    judges whose votes have no majority.
    """
    is_applicable = bool(cells.applicable[row].all())
    is_judged = has_all_turns and is_applicable and bool(cells.judged[row].all())
    applicable_verdicts = [verdict for verdict in verdicts if verdict.status != "not_applicable"]
    representative_verdict = next(
        (v for v in applicable_verdicts if has_judgement(v) == is_judged), verdicts[0]
    )
    status = (
        representative_verdict.status
        if has_judgement(representative_verdict) == is_judged
        else "abstained"
    )
    fields: JsonFields = {"turn": None, "status": status}
    if is_applicable and any(verdict.score is not None for verdict in verdicts):
        value = float(cells.value[row, 0])
        fields |= {"score": value, "met": bool(cells.met[row, 0])}
        if representative_verdict.scale is not None:
            low, high = representative_verdict.scale
            fields["native"] = low + value * (high - low)
    return representative_verdict.model_copy(update=fields)


def is_jury_question(question: Question, uses: Mapping[str, QuestionUse]) -> bool:
    """Return whether several judges of a question have one value on each response.

    Pairs and variants have no value of their own, and a combiner that weighs the judges itself has no fold.
    """
    is_about_one = question.scope != "pair" and not question.is_about_variants
    if len(question.judges) < 2 or not is_about_one or question.id not in uses:
        return False
    return uses[question.id].inputs[0].of_question(question.id).reduce is not None


def fold_jury(
    question: Question,
    verdicts: Sequence[RecordedVerdict],
    decision: Decision,
    use: QuestionUse,
    counted_as_met: Collection[str],
) -> Iterator[tuple[Sequence[RecordedVerdict], RecordedVerdict, bool]]:
    """Yield several judges' verdicts on each response, one with the value that the reward counts of them, and whether
    it is the worst case since these have no majority. What no judge bears out by a quotation is unsupported.

    A folded score decides what is met, except where most votes do: in a majority or a hard rule (`counted_as_met`).
    Of turns up to the first failure, whether there is one does: at the end of a chat it hardly lowers the score.
    """
    verdicts_by_response = defaultdict(list)
    for verdict in verdicts:
        verdicts_by_response[verdict.about].append(verdict)
    spec_input = use.inputs[0].of_question(question.id)
    table = build_verdict_table([question], list(verdicts_by_response), verdicts)
    cells = table.score_matrix(spec_input, decision.rule, use.direction, "counted", use.met_from)
    is_penalty = use.is_penalty(question.id)
    codes = table.effective_columns(question.id, spec_input, is_penalty).verdict_code
    is_worst_case = (codes == WORST_CASE_CODE).any(axis=1) & (spec_input.reduce == "majority")
    is_decided_by_votes = spec_input.reduce == "majority" and question.scope != "turn"
    is_decided_by_failure = spec_input.turns.get(question.id) == "first_failure"
    is_met_by_score = not (
        is_decided_by_votes or is_decided_by_failure or question.id in counted_as_met
    )
    for row, response_verdicts in enumerate(verdicts_by_response.values()):
        verdict = fold_verdicts(response_verdicts, cells, row)
        if is_met_by_score:
            verdict = _meet_by_score(verdict, use.met_from)
        if is_worst_case[row] and any(map(has_judgement, response_verdicts)):
            verdict = verdict.model_copy(update={"status": "abstained", "unsupported": None})
        yield response_verdicts, verdict, verdict.status != "ok" and bool(is_worst_case[row])


def _meet_by_score(verdict: RecordedVerdict, met_from: float) -> RecordedVerdict:
    if verdict.score is None:
        return verdict
    return verdict.model_copy(update={"met": verdict.score >= met_from})


def fold_juries(
    questions: Iterable[Question], verdicts: Iterable[RecordedVerdict], decision: Decision
) -> Iterator[tuple[QuestionUse, Sequence[RecordedVerdict], RecordedVerdict, bool]]:
    """Yield the use of each question of several judges, with each item of its `fold_jury`."""
    uses = read_uses(decision)
    counted_as_met = questions_counted_as_met(decision)
    verdicts_by_question = defaultdict(list)
    for verdict in verdicts:
        verdicts_by_question[verdict.question].append(verdict)
    for question in questions:
        if is_jury_question(question, uses):
            use = uses[question.id]
            judged = verdicts_by_question[question.id]
            for folded in fold_jury(question, judged, decision, use, counted_as_met):
                yield use, *folded


def is_about_whole_response(question: Question) -> bool:
    """Return whether a question is about a whole response as it was submitted, by itself or beside its group."""
    return question.scope in ("response", "group") and not question.is_about_variants


def values_by_question(
    decision: Decision,
    questions: Iterable[Question],
    responses: Sequence[str],
    read_verdicts: Callable[[], Iterable[RecordedVerdict]],
) -> dict[str, Floats]:
    """Return what a component gets of each question about whole responses, [R]; NaN where nothing is judged.

    They are the questions that may have several verdicts, which are folded as the decision says, or a calibration;
    only for these are the verdicts read. A component that counts goes before others; without one it is the mean.
    """
    uses = read_uses(decision)
    question_by_id = {
        question.id: question for question in questions if is_about_whole_response(question)
    }
    table = None
    values = {}
    for name, question in question_by_id.items():
        direction, met_from, inputs = uses.get(name, (1, MET_THRESHOLD, []))
        if question.seats == 1 and not any(name in use.calibration for use in inputs):
            continue
        if table is None:
            verdicts = [
                verdict for verdict in read_verdicts() if verdict.question in question_by_id
            ]
            table = build_verdict_table(list(question_by_id.values()), responses, verdicts)
        columns = []
        weights = []
        for use in inputs or [ComponentInput(questions=(name,), weights=(1.0,))]:
            cells = table.score_matrix(
                use.of_question(name), decision.rule, direction, "partial", met_from
            )
            columns.append(cells.value)
            weights.append(np.where(cells.applicable, use.input_weight, 0.0))
        value, is_judged = weighted_mean(np.hstack(columns), np.hstack(weights))
        values[name] = np.where(is_judged, value, np.nan)
    return values


def has_judgement(verdict: RecordedVerdict) -> bool:
    """Return whether the judge's own answer counts: none of a gate, and no finding without its quotation."""
    return verdict.status == "ok" and verdict.gated_by is None and not verdict.is_worst_case
