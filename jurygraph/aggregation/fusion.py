"""MACRM: signed components of specialist agents, fused into one reward.

    R_collab = α R_acc + β R_sim + γ R_fmt + δ R_step - η R_rep          (Eq. 3)

η enters as a negative weight. The paper gives no formula for the fusion F of its Eq. 4. Here F is the identity, and
three rules can be switched on (our reading). Each is a function that returns new rewards, so that a trace can show its
effect.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, as_finite, as_probability, as_unit_interval, check_shape, total
from jurygraph.errors import PlanError


def collaborative(
    components: Mapping[str, ArrayLike], weights: Mapping[str, float]
) -> np.float64 | Floats:
    """Return R = Σ_k w_k r_k, summed in the order of the components' sorted names: Eq. 3 of MACRM.

    Args:
        components: scores by name, finite, all scalars or all [R].
        weights: signed weights by name, finite; a penalty's is negative.

    Returns:
        A scalar, or [R]; nothing is clipped.

    Raises:
        PlanError: no component, a name on one side only, a value that is not finite (named), or shapes that differ.
    """
    return _signed_sum(_scores(components, weights), weights)


def precision_shaping(
    components: Mapping[str, ArrayLike],
    weights: Mapping[str, float],
    accuracy: ArrayLike,
    auxiliary: Collection[str],
    fraction: float,
    threshold: float = 0.5,
) -> np.float64 | Floats:
    """Return Eq. 3 of MACRM with only a fraction of the auxiliary components where the answer is wrong (our reading).

    Args:
        components, weights: as for `collaborative`.
        accuracy: in [0, 1], of the components' shape; below `threshold` the answer is wrong.
        auxiliary: names of the components that are reduced (similarity, step, format).
        fraction: the factor that is applied to them, in [0, 1].
        threshold: in [0, 1].

    Raises:
        PlanError: as for `collaborative`, an auxiliary name that is not a component, or a value outside [0, 1].
    """
    scores = _scores(components, weights)
    names = set(auxiliary)
    unknown = sorted(names - scores.keys())
    if unknown:
        raise PlanError(f"auxiliary names {', '.join(unknown)}, which no component has")
    accuracies = as_unit_interval("accuracy", accuracy)
    check_shape("accuracy", accuracies, next(iter(scores.values())).shape)
    is_wrong = accuracies < as_probability("threshold", threshold)
    factor = np.where(is_wrong, as_probability("fraction", fraction), 1.0)
    for name in sorted(names):
        scores[name] = scores[name] * factor
    return _signed_sum(scores, weights)


def format_gate(r: ArrayLike, fmt: ArrayLike, threshold: float) -> np.float64 | Floats:
    """Return 0 where the format score is below the threshold, else r (our reading of MACRM's format rule).

    r (finite) and fmt (in [0, 1]) have the same shape, scalar or [R]; threshold is in [0, 1]. Raises PlanError for
    anything else. A reward below 0 becomes 0 as well, so use the gate where rewards are at least 0.
    """
    rewards, formats = _check_pair(r, "fmt", fmt)
    is_below = formats < as_probability("threshold", threshold)
    gated: Floats = np.where(is_below, 0.0, rewards)
    return gated[()]


def repetition_control(
    r: ArrayLike, repetition: ArrayLike, threshold: float
) -> np.float64 | Floats:
    """Return r (1 - R_rep) where R_rep is above the threshold, else r (our reading of MACRM's repetition rule).

    r (finite) and repetition (in [0, 1]) have the same shape, scalar or [R]; threshold is in [0, 1]. Raises PlanError
    for anything else. A reward below 0 moves towards 0 as well, so use the rule where rewards are at least 0.
    """
    rewards, repeated = _check_pair(r, "repetition", repetition)
    is_above = repeated > as_probability("threshold", threshold)
    controlled: Floats = np.where(is_above, rewards * (1.0 - repeated), rewards)
    return controlled[()]


def disagreement(components: ArrayLike) -> np.float64 | Floats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|: mean absolute difference of components (MACRM Eq. 6).

    components [..., m], m ≥ 2 (PlanError for fewer) -> [...]; a response with a NaN has no disagreement (NaN).

    The sum over pairs is computed from the gaps between neighbours in sorted order: the k-th gap separates k values
    from m - k, so it is part of k (m - k) pairs. The order of the components changes no bit, and equal ones give 0.
    """
    values = np.asarray(components, dtype=np.float64)
    m = values.shape[-1] if values.ndim else 0
    if m < 2:
        raise PlanError(f"disagreement is between components, and there are {m}; give 2 or more")
    gaps = np.diff(np.sort(values))
    lower = np.arange(1, m)
    share = lower * (m - lower) * 2.0 / (m * (m - 1))
    return total(gaps * share)


def _scores(components: Mapping[str, ArrayLike], weights: Mapping[str, float]) -> dict[str, Floats]:
    if not components:
        raise PlanError("there is no component: a reward needs one at least")
    unknown = sorted(weights.keys() - components.keys())
    if unknown:
        raise PlanError(f"no component for the weights of {', '.join(unknown)}")
    unweighted = sorted(components.keys() - weights.keys())
    if unweighted:
        raise PlanError(f"no weight for the components {', '.join(unweighted)}")
    scores = {name: as_finite(name, components[name]) for name in sorted(components)}
    first, *others = scores
    for name in others:
        check_shape(name, scores[name], scores[first].shape)
    if scores[first].ndim > 1:
        raise PlanError(f"{first} has shape {scores[first].shape}: a scalar or [R] is needed")
    return scores


def _signed_sum(scores: Mapping[str, Floats], weights: Mapping[str, float]) -> np.float64 | Floats:
    result = np.zeros(next(iter(scores.values())).shape)
    for name, score in scores.items():
        weight = as_finite(f"weights[{name!r}]", weights[name])
        check_shape(f"weights[{name!r}]", weight, ())
        result = result + weight * score
    return result[()]


def _check_pair(r: ArrayLike, name: str, score: ArrayLike) -> tuple[Floats, Floats]:
    rewards = as_finite("r", r)
    scores = as_unit_interval(name, score)
    if rewards.ndim > 1:
        raise PlanError(f"r has shape {rewards.shape}: a scalar or [R] is needed")
    check_shape(name, scores, rewards.shape)
    return rewards, scores
