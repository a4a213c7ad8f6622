"""From samples to the report: who disagrees, how much, and what becomes of it over the steps."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import InputError
from jurygraph.studies.disagreement.deviation import pairwise
from jurygraph.studies.disagreement.findings import Correlation, DisagreementReport, StepMeans, Trend
from jurygraph.studies.disagreement.samples import Samples
from jurygraph.studies.disagreement.splitting import split

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Differences that should tie differ in their last bits: 0.3 - 0.2 is not 0.2 - 0.1. Means of many differ by more.
_DECIMALS = 12
_OF_MEANS = 9


def report(samples: Samples, percentile: float = 80.0, resamples: int = 1000, seed: int = 0) -> DisagreementReport:
    """Measure the disagreement of one run's components (MACRM, section 4.5).

    - τ is the `percentile` of all D_pair of this run (NumPy's method `linear`), and a conflict is D_pair > τ. Where
      many samples tie, fewer than 1 - percentile / 100 of them lie above it.
    - High-div are the 1 - percentile / 100 of the samples with the greatest D_pair, by count: rounded half up, at least
      one and not all. Of equal ones those with the smaller id come first.
    - Values and D_pair are compared with 12 decimals, and the means of steps, for τ-b, with 9.

    Args:
        samples: as `read_samples` gives them.
        percentile: above 0 and below 100; the paper's is 80.
        resamples: draws of the bootstrap, at least 1.
        seed: seed of the bootstrap, at least 0.

    Raises:
        InputError: `percentile` is out of range.
    """
    if not 0.0 < percentile < 100.0:
        raise InputError(f"there is no {percentile}th percentile to compare with; name one above 0 and below 100")
    exact = np.atleast_1d(pairwise(samples.values))
    apart = np.round(exact, _DECIMALS)
    threshold = round(float(np.percentile(apart, percentile, method="linear")), _DECIMALS)
    conflict = apart > threshold
    steps = tuple(_steps(samples, exact, conflict))
    return DisagreementReport(
        run=samples.run,
        components=samples.components,
        tasks=len(set(samples.groups)),
        samples=len(samples.ids),
        percentile=percentile,
        threshold=threshold,
        disagreement=float(np.mean(exact)),
        conflicts=int(conflict.sum()),
        conflict_rate=float(np.mean(conflict)),
        split=split(samples, apart, percentile, resamples, seed),
        correlations=tuple(_correlations(samples)),
        steps=steps,
        trends=tuple(_trends(steps)),
        left_out=dict(samples.left_out),
    )


def _correlations(samples: Samples) -> Iterator[Correlation]:
    columns = dict(zip(samples.components, np.round(samples.values, _DECIMALS).T, strict=True))
    constant = [name for name, column in columns.items() if np.ptp(column) == 0.0]
    for first, second in combinations(columns, 2):
        still = [name for name in (first, second) if name in constant]
        if still:
            why = f"{' and '.join(still)} {'is' if len(still) == 1 else 'are'} constant"
            yield Correlation(first=first, second=second, pearson=None, spearman=None, why=why)
        else:
            yield _correlation(first, second, columns[first], columns[second])


def _correlation(first: str, second: str, one: Floats, other: Floats) -> Correlation:
    from scipy import stats

    pearson, spearman = stats.pearsonr(one, other).statistic, stats.spearmanr(one, other).statistic
    figures = {"pearson": round(float(pearson), _DECIMALS), "spearman": round(float(spearman), _DECIMALS)}
    return Correlation(first=first, second=second, **figures)


def _steps(samples: Samples, apart: Floats, conflict: Bools) -> Iterator[StepMeans]:
    if samples.steps is None:
        return
    steps, places, counts = np.unique(samples.steps, return_inverse=True, return_counts=True)
    means = [np.bincount(places, column) / counts for column in (samples.rewards, apart, conflict)]
    for step, count, reward, mean, rate in zip(steps, counts, *means, strict=True):
        yield StepMeans(
            step=float(step),
            samples=int(count),
            reward=float(reward),
            disagreement=float(mean),
            conflict_rate=float(rate),
        )


def _trends(steps: tuple[StepMeans, ...]) -> Iterator[Trend]:
    if len(steps) < 2:
        return
    numbers = np.array([one.step for one in steps])
    for name in ("reward", "disagreement", "conflict_rate"):
        yield _trend(name, numbers, np.array([getattr(one, name) for one in steps]))


def _trend(name: str, steps: Floats, series: Floats) -> Trend:
    from scipy import stats

    away = steps - steps.mean()
    ranked = series.round(_OF_MEANS)
    rising = stats.kendalltau(steps, ranked, variant="b") if np.ptp(ranked) else None
    return Trend(
        name=name,
        first=float(series[0]),
        last=float(series[-1]),
        slope=float(away @ series / (away @ away)),
        kendall=None if rising is None else round(float(rising.statistic), _DECIMALS),
        p=None if rising is None else float(rising.pvalue),
        fluctuation=float(np.mean(np.abs(np.diff(series)))),
    )
