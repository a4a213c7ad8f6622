"""The ambiguity of items that is expected after further labels, simulated under a fitted model.

The true class of an item is drawn from its posterior, and labels by the confusions of the panel; each label updates the
posterior by Bayes' rule, with confusions and class shares as they were fitted. Under the model, the expected ambiguity
never rises with the number of labels: the posterior is a martingale, and its greatest entry convex.
"""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.consensus.model import HIGH_AMBIGUITY, Consensus
from jurygraph.arrays import Ints


class ExpectedAmbiguity(NamedTuple):
    """Expectations of some items after further labels.

    Attributes:
        labels: number of further labels of each item.
        ambiguity: mean over the items of the expected ambiguity.
        high: expected number of items with high ambiguity.
    """

    labels: int
    ambiguity: float
    high: float


def expected_ambiguity(
    fitted: Consensus,
    items: Ints,
    max_further_labels: int = 3,
    draw_count: int = 10_000,
    seed: int = 0,
) -> list[ExpectedAmbiguity]:
    """Return what is expected of items after 0, 1, … `max_further_labels` further labels of each; nothing without
    items.

    A label is by one of the panel's annotators, each as likely as it has labels, and independent of all others given
    the class. So new people who err as the panel does are assumed; the uncertainty of the confusions is left out.

    Args:
        fitted: the estimate. items: indices of the items, as in `fitted.items`. max_further_labels: the greatest number
        of further labels. draw_count: number of simulated items: as many of each, one at least. The standard error of
        `ambiguity` is at most
            .5 / √draws.
        seed: seed of the draws.
    """
    if not len(items):
        return []
    rng = np.random.default_rng(seed)
    repeats = -(-draw_count // len(items))
    posterior = np.repeat(fitted.posterior[items], repeats, axis=0)  # [S,K]
    true_class = rng.multinomial(1, posterior).argmax(axis=1)
    expected_ambiguities = []
    for labels in range(max_further_labels + 1):
        if labels > 0:
            annotator = rng.choice(fitted.votes.annotator, len(posterior))  # of a label at random
            label = rng.multinomial(1, fitted.confusion[annotator, true_class]).argmax(axis=1)
            posterior = posterior * fitted.confusion[annotator, :, label]
            posterior /= posterior.sum(axis=1, keepdims=True)
        ambiguity = 1.0 - posterior.max(axis=1)
        high = float((ambiguity > HIGH_AMBIGUITY).mean()) * len(items)
        expected_ambiguities.append(ExpectedAmbiguity(labels, float(ambiguity.mean()), high))
    return expected_ambiguities
