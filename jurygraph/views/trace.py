"""The view of one trace: its reward by terms, what each lost, and every verdict with its effect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jurygraph.explanation import Explanation
from jurygraph.explanation.points import PointsLine, by_cost
from jurygraph.explanation.predictions import PredictedScore, predicted_scores
from jurygraph.explanation.terms import ExplainedVerdict
from jurygraph.messages import format_plain
from jurygraph.runs.run import Run
from jurygraph.schema import Failure, Trace
from jurygraph.schema.task import chat_text
from jurygraph.schema.verdict import Status
from jurygraph.views.terms import TermView, view_term


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

    @property
    def total(self) -> int:
        set_by_gates = sum(self.gated.values())
        return self.judged + set_by_gates + self.abstained + self.failed + self.not_applicable


@dataclass(frozen=True, kw_only=True)
class JudgeAnswer:
    """The answer of one of several judges; `score` in [0, 1] is None unless the status is ok."""

    judge: str
    status: Status
    score: float | None
    is_superseded: bool


@dataclass(frozen=True, kw_only=True)
class JudgedQuestion:
    """The answers of several judges to a question, about a turn if it is about turns."""

    question: str
    turn: int | None
    answers: Sequence[JudgeAnswer]


@dataclass(frozen=True, kw_only=True)
class AnnotationView:
    """The origin of a rubric's graph: its edges, the models that annotated them, and what they left open."""

    edges: int
    models: Sequence[str]
    unanswered: int


@dataclass(frozen=True, kw_only=True)
class MaterialView:
    """Material derived from a response for its judges, if it has a failure or a note."""

    name: str
    failure: Failure | None
    note: str


@dataclass(frozen=True, kw_only=True)
class TraceView:
    """A trace as it is shown.

    Attributes:
        trace: the trace, with the ids, the reward and its gates, the notes and the digests.
        terms: the terms in the order of the reward.
        lost: the points of the terms that count, those that lost most first, with the lines of their parts.
        sentences: the explanation, whose numbers are those of `lost` and of the reward.
        predictions: what reviewers are predicted to give, on their own scales.
        verdicts: all verdicts with their effects and evidence, without superseded ones.
        judges: the questions that several judges answered.
        profiles: what read the constraints of each stakeholder in a profile, and their `tensions`.
    """

    trace: Trace
    counts: VerdictCounts
    terms: Sequence[TermView]
    lost: Sequence[PointsLine]
    sentences: Sequence[str]
    predictions: Sequence[PredictedScore]
    verdicts: Sequence[ExplainedVerdict]
    judges: Sequence[JudgedQuestion]
    annotation: AnnotationView | None
    profiles: Mapping[str, str]
    materials: Sequence[MaterialView]


def view_trace(explanation: Explanation) -> TraceView:
    trace = explanation.trace
    explained = explanation.explained
    return TraceView(
        trace=trace,
        counts=_count_verdicts(trace, explained.verdicts),
        terms=[view_term(explained, term) for term in explained.terms],
        lost=explanation.lines,
        sentences=explanation.sentences(),
        predictions=predicted_scores(explained),
        verdicts=explained.verdicts,
        judges=_view_judges(trace),
        annotation=_view_annotation(trace),
        profiles=_profile_readers(trace),
        materials=_view_materials(trace),
    )


def describe_loss(explanation: Explanation) -> str:
    """Return what cost a reward most, in words, or why there is none."""
    reward = explanation.trace.reward
    if reward.value is None:
        failures = [verdict.failure for verdict in explanation.trace.verdicts if verdict.failure]
        errors = [f"first error: {failure.kind} {failure.message}" for failure in failures[:1]]
        return f"No reward: {'; '.join((*reward.notes, *errors))}"
    summands = [part for line in explanation.lines for part in line.parts or (line,)]
    costliest = min(summands, key=by_cost, default=None)
    lost = 0.0 if costliest is None else costliest.lost
    for gate in reward.gates:
        if gate.before - gate.after > lost:
            change = f"{format_plain(gate.before)} → {format_plain(gate.after)}"
            return f"{gate.kind.capitalize()} gate on {gate.component}: {change}"
    if costliest is None or not costliest.has_loss:
        return "Nothing was lost"
    return str(costliest)


def _count_verdicts(trace: Trace, verdicts: Sequence[ExplainedVerdict]) -> VerdictCounts:
    counts = trace.reward.counts
    gated = trace.gated
    discarded = sum(verdict.effect == "discarded" for verdict in verdicts)
    return VerdictCounts(
        judged=counts.judged - gated.total(),
        gated=gated,
        abstained=counts.abstained,
        failed=counts.failed,
        not_applicable=counts.not_applicable,
        discarded=discarded,
    )


def _view_judges(trace: Trace) -> list[JudgedQuestion]:
    answers: dict[tuple[str, int | None], list[JudgeAnswer]] = {}
    for verdict in trace.verdicts:
        if verdict.judge is not None and verdict.about == trace.response_id:
            answer = JudgeAnswer(
                judge=verdict.judge,
                status=verdict.status,
                score=verdict.score,
                is_superseded=verdict.superseded,
            )
            answers.setdefault((verdict.question, verdict.turn), []).append(answer)
    return [
        JudgedQuestion(question=question, turn=turn, answers=several)
        for (question, turn), several in answers.items()
        if len(several) > 1
    ]


def _view_annotation(trace: Trace) -> AnnotationView | None:
    rubric = None if trace.plan is None else trace.plan.rubric
    if rubric is None:
        return None
    models = sorted({edge.model for edge in rubric.edges if edge.model})
    record = rubric.annotation
    unanswered = 0 if record is None else len(record.unanswered) + len(record.unassigned)
    return AnnotationView(edges=len(rubric.edges), models=models, unanswered=unanswered)


def _profile_readers(trace: Trace) -> dict[str, str]:
    profiles = None if trace.plan is None else trace.plan.profiles
    if profiles is None:
        return {}
    readers = {f"constraints of {name}": reader for name, reader in profiles.by.items()}
    if profiles.tensions_by is not None:
        readers["tensions"] = profiles.tensions_by
    return readers


def _view_materials(trace: Trace) -> list[MaterialView]:
    return [
        MaterialView(name=material.name, failure=material.failure, note=material.note)
        for material in trace.material
        if material.failure is not None or material.note
    ]


@dataclass(frozen=True, kw_only=True)
class TextsView:
    """The query of a trace's task and the text of its response; None where they were erased."""

    query: str | None
    response: str | None


def view_query(run: Run, trace: Trace) -> str | None:
    """Return the query of a trace's task as text; None where it was erased."""
    task = run.task(trace.task_id)
    return None if task is None else chat_text(task.query)


def view_texts(run: Run, trace: Trace) -> TextsView:
    group = run.group_with(trace.response_id)
    responses = {scored.trace.response_id: scored.response for scored in group}
    response = responses[trace.response_id]
    return TextsView(
        query=view_query(run, trace),
        response=None if response is None else response.text,
    )
