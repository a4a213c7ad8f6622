"""Types of arrays, the summation that all rewards use, and validation of array arguments.

The validating functions take the name of the array in the caller's signature, for the error message, and the class of
the error. They return an array without copying where no copy is needed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.errors import PlanError

PlanErrorType = type[PlanError]
Floats = NDArray[np.float64]
ScalarOrFloats = np.float64 | Floats
"""What is left of an array without its last axis."""
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]


def total(a: ArrayLike, axis: int = -1) -> ScalarOrFloats:
    """Sum over one short axis, left to right, from 0.0, by elementwise additions.

    NumPy's own sum groups its terms by shape, memory order and CPU. This function does not, so its bits are the same
    for one response and for a thousand. NaN and infinities pass through.

    Args:
        a: numbers of any shape [..., N, ...]; booleans and strings are refused.
        axis: the axis to sum over, which should be short, because the loop over it runs in Python.

    Returns:
        The sums, without that axis; a scalar for a vector; 0.0 where the axis is empty.
    """
    values = as_floats("a", a)
    # .T is 10x faster
    terms = values.T if axis == -1 and values.ndim <= 2 else np.moveaxis(values, axis, 0)
    result = np.zeros(terms.shape[1:])
    for term in terms:
        np.add(result, term, out=result)
    return result[()]


def _to_array(name: str, values: ArrayLike, error: PlanErrorType) -> NDArray[np.generic]:
    # np.asarray would drop the mask, and masked values are not verdicts.
    if isinstance(values, np.ndarray) and hasattr(values, "mask"):
        raise error(f"{name} is a masked array: pass the mask separately, as booleans")
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as cause:
        raise error(f"{name} is not an array of numbers: {cause}") from cause


def refuse_first_invalid(
    name: str, a: NDArray[np.generic], is_invalid: Bools, problem: str, error: PlanErrorType
) -> None:
    """Raise an error that names the first invalid entry as an index expression, such as `p[3, 2]`."""
    if is_invalid.any():
        index = tuple(int(i) for i in np.argwhere(is_invalid)[0])
        entry = f"{name}[{', '.join(map(str, index))}]" if index else name
        raise error(f"{entry} is {a[index]}{problem}")


def as_floats(name: str, values: ArrayLike, error: PlanErrorType = PlanError) -> Floats:
    """Return floats or integers of any shape as float64; booleans, strings and objects are refused."""
    a = _to_array(name, values, error)
    if a.dtype.kind not in "iuf" and a.size:
        raise error(f"{name} holds {a.dtype} where numbers are needed")
    return np.asarray(a, dtype=np.float64)


def as_ratings(ratings: ArrayLike) -> Floats:
    """Return ratings as float64, [raters, items], with NaN where a rater did not rate an item.

    Raises PlanError for another shape, or an infinite number.
    """
    table = as_floats("ratings", ratings)
    if table.ndim != 2:
        raise PlanError(f"ratings has shape {table.shape} where [raters, items] is needed")
    if np.isinf(table).any():
        raise PlanError(
            "ratings has an infinite number: give NaN where a rater did not rate an item"
        )
    return table


def as_finite(name: str, values: ArrayLike, error: PlanErrorType = PlanError) -> Floats:
    """Return numbers, none of which is NaN or infinite."""
    a = as_floats(name, values, error)
    refuse_first_invalid(name, a, ~np.isfinite(a), ": a finite number is needed", error)
    return a


def as_nonnegative(name: str, values: ArrayLike, error: PlanErrorType = PlanError) -> Floats:
    """Return finite numbers of at least 0."""
    a = as_finite(name, values, error)
    refuse_first_invalid(name, a, a < 0, ": at least 0 is needed", error)
    return a


def as_unit_interval(name: str, values: ArrayLike, error: PlanErrorType = PlanError) -> Floats:
    """Return numbers in [0, 1]; NaN is refused too."""
    a = as_floats(name, values, error)
    # Two reductions need no temporary array. NaN propagates through both, so it fails the comparison.
    if a.size and not (a.min() >= 0.0 and a.max() <= 1.0):
        refuse_first_invalid(
            name, a, ~((a >= 0.0) & (a <= 1.0)), ": a number in [0, 1] is needed", error
        )
    return a


def as_probability(name: str, value: float, error: PlanErrorType = PlanError) -> float:
    """Return one number in [0, 1]."""
    a = as_unit_interval(name, value, error)
    check_shape(name, a, (), error=error)
    return float(a)


def as_booleans(name: str, values: ArrayLike, error: PlanErrorType = PlanError) -> Bools:
    """Return booleans of any shape; 0 and 1 are refused."""
    a = _to_array(name, values, error)
    if a.dtype != np.bool_ and a.size:
        raise error(f"{name} holds {a.dtype} where booleans are needed")
    return np.asarray(a, dtype=np.bool_)


def as_indices(name: str, values: ArrayLike, n: int, error: PlanErrorType = PlanError) -> Ints:
    """Return integers [E] in 0..n-1."""
    a = _to_array(name, values, error)
    if a.ndim != 1 or (a.dtype.kind not in "iu" and a.size):
        raise error(f"{name} has shape {a.shape} and holds {a.dtype}: a list of integers is needed")
    positions = np.asarray(a, dtype=np.intp)
    is_out_of_range = (positions < 0) | (positions >= n)
    refuse_first_invalid(
        name, a, is_out_of_range, f", but the criteria are numbered 0 to {n - 1}", error
    )
    return positions


def check_shape(
    name: str, a: NDArray[np.generic], *shapes: tuple[int, ...], error: PlanErrorType = PlanError
) -> None:
    if a.shape not in shapes:
        raise error(f"{name} has shape {a.shape} where {' or '.join(map(str, shapes))} is needed")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices of an argument."""
    if value not in choices:
        raise PlanError(f"{name} is {value!r}: one of {', '.join(choices)} is needed")


def check_vector_or_matrix(
    name: str, a: NDArray[np.generic], width: int, error: PlanErrorType = PlanError
) -> None:
    """Refuse an array that is neither [width] nor [R, width]."""
    if a.ndim not in (1, 2) or a.shape[-1] != width:
        raise error(f"{name} has shape {a.shape} where [{width}] or [R, {width}] is needed")
