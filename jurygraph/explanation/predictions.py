"""Scores that reviewers are predicted to give, on their own scales: the result of the votes that make the reward."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from jurygraph.decision.table import (
    NOT_APPLICABLE_CODE,
    OK_CODE,
    VerdictTable,
    build_question_columns,
)
from jurygraph.decision.turns import read_uses
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.schema import ComponentInput, RecordedVerdict


class PredictedScore(NamedTuple):
    """The score that a reviewer is predicted to give on a dimension, and the first verdict that says so.

    It is on the scale of the verdict; None where no answer counts: all failed or were discarded, or agree on nothing.
    """

    verdict: RecordedVerdict
    value: float | None


def predicted_scores(explained_trace: ExplainedTrace) -> list[PredictedScore]:
    """Return the predicted score of each question about a reviewer; of several judges, the mean."""
    uses = read_uses(explained_trace.decision)
    votes_by_question = defaultdict(list)
    for explained_verdict in explained_trace.verdicts:
        votes_by_question[explained_verdict.verdict.question].append(explained_verdict.verdict)
    predictions = []
    for question, votes in votes_by_question.items():
        first = next((vote for vote in votes if vote.scale is not None), votes[0])
        if first.scale is not None and first.reviewer is not None and question in uses:
            scores = counted_scores(votes, uses[question].inputs, first.scale)
            predictions.append(PredictedScore(first, fmean(scores) if scores else None))
    return predictions


_FOLDS: Mapping[str | None, Callable[[list[Any]], Any]] = {
    "median": median,
    "min": min,
    "max": max,
}
"""What makes one score of several, where it is not their mean."""


def counted_scores(
    verdicts: Sequence[RecordedVerdict],
    inputs: Sequence[ComponentInput],
    scale: tuple[float, float],
) -> list[float]:
    """Return the scores that inputs count of verdicts on a question about a response, on the reviewer's scale, or those
    that say that the dimension does not apply. The verdicts may be of several runs."""
    question = verdicts[0].question
    votes_by_turn = defaultdict(list)
    for verdict in verdicts:
        votes_by_turn[verdict.turn or 0].append(verdict)
    turns = [votes for _, votes in sorted(votes_by_turn.items())]
    seats = max(turns, key=len)
    cells = {}
    for position, votes in enumerate(turns):
        for seat, vote in enumerate(votes):
            cells[0, position * len(seats) + seat] = vote, False
    columns = {question: build_question_columns(1, cells, len(seats))}
    judges = {question: [vote.judge for vote in seats]}
    table = VerdictTable(1, columns, judges=judges, turns={question: len(seats)})
    low, high = scale
    counted: list[Any] = []
    for use in inputs:
        for votes, turn in zip(turns, table.effective_columns_by_turn(question, use), strict=True):
            codes = turn.verdict_code[0]
            scores = (low + turn.value[0, codes == OK_CODE] * (high - low)).round(9).tolist()
            # gates say no score
            natives = [
                v.native for v in votes if v.status == "not_applicable" and v.native is not None
            ]
            scores += natives[: np.count_nonzero(codes == NOT_APPLICABLE_CODE)]
            fold = _FOLDS.get(use.reduce)
            counted += [fold(scores)] if scores and fold else scores
    return counted
