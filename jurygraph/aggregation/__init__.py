"""Arithmetic of rewards: arrays in, arrays out, with NumPy only (a consensus and intervals load SciPy, too).

    gear          rubric graphs: the score of a criterion when its prerequisites fail, and the weighted sum (GEAR)
    stakeholders  weights fixed by difficulty, and group statistics (DecompR)
    fusion        signed components of specialist agents, and rules on their sum (MACRM)
    pairwise      comparisons in both orders: outcomes, position bias, Bradley-Terry strengths
    agreement     agreement of labels: kappa, Krippendorff's alpha, strict majority
    consensus     joint label of several annotators, and the error rates of each (STABLEVAL)
    advantages    rewards as distances from their group's mean, and `filling_factor` of failed ones (DecompR, MACRM)
    total         the summation used everywhere: left to right, so that all machines give the same bits

The same input gives the same bits on every machine, in C and F order, for any chunking of the responses and any order
of the edges. Exceptions are `gear.retention` and `stakeholders.weights`, which are computed once and frozen,
`consensus`, whose estimates are frozen in a plan, and intervals, which no reward has. Input that cannot be aggregated
raises `PlanError`, which is a `ValueError`.
"""

from jurygraph.aggregation import agreement, consensus, fusion, gear, pairwise, stakeholders
from jurygraph.aggregation.group_advantages import advantages, filling_factor
from jurygraph.arrays import total

__all__ = [
    "advantages",
    "agreement",
    "consensus",
    "filling_factor",
    "fusion",
    "gear",
    "pairwise",
    "stakeholders",
    "total",
]
