"""The Mantel test: do two matrices over the same members, such as reviewers, go together?

Pairs of members are not independent, so the members of one matrix are exchanged at random, all their pairs with them
(Mantel 1967).
"""

from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats

PERMUTATIONS = 1999
_LEAST_PAIRS = 3
_MOST_UNKNOWN = 0.05


class MantelTest(NamedTuple):
    """The correlation over the `pairs` that both matrices have, and its two-sided p-value; None where undefined."""

    pairs: int
    correlation: float | None
    p: float | None


def mantel(first: Floats, second: Floats, seed: int = 0) -> MantelTest:
    """Return the correlation of two symmetric matrices [G, G], NaN where a pair is unknown, with its p-value.

    p is (1 + hits) / (1 + 1999) of random permutations, drawn by `seed`; with few members few permutations differ, and
    with three it cannot be less than about 1/6. None if too many pairs are unknown.
    """
    upper = np.triu_indices(len(first), 1)
    values = first[upper]
    pairs = int((~np.isnan(values) & ~np.isnan(second[upper])).sum())
    observed = _correlation(values, second[upper])
    if np.isnan(observed):
        return MantelTest(pairs, None, None)
    rng = np.random.default_rng(seed)
    hits = 0
    unknown = 0
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(second))
        drawn = _correlation(values, second[np.ix_(order, order)][upper])
        unknown += np.isnan(drawn)
        # What cannot be computed counts against the relation.
        hits += not abs(drawn) < abs(observed) - 1e-12
    if unknown > _MOST_UNKNOWN * PERMUTATIONS:
        return MantelTest(pairs, observed, None)
    return MantelTest(pairs, observed, (1 + hits) / (1 + PERMUTATIONS))


def _correlation(first: Floats, second: Floats) -> float:
    known = ~np.isnan(first) & ~np.isnan(second)
    a = first[known]
    b = second[known]
    if len(a) < _LEAST_PAIRS or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return np.nan
    return float(np.corrcoef(a, b)[0, 1])
