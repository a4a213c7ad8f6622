"""Which method is right on items with a known label, each of which is held out of what the method is told."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.consensus.fitting import PublishedMethod, held_out_posteriors
from jurygraph.arrays import Floats, Ints
from jurygraph.inference.sign_flips import sign_flip_p
from jurygraph.messages import format_count
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.fitted_consensus import FittedConsensus


class HeldOutLabels(NamedTuple):
    """Of how many known items the likeliest label is wrong, several classes lead, and it is right."""

    wrong: int
    tied: int
    right: int

    def __str__(self) -> str:
        return f"right {self.right}, tied {self.tied}, wrong {self.wrong}"


class HeldOutGold(NamedTuple):
    """Labels by the majority and the model of known `items` that they are not told.

    A tie is half right: `better` is the method with more, and `p` the exact paired test that both have as much, None
    where they are right on the same items.
    """

    items: int
    majority: HeldOutLabels
    stableval: HeldOutLabels
    better: PublishedMethod
    p: float | None

    def describe(self) -> str:
        """Return how often each method is right, and which one to take if the items tell."""
        verdict = "too few to tell which is right more often"
        if self.p is not None and self.p < SIGNIFICANCE_LEVEL:
            verdict = f"surely right more often (exact paired test, p = {self.p:.2g}): --method {self.better}"
        return (
            f"of {format_count(self.items, 'known item')}, held out in up to ten parts: majority {self.majority}; "
            f"model (stableval) {self.stableval}; {verdict}"
        )


def hold_out_gold(fitted: FittedConsensus) -> HeldOutGold | None:
    """Return how methods do on the known items that have labels; None without any, or if fits take long."""
    model = fitted.model
    items = np.flatnonzero((model.gold >= 0) & model.votes.has_label)
    if not len(items) or fitted.is_refitting_slow:
        return None
    truth = model.gold[items]
    majority = _credit_labels(model.votes.counts[items], truth)
    stableval = _credit_labels(held_out_posteriors(model, items), truth)
    gain = stableval - majority
    return HeldOutGold(
        len(items),
        HeldOutLabels(*np.bincount(majority, minlength=3).tolist()),
        HeldOutLabels(*np.bincount(stableval, minlength=3).tolist()),
        "stableval" if gain.sum() > 0 else "majority",
        sign_flip_p(gain),
    )


def _credit_labels(weights: Floats | Ints, truth: Ints) -> Ints:
    """Return 2 for the items whose true class alone has the greatest weight, 1 if others have as much, else 0, [G]."""
    # equal probabilities can differ in their last bits
    is_leading = weights > weights.max(axis=1, keepdims=True) - 1e-9
    is_right = is_leading[np.arange(len(truth)), truth]
    return np.asarray(np.where(is_leading.sum(axis=1) > 1, 1, 2) * is_right)
