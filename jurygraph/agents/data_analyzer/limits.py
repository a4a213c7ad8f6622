"""How high a test may rise before it tells, from the average run length (ARL) that the whole analyzer is to have."""

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

REFERENCES = (0.25, 1.0)
"""Reference values k of the CUSUMs, in sd: tuned to shifts of 2 k, half an sd that lasts and two that come at once."""

TESTS = 2 * len(REFERENCES) + 2
"""Of each series: a CUSUM for each reference value, and the jump test, each up and down."""

_OVERSHOOT = 1.166
"""What a CUSUM of normal scores overshoots its limit by, both ends together (Siegmund 1985)."""


_FAR = 1.15
"""A jump is looked for in the far tail, where hardly any figure is normal: its limit is so much higher than normal
scores would ask for. CUSUMs need nothing like that, for they add up."""


class Limits(NamedTuple):
    """Of each CUSUM, in sd, in the order of REFERENCES; and of a single step's normal score."""

    drift: tuple[float, ...]
    jump: float


def run_length(k: float, h: float) -> float:
    """ARL of a one-sided CUSUM of standard normal scores, reference value k > 0, limit h: Siegmund's approximation
    (exp(2 k b) - 2 k b - 1) / (2 k²), b = h + 1.166."""
    b = h + _OVERSHOOT
    return float((np.expm1(2 * k * b) - 2 * k * b) / (2 * k * k))


def limits(arl: float, series: int) -> Limits:
    """Limits with which all tests of so many series together have this ARL, each with a like share of false alarms.

    Alarms of one test come at a rate of 1 / ARL, and the rates add up; where tests rise together, fewer come. So the
    whole has at least the ARL that was asked for.
    """
    each = arl * series * TESTS
    drift = tuple(
        float(optimize.brentq(lambda h, k=k: np.log(run_length(k, h) / each), 0.0, 10.0 + np.log(each) / k))
        for k in REFERENCES
    )
    return Limits(drift, float(-_FAR * special.ndtri(1.0 / each)))
