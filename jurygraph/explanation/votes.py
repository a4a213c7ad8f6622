"""Majority votes of a question's samples: how many predictions there were, which of them left, and what won."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jurygraph.messages import format_plain
from jurygraph.schema import ComponentInput, RecordedVerdict
from jurygraph.schema.verdict import RESPONSE_GATES


@dataclass(frozen=True)
class Tally:
    """The vote on one question: numbers of `predictions`, of those without a vote, and of `seats`.

    `unsupported` ones are the worst case, whichever value that is: they decide where the votes do not.
    `leading` is the score with the most votes, which are `votes`: 0 without any, None if the question does not apply.
    """

    predictions: int
    discarded: int
    abstained: int
    failed: int
    unsupported: int
    seats: int
    leading: float | None
    votes: int

    @property
    def is_decided(self) -> bool:
        """Return True if more than half of the seats voted for one value."""
        return 2 * self.votes > self.seats

    def describe(self, rule: str) -> str:
        """Describe the vote in words; `rule` is the failure rule, by which a question without a majority counts."""
        lost = {
            "discarded for low confidence": self.discarded,
            "abstained": self.abstained,
            "failed": self.failed,
            "unsupported": self.unsupported,
        }
        shown = ", ".join([f"{self.predictions} predictions", *(f"{n} {fate}" for fate, n in lost.items() if n)])
        if self.is_decided:
            winner = "not applicable" if self.leading is None else format_plain(self.leading)
            return f"{shown}; {self.votes} of {self.seats} vote for {winner}"
        effect = "the unsupported count: the worst case" if self.unsupported else f"the {rule} rule says how it counts"
        return f"{shown}; no majority of {self.seats}, so {effect}"


def tally_votes(verdicts: Sequence[RecordedVerdict], scores: Sequence[float | None], use: ComponentInput) -> Tally:
    """Return the tally of a question's verdicts, with their scores as they count for the response."""
    voting = [
        score
        for verdict, score in zip(verdicts, scores, strict=True)
        if (score is not None or verdict.status == "not_applicable")
        and not verdict.is_worst_case
        and not is_discarded(verdict, use.min_confidence)
    ]
    failed = sum(map(_keeps_seat, verdicts))
    unsupported = sum(verdict.is_worst_case for verdict in verdicts)
    seats = len(voting) + failed + unsupported if use.vote == "discard-first" else len(verdicts)
    ((leading, votes),) = Counter(voting).most_common(1) or [(0.0, 0)]
    discarded = sum(is_discarded(verdict, use.min_confidence) for verdict in verdicts)
    abstained = len(verdicts) - len(voting) - discarded - failed - unsupported
    return Tally(len(verdicts), discarded, abstained, failed, unsupported, seats, leading, votes)


def _keeps_seat(verdict: RecordedVerdict) -> bool:
    """Return True if a verdict is missing for another reason than that its judge cannot tell."""
    is_infrastructure = verdict.failure is not None and verdict.failure.cause == "infrastructure"
    return verdict.status == "failed" or (verdict.status == "abstained" and is_infrastructure)


def is_discarded(verdict: RecordedVerdict, required_confidence: float) -> bool:
    """Return True if a verdict does not count because of low confidence; verdicts of a gate always count."""
    confidence = 1.0 if verdict.confidence is None else verdict.confidence
    is_answer = verdict.status in ("ok", "not_applicable") and verdict.gated_by not in RESPONSE_GATES
    return is_answer and confidence < required_confidence
