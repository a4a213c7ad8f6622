"""The length factor of a correct answer (MACRM, §3: R_cs = accuracy x this factor)."""

from math import cos, pi


def cosine_factor(length: float, limit: float) -> float:
    """Return 0.75 + 0.25·cos(π·min(1, length / limit)): 1 at length 0, falling to 0.5 at `limit` and beyond.

    Raises:
        ValueError: `length` is negative, or `limit` is not above 0.
    """
    if not (length >= 0 and limit > 0):
        raise ValueError(f"length >= 0 and limit > 0 are needed, not {length} and {limit}")
    return 0.75 + 0.25 * cos(pi * min(1.0, length / limit))
