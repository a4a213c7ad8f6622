"""Mean absolute difference between the components of one reward."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation import fusion
from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import InputError


def pairwise(components: ArrayLike | Mapping[str, ArrayLike]) -> np.float64 | Floats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|, the mean absolute difference of two components (MACRM Eq.
    6).

    The order of the components does not change a bit of the result.

    Args:
        components: m values of one response [m], of R responses [R, m], or [R] by component; each in [0, 1], m ≥ 2.

    Returns:
        D_pair in [0, 1]: a scalar for one response, else [R]. For m = 3 it is at most 2/3.

    Raises:
        InputError: fewer than two components, another shape, lists of different lengths, or a value that is not a
            number
            in [0, 1] (such as NaN, booleans or text); the first such value is named.
    """
    values = _stack_columns(components) if isinstance(components, Mapping) else _to_floats("components", components)
    if values.ndim not in (1, 2):
        raise InputError(f"components have shape {values.shape}: [m] or [R, m] is needed")
    if values.shape[-1] < 2:
        raise InputError(f"disagreement is between components, and there are {values.shape[-1]}; give 2 or more")
    return np.minimum(fusion.disagreement(values), 1.0)


def _stack_columns(components: Mapping[str, ArrayLike]) -> Floats:
    columns = {name: _to_floats(name, values) for name, values in components.items()}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) > 1:
        shape_list = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise InputError(f"components have different shapes ({shape_list}); give each one value a response")
    return np.stack(list(columns.values()), axis=-1) if columns else np.empty(0)


def _to_floats(name: str, raw: ArrayLike) -> Floats:
    try:
        values = np.asarray(raw)
    except ValueError:
        raise InputError(f"{name}: lists of different lengths are no array; give every response m values") from None
    if values.size and values.dtype.kind not in "iuf":
        raise InputError(f"{name} holds {values.dtype}; give numbers in [0, 1]")
    values = values.astype(np.float64)
    outside = np.argwhere(~((values >= 0.0) & (values <= 1.0)))
    if len(outside):
        index = tuple(outside[0].tolist())
        raise InputError(f"{name}{list(index) if index else ''} is {values[index]}; give a number in [0, 1]")
    return values
