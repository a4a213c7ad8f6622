"""Scores that reviewers are predicted to give, on their own scales: the result of the votes that make the reward."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from jurygraph.decision.table import NOT_APPLICABLE, OK, ScoreArrays
from jurygraph.explanation.terms import ExplainedTrace, ExplainedVerdict
from jurygraph.schema import RecordedVerdict


class PredictedScore(NamedTuple):
    """The score that a reviewer is predicted to give on a dimension, from the lowest to the highest of `scale`.

    It is None where no answer counts: all failed or were discarded, or they agree on nothing.
    """

    question: str
    reviewer: str
    dimension: str
    value: float | None
    scale: tuple[float, float]


def predicted_scores(explained: ExplainedTrace) -> list[PredictedScore]:
    """Return the predicted score of each question about a reviewer; of several judges, the mean."""
    values: dict[str, list[float]] = {}
    first_verdicts: dict[str, RecordedVerdict] = {}
    for question, voting, columns in _list_ballots(explained):
        predictions = [vote.verdict for vote in voting if vote.verdict.reviewer is not None]
        scaled = [verdict for verdict in predictions if verdict.scale is not None]
        if scaled:
            first_verdicts.setdefault(question, scaled[0])
            values.setdefault(question, []).extend(_read_result(scaled, columns))
    found = []
    for question, verdict in first_verdicts.items():
        value = fmean(values[question]) if values[question] else None
        scale = verdict.scale or (0.0, 1.0)
        reviewer = verdict.reviewer or ""
        found.append(PredictedScore(question, reviewer, verdict.subject, value, scale))
    return found


def _list_ballots(
    explained: ExplainedTrace,
) -> Iterator[tuple[str, Sequence[ExplainedVerdict], ScoreArrays]]:
    """Yield the votes on each question with their result, those of each judge once."""
    counted: set[tuple[str, str | None]] = set()
    for spec in explained.decision.specs:
        for use in spec.inputs.values():
            for question in use.questions:
                if (question, use.judge) not in counted:
                    counted.add((question, use.judge))
                    for voting, columns in explained.ballots(question, use):
                        yield question, voting, columns


def _read_result(voting: Sequence[RecordedVerdict], columns: ScoreArrays) -> Iterator[float]:
    """Yield the scores that count, on the reviewer's scale, or the one that says that the dimension does not apply."""
    low, high = voting[0].scale or (0.0, 1.0)
    excluding = [verdict.native for verdict in voting if verdict.status == "not_applicable"]
    for score, outcome in zip(columns.value[0], columns.outcome[0], strict=True):
        if outcome == OK:
            yield round(low + float(score) * (high - low), 9)
        elif outcome == NOT_APPLICABLE:
            yield from (float(score) for score in excluding[:1] if isinstance(score, int | float))
