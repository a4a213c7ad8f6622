"""DecompR: weights of stakeholders, fixed before any response is seen.

    d_i = Σ_hard α + γ Σ_soft α + β s_i          w_i = exp(d_i/τ) / Σ_j exp(d_j/τ)          R = Σ_i w_i û_i

The module also has statistics of the group (mean, minimum, Gini and Jain), the two that GroupTravelBench defines (group
fairness and preference completeness), and the sacrifice of each stakeholder.
"""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import (
    Floats,
    ScalarOrFloats,
    as_finite,
    as_nonnegative,
    check_shape,
    check_vector_or_matrix,
    total,
)
from jurygraph.errors import PlanError

SUM_TOLERANCE = 1e-9


def difficulty(
    hard: Sequence[ArrayLike],
    soft: Sequence[ArrayLike],
    conflict: ArrayLike,
    gamma: float = 0.5,
    beta: float = 0.5,
) -> Floats:
    """Return d_i = Σ_hard α + γ Σ_soft α + β s_i: Eq. 9 of DecompR.

    Args:
        hard: restrictiveness α >= 0 of each stakeholder's hard constraints: one list for each of the n stakeholders
            (lengths may differ, none is 0.0).
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
    for name, coefficient in (("gamma", gamma), ("beta", beta)):
        if not 0.0 < coefficient < 1.0:
            raise PlanError(f"{name} is {coefficient}: a number strictly between 0 and 1 is needed")
    tension = as_nonnegative("conflict", conflict)
    check_shape("conflict", tension, (tension.size,))
    hard_restrictiveness = _sum_restrictiveness("hard", hard)
    soft_restrictiveness = _sum_restrictiveness("soft", soft)
    check_shape("hard", hard_restrictiveness, tension.shape)
    check_shape("soft", soft_restrictiveness, tension.shape)
    return hard_restrictiveness + gamma * soft_restrictiveness + beta * tension


def _sum_restrictiveness(name: str, restrictiveness: Sequence[ArrayLike]) -> Floats:
    sums = []
    for i, row in enumerate(restrictiveness):
        if np.ndim(row) != 1:
            raise PlanError(f"{name}[{i}] is not a list of α: give each stakeholder one")
        sums.append(total(as_nonnegative(f"{name}[{i}]", row)))
    return np.array(sums)


def weights(d: ArrayLike, temperature: float = 5.0) -> Floats:
    """Return w_i = exp(d_i/τ) / Σ_j exp(d_j/τ): Eq. 10 of DecompR; [n], at least 0, sum 1.

    Computed once, when a plan is made, with one `math.exp` for each stakeholder, because NumPy's exp differs by CPU.

    Args:
        d: difficulties [n], finite, at least one; anything else raises PlanError.
        temperature: τ > 0, else PlanError; infinity gives uniform weights; near 0 only the hardest stakeholder counts.
    """
    difficulties = as_finite("d", d)
    if difficulties.ndim != 1 or not difficulties.size:
        raise PlanError(
            f"d has shape {difficulties.shape}: one number for each of at least one stakeholder is needed"
        )
    if not temperature > 0.0:
        raise PlanError(f"temperature is {temperature}: a number above 0 is needed")
    scores = difficulties.tolist()
    hardest = max(scores)
    exponentials = np.array([exp((score - hardest) / temperature) for score in scores])
    return exponentials / total(exponentials)


def reward(w: ArrayLike, u: ArrayLike) -> ScalarOrFloats:
    """Return R = Σ w û: Eq. 2 of DecompR.

    w [n], at least 0, sum 1 within 1e-9; utilities u [n] or [R, n], finite, on any one scale -> scalar or [R], on that
    scale. Raises PlanError for other weights or values, and for shapes that do not fit.
    """
    shares = as_nonnegative("w", w)
    check_shape("w", shares, (shares.size,))
    weight_sum = total(shares)
    if not np.abs(weight_sum - 1.0) <= SUM_TOLERANCE:
        raise PlanError(f"w sums to {weight_sum}: weights of stakeholders sum to 1")
    utilities = as_finite("u", u)
    check_vector_or_matrix("u", utilities, shares.size)
    return total(utilities * shares)


def sacrifice(solo: ArrayLike, joint: ArrayLike) -> Floats:
    """Return (U_solo - U_joint) / U_solo, the relative loss by sharing: the relative form of Eq. 8, as in Table 4.

    Utilities of the stakeholders alone, solo [n], above 0, and together, joint [n], on the same scale -> the share that
    each loses, [n]; negative for one who gains. Raises PlanError for other values and for shapes that do not fit.
    """
    solo_utility = as_finite("solo", solo)
    joint_utility = as_finite("joint", joint)
    check_shape("joint", joint_utility, solo_utility.shape)
    if not (solo_utility > 0.0).all():
        raise PlanError("solo has a utility that is not above 0, so a relative loss is undefined")
    return (solo_utility - joint_utility) / solo_utility


def group_utility(u: ArrayLike) -> ScalarOrFloats:
    """Return the mean utility of the group; u [n] or [R, n], finite, on any scale -> scalar or [R]."""
    utilities = _check_utilities_shape(as_finite("u", u))
    mean_utility: ScalarOrFloats = total(utilities) / utilities.shape[-1]
    return mean_utility


def minimum(u: ArrayLike) -> ScalarOrFloats:
    """Return the utility of the worst-off member; u [n] or [R, n], finite, on any scale -> scalar or [R]."""
    # + 0.0, because which of -0.0 and 0.0 is the smaller depends on the CPU
    lowest_utility: ScalarOrFloats = (
        np.min(_check_utilities_shape(as_finite("u", u)), axis=-1) + 0.0
    )
    return lowest_utility


def gini(u: ArrayLike) -> ScalarOrFloats:
    """Return the Gini coefficient Σ_ij |u_i - u_j| / (2 n Σ u), in [0, 1): 0 if all utilities are equal (also all 0).

    u [n] or [R, n], finite and at least 0 -> scalar or [R]. It depends on the zero point of the scale.
    """
    utilities = _check_utilities_shape(as_nonnegative("u", u))
    # Every member against every other, [..., n, n].
    gaps = np.abs(utilities[..., :, None] - utilities[..., None, :])
    max_possible_gap_sum = 2.0 * utilities.shape[-1] * total(utilities)
    return _divide_or_default(total(total(gaps)), max_possible_gap_sum, value_if_empty=0.0)


def jain(u: ArrayLike) -> ScalarOrFloats:
    """Return Jain's fairness index (Σ u)² / (n Σ u²), in [1/n, 1]: 1 if all utilities are equal (also all 0).

    u [n] or [R, n], finite and at least 0 -> scalar or [R].
    """
    utilities = _check_utilities_shape(as_nonnegative("u", u))
    utility_sum = total(utilities)
    squares = total(utilities * utilities)
    return _divide_or_default(
        utility_sum * utility_sum, utilities.shape[-1] * squares, value_if_empty=1.0
    )


def group_fairness(u: ArrayLike) -> ScalarOrFloats:
    """Return 100 · min u / max u, the group fairness of GroupTravelBench (arXiv 2605.25200; Table 6 of DecompR).

    u [n] or [R, n], finite, of any sign -> scalar or [R], in [0, 100]. Equal utilities give 100, also if all are 0.
    Points of the benchmark may be negative: with min < 0 < max it is 0, and with no utility above 0 the smaller loss
    is divided by the larger, 100 · max u / min u. It depends on the zero point of the scale.
    """
    utilities = _check_utilities_shape(as_finite("u", u))
    low = np.min(utilities, axis=-1)
    high = np.max(utilities, axis=-1)
    has_positive_utility = high > 0.0
    numerator = np.where(has_positive_utility, np.maximum(low, 0.0), -high)
    denominator = np.where(has_positive_utility, high, -low)
    ratio = _divide_or_default(numerator, denominator, value_if_empty=1.0)
    return 100.0 * ratio + 0.0  # + 0.0 as in `minimum`


def preference_completeness(collected: ArrayLike, stated: ArrayLike) -> ScalarOrFloats:
    """Return 100 · Σ collected / Σ stated, the preference completeness of GroupTravelBench (Table 6 of DecompR).

    It is a recall over the preferences of all members together: each entry of a list and each number is one, hard and
    soft alike. `stated` are the members' preferences, and `collected` those of them that the response has recorded.

    Args:
        collected: counts of each member, [n] or [R, n], at least 0 and at most `stated`.
        stated: counts of each member, of the same shape.

    Returns:
        A scalar or [R], in [0, 100]; NaN where nobody states a preference.

    Raises:
        PlanError: for other counts, or shapes that differ.
    """
    counts = as_nonnegative("collected", collected)
    stated_preference_counts = _check_utilities_shape(as_nonnegative("stated", stated), "stated")
    check_shape("collected", counts, stated_preference_counts.shape)
    if (counts > stated_preference_counts).any():
        raise PlanError(
            "collected has a count above that of stated: only stated preferences can be collected"
        )
    return _divide_or_default(
        100.0 * total(counts), total(stated_preference_counts), value_if_empty=np.nan
    )


def _check_utilities_shape(u: Floats, name: str = "u") -> Floats:
    if u.ndim not in (1, 2) or not u.shape[-1]:
        raise PlanError(
            f"{name} has shape {u.shape}: [n] or [R, n] with at least one member is needed"
        )
    return u


def _divide_or_default(
    numerator: ScalarOrFloats, denominator: ScalarOrFloats, value_if_empty: float
) -> ScalarOrFloats:
    is_zero_total = np.equal(denominator, 0.0)
    shares = np.where(
        is_zero_total, value_if_empty, numerator / np.where(is_zero_total, 1.0, denominator)
    )
    return shares[()]
