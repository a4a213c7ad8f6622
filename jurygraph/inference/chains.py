"""Have several chains of draws converged, and how many independent draws are they worth?

R-hat and effective sample sizes by ranks (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021), as ArviZ computes them.
Draws are [chains, draws], with at least 8 draws a chain. Chains can be trusted if no figure's R-hat is above 1.01 and
no effective sample size is below 400.
"""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jurygraph.arrays import Floats

MAX_R_HAT = 1.01
"""The largest R-hat of chains that agree."""
MIN_ESS = 400
"""The least number of independent draws for stable quantiles and diagnostics."""
_TAILS = (0.05, 0.95)
Value = TypeVar("Value", np.float64, np.bool_)


def r_hat(draws: Floats) -> float | None:
    """Return the rank-normalised split R-hat: the larger of that of the draws and of their distances to the median.

    It is near 1 if all halves of all chains have the same distribution. None if all draws are equal; infinite if each
    chain repeats a value of its own.
    """
    if np.ptp(draws) == 0.0:
        return None
    halves = _split(draws)
    return max(_variance_ratio(_normal_scores(each)) for each in (halves, np.abs(halves - np.median(halves))))


def bulk_ess(draws: Floats) -> float | None:
    """Return how many independent draws would estimate the centre as well. None if all draws are equal."""
    return None if np.ptp(draws) == 0.0 else _effective_size(_normal_scores(_split(draws)))


def tail_ess(draws: Floats) -> float | None:
    """Return how many independent draws would estimate the 5 % or the 95 % quantile, whichever is worse, as well.

    None if all draws are equal.
    """
    if np.ptp(draws) == 0.0:
        return None
    is_below = (draws <= end for end in np.quantile(draws, _TAILS))
    return min(_effective_size(_split(each).astype(np.float64)) for each in is_below)


def _split(draws: NDArray[Value]) -> NDArray[Value]:
    """Return both halves of each chain as chains; the middle of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Floats) -> Floats:
    """Return the normal quantiles of the ranks of all draws (Blom 1958); equal draws share their mean rank."""
    from scipy import special, stats

    ranks = stats.rankdata(draws).reshape(draws.shape)
    return np.asarray(special.ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _variance_ratio(draws: Floats) -> float:
    length = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = draws.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return math.inf if between > 0.0 else 1.0
    return math.sqrt(between / within + (length - 1) / length)


def _effective_size(draws: Floats) -> float:
    """Return the effective number of draws, by Geyer's initial monotone sequence of autocorrelations."""
    from scipy.fft import next_fast_len

    length = draws.shape[1]
    size = draws.size
    if np.ptp(draws) == 0.0:
        return float(size)
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), next_fast_len(2 * length))
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, next_fast_len(2 * length))[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0] + draws.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    even, odd = correlation[: length - 1 - (length - 1) % 2].reshape(-1, 2).T
    is_negative = even + odd < 0.0
    kept = int(is_negative.argmax()) if is_negative.any() else len(even) - 1
    pairs = np.minimum.accumulate((even + odd)[:kept])
    tau = -1.0 + 2.0 * float(pairs.sum()) + max(0.0, float(even[kept]))
    return size / max(tau, 1.0 / math.log10(size))
