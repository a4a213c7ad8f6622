"""Alarm limits of the tests, from the required average run length (ARL) of the whole analyzer."""

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

REFERENCES = (0.25, 1.0)
"""Reference values k of the CUSUMs, in sd: tuned to shifts of 2 k, a lasting one of 0.5 sd and a sudden one of 2 sd."""

TESTS = 2 * len(REFERENCES) + 2
"""Number of tests per series: a CUSUM for each reference value, and the jump test, each up and down."""

_OVERSHOOT = 1.166
"""The overshoot of a CUSUM of normal scores over its limit, both ends together (Siegmund 1985)."""


_TAIL_FACTOR = 1.15
"""The factor on the normal limit of the jump test, since hardly any statistic is normal in the far tail. CUSUMs need
no such factor, since they add scores up."""


class Limits(NamedTuple):
    """The limit of each CUSUM, in sd, in the order of REFERENCES; and that of a single step's normal score."""

    drift: tuple[float, ...]
    jump: float


def run_length(k: float, h: float) -> float:
    """Return the ARL of a one-sided CUSUM of standard normal scores, reference value k > 0, limit h: Siegmund's
    approximation (exp(2 k b) - 2 k b - 1) / (2 k²), b = h + 1.166."""
    b = h + _OVERSHOOT
    return float((np.expm1(2 * k * b) - 2 * k * b) / (2 * k * k))


def limits(arl: float, series: int) -> Limits:
    """Return limits that give all tests of so many series together this ARL, each with an equal share of false alarms.

    Alarms of one test occur at a rate of 1 / ARL, and the rates add up; correlated tests raise fewer alarms. So the
    whole has at least the required ARL.
    """
    arl_per_test = arl * series * TESTS
    drift = tuple(
        float(
            optimize.brentq(
                lambda h, k=k: np.log(run_length(k, h) / arl_per_test), 0.0, 10.0 + np.log(arl_per_test) / k
            )
        )
        for k in REFERENCES
    )
    return Limits(drift, float(-_TAIL_FACTOR * special.ndtri(1.0 / arl_per_test)))
