"""Means of people's labels that a judge's many verdicts and a few labels estimate together.

PPI++ (Angelopoulos, Duchi & Zrnic 2023) adds to the mean of the labels what the judge says of the items without one:

    θ = mean(y) + λ · (mean(f of the unlabelled) - mean(f of the labelled))

The weight λ in [0, 1] has the least variance; a judge that follows no label has λ = 0. Rogan & Gladen (1978) turn the
rate of a judge's positive verdicts into that of true ones by its true-positive and true-negative rates:

    π = (p + TNR - 1) / (TPR + TNR - 1)

Both intervals are the jackknife's over tasks, of λ as it is. Labels must be of items drawn at random. A jackknife sees
no error where the labels of G tasks are all of one kind, or a judge never errs on them; then up to 1 - .025^(1/G) of
all tasks may still be otherwise (Clopper & Pearson 1934), and the interval says so.
"""

import math
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.inference.clusters import (
    Estimate,
    divide_or_nan,
    find_least_count,
    jackknife_interval,
    max_unseen_cluster_share,
    ratio_interval,
    t_quantile,
)


class LabelledSample(NamedTuple):
    """Labels y [n] with a judge's predictions f [n], its predictions [N] for items without one, and their tasks.

    Tasks are numbers from 0; both parts number the same tasks.
    """

    labels: Floats
    predictions: Floats
    tasks: Ints
    unlabelled_predictions: Floats
    unlabelled_item_tasks: Ints

    def sums(self, values: Floats | float) -> Floats:
        """Return the sum of values of the labelled items [n], or of one value for each, by task, [G]."""
        return self._sums_by_task(self.tasks, values)

    def unlabelled_sums(self, values: Floats | float) -> Floats:
        """Return the sum of values of the items without a label [N], or of one value for each, by task, [G]."""
        return self._sums_by_task(self.unlabelled_item_tasks, values)

    def _sums_by_task(self, tasks: Ints, values: Floats | float) -> Floats:
        count = 1 + max(self.tasks.max(initial=-1), self.unlabelled_item_tasks.max(initial=-1))
        sums = np.bincount(tasks, np.broadcast_to(values, tasks.shape), minlength=count)
        return sums.astype(np.float64)


def ppi_weight(sample: LabelledSample) -> float:
    """Return λ of PPI++; 0 without items that have no label, or if all predictions are the same."""
    if not len(sample.unlabelled_predictions):
        return 0.0
    return _prediction_weight(sample, len(sample.labels) / len(sample.unlabelled_predictions))


def _prediction_weight(sample: LabelledSample, ratio: float) -> float:
    """Return λ = cov(y, f) / ((1 + n / N) var(f)) within [0, 1] for a ratio n / N, which need not be the sample's."""
    all_predictions = np.concatenate([sample.predictions, sample.unlabelled_predictions])
    if not np.ptp(all_predictions):
        return 0.0
    labels = sample.labels - sample.labels.mean()
    predictions = sample.predictions - sample.predictions.mean()
    covariance = float(np.mean(labels * predictions))
    variance = float(all_predictions.var(ddof=1))
    return min(1.0, max(0.0, covariance / ((1.0 + ratio) * variance)))


def ppi_mean(sample: LabelledSample, scale: tuple[float, float] | None = None) -> Estimate:
    """Return the mean label of all items by PPI++, with its 95 % interval over tasks.

    The ends are None if the labels, or the verdicts without one, are all of one task. On a `scale`, from its lowest to
    its highest label, value and ends stay within it, and there are ends for equal labels, too: for true and false the
    exact ones of as many trials as there are tasks.
    """
    weight = ppi_weight(sample)
    sizes = sample.sums(1.0)
    tasks = int(np.count_nonzero(sizes))
    label_residuals = sample.labels - weight * sample.predictions
    value, jackknife_means = _mean_and_leave_one_out_means(sample.sums(label_residuals), sizes)
    if weight:
        unlabelled_mean, unlabelled_jackknife_means = _mean_and_leave_one_out_means(
            sample.unlabelled_sums(sample.unlabelled_predictions), sample.unlabelled_sums(1.0)
        )
        value += weight * unlabelled_mean
        jackknife_means = jackknife_means + weight * unlabelled_jackknife_means
    estimate = jackknife_interval(value, jackknife_means, tasks)
    if scale is None:
        return estimate
    return _widen_for_unseen_values(estimate, sample, *scale).within(*scale)


def _widen_for_unseen_values(
    estimate: Estimate, sample: LabelledSample, lowest: float, highest: float
) -> Estimate:
    """Return the estimate with an interval that counts labels, or errors of the judge, of which no task has any."""
    max_unseen_share = max_unseen_cluster_share(estimate.clusters)
    label = float(sample.labels[0])
    if estimate.error is not None and not np.ptp(sample.labels):
        low = label - max_unseen_share * (label - lowest)
        high = label + max_unseen_share * (highest - label)
        return estimate._replace(low=low, high=high)
    has_no_judge_errors = np.array_equal(sample.labels, sample.predictions)
    if estimate.low is None or estimate.high is None or not has_no_judge_errors:
        return estimate
    unseen_value_allowance = max_unseen_share * (highest - lowest)
    return estimate._replace(
        low=estimate.low - unseen_value_allowance, high=estimate.high + unseen_value_allowance
    )


def rogan_gladen(sample: LabelledSample) -> Estimate | None:
    """Return the rate of true labels by Rogan and Gladen, within [0, 1], with its 95 % interval over tasks.

    Labels and predictions are 0 or 1. None without labels of both kinds, or if TPR + TNR is at most 1: such a judge
    says nothing. The ends are None if that is so without one of the tasks. A TPR or TNR of exactly 1 counts for them
    as what the tasks with such labels can exclude.
    """
    is_positive = sample.labels == 1.0
    is_predicted_positive = sample.predictions == 1.0
    # In the order of `_true_rate`.
    columns = [
        is_positive,
        is_positive & is_predicted_positive,
        ~is_positive,
        ~is_positive & ~is_predicted_positive,
        np.ones_like(is_positive),
        is_predicted_positive,
    ]
    counts = np.array([sample.sums(column.astype(np.float64)) for column in columns])  # [6, G]
    counts[4] += sample.unlabelled_sums(1.0)
    counts[5] += sample.unlabelled_sums(sample.unlabelled_predictions)
    totals = counts.sum(axis=1)
    value = float(_true_rate(totals))
    if math.isnan(value):
        return None
    tasks = int(np.count_nonzero(counts[0] + counts[2]))
    jackknife_rates = _true_rate(totals[:, None] - counts)
    interval = jackknife_interval(value, jackknife_rates, tasks)
    return _widen_for_unseen_errors(interval, counts[:4]).within(0.0, 1.0)


def _widen_for_unseen_errors(estimate: Estimate, counts: Floats) -> Estimate:
    """Return the estimate of a true rate with ends at the least TPR and TNR that go with those of exactly 1.

    `counts` are those of positives, true ones, negatives and true ones by task, [4, G]. At another TPR or TNR the rate
    of positive verdicts is the same, so that π · (TPR + TNR - 1) changes by as much as TNR does.
    """
    low = estimate.low
    high = estimate.high
    if low is None or high is None:
        return estimate
    tpr, tnr = counts[1::2].sum(axis=1) / counts[::2].sum(axis=1)
    informedness = float(tpr + tnr - 1.0)  # Youden's
    positive_tasks, negative_tasks = np.count_nonzero(counts[::2], axis=1).tolist()
    if tpr == 1.0:
        lowest_informedness = informedness - max_unseen_cluster_share(positive_tasks)
        high = high * informedness / lowest_informedness if lowest_informedness > 0.0 else 1.0
    if tnr == 1.0:
        max_unseen_share = max_unseen_cluster_share(negative_tasks)
        lowest_informedness = informedness - max_unseen_share
        low_informedness = low * informedness - max_unseen_share
        low = low_informedness / lowest_informedness if lowest_informedness > 0.0 else 0.0
    return estimate._replace(low=low, high=high)


def needed_label_count(
    sample: LabelledSample, half_width: float, scale: tuple[float, float]
) -> int | None:
    """Return how many labels would give the interval of `ppi_mean` this half-width, with labels like these.

    They are drawn from the T items that there are: whatever gets a label leaves the verdicts without one, and λ falls
    with the share that is labelled. None where all T labels would not do, and where these give no interval: labels of
    one task, or of tasks that agree.
    """
    if ppi_mean(sample, scale).low is None:
        return None

    return find_least_count(
        lambda labels: _expected_half_width(sample, labels, scale) <= half_width,
        len(sample.labels) + len(sample.unlabelled_predictions),
    )


def _expected_half_width(sample: LabelledSample, count: int, scale: tuple[float, float]) -> float:
    """Return the half-width that `count` labels would give the interval of `ppi_mean`, for as many items in all.

        Var = Var[mean of n residuals y - λf] + λ² Var[mean of the other N verdicts]

    Both are the jackknife's of the sample, with the design effect of its tasks, rescaled to n and N.
    """
    labelled_count = len(sample.labels)
    items = labelled_count + len(sample.unlabelled_predictions)
    rest = items - count
    weight = _prediction_weight(sample, count / rest) if rest else 0.0
    sizes = sample.sums(1.0)
    residual_sums = sample.sums(sample.labels - weight * sample.predictions)
    residuals = ratio_interval(residual_sums, sizes)
    unlabelled_verdict_sums = sample.unlabelled_sums(sample.unlabelled_predictions)
    verdict_sums = sample.sums(sample.predictions) + unlabelled_verdict_sums
    verdicts = ratio_interval(verdict_sums, sizes + sample.unlabelled_sums(1.0))
    assert residuals is not None
    assert verdicts is not None  # there are tasks with labels
    variance = (residuals.error or 0.0) ** 2 * labelled_count / count
    if rest:
        variance += weight**2 * (verdicts.error or 0.0) ** 2 * items / rest
    tasks = max(2, round(residuals.clusters * count / labelled_count))
    max_unseen_share = max_unseen_cluster_share(tasks) * (scale[1] - scale[0])
    if not np.ptp(sample.labels):
        return max_unseen_share / 2.0
    half_width = t_quantile(tasks - 1) * math.sqrt(variance)
    has_no_judge_errors = np.array_equal(sample.labels, sample.predictions)
    return half_width + max_unseen_share if has_no_judge_errors else half_width


def _mean_and_leave_one_out_means(sums: Floats, sizes: Floats) -> tuple[float, Floats]:
    """Return Σ sums / Σ sizes, and the same without each cluster, [G]; NaN where nothing is left."""
    jackknife_means = divide_or_nan(sums.sum() - sums, sizes.sum() - sizes)
    return float(sums.sum() / sizes.sum()), jackknife_means


def _true_rate(counts: Floats) -> Floats:
    """Return π from counts of positives, true ones, negatives, true ones, all and those said, [6, ...]; else NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        positives, true_positives, negatives, true_negatives, items, predicted_positives = counts
        tpr = true_positives / positives
        tnr = true_negatives / negatives
        rate = (predicted_positives / items + tnr - 1.0) / (tpr + tnr - 1.0)
        return np.where(tpr + tnr > 1.0, rate, np.nan)
