"""The one summation of every reward."""

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray, numbers


def total(a: ArrayLike, axis: int = -1) -> np.float64 | FloatArray:
    """Sum over one short axis, left to right, from 0.0, by elementwise additions.

    NumPy's own sum pairs its terms by shape, memory order and CPU; this one never does, so its bits are the same for
    one response or a thousand. NaN and infinities pass through.

    Args:
        a: numbers of any shape [..., N, ...]; booleans and strings are refused.
        axis: the axis to sum over; the loop runs over it in Python, so it should be the short one.

    Returns:
        The sums, without that axis; a scalar for a vector; 0.0 where the axis is empty.
    """
    given = numbers("a", a)
    terms = given.T if axis == -1 and given.ndim <= 2 else np.moveaxis(given, axis, 0)  # .T costs a tenth
    result = np.zeros(terms.shape[1:])
    for term in terms:
        np.add(result, term, out=result)
    return result[()]
