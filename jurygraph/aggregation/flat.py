"""Flat aggregation: every criterion counts by its weight, independent of the others (GEAR, Eq. 2)."""

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import (
    Floats,
    as_booleans,
    as_finite,
    as_floats,
    as_unit_interval,
    check_shape,
    check_vector_or_matrix,
    total,
)
from jurygraph.errors import GraphError

__all__ = ["reward"]


def reward(p: ArrayLike, weights: ArrayLike, live: ArrayLike | None = None) -> np.float64 | Floats:
    """Return R = Σ w p / Σ_{w>0} w: Eq. 14 of GEAR with q = p. See `gear.reward`.

    Args:
        p: local event scores in [0, 1], [C] or [R, C].
        weights: signed weights [C]; a penalty's is negative.
        live: booleans [C] or [R, C]; a criterion that is not live is left out of numerator and denominator, and its
            score is not read.

    Returns:
        A scalar for [C], [R] for [R, C]; at most 1, unbounded below.

    Raises:
        GraphError: a score outside [0, 1] or NaN, a weight that is not finite, shapes that do not fit, or no (live)
            criterion with a positive weight.
    """
    return normalised_utility("p", p, weights, live)


@np.errstate(over="ignore")
def normalised_utility(
    name: str, scores: ArrayLike, weights: ArrayLike, live: ArrayLike | None = None
) -> np.float64 | Floats:
    """Return Σ w s / Σ_{w>0} w over the live criteria; `name` is the caller's name for the scores in error messages."""
    w = as_finite("weights", weights, GraphError)
    check_shape("weights", w, (w.size,), error=GraphError)
    s = as_floats(name, scores, GraphError)
    check_vector_or_matrix(name, s, w.size, GraphError)
    gains = np.maximum(w, 0.0)
    if live is not None:
        mask = as_booleans("live", live, GraphError)
        check_shape("live", mask, w.shape, s.shape, error=GraphError)
        # Scores of criteria that are not live are not read, so NaN is allowed there.
        s, gains = np.where(mask, s, 0.0), np.where(mask, gains, 0.0)
    earned, denominator = as_unit_interval(name, s, GraphError) * w, total(gains)
    if np.equal(denominator, 0.0).any():
        where = f"is live for response {int(np.argmin(denominator))}" if np.ndim(denominator) else "is there"
        raise GraphError(f"no criterion with a positive weight {where}: the reward has no denominator")
    if np.isinf(denominator).any():
        raise GraphError("the positive weights sum to infinity")
    reward: np.float64 | Floats = total(earned) / denominator
    if not np.isfinite(reward).all():
        raise GraphError("the weights differ too much in size: the reward is not a finite number")
    return reward
