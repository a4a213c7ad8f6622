"""Error of the topological update against exact inference, for graphs that are small enough (GEAR, appendix B.2)."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jurygraph.aggregation import gear
from jurygraph.aggregation.arrays import Floats
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number
from jurygraph.studies.credit.sheets import RubricSheet

LARGEST = 20
"""Maximum number of criteria: more have too many states to enumerate."""


class Agreement(FrozenModel):
    """Exact against approximate marginals, and the resulting rewards, over pairs of a graph and a response.

    `pairs` were compared. Left out were `too_large` pairs, of rubrics with more than 20 criteria, and `unjudged` pairs,
    in
    which a criterion was not judged or does not apply: its replacement score is not part of the model. Responses to
    rubrics without an edge are not pairs. The errors are None without a pair; `reward_correlation` (Pearson's) is None
    also if either kind of reward is constant.
    """

    pairs: Count
    too_large: Count
    unjudged: Count
    criteria: Number | None
    marginal_mae: Number | None
    reward_mae: Number | None
    reward_correlation: Number | None


def agreement(sheets: Sequence[RubricSheet], kappa: float, report: Callable[[int], None]) -> Agreement:
    """Return the agreement at this κ. `report` is called with 1 for each sheet."""
    too_large = unjudged = 0
    errors: list[Floats] = []
    exact: list[Floats] = []
    updated: list[Floats] = []
    for sheet in sheets:
        report(1)
        if not sheet.edges:
            continue
        if sheet.graph.n > LARGEST:
            too_large += len(sheet.responses)
            continue
        complete = sheet.is_judged.all(axis=1) & (sheet.applied_weights != 0.0).all(axis=1)
        unjudged += int((~complete).sum())
        retention = sheet.retention(kappa)
        marginals = (
            _exact_marginals(sheet, sheet.p[complete], retention),
            sheet.graph.marginals(sheet.p[complete], retention),
        )
        errors.append(np.abs(marginals[0] - marginals[1]))
        exact.append(np.asarray(gear.reward(marginals[0], sheet.weights)))
        updated.append(np.asarray(gear.reward(marginals[1], sheet.weights)))
    pairs = sum(map(len, errors))
    exact_rewards, updated_rewards = (np.concatenate([*rewards, np.empty(0)]) for rewards in (exact, updated))
    return Agreement(
        pairs=pairs,
        too_large=too_large,
        unjudged=unjudged,
        criteria=sum(each.size for each in errors) / pairs if pairs else None,
        marginal_mae=fmean(np.concatenate([each.ravel() for each in errors])) if pairs else None,
        reward_mae=fmean(np.abs(exact_rewards - updated_rewards)) if pairs else None,
        reward_correlation=correlation(exact_rewards, updated_rewards),
    )


def _exact_marginals(sheet: RubricSheet, p: Floats, retention: Sequence[float]) -> Floats:
    """Return exact marginals [R, C]. Connected components of the graph are independent, and enumerated one by one."""
    q = p.copy()
    for nodes, edges in _connected_parts(sheet):
        local_index = {node: index for index, node in enumerate(nodes)}
        parents, children = ([local_index[ends[edge]] for edge in edges] for ends in (sheet.parents, sheet.children))
        q[:, nodes] = gear.exact_marginals(p[:, nodes], parents, children, [retention[edge] for edge in edges])
    return q


def _connected_parts(sheet: RubricSheet) -> Iterator[tuple[list[int], list[int]]]:
    """Yield criteria and edges of each connected component that has an edge."""
    n, edges = sheet.graph.n, len(sheet.edges)
    adjacency = coo_array((np.ones(edges), (sheet.parents, sheet.children)), shape=(n, n))
    _, labels = connected_components(adjacency, directed=False)
    edge_labels = labels[list(sheet.parents)]
    for label in np.unique(edge_labels):
        yield np.flatnonzero(labels == label).tolist(), np.flatnonzero(edge_labels == label).tolist()


def correlation(one: Floats, other: Floats) -> float | None:
    """Return Pearson's correlation of two rows; None with fewer than two values, or if either is constant."""
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    a, b = one - fmean(one), other - fmean(other)
    norm = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
    return min(1.0, max(-1.0, math.fsum(a * b) / norm)) if norm > 0.0 else None
