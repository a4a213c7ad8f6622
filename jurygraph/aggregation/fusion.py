"""MACRM: signed components of specialist agents, fused into one reward.

    R_collab = α R_acc + β R_sim + γ R_fmt + δ R_step - η R_rep          (Eq. 3)

η enters as a negative weight. The paper gives no formula for the fusion F of its Eq. 4. Here F is the identity, and
three rules can be switched on: the gates of `decision.decide` (our reading).
"""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import ScalarOrFloats, as_finite, as_floats, check_shape, total
from jurygraph.errors import PlanError


def collaborative(
    components: Mapping[str, ArrayLike], weights: Mapping[str, float]
) -> ScalarOrFloats:
    """Return R = Σ_k w_k r_k, summed in the order of the components' sorted names: Eq. 3 of MACRM.

    Args:
        components: scores by name, finite, all scalars or all [R].
        weights: signed weights by name, finite; a penalty's is negative.

    Returns:
        A scalar, or [R]; nothing is clipped.

    Raises:
        PlanError: no component, a name on one side only, a value that is not finite (named), or shapes that differ.
    """
    if not components:
        raise PlanError("there is no component: a reward needs one at least")
    unknown_component_names = sorted(weights.keys() - components.keys())
    if unknown_component_names:
        raise PlanError(f"no component for the weights of {', '.join(unknown_component_names)}")
    unweighted_component_names = sorted(components.keys() - weights.keys())
    if unweighted_component_names:
        raise PlanError(f"no weight for the components {', '.join(unweighted_component_names)}")
    scores = {name: as_finite(name, components[name]) for name in sorted(components)}
    first = next(iter(scores))
    shape = scores[first].shape
    if len(shape) > 1:
        raise PlanError(f"{first} has shape {shape}: a scalar or [R] is needed")
    result = np.zeros(shape)
    for name, score in scores.items():
        check_shape(name, score, shape)
        weight = as_finite(f"weights[{name!r}]", weights[name])
        check_shape(f"weights[{name!r}]", weight, ())
        result = result + weight * score
    return result[()]


def disagreement(components: ArrayLike) -> ScalarOrFloats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|: mean absolute difference of components (MACRM Eq. 6).

    components [..., m] numbers, m ≥ 2 (else PlanError) -> [...]; a response with a NaN has no disagreement (NaN).

    The sum over pairs is computed from the gaps between neighbours in sorted order: the k-th gap separates k values
    from m - k, so it is part of k (m - k) pairs. The order of the components changes no bit, and equal ones give 0.
    """
    values = as_floats("components", components)
    m = values.shape[-1] if values.ndim else 0
    if m < 2:
        raise PlanError(f"disagreement is between components, and there are {m}; give 2 or more")
    gaps = np.diff(np.sort(values))
    lower = np.arange(1, m)
    share = lower * (m - lower) * 2.0 / (m * (m - 1))
    return total(gaps * share)
