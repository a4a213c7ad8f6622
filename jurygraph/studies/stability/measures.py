"""The measures of DecompR's stability study (section 3 and A.3) on plain arrays.

    σ²_Sem(s) = Var_{t,b}[score(s,t,b)]      σ²_Rep(s) = Var_r[score(s,r)]      CV(s) = √σ²_Sem(s) / mean(s)

A unit s is one response with its number of stakeholders and its quality band; t is a family of variants, b a version in
it, and r an exact repeat of one input. Variances are those of the population (divisor V) unless `ddof` is 1.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.inference.clusters import Estimate, jackknife_interval, ratio_interval

Clustered = Mapping[str, Sequence[float]]
"""The values of units by cluster: units of one task depend on each other, so intervals are over tasks."""

_ROUNDING = 1e-12


def variance(scores: Sequence[float] | Floats, ddof: int = 0) -> float:
    """Return the variance of scores, 0 where they differ by rounding alone (DecompR Eqs. 13 and 14).

    Equal scores may differ in their last bits after a change of scale, and a deterministic judge has no variance.
    """
    values = np.asarray(scores, dtype=np.float64)
    centered = values - values.mean()
    found = float(np.sum(centered**2) / (len(values) - ddof))
    return 0.0 if found <= _ROUNDING * _ROUNDING * max(1.0, float(np.mean(values**2))) else found


def mean_of_units(values: Clustered) -> Estimate | None:
    """Return the mean over all units with its 95 % interval over clusters; None without a unit."""
    sums = [math.fsum(of_cluster) for of_cluster in values.values()]
    return ratio_interval(sums, [len(of_cluster) for of_cluster in values.values()])


def ratio_of_means(above: Clustered, below: Clustered) -> Estimate | None:
    """Return the ratio of two means over units, as for Growth and S/R, with its 95 % interval over clusters.

    It is infinite if only the mean below is 0, and None if that of no unit is known, or if both are 0. The interval is
    a jackknife on the logarithm; it has no ends where a cluster holds all units of one side, or where the ratio without
    some cluster is 0 or infinite.
    """
    clusters = sorted(above.keys() | below.keys())
    value = _ratio(above, below, None)
    if value is None:
        return None
    without = [_ratio(above, below, cluster) for cluster in clusters]
    positive = [one for one in (value, *without) if one is not None and 0.0 < one < math.inf]
    if len(positive) <= len(without):
        return Estimate(value, None, None, None, len(clusters))
    found = jackknife_interval(math.log(value), np.log(positive[1:]))
    if found.low is None or found.high is None:
        return Estimate(value, None, None, found.error, len(clusters))
    return Estimate(value, math.exp(found.low), math.exp(found.high), found.error, len(clusters))


def _ratio(above: Clustered, below: Clustered, left_out: str | None) -> float | None:
    numerator = [one for cluster, values in above.items() if cluster != left_out for one in values]
    denominator = [one for cluster, values in below.items() if cluster != left_out for one in values]
    if not numerator or not denominator:
        return None
    top = math.fsum(numerator) / len(numerator)
    bottom = math.fsum(denominator) / len(denominator)
    if bottom == 0.0:
        return None if top == 0.0 else math.inf
    return top / bottom


def weight_shift(weights: Floats, mean_weights: Floats, utilities: Floats) -> Floats:
    """Return ΔR_w = Σ_i (w_i - w̄_i) û_i of one variant [n] or of several [V, n] (DecompR Eq. 1)."""
    return np.asarray(((weights - mean_weights) * utilities).sum(axis=-1))


class WeightDrift(NamedTuple):
    """How the weights of V variants of one unit with n stakeholders move its score (DecompR section 3.3, Table 3).

    `shift` [V] is ΔR_w, `spread` the standard deviation of the final score, `variance` that of ΔR_w and of the score,
    and the two coefficients of variation are means over stakeholders; None where a mean is 0.
    """

    mean_weights: Floats
    shift: Floats
    spread: float
    shift_variance: float
    score_variance: float
    weight_cv: float | None
    utility_cv: float | None


def weight_drift(weights: Floats, utilities: Floats, scores: Floats | None = None) -> WeightDrift:
    """Return the drift of weights [V, n] around their mean over variants, with utilities [V, n] and final scores [V].

    The scores are Σ_i w_i û_i if they are not given.
    """
    mean_weights = weights.mean(axis=0)
    shift = weight_shift(weights, mean_weights, utilities)
    final = (weights * utilities).sum(axis=1) if scores is None else scores
    score_variance = variance(final)
    return WeightDrift(
        mean_weights,
        shift,
        math.sqrt(score_variance),
        variance(shift),
        score_variance,
        _mean_cv(weights),
        _mean_cv(utilities),
    )


def _mean_cv(values: Floats) -> float | None:
    means = values.mean(axis=0)
    if not np.all(np.abs(means) > _ROUNDING):
        return None
    return float(np.mean(values.std(axis=0) / np.abs(means)))


class DriftSummary(NamedTuple):
    """The columns of DecompR's Table 3 for units with as many stakeholders.

    `mean_shift` and `p95_shift` are of |ΔR_w| over all variants, and `shift_range` is max - min of ΔR_w within a unit,
    averaged over units; all three as multiples of `spread`, σ: the units' mean standard deviation of the final score.
    `explained` is Σ Var[ΔR_w] / Σ Var[score] over units. None where σ is 0.

    That ranges are those within units is our reading: over all variants of Table 3, the shift of -0.688 in Table 9
    alone would be above 61.4 % of the σ that Table 2 allows.
    """

    units: int
    variants: int
    weight_cv: float | None
    utility_cv: float | None
    spread: float
    mean_shift: float | None
    p95_shift: float | None
    shift_range: float | None
    explained: float | None


def summarize_drift(drifts: Sequence[WeightDrift]) -> DriftSummary:
    """Return Table 3's diagnostics of at least one unit."""
    sizes = np.concatenate([np.abs(one.shift) for one in drifts])
    spread = float(np.mean([one.spread for one in drifts]))
    total_variance = math.fsum(one.score_variance for one in drifts)
    mean_range = float(np.mean([np.ptp(one.shift) for one in drifts]))

    def in_spreads(value: float) -> float | None:
        return value / spread if spread else None

    return DriftSummary(
        len(drifts),
        len(sizes),
        _mean_known([one.weight_cv for one in drifts]),
        _mean_known([one.utility_cv for one in drifts]),
        spread,
        in_spreads(float(sizes.mean())),
        in_spreads(float(np.quantile(sizes, 0.95))),
        in_spreads(mean_range),
        math.fsum(one.shift_variance for one in drifts) / total_variance if total_variance else None,
    )


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return math.fsum(known) / len(known) if known else None
