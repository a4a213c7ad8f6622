"""The part of a scored response that a comparison needs, from a trace or, much faster, from a stored run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

from jurygraph.errors import TraceMismatch
from jurygraph.runs.outline import StoredGroup, TraceOutline, read_groups
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import record_label
from jurygraph.runs.store.packing import ERASED, ResponseIds, read_shared_lists, responses_shown
from jurygraph.schema import Trace
from jurygraph.schema.verdict import MET_THRESHOLD

Slot = tuple[str, tuple[str, ...] | None]
"""Key of a verdict among those on a response: question and judge, responses shown (None for the response alone)."""


class Sample(NamedTuple):
    """One sample of a verdict: its score, in [0, 1], and decision."""

    slot: Slot
    score: float
    met: bool


class ComparedResponse(NamedTuple):
    """A response with its reward, NaN where it failed, and the samples that have a score.

    `plan` and `group` are the digests of its task's plan and of its group.
    """

    id: str
    task: str
    agent: str | None
    reward: float
    plan: str
    group: str
    samples: Sequence[Sample]


def from_trace(trace: Trace) -> ComparedResponse:
    """Return what a comparison needs of a trace."""
    # A verdict on an unordered pair is also in the trace of the other response.
    own = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
    return ComparedResponse(
        id=trace.response_id,
        task=intern(trace.task_id),
        agent=trace.agent and intern(trace.agent),
        reward=math.nan if trace.reward.value is None else trace.reward.value,
        plan=trace.plan_digest,
        group=trace.group,
        samples=[_read_sample(vars(v), v.responses, v.about) for v in own if v.score is not None and not v.superseded],
    )


def read_responses(run: Run) -> Iterator[ComparedResponse]:
    """Yield what a comparison needs of a stored run, in the order of the tasks.

    Raises `TraceMismatch` where a record does not follow the one before it, or cannot be read.
    """
    for group in read_groups(run):
        try:
            yield from _read_group(run, group)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            place = f"{run.ledger.path}, {record_label(group.record)} and those of its traces"
            problem = f"cannot be read ({type(error).__name__}: {next(iter(str(error).splitlines()), '')})"
            raise TraceMismatch(f"{place}: {problem}; one of them has been changed") from error


def _read_group(run: Run, group: StoredGroup) -> list[ComparedResponse]:
    task = intern(group.record.key)
    content = run.task_content(group.record.key)
    plan = ERASED if content is None else content["plan"] if run.base is None else run.plan_of(task).digest
    digest = run.source.ledger.texts_of(group.record).get(0, ERASED.encode()).decode()
    outline = run.source.survey_outline(group.survey)
    shared_lists = read_shared_lists(group.body)
    defaults = [outline.verdict_defaults[question.id][1] for question in outline.questions]
    return [
        ComparedResponse(
            id=trace.response_id,
            task=task,
            agent=trace.agent and intern(trace.agent),
            reward=math.nan if trace.value is None else _require_finite(trace.value),
            plan=plan,
            group=digest,
            samples=list(_read_samples(trace, defaults, shared_lists)),
        )
        for trace in group.traces
    ]


def _read_samples(
    trace: TraceOutline, defaults: Sequence[Mapping[str, Any]], shared_lists: Sequence[ResponseIds]
) -> Iterator[Sample]:
    own = (trace.response_id,)
    for body in trace.body["verdicts"]:
        question = defaults[body["question"]]
        fields = {**question, **body, "question": question["question"]}
        shown = tuple(responses_shown(body, shared_lists)) if "responses" in body else own
        if fields["score"] is not None and not fields["superseded"]:
            yield _read_sample(fields, shown, trace.response_id)


def _read_sample(fields: Mapping[str, Any], shown: ResponseIds, about: str) -> Sample:
    judge = fields["judge"]
    question = fields["question"] if judge is None else intern(f"{fields['question']} by {judge}")
    score = _require_finite(fields["score"])
    met = fields["met"]
    return Sample(
        slot=(question, None if shown == (about,) else shown),
        score=score,
        met=score >= MET_THRESHOLD if met is None else met,
    )


def _require_finite(number: float) -> float:
    """Return a stored number. Raises ValueError or TypeError if it is none."""
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {number}")
    return number
