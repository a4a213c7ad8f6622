"""Exact marginals of a rubric graph by summing its joint distribution (Eqs. 8-10 of GEAR)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.aggregation._inputs import FloatArray

MAX_CRITERIA = 20
STATES_PER_BATCH = 1 << 22  # 32 MiB of float64

# Per criterion, in topological order: its index and its (parent, λ) pairs.
Conditionals = Sequence[tuple[int, Sequence[tuple[int, float]]]]


def enumerate_marginals(p: FloatArray, conditionals: Conditionals) -> FloatArray:
    """Return P(z_i = 1) under Π_i P(z_i | z_parents), [R, C], for p [R, C]; each response has 2^C states.

    The joint distribution grows by one criterion at a time, in topological order: criteria that come later sum to 1 and
    are left out.
    """
    q = np.empty(p.shape)
    rows = max(1, STATES_PER_BATCH >> p.shape[1])
    for start in range(0, len(p), rows):
        q[start : start + rows] = _of_rows(p[start : start + rows], conditionals)
    return q


def _of_rows(p: FloatArray, conditionals: Conditionals) -> FloatArray:
    q = np.empty(p.shape)
    joint = np.ones((len(p), 1))
    bit: dict[int, int] = {}
    for criterion, parents in conditionals:
        support = np.ones(joint.shape[1])
        states = np.arange(joint.shape[1])
        for parent, retention in parents:
            support *= np.where(states >> bit[parent] & 1, 1.0, retention)
        holds = joint * (p[:, criterion, None] * support)
        q[:, criterion] = holds.sum(axis=1)
        bit[criterion] = len(bit)
        joint = np.concatenate((joint - holds, holds), axis=1)
    return q
