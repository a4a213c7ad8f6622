"""Which method is right on items with a known label, each of which is held out of what the method is told."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.consensus.fitting import PublishedMethod, held_out_posteriors, vote
from jurygraph.arrays import Floats, Ints
from jurygraph.inference.sign_flips import sign_flip_p
from jurygraph.messages import format_count
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.fitted_consensus import FittedConsensus

_SURE_PROBABILITY = 0.9


class HeldOutLabels(NamedTuple):
    """How many likeliest labels of known items are right, wrong, and none, because several classes lead."""

    right: int
    wrong: int
    tied: int

    def __str__(self) -> str:
        tied_text = f", tied {self.tied}" if self.tied else ""
        return f"right {self.right}{tied_text}, wrong {self.wrong}"


class HeldOutGold(NamedTuple):
    """What the majority and the model say of known `items` that they are not told.

    A tie is half right: `better` is the method with more, and `p` the exact paired test that both have as much, None
    where they are right on the same items. `sure` are the labels to which the model gives .9 or more.
    """

    items: int
    majority: HeldOutLabels
    stableval: HeldOutLabels
    better: PublishedMethod
    p: float | None
    sure: HeldOutLabels

    def describe(self) -> str:
        """Return how often each method is right, and which one to take if the items tell."""
        verdict = "so few cannot tell which is right more often"
        if self.p is not None and self.p < SIGNIFICANCE_LEVEL:
            verdict = f"surely right more often (exact paired test, p = {self.p:.2g}): --method {self.better}"
        return (
            f"of {format_count(self.items, 'known item')}, each held out in turn: majority {self.majority}; model "
            f"(stableval) {self.stableval}; {verdict}"
        )


def hold_out_gold(fitted: FittedConsensus) -> HeldOutGold | None:
    """Return how methods do on the known items that have labels; None without any, or if fits take long."""
    model = fitted.model
    items = np.flatnonzero((model.gold >= 0) & model.votes.has_label)
    if not len(items) or fitted.is_refitting_slow:
        return None
    truth = model.gold[items]
    posterior = held_out_posteriors(model, items)
    majority = vote(model.votes, "shared", np.full_like(model.gold, -1))
    majority_credit = _credit_labels(majority.posterior[items], truth)
    credit = _credit_labels(posterior, truth)
    gain = credit - majority_credit
    return HeldOutGold(
        len(items),
        _count_labels(majority_credit),
        _count_labels(credit),
        "stableval" if gain.sum() > 0.0 else "majority",
        sign_flip_p(gain),
        _count_labels(credit[posterior.max(axis=1) >= _SURE_PROBABILITY]),
    )


def _credit_labels(posterior: Floats, truth: Ints) -> Floats:
    """Return 1 for the items whose likeliest class is the true one, 0 for another, and .5 for a tie, [G]."""
    # equal probabilities can differ in their last bits
    is_leading = posterior > posterior.max(axis=1, keepdims=True) - 1e-9
    is_right = is_leading[np.arange(len(truth)), truth]
    return np.where(is_leading.sum(axis=1) > 1, 0.5, is_right)


def _count_labels(credit: Floats) -> HeldOutLabels:
    return HeldOutLabels(*[int((credit == value).sum()) for value in (1.0, 0.0, 0.5)])
