"""The responses of a run as a comparison takes them: their rewards, and the verdicts on them, samples averaged.

Several judges of a question are a jury, with the value that the reward counts of them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from sys import intern
from typing import NamedTuple

from jurygraph.decision.turns import (
    fold_juries,
    fold_turns,
)
from jurygraph.runs.reports.units import group_of
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import StoredGroup, read_stored_groups
from jurygraph.schema import Decision, Question, RecordedVerdict
from jurygraph.studies.report import group_by

UNDECIDED_OUTCOME = "undecided"


class ComparedVerdictKey(NamedTuple):
    """Key of a verdict among those on a response: its question, the other responses shown, and its judge of several.

    `is_jury` for the value that the reward counts of several judges.
    """

    question: str
    responses: tuple[str, ...] = ()
    judge: str | None = None
    is_jury: bool = False

    @property
    def name(self) -> str:
        if self.is_jury:
            return f"{self.question}, jury"
        return self.question if self.judge is None else f"{self.question} by {self.judge}"


class SampleMeanVerdict(NamedTuple):
    """A verdict over all its samples: their mean score, and the number that are met less those that are not.

    Samples of two runs are unrelated draws, so they are averaged before anything is paired. A tie is no decision.
    `outcome` is judged, gated, or unsupported where no quotation bears out the finding of a sample, or undecided where
    the votes of a jury are split, so that the worst case counts; without a score it is the status: failed, abstained or
    not applicable. `is_vote` where `met` counts 1, since most judges vote for it, and not its probability. One that
    `is_graded` has a value on a scale, and is never met or not.
    """

    score: float | None
    votes: int
    outcome: str = "judged"
    is_vote: bool = False
    is_graded: bool = False


class ComparedResponse(NamedTuple):
    """A response with its reward, NaN where it failed, its verdicts, and the `group` of its task."""

    id: str
    task: str
    agent: str | None
    reward: float
    verdicts: Mapping[ComparedVerdictKey, SampleMeanVerdict]
    group: str | None = None


def iter_compared_responses(run: Run) -> Iterator[ComparedResponse]:
    """Yield the scored responses of a stored run, in the order of the tasks."""
    for group in read_stored_groups(run):
        verdicts = group.verdicts(run.source.survey_without_texts(group.survey))
        yield from compared_responses(run, group, verdicts)


def compared_responses(
    run: Run, group: StoredGroup, verdicts: Iterable[RecordedVerdict]
) -> Iterator[ComparedResponse]:
    """Yield the responses of a group with its verdicts; those on turns are one, with the value that the reward counts.

    A turn is known by its message, which is another in another conversation.
    """
    current_verdicts = [verdict for verdict in verdicts if not verdict.superseded]
    verdicts_by_response = group_by(current_verdicts, attrgetter("about"))
    task = intern(group.record.key)
    task_cluster = group_of(run, task)
    questions = run.source.survey_without_texts(group.survey).questions
    has_turn_questions = any(question.scope == "turn" for question in questions)
    folded_verdicts: dict[str, dict[ComparedVerdictKey, SampleMeanVerdict]] = defaultdict(dict)
    if any(len(question.judges) > 1 for question in questions):
        decision = run.decision(group.decision)
        for about, key, folded in _fold_juries(current_verdicts, decision, questions):
            folded_verdicts[about][key] = folded
    for trace in group.traces:
        reward = math.nan if trace.value is None else trace.value
        own_verdicts = verdicts_by_response.get(trace.response_id, [])
        if has_turn_questions:
            decision = run.decision(group.decision)
            own_verdicts = list(fold_turns(own_verdicts, decision, questions, attrgetter("judge")))
        judged = mean_verdicts_by_key(own_verdicts) | folded_verdicts[trace.response_id]
        yield ComparedResponse(trace.response_id, task, trace.agent, reward, judged, task_cluster)


def mean_verdicts_by_key(
    verdicts: Iterable[RecordedVerdict],
) -> dict[ComparedVerdictKey, SampleMeanVerdict]:
    """Return the verdicts on a response, by question, responses shown and judge."""
    samples = defaultdict(list)
    for verdict in verdicts:
        responses = () if verdict.responses == (verdict.about,) else verdict.responses
        key = ComparedVerdictKey(intern(verdict.question), responses, verdict.judge)
        samples[key].append(verdict)
    return {key: _average_samples(members) for key, members in samples.items()}


def _average_samples(members: Sequence[RecordedVerdict]) -> SampleMeanVerdict:
    scored = [verdict for verdict in members if verdict.score is not None]
    if not scored:
        statuses = [verdict.status.replace("_", " ") for verdict in members]
        return SampleMeanVerdict(None, 0, "failed" if "failed" in statuses else statuses[0])
    score = math.fsum(verdict.score or 0.0 for verdict in scored) / len(scored)
    votes = sum(1 if verdict.counts_as_met else -1 for verdict in scored)
    outcome = "judged"
    if any(verdict.gated_by is not None for verdict in scored):
        outcome = "gated"
    elif any(verdict.unsupported for verdict in scored):
        outcome = "unsupported"
    is_graded = any(verdict.scale is not None for verdict in scored)
    return SampleMeanVerdict(score, votes, outcome, is_graded=is_graded)


def _fold_juries(
    verdicts: Sequence[RecordedVerdict], decision: Decision, questions: Iterable[Question]
) -> Iterator[tuple[str, ComparedVerdictKey, SampleMeanVerdict]]:
    """Yield what the reward counts of several judges on each response."""
    for use, answers, verdict, is_undecided in fold_juries(questions, verdicts, decision):
        is_majority = use.inputs[0].reduce == "majority"
        has_yes_or_no = any(v.is_binary_verdict and not v.gated_by for v in answers)
        if verdict.status != "ok" and not is_undecided:  # the failure rule fills it in
            verdict = verdict.model_copy(update={"score": None})
        folded = _average_samples([verdict])._replace(is_vote=is_majority and has_yes_or_no)
        if is_undecided:
            folded = folded._replace(outcome=UNDECIDED_OUTCOME)
        yield verdict.about, ComparedVerdictKey(intern(verdict.question), is_jury=True), folded
