"""The view of one trace: its reward by terms, what each lost, and every verdict with its effect."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from jurygraph.decision.decide import explain_notes
from jurygraph.decision.turns import fold_juries
from jurygraph.explanation import Explanation
from jurygraph.explanation.points import (
    CriterionTexts,
    PointsLine,
    describe_points_sum,
    describe_scale_and_clip,
    sort_part_lines,
)
from jurygraph.explanation.predictions import PredictedScore, predicted_scores
from jurygraph.explanation.terms import (
    ExplainedTrace,
    ExplainedVerdict,
    VerdictCounts,
    describe_judge_answer,
    find_combiner,
)
from jurygraph.messages import format_number_for_sentence, join_names, list_first, quote_prose
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import (
    Decision,
    Failure,
    Material,
    Question,
    RecordedVerdict,
    Response,
    Trace,
)
from jurygraph.schema.task import PROFILES_FILE_SOURCE, Task, chat_to_prompt_text, last_request_text
from jurygraph.views.terms import TermView, build_term_view

_AnswersKey = tuple[str, int | None, tuple[str, ...]]
"""What several judges answer: a question, perhaps about a turn, and the responses that they are shown."""
_MAX_LOSSES_LISTED = 3
"""Losses that are described in words where many responses are."""


class JudgeAnswersView(NamedTuple):
    """The answers of several judges to a question, by judge, and what counts of them."""

    question: str
    label: str
    answers: Mapping[str, str]
    counted: str


class TraceView(NamedTuple):
    """A trace as it is shown.

    Attributes:
        trace: the trace, with the ids, the reward and its gates, the notes and the digests.
        terms: the terms in the order of the reward.
        lost: the points of the terms that count, those that lost most first, with the lines of their parts.
        sentences: the explanation, whose numbers are those of `lost` and of the reward.
        predictions: what reviewers are predicted to give, on their own scales.
        verdicts: all verdicts with their effects and evidence, without superseded ones.
        judges: what several judges answered, a row for each question.
        notes: what the run is for, and what its plan was made of.
        materials: what was derived from the response for its judges, where it has a failure or a note.
    """

    trace: Trace
    counts: VerdictCounts
    terms: Sequence[TermView]
    lost: Sequence[PointsLine]
    sentences: Sequence[str]
    predictions: Sequence[PredictedScore]
    verdicts: Sequence[ExplainedVerdict]
    judges: Sequence[JudgeAnswersView]
    notes: Sequence[str]
    materials: Sequence[Material]

    @property
    def judge_names(self) -> list[str]:
        return list(dict.fromkeys(chain.from_iterable(row.answers for row in self.judges)))


def build_trace_view(explanation: Explanation) -> TraceView:
    trace = explanation.trace
    explained_trace = explanation.explained
    return TraceView(
        trace=trace,
        counts=explained_trace.counts,
        terms=[build_term_view(explained_trace, term) for term in explained_trace.terms],
        lost=explanation.lines,
        sentences=explanation.sentences(),
        predictions=predicted_scores(explained_trace),
        verdicts=explained_trace.verdicts,
        judges=list(_view_judge_answers(explained_trace, explanation.questions)),
        notes=list(_trace_notes(trace)),
        materials=[
            material for material in trace.material if material.failure is not None or material.note
        ],
    )


def criterion_texts(decision: Decision, task: Task | None) -> CriterionTexts:
    """Return the rubric's criteria with their words; none where the task was erased.

    One that is alone goes by the name of its component, too: a component of one part is one line.
    """
    if task is None or task.rubric is None:
        return {}
    texts = {}
    for spec in decision.specs:
        if find_combiner(spec).counts_criteria:
            criteria = task.rubric.criteria
            for criterion in criteria:
                texts[spec.name, criterion.id] = f"{criterion.id} {quote_prose(criterion.text)}"
            if len(criteria) == 1:
                texts[spec.name, spec.name] = texts[spec.name, criteria[0].id]
    return texts


def describe_lost_points(explanation: Explanation, criteria: CriterionTexts) -> str:
    """Return what a reward lost, the costliest first, a line each, or why there is no reward."""
    reward = explanation.trace.reward
    if reward.value is None:
        return describe_failure(explanation.trace)
    losses = [
        (line.lost, line.describe(criteria))
        for line in sort_part_lines(explanation.lines)
        if line.has_loss
    ]
    total = f"Sum: {describe_points_sum(explanation.lines)}"
    for gate in reward.gates:
        lost_points = gate.before - gate.after
        after = format_number_for_sentence(gate.after)
        if lost_points:
            total += f", after the {gate.step} {after}"
        if lost_points > 0:
            change = f"{format_number_for_sentence(gate.before)} → {after}"
            losses.append((lost_points, f"{gate.title.capitalize()} on {gate.component}: {change}"))
    losses.sort(key=lambda loss: -round(loss[0], 4))  # what is printed alike keeps its order
    sentences = [sentence for _, sentence in losses] or ["Nothing was lost"]
    sentences = list_first(sentences, _MAX_LOSSES_LISTED)
    absent = [term.name for term in reward.terms if term.contribution is None]
    if absent:
        sentences.append(f"Not applicable, no effect: {join_names(absent)}")
    sentences.append(total)
    sentences += describe_scale_and_clip(explanation.explained)
    if reward.status == "degraded":
        sentences.append(describe_failure(explanation.trace))
    return "\n".join(sentences)


def describe_failure(trace: Trace) -> str:
    """Return why verdicts are missing, for readers who know no judge, and between which ends the reward would be."""
    reward = trace.reward
    causes = dict.fromkeys(
        _describe_missing_verdict(verdict, verdict.failure)
        for verdict in trace.verdicts
        if verdict.failure is not None and not verdict.superseded
    )
    start = "Not scored" if reward.value is None else "Not all was judged"
    sentence = f"{start}: {join_names(causes or explain_notes(reward.notes))}"
    if reward.range is not None and reward.range[0] < reward.range[1]:
        low, high = map(format_number_for_sentence, reward.range)
        sentence += f"; it would be between {low} and {high}"
    return sentence


def _describe_missing_verdict(verdict: RecordedVerdict, failure: Failure) -> str:
    """Return who gave no score: of a model how it failed, in plain words, and of code its own message."""
    if verdict.judge is None and not verdict.calls:
        return f"{verdict.evaluator}: {failure.kind} {failure.message}"
    judge = "the model" if verdict.judge is None else f"judge {verdict.judge}"
    failure_phrase = "gave no usable reply" if failure.cause == "response" else "did not answer"
    return f"{judge} {failure_phrase} ({failure.kind})"


def _view_judge_answers(
    explained_trace: ExplainedTrace, questions: Sequence[Question]
) -> Iterator[JudgeAnswersView]:
    """Yield the answers of several judges to each question, about a turn if it is about turns."""
    counted = _counted_by_question(explained_trace, questions)
    answers: dict[_AnswersKey, dict[str, str]] = defaultdict(dict)
    for verdict in explained_trace.trace.verdicts:
        if verdict.judge is not None and verdict.about == explained_trace.trace.response_id:
            judge_answers = answers[_key_of_answers(verdict)]
            answer = describe_judge_answer(verdict)
            if verdict.sample:
                answer = f"{judge_answers[verdict.judge]}, {answer}"
            judge_answers[verdict.judge] = answer
    labels = {_key_of_answers(item.verdict): item.label for item in explained_trace.verdicts}
    for key, judge_answers in answers.items():
        if len(judge_answers) > 1:
            yield JudgeAnswersView(key[0], labels[key], judge_answers, counted.get(key, "–"))


def _key_of_answers(verdict: RecordedVerdict) -> _AnswersKey:
    return verdict.question, verdict.turn, verdict.responses


def _counted_by_question(
    explained_trace: ExplainedTrace, questions: Sequence[Question]
) -> dict[_AnswersKey, str]:
    """Return what the reward counts of several judges."""
    verdicts = [explained_verdict.verdict for explained_verdict in explained_trace.verdicts]
    counted = {}
    for _, _, folded, is_undecided in fold_juries(questions, verdicts, explained_trace.decision):
        answer = describe_judge_answer(folded)
        if folded.status in ("abstained", "failed"):
            answer = "no majority: worst case" if is_undecided else "filled in by the failure rule"
        counted[_key_of_answers(folded)] = answer
    return counted


def _trace_notes(trace: Trace) -> Iterator[str]:
    """Yield what the run is for, where the edges of the rubric come from, and what read each stakeholder's profile."""
    if trace.purpose is not None:
        yield f"purpose: {trace.purpose.description}"
    if trace.plan is None:
        return
    rubric = trace.plan.rubric
    if rubric is not None:
        models = sorted({edge.model for edge in rubric.edges if edge.model})
        annotators = ", ".join(models) or "a model"
        record = rubric.annotation
        missing = len(record.unanswered) + len(record.unassigned) if record else 0
        rest = f"; {missing} pairs or criteria have no answer" if missing else ""
        yield f"rubric graph: {len(rubric.edges)} edges, annotated by {annotators}{rest}"
    profiles = trace.plan.profiles
    if profiles is not None:
        for name, reader in profiles.by.items():
            yield f"constraints of {name}: {_describe_profile_source(reader)}"
        if profiles.tensions_by is not None:
            yield f"tensions: {_describe_profile_source(profiles.tensions_by)}"


def _describe_profile_source(reader: str) -> str:
    is_file = reader == PROFILES_FILE_SOURCE
    return "from a file of profiles" if is_file else f"profile parsed by {reader}"


class TaskAndResponseView(NamedTuple):
    """A task and a response, None where they were erased; `criteria` are those of the task's rubric."""

    task: Task | None
    response: Response | None
    criteria: CriterionTexts

    @property
    def query(self) -> str | None:
        return None if self.task is None else chat_to_prompt_text(self.task.query)

    @property
    def last_request(self) -> str | None:
        return None if self.task is None else last_request_text(self.task.query)


def build_task_and_response_view(run: Run, scored: ScoredResponse) -> TaskAndResponseView:
    task_id = scored.trace.task_id
    task = run.task(task_id)
    return TaskAndResponseView(
        task=task,
        response=scored.response,
        criteria=criterion_texts(run.decision_of(task_id), task),
    )
