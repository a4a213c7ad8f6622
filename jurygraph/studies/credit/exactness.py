"""How far the topological update is from exact inference, where the graph is small enough (GEAR, appendix B.2)."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jurygraph.agents.roles import Floats
from jurygraph.aggregation import gear
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count, Number
from jurygraph.studies.credit.sheets import Sheet

LARGEST = 20
"""More criteria have too many states to enumerate."""


class Agreement(Noun):
    """Exact against approximate marginals, and the rewards that they give, over pairs of a graph and a response.

    `pairs` were compared. Left out were `too_large` pairs, of rubrics of more than 20 criteria, and those `unjudged`,
    where some criterion was not judged or does not apply: what counts for it then is no part of the model. Responses to
    rubrics without an edge are no pairs. The errors are None without a pair, `reward_correlation` (Pearson's) also
    where either kind of reward is the same throughout.
    """

    pairs: Count
    too_large: Count
    unjudged: Count
    criteria: Number | None
    marginal_mae: Number | None
    reward_mae: Number | None
    reward_correlation: Number | None


def agreement(sheets: Sequence[Sheet], kappa: float, report: Callable[[int], None]) -> Agreement:
    """How far they agree at this κ. `report` is called for each sheet."""
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
        whole = sheet.decided.all(axis=1) & (sheet.size != 0.0).all(axis=1)
        unjudged += int((~whole).sum())
        retention = sheet.retention(kappa)
        marginals = _enumerated(sheet, sheet.p[whole], retention), sheet.graph.marginals(sheet.p[whole], retention)
        errors.append(np.abs(marginals[0] - marginals[1]))
        exact.append(np.asarray(gear.reward(marginals[0], sheet.weights)))
        updated.append(np.asarray(gear.reward(marginals[1], sheet.weights)))
    pairs = sum(map(len, errors))
    one, other = (np.concatenate([*rewards, np.empty(0)]) for rewards in (exact, updated))
    return Agreement(
        pairs=pairs,
        too_large=too_large,
        unjudged=unjudged,
        criteria=sum(each.size for each in errors) / pairs if pairs else None,
        marginal_mae=fmean(np.concatenate([each.ravel() for each in errors])) if pairs else None,
        reward_mae=fmean(np.abs(one - other)) if pairs else None,
        reward_correlation=correlation(one, other),
    )


def _enumerated(sheet: Sheet, p: Floats, retention: Sequence[float]) -> Floats:
    """Exact marginals [R, C]. Parts of the graph that no edge joins are independent, so each is enumerated alone."""
    q = p.copy()
    for nodes, edges in _parts(sheet):
        place = {node: at for at, node in enumerate(nodes)}
        parents, children = ([place[ends[edge]] for edge in edges] for ends in (sheet.parents, sheet.children))
        q[:, nodes] = gear.exact_marginals(p[:, nodes], parents, children, [retention[edge] for edge in edges])
    return q


def _parts(sheet: Sheet) -> Iterator[tuple[list[int], list[int]]]:
    """Criteria and edges of each part of the graph that has an edge."""
    n, edges = sheet.graph.n, len(sheet.edges)
    joined = coo_array((np.ones(edges), (sheet.parents, sheet.children)), shape=(n, n))
    _, labels = connected_components(joined, directed=False)
    own = labels[list(sheet.parents)]
    for label in np.unique(own):
        yield np.flatnonzero(labels == label).tolist(), np.flatnonzero(own == label).tolist()


def correlation(one: Floats, other: Floats) -> float | None:
    """Pearson's correlation of two rows of numbers; None where there are fewer than two, or either does not vary."""
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    a, b = one - fmean(one), other - fmean(other)
    size = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
    return min(1.0, max(-1.0, math.fsum(a * b) / size)) if size > 0.0 else None
