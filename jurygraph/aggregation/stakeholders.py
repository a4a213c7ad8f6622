"""DecompR: whose needs count how much, fixed before any response is seen.

    d_i = Σ_hard α + γ Σ_soft α + β s_i          w_i = exp(d_i/τ) / Σ_j exp(d_j/τ)          R = Σ_i w_i û_i

Beside the reward stand four figures of the group: mean, minimum, Gini and Jain, and what each one gives up.
"""

from collections.abc import Sequence
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray, finite, nonnegative, one_or_many, shaped
from jurygraph.aggregation._ordered import total
from jurygraph.errors import PlanError

__all__ = ["difficulty", "gini", "group_utility", "jain", "minimum", "reward", "sacrifice", "weights"]

SUM_TOLERANCE = 1e-9

Restrictiveness = Sequence[ArrayLike] | FloatArray


def difficulty(
    hard: Restrictiveness, soft: Restrictiveness, conflict: ArrayLike, gamma: float = 0.5, beta: float = 0.5
) -> FloatArray:
    """d_i = Σ_hard α + γ Σ_soft α + β s_i: Eq. 9 of DecompR.

    Args:
        hard: restrictiveness α >= 0 of each stakeholder's hard constraints: one list for each of the n stakeholders
            (lengths may differ, none is 0.0), or the n sums.
        soft: the same for the soft constraints.
        conflict: summed pairwise tensions s_i >= 0 of each stakeholder, [n].
        gamma: discount of soft constraints, strictly between 0 and 1.
        beta: discount of conflicts, strictly between 0 and 1.

    Returns:
        d [n], at least 0.

    Raises:
        PlanError: a value that is negative or not finite, a discount outside (0, 1), or counts of stakeholders that
            differ.
    """
    for name, discount in (("gamma", gamma), ("beta", beta)):
        if not 0.0 < discount < 1.0:
            raise PlanError(f"{name} is {discount}: a number strictly between 0 and 1 is needed")
    tension = nonnegative("conflict", conflict)
    shaped("conflict", tension, (tension.size,))
    restricted, preferred = _summed("hard", hard), _summed("soft", soft)
    shaped("hard", restricted, tension.shape)
    shaped("soft", preferred, tension.shape)
    return restricted + gamma * preferred + beta * tension


def _summed(name: str, given: Restrictiveness) -> FloatArray:
    """Σ α for each stakeholder, from lists of α or from sums."""
    rows = list(given)
    if not rows or all(np.ndim(row) == 0 for row in rows):
        return nonnegative(name, rows)
    for i, row in enumerate(rows):
        if np.ndim(row) != 1:
            raise PlanError(f"{name}[{i}] is no list of α, but other stakeholders have one: give lists or sums for all")
    return np.array([total(nonnegative(f"{name}[{i}]", row)) for i, row in enumerate(rows)])


def weights(d: ArrayLike, temperature: float = 5.0) -> FloatArray:
    """w_i = exp(d_i/τ) / Σ_j exp(d_j/τ): Eq. 10 of DecompR.

    Computed once, when a plan is made, one `math.exp` for each stakeholder: NumPy's differs by CPU.

    Args:
        d: difficulties [n], finite.
        temperature: τ > 0; infinity is uniform, near 0 only the hardest counts.

    Returns:
        w [n], at least 0, sum 1.

    Raises:
        PlanError: no stakeholder, a difficulty that is not finite, or a τ that is not above 0.
    """
    hardness = finite("d", d)
    if hardness.ndim != 1 or not hardness.size:
        raise PlanError(f"d has shape {hardness.shape}: one number for each of at least one stakeholder is needed")
    if not temperature > 0.0:
        raise PlanError(f"temperature is {temperature}: a number above 0 is needed")
    scores = hardness.tolist()
    hardest = max(scores)
    powers = np.array([exp((score - hardest) / temperature) for score in scores])
    return powers / total(powers)


def reward(w: ArrayLike, u: ArrayLike) -> np.float64 | FloatArray:
    """R = Σ w û: Eq. 2 of DecompR.

    Args:
        w: weights [n], at least 0, sum 1 within 1e-9.
        u: utilities û of the stakeholders on any one scale, [n] or [R, n].

    Returns:
        A scalar for [n], [R] for [R, n], on û's scale.

    Raises:
        PlanError: weights that are negative or do not sum to 1, values that are not finite, or shapes that do not fit.
    """
    shares = nonnegative("w", w)
    shaped("w", shares, (shares.size,))
    summed = total(shares)
    if not np.abs(summed - 1.0) <= SUM_TOLERANCE:
        raise PlanError(f"w sums to {summed}: weights of stakeholders sum to 1")
    utilities = finite("u", u)
    one_or_many("u", utilities, shares.size)
    return total(utilities * shares)


def sacrifice(solo: ArrayLike, joint: ArrayLike) -> FloatArray:
    """(U_solo - U_joint) / U_solo: what each gives up by sharing, the relative form of Eq. 8 that Table 4 shows.

    Args:
        solo: utilities that stakeholders would have alone, [n], above 0.
        joint: utilities that they have together, [n], on the same scale.

    Returns:
        The share that is lost, [n]; negative where somebody gains.

    Raises:
        PlanError: values that are not finite, a solo utility that is not above 0, or shapes that do not fit.
    """
    alone, together = finite("solo", solo), finite("joint", joint)
    shaped("joint", together, alone.shape)
    if not (alone > 0.0).all():
        raise PlanError("solo holds a utility that is not above 0: what nobody has cannot be lost")
    return (alone - together) / alone


def group_utility(u: ArrayLike) -> np.float64 | FloatArray:
    """Mean utility of the group; u [n] or [R, n], finite, on any scale -> scalar or [R]."""
    utilities = _members(finite("u", u))
    average_member: np.float64 | FloatArray = total(utilities) / utilities.shape[-1]
    return average_member


def minimum(u: ArrayLike) -> np.float64 | FloatArray:
    """Utility of the worst-off member; u [n] or [R, n], finite, on any scale -> scalar or [R]."""
    # + 0.0: which of -0.0 and 0.0 is the smaller depends on the CPU
    worst: np.float64 | FloatArray = np.min(_members(finite("u", u)), axis=-1) + 0.0
    return worst


def gini(u: ArrayLike) -> np.float64 | FloatArray:
    """Gini coefficient Σ_ij |u_i - u_j| / (2 n Σ u), in [0, 1): 0 where all members fare alike, all at 0 included.

    u [n] or [R, n], finite and at least 0 -> scalar or [R]. It depends on where the scale's zero lies.
    """
    utilities = _members(nonnegative("u", u))
    gaps = total(total(np.abs(utilities[..., :, None] - utilities[..., None, :])))
    return _share(gaps, 2.0 * utilities.shape[-1] * total(utilities), empty=0.0)


def jain(u: ArrayLike) -> np.float64 | FloatArray:
    """Jain's fairness index (Σ u)² / (n Σ u²), in [1/n, 1]: 1 where all members fare alike, all at 0 included.

    u [n] or [R, n], finite and at least 0 -> scalar or [R].
    """
    utilities = _members(nonnegative("u", u))
    summed = total(utilities)
    return _share(summed * summed, utilities.shape[-1] * total(utilities * utilities), empty=1.0)


def _members(u: FloatArray) -> FloatArray:
    if u.ndim not in (1, 2) or not u.shape[-1]:
        raise PlanError(f"u has shape {u.shape}: [n] or [R, n] with at least one member is needed")
    return u


def _share(part: np.float64 | FloatArray, whole: np.float64 | FloatArray, empty: float) -> np.float64 | FloatArray:
    """part / whole, and `empty` where the whole is 0."""
    none = np.equal(whole, 0.0)
    shares: FloatArray = np.where(none, empty, part / np.where(none, 1.0, whole))
    return shares[()]
