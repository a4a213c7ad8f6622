"""Flat aggregation: every criterion counts by its weight, independent of the others (GEAR, Eq. 2)."""

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray
from jurygraph.aggregation._utility import normalised_utility

__all__ = ["reward"]


def reward(p: ArrayLike, weights: ArrayLike, live: ArrayLike | None = None) -> np.float64 | FloatArray:
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
