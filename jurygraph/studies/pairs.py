"""Verdicts on a pair of responses in both orders, counted alike by every study of pairs.

The rule is JudgeBench's (`utils/metrics.py`): each verdict is +1 for the response that it prefers, -1 for the other
one, 0 for a tie, and the sign of the sum decides. So right in one order and a tie in the other is right, and a flip is
a tie. Agreement in both orders is the stricter figure.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from jurygraph.schema import RecordedVerdict

_TIE_SCORE = 0.5


def majority_choice(scores: Iterable[float]) -> float:
    """Return 1 if more scores in [0, 1] are for a response than against it, 0 if fewer are, else 0.5."""
    votes = sum((score > _TIE_SCORE) - (score < _TIE_SCORE) for score in scores)
    return (1.0 + (votes > 0) - (votes < 0)) / 2.0


def has_order_flip(choices: Sequence[float]) -> bool:
    """Return whether the orders with these choices prefer different responses."""
    return set(choices) == {0.0, 1.0}


def scores_by_order(response: str, verdicts: Iterable[RecordedVerdict]) -> list[list[float]]:
    """Return the scores of verdicts on a pair from the side of a response, for each order that was judged."""
    scores_by_first_response = defaultdict(list)
    for verdict in verdicts:
        if verdict.score is not None:
            first_response = verdict.responses[0]
            score = verdict.score if first_response == response else 1.0 - verdict.score
            scores_by_first_response[first_response].append(score)
    return list(scores_by_first_response.values())
