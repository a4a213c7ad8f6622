"""Convert a fitted consensus into the artifact that plans can use."""

from collections.abc import Sequence

from jurygraph.aggregation.consensus import Consensus
from jurygraph.schema.confusions import Confusions
from jurygraph.schema.rating import Label


def to_confusions(fitted: Consensus, classes: Sequence[Label]) -> Confusions:
    """Return the class shares and confusion matrices of a fit, for `classes` [K] and its annotators' names as text."""
    return Confusions(
        classes=tuple(classes),
        prior=tuple(fitted.prior.tolist()),
        annotators={
            str(name): tuple(tuple(row) for row in matrix)
            for name, matrix in zip(fitted.votes.annotators, fitted.confusion.tolist(), strict=True)
        },
    )
