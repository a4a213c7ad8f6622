"""Compute the report of a disagreement study: conflicts, correlations, and trends over the steps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation import fusion
from jurygraph.aggregation.arrays import Bools, Floats, as_unit_interval
from jurygraph.aggregation.bootstrap import QUANTILES, resample_sums
from jurygraph.errors import InputError, PlanError
from jurygraph.studies.disagreement import models
from jurygraph.studies.disagreement.samples import Samples

# Equal differences can differ in their last bits: 0.3 - 0.2 is not 0.2 - 0.1. Means of many values differ by more.
_DECIMALS = 12
_DECIMALS_OF_MEANS = 9


def report(
    samples: Samples, percentile: float = 80.0, resamples: int = 1000, seed: int = 0
) -> models.DisagreementReport:
    """Measure the disagreement of one run's components (MACRM, section 4.5).

    - τ is the `percentile` of all D_pair of this run (NumPy's method `linear`), and a conflict is D_pair > τ. If many
      samples tie, fewer than 1 - percentile / 100 of them lie above it.
    - High-div are the 1 - percentile / 100 of the samples with the greatest D_pair, by count: rounded half up, at least
      one and not all. Of equal samples those with the smaller id come first.
    - Values and D_pair are compared with 12 decimals, and the means of steps, for τ-b, with 9.

    Args:
        samples: as returned by `read_samples`.
        percentile: above 0 and below 100; the paper's is 80.
        resamples: resamples of the bootstrap, at least 1.
        seed: seed of the bootstrap, at least 0.

    Raises:
        InputError: `percentile` is out of range.
    """
    if not 0.0 < percentile < 100.0:
        raise InputError(f"there is no {percentile}th percentile to compare with; name one above 0 and below 100")
    exact = np.atleast_1d(pairwise(samples.values))
    disagreement = np.round(exact, _DECIMALS)
    threshold = round(float(np.percentile(disagreement, percentile, method="linear")), _DECIMALS)
    conflict = disagreement > threshold
    steps = tuple(_step_means(samples, exact, conflict))
    return models.DisagreementReport(
        run=samples.run,
        components=samples.components,
        tasks=len(set(samples.groups)),
        samples=len(samples.ids),
        percentile=percentile,
        threshold=threshold,
        disagreement=float(np.mean(exact)),
        conflicts=int(conflict.sum()),
        conflict_rate=float(np.mean(conflict)),
        split=split(samples, disagreement, percentile, resamples, seed),
        correlations=tuple(_correlations(samples)),
        steps=steps,
        trends=tuple(_trends(steps)),
        left_out=dict(samples.left_out),
    )


def _correlations(samples: Samples) -> Iterator[models.Correlation]:
    from scipy import stats

    columns = dict(zip(samples.components, np.round(samples.values, _DECIMALS).T, strict=True))
    for first, second in combinations(columns, 2):
        constant = [name for name in (first, second) if np.ptp(columns[name]) == 0.0]
        if constant:
            why = f"{' and '.join(constant)} {'is' if len(constant) == 1 else 'are'} constant"
            yield models.Correlation(first=first, second=second, pearson=None, spearman=None, why=why)
            continue
        tests = stats.pearsonr, stats.spearmanr
        pearson, spearman = (round(float(test(columns[first], columns[second]).statistic), _DECIMALS) for test in tests)
        yield models.Correlation(first=first, second=second, pearson=pearson, spearman=spearman)


def _step_means(samples: Samples, disagreement: Floats, conflict: Bools) -> Iterator[models.StepMeans]:
    if samples.steps is None:
        return
    steps, places, counts = np.unique(samples.steps, return_inverse=True, return_counts=True)
    means = (np.bincount(places, column) / counts for column in (samples.rewards, disagreement, conflict))
    for step, count, reward, mean, rate in zip(*(column.tolist() for column in (steps, counts, *means)), strict=True):
        yield models.StepMeans(step=step, samples=count, reward=reward, disagreement=mean, conflict_rate=rate)


def _trends(steps: tuple[models.StepMeans, ...]) -> Iterator[models.Trend]:
    from scipy import stats

    if len(steps) < 2:
        return
    numbers = np.array([one.step for one in steps])
    centered = numbers - numbers.mean()
    for name in ("reward", "disagreement", "conflict_rate"):
        series = np.array([getattr(one, name) for one in steps])
        ranked = series.round(_DECIMALS_OF_MEANS)
        test = stats.kendalltau(numbers, ranked, variant="b") if np.ptp(ranked) else None
        yield models.Trend(
            name=name,
            first=float(series[0]),
            last=float(series[-1]),
            slope=float(centered @ series / (centered @ centered)),
            kendall=None if test is None else round(float(test.statistic), _DECIMALS),
            p=None if test is None else float(test.pvalue),
            fluctuation=float(np.mean(np.abs(np.diff(series)))),
        )


def pairwise(components: ArrayLike | Mapping[str, ArrayLike]) -> np.float64 | Floats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|: mean absolute difference of components (MACRM Eq. 6).

    The order of the components does not change a bit of the result.

    Args:
        components: m values of one response [m], of R responses [R, m], or [R] by component; each in [0, 1], m ≥ 2.

    Returns:
        D_pair in [0, 1]: a scalar for one response, else [R]. For m = 3 it is at most 2/3.

    Raises:
        InputError: fewer than two components, another shape, lists of different lengths, or a value that is not a
            number in [0, 1] (such as NaN, booleans or text); the first such value is named.
    """
    try:
        values = _to_matrix(components)
        if values.ndim not in (1, 2):
            raise InputError(f"components have shape {values.shape}: [m] or [R, m] is needed")
        return np.minimum(fusion.disagreement(values), 1.0)
    except PlanError as error:
        raise InputError(str(error)) from None


def _to_matrix(components: ArrayLike | Mapping[str, ArrayLike]) -> Floats:
    if not isinstance(components, Mapping):
        return as_unit_interval("components", components)
    columns = {name: as_unit_interval(name, values) for name, values in components.items()}
    if len({column.shape for column in columns.values()}) > 1:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise InputError(f"components have different shapes ({shapes}); give each one value a response")
    return np.stack(list(columns.values()), axis=-1) if columns else np.empty(0)


def split(samples: Samples, disagreement: Floats, percentile: float, resamples: int, seed: int) -> models.Split:
    """Compare the samples above a `percentile` of D_pair, `disagreement` [R], by count, with the rest.

    The intervals are 95 % percentile bootstrap intervals of the difference over tasks: a task is drawn with all its
    samples, because responses to one task are not independent; with one task only, samples are drawn. Each sample stays
    on its side.
    """
    size = len(disagreement)
    exact_count = round((100.0 - percentile) * size / 100.0, 9)  # 10 % of 15 is 1.5, and half up is 2
    high_count = min(size - 1, max(1, math.floor(exact_count + 0.5)))
    order = np.argsort(-disagreement, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high_count]] = True
    cut = disagreement[order[high_count - 1]]
    columns = np.column_stack([samples.rewards, samples.values])
    differences = _resampled_differences(columns, chosen, samples.groups, resamples, seed)
    no_ends: list[float | None] = [None] * columns.shape[1]
    ends = np.quantile(differences, QUANTILES, axis=0).tolist() if len(differences) else [no_ends, no_ends]
    names, means = ("reward", *samples.components), (columns[side].mean(axis=0) for side in (chosen, ~chosen))
    return models.Split(
        high=high_count,
        low=size - high_count,
        cut=float(cut),
        tied_high=int((chosen & (disagreement == cut)).sum()),
        tied_low=int((~chosen & (disagreement == cut)).sum()),
        resamples=resamples,
        empty=resamples - len(differences),
        seed=seed,
        rows=tuple(
            models.GroupDifference(
                name=name,
                high=float(high),
                low=float(low),
                difference=float(high - low),
                difference_low=difference_low,
                difference_high=difference_high,
            )
            for name, high, low, difference_low, difference_high in zip(names, *means, *ends, strict=True)
        ),
    )


def _resampled_differences(columns: Floats, chosen: Bools, groups: Sequence[str], resamples: int, seed: int) -> Floats:
    """Return the differences of means of columns [R, K], High-div minus Low-div, without resamples of one side only.

    A sample is drawn with its group, or by itself if there is only one group.
    """
    tasks, clusters = np.unique(groups, return_inverse=True)
    if len(tasks) == 1:
        clusters = np.arange(len(groups))
    sums = [
        np.bincount(clusters, column * side)
        for side in (chosen, ~chosen)
        for column in (*columns.T, np.ones(len(columns)))
    ]
    high, low = np.hsplit(resample_sums(np.column_stack(sums), resamples, seed), 2)
    both = (high[:, -1] > 0.0) & (low[:, -1] > 0.0)
    return np.asarray(high[both, :-1] / high[both, -1:] - low[both, :-1] / low[both, -1:])
