"""The measures of DecompR's stability study (section 3 and A.3), and its theory (section 4), on plain arrays.

    σ²_Sem(s) = Var_{t,b}[score(s,t,b)]      σ²_Rep(s) = Var_r[score(s,r)]      CV(s) = √σ²_Sem(s) / mean(s)

A unit s is one response with its number of stakeholders and its quality band; t is a family of variants, b a version in
it, and r an exact repeat of one input. Variances are those of the population (divisor V) unless `ddof` is 1.
Theorem 1 is about R̂ = Σ_i (w*_i + η_i)(u*_i + δ_i) + ε, where Σ_i η_i = 0.
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


class DriftSummary(NamedTuple):
    """The columns of DecompR's Table 3 for units with as many stakeholders.

    `mean_shift` and `p95_shift` are of |ΔR_w| over all variants, and `shift_range` is max - min of ΔR_w within a unit,
    averaged over units; all three as multiples of `spread`, σ: the units' mean standard deviation of the final score.
    `explained` is Σ Var[ΔR_w] / Σ Var[score] over units, with its interval over clusters. None where σ, or the mean of
    a coefficient of variation, is 0.
    Ranges within units are our reading: the shift of -0.688 in Table 9 alone would exceed Table 3's range, at the σ
    that Table 2 allows, if ranges were over all units.
    """

    units: int
    variants: int
    weight_cv: float | None
    utility_cv: float | None
    spread: float
    mean_shift: float | None
    p95_shift: float | None
    shift_range: float | None
    explained: Estimate | None


def summarize_drift(units: Sequence[tuple[Floats, Floats, Floats]], clusters: Sequence[str]) -> DriftSummary:
    """Return Table 3's diagnostics of at least one unit: its variants' weights and utilities [V, n], and scores [V].

    `clusters` has the cluster of each unit.
    """
    shifts = [weight_shift(weights, weights.mean(axis=0), utilities) for weights, utilities, _ in units]
    variances = [variance(scores) for _, _, scores in units]
    spread = float(np.mean(np.sqrt(variances)))
    sizes = np.abs(np.concatenate(shifts))
    by_cluster = np.unique(clusters, return_inverse=True)[1]
    explained = ratio_interval(
        np.bincount(by_cluster, [variance(one) for one in shifts]), np.bincount(by_cluster, variances)
    )
    return DriftSummary(
        len(units),
        len(sizes),
        _mean_cv([weights for weights, _, _ in units]),
        _mean_cv([utilities for _, utilities, _ in units]),
        spread,
        float(sizes.mean()) / spread if spread else None,
        float(np.quantile(sizes, 0.95)) / spread if spread else None,
        float(np.mean([np.ptp(one) for one in shifts])) / spread if spread else None,
        explained,
    )


def _mean_cv(units: Sequence[Floats]) -> float | None:
    """Return the mean over units and stakeholders of the coefficient of variation over variants."""
    means = np.concatenate([values.mean(axis=0) for values in units])
    deviations = np.concatenate([values.std(axis=0) for values in units])
    return float(np.mean(deviations / np.abs(means))) if np.all(np.abs(means) > _ROUNDING) else None


class VarianceTerms(NamedTuple):
    """The four terms of Theorem 1; their sum is Var[R̂] if the three kinds of noise are independent."""

    estimation: float
    aggregation: float
    shared: float
    cross: float

    @property
    def total(self) -> float:
        return math.fsum(self)


def variance_terms(
    weights: Floats, utilities: Floats, weight_covariance: Floats, utility_variance: Floats, score_variance: float
) -> VarianceTerms:
    """Return Theorem 1's terms for n stakeholders: w* [n], u* [n], Cov(η) [n, n], Var(δ) [n] and Var(ε).

    Term II is u*ᵀ Σ_η u* (Eq. 21), the variance by weights that drift.
    """
    return VarianceTerms(
        float(np.sum(weights**2 * utility_variance)),
        float(utilities @ weight_covariance @ utilities),
        score_variance,
        float(np.sum(np.diag(weight_covariance) * utility_variance)),
    )


def estimate_terms(weights: Floats, utilities: Floats, scores: Floats) -> VarianceTerms:
    """Return Theorem 1's terms as V ≥ 2 variants show them: weights and utilities [V, n], and scores [V].

    Their moments stand in for w*, u*, Cov(η) and Var(δ); what the score has besides Σ w û is ε. Errors of utilities
    that go together, which the theorem excludes, are not in the sum.
    """
    rest = scores - np.sum(weights * utilities, axis=1)
    covariance = np.atleast_2d(np.cov(weights, rowvar=False))
    variances = np.var(utilities, axis=0, ddof=1)
    return variance_terms(
        weights.mean(axis=0), utilities.mean(axis=0), covariance, variances, float(np.var(rest, ddof=1))
    )


def exchangeable_aggregation(utilities: Floats, drift_variance: float) -> float:
    """Return Term II = n² / (n - 1) · σ²_η · Var_i[u*] for exchangeable zero-sum drift of n ≥ 2 weights (Prop. 1)."""
    n = len(utilities)
    return n * n / (n - 1) * drift_variance * float(np.var(utilities))


def sign_correctness(snr: float, group: int) -> float:
    """Return P(correct sign) = Φ(√SNR / √(1 - 1/G)) of a response one standard deviation off the mean (Prop. 2)."""
    from scipy import special

    return float(special.ndtr(math.sqrt(snr / (1.0 - 1.0 / group))))


def needed_snr(probability: float, group: float = math.inf) -> float:
    """Return the SNR at which the sign is correct with a probability above .5: the inverse of Prop. 2.

    With an infinite group, the mean that a reward is compared with has no noise, as a fixed threshold has none.
    """
    from scipy import special

    return float(special.ndtri(probability)) ** 2 * (1.0 - 1.0 / group)


def observed_snr(rewards: Floats, noise: float) -> float:
    """Return max(0, Var_j[R̂] - σ²_ξ (1 - 1/G)) / σ²_ξ of G ≥ 2 observed rewards: Eq. 5 without their own noise.

    It is infinite without noise, unless the rewards are equal.
    """
    signal = max(0.0, float(np.var(rewards)) - noise * (1.0 - 1.0 / len(rewards)))
    if noise == 0.0:
        return math.inf if signal else 0.0
    return signal / noise
