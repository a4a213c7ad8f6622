"""A verdict on a pair, from the side of one of the two: s for the response that it is about, 1 - s for the other."""

from jurygraph.schema import Verdict


def opponent(response_id: str, verdict: Verdict) -> str | None:
    """The other response of a pair; None where the verdict is on no pair."""
    if len(verdict.responses) != 2 or verdict.about != verdict.responses[0]:
        return None
    return verdict.responses[1] if verdict.about == response_id else verdict.responses[0]


def score_for(response_id: str, verdict: Verdict) -> float | None:
    """The score from this response's side."""
    if verdict.score is None or verdict.about == response_id:
        return verdict.score
    return 1.0 - verdict.score


def decided_against(response_id: str, verdict: Verdict) -> bool:
    """Whether the judge's own decision went against this response."""
    if verdict.met is None or verdict.about == response_id:
        return verdict.met is False
    return verdict.score is not None and verdict.score > 0.5
