"""Arithmetic of rewards: arrays in, arrays out, NumPy alone (a consensus that is fitted loads SciPy, too).

    flat          one weighted sum of local scores (GEAR's baseline)
    gear          rubric graphs: what a criterion earns when its prerequisites fail (GEAR)
    stakeholders  weights fixed by difficulty, and group figures (DecompR)
    fusion        signed components of specialist agents and their rules (MACRM)
    voting        what more than half of the seats say
    pairwise      comparisons in both orders: outcomes, position bias, Bradley-Terry strengths
    agreement     how far labels agree: kappa, accuracy, macro means
    consensus     what annotators say together, and how each of them errs (STABLEVAL)
    total         the one summation: left to right, the same bits everywhere

Same input, same bits: on every machine, in C and F order, for any chunking of the responses and any order of the edges.
Only four stand outside that promise: `gear.retention` and `stakeholders.weights`, which are computed once and frozen,
`gear.exact_marginals`, which checks the others, and `consensus`, whose estimates a plan freezes. Whatever cannot be
aggregated is refused with a `PlanError`, which is a `ValueError`.
"""

from jurygraph.aggregation import agreement, consensus, flat, fusion, gear, pairwise, stakeholders, voting
from jurygraph.aggregation._ordered import total

__all__ = ["agreement", "consensus", "flat", "fusion", "gear", "pairwise", "stakeholders", "total", "voting"]
