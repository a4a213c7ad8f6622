"""Error of the topological update against exact inference, for graphs that are small enough (GEAR, appendix B.2)."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jurygraph.aggregation import gear
from jurygraph.aggregation.arrays import Floats
from jurygraph.studies.credit.models import Agreement
from jurygraph.studies.credit.sheets import RubricSheet

LARGEST = 20
"""Maximum number of criteria: more have too many states to enumerate."""


def agreement(sheets: Sequence[RubricSheet], kappa: float, report: Callable[[int], None]) -> Agreement:
    """Return the agreement at this κ. `report` is called with 1 for each sheet."""
    too_large = unjudged = 0
    errors, exact_rewards, updated_rewards = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for sheet in sheets:
        report(1)
        if not sheet.edges:
            continue
        if sheet.graph.n > LARGEST:
            too_large += len(sheet.responses)
            continue
        complete = sheet.is_judged.all(axis=1) & (sheet.applied_weights != 0.0).all(axis=1)
        unjudged += int((~complete).sum())
        p, retention = sheet.p[complete], sheet.retention(kappa)
        exact, updated = _exact_marginals(sheet, p, retention), sheet.graph.marginals(p, retention)
        errors.append(np.abs(exact - updated).ravel())
        exact_rewards.append(np.asarray(gear.reward(exact, sheet.weights)))
        updated_rewards.append(np.asarray(gear.reward(updated, sheet.weights)))
    error, exact, updated = map(np.concatenate, (errors, exact_rewards, updated_rewards))
    return Agreement(
        pairs=len(exact),
        too_large=too_large,
        unjudged=unjudged,
        criteria=len(error) / len(exact) if len(exact) else None,
        marginal_mae=fmean(error) if len(exact) else None,
        reward_mae=fmean(np.abs(exact - updated)) if len(exact) else None,
        reward_correlation=correlation(exact, updated),
    )


def _exact_marginals(sheet: RubricSheet, p: Floats, retention: Sequence[float]) -> Floats:
    """Return exact marginals [R, C]. Connected components of the graph are independent, and enumerated one by one."""
    q, n = p.copy(), sheet.graph.n
    adjacency = coo_array((np.ones(len(sheet.edges)), (sheet.parents, sheet.children)), shape=(n, n))
    _, labels = connected_components(adjacency, directed=False)
    edge_labels = labels[list(sheet.parents)]
    for label in np.unique(edge_labels):
        nodes, edges = np.flatnonzero(labels == label), np.flatnonzero(edge_labels == label)
        parents, children = (np.searchsorted(nodes, np.take(ends, edges)) for ends in (sheet.parents, sheet.children))
        q[:, nodes] = gear.exact_marginals(p[:, nodes], parents, children, np.take(retention, edges))
    return q


def correlation(one: Floats, other: Floats) -> float | None:
    """Return Pearson's correlation of two rows; None with fewer than two values, or if either is constant."""
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    a, b = one - fmean(one), other - fmean(other)
    norm = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
    return min(1.0, max(-1.0, math.fsum(a * b) / norm)) if norm > 0.0 else None
