"""Bootstrap intervals of means over cases; whole examples are drawn with all their cases (GEAR, appendix F)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import GraphError

_MAX_DRAWS = 1_000_000
_QUANTILES = (0.025, 0.975)


class Interval(NamedTuple):
    """A 95 % percentile interval, and the number of resamples that had no case and were left out.

    The ends are None if no resample had a case, or with fewer than two examples: then the variation between examples is
    unknown.
    """

    low: float | None
    high: float | None
    empty: int


def intervals(sums: ArrayLike, counts: ArrayLike, resamples: int = 1000, seed: int = 0) -> list[Interval]:
    """Return intervals of K means, each Σ sums / Σ counts over n examples that are drawn with replacement.

    All means use the same resamples. The draws are NumPy's PCG64 from `seed`, so the same arguments give the same
    interval.

    Args:
        sums: sum over the cases of each example, [K, n].
        counts: number of cases of each example, [K, n].
        resamples: number of resamples of n examples, at least 1.
        seed: at least 0.

    Returns:
        One interval for each mean, in their order.

    Raises:
        GraphError: shapes that differ or are not [K, n], or a value that is not finite.
    """
    case_sums, case_counts = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if case_sums.ndim != 2 or case_sums.shape != case_counts.shape:
        raise GraphError(f"sums have shape {case_sums.shape} and counts {case_counts.shape}: [K, n] is needed of both")
    if not (np.isfinite(case_sums).all() and np.isfinite(case_counts).all()):
        raise GraphError("sums or counts hold a value that is not finite")
    examples = case_sums.shape[1]
    if examples < 2:
        return [Interval(None, None, 0)] * len(case_sums)
    totals = np.concatenate(
        [
            np.stack((draws @ case_sums.T, draws @ case_counts.T))
            for draws in resample_counts(examples, resamples, seed)
        ],
        axis=1,
    )
    return [_interval(total, count) for total, count in zip(totals[0].T, totals[1].T, strict=True)]


def _interval(total: Floats, count: Floats) -> Interval:
    has_cases = count > 0.0
    empty = int((~has_cases).sum())
    if not has_cases.any():
        return Interval(None, None, empty)
    low, high = np.quantile(total[has_cases] / count[has_cases], _QUANTILES)
    return Interval(float(low), float(high), empty)


def resample_counts(examples: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how many times each resample drew each example, [b, n] for a batch of resamples."""
    rng = np.random.Generator(np.random.PCG64(seed))
    batch = max(1, _MAX_DRAWS // examples)
    for start in range(0, resamples, batch):
        rows = min(batch, resamples - start)
        drawn = rng.integers(examples, size=(rows, examples))
        drawn += np.arange(rows)[:, None] * examples
        yield np.bincount(drawn.ravel(), minlength=rows * examples).reshape(rows, examples).astype(np.float64)
