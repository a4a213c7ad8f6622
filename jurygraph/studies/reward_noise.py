"""The noise of a reward, and whether its advantage has the right sign: DecompR's Theorem 1, Propositions 1 and 2."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats


class RewardVarianceTerms(NamedTuple):
    """The four terms of Theorem 1; their sum is Var[R̂] if the three kinds of noise are independent."""

    estimation: float
    aggregation: float
    shared: float
    cross: float

    @property
    def total(self) -> float:
        return math.fsum(self)


def variance_terms(
    weights: Floats,
    utilities: Floats,
    weight_covariance: Floats,
    utility_variance: Floats,
    score_variance: float,
) -> RewardVarianceTerms:
    """Return Theorem 1's terms for n stakeholders: w* [n], u* [n], Cov(η) [n, n], Var(δ) [n] and Var(ε).

    Term II is u*ᵀ Σ_η u* (Eq. 21), the variance by weights that drift.
    """
    return RewardVarianceTerms(
        float(np.sum(weights**2 * utility_variance)),
        float(utilities @ weight_covariance @ utilities),
        score_variance,
        float(np.sum(np.diag(weight_covariance) * utility_variance)),
    )


def estimate_variance_terms(
    weights: Floats, utilities: Floats, scores: Floats
) -> RewardVarianceTerms:
    """Return Theorem 1's terms as V ≥ 2 variants show them: weights and utilities [V, n], and scores [V].

    Their moments stand in for w*, u*, Cov(η) and Var(δ); what the score has besides Σ w û is ε. Errors of utilities
    that go together, which the theorem excludes, are not in the sum.
    """
    rest = scores - np.sum(weights * utilities, axis=1)
    return variance_terms(
        weights.mean(axis=0),
        utilities.mean(axis=0),
        np.atleast_2d(np.cov(weights, rowvar=False)),  # NumPy gives a number for one stakeholder
        np.var(utilities, axis=0, ddof=1),
        float(np.var(rest, ddof=1)),
    )


def exchangeable_aggregation(utilities: Floats, drift_variance: float) -> float:
    """Return Term II = n² / (n - 1) · σ²_η · Var_i[u*] for exchangeable zero-sum drift of n ≥ 2 weights (Prop. 1)."""
    n = len(utilities)
    return n * n / (n - 1) * drift_variance * float(np.var(utilities))


def sign_correctness(snr: float, group: int) -> float:
    """Return P(correct sign) = Φ(√SNR / √(1 - 1/G)) of a response one standard deviation off the mean (Prop. 2)."""
    return NormalDist().cdf(math.sqrt(snr / (1.0 - 1.0 / group)))


def mean_sign_correctness(snr: float, group: int) -> float:
    """Return the mean P(correct sign) of all responses, if their true gaps are normal: Eq. 31 over the gaps.

    It is 1/2 + arctan(√(SNR / (1 - 1/G))) / π, and lower than for one standard deviation: most responses are nearer.
    """
    return 0.5 + math.atan(math.sqrt(snr / (1.0 - 1.0 / group))) / math.pi


def needed_snr(probability: float, group: float = math.inf) -> float:
    """Return the SNR at which the sign is correct with a probability above .5: the inverse of Prop. 2.

    With an infinite group, the mean that a reward is compared with has no noise, as a fixed threshold has none.
    """
    return NormalDist().inv_cdf(probability) ** 2 * (1.0 - 1.0 / group)


def observed_snr(rewards: Floats, noise: float) -> float:
    """Return max(0, Var_j[R̂] - σ²_ξ (1 - 1/G)) / σ²_ξ of G ≥ 2 observed rewards: Eq. 5 without their own noise.

    It is infinite without noise, unless the rewards are equal.
    """
    signal = max(0.0, float(np.var(rewards)) - noise * (1.0 - 1.0 / len(rewards)))
    if noise == 0.0:
        return math.inf if signal else 0.0
    return signal / noise
