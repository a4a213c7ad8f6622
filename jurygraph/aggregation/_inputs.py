"""What every function of this room refuses at its door, said in the same words.

The functions take the name that the caller's signature gives the array, so that an error points at it, and the class of
the error. They return an array without copying where none is needed.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.errors import PlanError

Refusal = type[PlanError]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]


def _array(name: str, given: ArrayLike, error: Refusal) -> NDArray[np.generic]:
    # A masked array would lose its mask here, and what lies under a mask is no verdict.
    if isinstance(given, np.ndarray) and hasattr(given, "mask"):
        raise error(f"{name} is a masked array: give the mask apart, as booleans")
    try:
        return np.asarray(given)
    except (ValueError, TypeError) as cause:
        raise error(f"{name} is not an array of numbers: {cause}") from cause


def _first(wrong: BoolArray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _entry(name: str, index: tuple[int, ...]) -> str:
    """The name of one entry, as it would be indexed: `p[3, 2]`."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def numbers(name: str, given: ArrayLike, error: Refusal = PlanError) -> FloatArray:
    """Floats or integers of any shape as float64; booleans, strings and objects are refused."""
    a = _array(name, given, error)
    if a.dtype.kind not in "iuf" and a.size:
        raise error(f"{name} holds {a.dtype} where numbers are needed")
    return np.asarray(a, dtype=np.float64)


def finite(name: str, given: ArrayLike, error: Refusal = PlanError) -> FloatArray:
    """Numbers, none of them NaN or infinite."""
    a = numbers(name, given, error)
    fine = np.isfinite(a)
    if not fine.all():
        index = _first(~fine)
        raise error(f"{_entry(name, index)} is {a[index]}: a finite number is needed")
    return a


def nonnegative(name: str, given: ArrayLike) -> FloatArray:
    """Finite numbers of at least 0."""
    a = finite(name, given)
    if (a < 0).any():
        index = _first(a < 0)
        raise PlanError(f"{_entry(name, index)} is {a[index]}: at least 0 is needed")
    return a


def unit(name: str, given: ArrayLike, error: Refusal = PlanError) -> FloatArray:
    """Numbers in [0, 1]; NaN is refused too."""
    a = numbers(name, given, error)
    # Two reductions and no temporary: NaN propagates through both and fails the comparison.
    if a.size and not (a.min() >= 0.0 and a.max() <= 1.0):
        index = _first(~((a >= 0.0) & (a <= 1.0)))
        raise error(f"{_entry(name, index)} is {a[index]}: a number in [0, 1] is needed")
    return a


def share(name: str, given: float, error: Refusal = PlanError) -> float:
    """One number in [0, 1]."""
    a = unit(name, given, error)
    shaped(name, a, (), error=error)
    return float(a)


def booleans(name: str, given: ArrayLike, error: Refusal = PlanError) -> BoolArray:
    """Booleans of any shape; 0 and 1 are refused."""
    a = _array(name, given, error)
    if a.dtype != np.bool_ and a.size:
        raise error(f"{name} holds {a.dtype} where booleans are needed")
    return np.asarray(a, dtype=np.bool_)


def indices(name: str, given: ArrayLike, n: int, error: Refusal = PlanError) -> IndexArray:
    """Integers [E] in 0..n-1."""
    a = _array(name, given, error)
    if a.ndim != 1 or (a.dtype.kind not in "iu" and a.size):
        raise error(f"{name} has shape {a.shape} and holds {a.dtype}: a list of integers is needed")
    places = np.asarray(a, dtype=np.intp)
    outside = (places < 0) | (places >= n)
    if outside.any():
        index = _first(outside)
        raise error(f"{_entry(name, index)} is {a[index]}, but the criteria are numbered 0 to {n - 1}")
    return places


def shaped(name: str, a: NDArray[np.generic], *shapes: tuple[int, ...], error: Refusal = PlanError) -> None:
    """Refuse an array of another shape than one of those given."""
    if a.shape not in shapes:
        raise error(f"{name} has shape {a.shape} where {' or '.join(map(str, shapes))} is needed")


def one_or_many(name: str, a: NDArray[np.generic], width: int, error: Refusal = PlanError) -> None:
    """Refuse an array that is neither [width] nor [R, width]."""
    if a.ndim not in (1, 2) or a.shape[-1] != width:
        raise error(f"{name} has shape {a.shape} where [{width}] or [R, {width}] is needed")
