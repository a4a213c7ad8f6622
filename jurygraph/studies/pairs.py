"""Verdicts on a pair of responses in both orders, counted alike by every study of pairs.

The rule is JudgeBench's (`utils/metrics.py`): each verdict is +1 for the response that it prefers, -1 for the other
one, 0 for a tie, and the sign of the sum decides. So right in one order and a tie in the other is right, and a flip is
a tie. Agreement in both orders is the stricter figure beside it.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple, Self

from jurygraph.schema import RecordedVerdict

_TIE = 0.5


def choice_of(scores: Iterable[float]) -> float:
    """Return 1 if more scores in [0, 1] are for a response than against it, 0 if fewer are, else 0.5."""
    votes = sum((score > _TIE) - (score < _TIE) for score in scores)
    return (1.0 + (votes > 0) - (votes < 0)) / 2.0


def is_flip(choices: Sequence[float]) -> bool:
    """Return whether the orders with these choices prefer different responses."""
    return set(choices) == {0.0, 1.0}


class PairOrders(NamedTuple):
    """The scores of a pair's verdicts from the side of one response: those that show it first, and those second."""

    shown_first: Sequence[float]
    shown_second: Sequence[float]

    @classmethod
    def of(cls, response: str, verdicts: Iterable[RecordedVerdict]) -> Self:
        """Return the scores of verdicts on a response and another one; those without a score are left out."""
        shown_first: list[float] = []
        shown_second: list[float] = []
        for verdict in verdicts:
            if verdict.score is None:
                continue
            if verdict.responses[0] == response:
                shown_first.append(verdict.score)
            else:
                shown_second.append(1.0 - verdict.score)
        return cls(shown_first, shown_second)

    @property
    def score(self) -> float:
        """The mean of the orders that were judged, whichever has more samples."""
        return fmean(fmean(scores) for scores in self if scores)

    @property
    def choice(self) -> float:
        """The choice of all verdicts together."""
        return choice_of((*self.shown_first, *self.shown_second))

    @property
    def choices(self) -> tuple[float, ...]:
        """The choice of each order, if both were judged; else none."""
        if not self.shown_first or not self.shown_second:
            return ()
        return choice_of(self.shown_first), choice_of(self.shown_second)
