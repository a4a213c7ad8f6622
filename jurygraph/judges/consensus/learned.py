"""From a fitted consensus to what plans may use of it."""

from collections.abc import Sequence

from jurygraph.aggregation.consensus import Consensus
from jurygraph.schema.confusions import Confusions
from jurygraph.schema.rating import Label


def confusions_of(fitted: Consensus, classes: Sequence[Label]) -> Confusions:
    """Its shares and confusions, under the names of `classes` [K] and of its annotators, as text."""
    return Confusions(
        classes=tuple(classes),
        prior=tuple(fitted.prior.tolist()),
        annotators={
            str(name): tuple(tuple(row) for row in matrix)
            for name, matrix in zip(fitted.votes.annotators, fitted.confusion.tolist(), strict=True)
        },
    )
