"""Means of labels that are numbers, with the leniency of each annotator taken out, and how sure each of them is.

A panel that is too small for confusions still tells who gives more stars than others do: that is one number for each
annotator, where a confusion of five classes has twenty. The model scores items by posteriors, this by their means.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.consensus.model import (
    ItemKey,
    ItemPosteriors,
    Votes,
    select_items,
)
from jurygraph.arrays import Floats, Ints

_USUAL_SPREAD = 0.2
"""Error of one imaginary label among all others, as a share of the scale: unanimous labels are not certain."""
_USUAL_LABELS = 4.0
"""Imaginary labels of each item that spread as those of all: two equal labels do not show that others would be equal.

With these, 95 % intervals of simulated stars contain the true mean in 93 to 95 % (docs/consensus.md).
"""
DOUBTFUL_ERROR_SHARE = 0.75
"""Share of a single label's error above which a mean is in doubt; the mean of two labels has .71 of it.

So single labels are in doubt, and two that differ more than others do: an eighth of simulated items with two or three
labels. A further label of the least sure items gains half as much again there as of items drawn at random, and nearly
twice as much where some have one label. A standard error as a share of the scale would have all items of a noisy panel.
"""


class ExpectedError(NamedTuple):
    """The mean standard error of the items in doubt after a number of further `labels` of each."""

    labels: int
    standard_error: float


@dataclass(frozen=True)
class AdjustedMeans(ItemPosteriors):
    """The adjusted mean of each item, whose classes are numbers.

    The posterior has the shares of the two classes around the mean, so that the expected credit is that of the mean,
    and the likeliest class is the nearest one: how sure it is, the `standard_errors` say.

    `means` [N] are within the scale; `standard_errors` [N] are its span without a label, and 0 for gold. `leniency` [A]
    is how much higher an annotator's labels are. A mean is in doubt if its error exceeds `doubt_above`.
    `further_errors` [N] are the standard errors that are expected after one more label.
    """

    means: Floats
    standard_errors: Floats
    leniency: Floats
    doubt_above: float
    further_errors: Floats

    def expected_errors(self) -> list[ExpectedError]:
        """Return the error of the items in doubt now, and after a further label of each; nothing without items."""
        is_doubtful = self.standard_errors > self.doubt_above
        if not is_doubtful.any():
            return []
        errors = [self.standard_errors[is_doubtful], self.further_errors[is_doubtful]]
        return [ExpectedError(labels, float(row.mean())) for labels, row in enumerate(errors)]

    def doubts(self) -> dict[ItemKey, str]:
        doubtful_items = select_items(self.items, self.standard_errors > self.doubt_above)
        return dict.fromkeys(doubtful_items, "unsure mean")


class LeniencyFit(NamedTuple):
    """How much higher the labels of each annotator are, [A], and the share of its variance that is not known, [A]."""

    leniency: Floats
    unknown_share: Floats


def fit_leniency(votes: Votes) -> LeniencyFit:
    """Return b of `adjusted_means`, and 1 / (1 + o) of each annotator."""
    from scipy import sparse  # imported lazily: every `study` command would wait for it

    n, a, _ = votes.shape
    numbers = np.array(votes.classes, dtype=np.float64)
    scores = numbers[votes.label]
    counts = sparse.coo_array((np.ones(len(scores)), (votes.item, votes.annotator)), shape=(n, a))
    sizes = np.maximum(counts.sum(axis=1), 1.0)
    # b solves Q b = q, the equations of both means without m.
    shared = counts.T @ sparse.diags_array(1.0 / sizes) @ counts
    labels = votes.labels_by_annotator
    matrix = sparse.diags_array(1.0 + labels) - shared
    sums = np.bincount(votes.annotator, scores, a) - counts.T @ (votes.counts @ numbers / sizes)
    leniency = sparse.linalg.lsmr(matrix, sums, 0.0, 1e-12, 1e-12, 0.0, maxiter=20 * a)[0]
    _, parts = sparse.csgraph.connected_components(shared)
    levels = np.bincount(parts, labels * leniency) / np.maximum(np.bincount(parts, labels), 1.0)
    return LeniencyFit(leniency - levels[parts], 1.0 / matrix.diagonal())


def adjusted_means(votes: Votes, gold: Ints) -> AdjustedMeans:
    """Return the adjusted means of votes whose classes are numbers: m of s = m_item + b_annotator + error.

    `gold` [N] is the class of a gold item, -1 for any other, which is its mean. The others are by least squares,

        m_i = mean of s - b_r over the labels of item i        b_r = mean of s - m_i over the labels of annotator r

    to which one imaginary s - m_i = 0 is added. So who shares a label or two moves no item far, where least squares
    alone follow the error of each: with 60 people of two labels each they add two thirds to the error of the means.
    Only annotators whom shared items connect, if only through others, can be told apart: over the labels of those the
    mean of b is 0, so that one stray label of a new person does not move the items of all others. With n_i labels of an
    item, the residuals e, and o_r = Σ 1 - 1/n_i over the labels of an annotator,

        σ² = (Σ e² + (span/5)²) / (1 + labels - items - Σ_r o_r / (1 + o_r))        s_i² = (4 σ² + Σ_i e²) / (3 + n_i)
        (standard error of m_i)² = s_i² / n_i + σ² / n_i² · Σ_i 1 / (1 + o_r)

    The last term is the error of the leniencies: of one who shares no label, nothing is known. A further label is
    expected to leave s_i² as it is, and to be by somebody whose leniency is as well known as that of a label at random.
    """
    leniency, unknown_share = fit_leniency(votes)
    numbers = np.array(votes.classes, dtype=np.float64)
    span = np.ptp(numbers)
    scores = numbers[votes.label]
    label_counts = votes.counts.sum(axis=1)
    sizes = np.maximum(label_counts, 1.0)
    n = len(sizes)
    means = votes.counts @ numbers / sizes
    means -= np.bincount(votes.item, leniency[votes.annotator], n) / sizes
    residuals = scores - means[votes.item] - leniency[votes.annotator]
    squares = np.bincount(votes.item, residuals**2, n)
    freedom = len(scores) - np.count_nonzero(votes.has_label) - (1.0 - unknown_share).sum()
    label_variance = (squares.sum() + (_USUAL_SPREAD * span) ** 2) / (1.0 + freedom)
    variances = (_USUAL_LABELS * label_variance + squares) / (_USUAL_LABELS - 1.0 + sizes)
    leniency_errors = np.bincount(votes.item, unknown_share[votes.annotator], n)
    errors = np.sqrt((variances + label_variance * leniency_errors / sizes) / sizes)
    further_sizes = label_counts + 1.0
    leniency_errors += unknown_share[votes.annotator].mean()
    further_errors = variances + label_variance * leniency_errors / further_sizes
    further_errors = np.sqrt(further_errors / further_sizes)
    errors[~votes.has_label] = span
    is_gold = gold >= 0
    means[is_gold] = numbers[gold[is_gold]]
    errors[is_gold] = 0.0
    # equal figures can differ in their last bits
    means = np.clip(means, numbers.min(), numbers.max()).round(9)
    # half way between two classes, the one farther from the middle of the scale leads, as for labels off the scale
    nearly_means = means + np.copysign(1e-12, means - numbers.mean())
    shares = [np.interp(nearly_means, numbers, is_class) for is_class in np.eye(len(numbers))]
    posterior = np.stack(shares, axis=1)
    posterior[~votes.has_label & ~is_gold] = 1.0 / len(numbers)
    doubt_above = float(DOUBTFUL_ERROR_SHARE * label_variance**0.5)
    return AdjustedMeans(
        votes, posterior, means, errors.round(9), leniency, doubt_above, further_errors
    )
