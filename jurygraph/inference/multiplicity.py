"""p-values adjusted for the number of tests."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values (1979), in the order given: the chance of any false alarm is at most the level.

    A missing p-value was no test: it stays None and does not count.
    """
    tested = [place for place, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[place] for place in tested], dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    result: list[float | None] = [None] * len(p_values)
    for place, adjusted_p in zip(tested, adjusted, strict=True):
        result[place] = float(adjusted_p)
    return result
