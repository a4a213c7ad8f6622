"""Scores that reviewers are predicted to give, on their own scales: the result of the votes that make the reward."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.decision.table import NOT_APPLICABLE_CODE, OK_CODE, ScoreArrays
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.schema import RecordedVerdict


class PredictedScore(NamedTuple):
    """The score that a reviewer is predicted to give on a dimension, and the first verdict that says so.

    It is on the scale of the verdict; None where no answer counts: all failed or were discarded, or agree on nothing.
    """

    verdict: RecordedVerdict
    value: float | None


def predicted_scores(explained_trace: ExplainedTrace) -> list[PredictedScore]:
    """Return the predicted score of each question about a reviewer; of several judges, the mean."""
    values = defaultdict(list)
    first_vote_by_question = {}
    for spec in explained_trace.decision.specs:
        for use in spec.inputs.values():
            for question in use.questions:
                for voting_verdicts, columns in explained_trace.ballots(question, use):
                    votes = [
                        vote.verdict for vote in voting_verdicts if vote.verdict.scale is not None
                    ]
                    if votes and votes[0].reviewer is not None:
                        first_vote_by_question[question] = votes[0]
                        values[question].extend(_read_counted_scores(votes, columns))
    return [
        PredictedScore(vote, fmean(values[question]) if values[question] else None)
        for question, vote in first_vote_by_question.items()
    ]


def _read_counted_scores(votes: Sequence[RecordedVerdict], columns: ScoreArrays) -> list[Any]:
    """Return the scores that count, on the reviewer's scale, or those that say that the dimension does not apply."""
    low, high = votes[0].scale or (0.0, 1.0)
    verdict_codes = columns.verdict_code[0]
    scores = low + columns.value[0, verdict_codes == OK_CODE] * (high - low)
    not_applicable_answers = [vote.native for vote in votes if vote.status == "not_applicable"]
    return [
        *scores.round(9).tolist(),
        *not_applicable_answers[: np.count_nonzero(verdict_codes == NOT_APPLICABLE_CODE)],
    ]
