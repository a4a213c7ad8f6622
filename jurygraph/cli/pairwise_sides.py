"""Pairwise verdicts from the side of one response: s for the response the verdict is about, 1 - s for the other."""

from jurygraph.schema import RecordedVerdict


def opponent(response_id: str, verdict: RecordedVerdict) -> str | None:
    """Return the id of the other response of a pair; None if the verdict is not on a pair."""
    if len(verdict.responses) != 2 or verdict.about != verdict.responses[0]:
        return None
    return verdict.responses[1] if verdict.about == response_id else verdict.responses[0]


def score_for(response_id: str, verdict: RecordedVerdict) -> float | None:
    """Return the score from this response's side; None if there is no score."""
    if verdict.score is None or verdict.about == response_id:
        return verdict.score
    return 1.0 - verdict.score


def is_decided_against(response_id: str, verdict: RecordedVerdict) -> bool:
    """Return True if the judge's own decision was against this response."""
    if verdict.met is None or verdict.about == response_id:
        return verdict.met is False
    return verdict.score is not None and verdict.score > 0.5
