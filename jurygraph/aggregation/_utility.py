"""Expected signed utility divided by the largest possible one: Eq. 14 of GEAR, for any event scores."""

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray, booleans, finite, numbers, one_or_many, shaped, unit
from jurygraph.aggregation._ordered import total
from jurygraph.errors import GraphError


def normalised_utility(
    name: str, scores: ArrayLike, weights: ArrayLike, live: ArrayLike | None = None
) -> np.float64 | FloatArray:
    """Return Σ w s / Σ_{w>0} w over the live criteria; `name` is the caller's name for the scores in error messages."""
    w = finite("weights", weights, GraphError)
    shaped("weights", w, (w.size,), error=GraphError)
    s = numbers(name, scores, GraphError)
    one_or_many(name, s, w.size, GraphError)
    gains = np.maximum(w, 0.0)
    if live is not None:
        mask = booleans("live", live, GraphError)
        shaped("live", mask, w.shape, s.shape, error=GraphError)
        # Scores of criteria that are not live are not read, so NaN is allowed there.
        s, gains = np.where(mask, s, 0.0), np.where(mask, gains, 0.0)
    return _quotient(unit(name, s, GraphError) * w, gains)


def _quotient(earned: FloatArray, gains: FloatArray) -> np.float64 | FloatArray:
    with np.errstate(over="ignore"):
        reward: np.float64 | FloatArray = total(earned) / _check_denominator(total(gains))
    if not np.isfinite(reward).all():
        raise GraphError("the weights are too far apart in size: the reward is not a finite number")
    return reward


def _check_denominator(denominator: np.float64 | FloatArray) -> np.float64 | FloatArray:
    """Return Σ_{w>0} w; refuse a sum of 0 or infinity."""
    if np.equal(denominator, 0.0).any():
        where = f"is live for response {int(np.argmin(denominator))}" if np.ndim(denominator) else "is there"
        raise GraphError(f"no criterion with a positive weight {where}: the reward has no denominator")
    if np.isinf(denominator).any():
        raise GraphError("the positive weights sum to infinity")
    return denominator
